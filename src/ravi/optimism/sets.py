"""How much can a plausible kernel promise? max over p in a set around p_hat of <p, V>, for every pair: one backup.

    Q(x, a) = rewards(x, a) + gamma max_{p in C(x, a)} <p, V>

for sets C(x, a) of distributions over all X states:

    plain       {p_hat}, or nothing known (n = 0): every distribution
    l1          ||p - p_hat||_1 <= d                                                            (UCRL2, MBIE)
    bernstein   |p(x') - p_hat(x')| <= d(x') for every x'                                       (UCRL2B, SCAL)
    kl          KL(p_hat || p) <= d                                                             (KL-UCRL)

p_hat = N' / n is zero beyond the stored successors, and p need not be: a pair that was never played may lead anywhere.
Each is a function of the data that gives a Backup: the radii are computed once, and a sweep is one compiled loop, that
reads the counts and writes Q only. With V negated and the result too, it is the minimum over the set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array
from ravi.estimators.counts import Counts

Backup: TypeAlias = Callable[[Array, Array, Array], None]  # V (n, X), active (n,), Q (n, X, A): writes Q where active


def plain(rewards: Array, successors: Array, discount: float, D: Counts) -> Backup:
    """Q = rewards + gamma p_hat V; where a pair was never played, rewards + gamma max V. rewards: (n or 1, X, A)."""

    def backup(V: Array, active: Array, Q: Array) -> None:
        _plain(rewards, successors, discount, D.visits, D.moves, V, active, Q)

    return backup


def l1(rewards: Array, successors: Array, discount: float, D: Counts, radius: Array) -> Backup:
    """Q = rewards + gamma max {<p, V> : ||p - p_hat||_1 <= radius}. radius: (n, X, A)."""
    n, X, A, B = D.moves.shape
    order = np.tile(np.arange(B, dtype=np.int32), (n, X, A, 1))  # successors by V, from one sweep to the next

    def backup(V: Array, active: Array, Q: Array) -> None:
        _l1(rewards, successors, discount, D.visits, D.moves, radius, order, V, active, Q)

    return backup


@compiled
def _plain(rewards, successors, gamma, visits, moves, V, active, Q):  # type: ignore[no-untyped-def]
    n, X, A, B = moves.shape
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        top = v.max()
        for x in range(X):
            for a in range(A):
                plays = visits[i, x, a]
                if plays == 0:
                    Q[i, x, a] = r[x, a] + gamma * top
                    continue
                row, to = moves[i, x, a], successors[x, a]
                total = 0.0
                for j in range(B):
                    total += row[j] * v[np.uint32(to[j])]
                Q[i, x, a] = r[x, a] + gamma * (total / plays)


@compiled
def _l1(rewards, successors, gamma, visits, moves, radius, order, V, active, Q):  # type: ignore[no-untyped-def]
    """Half the radius moves from the worst successors to the best state of all (Jaksch et al. 2010, Figure 2)."""
    n, X, A, B = moves.shape
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        best = v.argmax()
        top = v[best]
        for x in range(X):
            for a in range(A):
                plays, d = visits[i, x, a], radius[i, x, a]
                if plays == 0 or d >= 2.0:
                    Q[i, x, a] = r[x, a] + gamma * top
                    continue
                row, to, rank = moves[i, x, a], successors[x, a], order[i, x, a]
                total, share = 0.0, 1.0 / plays
                for j in range(B):  # insertion: the order changes little between sweeps
                    slot = rank[j]
                    value = v[np.uint32(to[slot])]
                    total += row[slot] * value
                    k = j
                    while k > 0 and v[np.uint32(to[rank[k - 1]])] > value:
                        rank[k] = rank[k - 1]
                        k -= 1
                    rank[k] = slot
                mean, mass = total * share, d / 2
                for j in range(B):  # from the worst
                    slot = rank[j]
                    if mass <= 0.0:
                        break
                    moved = min(mass, row[slot] * share)
                    mean += moved * (top - v[np.uint32(to[slot])])
                    mass -= moved
                Q[i, x, a] = r[x, a] + gamma * mean
