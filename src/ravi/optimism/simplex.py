"""The maximum of <theta, phi> over an ellipsoid and the simplex.

The ellipsoid is first cut by the plane where theta sums to 1. For s > 0 let theta(s) maximise
s <theta, phi> - ||theta - theta_hat||^2_Lambda / 2 over the simplex: a strictly convex quadratic programme, solved by
an active-set method (Lawson and Hanson's, with the sum fixed), which ends after finitely many pivots because each
lowers the objective. r(s) = ||theta(s) - theta_hat||_Lambda never falls as s grows, theta(0) is the nearest point,
and where r(s) = beta, theta(s) is the maximum. While the support stays, theta(s) is linear in s and r(s)^2 is c + q
s^2, so from any s of the last piece the root of r(s) = beta is had at once; until then the step is kept inside a
bracket. If the face of largest phi meets E, the maximum is max phi, and no s is needed.

Where phi is the same on the support of theta(s), up to rounding, theta(s) stands still, and the root of that piece is
noise. No s above beta^2 / (4 tol) is needed, though: by the bound below, theta(s) of E falls short of the maximum by at
most r(s) (beta - r(s)) / s <= beta^2 / (4 s). That is as far as the search goes; and what it finds must lie in E, for
at so large an s the same bound says little of a theta(s) outside.

Every answer carries a bound on its error. For any theta and s > 0, with v = theta - theta_hat, w = phi - Lambda v / s,
all theta' of the set have

    <theta', phi> = <theta', w> + <v, theta'>_Lambda / s <= max_i w_i + (<v, theta_hat>_Lambda + beta ||v||_Lambda) / s.

What is returned as the maximum is this bound: never too small, up to rounding.
"""

import math
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array

TRIES = 200  # values of s for one maximum; a handful is usual
PIVOTS = 20  # d times this many changes of the support in one quadratic programme; about d is usual
EXACT = 1e-12  # the error at which a maximum is found, as a part of max phi - min phi
OUTSIDE = 1e-9  # how far outside the ellipsoid a maximum may lie, as a part of the radius
NOISE = 64 * 2.0**-52  # of what a gradient is summed from


class Ball(NamedTuple):
    """An ellipsoid in the plane where theta sums to 1, and where it meets the simplex."""

    covariance: Array  # Lambda there                          (n, d, d)
    centre: Array  # the point of the plane nearest to theta_hat   (n, d)
    radius: Array  # of the cut, raised to `least` where it was less   (n,)
    nearest: Array  # the point of the simplex nearest to the centre   (n, d)
    least: Array  # its distance from the centre               (n,)
    corners: Array  # squared distances of the vertices from it   (n, d)
    away: Array  # the distance of theta_hat from the plane    (n,)
    empty: Array  # whether the radius had to be raised        (n,)


def ball(covariance: Array, centre: Array, radius: Array) -> Ball:
    """The ellipsoid and its nearest point of the simplex, once for all phi."""
    n, d = centre.shape
    Lam, middle, away = np.empty((n, d, d)), np.empty((n, d)), np.empty(n)
    nearest, least, corners = np.empty((n, d)), np.empty(n), np.empty((n, d))
    _cut(covariance, centre, Lam, middle, away)
    _meet(Lam, middle, nearest, least, corners)
    left = np.sqrt(np.maximum(radius**2 - away**2, 0.0))
    return Ball(Lam, middle, np.maximum(left, least), nearest, least, corners, away, radius < np.hypot(away, least))


def maximum(B: Ball, phi: Array) -> tuple[Array, Array, Array]:
    """max <theta, phi> over ellipsoid and simplex, where, and a bound on the error; phi (n, d)."""
    n, d = phi.shape
    value, theta, gap = np.empty(n), np.empty((n, d)), np.empty(n)
    _maxima(*B[:6], phi, value, theta, gap)
    return value, theta, gap


