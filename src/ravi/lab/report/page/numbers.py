"""How is a number written, and what is a sentence made of? Words, names and numbers.

Names come from the folder, and are escaped where they are shown. A number carries the value that it was made from and
what it is, so that a test can compute it again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ravi.statistics.intervals import Interval

MINUS = "\N{MINUS SIGN}"


class Name(NamedTuple):
    text: str


class Number(NamedTuple):
    value: float
    shown: str
    what: tuple[str | int, ...]  # which number it is, and of what


Sentence = tuple[str | Name | Number, ...]


def written(value: float, scale: float | None = None) -> str:
    """Four digits, or as many decimals as a number of this scale would have."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value if scale is None else scale)
    if size != 0 and size < 1e-3:
        mantissa, _, power = f"{abs(value):.1e}".partition("e")
        raised = str(int(power)).replace("-", "⁻").translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        sign = MINUS if value < 0 else ""
        return "0" if value == 0 else f"{sign}{mantissa} × 10{raised}"
    decimals = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3 if size else 0
    shown = f"{abs(value):,.{decimals}f}"
    return f"{MINUS}{shown}" if value < 0 and float(shown.replace(",", "")) != 0 else shown


def range_of(found: Interval) -> str:
    """[low, high]; nothing where one seed gives no ends."""
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return ""
    scale = max(abs(found.estimate), (found.high - found.low) / 2)
    return f"[{written(found.low, scale)}, {written(found.high, scale)}]"


def percent(level: float) -> str:
    return f"{100 * level:.4g} %"


def count(n: int, *what: str | int) -> Number:
    return Number(n, str(n), what)


def estimate(found: Interval, *what: str | int) -> Sentence:
    """The estimate with its interval, as three numbers."""
    head: Sentence = (Number(found.estimate, written(found.estimate), ("estimate", *what)),)
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return head
    scale = max(abs(found.estimate), (found.high - found.low) / 2)
    low = Number(found.low, written(found.low, scale), ("low", *what))
    high = Number(found.high, written(found.high, scale), ("high", *what))
    return (*head, " [", low, ", ", high, "]")


def joined(parts: Sequence[Sentence]) -> Sentence:
    made: list[str | Name | Number] = []
    for i, part in enumerate(parts):
        made += [] if i == 0 else [" and " if i == len(parts) - 1 else ", "]
        made += part
    return tuple(made)
