"""What stands on the page: everything that the template shows, as plain values, in the order of the page.

A section of the suite has panels (an MDP and a T), and a panel has entries; the numbers are those of the summary.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.lab.experiments.schedule.tuning import at_edge, lacking
from ravi.lab.report.page import words
from ravi.lab.report.page.charts import Shape, shapes, ticked
from ravi.lab.report.summary import LEVEL, Row, more, summary
from ravi.statistics import Interval, Profiles, Scores, compare, improvements, normalised, profiles, rates, stratified
from ravi.statistics.scores import scores_of
from ravi.validation import InputError

if TYPE_CHECKING:
    from markupsafe import Markup

    from ravi.lab.experiments.results import Results

THRESHOLDS = 120  # of profiles
FAILURES = 100  # kinds that are listed
WIDE = 30  # from the least mean to the largest
WIDTH, HEIGHT = 132, 56  # of a small figure of tuning
FACTS = ("discount", "states", "actions", "dimension", "optimum")  # of an MDP, as its runs tell them
Key = tuple[str, str]  # label, column


class Finding(NamedTuple):
    """A row of the summary that has runs, with what else the page shows of it.

    Attributes
    ----------
    row, shape
        Its numbers at T, and its curves.
    configured
        The learner with the multipliers that tuning chose.
    seconds
        Of computing, the mean of a run.
    front
        Whether no rival of its column has less regret in less time.
    """

    row: Row
    shape: Shape
    configured: str
    seconds: float
    front: bool

    @property
    def label(self) -> str:
        return self.row.line.label

    @property
    def multipliers(self) -> str:
        """The multipliers that tuning chose."""
        return ", ".join(re.findall(r"(?<=,)(?:step_)?scale=[^,]+", self.configured))

    @property
    def marked(self) -> bool:
        """Whether it is shown at first however many learners there are: RAVI-UCB and the uniform policy."""
        id = self.row.line.learner.partition(",")[0]
        return id == "uniform" or (not self.row.oracle and id in ("ravi-ucb", "ravi-ucb/mixture"))


class Panel(NamedTuple):
    """All learners of a section on one MDP for one T.

    Attributes
    ----------
    anchor, task
        Its place on the page; the MDP's id, and T where the section has several.
    rows, entries
        All rows, and those with runs by label and column.
    facts
        Of the MDP: see FACTS; empty where nothing has run.
    earned
        What is said of lines without a regret whose runs have rewards, those of a large world.
    """

    anchor: str
    task: str
    mdp: str
    steps: int
    rows: list[Row]
    entries: dict[Key, Finding]
    facts: dict[str, float]
    earned: list[str]

    def of(self, column: str) -> list[Finding]:
        """The entries of a column in the order of the suite."""
        return [one for (_, where), one in self.entries.items() if where == column]

    def ordered(self, column: str) -> list[Finding]:
        """The same by mean regret; of those that share a place, the best first."""
        least: dict[int, float] = {}
        for one in self.of(column):
            least[one.row.place] = min(one.row.estimate, least.get(one.row.place, math.inf))

        def key(one: Finding) -> tuple[float, bool, float]:
            mean = one.row.estimate
            return (least[one.row.place] if one.row.place else mean, one.row.rank != "best", mean)

        return sorted(self.of(column), key=key)


class Cost(NamedTuple):
    """What the theory's constants cost a learner on an MDP: differences by seed, where seeds are in common."""

    panel: Panel
    theory: Row
    tuned: Row
    ratio: float  # of mean regrets, theory over tuned
    more: Interval | None  # theory minus tuned
    uniform: Interval | None  # uniform minus theory


class Standing(NamedTuple):
    """All MDPs of a section together, in one column.

    Attributes
    ----------
    rivals, tasks
        The learners with runs on every MDP that has any, and these MDPs.
    matrix
        (first, second): the probability that first has less regret.
    profiles, overall
        Performance profiles, and mean normalised scores over the MDPs, the least first; None and empty on one MDP.
    """

    column: str
    rivals: tuple[str, ...]
    tasks: tuple[str, ...]
    matrix: dict[Key, Interval]
    profiles: Profiles | None
    overall: dict[str, Interval]


