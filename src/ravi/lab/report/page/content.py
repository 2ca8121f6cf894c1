"""What stands on the page? Everything that the template shows, as plain values, in the order of the page."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ravi.lab.experiments.schedule.tuning import at_edge, lacking
from ravi.lab.report.page import words
from ravi.lab.report.page.analysis import Studied, studied
from ravi.lab.report.page.charts import ticked
from ravi.lab.report.page.data import Panel, parts
from ravi.lab.report.page.numbers import Sentence
from ravi.lab.report.page.shapes import LEVEL

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

FAILURES = 100  # kinds that are listed
WIDE = 30  # from the least mean to the largest
WIDTH, HEIGHT = 132, 56  # of a small figure of tuning


class Tried(NamedTuple):
    """A record of tuning."""

    mdp: str
    learner: str
    steps: int
    budget: int
    seeds: int
    configurations: list[dict[str, Any]]
    chosen: dict[str, Any] | None
    theory: dict[str, Any]
    edge: tuple[str, ...]  # multipliers that were chosen at the edge of their range
    dots: list[tuple[float, float, bool]]  # x, y, whether it is the chosen one
    lacking: str  # why nothing is chosen


def content(found: Results, claims: list[dict[str, Any]] | None) -> dict[str, Any]:
    """All that the template needs but style, scripts and data."""
    suite, counts = found.suite, found.counts
    held = parts(found)
    subjects = {(record.get("mdp"), record.get("learner"), record.get("steps")) for record in found.tuning.values()}
    studies = [studied(part, subjects) for part in held]  # type: ignore[arg-type]  # from JSON
    untuned = sum(not line.setting for part in held for panel in part.panels for line in panel.lines)
    measured = _rates(found) if counts.done else []
    tuning, failures = _tuning(found), _failures(found)
    return {
        "title": suite.title or suite.name,
        "suite": suite,
        "counts": counts,
        "missing": counts.planned - counts.done - counts.failed,
        "troubles": [str(trouble) for trouble in found.troubles],
        "conflicts": [str(conflict) for conflict in found.conflicts],
        "complete": words.completeness(counts.planned, counts.done, counts.failed, untuned),
        "seeds": words.seeds(held),
        "headline": words.headline(studies, held),
        "places": _places(studies),
        "columns": max((part.columns for part in held), key=len, default=()),
        "studies": studies,
        "summaries": {study.part.anchor: _summary(study) for study in studies},
        "rows_of": rows_of,
        "wide": wide,
        "ticked": lambda study, panel: ticked(list(study.told[panel.anchor].values())),
        "has_costs": any(study.costs for study in studies),
        "measured": measured,
        "scaling": words.scaling(measured),
        "claims": claims,
        "verdicts": [_verdicts(one) for one in claims or ()],
        "tuning": tuning,
        "edges": words.edges(len(tuning), sum(bool(one.edge) for one in tuning)),
        "failures": failures[:FAILURES],
        "more_failures": failures[FAILURES:],
        "launches": sorted(found.manifests.items(), key=lambda item: (str(item[1].get("started", "")), item[0])),
        "level": LEVEL,
        "few": words.FEW,
        "constants": words.CONSTANTS,
        "small": (WIDTH, HEIGHT),
    }


def _summary(study: Studied) -> tuple[list[Sentence], list[Sentence]]:
    """The summary of a section, and that of each MDP."""
    columns = study.part.columns
    made = [sentence for column in columns for sentence in words.standing(study, column)]
    made += words.costs(study)
    made += [sentence for column in columns for sentence in words.growth(study, column)]
    each = [
        sentence for panel in study.part.panels for column in columns for sentence in words.on(study, panel, column)
    ]
    made += [sentence for column in columns for sentence in words.absent(study, column)]
    return made + words.out_of_competition(study), each + words.our_costs(study)


def _places(studies: list[Studied]) -> list[tuple[str, str]]:
    """Where learners are ranked: over all MDPs of a section, and on each, by anchor."""
    made = []
    for study in studies:
        head = f"{study.part.name}: " if len(studies) > 1 else ""
        if any(standing.overall for standing in study.standings):
            made.append((study.part.anchor, f"{head}all {len(study.part.panels)} MDPs"))
        ranked = (panel for panel in study.part.panels if any(one.place for one in study.told[panel.anchor].values()))
        made += [(panel.anchor, f"{head}{panel.task}") for panel in ranked]
    return made


def rows_of(study: Studied, panel: Panel) -> tuple[list[int], list[tuple[Any, list[tuple[float, float, float]]]]]:
    """Some times of the curves, and every line's mean and interval there: what stands for the figure."""
    told = list(study.told[panel.anchor].values())
    if not told:
        return [], []
    first = told[0].shape  # a section has one grid
    rows = [
        (one, list(zip(*(edge[one.shape.listed].tolist() for edge in one.shape.band), strict=True))) for one in told
    ]
    return first.times[first.listed].astype(int).tolist(), rows


