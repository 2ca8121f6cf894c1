"""What the figures of the page draw: its data as JSON, one copy, rounded to what a screen shows, harmless in HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi.core import Array

if TYPE_CHECKING:
    from ravi.lab.report.page.content import Entry, Panel, Section, Standing

DIGITS = 5  # significant ones, in figures only
COLOURS, DASHES = 7, 6  # as many as page.js has
SHOWN = 8  # learners that are ticked at first
SEEDS = 200  # points of a line at T, at most


def chart_data(sections: Sequence[Section]) -> dict[str, Any]:
    """Everything that is drawn: panels and sections by anchor, profiles by column too; labels, once."""
    labels = {label: place for place, label in enumerate(_labels(sections))}
    return {
        "labels": list(labels),
        "styles": styles(sections),
        "panels": {
            panel.anchor: _panel(panel, labels) for section in sections for panel in section.panels if panel.entries
        },
        "profiles": {
            f"{section.anchor}-{standing.column}": _profiles(standing, labels)
            for section in sections
            for standing in section.standings
            if standing.profiles is not None
        },
        "overall": {section.anchor: held for section in sections if (held := _overall(section, labels))},
    }


def _labels(sections: Sequence[Section]) -> dict[str, None]:
    return dict.fromkeys(row.line.label for section in sections for panel in section.panels for row in panel.rows)


def styles(sections: Sequence[Section]) -> list[tuple[int, int]]:
    """A colour and a dash for every label, by place: alike on the whole page, and different within a section."""
    alone = [set(_labels([section])) for section in sections]
    made: dict[str, tuple[int, int]] = {}
    for label in _labels(sections):
        beside = set().union(*(some for some in alone if label in some))
        used = [made[other][0] for other in beside if other in made]
        colour = min(range(COLOURS), key=used.count)
        made[label] = (colour, (colour + used.count(colour)) % DASHES)
    return list(made.values())


def ticked(entries: Iterable[Entry]) -> set[str]:
    """The learners that are shown at first: all where they are few, else RAVI-UCB, uniform, and the smallest means."""
    held = list(entries)
    least: dict[str, float] = {}
    for one in held:
        least[one.label] = min(one.row.estimate, least.get(one.label, np.inf))
    first = [one.label for one in held if one.marked]
    return set(list(dict.fromkeys([*first, *sorted(least, key=lambda label: least[label])]))[:SHOWN])


def embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in, whatever its strings are."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def _panel(panel: Panel, labels: dict[str, int]) -> dict[str, Any]:
    shown = ticked(panel.entries.values())
    first = next(iter(panel.entries.values())).shape  # a section has one grid
    return {
        "times": first.times[first.drawn].tolist(),
        "lines": [_line(one, labels, one.label in shown) for one in panel.entries.values()],
    }


def _line(one: Entry, labels: dict[str, int], shown: bool) -> dict[str, Any]:
    mean, low, high = (edge[one.shape.drawn] for edge in one.shape.band)
    row, line = one.row, one.row.line
    made = {
        "label": labels[line.label], "column": line.column, "seeds": len(line.seeds), "shown": shown,
        "mean": rounded(mean), "finals": rounded(_some(line.values)), "seconds": rounded(np.array([one.seconds]))[0],
        "front": one.front, "oracle": row.oracle, "rank": row.rank, "nothing": row.zero,
    }  # fmt: skip
    if np.isfinite(low).all() and np.isfinite(high).all():
        made |= {"low": rounded(low), "high": rounded(high)}
    return made


def _overall(section: Section, labels: dict[str, int]) -> dict[str, Any]:
    """All MDPs of a section as one panel, whose lines have one point; empty where there is nothing over all."""
    lines = [
        {"label": labels[label], "column": standing.column, "shown": place < SHOWN, "mean": rounded(np.array([mean]))}
        | ({"low": rounded(np.array([low])), "high": rounded(np.array([high]))} if np.isfinite(low) else {})
        for standing in section.standings
        for place, (label, (mean, low, high, _)) in enumerate(standing.overall.items())
    ]
    by = next((standing.profiles.normalised for standing in section.standings if standing.profiles is not None), "")
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