class Chapter(NamedTuple):
    """A section of the suite with what is reported about it."""

    anchor: str
    name: str
    remark: str
    columns: tuple[str, ...]
    panels: list[Panel]
    standings: list[Standing]
    costs: list[Cost]


class Tried(NamedTuple):
    """A record of tuning."""

    mdp: str
    learner: str
    steps: int
    seeds: int
    configurations: list[dict[str, Any]]
    chosen: dict[str, Any] | None
    edge: tuple[str, ...]  # multipliers that were chosen at the edge of their range
    dots: list[tuple[float, float, bool]]  # x, y, whether it is the chosen one
    lacking: str  # why nothing is chosen


def content(found: Results, claims: list[dict[str, Any]] | None) -> dict[str, Any]:
    """All that the template needs but style, scripts and data."""
    suite, counts = found.suite, found.counts
    rows = summary(found)
    held = sections(found, rows)
    numbers = [len(row.line.seeds) for row in rows if len(row.line.seeds)]
    failures = _failures(found)
    untuned = sum(row.line.setting is None for row in rows)
    return {
        "title": suite.title or suite.name, "suite": suite, "counts": counts,
        "missing": counts.planned - counts.done - counts.failed,
        "troubles": [str(trouble) for trouble in found.troubles],
        "conflicts": [str(conflict) for conflict in found.conflicts],
        "headline": words.headline(held, numbers),
        "complete": words.completeness(counts.planned, counts.done, counts.failed, untuned),
        "findings": {section.anchor: _findings(section) for section in held},
        "places": _places(held), "columns": max((section.columns for section in held), key=len, default=()),
        "sections": held, "rows_of": rows_of, "wide": wide, "ticked": ticked,
        "measured": rates(found) if counts.done else [],
        "claims": claims, "verdicts": [_verdicts(one) for one in claims or ()],
        "tuning": _tuning(found), "failures": failures[:FAILURES], "more_failures": failures[FAILURES:],
        "launches": sorted(found.manifests.items(), key=lambda item: (str(item[1].get("started", "")), item[0])),
        "level": LEVEL, "few": words.FEW, "constants": words.CONSTANTS, "small": (WIDTH, HEIGHT),
    }  # fmt: skip


def sections(found: Results, rows: Sequence[Row]) -> list[Chapter]:
    """The sections of the suite in order, each with its rows; curves are read once."""
    shape = shapes(found, rows)
    seconds, rewards = (found.runs[name].to_numpy() for name in ("seconds", "reward"))
    tuned = {(record.get("mdp"), record.get("learner"), record.get("steps")) for record in found.tuning.values()}
    by: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        by.setdefault((row.line.section, row.line.mdp, row.line.steps), []).append(row)
    chapters = []
    for i, section in enumerate(found.suite.sections, 1):
        panels: list[Panel] = []
        for mdp in section.mdps:
            for T in section.steps:
                here = by[section.name, mdp, T]
                task = mdp if len(section.steps) == 1 else f"{mdp}, T = {T:,}"
                ran = [row.line for row in here if len(row.line.rows)]
                facts = {name: float(found.runs[name][int(ran[0].rows[0])].as_py() or 0) for name in FACTS if ran}
                times = {line.rows.tobytes(): float(seconds[line.rows].mean()) for line in ran}
                entries = {}
                for column in section.columns:
                    mine = [row for row in here if row.line.column == column and row.mean is not None]
                    for row in mine:
                        name = row.line.rows.tobytes()
                        faster = [r for r in mine if not r.oracle and times[r.line.rows.tobytes()] < times[name]]
                        entries[row.line.label, column] = Finding(
                            row, shape[name], found.runs["learner"][int(row.line.rows[0])].as_py(), times[name],
                            front=not row.oracle and not any(more(row, other) for other in faster),
                        )  # fmt: skip
                earned = [
                    f"{row.line.label}: no regret; mean reward {rewards[row.line.unrecorded].mean():,.6g} "
                    f"of {len(row.line.unrecorded)} runs. "
                    for row in here if row.mean is None and len(row.line.unrecorded)
                ]  # fmt: skip
                anchor = f"section-{i}-mdp-{len(panels) + 1}"
                panels.append(Panel(anchor, task, mdp, T, here, entries, facts, earned))
        standings = [_standing(panels, column) for column in section.columns]
        costs = _costs(panels, tuned) if {"theory", "tuned"} <= set(section.columns) else []
        chapters.append(
            Chapter(f"section-{i}", section.name, section.remark, section.columns, panels, standings, costs)
        )
    return chapters


