"""The one-dimensional example: a level in [0, 1], pushed by actions whose effect is not known.

    psi_i(x, a, .) = Beta(kappa m_i(x, a), kappa (1 - m_i(x, a))),   m_i(x, a) = 1/2 + 2/5 tanh(5/2 (x + s_ia - 1/2))

Three simulators, three actions (down, stay, up): in the first actions do what they say, in the second the opposite, in
the third, which drifts, next to nothing. A level near 0.15 earns a little, one near 0.85 everything. It begins low.
Both parameters of every Beta are at least kappa / 10, so densities are bounded, and smooth inside.
"""

import math
from typing import Any

import numpy as np

from ravi._jit.functions import compiled
from ravi.continuous import draws
from ravi.continuous.core import ContinuousMDP, ContinuousProblem
from ravi.core import Array

SHIFTS = ((-0.2, 0.0, 0.25), (0.2, 0.0, -0.2), (-0.1, 0.1, -0.1))  # s_ia of the simulators
KAPPA = 40.0  # below 10 densities would be unbounded
TRUTH = (0.45, 0.3, 0.25)
START = (3.0, 9.0)  # nu_0 = Beta(3, 9)


def level(weights: Any = TRUTH, *, discount: float = 0.9) -> ContinuousMDP:
    """The example; `weights` is theta."""
    d, A = np.shape(SHIFTS)
    problem = ContinuousProblem(
        low=np.zeros(1), high=np.ones(1), actions=A, simulators=d, discount=discount,
        constants=np.concatenate([[KAPPA, A], np.ravel(SHIFTS)]), factor=_factor, draw=_draw, reward=_reward,
        initial=_initial, begin=_begin, name="level",
    )  # fmt: skip
    return ContinuousMDP(problem, weights)


@compiled
def mean(constants, i, x, a):  # type: ignore[no-untyped-def]
    return 0.5 + 0.4 * math.tanh(2.5 * (x + constants[2 + i * int(constants[1]) + a] - 0.5))


@compiled
def density(p, q, points, out):  # type: ignore[no-untyped-def]
    """The density of Beta(p, q), which is 0 at both ends because p, q > 1."""
    constant = math.lgamma(p + q) - math.lgamma(p) - math.lgamma(q)
    for j in range(points.shape[0]):
        y = points[j]
        inside = 0.0 < y < 1.0
        out[j] = math.exp(constant + (p - 1.0) * math.log(y) + (q - 1.0) * math.log1p(-y)) if inside else 0.0


def _factor(constants: Array, i: int, x: Array, a: int, c: int, points: Array, out: Array) -> None:
    m = mean(constants, i, x[0], a)
    density(constants[0] * m, constants[0] * (1.0 - m), points, out)


def _draw(constants: Array, i: int, x: Array, a: int, key: int, t: int, lane: int, out: Array) -> None:
    m = mean(constants, i, x[0], a)
    out[0] = draws.beta(constants[0] * m, constants[0] * (1.0 - m), key, t, lane)[0]


def _reward(constants: Array, x: Array, a: int) -> float:
    high, low = math.exp(-(((x[0] - 0.85) / 0.1) ** 2)), math.exp(-(((x[0] - 0.15) / 0.1) ** 2))
    return 0.95 * high + 0.2 * low + (0.05 if a != 2 else 0.0) * (1.0 - high) * (1.0 - low)


def _initial(constants: Array, c: int, points: Array, out: Array) -> None:
    density(START[0], START[1], points, out)


def _begin(constants: Array, key: int, t: int, lane: int, out: Array) -> None:
    out[0] = draws.beta(START[0], START[1], key, t, lane)[0]
