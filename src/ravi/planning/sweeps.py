"""What is one pass over the states? Of T, for all actions, of T_pi, and of the chain that a policy makes."""

from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array


class Sweep(NamedTuple):
    """The last sweep of a method: all that the answer and its certificate need."""

    Q: Array  # r + gamma P W                                 (X, A)
    TW: Array  # max_a Q                                      (X,)
    greedy: Array  # argmax_a Q                               (X,)
    low: float  # min of T W - W
    high: float  # max of T W - W
    size: float  # max |W|
    sweeps: int


@compiled
def bellman_sweep(begin, end, tables, W, Q, TW, greedy):  # type: ignore[no-untyped-def]
    """Q = r + gamma P W, T W = max_a Q and the first action that attains it, of states begin, ..., end - 1.

    Gives min and max of T W - W, and max |W|, of these.
    """
    r, successors, P, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = P.shape
    low, high, size = np.inf, -np.inf, 0.0
    for x in range(begin, end):
        best = -np.inf
        action = 0
        for a in range(A):
            total = 0.0
            for j in range(B):
                total += P[x, a, j] * W[successors[x, a, j]]
            value = r[x, a] + gamma * total
            Q[x, a] = value
            if value > best:
                best = value
                action = a
        TW[x] = best
        greedy[x] = action
        low = min(low, best - W[x])
        high = max(high, best - W[x])
        size = max(size, abs(W[x]))
    return low, high, size


@compiled
def policy_sweep(tables, policy, W, Q, TW):  # type: ignore[no-untyped-def]
    """Q = r + gamma P W and T_pi W = sum_a pi Q. Gives min and max of T_pi W - W, and max |W|."""
    r, successors, P, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = P.shape
    low, high, size = np.inf, -np.inf, 0.0
    for x in range(X):
        mean = 0.0
        for a in range(A):
            total = 0.0
            for j in range(B):
                total += P[x, a, j] * W[successors[x, a, j]]
            Q[x, a] = r[x, a] + gamma * total
            mean += policy[x, a] * Q[x, a]
        TW[x] = mean
        low = min(low, mean - W[x])
        high = max(high, mean - W[x])
        size = max(size, abs(W[x]))
    return low, high, size


@compiled
def chain_sweep(begin, end, chain, gamma, gain, W, TW):  # type: ignore[no-untyped-def]
    """T W = source - gain + gamma K W, of states begin, ..., end - 1. Gives min and max of T W - W, of these."""
    start, state, weight, source = chain.start, chain.state, chain.weight, chain.source
    low, high = np.inf, -np.inf
    for x in range(begin, end):
        total = 0.0
        for j in range(start[x], start[x + 1]):
            total += weight[j] * W[state[j]]
        value = source[x] - gain + gamma * total
        TW[x] = value
        low = min(low, value - W[x])
        high = max(high, value - W[x])
    return low, high
