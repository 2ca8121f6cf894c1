"""Value-targeted ridge regression for linear mixtures (Section 5.2, Algorithm 3).

    Lambda_1 = lambda I,  b_1 = 0
    phi_k(x, a) = sum_x' psi(x, a, x') V_k(x')
    Lambda_{t+1} = Lambda_t + phi_k(x_t, a_t) phi_k(x_t, a_t)^T,   b_{t+1} = b_t + phi_k(x_t, a_t) V_k(y_t)
    theta_hat_k = Lambda_{T_k}^{-1} b_{T_k},   (P_hat_k V_k)(x, a) = <phi_k(x, a), theta_hat_k>

The target of a sample is V_k of the epoch in which it was taken; it is never recomputed. The width is
||phi_k(x, a)||_{Lambda_{T_k}^{-1}}. P_hat is no kernel: its rows may be negative or sum to anything.

Besides Lambda the data hold a root R of its inverse (Lambda = U^T U by Cholesky, R = U^{-1}, Lambda^{-1} = R R^T),
renewed once for each stretch of experience, so that widths are ||R^T phi||, non-negative by construction.
psi lives on the successors, and is read by its non-zero entries only.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import along, each, first, like, over_seeds, product, squared, strips, sync, team
from ravi.core import Array, Estimator, Path, Problem
from ravi.runtime.ranges import Number
from ravi.validation import InputError

CHUNK = 32  # steps whose features are found together


class Regression(NamedTuple):
    covariance: Number  # Lambda   (n, d, d)
    response: Number  # b              (n, d)
    root: Number  # R, upper triangular, Lambda^{-1} = R R^T   (n, d, d)


def ridge(problem: Problem, regularization: float = 1.0) -> Estimator:
    if problem.features is None:
        raise InputError(f"{problem.name} has no features: ridge regression needs a linear mixture MDP")
    d, entries = problem.dimension, _entries(problem)

    def init(n: int) -> Regression:
        eye = np.broadcast_to(np.eye(d), (n, d, d))
        return Regression(regularization * eye, np.zeros((n, d)), eye / regularization**0.5)

    def add(D: Regression, V: Array, path: Path) -> Regression:
        sound = like(V, (len(V),))
        over_seeds(
            _add, V, *entries, V, *D, path.state, path.action, path.successor, path.length, problem.actions,
            sound, scratch=((CHUNK, d), (d, d), (d, d)),
        )  # fmt: skip
        if isinstance(sound, np.ndarray) and not sound.all():  # on a GPU R is nan, and so is the policy
            raise InputError(
                f"{problem.name}: Lambda is no longer positive definite to working precision; "
                "its features are too large or too nearly dependent: scale them, or raise the regularization"
            )
        return D

    return Estimator(init, embedding(entries, problem.features.shape), _expect, _width, add)


def parameter(D: Regression) -> Array:
    """theta_hat = Lambda^{-1} b   (n, d)."""
    return product(D.root, product(D.root.swapaxes(-1, -2), D.response[..., None]))[..., 0]


def _expect(D: Regression, phi: Array) -> Array:
    """<phi, theta_hat>; a matrix product per seed, so that no seed depends on its batch."""
    n, X, A, d = phi.shape
    return product(phi.reshape(n, X * A, d), parameter(D)[..., None]).reshape(n, X, A)


def _width(D: Regression, phi: Array) -> Array:
    """||R^T phi||, likewise."""
    n, X, A, d = phi.shape
    half = product(phi.reshape(n, X * A, d), D.root)
    return np.sqrt(squared(half)).reshape(n, X, A)


def embedding(entries: tuple[Array, Array, Array], shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """V (n, X) -> phi_V (n, X, A, d), for the non-zero entries of a psi of this shape."""
    X, A, _, d = shape

    def embed(V: Array) -> Array:
        phi = like(V, (len(V), X * A * d))
        over_seeds(_embed, V, *entries, V, phi, scratch=((X, 8),))
        return phi.reshape(-1, X, A, d)

    return embed


def embedding_of(successors: Array, psi: Any) -> Callable[[Array], Array]:
    """The same for features psi (X, A, B, d)."""
    return embedding(nonzeros(successors, psi), psi.shape)


@lru_cache(maxsize=1)
def _entries(problem: Problem) -> tuple[Array, Array, Array]:
    """The non-zero features of a problem, found once for all learners that are built on it."""
    assert problem.features is not None
    return nonzeros(problem.successors, problem.features)


def nonzeros(successors: Array, psi: Array) -> tuple[Array, Array, Array]:
    """psi as lists: coordinate c of pair p holds entries start[p d + c] to start[p d + c + 1] of (x', value)."""
    X, A, B, d = psi.shape
    x, a, c, j = np.nonzero(psi.transpose(0, 1, 3, 2))
    start = np.zeros(X * A * d + 1, np.int64)
    np.cumsum(np.bincount((x * A + a) * d + c, minlength=X * A * d), out=start[1:])
    return start, successors[x, a, j], psi[x, a, j, c]


@compiled
def _embed(low, high, start, successor, value, V, phi, eight):  # type: ignore[no-untyped-def]
    """phi of seeds low, ..., high - 1. Eight at a time, side by side in `eight`, some twice; every sum has the order,
    and so the bits, of one seed alone. A team's, where it is one."""
    X, rows, W = V.shape[1], start.shape[0] - 1, eight[team()]
    alone = high if high - low < 8 else low  # up to which each seed is by itself
    for begin in range(alone, high, 8):
        b = min(begin, high - 8)
        values, found = V[b : b + 8], phi[b : b + 8]
        for x in range(X):
            for i in range(8):
                W[x, i] = values[i, x]
        for row in range(rows):
            t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
            for e in range(start[row], start[row + 1]):
                f, w = value[e], W[np.uint32(successor[e])]
                t0, t1, t2, t3 = t0 + f * w[0], t1 + f * w[1], t2 + f * w[2], t3 + f * w[3]
                t4, t5, t6, t7 = t4 + f * w[4], t5 + f * w[5], t6 + f * w[6], t7 + f * w[7]
            found[0, row], found[1, row], found[2, row], found[3, row] = t0, t1, t2, t3
            found[4, row], found[5, row], found[6, row], found[7, row] = t4, t5, t6, t7
    for i in range(low, alone):
        v = V[i]
        for row in each(rows):
            total = 0.0
            for e in range(start[row], start[row + 1]):
                total += value[e] * v[np.uint32(successor[e])]
            phi[i, row] = total


@compiled
def _add(  # type: ignore[no-untyped-def]
    low, high, start, successor, value, V, covariance, response, root, states, actions, targets, length, A, sound,
    phis, roots, inverses,
):  # fmt: skip
    """In place, of seeds low, ..., high - 1; whether each Lambda is still positive definite. A team's."""
    d = response.shape[1]
    k = team()
    phi, U, W = phis[k], roots[k], inverses[k]
    for i in range(low, high):
        if first():
            sound[i] = 1.0
        if length[i] == 0:
            continue
        v, Lam, b = V[i], covariance[i], response[i]
        for begin in range(0, length[i], phi.shape[0]):
            some = min(length[i] - begin, phi.shape[0])
            for l in strips(some):
                pair = np.int64(states[i, begin + l]) * A + actions[i, begin + l]
                for c in along(d):
                    row, total = pair * d + c, 0.0
                    for e in range(start[row], start[row + 1]):
                        total += value[e] * v[successor[e]]
                    phi[l, c] = total
            sync()
            for j in each(d):
                for l in range(some):
                    b[j] += phi[l, j] * v[targets[i, begin + l]]
            fours = some - some % 4
            for j in strips(d):
                for l in range(0, fours, 4):
                    f0, f1, f2, f3 = phi[l, j], phi[l + 1, j], phi[l + 2, j], phi[l + 3, j]
                    if f0 != 0.0 or f1 != 0.0 or f2 != 0.0 or f3 != 0.0:
                        for c in along(d):
                            so_far = Lam[j, c] + f0 * phi[l, c] + f1 * phi[l + 1, c]
                            Lam[j, c] = so_far + f2 * phi[l + 2, c] + f3 * phi[l + 3, c]
                for l in range(fours, some):
                    f = phi[l, j]
                    if f != 0.0:
                        for c in along(d):
                            Lam[j, c] += f * phi[l, c]
            sync()
        definite = root_of(Lam, U, W, root[i])
        if first() and not definite:
            sound[i] = 0.0


@compiled
def invert_root(Lam, R):  # type: ignore[no-untyped-def]
    """R <- U^{-1}, where Lambda = U^T U. Whether Lambda is positive definite."""
    return root_of(Lam, np.empty_like(Lam), np.empty_like(Lam), R)


@compiled
def root_of(Lam, U, W, R):  # type: ignore[no-untyped-def]
    """`invert_root` with U and W = R^T (d, d) as scratch; inner loops run along rows. A team's."""
    d = Lam.shape[0]
    for j in strips(d):
        for c in along(d):
            U[j, c] = Lam[j, c]
            W[j, c] = 1.0 if j == c else 0.0
            R[j, c] = np.nan
    sync()
    for k in range(d):
        if not U[k, k] > 0.0:
            return False
        pivot = math.sqrt(U[k, k])
        sync()  # all have the pivot
        for c in each(d - k):
            U[k, k + c] /= pivot
        sync()
        for below in strips(d - k - 1):
            j = k + 1 + below
            f = U[k, j]
            if f != 0.0:
                for c in along(d - j):
                    U[j, j + c] -= f * U[k, j + c]
        sync()
    for k in range(d):
        for j in each(k + 1):
            W[k, j] /= U[k, k]
        sync()
        for below in strips(d - k - 1):
            c = k + 1 + below
            f = U[k, c]
            if f != 0.0:
                for j in along(k + 1):
                    W[c, j] -= f * W[k, j]
        sync()
    for j in strips(d):
        for c in along(d):
            R[j, c] = W[c, j]
    return True
