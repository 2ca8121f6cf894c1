"""Passes over the states, and the loop that repeats them until the span of a backup's move is small.

A backup is a pass of T, for all actions; a sweep is a pass of T_pi, or of the chain that a policy makes.
"""

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
def no_sweeps(own, goal, found):  # type: ignore[no-untyped-def]
    """The sweeps of a method that only backs up."""
    return 0


backup, sweep = no_sweeps, no_sweeps  # `ravi._jit.functions.bound` puts those of a method here


def iterate(own, most):  # type: ignore[no-untyped-def]
    """Back up until the span of the move is small, with sweeps of what was chosen between two backups.

    The loop of every planner that iterates on values: it is bound to `backup(own)`, which gives the span of its move,
    the goal of that span, and what is to be returned of the last backup; and to `sweep(own, goal, found)`, which
    prepares the next backup and gives the number of its sweeps. All that they work on is in `own`, in place.

    Parameters
    ----------
    own
        What the two functions are given.
    most
        Backups, at most.

    Returns
    -------
    what the last backup found, the number of backups, and that of sweeps
    """
    backups, sweeps = 0, 0
    while True:
        span, goal, found = backup(own)
        backups += 1
        if span <= goal or backups >= most:
            return found, backups, sweeps
        sweeps += sweep(own, goal, found)


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


@compiled
def highest(row):  # type: ignore[no-untyped-def]
    """max_a row(a)."""
    value = row[0]
    for b in range(1, row.shape[0]):
        value = max(value, row[b])
    return value


@compiled
def lowest(row):  # type: ignore[no-untyped-def]
    """min_a row(a)."""
    value = row[0]
    for b in range(1, row.shape[0]):
        value = min(value, row[b])
    return value
