"""Tables of results: learner x MDP, and pairs of learners.

    found = ravi.results("results")
    print(table(found))                              # learner x MDP, theory and tuned side by side
    table(found, section="river").save("river.tex")  # or .md, .csv, .txt

The best of every column is marked, and so is what cannot be told apart from it. A cell without a number says why.
Means hide heavy tails, so a cell has the largest value over seeds too; as CSV it also has the 99th percentile, `q99`.
`ravi.lab.report.rendering` writes them, as LaTeX, Markdown, CSV and plain text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.display.printable import titled
from ravi.lab.report.rendering import BEST, TIE, Panel, Shown, Table, decimals, estimate_and_interval, number
from ravi.learners import knows_the_kernel
from ravi.validation import one_of, probability

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results
    from ravi.statistics import Interval, Scores

WIDE = 6  # cells side by side in a panel, at most; the MDPs after them stand below
SHARE = 2  # decimals of a probability, at most
DECIMALS = {"regret": 4, "trajectory_regret": 4, "gap": 8}  # likewise: below, it is rounding (certified errors)
WORDS = {"mean": "mean", "median": "median", "iqm": "interquartile mean"}
VALUES = {"regret": "Regret", "gap": "Gap of the last policy", "trajectory_regret": "Trajectory regret"}


def table(
    results: Results,
    *,
    section: str | None = None,
    column: str | None = None,
    steps: int | None = None,
    statistic: str = "mean",
    level: float = 0.95,
    value: str = "regret",
) -> Table:
    """Learner x MDP, the columns of the suite side by side; of all sections, columns and T unless one is named.

    statistic: mean, median or iqm over seeds. value: regret, gap (of the last policy) or trajectory_regret.
    """
    one_of(statistic, WORDS, "statistic")
    one_of(value, VALUES, "value")
    probability(level, "level")
    from ravi.statistics.scores import entries_of

    entries = entries_of(results, section, column, steps)
    cells = _cells(results, entries, value, statistic, level)
    panels = []
    for name in dict.fromkeys(entry["section"] for entry in entries):
        mine = [cell for cell in cells if cell["section"] == name]
        panels += _panels(mine, name if len({entry["section"] for entry in entries}) > 1 else "")
    T = sorted({entry["steps"] for entry in entries})
    when = f" after T = {T[0]:,} steps" if len(T) == 1 else ""
    caption = f"{VALUES[value]}{when}: {WORDS[statistic]} over seeds, with {_percent(level)} intervals."
    return Table(caption, _note(cells, entries, statistic, level), tuple(panels), tuple(cells))


def _cells(
    results: Results, entries: Sequence[dict[str, Any]], value: str, statistic: str, level: float
) -> list[dict[str, Any]]:
    """One record for every entry."""
    from ravi.statistics import interval

    seen = _seen(results, value)
    cells = []
    for entry in entries:
        asked = set(entry["seeds"])
        held = seen.get(entry["setting"], Seen({}, {}, set(), set()))
        values = [held.values[seed] for seed in sorted(asked) if seed in held.values]
        failed, unrecorded = len(asked & held.failed), len(asked & held.unrecorded)
        found = interval(values, statistic, level=level) if values else None
        ends = (None, None, None) if found is None else found[:3]
        cells.append(
            {key: entry[key] for key in ("section", "mdp", "steps", "label", "column")}
            | {"value": value, "statistic": statistic}
            | dict(zip(("estimate", "low", "high"), ends, strict=True))
            | {"q99": float(np.quantile(values, 0.99)) if values else None, "max": max(values, default=None)}
            | {"level": level, "seeds": len(values), "failed": failed, "planned": len(asked)}
            | {"best": False, "tie": False, "why": _why(results, entry, len(values), failed, unrecorded)}
        )
    _mark(cells, entries, seen, statistic, level)
    return cells


class Seen(NamedTuple):
    """The values of a setting, by seed."""

    values: dict[int, float]
    errors: dict[int, float]  # certified: how far each value may be off
    failed: set[int]
    unrecorded: set[int]  # runs that succeeded, without this value


def _seen(results: Results, value: str) -> dict[str, Seen]:
    held: dict[str, Seen] = {}
    bound = f"{value}_error"
    known = bound in results.runs.column_names
    columns = [results.runs[name].to_pylist() for name in ("setting", "seed", value, "failure")]
    columns.append(results.runs[bound].to_pylist() if known else [0.0] * results.runs.num_rows)
    for setting, seed, found, failure, error in zip(*columns, strict=True):
        mine = held.setdefault(setting, Seen({}, {}, set(), set()))
        if failure is not None:
            mine.failed.add(seed)
        elif found is None:
            mine.unrecorded.add(seed)
        else:
            mine.values[seed], mine.errors[seed] = found, error or 0.0
    return held


def _why(results: Results, entry: dict[str, Any], done: int, failed: int, unrecorded: int) -> str:
    """Why a cell has no number, or not that of all seeds; nothing to say of one that is whole."""
    from ravi.lab.experiments.overview import KEYS

    planned = len(entry["seeds"])
    if entry["setting"] is None:
        return results.untuned[tuple(entry[key] for key in KEYS)]
    if done == planned:
        return ""
    if unrecorded:
        return f"not recorded ({unrecorded} of {planned} seeds)"
    if failed == planned:
        return f"failed ({failed} of {planned} seeds)"
    if not done and not failed:
        return f"not run yet (0 of {planned} seeds)"
    return f"{done} of {planned} seeds" + (f", {failed} failed" if failed else "")


def _mark(
    cells: list[dict[str, Any]], entries: Sequence[dict[str, Any]], seen: dict[str, Seen], statistic: str, level: float
) -> None:
    """The best learner of every MDP, T and column, and its ties, among those that must learn the kernel."""
    from ravi.statistics import from_table

    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, cell in enumerate(cells):
        groups.setdefault(tuple(cell[key] for key in ("section", "mdp", "steps", "column")), []).append(place)
    for places in groups.values():
        rows = [
            {"learner": cells[place]["label"], "mdp": "here", "seed": seed}
            | {"regret": held.values[seed], "error": held.errors[seed]}
            for place in places
            if not knows_the_kernel(entries[place]["learner"])
            if (held := seen.get(entries[place]["setting"]))
            for seed in entries[place]["seeds"]
            if seed in held.values
        ]
        if len({row["learner"] for row in rows}) < 2:
            continue  # nothing to compare
        winner, ties = _best(from_table(rows, error="error"), statistic, level)
        for place in places:
            cells[place]["best"] = cells[place]["label"] == winner
            cells[place]["tie"] = cells[place]["label"] in ties


def _best(scores: Scores, statistic: str, level: float) -> tuple[str, tuple[str, ...]]:
    """The best and its ties; none where there is no seed that all have."""
    from ravi.statistics import best

    mdp = scores.mdps[0]
    shared = set.intersection(*(set(held[mdp].tolist()) for held in scores.seeds.values()))
    if not shared:
        return "", ()  # nothing can be paired
    found = best(scores, mdp, statistic=statistic, level=level)
    return found.learner, found.ties


def _panels(cells: Sequence[dict[str, Any]], title: str) -> list[Panel]:
    """Learners down, MDPs (and T) x columns across, as many as fit side by side."""
    several = len({cell["steps"] for cell in cells}) > 1
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    places = list(dict.fromkeys((cell["mdp"], cell["steps"]) for cell in cells))
    labels = list(dict.fromkeys(cell["label"] for cell in cells))
    by = {(cell["mdp"], cell["steps"], cell["label"], cell["column"]): cell for cell in cells}
    fit = max(1, WIDE // len(columns))
    made = []
    for first in range(0, len(places), fit):
        here = places[first : first + fit]
        over = [f"{titled(mdp)}, T = {T:,}" if several else titled(mdp) for mdp, T in here]
        rows = [
            (Shown(label), *(_shown(by[(*place, label, column)]) for place in here for column in columns))
            for label in labels
        ]
        if columns == ["given"]:
            made.append(Panel(title, 1, (), ("learner", *over), tuple(rows)))
        else:
            groups = (("", 1), *((name, len(columns)) for name in over))
            made.append(Panel(title, 1, groups, ("learner", *columns * len(here)), tuple(rows)))
    return made


def _shown(cell: dict[str, Any]) -> Shown:
    if cell["estimate"] is None:
        return Shown(cell["why"])
    text, rest = estimate_and_interval(cell["estimate"], cell["low"], cell["high"], DECIMALS[cell["value"]])
    if rest:
        places = decimals(cell["estimate"], (cell["high"] - cell["low"]) / 2, DECIMALS[cell["value"]])
        rest = f"{rest} max {number(cell['max'], places)}"
    if not rest and not math.isfinite(cell["high"]):
        rest = "(one seed)" if cell["seeds"] == 1 else "(no interval)"
    rest = f"{rest} ({cell['why']})".strip() if cell["why"] else rest
    return Shown(text, rest, "best" if cell["best"] else "tie" if cell["tie"] else "")


def _note(cells: Sequence[dict[str, Any]], entries: Sequence[dict[str, Any]], statistic: str, level: float) -> str:
    seeds = {cell["planned"] for cell in cells}
    said = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    missing = any(cell["why"] for cell in cells)
    parts = [f"{said} seeds per cell" + (" were requested; cells with fewer say so" if missing else ", none missing")]
    parts.append(
        f"brackets: {_percent(level)} interval of the {WORDS[statistic]} over seeds, omitted if both ends round to the "
        "same number; max: the largest over seeds"
    )
    if any(cell["best"] for cell in cells):
        parts.append(
            f"{BEST}: the smallest {WORDS[statistic]} of its column; {TIE}: not significantly different from it (the "
            f"{_percent(level)} interval of the paired difference, corrected for the number of learners, contains 0)"
        )
    told = list(dict.fromkeys(entry["label"] for entry in entries if knows_the_kernel(entry["learner"])))
    if told:
        parts.append(f"{', '.join(told)}: given the kernel, and therefore neither marked nor compared")
    columns = {cell["column"] for cell in cells}
    if "theory" in columns:
        parts.append("theory: constants of the theorems")
    if "tuned" in columns:
        parts.append("tuned: multipliers chosen on other seeds, with the same budget for every learner")
    return "; ".join(parts) + "."


def comparison_table(
    results: Results,
    *,
    section: str | None = None,
    column: str | None = None,
    steps: int | None = None,
    first: str | None = None,
    statistic: str = "mean",
    level: float = 0.95,
) -> Table:
    """Pairs of learners, paired by seed: how much less regret the first has, and how often a run of it wins.

    first: only the pairs in which this learner is the first.
    """
    from ravi.statistics import compare, improvement, scores

    one_of(statistic, WORDS, "statistic")
    probability(level, "level")
    found = scores(results, section=section, column=column, steps=steps)
    if first is not None:
        found.known(first)
    every = list(combinations(found.learners, 2))
    pairs = every if first is None else [(first, other) for other in found.learners if other != first]
    records: list[dict[str, Any]] = []
    rows = []
    for mdp in found.mdps:
        for one, other in pairs:
            record: dict[str, Any] = {"mdp": mdp, "first": one, "second": other, "statistic": statistic, "pairs": 0}
            cells = (Shown("no seed in common"), Shown("-"))
            if _paired(found, one, other, mdp):
                told = compare(found, one, other, mdp, statistic=statistic, level=level)
                wins = improvement(found, one, other, mdps=[mdp], level=level)
                text, rest = estimate_and_interval(*told.difference[:3], DECIMALS["regret"])
                rest = "(one seed)" if told.pairs == 1 else rest
                cells = (Shown(text, rest, "best" if told.difference.low > 0 else ""), _probability(wins))
                record |= told.difference._asdict() | {"pairs": told.pairs} | _wins(wins)
            rows.append((Shown(mdp), Shown(one), Shown(other), *cells, Shown(str(record["pairs"]))))
            records.append(record)
    for one, other in pairs if len(found.mdps) > 1 else ():
        common = [mdp for mdp in found.mdps if _paired(found, one, other, mdp)]
        if common:
            wins = improvement(found, one, other, mdps=common, level=level)
            name = f"{len(common)} of {len(found.mdps)} MDPs"
            rows.append((Shown(name), Shown(one), Shown(other), Shown("-"), _probability(wins), Shown("-")))
            records.append({"mdp": name, "first": one, "second": other} | _wins(wins))
    note = (
        "Difference: the regret of the second minus that of the first, paired by seed (all learners see the same "
        f"resets): {WORDS[statistic]} with {_percent(level)} intervals, which are not simultaneous; {BEST}: the whole "
        "interval is above 0, in favour of the first. P(first wins): the probability that a run of the first has less "
        "regret than a run of the second; over several MDPs, the mean."
    )
    head = ("MDP", "first", "second", "difference", "P(first wins)", "pairs")
    return Table("Differences in regret, paired by seed.", note, (Panel("", 3, (), head, tuple(rows)),), tuple(records))


def _paired(scores: Scores, first: str, second: str, mdp: str) -> bool:
    one, two = (set(scores.seeds[name].get(mdp, np.empty(0)).tolist()) for name in (first, second))
    return bool(one & two)


def _probability(wins: Interval) -> Shown:
    return Shown(*estimate_and_interval(*wins[:3], SHARE))


def _wins(wins: Interval) -> dict[str, float]:
    return {"improvement": wins.estimate, "improvement_low": wins.low, "improvement_high": wins.high}


def _percent(share: float) -> str:
    return f"{100 * share:g}%"
