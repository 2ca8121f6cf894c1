"""Extended value iteration of all seeds, as arrays: around the compiled functions of one seed that learners plan by."""

import numpy as np

from ravi.compiled import bound
from ravi.optimism import extended_value_iteration as optimistic


def values(plan, discount):
    """V = L u + gamma H (low + high) / 2, for gamma < 1   (n, X)."""
    shift = plan.least + discount / (1 - discount) * (plan.low + plan.high) / 2
    return plan.u + shift[:, None]


def least(backup):
    """The minimum over the same sets: Q = -rewards + gamma min <p, V>."""
    own, loop = backup.own, bound(optimistic._least, most=backup.sets.most, prepare=backup.sets.prepare)

    def pessimistic(V, active, Q):
        for i in np.flatnonzero(active):
            out = np.empty(own.visits.shape[1])
            loop(own, i, i, V[i].copy(), out)
            Q[i] = (out - own.rewards[i if len(own.rewards) > 1 else 0]).reshape(Q.shape[1:])

    return pessimistic


def truncated(plan, span, idle):
    """The policy of min(L u, min L u + span); `idle` is the backup of the duplicates without reward   (n, X, A)."""
    n, X, A = plan.Q.shape
    policy, Lu, other = np.full((n, X, A), np.nan), np.empty(X), np.empty((n, X, A))
    for i in range(n):
        Q = plan.Q[i].ravel()
        ceiling, over = optimistic.cut(Q, Lu, span)
        if over:
            idle(plan.before, np.arange(n) == i, other)
        optimistic.act(Q, Lu, ceiling, over, other[i].ravel(), policy[i])
    return policy
