"""The regression with variance-weighted samples as an estimator, for plans that are made between epochs.

The estimator of `ravi.estimators.variance_weighted` for W = V - min V, with values in [0, R], as an `Estimator`: step
by step, with W of the epoch, sigma^2 from both regressions as they stand, f = phi_W(x_t, a_t), g = phi_{W^2}(x_t, a_t),

    Sigma_hat   += f f^T / sigma^2,   b_hat   += f W(y_t) / sigma^2
    Sigma_tilde += g g^T,             b_tilde += g W(y_t)^2
    P_hat V = min V + <phi_W, theta_hat>,  cut to [min V, max V];   width  ||phi_W||_{Sigma_hat^{-1}}

The inverses that sigma is made of go from step to step by Sherman and Morrison's formula, and are never made anew: so
no bit depends on where a stretch of experience ends. The root that widths are made of is, from Sigma_hat itself.
"""

from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, like, over_seeds, sync, team
from ravi._jit.teams import first as first_thread
from ravi.core import Array, Bonus, Estimator, Path, Problem
from ravi.estimators.centred import Standard
from ravi.estimators.gram import add_feature, indefinite
from ravi.estimators.ridge import Regression, ridge, root_of
from ravi.estimators.variance_weighted import Constants, deviation, radii
from ravi.runtime.ranges import Number, Plays
from ravi.validation import InputError


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
    if problem.features is None:
        raise InputError(f"{problem.name} has no features: variance-weighted regression needs a linear mixture MDP")
    base = ridge(problem, constants.lam)
    d, pairs_of_states = problem.dimension, problem.states * problem.actions

    def init(n: int) -> Variances:
        first, second = base.init(n), base.init(n)
        inverse = np.broadcast_to(np.eye(d), (n, d, d)) / constants.lam
        return Variances(
            first.covariance, first.response, first.root, inverse, second.covariance, inverse.copy(), second.response,
            np.zeros(n, np.int64),
        )  # fmt: skip

    def embed(V: Array) -> Standard:
        low, high = (part[:, None, None] for part in (V.min(-1), V.max(-1)))
        return Standard(base.embed(V - low[..., 0]), low, np.ones_like(low), low, high)

    def expect(D: Variances, phi: Standard) -> Array:
        PV = phi.low + base.expect(Regression(*D[:3]), phi.inner)
        return np.clip(PV, phi.low, phi.high) if clip else PV

    def width(D: Variances, phi: Standard) -> Array:
        return base.width(Regression(*D[:3]), phi.inner)

    def add(D: Variances, V: Array, path: Path) -> Variances:
        W = V - V.min(-1, keepdims=True)
        f, g = (base.embed(values).reshape(-1, pairs_of_states, d) for values in (W, W**2))
        pairs = path.state * np.int64(problem.actions) + path.action
        sound = like(V, (len(V),))
        over_seeds(
            _add, V, *D, f, g, W, *constants, pairs, path.successor, path.length, sound,
            rooms=((d,), (d,), (d, d), (d, d)),
        )  # fmt: skip
        if isinstance(sound, np.ndarray) and not sound.all():  # on a GPU the root is nan, and so is the policy
            raise indefinite()
        return D

    return Estimator(init, embed, expect, width, add)


def of_variances(estimator: Estimator, constants: Constants) -> Bonus:
    """CB = beta_hat ||phi_W||_{Sigma_hat^{-1}}, beta_hat of the time at hand."""

    def bonus(D: Variances, phi: Standard) -> Array:
        return radii(1 + D.plays, constants)[:, None, None] * estimator.width(D, phi)

    return bonus


@compiled
def _add(  # type: ignore[no-untyped-def]
    low, high, covariance, response, root, inverse, second_covariance, second_inverse, second_response, plays, first,
    second, W, R, d, lam, B, B_phi, delta, scale, pairs, targets, length, sound, products, features, roots, inverses,
):  # fmt: skip
    """In place, of seeds low, ..., high - 1; whether each matrix is still positive definite. A team's."""
    k = team()
    scratch, f = products[k], features[k]
    for i in range(low, high):
        before, definite = plays[i], True
        for l in range(length[i]):
            pair, target = pairs[i, l], W[i, targets[i, l]]
            g = second[i, pair]
            sigma = deviation(
                inverse[i], response[i], first[i, pair], second_inverse[i], second_response[i], g, before + l + 1,
                R, d, lam, B, B_phi, delta, scale,
            )  # fmt: skip
            for j in each(d):
                f[j] = first[i, pair, j] / sigma
            # All threads meet within `add_feature`, before it writes what `deviation` reads.
            definite = add_feature(second_covariance[i], second_inverse[i], g, scratch) > -1.0 and definite
            definite = add_feature(covariance[i], inverse[i], f, scratch) > -1.0 and definite
            for j in each(d):
                response[i, j] += f[j] * (target / sigma)
                second_response[i, j] += g[j] * (target * target)
            sync()
        if length[i] > 0:
            definite = root_of(covariance[i], roots[k], inverses[k], root[i]) and definite
        if first_thread():
            plays[i] = before + length[i]
            sound[i] = definite
            if not definite:
                root[i, 0, 0] = np.nan
