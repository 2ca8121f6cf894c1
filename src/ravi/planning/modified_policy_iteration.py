"""How does modified policy iteration solve an MDP? Sweeps of all actions, and many cheap ones of the greedy policy.

A sweep of the greedy policy costs one A-th of a sweep of all actions, so the policy is swept until the span of the
change is a twentieth of what the last full sweep left. Up to constants, which change no policy and no span, this is
Puterman's modified policy iteration from V = T 0, which needs no more full sweeps than value iteration (Puterman 2005,
Section 6.5). Where sweeps of a policy are slow, a Krylov method solves for its values (`chains.approach`). Where many
states lead to near ones only, policies are improved within their band first (`ravi.planning.banded`).
"""

import numpy as np

from ravi._jit.functions import compiled
from ravi.planning.banded import start_of
from ravi.planning.certificates import Tables, centre, span_goal, sweep_limit
from ravi.planning.chains import Chain, approach
from ravi.planning.sweeps import Sweep, bellman_sweep

SHRINK = 0.05  # 0.01 to 0.2 take at most an eighth longer, on random MDPs and on grids
MOST = 1000  # sweeps of one policy


def modified_policy_iteration(tables: Tables, tol: float) -> Sweep:
    X, _, B = tables.transitions.shape
    rows = Chain(np.arange(0, X * B + 1, B, dtype=np.uint32), np.empty(X * B, np.uint32), np.empty(X * B), np.empty(X))
    return Sweep(*_modified_policy_iteration(tables, tol, *start_of(tables), np.full(X, -1), rows))


@compiled
def _modified_policy_iteration(tables, tol, W, n, followed, chain):  # type: ignore[no-untyped-def]
    """From W, centred, which took n passes. followed, chain: of no policy yet."""
    gamma, grain = tables.discount, tables.grain
    X, A, _ = tables.transitions.shape
    TW = np.empty(X)
    Q = np.empty((X, A))
    greedy = np.empty(X, np.int64)
    limit = sweep_limit(gamma, grain)
    steps = 0
    while True:
        low, high, size = bellman_sweep(0, W.shape[0], tables, W, Q, TW, greedy)
        steps, n = steps + 1, n + 1
        goal = span_goal(tol, size, gamma, grain)
        if high - low <= goal or steps >= limit:
            return Q, TW, greedy, low, high, size, n
        follow(0, X, tables, greedy, followed, chain)
        W, TW = TW, W
        centre(W)
        W, sweeps = approach(chain, gamma, W, max(SHRINK * (high - low), goal / 2), MOST)
        n += sweeps
        centre(W)


@compiled
def follow(begin, end, tables, greedy, followed, chain):  # type: ignore[no-untyped-def]
    """Make `chain` that of the greedy policy: only the rows of states whose action has changed are written, of states
    begin, ..., end - 1."""
    B = tables.transitions.shape[2]
    for x in range(begin, end):
        a = greedy[x]
        if a != followed[x]:
            followed[x] = a
            chain.source[x] = tables.rewards[x, a]
            for j in range(B):
                chain.state[x * B + j] = tables.successors[x, a, j]
                chain.weight[x * B + j] = tables.transitions[x, a, j]