def wide(study: Studied, panel: Panel) -> bool:
    """Whether the means that are drawn at first need a log axis to be seen side by side."""
    shown = ticked(list(study.told[panel.anchor].values()))
    column = study.part.columns[-1]
    means = [one.mean.estimate for one in study.of(panel, column) if one.line.label in shown and one.mean.estimate > 0]
    return bool(means) and max(means) > WIDE * min(means)


def _rates(found: Results) -> list[Any]:
    from ravi.statistics.rates import rates

    return list(rates(found))


def _verdicts(one: dict[str, Any]) -> dict[str, int]:
    tally = Counter(str(row["verdict"]) for row in one["claims"])
    measured = tally["holds"] + tally["violated"]
    return {"violated": tally["violated"], "holds": tally["holds"], "others": len(one["claims"]) - measured}


def _failures(found: Results) -> list[dict[str, Any]]:
    """Runs that failed, by MDP, learner and error, the most frequent first; those of tuning too."""
    asked = set(found.entries["setting"].to_pylist())
    told = ["mdp", "learner", "steps", "setting", "seed", "failure", "error", "traceback"]
    rows = found.runs.select(told).filter(found.runs["failure"].is_valid()).to_pylist()
    made: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["mdp"], row["learner"], row["steps"], row["seed"])):
        key = tuple(row[name] for name in ("mdp", "learner", "steps", "failure", "error"))
        one = made.setdefault(
            (*key, row["setting"] in asked), {**row, "count": 0, "tuning": row["setting"] not in asked}
        )
        one["count"] += 1
    return sorted(made.values(), key=lambda one: -one["count"])


def _tuning(found: Results) -> list[Tried]:
    made = []
    for record in found.tuning.values():
        tried, chosen = record["configurations"], record.get("chosen")
        if tried:
            made.append(
                Tried(
                    str(record.get("mdp")), str(record.get("learner")), int(record.get("steps") or 0),
                    int(record.get("budget") or len(tried)), len(record.get("seeds") or ()), tried,
                    None if chosen is None else tried[chosen], tried[0], tuple(at_edge(record)),
                    _dots(tried, chosen), lacking(record),
                )
            )  # fmt: skip
    order = list(dict.fromkeys((entry.mdp, entry.steps) for entry in found.suite.entries))
    return sorted(
        made, key=lambda one: (order.index((one.mdp, one.steps)) if (one.mdp, one.steps) in order else -1, one.learner)
    )


def _dots(tried: list[dict[str, Any]], chosen: int | None) -> list[tuple[float, float, bool]]:
    """Regret against the first multiplier that was tried, both on log axes, in the box of a small figure."""
    name = "scale" if any(one.get("scale") for one in tried) else "step_scale"
    held = [
        (math.log(one[name]), math.log(one["regret"]), place == chosen)
        for place, one in enumerate(tried)
        if one.get(name) and (one.get("regret") or 0) > 0
    ]
    if not held:
        return []
    xs, ys = [x for x, _, _ in held], [y for _, y, _ in held]

    def at(value: float, values: list[float], size: float) -> float:
        low, high = min(values), max(values)
        return round(size * (value - low) / (high - low), 1) if high > low else size / 2

    box = (WIDTH - 12, HEIGHT - 12)
    return [
        (6 + at(x, xs, box[0]), 6 + box[1] - at(y, ys, box[1]), mark) for x, y, mark in sorted(held, key=lambda d: d[2])
    ]
