"""How does policy iteration solve an MDP? The values of a policy, solved for, and the policy that is greedy for them.

Howard (1960). An action gives way only to one that is better by more than rounding. Where rounding leads back to a
policy that was seen before, there is nothing left to improve.
"""

import numpy as np

from ravi.planning.certificates import Tables, span_goal
from ravi.planning.evaluation import relative_values
from ravi.planning.solver import deterministic
from ravi.planning.sweeps import Sweep, bellman_sweep


def policy_iteration(tables: Tables, tol: float) -> Sweep:
    gamma, grain = tables.discount, tables.grain
    X, A = tables.rewards.shape
    Q, TW, greedy = np.empty((X, A)), np.empty(X), np.empty(X, np.int64)
    states = np.arange(X)
    actions = tables.rewards.argmax(-1)
    seen: set[bytes] = set()
    W, n, size = np.zeros(X), 0, 0.0
    while True:
        seen.add(actions.tobytes())
        goal = span_goal(tol, size, gamma, grain)
        W, sweeps = relative_values(tables, deterministic(actions, A), W, goal / 2)
        low, high, size = bellman_sweep(0, W.shape[0], tables, W, Q, TW, greedy)
        n += sweeps + 1
        better = Q[states, actions] + grain * (1 + size) < TW
        actions = np.where(better, greedy, actions)
        if high - low <= span_goal(tol, size, gamma, grain) or actions.tobytes() in seen:
            return Sweep(Q, TW, greedy, low, high, size, n)
