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

It has two forms. In a walk (`weighted_walk`) every step is added as it is made, and the epoch ends where det Sigma_hat
has doubled. As an `Estimator` (`variance_weighted`), for plans that are made between epochs, W is V - min V of the
epoch, and P_hat V = min V + <phi_W, theta_hat>, cut to [min V, max V]; its width is ||phi_W||_{Sigma_hat^{-1}}. The
inverses that sigma is made of go from step to step by Sherman and Morrison's formula, and are never made anew: so no
bit depends on where a stretch of experience ends. The root that widths are made of is, from Sigma_hat itself.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, first, like, over_seeds, sync, team
from ravi.core import Array, Bonus, Estimator, Path, Problem, Walk, Walkers
from ravi.estimators.centred import Standard, standard
from ravi.estimators.gram import DOUBLED, Gram, add_feature, growth, indefinite
from ravi.estimators.ridge import ridge, root_of
from ravi.runtime.ranges import Number, Plays
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
    over_seeds(_first_radii, t, t, c, found)
    return found


class Weighted(NamedTuple):
    """What a step of both regressions is made of."""

    first: Gram
    second: Gram
    f: Array  # phi_W     (n, X, A, d)
    g: Array  # phi_{W^2} (n, X, A, d)
    W: Array  # (n, X)
    constants: Constants


def weighted_walk(of: Callable[[Any], Weighted]) -> Walk:
    """The walk of a learner whose state has these regressions, which adds as it goes."""

    def own(s: Any, walkers: Walkers) -> tuple[Any, ...]:
        w = of(s)
        return *w, np.empty((2, w.constants.d))

    return walking(_learn, own)


class Variances(NamedTuple):
    covariance: Number  # Sigma_hat    (n, d, d)
    response: Number  # b_hat              (n, d)
    root: Number  # of Sigma_hat^{-1}      (n, d, d)
    inverse: Number  # Sigma_hat^{-1}, for sigma  (n, d, d)
    second_covariance: Number  # Sigma_tilde   (n, d, d)
    second_inverse: Number  # its inverse         (n, d, d)
    second_response: Number  # b_tilde             (n, d)
    plays: Plays  # t - 1                          (n,)


def variance_weighted(problem: Problem, constants: Constants, *, clip: bool = True) -> Estimator:
    """The regression as an estimator of W = V - min V."""
    base = ridge(problem, constants.lam)
    centred = standard(base, least=True, span=False, clip=clip)
    d, pairs_of_states = problem.dimension, problem.states * problem.actions

    def init(n: int) -> Variances:
        first, second = base.init(n), base.init(n)
        inverse = np.broadcast_to(np.eye(d), (n, d, d)) / constants.lam
        of_first = first.covariance, first.response, first.root
        return Variances(*of_first, inverse, second.covariance, inverse.copy(), second.response, np.zeros(n, np.int64))

    def add(D: Variances, V: Array, path: Path) -> Variances:
        W = V - V.min(-1, keepdims=True)
        f, g = (base.embed(values).reshape(-1, pairs_of_states, d) for values in (W, W**2))
        pairs = path.state * np.int64(problem.actions) + path.action
        sound = like(V, (len(V),))
        over_seeds(
            _add, V, *D, f, g, W, constants, pairs, path.successor, path.length, sound,
            scratch=((2, d), (d, d), (d, d)),
        )  # fmt: skip
        if isinstance(sound, np.ndarray) and not sound.all():  # on a GPU the root is nan, and so is the policy
            raise indefinite()
        return D

    return centred._replace(init=init, add=add)


def of_variances(estimator: Estimator, constants: Constants) -> Bonus:
    """CB = beta_hat ||phi_W||_{Sigma_hat^{-1}}, beta_hat of the time at hand."""

    def bonus(D: Variances, phi: Standard) -> Array:
        return radii(1 + D.plays, constants)[:, None, None] * estimator.width(D, phi)

    return bonus


