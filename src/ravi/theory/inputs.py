"""Is this number one that the theory speaks of? Plain numbers pass here; what does not is judged by `ravi.checks`.

`ravi.checks` is imported only then, so that good input needs no NumPy.
"""

from __future__ import annotations

from math import inf
from typing import NoReturn

MOST = 2**62  # steps


def positive(value: float, name: str) -> float:
    if isinstance(value, (int, float)) and 0 < value < inf:
        return float(value)
    from ravi import checks

    return checks.positive(value, name)


def nonnegative(value: float, name: str) -> float:
    if isinstance(value, (int, float)) and 0 <= value < inf:
        return float(value)
    from ravi import checks

    return checks.nonnegative(value, name)


def whole(value: float, name: str, least: int = 1) -> int:
    if isinstance(value, int) and least <= value <= MOST:
        return value
    from ravi import checks

    return checks.whole(value, name, least, MOST)


def horizon(value: float) -> float:
    H = positive(value, "horizon")
    if H < 1:
        refuse(f"horizon is {H:g}; it must be at least 1, as H = 1/(1 - gamma)")
    return H


def delta(value: float | None, steps: int) -> float:
    """The probability of failure, in (0, 1]; by default 1/T, as in Theorem 5.6."""
    if value is None:
        return 1 / steps
    result = positive(value, "delta")
    if result > 1:
        refuse(f"delta is {result:g}; it must be at most 1")
    return result


def refuse(message: str) -> NoReturn:
    from ravi.checks import InputError

    raise InputError(message)
