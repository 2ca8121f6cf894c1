"""The summary of a folder of results: for every entry its runs by seed, the mean, its interval, quantiles and rank.

Everything that is written of results (tables, the page, figures) is made of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ravi.learners import knows_the_kernel
from ravi.statistics import Interval, best, interval
from ravi.statistics.scores import Line, lines, scores_of

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

LEVEL = 0.95


class Row(NamedTuple):
    """One entry of the suite, with what its runs show.

    Attributes
    ----------
    line
        Its runs.
    mean
        The mean (median, interquartile mean) over seeds, with its interval; None without runs.
    q99, largest
        The 99th percentile and the largest over seeds; means hide heavy tails.
    why
        Why there is no mean, or not that of all seeds; empty where it is.
    oracle
        Whether the learner knows the kernel, and so is no rival of those that must learn it.
    rank
        Among the rivals of its column: "best", "tie" (the difference from the best may be 0), "behind", or "" where
        there is nothing to compare.
    behind
        How much more it has than the best, paired by seed, at the level that decided.
    place
        Its place by the mean among the rivals, from 1; equal ones share a place, as do those within their certified
        errors. 0 for what is not a rival.
    """

    line: Line
    mean: Interval | None
    q99: float | None
    largest: float | None
    why: str
    oracle: bool
    rank: str = ""
    behind: Interval | None = None
    place: int = 0

    @property
    def zero(self) -> bool:
        """Whether the mean is 0, to what it may be off."""
        held = self.line
        return len(held.seeds) > 0 and bool(abs(held.values.mean()) <= held.errors.mean())

    @property
    def estimate(self) -> float:
        return float("nan") if self.mean is None else self.mean.estimate


def summary(
    results: Results,
    value: str = "regret",
    *,
    statistic: str = "mean",
    level: float = LEVEL,
    section: str | None = None,
    column: str | None = None,
    steps: int | None = None,
) -> list[Row]:
    """A row for every entry, in the order of the suite; of one section, column or T where it is named."""
    rows = [
        _row(results, line, statistic, level)
        for line in lines(results, value, section=section, column=column, steps=steps)
    ]
    groups: dict[tuple[str, str, int, str], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault((row.line.section, row.line.mdp, row.line.steps, row.line.column), []).append(place)
    for places in groups.values():
        for place, row in zip(places, _ranked([rows[place] for place in places], statistic, level), strict=True):
            rows[place] = row
    return rows


def _row(results: Results, line: Line, statistic: str, level: float) -> Row:
    found = interval(line.values, statistic, level=level) if len(line.values) else None
    q99, largest = (None, None) if found is None else (float(np.quantile(line.values, 0.99)), float(line.values.max()))
    return Row(line, found, q99, largest, _why(results, line), knows_the_kernel(line.learner))


def _why(results: Results, line: Line) -> str:
    done, failed, unrecorded = len(line.seeds), line.failed, len(line.unrecorded)
    if line.setting is None:
        return results.untuned[line.section, line.mdp, line.steps, line.label, line.column]
    if done == line.asked:
        return ""
    if unrecorded:
        return f"not recorded ({unrecorded} of {line.asked} seeds)"
    if failed == line.asked:
        return f"failed ({failed} of {line.asked} seeds)"
    if not done and not failed:
        return f"not run yet (0 of {line.asked} seeds)"
    return f"{done} of {line.asked} seeds" + (f", {failed} failed" if failed else "")


def _ranked(rows: Sequence[Row], statistic: str, level: float) -> list[Row]:
    """The rows of one MDP, T and column with their ranks and places; one rival alone is not the best of anything."""
    rivals = [row for row in rows if not row.oracle and row.mean is not None]
    ranks: dict[str, tuple[str, Interval | None]] = {}
    if len(rivals) > 1:
        mdp = rivals[0].line.mdp
        scores = scores_of((row.line.label, mdp, row.line) for row in rivals)
        found = best(scores, mdp, statistic=statistic, level=level)
        if found.behind:  # else no seed is in common with the best
            ranks = {label: ("tie" if label in found.ties else "behind", gap) for label, gap in found.behind.items()}
            ranks[found.learner] = ("best", None)
    places: dict[str, int] = {}
    first = None
    for row in sorted(rivals, key=lambda row: (ranks.get(row.line.label, ("",))[0] != "best", row.estimate)):
        if first is None or more(row, first):
            first = row
            places[row.line.label] = 1 + len(places)
        else:
            places[row.line.label] = places[first.line.label]
    ranked = []
    for row in rows:
        rank, behind = ranks.get(row.line.label, ("", None))
        ranked.append(row._replace(rank=rank, behind=behind, place=places.get(row.line.label, 0)))
    return ranked


def more(row: Row, other: Row) -> bool:
    """Whether its mean is larger, by more than both may be off."""
    return bool(row.estimate - other.estimate > row.line.errors.mean() + other.line.errors.mean())
