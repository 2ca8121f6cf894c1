"""The Gram matrix Lambda = lambda I + sum phi phi^T of the features met, its inverse and its determinant.

A walk that adds the feature of every step as it goes, and ends the epoch at the step with det Lambda > 2 det Lambda_k,
where Lambda_k is what the epoch began with (Abbasi-Yadkori, Pal, Szepesvari 2011; UCLK, LSVI-UCB and their kin): then
at most (d / ln 2) ln(1 + T max ||phi||^2 / (lambda d)) epochs are planned.

Along with phi(x_t, a_t) it may add a response phi V(y_t) (value targets, linear mixtures), or phi e_{y_t}^T (moves,
linear MDPs): then Lambda^{-1} sum_t phi_t f(y_t) is had for any f, and no cost grows with T.

The inverse goes from step to step by Sherman and Morrison's formula, and is computed anew from Lambda by `renew`. A
step that it cannot make in working precision (1 + phi^T Lambda^{-1} phi <= 0, or not finite) leaves ln det Lambda nan;
that ends the epoch, and `renew` refuses it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, sync
from ravi.core import Array, Walk, Walkers
from ravi.runtime.ranges import Number, NumberOrNone
from ravi.runtime.walk import walking
from ravi.validation import InputError

DOUBLED = math.log(2.0) + 1e-10  # more than doubled, whatever the rounding: one-hot features double exactly, often


class Gram(NamedTuple):
    covariance: Number  # Lambda                    (n, d, d)
    inverse: Number  # Lambda^{-1}                     (n, d, d)
    log_det: Number  # ln det Lambda  (n,)
    opened: NumberOrNone  # ln det Lambda_k             (n,)
    response: Number  # sum phi V(y); empty where there are no values   (n, d or 0)
    moves: Number  # sum phi e_y^T; empty where moves are not kept      (n, d or 0, X)


def gram(n: int, d: int, regularization: float, states: int, *, moves: bool) -> Gram:
    """Nothing seen yet: Lambda = lambda I."""
    eye = np.broadcast_to(np.eye(d), (n, d, d))
    log_det = np.full(n, d * math.log(regularization))
    response, kept = np.zeros((n, 0 if moves else d)), np.zeros((n, d if moves else 0, states))
    return Gram(regularization * eye, eye / regularization, log_det, log_det.copy(), response, kept)


def renew(D: Gram) -> Gram:
    """The inverse and the determinant from Lambda itself, which an epoch begins with; in place."""
    if not np.isfinite(D.log_det).all() or not _renew(D.covariance, D.inverse, D.log_det, D.opened):
        raise indefinite()
    return D


def indefinite() -> InputError:
    return InputError(
        "Lambda is no longer positive definite to working precision; the features are too large or too nearly "
        "dependent: scale them, or raise the regularization"
    )


def reopen(D: Gram, first: Array) -> Array:
    """The seeds (m,) that begin a phase, renewed in place: those whose determinant has doubled since the last one
    opened, and those for which it is the `first` (n,)."""
    rows = np.nonzero(first | ~(D.log_det <= D.opened + DOUBLED))[0]
    for i in rows.tolist():
        renew(row(D, i))
    return rows


def row(D: Gram, i: int) -> Gram:
    """Seed i alone; the same memory."""
    return Gram(*(leaf[i : i + 1] for leaf in D))


def gram_walk(of: Callable[[Any], tuple[Gram, Array, Array | None]]) -> Walk:
    """A walk that adds as it goes. Of a state: D; phi (n or 1, X, A, d); and V (n, X), where D has a response."""

    def own(s: Any, walkers: Walkers) -> tuple[Any, ...]:
        D, phi, V = of(s)
        return *D, phi, np.zeros((0, 0)) if V is None else V, np.empty(phi.shape[-1])

    return walking(_learn, own)


@compiled
def estimate(D):  # type: ignore[no-untyped-def]
    """theta_hat = Lambda^{-1} b   (n, d)."""
    inverse, response = D.inverse, D.response
    n, d = response.shape
    theta = np.zeros((n, d))
    for i in range(n):
        for j in range(d):
            f = response[i, j]
            if f != 0.0:
                for c in range(d):
                    theta[i, c] += f * inverse[i, j, c]
    return theta


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Add phi(x, a); whether the determinant has doubled."""
    covariance, inverse, log_det, opened, response, moves, phi, V, scratch = own
    feature = phi[i if phi.shape[0] > 1 else 0, x, a]
    log_det[i] += growth(add_feature(covariance[i], inverse[i], feature, scratch))
    if V.shape[0] > 0:
        target = V[i, y]
        for j in range(feature.shape[0]):
            response[i, j] += feature[j] * target
    if moves.shape[1] > 0:
        for j in range(feature.shape[0]):
            moves[i, j, y] += feature[j]
    return not log_det[i] <= opened[i] + DOUBLED


