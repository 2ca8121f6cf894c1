"""What are many mirror steps of one seed? Those of `ravi.planning.mirror`, with all rows worked on side by side.

Arrays have actions first, so that loops over states have no branch and neighbours in memory, and LLVM vectorises them:
the same operations, and the same bits. An action has one number: pi, or log pi < 0 where it sleeps.
"""

import math

from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.planning.mirror import AWAKE, LEAST, far_step
from ravi.planning.near_zero import STEEP, near_expm1, near_log1p


@compiled
def step_in_columns(rows, policy, Q, top, step, V, tilted, s, share, far):  # type: ignore[no-untyped-def]
    """`step_in_place` of so many rows of one seed, whose arrays have actions first: (A W,), for pairs a W + x. top: the
    largest Q of each row (W,). The last four are scratch: what pi is to be in proportion to, of pairs, and three
    numbers of each row. A team's."""
    W = V.shape[0]
    for x in each(rows):
        s[x], share[x], far[x] = 0.0, 0.0, 0.0
    for c in range(0, Q.shape[0], W):
        pi, q, w = policy[c : c + rows], Q[c : c + rows], tilted[c : c + rows]
        for x in each(rows):
            z, awake = step * (q[x] - top[x]), max(pi[x], 0.0)
            gain = awake * near_expm1(max(z, STEEP))
            now = awake + gain
            s[x], share[x] = s[x] + gain, share[x] + now
            w[x] = now if pi[x] > 0.0 else pi[x] + z
            far[x] = 1.0 if (z < STEEP if pi[x] >= LEAST else pi[x] > AWAKE) else far[x]  # as `is_far`
    for x in each(rows):
        share[x] = 1.0 / share[x] if s[x] != 0.0 else 1.0
        s[x] = near_log1p(max(s[x], -0.5))
        V[x] = top[x] + s[x] / step
    for x in each(rows):
        if far[x] != 0.0:
            V[x], s[x], share[x] = _far_column(policy[x::W], Q[x::W], top[x], step, tilted[x::W]), 0.0, 1.0
    for c in range(0, Q.shape[0], W):
        pi, w = policy[c : c + rows], tilted[c : c + rows]
        for x in each(rows):
            pi[x] = w[x] * share[x] if w[x] > 0.0 else w[x] - s[x]


@compiled
def _far_column(policy, q, m, step, tilted):  # type: ignore[no-untyped-def]
    """V of a row by `far_step`; `tilted` becomes what the policy is to be."""
    for a in range(len(q)):
        tilted[a], policy[a] = policy[a], max(policy[a], 0.0)
    V = far_step(tilted, policy, q, m, step)
    for a in range(len(q)):
        tilted[a] = in_columns(tilted[a], policy[a])
    return V


@compiled
def in_columns(log_pi, pi):  # type: ignore[no-untyped-def]
    """The one number of an action."""
    return pi if pi > 0.0 else log_pi


@compiled
def in_rows(log_before, before, number):  # type: ignore[no-untyped-def]
    """log pi and pi of an action by its number; log_before and before: log pi and pi before steps in columns."""
    if number <= 0.0:
        return number, 0.0
    return math.log(number) if number != before else log_before, number
