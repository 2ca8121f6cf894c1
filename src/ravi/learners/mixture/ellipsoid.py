"""Extended value iteration on an ellipsoid of mixtures (Zhou, He, Gu 2021).

    Q(x, a) <- r(x, a) + gamma max_theta <theta, phi_V(x, a)>,   V(x) <- max_a Q(x, a)

from Q = H, for U = ceil(H ln(T H)) rounds, with theta in the sets of `ravi.optimism.ellipsoids`, chosen anew for every
pair. With a span bound c, V <- min(V, min V + c).

exact-simplex. Every theta makes a kernel, so the backup is monotone, moves constants along with gamma, and shrinks
distances and spans by gamma: there is one fixed point V_k, and the U rounds end at most H gamma^U <= 1/T above it. Here
V_k is found to `tol` from above, faster: between two backups the kernels and actions just chosen are kept for some
sweeps (modified policy iteration); once a backup has not shrunk the span of its move, the rest are plain, and converge.
With delta = L V - V, L V + gamma H max delta is above V_k by at most gamma H span(delta): that is the stop, and the
answer. V may start anywhere.

null-space, relaxed. What is chosen is no kernel, and the backup neither monotone nor a contraction. True values are
averages of V, so <theta, phi_V> is cut to [min V, max V]: valid upper bounds stay valid, and V stays in [0, H].
Exactly U rounds from Q = H are made, less those that can be told: after every power of two rounds V is kept, and when
it comes again (to `SAME` H) after p rounds, the rest is p-periodic, and only its remainder modulo p is made. A plan
has converged (p = 1) if its last round moved V by at most 1 / (T H), as U rounds of a contraction would; a longer
period, or none, is reported.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Problem
from ravi.estimators.gram import Gram, estimate
from ravi.estimators.ridge import nonzeros
from ravi.optimism.ellipsoids import NULL_SPACE, SIMPLEX, Flat, null_space, relaxed, unit_mass
from ravi.optimism.simplex import Ball, ball, best
from ravi.planning.sweeps import highest, lowest

MOST = 10_000  # backups of one plan on the simplex; a dozen is usual
EVALUATED = 0.05  # sweeps of kept kernels go on to this part of the last move
SAME = 1e-10  # of H: two values that count as the same


class Planned(NamedTuple):
    V: Array  # (n, X)
    Q: Array  # (n, X, A)
    period: Array  # of V in the end: 1 where it converged, 0 where no period was seen   (n,)
    empty: Array  # whether the ellipsoid missed the set, and its radius was raised      (n,)


Planner: TypeAlias = Callable[[Gram, Array, Array, Array], Planned]  # D, beta (n,), V to start from (n, X), active (n,)


def planner(problem: Problem, inner: str, steps: int, *, span: float = np.inf, centred: bool = False) -> Planner:
    """`centred`: theta is only ever applied to V - min V, whose mean min V then adds."""
    psi: Any = problem.features
    entries = nonzeros(problem.successors, psi)
    r, gamma, H, T = problem.rewards, problem.discount, problem.horizon, steps
    common = (r, problem.successors, psi, *entries, gamma)
    tol = min(1 / T, 1e-7 * H)
    U = rounds(H, T)
    space = unit_mass(problem) if inner == NULL_SPACE else None

    def plan(D: Gram, beta: Array, V: Array, active: Array) -> Planned:
        theta = estimate(D)
        if inner == SIMPLEX:
            return on_simplex(common, ball(D.covariance, theta, beta), V, active, span, tol)
        flat = null_space(space, D.covariance, theta, beta) if space else relaxed(D.inverse, theta, beta)
        return on_flat(common, flat, np.full(V.shape, H), active, span, U, 1 / (T * H), centred)

    return plan


def rounds(H: float, T: int) -> int:
    """U = ceil(H ln(T H)), at least 1."""
    return max(1, math.ceil(H * math.log(T * H)))


def on_simplex(common: tuple[Any, ...], B: Ball, V: Array, active: Array, span: float, tol: float) -> Planned:
    """The fixed point, from `V` (n, X), which is not changed."""
    n, (X, A) = len(V), common[0].shape
    V, Q, backups = V.copy(), np.zeros((n, X, A)), np.ones(n, np.int64)
    _on_simplex(*common, *B[:6], V, Q, active, span, tol, backups, MOST)
    return Planned(V, Q, (backups < MOST).astype(np.int64), B.empty)


def on_flat(
    common: tuple[Any, ...], flat: Flat, V: Array, active: Array, span: float, U: int, still: float, centred: bool
) -> Planned:
    """U rounds from V (n, X), which is not changed; one that moves V by no more than `still` is the end of the move."""
    n, (X, A) = len(V), common[0].shape
    V, Q, period = V.copy(), np.zeros((n, X, A)), np.ones(n, np.int64)
    _on_flat(*common, flat.centre, flat.shape, flat.radius, V, Q, active, span, U, still, centred, period)
    return Planned(V, Q, period, flat.empty)


@compiled
def _embed(start, successor, value, v, shift, phi):  # type: ignore[no-untyped-def]
    """phi <- phi_{V - shift}, for all pairs in a row."""
    for row in range(start.shape[0] - 1):
        total = 0.0
        for e in range(start[row], start[row + 1]):
            total += value[e] * (v[np.uint32(successor[e])] - shift)
        phi[row] = total


@compiled
def _settle(Q, span, V, Lv):  # type: ignore[no-untyped-def]
    """Lv <- min(max_a Q, min of it + span); the least and the largest of Lv - V."""
    X, A = Q.shape
    bottom = np.inf
    for x in range(X):
        top = Q[x, 0]
        for a in range(1, A):
            top = max(top, Q[x, a])
        Lv[x] = top
        bottom = min(bottom, top)
    down, up = np.inf, -np.inf
    for x in range(X):
        Lv[x] = min(Lv[x], bottom + span)
        down, up = min(down, Lv[x] - V[x]), max(up, Lv[x] - V[x])
    return down, up


@compiled
def _on_simplex(  # type: ignore[no-untyped-def]
    r, successors, psi, start, successor, value, gamma, covariance, centre, radius, nearest, least, corners,
    V, Q, active, span, tol, backups, most,
):  # fmt: skip
    n, X, A = Q.shape
    d, B = centre.shape[1], successors.shape[2]
    H = 1.0 / (1.0 - gamma)
    phi = np.empty(X * A * d)
    theta, s = np.empty((X, A, d)), np.empty((X, A))
    P, greedy, Lv = np.empty((X, B)), np.empty(X, np.int64), np.empty(X)
    f, pull, L, one, p = np.empty(d), np.empty(d), np.empty((d, d)), np.empty(d), np.empty(d)
    order, allowed = np.empty(d, np.int64), np.empty(d, np.bool_)
    for i in range(n):
        if not active[i]:
            continue
        v = V[i]
        for x in range(X):
            for a in range(A):
                theta[x, a] = nearest[i]
                s[x, a] = 0.0
        last, plain = np.inf, False
        backups[i] = 0
        while True:
            backups[i] += 1
            shift = lowest(v)
            _embed(start, successor, value, v, shift, phi)
            for x in range(X):
                for a in range(A):
                    row = (x * A + a) * d
                    top, _, s[x, a] = best(
                        covariance[i], centre[i], radius[i], nearest[i], least[i], corners[i], phi[row : row + d],
                        s[x, a], theta[x, a], f, pull, L, one, p, order, allowed,
                    )  # fmt: skip
                    Q[i, x, a] = r[x, a] + gamma * (shift + top)
            down, up = _settle(Q[i], span, v, Lv)
            if gamma * H * (up - down) <= tol or backups[i] >= most:
                rise = gamma * H * up
                for x in range(X):
                    v[x] = min(max(Lv[x] + rise, 0.0), H)
                    for a in range(A):
                        Q[i, x, a] = min(max(Q[i, x, a] + rise, 0.0), H)
                break
            plain = plain or up - down > last
            last = up - down
            for x in range(X):
                v[x] = Lv[x] + gamma * H * (up + down) / 2
            if not plain:
                for x in range(X):
                    a = 0
                    for other in range(1, A):
                        if Q[i, x, other] > Q[i, x, a]:
                            a = other
                    greedy[x] = a
                    for j in range(B):
                        total = 0.0
                        for c in range(d):
                            total += theta[x, a, c] * psi[x, a, j, c]
                        P[x, j] = total
                _evaluate(r, successors, gamma, span, greedy, P, v, Lv, max(EVALUATED * last, 0.1 * tol / H))


@compiled
def _evaluate(r, successors, gamma, span, greedy, P, v, Lv, goal):  # type: ignore[no-untyped-def]
    """Sweeps with these actions and kernels, until the span of a move is at most `goal`."""
    X, B = P.shape
    H = 1.0 / (1.0 - gamma)
    Q = np.empty((X, 1))
    for _ in range(int(20.0 * H) + 2):  # the span shrinks by gamma in each
        for x in range(X):
            to, total = successors[x, greedy[x]], 0.0
            for j in range(B):
                total += P[x, j] * v[np.uint32(to[j])]
            Q[x, 0] = r[x, greedy[x]] + gamma * total
        down, up = _settle(Q, span, v, Lv)
        v[:] = Lv
        if up - down <= goal:
            for x in range(X):
                v[x] += gamma * H * (up + down) / 2
            return


@compiled
def _on_flat(  # type: ignore[no-untyped-def]
    r, successors, psi, start, successor, value, gamma, centre, shape, radius, V, Q, active, span, U, still, centred,
    period,
):  # fmt: skip
    n, X, A = Q.shape
    d = centre.shape[1]
    H = 1.0 / (1.0 - gamma)
    phi, Lv, kept = np.empty(X * A * d), np.empty(X), np.empty(X)
    for i in range(n):
        if not active[i]:
            continue
        v = V[i]
        kept[:] = v
        since, power, left = 0, 1, U
        period[i] = 0
        while left > 0:
            left -= 1
            low, high = lowest(v), highest(v)
            shift = low if centred else 0.0
            _embed(start, successor, value, v, shift, phi)
            for x in range(X):
                for a in range(A):
                    row = (x * A + a) * d
                    total, square = shift, 0.0
                    for j in range(d):
                        part = 0.0
                        for k in range(d):
                            part += shape[i, j, k] * phi[row + k]
                        square += phi[row + j] * part
                        total += centre[i, j] * phi[row + j]
                    total += radius[i] * math.sqrt(max(square, 0.0))
                    Q[i, x, a] = r[x, a] + gamma * min(max(total, low), high)
            down, up = _settle(Q[i], span, v, Lv)
            v[:] = Lv
            since += 1
            if period[i] == 0:
                moved = 0.0
                for x in range(X):
                    moved = max(moved, abs(v[x] - kept[x]))
                if moved <= SAME * H:
                    period[i] = since
                    left %= since
                elif since == power:
                    kept[:] = v
                    since, power = 0, 2 * power
            if left == 0 and max(up, -down) <= still:
                period[i] = 1
