"""What does a regression know of a linear MDP? P(x' | x, a) = <phi(x, a), m(x')>, and least squares for any target.

    Lambda = lambda I + sum_t phi_t phi_t^T,     M = sum_t phi_t e_{y_t}^T      (d, X)
    w_f = Lambda^{-1} sum_t phi_t f(y_t) = Lambda^{-1} M f,     (P_hat f)(x, a) = <phi(x, a), w_f>

All past targets are recomputed with the current f, and yet no cost grows with T, since M says all that f needs. The
width is ||phi(x, a)||_{Lambda^{-1}}. The data are a `Gram` with moves (`ravi.estimators.gram`), which a walk fills.

Every MDP is linear with phi(x, a) = e_{x,a}, d = X A: where a problem has no features of pairs, these are used.
"""

from __future__ import annotations

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array, Problem
from ravi.estimators.gram import Gram


def features_of(problem: Problem) -> Array:
    """phi(x, a), of shape (1, X, A, d): the problem's own, or one coordinate for every pair."""
    if problem.pair_features is not None:
        return np.ascontiguousarray(problem.pair_features)[None]
    X, A = problem.states, problem.actions
    return np.eye(X * A).reshape(1, X, A, X * A)


def weights(D: Gram, f: Array) -> Array:
    """w_f = Lambda^{-1} M f   (n, d), for f (n, X)."""
    return _weights(D.inverse, D.moves, np.ascontiguousarray(f))


def predict(phi: Array, w: Array) -> Array:
    """<phi(x, a), w>   (n, X, A)."""
    return _predict(phi, w)


def width(D: Gram, phi: Array) -> Array:
    """||phi(x, a)||_{Lambda^{-1}}   (n, X, A)."""
    return _width(D.inverse, phi)


@compiled
def _weights(inverse, moves, f):  # type: ignore[no-untyped-def]
    n, d, X = moves.shape
    w, right = np.zeros((n, d)), np.empty(d)
    for i in range(n):
        for j in range(d):
            total = 0.0
            for y in range(X):
                total += moves[i, j, y] * f[i, y]
            right[j] = total
        for j in range(d):
            if right[j] != 0.0:
                for c in range(d):
                    w[i, c] += right[j] * inverse[i, j, c]
    return w


@compiled
def _predict(phi, w):  # type: ignore[no-untyped-def]
    n, d = w.shape
    _, X, A, _ = phi.shape
    out = np.empty((n, X, A))
    for i in range(n):
        for x in range(X):
            for a in range(A):
                total = 0.0
                for j in range(d):
                    total += phi[0, x, a, j] * w[i, j]
                out[i, x, a] = total
    return out


@compiled
def _width(inverse, phi):  # type: ignore[no-untyped-def]
    n, d, _ = inverse.shape
    _, X, A, _ = phi.shape
    out = np.empty((n, X, A))
    for x in range(X):
        for a in range(A):
            row = phi[0, x, a]
            for i in range(n):
                total = 0.0
                for j in range(d):
                    if row[j] != 0.0:
                        part = 0.0
                        for c in range(d):
                            part += row[c] * inverse[i, j, c]
                        total += row[j] * part
                out[i, x, a] = np.sqrt(max(total, 0.0))
    return out
