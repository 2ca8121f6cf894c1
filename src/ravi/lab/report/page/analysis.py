"""What do the statistics say of every section? Means, ties, differences, growth, profiles; the unit is the seed.

Everything is computed by `ravi.statistics` from the runs of `ravi.lab.report.page.data`, at full precision.
"""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ravi.core import Array
from ravi.lab.report.page.data import Line, Panel, Part
from ravi.lab.report.page.shapes import LEVEL, Shape
from ravi.statistics.comparisons import Comparison, Profiles, best, compare, normalised, profiles
from ravi.statistics.intervals import Interval, finite, stratified
from ravi.statistics.scores import Scores
from ravi.statistics.winning import improvements
from ravi.validation import InputError

THRESHOLDS = 120  # of profiles
Key = tuple[str, str]  # label, column
Subject = tuple[str, str, int]  # MDP, learner, T: what has been tuned


class Told(NamedTuple):
    """What is reported about a line that has runs."""

    line: Line
    shape: Shape  # of its curves
    seconds: float  # the mean of a run
    behind: Comparison | None  # how much more regret than the best of its column; None for the best itself
    rank: str  # "best", "tie" (the difference to the best may be 0), "behind", or "" where it is not ranked
    place: int  # by mean regret among the rivals of its column, from 1; means that agree to their errors share it;
    # 0 for those out of competition
    front: bool  # no rival of its column has less regret in less time

    @property
    def mean(self) -> Interval:
        """The mean of the regret at T."""
        return self.shape.mean


class Cost(NamedTuple):
    """What the theory's constants cost a learner on an MDP."""

    panel: Panel
    theory: Line
    tuned: Line
    ratio: float  # of mean regrets, theory over tuned
    more: Comparison | None  # theory minus tuned, by seed
    uniform: Comparison | None  # uniform minus theory, by seed: positive where the theory's constants beat uniform


class Standing(NamedTuple):
    """All MDPs of a section together, in one column."""

    column: str
    rivals: tuple[str, ...]  # those with runs on every MDP that has any
    tasks: tuple[str, ...]
    matrix: dict[tuple[str, str], Interval]  # (first, second): the probability that first has less regret
    profiles: Profiles | None
    overall: dict[str, Interval]  # mean normalised scores over the MDPs, the least first; empty where there is but one


class Studied(NamedTuple):
    """A section with what is reported about it."""

    part: Part
    told: dict[str, dict[Key, Told]]  # by panel's anchor, then line
    standings: tuple[Standing, ...]
    costs: tuple[Cost, ...]

    def of(self, panel: Panel, column: str) -> list[Told]:
        """What is reported about a column on a panel, in the order of the suite."""
        return [told for (_, where), told in self.told[panel.anchor].items() if where == column]

    def ordered(self, panel: Panel, column: str) -> list[Told]:
        """The same by mean regret; of those that share a place, the best first."""
        held = self.of(panel, column)
        least: dict[int, float] = {}
        for told in held:
            least[told.place] = min(told.mean.estimate, least.get(told.place, math.inf))

        def key(told: Told) -> tuple[float, bool, float]:
            mean = told.mean.estimate
            return (least[told.place] if told.place else mean, told.rank != "best", mean)

        return sorted(held, key=key)


def studied(part: Part, tuned: Collection[Subject] = ()) -> Studied:
    """All statistics of a section; tuned: for what there is a record of tuning."""
    told = {panel.anchor: _panel(part, panel) for panel in part.panels}
    standings = tuple(_standing(part, column) for column in part.columns)
    return Studied(part, told, standings, tuple(_costs(part, tuned)))


def scores_of(lines: Sequence[tuple[str, str, Line]]) -> Scores:
    """Scores of lines, each under a name and a task."""
    values: dict[str, dict[str, Array]] = {}
    seeds: dict[str, dict[str, Array]] = {}
    errors: dict[str, dict[str, Array]] = {}
    for name, task, line in lines:
        held = (
            (values, finite(line.regret, f"{name} on {task}: regret", 1)),
            (seeds, line.seeds),
            (errors, line.error),
        )
        for each, column in held:
            each.setdefault(name, {})[task] = column
    return Scores(values, seeds, tuple(values), tuple(dict.fromkeys(task for _, task, _ in lines)), errors=errors)


def _panel(part: Part, panel: Panel) -> dict[Key, Told]:
    made: dict[Key, Told] = {}
    for column in part.columns:
        rivals = panel.of(column, rivals=True)
        fast = [(float(line.regret.mean()), float(line.error.mean()), float(line.seconds.mean())) for line in rivals]
        standing = _ranked(panel.task, rivals)
        places = _places(rivals, next((label for label, (rank, _) in standing.items() if rank == "best"), ""))
        for line in panel.of(column):
            assert line.shape is not None  # it has runs
            regret, error, seconds = (float(each.mean()) for each in (line.regret, line.error, line.seconds))
            rank, behind = standing.get(line.label, ("", None))
            made[line.label, column] = Told(
                line, line.shape, seconds, behind, rank,
                place=places.get(line.label, 0),
                front=not line.oracle
                and not any(regret - less > error + off and faster < seconds for less, off, faster in fast),
            )  # fmt: skip
    return made


