"""The regression with variance-weighted samples of Zhou, Gu and Szepesvari (2021).

For W with values in [0, R], at step t, with f = phi_W(x_t, a_t) and g = phi_{W^2}(x_t, a_t):

    mean     = <f, theta_hat> cut to [0, R],        theta_hat   = Sigma_hat^-1 b_hat
    square   = <g, theta_tilde> cut to [0, R^2],    theta_tilde = Sigma_tilde^-1 b_tilde
    E        = min{R^2, 2 R beta_check ||f||_{Sigma_hat^-1}} + min{R^2, beta_tilde ||g||_{Sigma_tilde^-1}}
    sigma^2  = max{R^2 / d, square - mean^2 + E}
    Sigma_hat   += f f^T / sigma^2,   b_hat   += f W(y_t) / sigma^2
    Sigma_tilde += g g^T,             b_tilde += g W(y_t)^2

sigma^2 is above the variance of W(y_t) while both ellipsoids hold theta. With Bernstein's inequality for vectors (their
Theorem 4.1), for features ||f|| <= B_phi R, ||theta|| <= B, l = ln(4 t^2 / delta), and m(z) = ln(1 + t z / lambda):

    beta_hat   = 8 sqrt(d m(B_phi^2) l) + 4 sqrt(d) l + sqrt(lambda) B
    beta_check = 8 d sqrt(m(B_phi^2) l) + 4 sqrt(d) l + sqrt(lambda) B
    beta_tilde = 8 R^2 sqrt(d m(B_phi^2 R^4 / d) l) + 4 R^2 l + sqrt(lambda) B

They have B_phi = 1, and H stages, with ln(4 t^2 H / delta) for all of them; a mixture of d kernels has B_phi = sqrt(d).
The walk ends an epoch where det Sigma_hat has doubled.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import first, like, over_seeds
from ravi.core import Array, Walk, Walkers
from ravi.estimators.gram import DOUBLED, Gram, add_feature, growth
from ravi.runtime.walk import walking


class Constants(NamedTuple):
    """What the radii are made of."""

    R: float  # the range of W
    d: int
    lam: float  # lambda
    B: float  # bound on ||theta||
    B_phi: float  # bound on ||phi_W|| / R
    delta: float
    scale: float  # multiplies all three radii


def radii(t: Array, c: Constants) -> Array:
    """beta_hat at times t (n,)."""
    found = like(t, t.shape)
    over_seeds(_first_radii, t, t, *c, found)
    return found


class Weighted(NamedTuple):
    """What a step of both regressions is made of."""

    first: Gram
    second: Gram
    f: Array  # phi_W     (n, X, A, d)
    g: Array  # phi_{W^2} (n, X, A, d)
    W: Array  # (n, X)
    constants: Constants
    weighing: bool  # else sigma is 1


def weighted_walk(of: Callable[[Any], Weighted]) -> Walk:
    """The walk of a learner whose state has these regressions, which adds as it goes."""

    def own(s: Any, walkers: Walkers) -> tuple[Any, ...]:
        w = of(s)
        second = w.second.covariance, w.second.inverse, w.second.response
        scratch = np.empty(w.constants.d), np.empty(w.constants.d)
        return *w.first[:5], *second, w.f, w.g, w.W, *w.constants, w.weighing, *scratch

    return walking(_learn, own)


@compiled
def _radii(t, R, d, lam, B, B_phi, delta, scale):  # type: ignore[no-untyped-def]
    """beta_hat, beta_check, beta_tilde."""
    l = math.log(4.0 * t * t / delta)
    m, m_second = math.log1p(t * B_phi**2 / lam), math.log1p(t * B_phi**2 * R**4 / (d * lam))
    bias = math.sqrt(lam) * B
    hat = 8.0 * math.sqrt(d * m * l) + 4.0 * math.sqrt(d) * l + bias
    check = 8.0 * d * math.sqrt(m * l) + 4.0 * math.sqrt(d) * l + bias
    tilde = 8.0 * R**2 * math.sqrt(d * m_second * l) + 4.0 * R**2 * l + bias
    return scale * hat, scale * check, scale * tilde


@compiled
def _first_radii(low, high, t, R, d, lam, B, B_phi, delta, scale, found):  # type: ignore[no-untyped-def]
    """beta_hat of seeds low, ..., high - 1; a team's."""
    for i in range(low, high):
        if first():
            found[i], _, _ = _radii(t[i], R, d, lam, B, B_phi, delta, scale)


@compiled
def deviation(  # type: ignore[no-untyped-def]
    inverse, response, f, second_inverse, second_response, g, t, R, d, lam, B, B_phi, delta, scale
):
    """sigma of step t, from both regressions as they stand."""
    mean, width = _predict(inverse, response, f)
    square, second_width = _predict(second_inverse, second_response, g)
    mean, square = min(max(mean, 0.0), R), min(max(square, 0.0), R * R)
    _, check, tilde = _radii(t, R, d, lam, B, B_phi, delta, scale)
    E = min(R * R, 2.0 * R * check * width) + min(R * R, tilde * second_width)
    return math.sqrt(max(R * R / d, square - mean * mean + E))


@compiled
def _predict(inverse, response, phi):  # type: ignore[no-untyped-def]
    """<phi, theta> and ||phi||_{Sigma^-1}."""
    d = phi.shape[0]
    mean, square = 0.0, 0.0
    for j in range(d):
        part = 0.0
        for k in range(d):
            part += inverse[j, k] * phi[k]
        mean += part * response[j]
        square += part * phi[j]
    return mean, math.sqrt(max(square, 0.0))


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Add the sample, weighted; whether det Sigma_hat has doubled."""
    (covariance, inverse, log_det, opened, response, second_covariance, second_inverse, second_response, first, second,
     W, R, d, lam, B, B_phi, delta, scale, weighing, scratch, f) = own  # fmt: skip
    sigma, target = 1.0, W[i, y]
    if weighing:
        g = second[i, x, a]
        sigma = deviation(
            inverse[i], response[i], first[i, x, a], second_inverse[i], second_response[i], g, t,
            R, d, lam, B, B_phi, delta, scale,
        )  # fmt: skip
        added = growth(add_feature(second_covariance[i], second_inverse[i], g, scratch))
        log_det[i] += 0.0 * added  # nothing, or nan
        for j in range(d):
            second_response[i, j] += g[j] * (target * target)
    for j in range(d):
        f[j] = first[i, x, a, j] / sigma
    log_det[i] += growth(add_feature(covariance[i], inverse[i], f, scratch))
    for j in range(d):
        response[i, j] += f[j] * (target / sigma)
    return not log_det[i] <= opened[i] + DOUBLED
