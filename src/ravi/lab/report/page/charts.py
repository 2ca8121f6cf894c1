"""The curves of the page: a band at some times, how fast the regret grows, and the data of the figures as JSON.

Curves are by far the largest part of a folder. They are read once, some lines at a time, and what is kept of a line is
a band at the times that the page draws or lists: fewer where there are many lines, so that the page stays small. The
data are one copy, rounded to what a screen shows, and harmless in HTML.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.lab.report.curves import spread
from ravi.lab.report.summary import LEVEL, Row, curves
from ravi.statistics import Rate, band, growth
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results
    from ravi.lab.report.page.content import Chapter, Sheet
    from ravi.statistics import Profiles

RESAMPLES = 400  # for a band; what is written has more
LISTED = 10  # times in the tables that stand for curves
POINTS, LEAST_POINTS = 100, 25  # of a curve that is drawn, at most; and where lines are many, at least
ALL_POINTS = 250_000  # points of all curves that are drawn, as long as each has the least
DIGITS = 5  # significant ones, in figures only
COLOURS, DASHES = 7, 6  # as many as page.js has
SHOWN = 8  # learners that are ticked at first
SEEDS = 200  # points of a line at T, at most


class Shape(NamedTuple):
    """What is kept of the curves of a line.

    Attributes
    ----------
    times
        Those that are drawn and those that are listed   (D,).
    band
        The mean and the ends of its interval there, (D,) each.
    drawn, listed
        Which of the times are drawn, and which stand in a table.
    growth
        The exponent of the regret; None where it is not positive, or the curve too short.
    """

    times: Array
    band: tuple[Array, Array, Array]
    drawn: Array
    listed: Array
    growth: Rate | None


def shapes(found: Results, rows: Sequence[Row]) -> dict[bytes, Shape]:
    """The shape of every row that has runs, by its key."""
    many = len({row.key for row in rows if len(row.line.rows)})
    most = max(LEAST_POINTS, min(POINTS, ALL_POINTS // max(1, many)))
    return {row.key: _shape(row, times, values, most) for row, times, values in curves(found, rows)}


def _shape(row: Row, times: Array, values: Array, most: int) -> Shape:
    assert row.mean is not None  # it has runs
    drawn, listed = spread(len(times), most), spread(len(times), LISTED)
    places = np.union1d(drawn, listed)
    found = band(values[:, places], "mean", level=LEVEL, resamples=RESAMPLES)
    for edge, end in zip(found, row.mean, strict=False):
        edge[-1] = end  # at T as it is written
    drawn, listed = (np.searchsorted(places, each) for each in (drawn, listed))
    return Shape(times[places], found, drawn, listed, _growth(row, times, values))


def _growth(row: Row, times: Array, values: Array) -> Rate | None:
    """None where there is no regret to speak of, or too few times."""
    if len(times) < 8 or row.line.values.mean() <= row.line.errors.mean():
        return None
    try:
        return growth(times, values, level=LEVEL)
    except InputError:  # the regret is not positive all along
        return None


def chart_data(sections: Sequence[Chapter]) -> dict[str, Any]:
    """Everything that is drawn: panels and sections by anchor, profiles by column too; labels, once."""
    labels = {label: place for place, label in enumerate(_labels(sections))}
    sheets = [sheet for section in sections for sheet in section.sheets]
    return {
        "labels": list(labels),
        "styles": styles(sections),
        "panels": {sheet.anchor: _panel(sheet, labels) for sheet in sheets if sheet.shapes},
        "profiles": {
            f"{section.anchor}-{standing.column}": _profiles(standing.profiles, standing.rivals, labels)
            for section in sections
            for standing in section.standings
            if standing.profiles is not None
        },
        "overall": {section.anchor: held for section in sections if (held := _overall(section, labels))},
    }


def _labels(sections: Sequence[Chapter]) -> dict[str, None]:
    sheets = (sheet for section in sections for sheet in section.sheets)
    return dict.fromkeys(row.line.label for sheet in sheets for row in sheet.panel.rows)


def styles(sections: Sequence[Chapter]) -> list[tuple[int, int]]:
    """A colour and a dash for every label, by place: alike on the whole page, and different within a section."""
    alone = [set(_labels([section])) for section in sections]
    chosen: dict[str, tuple[int, int]] = {}
    for label in _labels(sections):
        beside = set().union(*(some for some in alone if label in some))
        used = [chosen[other][0] for other in beside if other in chosen]
        colour = min(range(COLOURS), key=used.count)
        chosen[label] = (colour, (colour + used.count(colour)) % DASHES)
    return list(chosen.values())


def ticked(rows: Sequence[Row]) -> set[str]:
    """The learners that are shown at first: all where they are few, else RAVI-UCB, uniform, and the smallest means."""

    def always(row: Row) -> bool:
        id = row.line.learner.partition(",")[0]
        return id == "uniform" or (not row.oracle and id in ("ravi-ucb", "ravi-ucb/mixture"))

    order = [*filter(always, rows), *sorted(rows, key=lambda row: row.estimate)]
    return set(list(dict.fromkeys(row.line.label for row in order))[:SHOWN])


def embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in, whatever its strings are."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def _panel(sheet: Sheet, labels: dict[str, int]) -> dict[str, Any]:
    shown, rows = ticked(sheet.rows), sheet.rows
    first = next(iter(sheet.shapes.values()))  # a section has one grid
    held = ((row, sheet.shapes[row.line.label, row.line.column]) for row in rows)
    lines = [_line(row, shape, labels, row.line.label in shown) for row, shape in held]
    return {"times": first.times[first.drawn].tolist(), "lines": lines}


def _line(row: Row, shape: Shape, labels: dict[str, int], shown: bool) -> dict[str, Any]:
    line = row.line
    mean, low, high = (edge[shape.drawn] for edge in shape.band)
    data = {
        "label": labels[line.label], "column": line.column, "seeds": len(line.seeds), "shown": shown,
        "mean": rounded(mean), "finals": rounded(_some(line.values)), "seconds": rounded([row.seconds.mean()])[0],
        "front": row.front, "oracle": row.oracle, "rank": row.rank, "nothing": row.zero,
    }  # fmt: skip
    return data | _ends(low, high)


def _ends(low: Any, high: Any) -> dict[str, Any]:
    """The ends of a band, where it has any."""
    return {"low": rounded(low), "high": rounded(high)} if np.isfinite([low, high]).all() else {}


def _overall(section: Chapter, labels: dict[str, int]) -> dict[str, Any]:
    """All MDPs of a section as one panel, whose lines have one point; empty where there is nothing over all."""
    lines = [
        {"label": labels[label], "column": standing.column, "shown": place < SHOWN, "mean": rounded([mean])}
        | _ends([low], [high])
        for standing in section.standings
        for place, (label, (mean, low, high, _)) in enumerate(standing.overall.items())
    ]
    by = next((standing.profiles.normalised for standing in section.standings if standing.profiles is not None), "")
    return {"lines": lines, "by": by} if lines else {}


def _some(values: Array) -> Array:
    """All of few values; of many, some evenly through their order, the least and the largest among them."""
    n = len(values)
    return values if n <= SEEDS else np.sort(values)[np.linspace(0, n - 1, SEEDS).round().astype(int)]


def _profiles(held: Profiles, rivals: Sequence[str], labels: dict[str, int]) -> dict[str, Any]:
    shown = {"share": held.share, "low": held.low, "high": held.high}
    lines = [{"label": labels[name]} | {what: rounded(by[name]) for what, by in shown.items()} for name in rivals]
    return {"thresholds": rounded(held.thresholds), "by": held.normalised, "lines": lines}


def rounded(values: Any) -> list[float]:
    """To some significant digits; whole numbers without a point, which is shorter."""
    short = (float(f"{value:.{DIGITS}g}") for value in np.asarray(values, float).tolist())
    return [int(value) if value.is_integer() else value for value in short]
