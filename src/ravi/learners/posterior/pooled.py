"""What do all pairs together tell of one? How often a play shows something new, and how often it leads where.

The records of `psrl/pooled` (`ravi.learners.posterior.psrl_pooled` has the equations), and how plays are counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ravi._jit.functions import compiled
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Count, LogPolicy, Positive, Probability

BINS = 8  # of n: 1, 2, 3-4, ..., 65 and more
KINDS = 16  # of successors met; 15 and more are one
WEIGHTS = (0.0, *(4.0**g for g in range(6)))  # c
ALIKE = 1e-9  # means of rewards that differ by less are the same, but for rounding


class Novelty(NamedTuple):
    """What was new to a pair, by the plays and the successors of it before, of all pairs together."""

    tries: Count  # plays                       (n, BINS, KINDS)
    new: Count  # of which something was new    (n, BINS, KINDS)


class Usual(NamedTuple):
    """How often a pair leads to each rank of its successors, by its plays and successors before, of all together."""

    share: Positive  # plays that were not new, by rank              (n, BINS, KINDS, KINDS)
    likely: LogPolicy  # the logarithm of their likelihood, by c     (n, BINS, KINDS, len(WEIGHTS))


class Earned(NamedTuple):
    """What is known of the rewards of a pair."""

    paid: Probability  # mean by successor              (n, X, A, B)
    mean: Probability  # of the plays that were added   (n, X, A)
    squares: Positive  # of plays that were added together, less what their successors pay: their sum   (n, X, A)
    terms: Count  # of the sum                          (n, X, A)


@compiled
def count(  # type: ignore[no-untyped-def]
    rewards, visits, moves, tries, new, share, likely, paid, mean, squares, terms, state, action, slot, length
):
    """Count the plays of a path, and what was new in them."""
    for i in range(state.shape[0]):
        for l in range(length[i]):
            x, a, j = state[i, l], action[i, l], slot[i, l]
            n = visits[i, x, a]
            if n > 0:
                b, k = bin_of(n), kinds_of(moves[i, x, a])
                tries[i, b, k] += 1
                new[i, b, k] += moves[i, x, a, j] == 0
                if moves[i, x, a, j] > 0:
                    _score(moves[i, x, a], n, k, j, share[i, b, k], likely[i, b, k])
            if moves[i, x, a, j] == 0:
                paid[i, x, a, j] = -1.0  # until the rewards are read
            visits[i, x, a] += 1
            moves[i, x, a, j] += 1
        for l in range(length[i]):  # a pair that comes twice has nothing left the second time
            x, a = state[i, l], action[i, l]
            n, m, fresh, off = visits[i, x, a], 0, 0, 0.0
            if terms[i, x, a] < 0:
                continue
            for k in range(l, length[i]):
                if state[i, k] == x and action[i, k] == a:
                    m += 1
                    fresh += paid[i, x, a, slot[i, k]] < 0.0
                    off -= max(paid[i, x, a, slot[i, k]], 0.0)
            off += n * rewards[x, a] - (n - m) * mean[i, x, a]  # earned, less what the successors pay
            noisy = fresh == 0 and abs(off) > ALIKE * n
            if noisy:
                if squares[i, x, a] == 0.0:
                    new[i, bin_of(n - m), kinds_of(moves[i, x, a])] += 1
                squares[i, x, a] += off * off / m * (n - m) / n
            terms[i, x, a] += fresh == 0
            for k in range(l, length[i]):
                if state[i, k] == x and action[i, k] == a:
                    j = slot[i, k]
                    if paid[i, x, a, j] < 0.0:
                        paid[i, x, a, j] = min(1.0, max(0.0, off / fresh))
                    elif noisy:
                        paid[i, x, a, j] = min(1.0, max(0.0, paid[i, x, a, j] + off / (m * moves[i, x, a, j])))
            mean[i, x, a] = rewards[x, a]
            terms[i, x, a] = -1 - terms[i, x, a]
        for l in range(length[i]):
            x, a = state[i, l], action[i, l]
            if terms[i, x, a] < 0:
                terms[i, x, a] = -1 - terms[i, x, a]


@compiled
def _score(row, n, k, j, share, likely):  # type: ignore[no-untyped-def]
    """A play of a pair with k successors, which were met `row` times of n, led to the j-th of them."""
    if 1 < k < KINDS - 1:
        first, after = ranks_of(row, j)
        base = base_of(share, k, first, after)
        for g in range(len(WEIGHTS)):
            likely[g] += math.log((row[j] + WEIGHTS[g] * base) / (n + WEIGHTS[g]))
        for rank in range(first, after):
            share[rank] += 1.0 / (after - first)


@compiled
def ranks_of(row, j):  # type: ignore[no-untyped-def]
    """How many successors were met more often than j, and how many as often or more."""
    first = after = 0
    for l in range(row.shape[0]):
        first += row[l] > row[j]
        after += row[l] >= row[j]
    return first, after


@compiled
def base_of(share, k, first, after):  # type: ignore[no-untyped-def]
    """b of a successor whose rank is one of first, ..., after - 1."""
    here = total = 0.0
    for rank in range(k):
        total += share[rank] + 1.0
        if first <= rank < after:
            here += share[rank] + 1.0
    return here / (total * (after - first))


@compiled
def bin_of(n):  # type: ignore[no-untyped-def]
    """Of n = 1, 2, 3-4, 5-8, ...: 0, 1, 2, 3, ..."""
    b = 0
    while n > 1 and b < BINS - 1:
        n = (n + 1) // 2
        b += 1
    return b


@compiled
def kinds_of(row):  # type: ignore[no-untyped-def]
    """How many successors were met."""
    k = 0
    for j in range(row.shape[0]):
        k += row[j] > 0
    return min(k, KINDS - 1)


@compiled
def expect(moves, share, likely, paid, r, P):  # type: ignore[no-untyped-def]
    """r (X, A) and P (X, A, B), the means and the counts, as they are expected to be; in place."""
    X, A, B = moves.shape
    for x in range(X):
        for a in range(A):
            n, k, tilt = moves[x, a].sum(), kinds_of(moves[x, a]), 0.0
            b, own = bin_of(n), 0.0
            if not 1 < k < KINDS - 1 or share[b, k, 0] == 0.0:  # c is 0, as in `_draw`
                continue
            most, total = highest(likely[b, k]), 0.0
            for g in range(len(WEIGHTS)):
                total += math.exp(likely[b, k, g] - most)
            for g in range(len(WEIGHTS)):  # the mean of n / (n + c)
                own += math.exp(likely[b, k, g] - most) / total * n / (n + WEIGHTS[g])
            for j in range(B):
                if moves[x, a, j] > 0:
                    first, after = ranks_of(moves[x, a], j)
                    P[x, a, j] = own * moves[x, a, j] + (1.0 - own) * n * base_of(share[b, k], k, first, after)
                    tilt += (P[x, a, j] - moves[x, a, j]) / n * paid[x, a, j]
            r[x, a] = min(1.0, max(0.0, r[x, a] + tilt))
