"""Ranges of the numbers that the theory speaks of. Plain numbers pass here; all others are judged by `ravi.validation`.

`ravi.validation` is imported only then, so that good input needs no NumPy.
"""

from math import inf
from typing import Any, NoReturn

MOST = 2**62  # steps


def positive(value: float, name: str) -> float:
    """A positive number."""
    plain = isinstance(value, (int, float)) and 0 < value < inf
    return float(value) if plain else _checks().positive(value, name)


def nonnegative(value: float, name: str) -> float:
    """A number that is not negative."""
    plain = isinstance(value, (int, float)) and 0 <= value < inf
    return float(value) if plain else _checks().nonnegative(value, name)


def whole(value: float, name: str, least: int = 1) -> int:
    """A whole number."""
    if isinstance(value, int) and least <= value <= MOST:
        return value
    found: int = _checks().whole(value, name, least, MOST)
    return found


def horizon(value: float) -> float:
    """H, at least 1."""
    H = positive(value, "horizon")
    return H if H >= 1 else refuse(f"horizon is {H:g}; it must be at least 1, as H = 1/(1 - gamma)")


def choices(horizon_: float, actions: int, steps: int) -> tuple[float, int, int]:
    """H, A and T."""
    return horizon(horizon_), whole(actions, "actions"), whole(steps, "steps")


def table(horizon_: float, states: int, actions: int, steps: int) -> tuple[float, int, int, int]:
    """H, X, A and T."""
    H, A, T = choices(horizon_, actions, steps)
    return H, whole(states, "states"), A, T


def regression(
    horizon_: float, dimension: int, steps: int, bound: float, regularization: float, failure: float | None = None
) -> tuple[float, int, int, float, float, float]:
    """H, d, T, B, lambda and delta."""
    T, B, lam = whole(steps, "steps"), positive(bound, "bound"), positive(regularization, "regularization")
    return horizon(horizon_), whole(dimension, "dimension"), T, B, lam, delta(failure, T)


def delta(value: float | None, steps: int) -> float:
    """The probability of failure, in (0, 1]; by default 1/T, as in Theorem 5.6."""
    result = 1 / steps if value is None else positive(value, "delta")
    return result if result <= 1 else refuse(f"delta is {result:g}; it must be at most 1")


def refuse(message: str) -> NoReturn:
    """An error with this message."""
    raise _checks().InputError(message)


def _checks() -> Any:
    from ravi import validation

    return validation
