"""The overview of a folder of results: its runs, what is wrong with it, the mean regret of every entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ravi.display.printable import counted, printable, titled
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results
    from ravi.lab.experiments.suite_file.specification import Entry

KEYS = ("section", "mdp", "steps", "label", "column")  # which entry
LISTED = 12  # names, and choices, in a message
MEANS = (
    "SELECT section, mdp, steps, label, \"column\", count(*) - count(failure) AS seeds, "
    "count(failure) AS failed, avg(regret) AS mean FROM results GROUP BY ALL"
)  # fmt: skip


def means(
    entries: Sequence[Entry], rows: Iterable[Mapping[str, Any]], untuned: Mapping[tuple[Any, ...], str]
) -> list[tuple[str, ...]]:
    """The mean regret at T of every entry, under a head; rows: the answer to `MEANS`."""
    found = {tuple(row[key] for key in KEYS): row for row in rows}
    lines: list[tuple[str, ...]] = [("section", "MDP", "learner", "column", "T", "seeds", "failed", "mean regret")]
    for entry in entries:
        which = tuple(getattr(entry, key) for key in KEYS)
        row = found.get(which, {"seeds": 0, "failed": 0, "mean": None})
        mean = untuned.get(which, "-") if row["mean"] is None else f"{row['mean']:,.2f}"
        seeds = f"{row['seeds']} of {len(entry.seeds)}"
        names = map(printable, (entry.section, titled(entry.mdp), entry.label, entry.column))
        lines.append((*names, f"{entry.steps:,}", seeds, str(row["failed"]), mean))
    return lines


def facts(results: Results) -> tuple[str, list[tuple[str, str]]]:
    """A title, and the facts that are shown below it, by name."""
    failed = results.runs.num_rows - results.runs["failure"].null_count
    try:
        name, counts = results.suite.name, results.counts
    except InputError as error:
        head, runs = f"({error})", f"{counted(results.runs.num_rows, 'run')}, {failed:,} failed"
    else:
        head = f"of {printable(name)}"
        runs = f"{counts.done:,} of {counts.planned:,} done, {counts.failed:,} failed"
        runs += f"; {counts.others:,} more, for tuning or of other suites" if counts.others else ""
    launches = f"{len(results.manifests)} launch{'es' if len(results.manifests) != 1 else ''}"
    found = [("runs", f"{runs}; {launches}")]
    if unfinished := results.unfinished():
        found.append(("TUNING", f"{listed(unfinished)}; the command that made it tries them again"))
    if results.troubles:
        found.append(("troubles", listed([printable(str(trouble)) for trouble in results.troubles])))
    if results.conflicts:
        found.append(("CONFLICTS", listed([str(conflict) for conflict in results.conflicts])))
    return f"Results {head} in {printable(str(results.folder))}", found


def listed(names: Iterable[str]) -> str:
    """Names, each on its line where there are several; the first dozen."""
    lines = list(names)
    more = [f"and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return lines[0] if len(lines) == 1 else "\n    " + "\n    ".join([*lines[:LISTED], *more])
