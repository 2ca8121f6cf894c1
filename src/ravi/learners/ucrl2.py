"""UCRL2: optimism in the face of uncertainty, over L1 balls around the empirical kernel.

Paper: T. Jaksch, R. Ortner, P. Auer, "Near-optimal regret bounds for reinforcement learning", JMLR 11, 2010.
Setting: average reward, tabular, communicating.
Trust: CHECKED: radii, stopping rule and phases against the authors' text and public code.

In phase k, which starts at t_k, with n the plays of (x, a) before it:

    ||p - p_hat(. | x, a)||_1 <= d(x, a) = sqrt(14 X ln(2 A t_k / delta) / max(1, n))
    u'(x) = max_a {r(x, a) + max_p <p, u>}                       until span(u' - u) <= 1 / sqrt(t_k)
    play the greedy policy until some pair has been played max(1, n) times in the phase.

Constants: the paper's, with delta = 1/T. `scale` multiplies d.
Guarantee: regret 34 D X sqrt(A T ln(T / delta)) with probability 1 - delta, D the diameter.
Composition: counts from 0 x L1 ball x extended value iteration x doubling.
Cost: O(1) per step; X A B per sweep, B the successors stored per pair; at most X A log2(8 T / (X A)) plans.
Deviations: rewards are known, so the paper's reward radius is 0; the reset chain is planned and scored, and u starts
where the last phase ended (`ravi.learners.extended`). The paper ends a phase when the pair that it is about to play has
had its plays; here a phase ends right after the play that makes them so many, whatever comes next. The paper stops a
plan at a span below 1 / sqrt(t_k); here one that is equal will do.
"""

from __future__ import annotations

import numpy as np

from ravi import checks
from ravi.core import Array, Learner, Problem
from ravi.estimators.counts import Counts
from ravi.learners.extended import extended
from ravi.optimism.sets import Backup, l1


def ucrl2(
    problem: Problem,
    steps: int,
    *,
    scale: float = 1.0,
    delta: float | None = None,
    mode: str = "aware",
    planning: str = "average",
) -> Learner:
    """UCRL2 with its published radii; `scale` multiplies them."""
    T = checks.steps(steps)
    delta = checks.delta(delta, T)
    scale = checks.nonnegative(scale, "scale")
    one = np.ones((1, problem.states, problem.actions))
    checks.derived(lambda: scale * float(radius(one, np.array([T]), delta).max()), "the radius", scale=scale)

    def plausible(r: Array, successors: Array, gamma: float, D: Counts, t: Array) -> Backup:
        return l1(r, successors, gamma, D, scale * radius(D.visits, t, delta))

    return extended(
        problem, plausible, name="ucrl2", mode=mode, planning=planning, settings={"scale": scale, "delta": delta}
    )


def radius(visits: Array, t: Array, delta: float) -> Array:
    """d(x, a) at time t (n,), of shape (n, X, A)."""
    _, X, A = visits.shape
    return np.sqrt(14 * X * np.log(2 * A * t / delta)[:, None, None] / np.maximum(visits, 1))
