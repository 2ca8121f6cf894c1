"""What do the figures draw? The page's data as JSON: one copy, rounded to what a screen can show, harmless in HTML."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ravi.core import Array
from ravi.lab.report.page.analysis import Standing, Studied, Told

DIGITS = 5  # significant ones, in figures only
COLOURS, DASHES = 7, 6  # as many as page.js has
SHOWN = 8  # learners that are ticked at first
SEEDS = 200  # points of a line at T, at most


def chart_data(studies: Sequence[Studied]) -> dict[str, Any]:
    """Everything that is drawn: panels and sections by anchor, profiles by column too; labels, once."""
    lines = [line for study in studies for panel in study.part.panels for line in panel.lines]
    labels = {label: place for place, label in enumerate(dict.fromkeys(line.label for line in lines))}
    return {
        "labels": list(labels),
        "styles": styles(studies),
        "panels": {anchor: _panel(told, labels) for study in studies for anchor, told in study.told.items() if told},
        "profiles": {
            f"{study.part.anchor}-{standing.column}": _profiles(standing, labels)
            for study in studies
            for standing in study.standings
            if standing.profiles is not None
        },
        "overall": {study.part.anchor: held for study in studies if (held := _overall(study, labels))},
    }


def styles(studies: Sequence[Studied]) -> list[tuple[int, int]]:
    """A colour and a dash for every label, by place: alike on the whole page, and different within a section."""
    sections = [{line.label for panel in study.part.panels for line in panel.lines} for study in studies]
    made: dict[str, tuple[int, int]] = {}
    for label in dict.fromkeys(line.label for study in studies for panel in study.part.panels for line in panel.lines):
        beside = set().union(*(some for some in sections if label in some))
        used = [made[other][0] for other in beside if other in made]
        colour = min(range(COLOURS), key=used.count)
        made[label] = (colour, (colour + used.count(colour)) % DASHES)
    return list(made.values())


def ticked(told: Sequence[Told]) -> set[str]:
    """The learners that are shown at first: all where they are few, else RAVI-UCB, uniform, and the smallest means."""
    least: dict[str, float] = {}
    for one in told:
        least[one.line.label] = min(one.mean.estimate, least.get(one.line.label, np.inf))
    first = [one.line.label for one in told if one.line.ours or one.line.uniform]
    return set(list(dict.fromkeys([*first, *sorted(least, key=lambda label: least[label])]))[:SHOWN])


def embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in, whatever its strings are."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def _panel(told: dict[tuple[str, str], Told], labels: dict[str, int]) -> dict[str, Any]:
    shown = ticked(list(told.values()))
    first = next(iter(told.values()))  # a section has one grid
    return {
        "times": first.shape.times[first.shape.drawn].tolist(),
        "lines": [_line(one, labels, one.line.label in shown) for one in told.values()],
    }


def _line(told: Told, labels: dict[str, int], shown: bool) -> dict[str, Any]:
    mean, low, high = (edge[told.shape.drawn] for edge in told.shape.band)
    made = {
        "label": labels[told.line.label], "column": told.line.column, "seeds": len(told.line.seeds), "shown": shown,
        "mean": rounded(mean), "finals": rounded(_some(told.line.regret)),
        "seconds": rounded(np.array([told.seconds]))[0], "front": told.front, "oracle": told.line.oracle,
        "rank": told.rank, "nothing": told.line.nothing,
    }  # fmt: skip
    if np.isfinite(low).all() and np.isfinite(high).all():
        made |= {"low": rounded(low), "high": rounded(high)}
    return made


def _overall(study: Studied, labels: dict[str, int]) -> dict[str, Any]:
    """All MDPs of a section as one panel, whose lines have one point; empty where there is nothing over all."""
    lines = [
        {"label": labels[label], "column": standing.column, "shown": place < SHOWN, "mean": rounded(np.array([mean]))}
        | ({"low": rounded(np.array([low])), "high": rounded(np.array([high]))} if np.isfinite(low) else {})
        for standing in study.standings
        for place, (label, (mean, low, high, _)) in enumerate(standing.overall.items())
    ]
    by = next((standing.profiles.normalised for standing in study.standings if standing.profiles is not None), "")
    return {"lines": lines, "by": by} if lines else {}


def _some(values: Array) -> Array:
    """All of few values; of many, some evenly through their order, the least and the largest among them."""
    n = len(values)
    return values if n <= SEEDS else np.sort(values)[np.linspace(0, n - 1, SEEDS).round().astype(int)]


def _profiles(standing: Standing, labels: dict[str, int]) -> dict[str, Any]:
    held = standing.profiles
    assert held is not None
    lines = [
        {
            "label": labels[name], "share": rounded(held.share[name]), "low": rounded(held.low[name]),
            "high": rounded(held.high[name]),
        }
        for name in standing.rivals
    ]  # fmt: skip
    return {"thresholds": rounded(np.asarray(held.thresholds)), "by": held.normalised, "lines": lines}


def rounded(values: Array) -> list[float]:
    """To some significant digits; whole numbers without a point, which is shorter."""
    rounded = (float(f"{value:.{DIGITS}g}") for value in values.tolist())
    return [int(value) if value.is_integer() else value for value in rounded]
