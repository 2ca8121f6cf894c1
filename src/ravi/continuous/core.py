"""Problems with continuous states: a box, finitely many actions, d simulators with densities, a start.

    P(. | x, a) = sum_i theta_i psi_i(x, a, .),   theta on the simplex,   psi_i(x, a, y) = prod_c psi_ic(x, a, y_c)

A simulator's successor has independent coordinates, given (x, a): noise that is added to each. So a density is one
function of one coordinate, and integrals are on tensor grids. Its functions are compiled: write them as plain functions
that Numba can compile, or decorated by `numba.njit`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array

SUCCESSOR_LANE = 8  # `draw` may use the numbers of step t from this one on
BEGIN_LANE = 1 << 20  # `begin` from this one on


class Functions(NamedTuple):
    """Pointers to compiled functions, of one type for all problems: loops over them are compiled once."""

    factor: Any
    draw: Any
    reward: Any
    initial: Any
    begin: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class ContinuousProblem:
    """What a learner is told: everything but theta."""

    low: Array  # of the box   (D,)
    high: Array  # likewise    (D,)
    actions: int  # A
    simulators: int  # d
    discount: float  # gamma
    constants: Array  # what the functions are given first   (C,)
    factor: Callable[..., None]  # constants, i, x, a, c, points, out: out[j] <- psi_ic(x, a, points[j])
    draw: Callable[..., None]  # constants, i, x, a, key, t, lane, out: out <- y ~ psi_i(x, a, .), by lanes from this on
    reward: Callable[..., float]  # constants, x, a: r(x, a) in [0, 1]
    initial: Callable[..., None]  # constants, c, points, out: the density of coordinate c of x_1 ~ nu_0
    begin: Callable[..., None]  # constants, key, t, lane, out: out <- x ~ nu_0
    periodic: tuple[bool, ...] = ()  # axes whose ends are one point; none unless given
    name: str = "continuous"

    def __post_init__(self) -> None:
        low, high = (np.atleast_1d(validation.finite(getattr(self, end), end)).astype(float) for end in ("low", "high"))
        validation.check_shape(high, low.shape, "high", "(D,), as low is")
        if not (low < high).all():
            (c,) = validation.first(~(low < high))
            raise validation.InputError(f"low[{c}] is {low[c]:g}, but high[{c}] is {high[c]:g}")
        periodic = tuple(bool(one) for one in self.periodic) or (False,) * low.size
        if len(periodic) != low.size:
            raise validation.InputError(f"periodic has {len(periodic)} entries, but the box has {low.size} axes")
        values = {
            "low": low,
            "high": high,
            "periodic": periodic,
            "actions": validation.whole(self.actions, "actions"),
            "simulators": validation.whole(self.simulators, "simulators"),
            "discount": validation.probability(self.discount, "discount"),
            "constants": np.array(np.atleast_1d(validation.finite(self.constants, "constants")), float),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def axes(self) -> int:
        return int(self.low.size)  # D

    @property
    def dimension(self) -> int:
        return self.simulators  # d

    @property
    def horizon(self) -> float:
        return 1 / (1 - self.discount)  # H

    @cached_property
    def functions(self) -> Functions:
        """The compiled functions; this takes a second, once for all problems that share them."""
        from numba import types

        row, real, whole = types.Array(types.float64, 1, "C"), types.float64, types.int64
        key = types.uint64
        return Functions(
            _pointer(self.factor, types.void(row, whole, row, whole, whole, row, row)),
            _pointer(self.draw, types.void(row, whole, row, whole, key, whole, whole, row)),
            _pointer(self.reward, real(row, row, whole)),
            _pointer(self.initial, types.void(row, whole, row, row)),
            _pointer(self.begin, types.void(row, key, whole, whole, row)),
        )

    def __repr__(self) -> str:
        box = " x ".join(f"[{low:.3g}, {high:.3g}]" for low, high in zip(self.low, self.high, strict=True))
        return (
            f"<{type(self).__name__} {self.name}: {box}, A={self.actions}, d={self.dimension}, gamma={self.discount:g}>"
        )


@dataclass(frozen=True, eq=False)
class ContinuousMDP:
    """A problem and its truth."""

    problem: ContinuousProblem
    parameter: Array  # theta   (d,)

    def __post_init__(self) -> None:
        theta = validation.distribution(self.parameter, self.problem.dimension, "parameter")
        object.__setattr__(self, "parameter", theta)

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def discount(self) -> float:
        return self.problem.discount


@cache
def _pointer(function: Callable[..., Any], signature: Any) -> Any:
    from numba import cfunc

    return cfunc(signature, error_model="numpy")(getattr(function, "py_func", function))
