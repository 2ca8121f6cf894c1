"""What stands on the page: everything that the template shows, as plain values, in the order of the page.

The numbers are those of the summary: a section of the suite has panels (an MDP and a T), and a panel has rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.lab.experiments.tuning import at_edge, lacking
from ravi.lab.report.page import words
from ravi.lab.report.page.charts import Shape, shapes, ticked
from ravi.lab.report.summary import LEVEL, Panel, Row, panels, summary
from ravi.statistics import Interval, Profiles, compare, improvements, normalised, profiles, rates, stratified
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
Pair = tuple[str, str]  # two labels


class Sheet(NamedTuple):
    """A panel of the summary with what else the page shows of it.

    Attributes
    ----------
    anchor, panel
        Its place on the page, and its rows.
    shapes
        The curves of those that have runs, by label and column.
    facts
        Of the MDP: see FACTS; empty where nothing has run.
    earned
        What is said of lines without a regret whose runs have rewards, those of a large world.
    """

    anchor: str
    panel: Panel
    shapes: dict[Pair, Shape]
    facts: dict[str, float]
    earned: list[str]

    @property
    def rows(self) -> list[Row]:
        """Those that have runs, by column."""
        return [row for column in self.panel.columns for row in self.panel.of(column)]


class Cost(NamedTuple):
    """What the theory's constants cost a learner on an MDP: differences by seed, where seeds are in common."""

    task: str
    theory: Row
    tuned: Row
    ratio: float  # of mean regrets, theory over tuned
    more: Interval | None  # theory minus tuned
    uniform: Interval | None  # uniform minus theory


class Standing(NamedTuple):
    """All MDPs of a section together, in one column.

    Attributes
    ----------
    table
        Every learner with its row on each MDP, None where it has no run there; empty without any run.
    rivals, tasks
        The learners with runs on every MDP that has any, and these MDPs.
    matrix
        (first, second): the probability that first has less regret.
    profiles, overall
        Performance profiles, and mean normalised scores over the MDPs, the least first; None and empty on one MDP.
    """

    column: str
    table: list[tuple[str, list[Row | None]]]
    rivals: tuple[str, ...]
    tasks: tuple[str, ...]
    matrix: dict[Pair, Interval]
    profiles: Profiles | None
    overall: dict[str, Interval]


class Chapter(NamedTuple):
    """A section of the suite with what is reported about it."""

    anchor: str
    name: str
    remark: str
    columns: tuple[str, ...]
    sheets: list[Sheet]
    standings: list[Standing]
    costs: list[Cost]


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
        "sections": held, "wide": wide, "ticked": ticked, "multipliers": multipliers,
        "measured": rates(found) if counts.done else [],
        "claims": claims, "verdicts": [_verdicts(one) for one in claims or ()],
        "tuning": _tuning(found), "failures": failures[:FAILURES], "more_failures": failures[FAILURES:],
        "launches": sorted(found.manifests.items(), key=lambda item: (str(item[1].get("started", "")), item[0])),
        "level": LEVEL, "few": words.FEW, "constants": words.CONSTANTS, "small": (WIDTH, HEIGHT),
    }  # fmt: skip


def sections(found: Results, rows: Sequence[Row]) -> list[Chapter]:
    """The sections of the suite in order, each with its rows; curves are read once."""
    shape = shapes(found, rows)
    tuned = {(record.get("mdp"), record.get("learner"), record.get("steps")) for record in found.tuning.values()}
    every = panels(rows)
    chapters = []
    for i, section in enumerate(found.suite.sections, 1):
        mine = [panel for panel in every if panel.section == section.name]
        sheets = [_sheet(found, f"section-{i}-mdp-{k}", panel, shape) for k, panel in enumerate(mine, 1)]
        standings = [_standing(mine, column) for column in section.columns]
        costs = _costs(mine, tuned) if {"theory", "tuned"} <= set(section.columns) else []
        chapters.append(
            Chapter(f"section-{i}", section.name, section.remark, section.columns, sheets, standings, costs)
        )
    return chapters


def _sheet(found: Results, anchor: str, panel: Panel, shape: dict[bytes, Shape]) -> Sheet:
    shown = {}
    facts: dict[str, float] = {}
    earned = []
    for row in panel.rows:
        line = row.line
        if len(line.rows):
            shown[line.label, line.column] = shape[row.key]
            facts = facts or {name: float(row.facts[name] or 0) for name in FACTS}
        elif len(line.unrecorded):
            reward = found.runs["reward"].to_numpy()[line.unrecorded].mean()
            words = f"no regret; mean reward {reward:,.6g} of {len(line.unrecorded)} runs. "
            earned.append(f"{line.label}: {words}")
    return Sheet(anchor, panel, shown, facts, earned)


def _standing(mine: Sequence[Panel], column: str) -> Standing:
    ran = [panel for panel in mine if panel.of(column)]
    labels = dict.fromkeys(row.line.label for panel in ran for row in panel.rows if row.line.column == column)
    by = {(row.line.label, panel.task): row for panel in ran for row in panel.of(column)}
    table = [(label, [by.get((label, panel.task)) for panel in mine]) for label in labels]
    rivals = [(row.line.label, panel.task, row.line) for panel in ran for row in panel.of(column) if not row.oracle]
    tasks = tuple(dict.fromkeys(task for _, task, _ in rivals))
    many = Counter(label for label, *_ in rivals)
    everywhere = tuple(label for label in many if many[label] == len(tasks))
    if len(everywhere) < 2:
        return Standing(column, table, everywhere, tasks, {}, None, {})
    scores = scores_of(one for one in rivals if one[0] in everywhere)
    matrix = {}
    for (first, second), found in improvements(scores, everywhere, level=LEVEL).items():
        matrix[first, second] = found
        matrix[second, first] = Interval(1 - found.estimate, 1 - found.high, 1 - found.low, found.level)
    profile, overall = None, {}
    if len(tasks) > 1:  # on one MDP profiles would be steps from 0 to 1
        with suppress(InputError):  # there is no regret to divide by
            runs = normalised(scores)[0].values
            profile = profiles(scores, _thresholds(runs), level=LEVEL)
            means = {name: stratified(list(some.values()), "mean", level=LEVEL) for name, some in runs.items()}
            overall = dict(sorted(means.items(), key=lambda item: item[1].estimate))
    return Standing(column, table, everywhere, tasks, matrix, profile, overall)


