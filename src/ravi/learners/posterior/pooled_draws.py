"""Which world does PSRL draw by a prior that all pairs taught it? Kernel, rewards and missing mass of one seed.

The equations are those of `ravi.learners.posterior.psrl_pooled`.
"""

from __future__ import annotations

import math

import numpy as np

from ravi._jit.functions import compiled
from ravi.learners.posterior.gammas import gamma_above_one
from ravi.learners.posterior.pooled import BINS, KINDS, WEIGHTS, base_of, bin_of, kinds_of, ranks_of
from ravi.planning.sweeps import highest, lowest
from ravi.random import block


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
