"""What are many mirror steps of one seed? Those of `ravi.planning.mirror`, with all rows worked on side by side.

Arrays have actions first, so that loops over states have no branch and neighbours in memory, and LLVM vectorises them:
the same operations, and the same bits.
"""

import math

from ravi.compiled import compiled
from ravi.planning.mirror import far_step, is_far
from ravi.planning.near_zero import near_expm1, near_log1p
from ravi.teams import each


@compiled
def step_in_columns(log_policy, policy, Q, step, V, tilted, s, share, rate):  # type: ignore[no-untyped-def]
    """`step_in_place` of one seed, whose arrays have actions first: (A X,), for pairs a X + x. Of log pi only that of
    sleeping actions is carried on; `log_in_columns` has the others. The last four are scratch: pi (1 + expm1(z)) of
    pairs, and three numbers of each row (X,). A team's."""
    X = V.shape[0]
    for x in each(X):
        V[x], s[x], share[x], rate[x] = Q[x], 0.0, 0.0, step
    for c in range(X, Q.shape[0], X):
        q = Q[c : c + X]
        for x in each(X):
            V[x] = max(V[x], q[x])
    for c in range(0, Q.shape[0], X):
        log_pi, pi, q, w = log_policy[c : c + X], policy[c : c + X], Q[c : c + X], tilted[c : c + X]
        for x in each(X):
            z = step * (q[x] - V[x])
            gain = pi[x] * near_expm1(z)
            now = pi[x] + gain
            w[x], s[x], share[x] = now, s[x] + gain, share[x] + now
            rate[x] = 0.0 if is_far(log_pi[x], pi[x], z) else rate[x]
    for x in each(X):
        share[x] = 1.0 / share[x] if s[x] != 0.0 else 1.0
        s[x] = near_log1p(max(s[x], -0.5))
    for x in each(X):
        if rate[x] == 0.0:  # what follows then changes nothing
            V[x] = far_step(log_policy[x::X], policy[x::X], Q[x::X], V[x], step)
            s[x], share[x] = 0.0, 1.0
            for c in range(x, Q.shape[0], X):
                tilted[c] = policy[c]
    for c in range(0, Q.shape[0], X):
        log_pi, pi, q, w = log_policy[c : c + X], policy[c : c + X], Q[c : c + X], tilted[c : c + X]
        for x in each(X):
            log_pi[x] += rate[x] * (q[x] - V[x]) - s[x]
            pi[x] = w[x] * share[x]
    for x in each(X):
        V[x] += s[x] / step


@compiled
def log_in_columns(log_before, before, log_pi, pi):  # type: ignore[no-untyped-def]
    """log pi of an action after steps in columns; log_before and before: log pi and pi before them."""
    if pi == 0.0:
        return log_pi
    return math.log(pi) if pi != before else log_before
