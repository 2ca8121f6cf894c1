"""What does a regression know of the kernel? Value-targeted ridge regression (Section 5.2, Algorithm 3).

    Lambda_1 = lambda I,  b_1 = 0
    phi_k(x, a) = sum_x' psi(x, a, x') V_k(x')
    Lambda_{t+1} = Lambda_t + phi_k(x_t, a_t) phi_k(x_t, a_t)^T,   b_{t+1} = b_t + phi_k(x_t, a_t) V_k(y_t)
    theta_hat_k = Lambda_{T_k}^{-1} b_{T_k},   (P_hat_k V_k)(x, a) = <phi_k(x, a), theta_hat_k>

The target of a sample is V_k of the epoch in which it was taken; it is never recomputed. The width is
||phi_k(x, a)||_{Lambda_{T_k}^{-1}}. P_hat is no kernel: its rows may be negative or sum to anything.

Besides Lambda the data hold a root R of its inverse (Lambda = U^T U by Cholesky, R = U^{-1}, Lambda^{-1} = R R^T),
renewed once for each stretch of experience, so that widths are ||R^T phi||, non-negative by construction.
psi is read on the successors only, and where most of it is zero, on its non-zero entries only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from ravi.checks import InputError
from ravi.compiled import compiled
from ravi.core import Array, Estimator, Path, Problem
from ravi.planning.bellman import gather

DENSE = 0.3  # psi with fewer non-zeros than this share is read by its non-zero entries


class Regression(NamedTuple):
    covariance: Array  # Lambda       (n, d, d)
    response: Array  # b              (n, d)
    root: Array  # R, upper triangular, Lambda^{-1} = R R^T   (n, d, d)


def ridge(problem: Problem, regularization: float = 1.0) -> Estimator:
    if problem.features is None:
        raise InputError(f"{problem.name} has no features: ridge regression needs a linear mixture MDP")
    successors, psi, d = problem.successors, problem.features, problem.dimension
    sparse = isinstance(psi, np.ndarray) and np.count_nonzero(psi) < DENSE * psi.size
    entries = _nonzeros(successors, psi) if sparse else None

    def init(n: int) -> Regression:
        xp = array_namespace(psi)
        eye = xp.broadcast_to(xp.eye(d), (n, d, d))
        return Regression(regularization * eye, xp.zeros((n, d)), eye / regularization**0.5)

    def embed(V: Array) -> Array:
        if not isinstance(V, np.ndarray):
            return embed_array(successors, psi, V)
        if entries is None:
            return _embed(successors, psi, V)
        return _embed_nonzeros(*entries, V, d).reshape(-1, *psi.shape[:2], d)

    def expect(D: Regression, phi: Array) -> Array:
        if isinstance(phi, np.ndarray):
            return _expect(D.root, D.response, phi)
        return ridge_expect_array(D, phi)

    def width(D: Regression, phi: Array) -> Array:
        if isinstance(phi, np.ndarray):
            return _width(D.root, phi)
        return ridge_width_array(D, phi)

    def add(D: Regression, V: Array, path: Path) -> Regression:
        _add(successors, psi, V, *D, path.state, path.action, path.successor, path.length)
        return D

    return Estimator(init, embed, expect, width, add)


def parameter(D: Regression) -> Array:
    """theta_hat = Lambda^{-1} b   (n, d)."""
    xp = array_namespace(D.response)
    half = xp.matmul(xp.matrix_transpose(D.root), D.response[..., None])
    return xp.matmul(D.root, half)[..., 0]


def embed_array(successors: Array, psi: Array, V: Array) -> Array:
    """phi_V   (n, X, A, d), in any array namespace."""
    xp = array_namespace(V)
    return xp.matmul(gather(V, successors)[..., None, :], psi)[..., 0, :]


def ridge_expect_array(D: Regression, phi: Array) -> Array:
    xp = array_namespace(phi)
    return xp.matmul(phi, parameter(D)[:, None, :, None])[..., 0]


def ridge_width_array(D: Regression, phi: Array) -> Array:
    xp = array_namespace(phi)
    half = xp.matmul(phi, D.root[:, None, :, :])  # R^T phi
    return xp.sqrt(xp.sum(half * half, axis=-1))


def _nonzeros(successors: Array, psi: Array) -> tuple[Array, Array, Array, Array]:
    """psi as lists: pair p holds entries start[p] to start[p + 1] of (x', coordinate, value)."""
    X, A, B, d = psi.shape
    x, a, j, c = np.nonzero(psi)
    start = np.zeros(X * A + 1, np.int64)
    np.cumsum(np.bincount(x * A + a, minlength=X * A), out=start[1:])
    return start, successors[x, a, j], c.astype(np.int32), psi[x, a, j, c]


@compiled
def _embed(successors, psi, V):  # type: ignore[no-untyped-def]
    X, A, B, d = psi.shape
    n = V.shape[0]
    phi = np.zeros((n, X, A, d))
    for i in range(n):
        for x in range(X):
            for a in range(A):
                for j in range(B):
                    v = V[i, successors[x, a, j]]
                    for c in range(d):
                        phi[i, x, a, c] += psi[x, a, j, c] * v
    return phi


@compiled
def _embed_nonzeros(start, successor, coordinate, value, V, d):  # type: ignore[no-untyped-def]
    n, pairs = V.shape[0], start.shape[0] - 1
    phi = np.zeros((n, pairs, d))
    for i in range(n):
        for p in range(pairs):
            for e in range(start[p], start[p + 1]):
                phi[i, p, coordinate[e]] += value[e] * V[i, successor[e]]
    return phi


@compiled
def _expect(root, response, phi):  # type: ignore[no-untyped-def]
    n, X, A, d = phi.shape
    PV = np.empty((n, X, A))
    half, theta = np.empty(d), np.empty(d)
    for i in range(n):
        half[:] = 0.0
        for j in range(d):  # R^T b
            for c in range(j, d):
                half[c] += root[i, j, c] * response[i, j]
        for j in range(d):  # theta_hat = R R^T b
            theta[j] = 0.0
            for c in range(j, d):
                theta[j] += root[i, j, c] * half[c]
        for x in range(X):
            for a in range(A):
                total = 0.0
                for c in range(d):
                    total += phi[i, x, a, c] * theta[c]
                PV[i, x, a] = total
    return PV


@compiled
def _width(root, phi):  # type: ignore[no-untyped-def]
    n, X, A, d = phi.shape
    w = np.empty((n, X, A))
    half = np.empty(d)
    for i in range(n):
        R = root[i]
        for x in range(X):
            for a in range(A):
                half[:] = 0.0
                for j in range(d):  # R^T phi, row by row of R
                    f = phi[i, x, a, j]
                    if f != 0.0:
                        for c in range(j, d):
                            half[c] += R[j, c] * f
                total = 0.0
                for c in range(d):
                    total += half[c] * half[c]
                w[i, x, a] = np.sqrt(total)
    return w


@compiled
def _add(  # type: ignore[no-untyped-def]
    successors, psi, V, covariance, response, root, state, action, successor, length
):
    B, d = psi.shape[2], psi.shape[3]
    phi = np.empty(d)
    for i in range(state.shape[0]):
        if length[i] == 0:
            continue
        Lam, b = covariance[i], response[i]
        for l in range(length[i]):
            x, a = state[i, l], action[i, l]
            phi[:] = 0.0
            for j in range(B):
                v = V[i, successors[x, a, j]]
                for c in range(d):
                    phi[c] += psi[x, a, j, c] * v
            target = V[i, successor[i, l]]
            for j in range(d):
                f = phi[j]
                if f != 0.0:
                    b[j] += f * target
                    for c in range(d):
                        Lam[j, c] += f * phi[c]
        _invert_root(Lam, root[i])


@compiled
def _invert_root(Lam, R):  # type: ignore[no-untyped-def]
    """R <- U^{-1}, where Lambda = U^T U; inner loops run along rows."""
    d = Lam.shape[0]
    U = Lam.copy()
    for k in range(d):
        pivot = np.sqrt(U[k, k])
        for c in range(k, d):
            U[k, c] /= pivot
        for j in range(k + 1, d):
            f = U[k, j]
            if f != 0.0:
                for c in range(j, d):
                    U[j, c] -= f * U[k, c]
    R[:] = 0.0
    for j in range(d):
        R[j, j] = 1.0
        for k in range(j, d):
            R[j, k] /= U[k, k]
            f = R[j, k]
            if f != 0.0:
                for c in range(k + 1, d):
                    R[j, c] -= f * U[k, c]
