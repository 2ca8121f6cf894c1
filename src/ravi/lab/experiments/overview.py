"""The overview of a folder of results: its runs, what is wrong with it, the mean regret of every entry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ravi.display.printable import counted, printable, titled
from ravi.statistics.scores import lines
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

KEYS = ("section", "mdp", "steps", "label", "column")  # which entry
LISTED = 12  # names, and choices, in a message
HEAD = ("section", "MDP", "learner", "column", "T", "seeds", "failed", "mean regret")


def means(results: Results) -> list[tuple[str, ...]]:
    """The mean regret at T of every entry, under a head."""
    table: list[tuple[str, ...]] = [HEAD]
    for line in lines(results):
        mean = f"{line.values.mean():,.2f}" if len(line.seeds) else "-"
        mean = results.untuned[tuple(getattr(line, key) for key in KEYS)] if line.setting is None else mean
        names = map(printable, (line.section, titled(line.mdp), line.label, line.column))
        seeds = f"{len(line.seeds) + len(line.unrecorded)} of {line.asked}"
        table.append((*names, f"{line.steps:,}", seeds, str(line.failed), mean))
    return table


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
