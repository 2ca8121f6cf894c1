"""The one format of numbers in tables, on the page and in the live view.

An estimate has as many digits as its interval warrants: half the interval's width is shown with two.
"""

import math
import re

SIGNIFICANT = 6  # digits of an estimate, at most
PLAIN = 4  # digits of a number without an interval
SMALL = 8  # decimals from which on a number is written with a power of ten
NONE = "\N{EN DASH}"  # stands for a number that there is not
DECIMALS = {"regret": 4, "trajectory_regret": 4, "gap": 8}  # at most: below, it is rounding (certified errors)


def decimals(estimate: float, half: float = math.inf, most: int | None = None) -> int:
    """How many decimals are shown of an estimate that is known to within `half`; what is whole is not rounded further,
    as in figures and on the page."""
    digits = SIGNIFICANT if math.isfinite(half) else PLAIN
    limit = digits - 1 - (math.floor(math.log10(abs(estimate))) if estimate else 0)
    limit = limit if most is None else min(limit, most)
    known = 1 - math.floor(math.log10(half)) if math.isfinite(half) and half > 0 else limit
    return max(0, min(limit, known))


def number(value: float, places: int | None = None) -> str:
    """A number with commas and so many decimals; unless they are given, with four digits at most."""
    if not math.isfinite(value):
        return NONE if math.isnan(value) else "∞" if value > 0 else "-∞"
    if places is None:
        places = decimals(value)
        if places > SMALL:
            return f"{value:.{PLAIN - 1}e}"
        return re.sub(r"(\.\d*?)0+$", r"\1", f"{value:,.{places}f}").rstrip(".")
    return f"{round(value, places) + 0.0:,.{places}f}"


def brief(value: float) -> str:
    """A number in four or five characters, as in the cells of a matrix."""
    size = abs(value)
    if size < 1e-6:
        return "0"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{value / limit:.0f}{unit}" if size >= 10 * limit else f"{value / limit:.1f}{unit}"
    return f"{value:.0f}" if size >= 10 else f"{value:.2g}"


def estimate_and_interval(estimate: float, low: float, high: float, most: int | None = None) -> tuple[str, str]:
    """`1,048` and `[976, 1,120]`, with `most` decimals; no interval where it has no ends, or they read the same."""
    half = (high - low) / 2
    places = decimals(estimate, half, most)
    text = number(estimate, places)
    if not math.isfinite(half) or number(low, places) == text == number(high, places):
        return text, ""
    return text, f"[{number(low, places)}, {number(high, places)}]"


def percent(share: float) -> str:
    """`95%`."""
    return f"{100 * share:g}%"
