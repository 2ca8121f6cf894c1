"""Tables of results: learner x MDP, and pairs of learners.

    found = ravi.results("results")
    print(table(found))                              # learner x MDP, theory and tuned side by side
    table(found, section="river").save("river.tex")  # or .md, .csv, .txt

The best of every column is marked, and so is what cannot be told apart from it. A cell without a number says why.
Means hide heavy tails, so a cell has the largest value over seeds too; as CSV it also has quantiles, `q90` and `q99`.
`ravi.lab.report.rendering` writes them, as LaTeX, Markdown, CSV and plain text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ravi.display.numbers import DECIMALS, decimals, estimate_and_interval, number, percent
from ravi.display.printable import titled
from ravi.lab.report.rendering import BEST, TIE, Block, Cell, Table
from ravi.lab.report.summary import UPPER, Panel, Row, panels, summary
from ravi.validation import InputError, one_of, probability

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results
    from ravi.statistics import Interval, PairedDifference

WIDE = 6  # cells side by side in a panel, at most; the MDPs after them stand below
SHARE = 2  # decimals of a probability, at most
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
    rows = summary(results, value, statistic=statistic, level=level, section=section, column=column, steps=steps)
    by_section: dict[str, list[Panel]] = {}
    for panel in panels(rows):
        by_section.setdefault(panel.section, []).append(panel)
    blocks = [
        block
        for name, mine in by_section.items()
        for block in _blocks(mine, name if len(by_section) > 1 else "", DECIMALS[value])
    ]
    T = {row.line.steps for row in rows}
    when = f" after T = {min(T):,} steps" if len(T) == 1 else ""
    caption = f"{VALUES[value]}{when}: {WORDS[statistic]} over seeds, with {percent(level)} intervals."
    records = tuple(_record(row, value, statistic, level) for row in rows)
    return Table(caption, _note(rows, statistic, level), tuple(blocks), records)


def _record(row: Row, value: str, statistic: str, level: float) -> dict[str, Any]:
    """The numbers of a cell."""
    line, (estimate, low, high, _) = row.line, row.mean or (None,) * 4
    return {
        "section": line.section, "mdp": line.mdp, "steps": line.steps, "label": line.label, "column": line.column,
        "value": value, "statistic": statistic, "estimate": estimate, "low": low, "high": high,
        **{name: row.upper.get(name) for name in UPPER}, "level": level, "seeds": len(line.seeds),
        "failed": line.failed, "planned": line.asked, "best": row.rank == "best", "tie": row.rank == "tie",
        "why": row.why,
    }  # fmt: skip


def _blocks(mine: Sequence[Panel], title: str, most: int) -> list[Block]:
    """Learners down, MDPs (and T) x columns across, as many as fit side by side."""
    rows = [row for panel in mine for row in panel.rows]
    labels, columns = (list(dict.fromkeys(getattr(row.line, name) for row in rows)) for name in ("label", "column"))
    fit = max(1, WIDE // len(columns))
    blocks = []
    for first in range(0, len(mine), fit):
        here = mine[first : first + fit]
        by = [{(row.line.label, row.line.column): row for row in panel.rows} for panel in here]
        over = [titled(panel.task) for panel in here]
        cells = tuple(
            (Cell(label), *(_shown(held[label, column], most) for held in by for column in columns)) for label in labels
        )
        if columns == ["given"]:
            blocks.append(Block(title, 1, (), ("learner", *over), cells))
        else:
            groups = (("", 1), *((name, len(columns)) for name in over))
            blocks.append(Block(title, 1, groups, ("learner", *columns * len(here)), cells))
    return blocks


def _shown(row: Row, most: int) -> Cell:
    if row.mean is None:
        return Cell(row.why)
    estimate, low, high, _ = row.mean
    text, rest = estimate_and_interval(estimate, low, high, most)
    if rest:
        largest = number(row.upper["max"], decimals(estimate, (high - low) / 2, most))
        rest = f"{rest} max {largest}"
    elif not math.isfinite(high):
        rest = "(one seed)" if len(row.line.seeds) == 1 else "(no interval)"
    rest = f"{rest} ({row.why})".strip() if row.why else rest
    return Cell(text, rest, row.rank if row.rank in ("best", "tie") else "")


def _note(rows: Sequence[Row], statistic: str, level: float) -> str:
    seeds = {row.line.asked for row in rows}
    many = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    missing = any(row.why for row in rows)
    parts = [f"{many} seeds per cell" + (" were requested; cells with fewer say so" if missing else ", none missing")]
    parts.append(
        f"brackets: {percent(level)} interval of the {WORDS[statistic]} over seeds, omitted if both ends round to the "
        "same number; max: the largest over seeds"
    )
    if any(row.rank == "best" for row in rows):
        parts.append(
            f"{BEST}: the smallest {WORDS[statistic]} of its column; {TIE}: not significantly different from it (the "
            f"{percent(level)} interval of the paired difference, corrected for the number of learners, contains 0)"
        )
    oracles = list(dict.fromkeys(row.line.label for row in rows if row.oracle))
    if oracles:
        parts.append(f"{', '.join(oracles)}: given the kernel, and therefore neither marked nor compared")
    columns = {row.line.column for row in rows}
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
    rows, records = [], []
    for mdp in found.mdps:
        for one, other in pairs:
            try:
                held = compare(found, one, other, mdp, statistic=statistic, level=level)
            except InputError:
                held = None
            wins = improvement(found, one, other, mdps=[mdp], level=level) if held else None
            record: dict[str, Any] = {"mdp": mdp, "first": one, "second": other, "statistic": statistic}
            record |= {"pairs": held.pairs if held else 0} | (held.difference._asdict() if held else {})
            records.append(record | _wins(wins))
            rows.append((Cell(mdp), Cell(one), Cell(other), *_compared(held, wins), Cell(str(record["pairs"]))))
    for one, other in pairs if len(found.mdps) > 1 else ():
        common = [row["mdp"] for row in records if (row["first"], row["second"]) == (one, other) and row["pairs"]]
        if common:
            wins = improvement(found, one, other, mdps=common, level=level)
            name = f"{len(common)} of {len(found.mdps)} MDPs"
            rows.append((Cell(name), Cell(one), Cell(other), Cell("-"), _compared(None, wins)[1], Cell("-")))
            records.append({"mdp": name, "first": one, "second": other} | _wins(wins))
    note = (
        "Difference: the regret of the second minus that of the first, paired by seed (all learners see the same "
        f"resets): {WORDS[statistic]} with {percent(level)} intervals, which are not simultaneous; {BEST}: the whole "
        "interval is above 0, in favour of the first. P(first wins): the probability that a run of the first has less "
        "regret than a run of the second; over several MDPs, the mean."
    )
    head = ("MDP", "first", "second", "difference", "P(first wins)", "pairs")
    return Table("Differences in regret, paired by seed.", note, (Block("", 3, (), head, tuple(rows)),), tuple(records))


def _compared(held: PairedDifference | None, wins: Interval | None) -> tuple[Cell, Cell]:
    """The cells of a difference, and of the probability that the first wins."""
    difference, chance = Cell("no seed in common"), Cell("-")
    if held is not None:
        text, rest = estimate_and_interval(*held.difference[:3], DECIMALS["regret"])
        rest = "(one seed)" if held.pairs == 1 else rest
        difference = Cell(text, rest, "best" if held.difference.low > 0 else "")
    if wins is not None:
        chance = Cell(*estimate_and_interval(*wins[:3], SHARE))
    return difference, chance


def _wins(wins: Interval | None) -> dict[str, float]:
    if wins is None:
        return {}
    return {"improvement": wins.estimate, "improvement_low": wins.low, "improvement_high": wins.high}