@compiled
def quadratic(Lam, centre, phi, s, allowed, theta, pull, L, one, p, order):  # type: ignore[no-untyped-def]
    """theta <- argmax of s <theta, phi> - ||theta - centre||^2_Lambda / 2 over the allowed face of the simplex.

    From a theta of that face; `pull` <- Lambda (theta - centre). Gives ||theta - centre||^2_Lambda and q, the square of
    the speed d theta / ds in the norm of Lambda while the support stays. L, one, p, order are scratch.
    """
    d = theta.shape[0]
    added, q = -1, 0.0
    for _ in range(PIVOTS * d):
        _pull(Lam, centre, theta, pull)
        m = 0
        for j in range(d):
            if theta[j] > 0.0 or j == added:
                order[m] = j
                m += 1
        for k in range(m):
            one[k], p[k] = 1.0, s * phi[order[k]] - pull[order[k]]
        nu = _multiplier(Lam, m, L, one, p, order)
        step, block = 1.0, -1
        for k in range(m):
            p[k] -= nu * one[k]
            j = order[k]
            if j == added and not p[k] > 0.0:  # rounding: this coordinate was not to be added
                step = 0.0
            if p[k] < 0.0 and theta[j] < -step * p[k]:
                step, block = -theta[j] / p[k], k
        if step == 0.0:
            break
        total = 0.0
        for k in range(m):
            j = order[k]
            theta[j] = 0.0 if k == block else max(theta[j] + step * p[k], 0.0)
            total += theta[j]
        for k in range(m):
            theta[order[k]] /= total
        added = -1
        if block >= 0:
            continue
        scale = _pull(Lam, centre, theta, pull)
        nu = 0.0
        for j in range(d):
            nu += theta[j] * (s * phi[j] - pull[j])
            scale = max(scale, s * abs(phi[j]))
        best = nu + NOISE * scale
        for j in range(d):
            if theta[j] == 0.0 and allowed[j] and s * phi[j] - pull[j] > best:
                best, added = s * phi[j] - pull[j], j
        if added < 0:
            break
    _pull(Lam, centre, theta, pull)
    square = 0.0
    for j in range(d):
        square += (theta[j] - centre[j]) * pull[j]
    m = 0
    for j in range(d):
        if theta[j] > 0.0:
            order[m] = j
            m += 1
    if m > 1:
        q = speed(Lam, phi, m, L, one, p, order)
    return max(square, 0.0), q


@compiled
def _multiplier(Lam, m, L, one, p, order):  # type: ignore[no-untyped-def]
    """one <- K one, p <- K p on the support order[:m], K the inverse of Lambda there; gives 1' K p / 1' K 1."""
    _factor(Lam, order, m, L)
    _solve(L, m, one)
    _solve(L, m, p)
    total, lean = 0.0, 0.0
    for k in range(m):
        total += one[k]
        lean += p[k]
    return lean / total


@compiled
def speed(Lam, phi, m, L, one, p, order):  # type: ignore[no-untyped-def]
    """phi' K phi - (1' K phi)^2 / 1' K 1 on the support order[:m], K the inverse of Lambda there."""
    for k in range(m):
        one[k], p[k] = 1.0, phi[order[k]]
    nu, q = _multiplier(Lam, m, L, one, p, order), 0.0
    for k in range(m):
        q += (phi[order[k]] - nu) * (p[k] - nu * one[k])
    return max(q, 0.0)


@compiled
def best(  # type: ignore[no-untyped-def]
    Lam, centre, beta, nearest, least, corners, phi, s, theta, f, pull, L, one, p, order, allowed
):
    """max <theta, phi>, the bound on its error, and s; `theta` in and out, from where the search starts.

    f, pull, one, p (d), L (d, d), order (d, int), allowed (d, bool) are scratch.
    """
    d = phi.shape[0]
    low, high, tied = phi[0], phi[0], -1
    for j in range(1, d):
        low, high = min(low, phi[j]), max(high, phi[j])
    width = high - low
    many = 0
    for j in range(d):
        if phi[j] == high:
            many += 1
            tied = j
            if corners[j] <= beta * beta:
                theta[:] = 0.0
                theta[j] = 1.0
                return high, 0.0, s
    if beta <= least or width == 0.0:
        theta[:] = nearest
        value = 0.0
        for j in range(d):
            value += nearest[j] * (phi[j] - high)
        return high + value, 0.0, s
    for j in range(d):
        f[j] = phi[j] - high
        allowed[j] = True
    tol = EXACT * width
    if many > 1:  # does the ellipsoid meet the face of largest phi?
        for j in range(d):
            allowed[j] = phi[j] == high
            theta[j] = 0.0
        theta[tied] = 1.0
        square, q = quadratic(Lam, centre, f, 0.0, allowed, theta, pull, L, one, p, order)
        if square <= beta * beta:
            return high, 0.0, s
        allowed[:] = True
        theta[:] = nearest
    if not s > 0.0:
        theta[:] = nearest
        m = 0
        for j in range(d):
            if theta[j] > 0.0:
                order[m] = j
                m += 1
        q = speed(Lam, f, m, L, one, p, order) if m > 1 else 0.0
        s = math.sqrt((beta * beta - least * least) / q) if q > 0.0 else beta * beta / width
    enough = beta * beta / (4.0 * tol)
    under, above = 0.0, np.inf
    value, gap = high, np.inf
    for _ in range(TRIES):
        s = min(s, enough)
        square, q = quadratic(Lam, centre, f, s, allowed, theta, pull, L, one, p, order)
        r = math.sqrt(square)
        inside, top = 0.0, -np.inf
        for j in range(d):
            w = f[j] - pull[j] / s
            inside += theta[j] * w
            top = max(top, w)
        short = r * (beta - r) / s
        found = 0.0
        for j in range(d):
            found += theta[j] * f[j]
        gap = top - inside + short
        value = min(high + found + gap, high)
        if abs(short) <= tol and r <= beta * (1.0 + OUTSIDE):
            break
        if short > 0.0:
            under = s
        else:
            above = s
        if above <= under * (1.0 + 1e-15):
            break
        then = s * s + (beta * beta - square) / q if q > 0.0 else -1.0
        s = math.sqrt(then) if then > 0.0 else -1.0
        if not (s > under and s < above):
            if above == np.inf:
                s = 8.0 * under
            elif under == 0.0:
                s = above / 8.0
            else:
                s = math.sqrt(under) * math.sqrt(above)
    return value, abs(gap), s


