"""The summary of a folder of results: for every entry its runs by seed, the mean, its interval, quantiles and rank.

Everything that is written of results (tables, the page, figures, the live view) is made of its rows, and of the panels
that they stand in: those of one section, MDP and T.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.core import Floats, Ints
from ravi.learners import knows_the_kernel
from ravi.measures.curve import grid
from ravi.statistics import Interval, best, interval
from ravi.statistics.scores import Line, lines, scores_of
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

LEVEL = 0.95
FACTS = ("discount", "states", "actions", "dimension", "optimum", "optimum_error", "learner", "points", "constants")
UPPER = {"q90": 0.9, "q99": 0.99, "max": 1.0}  # quantiles over seeds: means hide heavy tails


class Row(NamedTuple):
    """One entry of the suite, with what its runs show.

    Attributes
    ----------
    line
        Its runs.
    facts, seconds
        Of one of its runs: see `FACTS`, where the learner has the multipliers that tuning chose; and the seconds of
        computing of each   (n,). Both are empty without runs.
    mean
        The mean (median, interquartile mean) over seeds, with its interval; None without runs.
    upper
        The quantiles of `UPPER` over seeds; empty without runs.
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
    front
        Whether no rival of its column has less regret in less time.
    """

    line: Line
    facts: dict[str, Any]
    seconds: Floats
    mean: Interval | None
    upper: dict[str, float]
    why: str
    oracle: bool
    rank: str = ""
    behind: Interval | None = None
    place: int = 0
    front: bool = False

    @property
    def zero(self) -> bool:
        """Whether the mean is 0, to what it may be off."""
        held = self.line
        return len(held.seeds) > 0 and bool(abs(held.values.mean()) <= held.errors.mean())

    @property
    def key(self) -> bytes:
        """The same for rows of the same runs."""
        return self.line.rows.tobytes()

    @property
    def estimate(self) -> float:
        return math.nan if self.mean is None else self.mean.estimate

    @property
    def done(self) -> int:
        """How many runs succeeded; those of a large world have no regret."""
        return len(self.line.seeds) + len(self.line.unrecorded)

    def exceeds(self, other: Row) -> bool:
        """Whether its mean is larger, by more than both may be off."""
        return bool(self.estimate - other.estimate > self.line.errors.mean() + other.line.errors.mean())


class Panel(NamedTuple):
    """The rows of one section, MDP and T; `task` is the MDP's id, with T where the section has several."""

    section: str
    mdp: str
    steps: int
    task: str
    rows: list[Row]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(row.line.column for row in self.rows))

    def of(self, column: str) -> list[Row]:
        """The rows of a column that have runs, in the order of the suite."""
        return [row for row in self.rows if row.line.column == column and row.mean is not None]

    def ordered(self, column: str) -> list[Row]:
        """The same by mean; of those that share a place, the best first."""
        rows = self.of(column)
        least = {row.place: min(other.estimate for other in rows if other.place == row.place) for row in rows}

        def key(row: Row) -> tuple[float, bool, float]:
            return (least[row.place] if row.place else row.estimate, row.rank != "best", row.estimate)

        return sorted(rows, key=key)


def panels(rows: Sequence[Row]) -> list[Panel]:
    """The rows by section, MDP and T, in the order of the suite."""
    times: dict[str, set[int]] = {}
    held: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        line = row.line
        times.setdefault(line.section, set()).add(line.steps)
        held.setdefault((line.section, line.mdp, line.steps), []).append(row)
    return [
        Panel(section, mdp, T, mdp + (f", T = {T:,}" if len(times[section]) > 1 else ""), some)
        for (section, mdp, T), some in held.items()
    ]


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
    held = lines(results, value, section=section, column=column, steps=steps)
    seconds, ran = results.runs["seconds"].to_numpy(), [int(line.rows[0]) for line in held if len(line.rows)]
    facts = iter(results.runs.select(FACTS).take(np.array(ran, int)).to_pylist())
    groups: dict[tuple[str, str, int, str], list[Row]] = {}
    order = []
    for line in held:
        made = len(line.rows) > 0
        row = Row(
            line,
            next(facts) if made else {},
            seconds[line.rows],
            interval(line.values, statistic, level=level) if made else None,
            dict(zip(UPPER, np.quantile(line.values, [*UPPER.values()]).tolist(), strict=True)) if made else {},
            _why(results, line),
            knows_the_kernel(line.learner),
        )
        key = line.section, line.mdp, line.steps, line.column
        groups.setdefault(key, []).append(row)
        order.append(key)
    ranked = {key: iter(_ranked(rows, statistic, level)) for key, rows in groups.items()}
    return [next(ranked[key]) for key in order]


def curves(results: Results, rows: Sequence[Row]) -> Iterator[tuple[Row, Ints, Floats]]:
    """The times (P,) and the regret (n, P) of every row that has runs, few at a time; of the same runs one row."""
    held = list({row.key: row for row in rows if len(row.line.rows)}.values())
    for place, found in results.curves_of([row.line.rows for row in held]):
        row = held[place]
        times = grid(row.line.steps, row.facts["points"])
        if found.shape[1] != len(times):
            raise InputError(f"{row.line.label}: a curve has {found.shape[1]} points, and not {len(times)}")
        yield row, times, found


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
        found = best(
            scores_of((row.line.label, mdp, row.line) for row in rivals), mdp, statistic=statistic, level=level
        )
        if found.behind:  # else no seed is in common with the best
            ranks = {label: ("tie" if label in found.ties else "behind", gap) for label, gap in found.behind.items()}
            ranks[found.learner] = ("best", None)
    places: dict[str, int] = {}
    first = None
    for row in sorted(rivals, key=lambda row: (ranks.get(row.line.label, ("",))[0] != "best", row.estimate)):
        if first is None or row.exceeds(first):
            first = row
            places[row.line.label] = 1 + len(places)
        else:
            places[row.line.label] = places[first.line.label]
    ranked = []
    spent = np.array([row.seconds.mean() for row in rivals])
    off = np.array([row.line.errors.mean() for row in rivals])
    most = np.array([row.estimate for row in rivals]) + off
    least = {row.line.label: most[spent < s].min(initial=np.inf) for row, s in zip(rivals, spent, strict=True)}
    low = dict(zip(least, most - 2 * off, strict=True))
    for row in rows:
        label = row.line.label
        rank, behind = ranks.get(label, ("", None))
        front = label in low and bool(low[label] <= least[label])  # of those that are faster
        ranked.append(row._replace(rank=rank, behind=behind, place=places.get(label, 0), front=front))
    return ranked