@compiled
def add_feature(Lam, inverse, phi, g):  # type: ignore[no-untyped-def]
    """Lambda += phi phi^T and its inverse with it; phi^T Lambda^{-1} phi of before. g is scratch. A team's."""
    d = phi.shape[0]
    for c in each(d):
        g[c] = 0.0
    for j in range(d):
        f = phi[j]
        if f != 0.0:
            for c in each(d):
                g[c] += f * inverse[j, c]
                Lam[j, c] += f * phi[c]
    sync()
    q = 0.0
    for j in range(d):
        q += phi[j] * g[j]
    share = 1.0 / (1.0 + q)
    for j in range(d):
        f = g[j] * share
        if f != 0.0:
            for c in each(d):
                inverse[j, c] -= f * g[c]
    sync()
    return q


@compiled
def growth(q):  # type: ignore[no-untyped-def]
    """How much ln det Lambda grows by a feature with phi^T Lambda^{-1} phi = q; nan if rounding has ruined q."""
    return math.log1p(q) if -1.0 < q < math.inf else math.nan


@compiled
def _renew(covariance, inverse, log_det, opened):  # type: ignore[no-untyped-def]
    """Whether every Lambda is positive definite. Zeros before the first entry of a row are passed over."""
    n, d, _ = covariance.shape
    L, R = np.empty((d, d)), np.zeros((d, d))
    first, final = np.empty(d, np.int64), np.empty(d, np.int64)  # of a row of L; of a column of R
    for i in range(n):
        total = 0.0
        for j in range(d):  # Lambda = L L^T
            first[j] = 0
            while covariance[i, j, first[j]] == 0.0 and first[j] < j:
                first[j] += 1
            for k in range(first[j], j + 1):
                rest = covariance[i, j, k]
                for c in range(max(first[j], first[k]), k):
                    rest -= L[j, c] * L[k, c]
                if j == k:
                    if not rest > 0.0:
                        return False
                    L[j, j] = math.sqrt(rest)
                    total += math.log(rest)
                else:
                    L[j, k] = rest / L[k, k]
        for k in range(d):  # R = L^{-1}, by columns
            R[k, k] = 1.0 / L[k, k]
            final[k] = k
            for j in range(k + 1, d):
                R[j, k] = 0.0
                if first[j] <= final[k]:
                    rest = 0.0
                    for c in range(max(first[j], k), min(j, final[k] + 1)):
                        rest -= L[j, c] * R[c, k]
                    R[j, k] = rest / L[j, j]
                    if rest != 0.0:
                        final[k] = j
        for j in range(d):  # Lambda^{-1} = R^T R
            for k in range(j + 1):
                rest = 0.0
                for c in range(j, min(final[j], final[k]) + 1):
                    rest += R[c, j] * R[c, k]
                inverse[i, j, k] = inverse[i, k, j] = rest
        log_det[i] = opened[i] = total
    return True