@compiled
def _maxima(Lam, centre, beta, nearest, least, corners, phi, value, theta, gap):  # type: ignore[no-untyped-def]
    n, d = phi.shape
    f, pull, L, one, p = np.empty(d), np.empty(d), np.empty((d, d)), np.empty(d), np.empty(d)
    order, allowed = np.empty(d, np.int64), np.empty(d, np.bool_)
    for i in range(n):
        theta[i] = nearest[i]
        value[i], gap[i], _ = best(
            Lam[i], centre[i], beta[i], nearest[i], least[i], corners[i], phi[i], 0.0, theta[i],
            f, pull, L, one, p, order, allowed,
        )  # fmt: skip


@compiled
def _cut(covariance, centre, Lam, middle, away):  # type: ignore[no-untyped-def]
    """The ellipsoid in the plane where theta sums to 1.

    There only Pi Lambda Pi counts, Pi = I - 11^T / d. A multiple of 11^T makes it definite, and small: features are
    mostly mean, so Lambda is mostly 11^T, in whose rounding the rest would drown.
    """
    n, d = centre.shape
    L, one, mean, order = np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d, np.int64)
    for j in range(d):
        order[j] = j
    for i in range(n):
        _factor(covariance[i], order, d, L)
        one[:] = 1.0
        _solve(L, d, one)
        short = 1.0 - centre[i].sum()
        total = one.sum()
        for j in range(d):
            middle[i, j] = centre[i, j] + (short / total) * one[j]
        rest = (1.0 - middle[i].sum()) / d
        for j in range(d):
            middle[i, j] += rest
        away[i] = abs(short) / math.sqrt(total)
        for j in range(d):
            mean[j] = covariance[i, j].sum() / d
        whole = mean.sum() / d
        trace = 0.0
        for j in range(d):
            for k in range(j + 1):
                Lam[i, j, k] = Lam[i, k, j] = covariance[i, j, k] - mean[j] - mean[k] + whole
            trace += Lam[i, j, j]
        more = max(trace, 0.0) / d if d > 1 else 1.0
        for j in range(d):
            for k in range(d):
                Lam[i, j, k] += more


@compiled
def _meet(covariance, centre, nearest, least, corners):  # type: ignore[no-untyped-def]
    n, d = centre.shape
    pull, L, one, p, none = np.empty(d), np.empty((d, d)), np.empty(d), np.empty(d), np.zeros(d)
    order, allowed = np.empty(d, np.int64), np.empty(d, np.bool_)
    allowed[:] = True
    for i in range(n):
        near = 0
        for j in range(d):
            nearest[i] = 0.0
            nearest[i, j] = 1.0
            _pull(covariance[i], centre[i], nearest[i], pull)
            square = 0.0
            for k in range(d):
                square += (nearest[i, k] - centre[i, k]) * pull[k]
            corners[i, j] = max(square, 0.0)
            if corners[i, j] < corners[i, near]:
                near = j
        nearest[i] = 0.0
        nearest[i, near] = 1.0
        square, _ = quadratic(covariance[i], centre[i], none, 0.0, allowed, nearest[i], pull, L, one, p, order)
        least[i] = math.sqrt(square)


@compiled
def _pull(Lam, centre, theta, pull):  # type: ignore[no-untyped-def]
    """pull <- Lambda (theta - centre); the largest of what it is summed from."""
    d = theta.shape[0]
    pull[:] = 0.0
    scale = 0.0
    for j in range(d):
        v = theta[j] - centre[j]
        if v != 0.0:
            row = Lam[j]
            for k in range(d):
                pull[k] += v * row[k]
            scale = max(scale, abs(v) * row[j])
    return scale


@compiled
def _factor(Lam, order, m, L):  # type: ignore[no-untyped-def]
    """Lambda on the support, = L L^T."""
    for j in range(m):
        row = order[j]
        for k in range(j + 1):
            rest = Lam[row, order[k]]
            for c in range(k):
                rest -= L[j, c] * L[k, c]
            if j == k:
                L[j, j] = math.sqrt(max(rest, 1e-300))
            else:
                L[j, k] = rest / L[k, k]


@compiled
def _solve(L, m, b):  # type: ignore[no-untyped-def]
    """b <- (L L^T)^{-1} b."""
    for j in range(m):
        rest = b[j]
        for c in range(j):
            rest -= L[j, c] * b[c]
        b[j] = rest / L[j, j]
    for j in range(m - 1, -1, -1):
        rest = b[j]
        for c in range(j + 1, m):
            rest -= L[c, j] * b[c]
        b[j] = rest / L[j, j]
