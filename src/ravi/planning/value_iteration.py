"""How does value iteration solve an MDP? W <- T W, centred, until the span of T W - W is small enough.

The span shrinks by gamma a sweep at least, and by the second eigenvalue of the chain where that is smaller, so there is
no need to wait for gamma^n H to vanish (Puterman 2005, Section 6.6.2).
"""

import numpy as np

from ravi._jit.functions import compiled
from ravi.planning.certificates import Tables, centre, span_goal, sweep_limit
from ravi.planning.sweeps import Sweep, bellman_sweep


def value_iteration(tables: Tables, tol: float) -> Sweep:
    return Sweep(*_value_iteration(tables, tol))


@compiled
def _value_iteration(tables, tol):  # type: ignore[no-untyped-def]
    X, A = tables.rewards.shape
    W, TW = np.zeros(X), np.empty(X)
    Q = np.empty((X, A))
    greedy = np.empty(X, np.int64)
    limit = sweep_limit(tables.discount, tables.grain)
    n = 0
    while True:
        low, high, size = bellman_sweep(0, W.shape[0], tables, W, Q, TW, greedy)
        n += 1
        if high - low <= span_goal(tol, size, tables.discount, tables.grain) or n >= limit:
            return Q, TW, greedy, low, high, size, n
        W, TW = TW, W
        centre(W)
