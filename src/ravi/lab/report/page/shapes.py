"""What do the curves of a line look like? The mean at T, a band, and how fast it grows.

Curves are by far the largest part of a folder. They are read once, some lines at a time, and what is kept of a line is
a band at the times that the page draws or lists: fewer where there are many lines, so that the page stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.statistics.intervals import Interval, band, interval
from ravi.statistics.rates import Rate, growth
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results
    from ravi.lab.report.page.data import Line

LEVEL = 0.95
RESAMPLES = 400  # for a band; what is written has more
LISTED = 10  # times in the tables that stand for curves
POINTS, LEAST_POINTS = 100, 25  # of a curve that is drawn, at most; and where lines are many, at least
TOGETHER = 250_000  # points of all curves that are drawn, as long as each has the least


class Shape(NamedTuple):
    """What is kept of the curves of a line."""

    mean: Interval  # of the regret at T
    times: Array  # (D,), those that are drawn and those that are listed
    band: tuple[Array, Array, Array]  # mean, low, high there; (D,) each
    drawn: Array  # which of the times are drawn
    listed: Array  # which stand in a table
    growth: Rate | None  # None where the regret is not positive, or the curve too short


def shapes(found: Results, lines: Sequence[Line]) -> dict[bytes, Shape]:
    """The shape of every line that has runs, by the bytes of its rows; lines of the same runs have the same."""
    held = {line.rows.tobytes(): line for line in lines if len(line.rows)}
    most = max(LEAST_POINTS, min(POINTS, TOGETHER // max(1, len(held))))
    names = list(held)
    made = {}
    for number, curves in found.curves_of([held[name].rows for name in names]):
        made[names[number]] = _shape(held[names[number]], curves, most)
    return made


def _shape(line: Line, curves: Array, most: int) -> Shape:
    mean = interval(line.regret, "mean", level=LEVEL)
    P = len(line.times)
    if curves.shape[1] != P:
        raise InputError(f"{line.label}: a curve has {curves.shape[1]} points, and not {P}")
    drawn, listed = spread(P, most), _listed(P)
    places = np.union1d(drawn, listed)
    found = band(curves[:, places], "mean", level=LEVEL, resamples=RESAMPLES)
    for edge, end in zip(found, mean, strict=False):
        edge[-1] = end  # at T as it is written
    drawn, listed = (np.searchsorted(places, each) for each in (drawn, listed))
    return Shape(mean, line.times[places], found, drawn, listed, _growth(line, curves))


def spread(P: int, most: int) -> Array:
    """As many of P places as are wanted, evenly spread, the last among them."""
    return np.unique(np.ceil(np.linspace(0, P, min(most, P) + 1)[1:]).astype(int)) - 1


def _listed(P: int) -> Array:
    """The places, of P, whose times stand in a table."""
    n = min(LISTED, P)
    return np.unique([round((i + 1) * P / n) - 1 for i in range(n)])


def _growth(line: Line, curves: Array) -> Rate | None:
    """None where there is no regret to speak of, or too few times."""
    if len(line.times) < 8 or line.regret.mean() <= line.error.mean():
        return None
    try:
        return growth(line.times, curves, level=LEVEL)
    except InputError:  # the regret is not positive all along
        return None