def _more(line: Line, other: Line) -> bool:
    """Whether its mean regret is larger, by more than both may be off."""
    return bool(line.regret.mean() - other.regret.mean() > line.error.mean() + other.error.mean())


def _places(rivals: Sequence[Line], winner: str) -> dict[str, int]:
    """Places by mean regret, from 1; equal ones share a place, as do those within their certified errors."""
    made: dict[str, int] = {}
    first = None
    for line in sorted(rivals, key=lambda line: (line.label != winner, float(line.regret.mean()))):
        if first is None or _more(line, first):
            first = line
            made[line.label] = 1 + len(made)
        else:
            made[line.label] = made[first.label]
    return made


def _ranked(task: str, rivals: Sequence[Line]) -> dict[str, tuple[str, Comparison | None]]:
    """Each rival's rank, and how far it is behind the best; those without a seed in common with it have none.

    One alone is not the best of anything.
    """
    if len(rivals) < 2:
        return {}
    found = best(scores_of([(line.label, task, line) for line in rivals]), task, level=LEVEL)
    seeds = {line.label: line.seeds for line in rivals}
    made: dict[str, tuple[str, Comparison | None]] = {found.learner: ("best", None)}
    for label, behind in found.behind.items():  # the interval that decided, so that what is shown does
        pairs = len(np.intersect1d(seeds[label], seeds[found.learner]))
        rank = "tie" if label in found.ties else "behind"
        made[label] = (rank, Comparison(found.learner, label, task, behind, pairs))
    return made


def _standing(part: Part, column: str) -> Standing:
    panels = [panel for panel in part.panels if panel.of(column, rivals=True)]
    held = [{line.label for line in panel.of(column, rivals=True)} for panel in panels]
    labels = dict.fromkeys(line.label for panel in panels for line in panel.of(column, rivals=True))
    everywhere = tuple(label for label in labels if all(label in some for some in held))
    tasks = tuple(panel.task for panel in panels)
    if len(everywhere) < 2:
        return Standing(column, everywhere, tasks, {}, None, {})
    scores = scores_of(
        [(line.label, panel.task, line) for panel in panels for line in panel.of(column) if line.label in everywhere]
    )
    matrix = {}
    for (first, second), found in improvements(scores, everywhere, level=LEVEL).items():
        matrix[first, second] = found
        matrix[second, first] = Interval(1 - found.estimate, 1 - found.high, 1 - found.low, found.level)
    profile = _profiles(scores) if len(tasks) > 1 else None
    return Standing(column, everywhere, tasks, matrix, profile, {} if profile is None else _overall(scores))


def _profiles(scores: Scores) -> Profiles | None:
    """None where there is no regret to divide by. On one MDP they would be steps from 0 to 1."""
    try:
        return profiles(scores, _thresholds(scores), level=LEVEL)
    except InputError:
        return None


def _overall(scores: Scores) -> dict[str, Interval]:
    """The score of profiles, averaged over runs and then over MDPs."""
    held = normalised(scores)[0].values
    means = {name: stratified(list(runs.values()), "mean", level=LEVEL) for name, runs in held.items()}
    return dict(sorted(means.items(), key=lambda item: item[1].estimate))


def _thresholds(scores: Scores) -> Array:
    """From the least normalised score to the largest, evenly on a log axis."""
    every = np.concatenate([run for held in normalised(scores)[0].values.values() for run in held.values()])
    most = float(every.max())
    least = max(float(every[every > 0].min(initial=most)), most * 1e-6)
    return np.unique([*np.geomspace(least, most, THRESHOLDS)[:-1], most]) if least < most else np.array([most])


def _costs(part: Part, tuned: Collection[Subject]) -> list[Cost]:
    """Every learner that has a multiplier, on every MDP where both columns have runs."""
    if not {"theory", "tuned"} <= set(part.columns):
        return []
    made = []
    for panel in part.panels:
        theory, better = ({line.label: line for line in panel.of(column)} for column in ("theory", "tuned"))
        uniform = next((line for line in theory.values() if line.uniform), None)
        for label, line in theory.items():
            other = better.get(label)
            if other is None or (panel.mdp, line.configured, panel.steps) not in tuned:
                continue
            mean = float(other.regret.mean())
            ratio = math.nan if other.nothing or mean <= 0 else float(line.regret.mean()) / mean
            against = None if uniform is None else _difference(panel.task, line, uniform)
            made.append(Cost(panel, line, other, ratio, _difference(panel.task, other, line), against))
    return made


def _difference(task: str, first: Line, second: Line) -> Comparison | None:
    """Second minus first by seed; None where they have no seed in common."""
    if not len(np.intersect1d(first.seeds, second.seeds)):
        return None
    held = scores_of([("first", task, first), ("second", task, second)])
    found = compare(held, "first", "second", task, level=LEVEL)
    return found._replace(first=first.label, second=second.label)
