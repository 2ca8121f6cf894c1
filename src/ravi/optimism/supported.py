"""How much can a plausible kernel promise that is known to stay on the stored successors? `support=on`.

    Q(x, a) = rewards(x, a) + gamma max_{p in C(x, a)} <p, V>,       p(x') = 0 beyond the stored successors S(x, a)

for the sets of `ravi.optimism.sets`, by the same names. A learner under support=off takes `successors` for storage, and
allows for every state; under support=on it is told that S(x, a) holds all that (x, a) can lead to. It may hold more:
rows are padded with states of probability 0. A pair that was never played is worth its best stored successor.

The rows of a seed lie in the order of V, the best first, so that the best p is chosen by one walk, and stays while the
order does: then a sweep costs a product p V.

    l1          the worst successors lose half the radius, the best gains what they lose
    bernstein   all have their least, and what is left of the mass goes to the best, each up to its most
    kl          as in `sets`, with the best of S(x, a) for the best of all states

`capped` is for those that add a bonus: whatever it is, no kernel on S(x, a) promises more than the best of S(x, a).

What becomes of a constant: where X is the number of outcomes of a row, it is B = |S(x, a)|; where X A counts pairs, it
stays. Each learner says so in its own words, with what it is then guaranteed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ravi import checks
from ravi.compiled import compiled
from ravi.core import Array, Problem
from ravi.estimators.counts import Counts
from ravi.optimism.sets import ABSENT, CERTAIN, Backup, _arrange, _product, _rank, _seen, _unranked, shortfall


def is_told(support: str) -> bool:
    """Whether a learner is told the successors: the option `support`, which all of them share."""
    return checks.one_of(support, ("off", "on"), "support") == "on"


def outcomes(problem: Problem, told: bool) -> int:
    """How many states a pair may lead to, for all that a learner knows: B or X."""
    return problem.branching if told else problem.states


def recorded(told: bool) -> dict[str, Any]:
    """The setting as a run records it; one that is off is not there, as in runs from before it was."""
    return {"support": "on"} if told else {}


def l1(rewards: Array, successors: Array, discount: float, D: Counts, radius: Array) -> Backup:
    """Q = rewards + gamma max {<p, V> : ||p - p_hat||_1 <= radius}. radius: (n, X, A)."""
    to, p, w = _rows(successors, D)
    ranks = _unranked(D.visits.shape[:2])
    half = radius / 2

    def backup(V: Array, active: Array, Q: Array) -> None:
        anew = _arranged(*ranks, to, p, V, active)
        _choose_l1(anew, p, half, w)
        _promised(rewards, discount, to, w, V, active, Q)

    return backup


def bernstein(rewards: Array, successors: Array, discount: float, D: Counts, factor: Array, constant: Array) -> Backup:
    """Q = rewards + gamma max {<p, V> : |p - p_hat| <= factor sqrt(p_hat (1 - p_hat)) + constant}; both (n, X, A)."""
    to, p, w = _rows(successors, D)
    ranks = _unranked(D.visits.shape[:2])
    least = np.where(D.visits == 0, 1.0, constant)  # nothing is known where nothing was played

    def backup(V: Array, active: Array, Q: Array) -> None:
        anew = _arranged(*ranks, to, p, V, active)
        _choose_in_box(anew, p, factor, least, w)
        _promised(rewards, discount, to, w, V, active, Q)

    return backup


def kl(rewards: Array, successors: Array, discount: float, D: Counts, radius: Array) -> Backup:
    """Q = rewards + gamma max {<p, V> : KL(p_hat || p) <= radius}. radius: (n, X, A)."""
    size, to, p = _seen(successors, D.visits, D.moves, (D.visits == 0) | (radius >= CERTAIN))
    start = np.full(D.visits.shape, np.nan)  # where Newton starts, as in `sets`

    def backup(V: Array, active: Array, Q: Array) -> None:
        _kl(rewards, successors, discount, size, to, p, radius, start, V, active, Q)

    return backup


def capped(backup: Backup, rewards: Array, successors: Array, discount: float) -> Backup:
    """Q = min{Q of the backup, rewards + gamma max over S(x, a) of V}."""

    def least(V: Array, active: Array, Q: Array) -> None:
        backup(V, active, Q)
        _cap(rewards, successors, discount, V, active, Q)

    return least


def _rows(successors: Array, D: Counts) -> tuple[Array, Array, Array]:
    """Of each seed and pair, its successors, their p_hat (0 without plays), and room for the best p."""
    to = np.tile(successors.astype(np.int32), (len(D.visits), 1, 1, 1))
    p = D.moves / np.maximum(D.visits, 1)[..., None]
    return to, p, np.empty(p.shape)


@compiled
def best(to, v):  # type: ignore[no-untyped-def]
    """max V over the states `to`."""
    top = v[np.uint32(to[0])]
    for j in range(1, to.shape[0]):
        top = max(top, v[np.uint32(to[j])])
    return top


@compiled
def _arranged(order, rank, sums, ranked, to, p, V, active):  # type: ignore[no-untyped-def]
    """Put the rows of the active seeds into the order of V; of which seeds it is another than it was."""
    n, X, A, B = to.shape
    scratch = np.full(X, ABSENT)
    anew = np.zeros(n, np.bool_)
    for i in range(n):
        if not active[i]:
            continue
        if _rank(V[i], order[i], rank[i], sums[i]) or not ranked[i]:
            ranked[i] = anew[i] = True
            for x in range(X):
                for a in range(A):
                    _arrange(order[i], rank[i], B, to[i, x, a], p[i, x, a], scratch)
    return anew


@compiled
def _choose_l1(anew, p, half, w):  # type: ignore[no-untyped-def]
    n, X, A, B = p.shape
    for i in range(n):
        if not anew[i]:
            continue
        for x in range(X):
            for a in range(A):
                mass, rest = half[i, x, a], 1.0
                for j in range(B - 1, 0, -1):  # from the worst
                    moved = min(mass, p[i, x, a, j])
                    w[i, x, a, j] = p[i, x, a, j] - moved
                    mass -= moved
                    rest -= w[i, x, a, j]
                w[i, x, a, 0] = rest


@compiled
def _choose_in_box(anew, p, factor, constant, w):  # type: ignore[no-untyped-def]
    n, X, A, B = p.shape
    room = np.empty(B)
    for i in range(n):
        if not anew[i]:
            continue
        for x in range(X):
            for a in range(A):
                mass = 1.0
                for j in range(B):
                    q = p[i, x, a, j]
                    width = factor[i, x, a] * np.sqrt(q * (1.0 - q)) + constant[i, x, a]
                    w[i, x, a, j] = max(0.0, q - width)
                    room[j] = min(1.0, q + width) - w[i, x, a, j]
                    mass -= w[i, x, a, j]
                for j in range(B):  # from the best
                    taken = min(mass, room[j])
                    w[i, x, a, j] += taken
                    mass -= taken


@compiled
def _promised(rewards, gamma, to, w, V, active, Q):  # type: ignore[no-untyped-def]
    n, X, A, B = to.shape
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        for x in range(X):
            for a in range(A):
                Q[i, x, a] = r[x, a] + gamma * _product(B, to[i, x, a], w[i, x, a], v)


@compiled
def _kl(rewards, successors, gamma, size, to, p, radius, start, V, active, Q):  # type: ignore[no-untyped-def]
    n, X, A = size.shape
    y = np.empty(to.shape[3])
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        for x in range(X):
            for a in range(A):
                K, top = size[i, x, a], best(successors[x, a], v)
                mean = top
                if K > 0:
                    below, start[i, x, a] = shortfall(
                        K, to[i, x, a], p[i, x, a], radius[i, x, a], v, top, start[i, x, a], y
                    )
                    mean -= below
                Q[i, x, a] = r[x, a] + gamma * mean


@compiled
def _cap(rewards, successors, gamma, V, active, Q):  # type: ignore[no-untyped-def]
    n, X, A = Q.shape
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        for x in range(X):
            for a in range(A):
                Q[i, x, a] = min(Q[i, x, a], r[x, a] + gamma * best(successors[x, a], v))
