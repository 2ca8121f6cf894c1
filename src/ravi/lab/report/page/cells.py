"""Numbers as HTML: they and fixed words, nothing that comes from the folder.

A page of many learners has a hundred thousand of them; macros of the template would take most of its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from markupsafe import Markup

from ravi.lab.report import numbers
from ravi.lab.report.numbers import DECIMALS, NONE, estimate_and_interval

if TYPE_CHECKING:
    from ravi.lab.report.summary import Row
    from ravi.statistics import Interval, Rate

ZERO = Markup('<span class="value">0</span> <span class="range">(to its certified error)</span>')


def number(value: float | None) -> str:
    """A number with a true minus; a dash where there is none."""
    return NONE if value is None else numbers.number(value).replace("-", "\N{MINUS SIGN}")


def estimate(found: Interval | tuple[float, ...] | None, most: int = DECIMALS["regret"]) -> Markup:
    """An estimate with its interval."""
    if found is None:
        return Markup(NONE)
    middle, low, high = found[:3]
    value, ends = (text.replace("-", "\N{MINUS SIGN}") for text in estimate_and_interval(middle, low, high, most))
    return Markup(f'<span class="value">{value}</span>' + (f' <span class="range">{ends}</span>' if ends else ""))


def regret(row: Row) -> Markup:
    """A mean regret; 0 where it is not larger than what it may be off."""
    return ZERO if row.zero else estimate(row.mean)


def rate(found: Rate | None) -> Markup:
    """An exponent with its interval."""
    return estimate(None if found is None else found[:3], 3)


def curve(row: Row, values: Iterable[tuple[float, float, float]]) -> Markup:
    """Means at some times with their intervals, as the cells of a line of a table."""
    made = ("0" if row.zero else estimate(each) for each in values)
    return Markup("".join(f'<td class="right">{each}</td>' for each in made))


def chance(found: Interval) -> Markup:
    """A probability in per cent, as a cell that is the darker the larger it is, and bold where 50 is excluded."""
    middle, low, high = (f"{100 * share:.0f}" for share in found[:3])
    sure = "sure" if found.low > 0.5 or found.high < 0.5 else ""
    return Markup(
        f'<td class="heat {sure}" style="--heat: {found.estimate:.2f}"><span class="value">{middle}</span>'
        f'<span class="range">[{low}, {high}]</span></td>'
    )


def tail(row: Row) -> Markup:
    """The 99th percentile and the largest over seeds, with the decimals of the mean."""
    if row.zero or row.mean is None:
        return Markup("0")
    places = numbers.decimals(row.mean.estimate, (row.mean.high - row.mean.low) / 2, DECIMALS["regret"])
    high, most = (
        numbers.number(value or 0.0, places).replace("-", "\N{MINUS SIGN}") for value in (row.q99, row.largest)
    )
    return Markup(f'<span class="value">{high}</span> <span class="range">max {most}</span>')