def _standing(panels: Sequence[Panel], column: str) -> Standing:
    held = {panel.task: [one.row.line for one in panel.of(column) if not one.row.oracle] for panel in panels}
    held = {task: some for task, some in held.items() if some}
    ran = [{line.label for line in some} for some in held.values()]
    everywhere = [label for label in dict.fromkeys(line.label for some in held.values() for line in some)
                  if all(label in some for some in ran)]  # fmt: skip
    if len(everywhere) < 2:
        return Standing(column, tuple(everywhere), tuple(held), {}, None, {})
    scores = scores_of(
        (line.label, task, line) for task, some in held.items() for line in some if line.label in everywhere
    )
    matrix = {}
    for (first, second), found in improvements(scores, everywhere, level=LEVEL).items():
        matrix[first, second] = found
        matrix[second, first] = Interval(1 - found.estimate, 1 - found.high, 1 - found.low, found.level)
    profile = _profiles(scores) if len(held) > 1 else None
    overall = {}
    if profile is not None:  # the score of profiles, averaged over runs and then over MDPs
        runs = normalised(scores)[0].values
        means = {name: stratified(list(some.values()), "mean", level=LEVEL) for name, some in runs.items()}
        overall = dict(sorted(means.items(), key=lambda item: item[1].estimate))
    return Standing(column, tuple(everywhere), tuple(held), matrix, profile, overall)


def _profiles(scores: Scores) -> Profiles | None:
    """None where there is no regret to divide by. On one MDP they would be steps from 0 to 1."""
    try:
        return profiles(scores, _thresholds(scores), level=LEVEL)
    except InputError:
        return None


def _thresholds(scores: Scores) -> Array:
    """From the least normalised score to the largest, evenly on a log axis."""
    every = np.concatenate([run for held in normalised(scores)[0].values.values() for run in held.values()])
    most = float(every.max())
    least = max(float(every[every > 0].min(initial=most)), most * 1e-6)
    return np.unique([*np.geomspace(least, most, THRESHOLDS)[:-1], most]) if least < most else np.array([most])


def _costs(panels: Sequence[Panel], tuned: set[tuple[Any, ...]]) -> list[Cost]:
    """Every learner that has a multiplier, on every MDP where both columns have runs; tuned: MDP, learner and T."""
    costs = []
    for panel in panels:
        theory, better = ({one.label: one for one in panel.of(column)} for column in ("theory", "tuned"))
        uniform = next((one.row for one in theory.values() if one.row.line.learner.split(",")[0] == "uniform"), None)
        for label, one in theory.items():
            if label in better and (panel.mdp, one.configured, panel.steps) in tuned:
                row, other = one.row, better[label].row
                ratio = math.nan if other.zero or other.estimate <= 0 else row.estimate / other.estimate
                gaps = _difference(other, row), None if uniform is None else _difference(row, uniform)
                costs.append(Cost(panel, row, other, ratio, *gaps))
    return costs


def _difference(first: Row, second: Row) -> Interval | None:
    """Second minus first by seed; None where they have no seed in common."""
    try:
        held = scores_of([("first", "", first.line), ("second", "", second.line)])
        return compare(held, "first", "second", "", level=LEVEL).difference
    except InputError:
        return None


def _findings(section: Chapter) -> list[Markup]:
    sentences = [sentence for column in section.columns for sentence in words.standing(section, column)]
    return sentences + [
        tie for panel in section.panels for column in section.columns for tie in words.ties(panel, column)
    ]