@compiled
def _radii(t, constants):  # type: ignore[no-untyped-def]
    """beta_hat, beta_check, beta_tilde."""
    R, d, lam, B, B_phi, delta, scale = constants
    l = math.log(4.0 * t * t / delta)
    m, m_second = math.log1p(t * B_phi**2 / lam), math.log1p(t * B_phi**2 * R**4 / (d * lam))
    bias = math.sqrt(lam) * B
    hat = 8.0 * math.sqrt(d * m * l) + 4.0 * math.sqrt(d) * l + bias
    check = 8.0 * d * math.sqrt(m * l) + 4.0 * math.sqrt(d) * l + bias
    tilde = 8.0 * R**2 * math.sqrt(d * m_second * l) + 4.0 * R**2 * l + bias
    return scale * hat, scale * check, scale * tilde


@compiled
def _first_radii(low, high, t, constants, found):  # type: ignore[no-untyped-def]
    """beta_hat of seeds low, ..., high - 1; a team's."""
    for i in range(low, high):
        if first():
            found[i], _, _ = _radii(t[i], constants)


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
def _add_step(t, f, g, target, constants, one, other, scratch):  # type: ignore[no-untyped-def]
    """Add the sample of step t to both regressions, each a covariance, its inverse and a response, the first with its
    weight; phi^T Sigma^{-1} phi of before, of both. A team's."""
    covariance, inverse, response = one
    second_covariance, second_inverse, second_response = other
    R, d, product, weighted = constants.R, constants.d, scratch[0], scratch[1]
    mean, width = _predict(inverse, response, f)
    square, second_width = _predict(second_inverse, second_response, g)
    mean, square = min(max(mean, 0.0), R), min(max(square, 0.0), R * R)
    _, check, tilde = _radii(t, constants)
    E = min(R * R, 2.0 * R * check * width) + min(R * R, tilde * second_width)
    sigma = math.sqrt(max(R * R / d, square - mean * mean + E))
    for j in each(d):
        weighted[j] = f[j] / sigma
    # All threads meet within `add_feature`, before it writes what `_predict` reads.
    second = add_feature(second_covariance, second_inverse, g, product)
    first = add_feature(covariance, inverse, weighted, product)
    for j in each(d):
        response[j] += weighted[j] * (target / sigma)
        second_response[j] += g[j] * (target * target)
    return first, second


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Add the sample, weighted; whether det Sigma_hat has doubled."""
    one, other, f, g, W, constants, scratch = own
    first, second = _add_step(
        t, f[i, x, a], g[i, x, a], W[i, y], constants, (one.covariance[i], one.inverse[i], one.response[i]),
        (other.covariance[i], other.inverse[i], other.response[i]), scratch,
    )  # fmt: skip
    one.log_det[i] += 0.0 * growth(second)  # nothing, or nan
    one.log_det[i] += growth(first)
    return not one.log_det[i] <= one.opened[i] + DOUBLED


@compiled
def _add(  # type: ignore[no-untyped-def]
    low, high, covariance, response, root, inverse, second_covariance, second_inverse, second_response, plays, f, g, W,
    constants, pairs, targets, length, sound, scratch, roots, inverses,
):  # fmt: skip
    """In place, of seeds low, ..., high - 1; whether each matrix is still positive definite. A team's."""
    k = team()
    for i in range(low, high):
        before, definite = plays[i], True
        one = covariance[i], inverse[i], response[i]
        other = second_covariance[i], second_inverse[i], second_response[i]
        for l in range(length[i]):
            pair, target = pairs[i, l], W[i, targets[i, l]]
            of_first, of_second = _add_step(
                before + l + 1, f[i, pair], g[i, pair], target, constants, one, other, scratch[k]
            )
            definite = of_first > -1.0 and of_second > -1.0 and definite
            sync()
        if length[i] > 0:
            definite = root_of(covariance[i], roots[k], inverses[k], root[i]) and definite
        if first():
            plays[i] = before + length[i]
            sound[i] = definite
            if not definite:
                root[i, 0, 0] = np.nan
