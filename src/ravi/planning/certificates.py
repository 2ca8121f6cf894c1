"""Certificates: one sweep bounds how far an answer is from the truth, rounding included.

For any V let delta = T V - V, and let pi be greedy for V. Then (MacQueen 1966; Puterman 2005, Theorem 6.6.3)

    T V + gamma H min delta  <=  V^pi  <=  V*  <=  T V + gamma H max delta,

and the same holds of Q^pi and Q* with r + gamma P V in place of T V. For one policy, with T_pi in place of T, V^pi
itself lies between the bounds. So the middle of the interval is within gamma H span(delta) / 2 of the truth. Adding a
constant to V adds none to the span: V is kept as W, small and centred at zero, and the constant is put back at the end.

Rounding. The numbers of the MDP are exact; rows that miss the sum one by a rounding error or two stand for the
distribution that is proportional to them. One entry of T W - W is then computed to within

    rho = grain (1 + max |W|),   grain = 2^-52 (B + 12) + the largest |row sum - 1|,

because its sums have B terms, each step errs by at most 2^-53 of what it handles, and the sum of a row is itself known
to 2^-53 B. The term 12 pays for what is done once: r + ., gamma * ., the shift to the middle, H. The sum over actions
of T_pi adds 2^-52 A, and the largest |row sum - 1| of pi, to the grain. Hence

    error = H (gamma span(delta) / 2 + rho).

With W centred, max |W| is half the span of V, often far below H, so H rho is far below the 2^-52 B H^2 that the worst
case allows.
"""

import math
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import MDP, Array
from ravi.validation import OF_CRITERION, InputError

EPS = 2.0**-52


class Tables(NamedTuple):
    """What the compiled loops read of an MDP."""

    rewards: Array  # (X, A)
    successors: Array  # (X, A, B), unsigned: no test for negative indices, a fifth of the time of a sweep
    transitions: Array  # (X, A, B)
    discount: float
    grain: float


def tables(mdp: MDP, *, average: bool = False) -> Tables:
    """The tables of an MDP; an error where it has no discount, unless what asks for them needs none (`average`)."""
    if mdp.discount == 1 and not average:
        raise InputError(f"{mdp.name} is {OF_CRITERION[mdp.criterion]}, and this is for a discount")
    P, off = _divided(mdp.transitions)
    grain = EPS * (mdp.branching + 12) + off
    return Tables(mdp.rewards, mdp.successors.view(np.uint32), P, mdp.discount, grain)


def distributions(weights: np.ndarray) -> np.ndarray:
    """The same rows; those that miss the sum one by more than rounding divided by their sum. Read-only."""
    return _divided(weights)[0]


def _divided(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """`distributions`, and the largest |row sum - 1| that is left."""
    slack = EPS * weights.shape[-1]
    rows = np.ascontiguousarray(weights).view()
    rows.flags.writeable = False  # one type, one compilation
    off = miss(rows)
    if off <= slack:
        return rows, off
    total = rows.sum(-1, keepdims=True)
    rows = rows / np.where(np.abs(total - 1) > slack, total, 1.0)  # a row does not depend on the others
    rows.flags.writeable = False
    return rows, miss(rows)


@compiled
def miss(weights):  # type: ignore[no-untyped-def]
    """The largest |row sum - 1|."""
    entries, many, worst = weights.ravel(), weights.shape[-1], 0.0
    for i in range(entries.shape[0] // many):
        total = 0.0
        for j in range(many):
            total += entries[i * many + j]
        worst = max(worst, abs(total - 1.0))
    return worst


@compiled
def half_width(low, high, size, gamma, grain):  # type: ignore[no-untyped-def]
    """The error of the middle, when delta lies in [low, high] and |W| <= size."""
    return (gamma * (high - low) / 2 + grain * (1.0 + size)) / (1.0 - gamma)


@compiled
def span_goal(tol, size, gamma, grain):  # type: ignore[no-untyped-def]
    """The span of delta that gives `tol`, or below which rounding is two thirds of the error and more."""
    rho = grain * (1.0 + size)
    return max(2.0 * (tol * (1.0 - gamma) - rho), rho) / gamma


@compiled
def sweep_limit(gamma, grain):  # type: ignore[no-untyped-def]
    """After so many sweeps from V in [0, H], exact arithmetic would have 2 gamma^n H <= grain: the rest is rounding."""
    return 2 + int(math.log(grain * (1.0 - gamma) / 2) / math.log(gamma))


@compiled
def centre(W):  # type: ignore[no-untyped-def]
    """Move W, in place, so that its greatest value is minus its least."""
    low, high = np.inf, -np.inf
    for x in range(W.shape[0]):
        low = min(low, W[x])
        high = max(high, W[x])
    middle = (low + high) / 2
    for x in range(W.shape[0]):
        W[x] -= middle


@compiled
def mean(weights, values):  # type: ignore[no-untyped-def]
    """sum(weights * values) / sum(weights) to a few units of rounding, whatever the length (compensated sums)."""
    above, above_rest, below, below_rest = 0.0, 0.0, 0.0, 0.0
    for x in range(weights.shape[0]):
        term = weights[x] * values[x]
        total = above + term
        part = total - above
        above_rest += (above - (total - part)) + (term - part)
        above = total
        total = below + weights[x]
        part = total - below
        below_rest += (below - (total - part)) + (weights[x] - part)
        below = total
    return (above + above_rest) / (below + below_rest)