def _places(held: Sequence[Chapter]) -> list[tuple[str, str]]:
    """Where learners are ranked: over all MDPs of a section, and on each, by anchor."""
    places = []
    for section in held:
        head = f"{section.name}: " if len(held) > 1 else ""
        if any(standing.overall for standing in section.standings):
            places.append((section.anchor, f"{head}all {len(section.panels)} MDPs"))
        ranked = (panel for panel in section.panels if any(one.row.place for one in panel.entries.values()))
        places += [(panel.anchor, f"{head}{panel.task}") for panel in ranked]
    return places


def rows_of(panel: Panel) -> tuple[list[int], list[tuple[Finding, list[tuple[float, float, float]]]]]:
    """Some times of the curves, and every entry's mean and interval there: what stands for the figure."""
    held = list(panel.entries.values())
    rows = [
        (one, list(zip(*(edge[one.shape.listed].tolist() for edge in one.shape.band), strict=True))) for one in held
    ]
    first = held[0].shape  # a section has one grid
    return first.times[first.listed].astype(int).tolist(), rows


def wide(panel: Panel, column: str) -> bool:
    """Whether the means that are drawn at first need a log axis to be seen side by side."""
    shown = ticked(panel.entries.values())
    means = [one.row.estimate for one in panel.of(column) if one.label in shown and one.row.estimate > 0]
    return bool(means) and max(means) > WIDE * min(means)


def _verdicts(one: dict[str, Any]) -> dict[str, int]:
    tally = Counter(str(row["verdict"]) for row in one["claims"])
    measured = tally["holds"] + tally["violated"]
    return {"violated": tally["violated"], "holds": tally["holds"], "others": len(one["claims"]) - measured}


def _failures(found: Results) -> list[dict[str, Any]]:
    """Runs that failed, by MDP, learner and error, the most frequent first; those of tuning too."""
    asked = set(found.entries["setting"].to_pylist())
    names = ["mdp", "learner", "steps", "setting", "seed", "failure", "error", "traceback"]
    rows = found.runs.select(names).filter(found.runs["failure"].is_valid()).to_pylist()
    failures: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["mdp"], row["learner"], row["steps"], row["seed"])):
        tuning = row["setting"] not in asked
        key = (*(row[name] for name in ("mdp", "learner", "steps", "failure", "error")), tuning)
        failures.setdefault(key, {**row, "count": 0, "tuning": tuning})["count"] += 1
    return sorted(failures.values(), key=lambda one: -one["count"])


def _tuning(found: Results) -> list[Tried]:
    records = [
        Tried(
            str(record.get("mdp")), str(record.get("learner")), int(record.get("steps") or 0),
            len(record.get("seeds") or ()), tried, None if (chosen := record.get("chosen")) is None else tried[chosen],
            tuple(at_edge(record)), _dots(tried, chosen), lacking(record),
        )
        for record in found.tuning.values() if (tried := record["configurations"])
    ]  # fmt: skip
    order = list(dict.fromkeys((entry.mdp, entry.steps) for entry in found.suite.entries))
    return sorted(
        records,
        key=lambda one: (order.index((one.mdp, one.steps)) if (one.mdp, one.steps) in order else -1, one.learner),
    )


def _dots(tried: list[dict[str, Any]], chosen: int | None) -> list[tuple[float, float, bool]]:
    """Regret against the first multiplier that was tried, both on log axes, in the box of a small figure."""
    name = "scale" if any(one.get("scale") for one in tried) else "step_scale"
    held = [
        (math.log(one[name]), math.log(one["regret"]), place == chosen)
        for place, one in enumerate(tried)
        if one.get(name) and (one.get("regret") or 0) > 0
    ]

    def at(value: float, values: list[float], size: float) -> float:
        low, high = min(values), max(values)
        return round(size * (value - low) / (high - low), 1) if high > low else size / 2

    xs, ys = [x for x, _, _ in held], [y for _, y, _ in held]
    width, height = WIDTH - 12, HEIGHT - 12
    return [
        (6 + at(x, xs, width), 6 + height - at(y, ys, height), mark) for x, y, mark in sorted(held, key=lambda d: d[2])
    ]
