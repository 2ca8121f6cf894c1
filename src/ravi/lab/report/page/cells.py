"""How is a number written into a cell? As HTML of numbers and fixed words: nothing of it comes from the folder.

A page of many learners has a hundred thousand of them; macros of the template would take most of its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from markupsafe import Markup

from ravi.lab.report.page.numbers import range_of, written

if TYPE_CHECKING:
    from ravi.lab.report.page.data import Line
    from ravi.statistics.intervals import Interval
    from ravi.statistics.rates import Rate

NONE = Markup("–")
NOTHING = Markup('<span class="value">0</span> <span class="range">(to its certified error)</span>')


def estimate(found: Interval) -> Markup:
    """An estimate with its interval."""
    return _with(written(found.estimate), range_of(found))


def regret(line: Line, mean: Interval) -> Markup:
    """A mean regret; 0 where it is not larger than what it may be off."""
    return NOTHING if line.nothing else estimate(mean)


def rate(found: Rate | None) -> Markup:
    """An exponent with its interval."""
    if found is None:
        return NONE
    known = math.isfinite(found.low) and math.isfinite(found.high)
    return _with(written(found.exponent, 1.0), f"[{written(found.low, 1.0)}, {written(found.high, 1.0)}]" * known)


def curve(line: Line, values: Iterable[tuple[float, float, float]]) -> Markup:
    """Means at some times with their intervals, as the cells of a row."""
    nothing, made = line.nothing, []
    for mean, low, high in values:
        known = math.isfinite(low) and math.isfinite(high) and not nothing
        rest = f' <span class="range">[{written(low, mean)}, {written(high, mean)}]</span>' if known else ""
        made.append(f'<td class="right">{"0" if nothing else written(mean)}{rest}</td>')
    return Markup("".join(made))


def chance(found: Interval) -> Markup:
    """A probability in per cent, as a cell that is the darker the larger it is, and bold where 50 is excluded."""
    middle, low, high = (f"{100 * share:.0f}" for share in found[:3])
    sure = "sure" if found.low > 0.5 or found.high < 0.5 else ""
    return Markup(
        f'<td class="heat {sure}" style="--heat: {found.estimate:.2f}"><span class="value">{middle}</span>'
        f'<span class="range">[{low}, {high}]</span></td>'
    )


def _with(value: str, rest: str) -> Markup:
    return Markup(f'<span class="value">{value}</span>' + (f' <span class="range">{rest}</span>' if rest else ""))