def _thresholds(runs: dict[str, dict[str, Array]]) -> Array:
    """From the least normalised score to the largest, evenly on a log axis."""
    every = np.concatenate([run for held in runs.values() for run in held.values()])
    most = float(every.max())
    least = max(float(every[every > 0].min(initial=most)), most * 1e-6)
    return np.unique([*np.geomspace(least, most, THRESHOLDS)[:-1], most]) if least < most else np.array([most])


def _costs(mine: Sequence[Panel], tuned: set[tuple[Any, ...]]) -> list[Cost]:
    """Every learner that has a multiplier, on every MDP where both columns have runs; tuned: MDP, learner and T."""
    costs = []
    for panel in mine:
        better = {row.line.label: row for row in panel.of("tuned")}
        theory = panel.of("theory")
        uniform = next((row for row in theory if row.line.learner.split(",")[0] == "uniform"), None)
        for row in theory:
            other = better.get(row.line.label)
            if other is not None and (panel.mdp, row.facts["learner"], panel.steps) in tuned:
                ratio = math.nan if other.zero or other.estimate <= 0 else row.estimate / other.estimate
                gaps = _difference(other, row), None if uniform is None else _difference(row, uniform)
                costs.append(Cost(panel.task, row, other, ratio, *gaps))
    return costs


def _difference(first: Row, second: Row) -> Interval | None:
    """Second minus first by seed; None where they have no seed in common."""
    try:
        held = scores_of([("first", "", first.line), ("second", "", second.line)])
        return compare(held, "first", "second", "", level=LEVEL).difference
    except InputError:
        return None


def _findings(section: Chapter) -> list[Markup]:
    mine = [sheet.panel for sheet in section.sheets]
    sentences = [sentence for column in section.columns for sentence in words.standing(mine, column)]
    return sentences + [tie for panel in mine for column in section.columns for tie in words.ties(panel, column)]


def _places(held: Sequence[Chapter]) -> list[tuple[str, str]]:
    """Where learners are ranked: over all MDPs of a section, and on each, by anchor."""
    places = []
    for section in held:
        head = f"{section.name}: " if len(held) > 1 else ""
        if any(standing.overall for standing in section.standings):
            places.append((section.anchor, f"{head}all {len(section.sheets)} MDPs"))
        ranked = (sheet for sheet in section.sheets if any(row.place for row in sheet.rows))
        places += [(sheet.anchor, f"{head}{sheet.panel.task}") for sheet in ranked]
    return places


def wide(sheet: Sheet, column: str) -> bool:
    """Whether the means that are drawn at first need a log axis to be seen side by side."""
    shown = ticked(sheet.rows)
    means = [row.estimate for row in sheet.panel.of(column) if row.line.label in shown and row.estimate > 0]
    return bool(means) and max(means) > WIDE * min(means)


def multipliers(row: Row) -> str:
    """The multipliers that tuning chose."""
    return ", ".join(re.findall(r"(?<=,)(?:step_)?scale=[^,]+", row.facts["learner"]))


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


def _tuning(found: Results) -> list[dict[str, Any]]:
    """The records of tuning in the order of the suite, with why nothing is chosen, and the multipliers at an edge."""
    records = []
    for record in found.tuning.values():
        tried, chosen = record["configurations"], record.get("chosen")
        if tried:
            named = {name: str(record.get(name)) for name in ("mdp", "learner")}
            counted = {"steps": int(record.get("steps") or 0), "seeds": len(record.get("seeds") or ())}
            best = {"chosen": None if chosen is None else tried[chosen], "dots": _dots(tried, chosen)}
            shown = {"configurations": tried, "edge": at_edge(record), "lacking": lacking(record)}
            records.append(named | counted | best | shown)
    order = list(dict.fromkeys((entry.mdp, entry.steps) for entry in found.suite.entries))
    place = {key: number for number, key in enumerate(order)}
    return sorted(records, key=lambda one: (place.get((one["mdp"], one["steps"]), -1), one["learner"]))


def _dots(tried: list[dict[str, Any]], chosen: int | None) -> list[tuple[float, float, bool]]:
    """Regret against the first multiplier that was tried, both on log axes, in the box of a small figure."""
    name = "scale" if any(one.get("scale") for one in tried) else "step_scale"
    held = [place for place, one in enumerate(tried) if one.get(name) and (one.get("regret") or 0) > 0]
    if not held:
        return []
    points = np.log([[tried[place][name], 1 / tried[place]["regret"]] for place in held])  # upwards is less far down
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    share = np.where(size > 0, (points - low) / np.where(size > 0, size, 1), 0.5)
    at = (6 + share * (WIDTH - 12, HEIGHT - 12)).round(1).tolist()
    return sorted(((x, y, place == chosen) for (x, y), place in zip(at, held, strict=True)), key=lambda dot: dot[2])
