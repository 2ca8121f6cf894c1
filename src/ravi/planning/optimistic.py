"""How does an optimistic learner plan? u <- L u, L a backup followed by max_a, until the span of L u - u is small.

For every backup that is monotone and moves constants along with gamma (`ravi.optimism.sets`), delta = L u - u bounds
the fixed point as in `ravi.planning.certificates`: for gamma < 1,

    V = L u + gamma H (min delta + max delta) / 2     is within     gamma H span(delta) / 2     of V = L V,

whatever constant was added to u: so u is kept small, with min u = 0. On the reset chain gamma P + (1 - gamma) 1 nu_0^T
the average-reward recursion u <- max_a {r + gamma <p, u>} + (1 - gamma) <nu_0, u> differs from this by constants only:
it is the same iteration, and its gain lies between (1 - gamma) <nu_0, V> at the two ends. So "discounted" and "average
reward" planning differ in when they stop. The span shrinks by gamma at every sweep: from u = 0 it takes at most
1 + ln(tol) / ln(gamma) sweeps, for rewards of span 1. With gamma = 1 (a learner that is blind to resets), u is mixed
with L u, against periods, and delta / mixing bounds the gain itself.

With a span bound c, L is followed by min(., min + c): the operator of ScOpt (SCAL). It too is monotone, moves constants
along, and shrinks spans by gamma, so all of the above holds of it. Its policy (`truncated`) reaches min L u + c where
L u is more, by mixing the greedy action with one that earns nothing: the optimistic MDP is enlarged by a duplicate of
every action with reward 0, and may choose any plausible kernel for it. That there is a mixture needs no assumption:
every u of the iteration has span(u) <= c, so a duplicate is worth at most gamma max u <= gamma min u + c <= min L u +
c, because rewards are not negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array
from ravi.optimism.sets import Backup

MOST = 100_000  # sweeps of one plan: enough for rewards of span 1 where gamma <= 0.999; near gamma = 1 it may not be


class Plan(NamedTuple):
    u: Array  # L u less its least, of the last sweep          (n, X)
    before: Array  # the u of the last sweep                   (n, X)
    Q: Array  # its backup                                     (n, X, A)
    low: Array  # min of L u - u at the end                    (n,)
    high: Array  # max of L u - u at the end                   (n,)
    least: Array  # what was taken from L u                    (n,)
    sweeps: Array  # how many; MOST where a plan did not end   (n,)


def iterate(backup: Backup, u: Array, actions: int, tol: Array, *, span: float = np.inf, mixing: float = 1.0) -> Plan:
    """Sweep every seed until its own span(L u - u) <= tol (n,), from `u` (n, X), which is not changed."""
    n, X = u.shape
    u, before, Q = u.copy(), np.empty((n, X)), np.empty((n, X, actions))
    low, high, least = np.zeros(n), np.zeros(n), np.zeros(n)
    sweeps, active = np.zeros(n, np.int64), np.ones(n, np.bool_)
    goal = np.asarray(tol, np.float64) + np.zeros(n)
    while True:
        backup(u, active, Q)
        if _settle(Q, goal, span, mixing, u, before, low, high, least, sweeps, active, MOST) == 0:
            return Plan(u, before, Q, low, high, least, sweeps)


def values(plan: Plan, discount: float) -> Array:
    """V = L u + gamma H (low + high) / 2, for gamma < 1   (n, X)."""
    shift = plan.least + discount / (1 - discount) * (plan.low + plan.high) / 2
    return plan.u + shift[:, None]


def greedy(Q: Array) -> Array:
    """The policy that plays the first of the best actions   (n, X, A)."""
    policy = np.zeros(Q.shape)
    np.put_along_axis(policy, Q.argmax(-1)[..., None], 1.0, axis=-1)
    return policy


def truncated(plan: Plan, span: float, idle: Backup) -> Array:
    """The policy of min(L u, min L u + span); `idle` is the backup of the duplicates without reward   (n, X, A)."""
    policy, best = greedy(plan.Q), plan.Q.max(-1)
    ceiling = best.min(-1, keepdims=True) + span
    over = best > ceiling
    if not over.any():
        return policy
    Q = np.empty(plan.Q.shape)
    idle(plan.before, over.any(-1), Q)
    i, x = np.nonzero(over)
    first, a = plan.Q.argmax(-1)[i, x], Q[i, x].argmin(-1)
    high, low = best[i, x], Q[i, x, a]
    weight = np.clip((ceiling[i, 0] - low) / (high - low), 0.0, 1.0)
    policy[i, x, first] = weight
    policy[i, x, a] += 1 - weight
    return policy


@compiled
def _settle(Q, goal, span, mixing, u, before, low, high, least, sweeps, active, most):  # type: ignore[no-untyped-def]
    """u <- L u less its least, where the seed is active; how many still are."""
    n, X, A = Q.shape
    Lu = np.empty(X)
    left = 0
    for i in range(n):
        if not active[i]:
            continue
        bottom = np.inf
        for x in range(X):
            best = Q[i, x, 0]
            for a in range(1, A):
                best = max(best, Q[i, x, a])
            Lu[x] = best
            bottom = min(bottom, best)
        down, up, base = np.inf, -np.inf, np.inf
        for x in range(X):
            value = mixing * min(Lu[x], bottom + span) + (1 - mixing) * u[i, x]
            down, up, base = min(down, value - u[i, x]), max(up, value - u[i, x]), min(base, value)
            Lu[x] = value
        for x in range(X):
            before[i, x], u[i, x] = u[i, x], Lu[x] - base
        low[i], high[i], least[i] = down, up, base
        sweeps[i] += 1
        if up - down <= goal[i] or sweeps[i] >= most:
            active[i] = False
        else:
            left += 1
    return left
