"""Modified policy iteration for drawn models whose rows have few entries.

Rows are (first, to, mass): pair p = x A + a leads to the states to[e] with probabilities mass[e], e = first[p], ...,
first[p + 1] - 1. State X stands for what is new.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ravi._jit.functions import bound, compiled
from ravi.core import Array
from ravi.planning.sweeps import highest, iterate

SHRINK = 0.1  # of the span, by sweeps of a policy between sweeps of all actions
MOST = 2**31  # backups: more than any plan makes
ROUNDING = 2.0**-40  # of H, or of the largest value: a span of T u - u that can be reached


@lru_cache(maxsize=1)  # a stream builds its learner anew with every successor that it meets
def scratch(X: int, A: int, B: int) -> tuple[Any, ...]:
    """Space for r (X, A), rows of all pairs, a greedy policy (X,) and its chain."""
    chain = np.empty(X + 1, np.int32), np.empty(X), np.empty(X + 1), np.empty(X + 1), _rows(X, B), np.empty(X * A)
    return np.empty((X, A)), _rows(X * A, B), np.empty(X, np.int32), chain


def _rows(many: int, B: int) -> tuple[Array, Array, Array]:
    """Of at most B successors, and what is new."""
    return np.zeros(many + 1, np.int32), np.empty(many * (B + 1), np.int32), np.empty(many * (B + 1))


@compiled
def solve(rows, gamma, goal, novel, r, u, greedy, chain):  # type: ignore[no-untyped-def]
    """Modified policy iteration from u, in place, until span(T u - u) <= goal times that of u; `greedy` is that of the
    last T. What is new earns `novel` for ever."""
    _solve((rows, gamma, goal, novel, r, u, greedy, chain), MOST)


@compiled
def _back_up(own):  # type: ignore[no-untyped-def]
    """The backup of u by the best actions, which are written."""
    rows, gamma, goal, novel, r, u, greedy, chain = own
    _, _, next, _, _, means = chain
    X, A = r.shape
    _average(rows, X * A, u, means)
    for x in range(X):
        best = -np.inf
        for a in range(A):
            value = r[x, a] + gamma * means[x * A + a]
            if value > best:
                best = value
                greedy[x] = a
        next[x] = best
    reach = ROUNDING * max(1.0 / (1.0 - gamma), highest(next[:X]))
    span = _move(gamma, novel, u, next)
    return span, max(goal * highest(u), reach), span


@compiled
def _follow(own, enough, span):  # type: ignore[no-untyped-def]
    """Sweeps of the greedy policy, from u, which is its backup, until they move by a small part of its span. A state
    that only leads to what is new is worth what that is, and is left out."""
    rows, gamma, _, novel, r, u, greedy, chain = own
    place, earns, next, values, own_rows, _ = chain
    enough, sweeps = max(SHRINK * span, enough / 2), 0
    size = _leave_out(rows, novel, r, greedy, place, earns, own_rows)
    for x in range(u.shape[0]):
        values[place[x]] = u[x]
    while span > enough:
        _average(own_rows, size, values, next)
        for k in range(size):
            next[k] = earns[k] + gamma * next[k]
        span = _move(gamma, novel, values[: size + 1], next)
        sweeps += 1
    for x in range(u.shape[0]):
        u[x] = values[place[x]]
    return sweeps


_solve = bound(iterate, backup=_back_up, sweep=_follow)


@compiled
def _leave_out(rows, novel, r, greedy, place, earns, own):  # type: ignore[no-untyped-def]
    """How many states remain: what they earn, and where they lead, by their places. All others have the next place."""
    X, A = r.shape
    (first, to, mass), (own_first, own_to, own_mass) = rows, own
    size = entries = 0
    for x in range(X):
        e = first[x * A + greedy[x]]
        alike = to[e] == X and mass[e] == 1.0 and r[x, greedy[x]] == novel
        place[x] = -1 if alike else size
        size += not alike
    for x in range(X + 1):
        if x == X or place[x] < 0:
            place[x] = size
    for x in range(X):
        if place[x] < size:
            p = x * A + greedy[x]
            earns[place[x]] = r[x, greedy[x]]
            for e in range(first[p], first[p + 1]):
                own_to[entries], own_mass[entries] = place[to[e]], mass[e]
                entries += 1
            own_first[place[x] + 1] = entries
    return size


@compiled
def _average(rows, many, u, means):  # type: ignore[no-untyped-def]
    """The mean of u after each of the first pairs, into `means`."""
    first, to, mass = rows
    if first[many] == many:  # every pair has one successor
        for p in range(many):
            means[p] = mass[p] * u[np.uint32(to[p])]
        return
    for p in range(many):
        value = 0.0
        for e in range(np.uint32(first[p]), np.uint32(first[p + 1])):
            value += mass[e] * u[np.uint32(to[e])]
        means[p] = value


@compiled
def _move(gamma, novel, u, next):  # type: ignore[no-untyped-def]
    """u <- next, less its least; the span of what it moved by. The last entry is of a state that earns `novel` for
    ever."""
    last = u.shape[0] - 1
    next[last] = novel + gamma * u[last]
    low = high = next[last] - u[last]
    least = next[last]
    for x in range(last):
        low, high, least = min(low, next[x] - u[x]), max(high, next[x] - u[x]), min(least, next[x])
    for x in range(last + 1):
        u[x] = next[x] - least
    return high - low
