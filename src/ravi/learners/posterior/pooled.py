"""What all pairs together tell of one: how often a play shows something new, and how often it leads where.

The records of `psrl/pooled` (`ravi.learners.posterior.psrl_pooled` has the equations), and how plays are counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.learners.posterior.draws import gamma_above_one
from ravi.planning.sweeps import highest, lowest
from ravi.random import block
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


@compiled
def draw(  # type: ignore[no-untyped-def]
    rewards, successors, visits, moves, tries, new, share, likely, paid, squares, terms, key, end, r, rows
):
    """r_k (X, A), 0 where n = 0, and P_k of one seed: u as a mass of state X, before those of the successors that were
    met; the end leads to itself."""
    X, A, B = moves.shape
    least, (noisy, spread) = rates(tries, new), _noise(moves, squares, terms)
    if least[0] == 0.0 and noisy[1] == 0.0 and repeat(rewards, successors, moves, end, r, rows):
        return
    t, part, c = 1 + visits.sum(), 1, np.zeros((BINS, KINDS))
    for b in range(BINS):
        for k in range(2, KINDS - 1):
            if share[b, k, 0] > 0.0:
                c[b, k], part = _weight(likely[b, k], key, t, part)
    first, to, mass = rows
    size = np.uint32(0)
    for x in range(X):
        for a in range(A):
            n, begun = visits[x, a], size
            if x == end or n == 0:
                r[x, a] = lowest(rewards[x]) if x == end else 0.0
                to[size], mass[size] = x if x == end else X, 1.0
                first[x * A + a + 1] = size = size + np.uint32(1)
                continue
            k = kinds_of(moves[x, a])
            b, total, tilt = bin_of(n), 0.0, 0.0
            size += np.uint32(least[b] > 0.0)
            for j in range(B):
                if moves[x, a, j] > 0:
                    drawn = 1.0
                    if moves[x, a, j] < n:
                        shape = float(moves[x, a, j])
                        if c[b, k] > 0.0:
                            above, after = ranks_of(moves[x, a], j)
                            shape += c[b, k] * base_of(share[b, k], k, above, after)
                        drawn, part = _gamma(shape, key, t, part)
                    to[size], mass[size] = successors[x, a, j], drawn
                    total += drawn
                    size += np.uint32(1)
            r[x, a] = rewards[x, a]
            if k > 1:
                at = begun + np.uint32(least[b] > 0.0)
                for j in range(B):
                    if moves[x, a, j] > 0:
                        tilt += (mass[at] / total - moves[x, a, j] / n) * paid[x, a, j]
                        at += np.uint32(1)
                r[x, a] = min(1.0, max(0.0, rewards[x, a] + tilt))
            known = 1.0
            if least[b] > 0.0:
                to[begun] = X
                mass[begun], part = missing(least[b], tries[b, k], new[b, k], key, t, part)
                known -= mass[begun]
                begun += np.uint32(1)
            for e in range(begun, size):
                mass[e] *= known / total
            if noisy[k] > 0.0:
                u, w, v, _ = block(key, t, part)
                part += 1
                chance, variance = 1.0, spread[k]
                if squares[x, a] > 0.0:
                    half, part = gamma_above_one((terms[x, a] + 1.0) / 2.0, key, t, part)
                    variance = (squares[x, a] + spread[k]) / (2.0 * half)
                else:
                    alike = noisy[k] * max(0.0, 1.0 - 2.0 * spread[k]) ** terms[x, a]
                    chance = alike / (1.0 - noisy[k] + alike) if alike > 0.0 else 0.0
                if v < chance:
                    z = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w)
                    r[x, a] = min(1.0, max(0.0, r[x, a] + z * math.sqrt(variance / n)))
            first[x * A + a + 1] = size


@compiled
def repeat(rewards, successors, moves, end, r, rows):  # type: ignore[no-untyped-def]
    """`_draw` where every pair does what it did the first time; whether each was seen to do one thing at most."""
    X, A, B = moves.shape
    first, to, mass = rows
    for x in range(X):
        for a in range(A):
            p, kinds, slot = x * A + a, 0, 0
            for j in range(B):
                kinds += moves[x, a, j] > 0
                slot += j * (moves[x, a, j] > 0)
            if kinds > 1:
                return False
            r[x, a], to[p] = (rewards[x, a], successors[x, a, slot]) if kinds == 1 else (0.0, X)
            mass[p], first[p + 1] = 1.0, p + 1
    if end >= 0:
        r[end], to[end * A : (end + 1) * A] = lowest(rewards[end]), end
    return True


@compiled
def _noise(moves, squares, terms):  # type: ignore[no-untyped-def]
    """Of pairs with k successors, how many have noisy rewards, as a share, and the variance of these, by k."""
    X, A, _ = moves.shape
    share, variance, pairs, plays = np.zeros(KINDS), np.zeros(KINDS), np.zeros(KINDS), np.zeros(KINDS)
    some, by_pair = False, squares.reshape(-1)
    for p in range(by_pair.shape[0]):  # several pairs go at once
        some |= by_pair[p] > 0.0
    if not some:
        return share, variance
    for x in range(X):
        for a in range(A):
            if terms[x, a] > 0:
                k = kinds_of(moves[x, a])
                pairs[k] += 1.0
                if squares[x, a] > 0.0:
                    share[k] += 1.0
                    variance[k] += squares[x, a]
                    plays[k] += terms[x, a]
    for k in range(KINDS):
        share[k] /= max(pairs[k], 1.0)
        variance[k] /= max(plays[k], 1.0)
    return share, variance


@compiled
def _weight(likely, key, t, part):  # type: ignore[no-untyped-def]
    """c, drawn by how likely each is, and the next part of the block of random numbers."""
    most, total = highest(likely), 0.0
    for g in range(len(WEIGHTS)):
        total += math.exp(likely[g] - most)
    u, g = block(key, t, part)[0] * total, 0
    while g < len(WEIGHTS) - 1 and u >= math.exp(likely[g] - most):
        u -= math.exp(likely[g] - most)
        g += 1
    return WEIGHTS[g], part + 1


@compiled
def rates(tries, new):  # type: ignore[no-untyped-def]
    """m(n), by the bin of n."""
    most, found = min(new.sum(), 1) / max(tries.sum(), 1), np.empty(BINS)
    for b in range(BINS - 1, -1, -1):
        most = max(most, new[b].sum() / max(tries[b].sum(), 1))
        found[b] = most
    return found


@compiled
def missing(least, tries, new, key, t, part):  # type: ignore[no-untyped-def]
    """u(n, k), with m(n) = `least` > 0, and the next part of the block of random numbers."""
    some, part = _gamma(new + least, key, t, part)
    rest, part = gamma_above_one(max(tries - new, 0) + 1.0, key, t, part)
    return some / (some + rest), part


@compiled
def _gamma(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of any shape above 0, from one of a shape that is one more, and the next part."""
    drawn, part = gamma_above_one(shape + 1.0, key, t, part)
    u, _, _, _ = block(key, t, part)
    return drawn * (1.0 - u) ** (1.0 / shape), part + 1
