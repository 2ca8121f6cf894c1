"""The shapes of curves: a band at some times, and how fast the regret grows.

Curves are by far the largest part of a folder. They are read once, some lines at a time, and what is kept of a line is
a band at the times that the page draws or lists: fewer where there are many lines, so that the page stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.lab.report.summary import LEVEL, Row
from ravi.measures.curve import grid
from ravi.statistics import Rate, band, growth
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

RESAMPLES = 400  # for a band; what is written has more
LISTED = 10  # times in the tables that stand for curves
POINTS, LEAST_POINTS = 100, 25  # of a curve that is drawn, at most; and where lines are many, at least
TOGETHER = 250_000  # points of all curves that are drawn, as long as each has the least


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
    """The shape of every line that has runs, by the bytes of its rows; lines of the same runs have the same."""
    held = {row.line.rows.tobytes(): row for row in rows if len(row.line.rows)}
    most = max(LEAST_POINTS, min(POINTS, TOGETHER // max(1, len(held))))
    names, points = list(held), found.runs["points"]
    made = {}
    for number, curves in found.curves_of([held[name].line.rows for name in names]):
        row = held[names[number]]
        times = grid(row.line.steps, points[int(row.line.rows[0])].as_py())
        made[names[number]] = _shape(row, times, curves, most)
    return made


def _shape(row: Row, times: Array, curves: Array, most: int) -> Shape:
    assert row.mean is not None  # it has runs
    P = len(times)
    if curves.shape[1] != P:
        raise InputError(f"{row.line.label}: a curve has {curves.shape[1]} points, and not {P}")
    drawn, listed = spread(P, most), _listed(P)
    places = np.union1d(drawn, listed)
    found = band(curves[:, places], "mean", level=LEVEL, resamples=RESAMPLES)
    for edge, end in zip(found, row.mean, strict=False):
        edge[-1] = end  # at T as it is written
    drawn, listed = (np.searchsorted(places, each) for each in (drawn, listed))
    return Shape(times[places], found, drawn, listed, _growth(row, times, curves))


def spread(P: int, most: int) -> Array:
    """As many of P places as are wanted, evenly spread, the last among them."""
    return np.unique(np.ceil(np.linspace(0, P, min(most, P) + 1)[1:]).astype(int)) - 1


def _listed(P: int) -> Array:
    """The places, of P, whose times stand in a table."""
    n = min(LISTED, P)
    return np.unique([round((i + 1) * P / n) - 1 for i in range(n)])


def _growth(row: Row, times: Array, curves: Array) -> Rate | None:
    """None where there is no regret to speak of, or too few times."""
    if len(times) < 8 or row.line.values.mean() <= row.line.errors.mean():
        return None
    try:
        return growth(times, curves, level=LEVEL)
    except InputError:  # the regret is not positive all along
        return None
