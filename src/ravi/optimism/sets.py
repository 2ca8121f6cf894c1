"""How much can a plausible kernel promise? max over p in a set around p_hat of <p, V>, for every pair: one backup.

    Q(x, a) = rewards(x, a) + gamma max_{p in C(x, a)} <p, V>

for sets C(x, a) of distributions over all X states:

    plain       {p_hat}, or nothing known (n = 0): every distribution
    smoothed    {(n p_hat + e) / (n + 1)}, e at one reference state                             (SCAL+)
    l1          ||p - p_hat||_1 <= d                                                            (UCRL2, MBIE)
    bernstein   |p(x') - p_hat(x')| <= f sqrt(p_hat(x') (1 - p_hat(x'))) + d for every x'       (UCRL2B, SCAL)
    kl          KL(p_hat || p) <= d                                                             (KL-UCRL)

p_hat = N' / n is zero beyond the stored successors, and p need not be: a pair that was never played may lead anywhere.
(For a learner that is told the successors, `ravi.optimism.supported` has the sets on them.)
Each is a function of the data that gives a Backup: what does not depend on V is computed once, and a sweep is one
compiled loop, that reads the counts and writes Q only. With V negated and the result too, it is the minimum over the
set (`least`).

In `l1` and `bernstein` the best p depends on V through the order of the states alone. A sweep that finds the order as
it was keeps p: it costs a product p V. Otherwise p is made anew by one walk down the successors that were seen, from
the best; states that were not seen all have the same room d, so those between two that were are filled at once, by the
sums W_k of the k best values:

    max <p, V> = sum_seen w(x') V(x') + d W_k + rest V(k-th best),

k states filled. In `kl` (Filippi, Cappe, Garivier 2010) the dual is a minimum over one number,

    max <p, V> = min_{nu >= max V} {nu - exp(sum p_hat ln(nu - V) - d)},

convex in nu; its slope is 1 - exp(f(nu) - d), f(nu) = sum p_hat ln(nu - V) + ln sum p_hat / (nu - V), so that
nu = max V if f(max V) <= d (mass goes to a best state that was never seen), and f(nu) = d otherwise: Newton in
ln(nu - max V), kept inside a bracket, from where the last sweep ended. An error in nu enters the value squared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array
from ravi.estimators.counts import Counts

Backup: TypeAlias = Callable[[Array, Array, Array], None]  # V (n, X), active (n,), Q (n, X, A): writes Q where active

CERTAIN = 40.0  # KL radii from which max <p, V> is max V: exp(-40) of the span is less than rounding
FAR = 100.0  # spans from max V to nu, beyond which ln(1 + .) would lose digits
ABSENT = -1.0  # the probability of a state that is no successor
NARROW = 1e-4  # sqrt(2 d / variance) below which the KL maximum is its series, to 1e-12 of the span


def plain(rewards: Array, successors: Array, discount: float, D: Counts) -> Backup:
    """Q = rewards + gamma p_hat V; where a pair was never played, rewards + gamma max V. rewards: (n or 1, X, A)."""

    def backup(V: Array, active: Array, Q: Array) -> None:
        _plain(rewards, successors, discount, D.visits, D.moves, V, active, Q)

    return backup


def smoothed(rewards: Array, successors: Array, discount: float, D: Counts, reference: int) -> Backup:
    """Q = rewards + gamma (N' V + V(reference)) / (n + 1): one play more, that led to the reference state."""

    def backup(V: Array, active: Array, Q: Array) -> None:
        _smoothed(rewards, successors, discount, D.visits, D.moves, reference, V, active, Q)

    return backup


def l1(rewards: Array, successors: Array, discount: float, D: Counts, radius: Array) -> Backup:
    """Q = rewards + gamma max {<p, V> : ||p - p_hat||_1 <= radius}. radius: (n, X, A)."""
    size, to, p = _seen(successors, D.visits, D.moves, (D.visits == 0) | (radius >= 2))
    ranks = _unranked(D.visits.shape[:2])
    best = _no_choice(D.moves.shape)
    half = radius / 2

    def backup(V: Array, active: Array, Q: Array) -> None:
        _l1(rewards, discount, size, to, p, half, *ranks, *best, V, active, Q)

    return backup


def bernstein(rewards: Array, successors: Array, discount: float, D: Counts, factor: Array, constant: Array) -> Backup:
    """Q = rewards + gamma max {<p, V> : |p - p_hat| <= factor sqrt(p_hat (1 - p_hat)) + constant}; both (n, X, A)."""
    size, to, p = _seen(successors, D.visits, D.moves, (D.visits == 0) | (constant >= 1))
    ranks = _unranked(D.visits.shape[:2])
    best = _no_choice(D.moves.shape)

    def backup(V: Array, active: Array, Q: Array) -> None:
        _bernstein(rewards, discount, size, to, p, factor, constant, *ranks, *best, V, active, Q)

    return backup


def kl(rewards: Array, successors: Array, discount: float, D: Counts, radius: Array) -> Backup:
    """Q = rewards + gamma max {<p, V> : KL(p_hat || p) <= radius}. radius: (n, X, A)."""
    size, to, p = _seen(successors, D.visits, D.moves, (D.visits == 0) | (radius >= CERTAIN))
    start = np.full(D.visits.shape, np.nan)  # ln((nu - max V) / span) of the last sweep

    def backup(V: Array, active: Array, Q: Array) -> None:
        _kl(rewards, discount, size, to, p, radius, start, V, active, Q)

    return backup


def least(backup: Backup) -> Backup:
    """The minimum over the same set: Q = -rewards + gamma min <p, V>."""

    def pessimistic(V: Array, active: Array, Q: Array) -> None:
        backup(-V, active, Q)
        Q[active] = -Q[active]

    return pessimistic


def _unranked(shape: tuple[int, ...]) -> tuple[Array, Array, Array, Array]:
    """Of each seed: the states by falling V, their places, sums of the best values, and whether they were ordered."""
    n, X = shape
    order = np.tile(np.arange(X, dtype=np.int32), (n, 1))
    return order, order.copy(), np.zeros((n, X + 1)), np.zeros(n, np.bool_)


def _no_choice(shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Of each pair: w on the successors that were seen, k, and the rest. Where anything is plausible: 0, 0 and 1."""
    return np.zeros(shape), np.zeros(shape[:3], np.int32), np.ones(shape[:3])


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
def _smoothed(rewards, successors, gamma, visits, moves, reference, V, active, Q):  # type: ignore[no-untyped-def]
    n, X, A, B = moves.shape
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        for x in range(X):
            for a in range(A):
                row, to = moves[i, x, a], successors[x, a]
                total = v[reference]
                for j in range(B):
                    total += row[j] * v[np.uint32(to[j])]
                Q[i, x, a] = r[x, a] + gamma * (total / (visits[i, x, a] + 1.0))


@compiled
def _seen(successors, visits, moves, anything):  # type: ignore[no-untyped-def]
    """How many successors were seen, which, and their p_hat; none where anything is plausible."""
    n, X, A, B = moves.shape
    size, to, p = np.zeros((n, X, A), np.int32), np.empty((n, X, A, B), np.int32), np.empty((n, X, A, B))
    for i in range(n):
        for x in range(X):
            for a in range(A):
                if anything[i, x, a]:
                    continue
                k, plays = 0, visits[i, x, a]
                for j in range(B):
                    if moves[i, x, a, j] > 0:
                        to[i, x, a, k] = successors[x, a, j]
                        p[i, x, a, k] = moves[i, x, a, j] / plays
                        k += 1
                size[i, x, a] = k
    return size, to, p


@compiled
def _l1(rewards, gamma, size, to, p, half, order, rank, sums, ranked, w, filled, rest, V, active, Q):  # type: ignore[no-untyped-def]  # fmt: skip
    """Half the radius moves from the worst successors to the best state of all (Jaksch et al. 2010, Figure 2)."""
    n, X, A = size.shape
    scratch = np.full(X, ABSENT)
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        anew = _rank(v, order[i], rank[i], sums[i]) or not ranked[i]
        ranked[i] = True
        top = v[order[i, 0]]
        for x in range(X):
            for a in range(A):
                K = size[i, x, a]
                if anew and K > 0:
                    _arrange(order[i], rank[i], K, to[i, x, a], p[i, x, a], scratch)
                    mass = half[i, x, a]
                    for j in range(K - 1, -1, -1):  # from the worst
                        moved = min(mass, p[i, x, a, j])
                        w[i, x, a, j] = p[i, x, a, j] - moved
                        mass -= moved
                    rest[i, x, a] = half[i, x, a] - mass
                mean = _product(K, to[i, x, a], w[i, x, a], v) + rest[i, x, a] * top
                Q[i, x, a] = r[x, a] + gamma * mean


@compiled
def _bernstein(  # type: ignore[no-untyped-def]
    rewards, gamma, size, to, p, factor, constant, order, rank, sums, ranked, w, filled, rest, V, active, Q
):
    """The least of every state, and what is left of the mass to the best states, each up to its most."""
    n, X, A = size.shape
    scratch = np.full(X, ABSENT)
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        anew = _rank(v, order[i], rank[i], sums[i]) or not ranked[i]
        ranked[i] = True
        for x in range(X):
            for a in range(A):
                K, d = size[i, x, a], constant[i, x, a]
                if anew and K > 0:
                    _arrange(order[i], rank[i], K, to[i, x, a], p[i, x, a], scratch)
                    k, mass = _fill(K, to[i, x, a], p[i, x, a], factor[i, x, a], d, rank[i], w[i, x, a])
                    filled[i, x, a], rest[i, x, a] = k, mass
                k = filled[i, x, a]
                mean = _product(K, to[i, x, a], w[i, x, a], v) + rest[i, x, a] * v[order[i, min(k, X - 1)]]
                if k > 0:
                    mean += d * sums[i, k]
                Q[i, x, a] = r[x, a] + gamma * mean


@compiled
def _fill(K, to, p, factor, d, rank, w):  # type: ignore[no-untyped-def]
    """w of the box; how many of the best states it fills, and what goes to the next."""
    X = rank.shape[0]
    mass = 1.0
    for j in range(K):
        w[j] = max(0.0, p[j] - (factor * math.sqrt(p[j] * (1.0 - p[j])) + d))
        mass -= w[j]
    k = 0
    for j in range(K):  # from the best
        place = rank[to[j]]
        between = (place - k) * d
        if mass <= between:
            break
        mass -= between
        most = min(1.0, p[j] + (factor * math.sqrt(p[j] * (1.0 - p[j])) + d))
        taken = min(mass, most - w[j])
        w[j] += taken - d  # d comes back with the sum of the k best
        mass -= taken
        k = place + 1
    if mass <= 0.0 or d <= 0.0:
        return k, 0.0
    more = min(int(mass / d), X - k)
    return k + more, max(0.0, mass - more * d) if k + more < X else 0.0


@compiled
def _rank(v, order, rank, sums):  # type: ignore[no-untyped-def]
    """Sort the states by falling v, ties as they were; whether that changed their order."""
    X = v.shape[0]
    changed, steps = False, 0
    for j in range(1, X):  # insertion: the order changes little between sweeps
        state = order[j]
        value = v[state]
        k = j
        while k > 0 and v[order[k - 1]] < value:
            order[k] = order[k - 1]
            k -= 1
        if k < j:
            order[k] = state
            changed = True
            steps += j - k
            if steps > 32 * X:
                order[:] = np.argsort(-v, kind="mergesort")
                break
    total = 0.0
    for j in range(X):
        rank[order[j]] = j
        total += v[order[j]]
        sums[j + 1] = total
    return changed


@compiled
def _arrange(order, rank, K, to, p, scratch):  # type: ignore[no-untyped-def]
    """Put the K successors, with their p, into the order of the states; `scratch` (X,) is ABSENT, and is left so."""
    X = order.shape[0]
    if K * K > 4 * X:
        for j in range(K):
            scratch[to[j]] = p[j]
        k = 0
        for j in range(X):
            state = order[j]
            if scratch[state] != ABSENT:
                to[k], p[k] = state, scratch[state]
                scratch[state] = ABSENT
                k += 1
        return
    for j in range(1, K):
        state, chance = to[j], p[j]
        place = rank[state]
        k = j
        while k > 0 and rank[to[k - 1]] > place:
            to[k], p[k] = to[k - 1], p[k - 1]
            k -= 1
        to[k], p[k] = state, chance


@compiled
def _product(K, to, w, v):  # type: ignore[no-untyped-def]
    """sum_j w(j) v(to(j)), in four sums."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    last = K - K % 4
    for j in range(0, last, 4):
        one += w[j] * v[np.uint32(to[j])]
        two += w[j + 1] * v[np.uint32(to[j + 1])]
        three += w[j + 2] * v[np.uint32(to[j + 2])]
        four += w[j + 3] * v[np.uint32(to[j + 3])]
    for j in range(last, K):
        one += w[j] * v[np.uint32(to[j])]
    return (one + two) + (three + four)


@compiled
def _kl(rewards, gamma, size, to, p, radius, start, V, active, Q):  # type: ignore[no-untyped-def]
    n, X, A = size.shape
    y = np.empty(to.shape[3])
    for i in range(n):
        if not active[i]:
            continue
        v, r = V[i], rewards[i if rewards.shape[0] > 1 else 0]
        top = v.max()
        for x in range(X):
            for a in range(A):
                K = size[i, x, a]
                mean = top
                if K > 0:
                    below, start[i, x, a] = shortfall(
                        K, to[i, x, a], p[i, x, a], radius[i, x, a], v, top, start[i, x, a], y
                    )
                    mean -= below
                Q[i, x, a] = r[x, a] + gamma * mean


@compiled
def shortfall(K, to, p, d, v, top, z, y):  # type: ignore[no-untyped-def]
    """max V - max {<p, V> : KL(p_hat || p) <= d}, and z = ln t, to start from next time.

    With V = top - s y, s the span and y in [0, 1], and nu = top + s t: s max_t {t exp(L - d) - t}, where
    L = sum p_hat ln(1 + y / t); and f = L + ln sum p_hat / (1 + y / t).
    """
    s, nearest = 0.0, np.inf
    for j in range(K):
        y[j] = top - v[np.uint32(to[j])]
        s = max(s, y[j])
        nearest = min(nearest, y[j])
    if s == 0.0:
        return 0.0, z
    mean, square, cube = 0.0, 0.0, 0.0
    for j in range(K):
        y[j] /= s
        mean += p[j] * y[j]
    for j in range(K):
        off = mean - y[j]
        square += p[j] * off * off
        cube += p[j] * off * off * off
    if 2 * d < NARROW * NARROW * square:  # the series in sqrt(d), nu far away
        return s * (mean - math.sqrt(2 * d * square) - 2 * d / 3 * cube / square), z
    if nearest > 0.0:  # the best state was not seen: t = 0, unless f(0) > d
        logs, Z = 0.0, 0.0
        for j in range(K):
            logs += p[j] * math.log(y[j])
            Z += p[j] / y[j]
        if logs + math.log(Z) <= d or square == 0.0:
            return s * math.exp(logs - d), z
    if not math.isfinite(z):
        z = 0.5 * math.log(square / (2 * d))
    low, high = -np.inf, np.inf
    below = 0.0
    for _ in range(100):
        t = math.exp(z)
        L, Z, ZZ = _tilted(K, p, y, t)
        f = L + math.log(Z)
        slope = Z - ZZ / Z  # of f, in z
        below = t * math.expm1(L - d)
        if f > d:
            low = z
        else:
            high = z
        step = (d - f) / slope if f > 1.0 or f <= 0.0 else f * math.log(d / f) / slope
        if abs(math.expm1(f - d) * step) * t <= 1e-15 or not low < high:
            break
        z += step
        if not low < z < high:  # also where step is nan
            if low == -np.inf:
                z = high - 4.0
            elif high == np.inf:
                z = low + 4.0
            else:
                z = (low + high) / 2
    return s * max(below, 0.0), z


@compiled
def _tilted(K, p, y, t):  # type: ignore[no-untyped-def]
    """sum p ln(1 + y / t), sum p / (1 + y / t) and sum p / (1 + y / t)^2."""
    L, Z, ZZ, inverse = 0.0, 0.0, 0.0, 1.0 / t
    for j in range(K):
        gap = 1.0 + y[j] * inverse
        share = p[j] / gap
        L += p[j] * math.log(gap)
        Z += share
        ZZ += share / gap
    if t > FAR:
        L = 0.0
        for j in range(K):
            L += p[j] * math.log1p(y[j] * inverse)
    return L, Z, ZZ
