"""Least squares for any target in a linear MDP, P(x' | x, a) = <phi(x, a), m(x')>.

    Lambda = lambda I + sum_t phi_t phi_t^T,     M = sum_t phi_t e_{y_t}^T      (d, X)
    w_f = Lambda^{-1} sum_t phi_t f(y_t) = Lambda^{-1} M f,     (P_hat f)(x, a) = <phi(x, a), w_f>

All past targets are recomputed with the current f, and yet no cost grows with T, since M says all that f needs. The
width is ||phi(x, a)||_{Lambda^{-1}}. The data are a `Gram` with moves (`ravi.estimators.gram`), which a walk fills, or
`add` where the epochs do not end by its determinant.

Every MDP is linear with phi(x, a) = e_{x,a}, d = X A: where a problem has no features of pairs, these are used.
"""

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Estimator, Path, Problem
from ravi.estimators.gram import Gram, estimate, gram, renew


def features_of(problem: Problem) -> Array:
    """phi(x, a), of shape (1, X, A, d): the problem's own, or one coordinate for every pair."""
    if problem.pair_features is not None:
        return np.array(problem.pair_features, order="C")[None]  # one's own: read-only arrays are compiled for apart
    X, A = problem.states, problem.actions
    return np.eye(X * A).reshape(1, X, A, X * A)


def linear(problem: Problem, regularization: float = 1.0) -> Estimator:
    """D, P_hat and the width, for learners that plan between epochs; all targets are those of the V at hand."""
    phi = features_of(problem)

    def init(n: int) -> Gram:
        return gram(n, phi.shape[-1], regularization, problem.states, moves=True)

    def expect(D: Gram, V: Array) -> Array:
        return predict(phi, weights(D, V))

    def added(D: Gram, V: Array, path: Path) -> Gram:
        return renew(add(D, phi, path))

    return Estimator(init, lambda V: V, expect, lambda D, V: width(D, phi), added)


def weights(D: Gram, f: Array) -> Array:
    """w_f = Lambda^{-1} M f   (n, d), for f (n, X)."""
    return estimate(D._replace(response=_responses(D.moves, np.ascontiguousarray(f))))


def add(D: Gram, phi: Array, path: Path) -> Gram:
    """The plays of a path, in place; the inverse and the determinant are left for `ravi.estimators.gram.renew`."""
    _add(D.covariance, D.moves, phi, path.state, path.action, path.successor, path.length)
    return D


@compiled
def _add(covariance, moves, phi, state, action, successor, length):  # type: ignore[no-untyped-def]
    d = covariance.shape[1]
    for i in range(length.shape[0]):
        for l in range(length[i]):
            row, y = phi[0, state[i, l], action[i, l]], successor[i, l]
            for j in range(d):
                f = row[j]
                if f != 0.0:
                    moves[i, j, y] += f
                    for c in range(d):
                        covariance[i, j, c] += f * row[c]


@compiled
def measures(D):  # type: ignore[no-untyped-def]
    """m_hat = Lambda^{-1} M   (n, d, X), so that (P_hat f)(x, a) = <phi(x, a), m_hat f>."""
    m = np.zeros(D.moves.shape)
    for i in range(m.shape[0]):
        add_product(D.inverse[i], D.moves[i], m[i])
    return m


@compiled
def add_product(inverse, moves, m):  # type: ignore[no-untyped-def]
    """m += Lambda^{-1} M (d, X), by what is not 0 of the first."""
    d, X = moves.shape
    for j in range(d):
        for c in range(d):
            f = inverse[j, c]
            if f != 0.0:
                for y in range(X):
                    m[j, y] += f * moves[c, y]


@compiled
def _responses(moves, f):  # type: ignore[no-untyped-def]
    """M f   (n, d)."""
    n, d, X = moves.shape
    b = np.empty((n, d))
    for i in range(n):
        for j in range(d):
            total = 0.0
            for y in range(X):
                total += moves[i, j, y] * f[i, y]
            b[i, j] = total
    return b


@compiled
def predict(phi, w):  # type: ignore[no-untyped-def]
    """<phi(x, a), w>   (n, X, A)."""
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
def width(D, phi):  # type: ignore[no-untyped-def]
    """||phi(x, a)||_{Lambda^{-1}}   (n, X, A)."""
    inverse = D.inverse
    n, d, _ = inverse.shape
    _, X, A, _ = phi.shape
    out = np.empty((n, X, A))
    kept = np.empty(d, np.int64)
    for x in range(X):
        for a in range(A):
            row, size = phi[0, x, a], 0
            for j in range(d):
                if row[j] != 0.0:
                    kept[size] = j
                    size += 1
            for i in range(n):
                total = 0.0
                for p in range(size):
                    j, part = kept[p], 0.0
                    for q in range(size):
                        part += row[kept[q]] * inverse[i, j, kept[q]]
                    total += row[j] * part
                out[i, x, a] = np.sqrt(max(total, 0.0))
    return out
