"""Claims of RAVI-UCB with sampled features: its draws, its data, what sampling costs, and its bound.

U = V, or V less its middle where it is centred. phi is of all successors, phi~ of those that were drawn, both written
out here from psi and the numbers that the learner drew by; eps_k is the learner's own bound on ||phi - phi~|| at V_k.
With z_i = <theta, phi_i - phi~_i> and n_i = V_i(y_i) - P V_i, a target U_i(y_i) is <theta, phi~_i> + z_i + n_i, hence

    P_hat V - P V = <phi~, Lambda^{-1} (sum phi~_i n_i + sum phi~_i z_i - lambda theta)> - <theta, phi - phi~>.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array
from ravi.estimators.sampled import deviation, draw
from ravi.mdps.building import uniforms
from ravi.runtime import tree
from ravi.theory import sampled as theory
from ravi.verify import lemmas
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import in_norm, relative, solved, worst
from ravi.verify.record import Played, before, once
from ravi.verify.regression import corner
from ravi.verify.setting import RunSetting, mixture_beta, of_theorem_4_1

registry = Registry("sampled")
claim = registry.claim


class Books(NamedTuple):
    """When each epoch opens, and at the end: K + 1 rows."""

    covariance: Array  # Lambda = lambda I + sum phi~ phi~^T   (rows, d, d)
    response: Array  # b = sum phi~ U(y)                       (rows, d)
    bias: Array  # sum eps^2                                   (rows,)
    noise: Array  # sum phi~ n                                 (rows, d)
    shift: Array  # sum phi~ z                                 (rows, d)


class Drawn(NamedTuple):
    """What the draws leave of psi."""

    features: Array  # psi~                  (X, A, B, d)
    errors: Array  # e(x, a)                 (X, A)
    bound: float  # B, for ||theta|| and ||phi~|| / H


def drawn(setting: RunSetting) -> Drawn:
    return _drawn(setting.mdp, setting.stated.samples, setting.stated.draws, setting.has("centre"))


@lru_cache(maxsize=4)
def _drawn(mdp: MDP, m: int, seed: int, centre: bool) -> Drawn:
    """psi~ = c / (m q) psi, q in proportion to sum_c |psi_c|, the j-th draw by a number in [(j - 1)/m, j/m)."""
    psi: Any = mdp.features
    X, A, B, _ = psi.shape
    u = uniforms(seed)(X * A, m).reshape(X, A, m)
    weight = np.ones((X, A, B))
    for x, a in np.ndindex(X, A):
        q = np.abs(psi[x, a]).sum(-1)
        if (q > 0).sum() > m:
            mass = np.cumsum(q)
            chosen = np.searchsorted(mass, (np.arange(m) + u[x, a]) / m * mass[-1], side="right")
            times = np.bincount(np.minimum(chosen, B - 1), minlength=B)
            weight[x, a] = times * mass[-1] / (m * np.where(q > 0, q, 1))
    off = (1 - weight)[..., None] * psi
    plus, minus = np.where(off > 0, off, 0).sum(2), np.where(off < 0, -off, 0).sum(2)
    errors = np.sqrt(((plus + minus if centre else np.maximum(plus, minus)) ** 2).sum(-1))
    assert mdp.feature_bound is not None
    assert mdp.parameter_bound is not None
    bound = max(mdp.parameter_bound, mdp.feature_bound + float(errors.max()) * (0.5 if centre else 1.0))
    return Drawn(weight[..., None] * psi, errors, bound)


def split(setting: RunSetting, V: Array) -> tuple[Array, Array, Array]:
    """U (rows, X), its c (rows,) and max |U| (rows,)."""
    low, high = V.min(-1), V.max(-1)
    if not setting.has("centre"):
        return V, np.zeros(len(V)), high
    return V - ((low + high) / 2)[:, None], (low + high) / 2, (high - low) / 2


def phi_of(setting: RunSetting, U: Array) -> Array:
    """phi~_U   (rows, X, A, d)."""
    return np.einsum("xajd,nxaj->nxad", drawn(setting).features, U[:, setting.mdp.successors])


@once
def books(s: Played) -> Books:
    setting, T, d = s.setting, s.T, s.mdp.dimension
    e, x, a, y = (part[:T] for part in (s.epoch, s.x, s.a, s.y))
    U, _, size = split(setting, s.V)
    phi, missed = phi_of(setting, U)[e, x, a], (setting.phi(U) - phi_of(setting, U))[e, x, a]
    noise = U[e, y] - np.einsum("iy,iy->i", setting.P[x, a], U[e])
    eps = size[e] * drawn(setting).errors[x, a]

    def summed(terms: Array) -> Array:
        found = np.zeros((s.K, *terms.shape[1:]))
        np.add.at(found, e, terms)
        return before(found)

    Lam = setting.lam * np.eye(d) + summed(phi[:, :, None] * phi[:, None, :])
    b, noises, shift = (summed(phi * part[:, None]) for part in (U[e, y], noise, missed @ setting.theta))
    return Books(Lam, b, summed(eps**2), noises, shift)


def opened(s: Played) -> Books:
    """When each epoch opens: K rows."""
    return tree.take(books(s), np.arange(s.K))


def embedded(s: Played) -> Any:
    """phi~ of V_k, as the learner has it."""
    return s.setting.parts.estimator.embed(s.V)


# ---- features and data


@claim("N1a", "phi~_k = sum_x' (c / (m q)) psi U_k, with the m draws that it names", "sampled features")
def features(s: Played) -> Measured:
    U, middle, _ = split(s.setting, s.V)
    found = embedded(s)
    return worst(np.abs(found.phi - phi_of(s.setting, U)), np.abs(found.middle - middle[:, None, None])), 0.0


@claim("N1b", "||phi - phi~|| <= eps, at V_k and at a corner of [0, H]^X", "sampled features")
def error_is_covered(s: Played) -> Measured:
    """phi from the truth, phi~ and eps from the learner."""
    corners = np.array([corner(k, s.V.shape[1]) for k in range(1, s.K + 1)]) * s.H
    found = []
    for V in (s.V, corners):
        known = s.setting.parts.estimator.embed(V)
        found.append(np.linalg.norm(s.setting.phi(split(s.setting, V)[0]) - known.phi, axis=-1) - known.error)
    return worst(*found), 0.0


@claim("N1c", "||phi~_k|| <= B H, B for phi~", "Assumption 5.3")
def features_are_bounded(s: Played) -> Measured:
    return worst(np.linalg.norm(embedded(s).phi, axis=-1)), drawn(s.setting).bound * s.H


claim("N2a", "Lambda = lambda I + sum phi~ phi~^T, b = sum phi~ U(y), over t < T_k",
      "Algorithm 3")(lambda s: lemmas.regression(s, books(s)))  # fmt: skip


@claim("N2b", "the bias is sum eps_t(x_t, a_t)^2, over t < T_k", "sampled features")
def squares(s: Played) -> Measured:
    return relative(s.learned.data.bias[:, None], books(s).bias[:, None]), 0.0


@claim("N2c", "P_hat V_k = c + <phi~_k, Lambda^-1 b>", "Algorithm 3")
def estimate(s: Played) -> Measured:
    (U, middle, _), own = split(s.setting, s.V), opened(s)
    theta = solved(own.covariance, own.response)
    return lemmas.estimate(s, middle[:, None, None] + np.einsum("nxad,nd->nxa", phi_of(s.setting, U), theta))


def bonus(s: Played, scale: float) -> Array:
    """The bonus that is proved to be valid, times `scale`   (K, X, A)."""
    (U, _, size), own, B = split(s.setting, s.V), opened(s), s.setting.B_theta
    radius = mixture_beta(s.setting, drawn(s.setting).bound) + B * np.sqrt(own.bias)
    eps = size[:, None, None] * drawn(s.setting).errors
    return scale * (radius[:, None, None] * in_norm(own.covariance, phi_of(s.setting, U)) + B * eps)


@claim("N2d", "CB_k = (beta + B_theta sqrt(sum eps_t^2)) ||phi~_k|| + B_theta eps_k", "sampled features")
def bonuses(s: Played) -> Measured:
    return lemmas.bonus(s, bonus(s, float(s.setting.stated.scale)))


# ---- why it is valid


@claim("N3", "P_hat V_k - P V_k by noise, shift, lambda theta and <theta, phi - phi~>", "Appendix A.2")
def error_identity(s: Played) -> Measured:
    U, theta, own = split(s.setting, s.V)[0], s.theta, opened(s)
    by = solved(own.covariance, own.noise + own.shift - s.lam * theta)
    phi = phi_of(s.setting, U)
    return lemmas.error(s, np.einsum("nxad,nd->nxa", phi, by) - (s.setting.phi(U) - phi) @ theta)


@claim("N4", "||sum phi~_i z_i|| <= B_theta sqrt(bias)", "sampled features")
def shift_is_covered(s: Played) -> Measured:
    """The shift from the truth, the bias from the learner."""
    return in_norm(books(s).covariance, books(s).shift), s.setting.B_theta * np.sqrt(s.learned.data.bias)


@claim("N5", "||sum phi~_i n_i|| <= H sqrt(2 log(det(Lambda)^(1/2) lambda^(-d/2) / delta))", "Theorem C.2", kind="P")
def self_normalised(s: Played) -> Measured:
    return lemmas.self_normalised(s.setting, books(s).covariance, books(s).noise)


@claim("N6", "|(P - P_hat) V_k| <= CB_k of scale 1, whatever the scale", "Lemma 5.4", kind="P")
def validity(s: Played) -> Measured:
    return lemmas.within(s, bonus(s, 1.0))


@claim("N7", "e <= S (sqrt(s / m) + sqrt(2 ln(X A / delta) / m)), for draws by the run's seeds", "McDiarmid", kind="P",
       per="run")  # fmt: skip
def deviations(s: Played) -> Measured:
    """With probability 1 - delta over the draws: made once more by each seed, with the library's own `draw`."""
    problem, m = s.mdp.problem, s.setting.stated.samples
    errors = draw(problem, m, s.seed, centre=s.setting.has("centre")).errors
    return (errors - deviation(problem, m, s.setting.delta)).max(), 0.0


# ---- the bounds


def numbers(setting: RunSetting) -> dict[str, float]:
    made, most = drawn(setting), setting.H / 2 if setting.has("centre") else setting.H
    return {
        "bound": made.bound, "parameter_bound": setting.B_theta, "error": most * float(made.errors.max()),
        "regularization": setting.lam, "delta": setting.delta,
    }  # fmt: skip


def bonus_sum(setting: RunSetting) -> float:
    """Infinite where bonuses are larger than the theorem's."""
    if setting.stated.scale > 1:
        return np.inf
    return theory.bonus_sum(setting.H, setting.mdp.dimension, setting.steps, **numbers(setting))


def explicit(setting: RunSetting) -> float:
    """Infinite where the constants are not the theorem's."""
    mdp, T = setting.mdp, setting.steps
    if setting.stated.scale != 1 or not of_theorem_4_1(setting):
        return np.inf
    return theory.corrected(setting.H, mdp.dimension, mdp.actions, T, **numbers(setting)).total


claim("N8", "E sum_{t<=T+} CB_t <= (beta + B_theta eps sqrt(T)) N + B_theta eps (T + gamma H)", "Lemma 5.5",
      kind="E")(lemmas.bonus_sum(bonus_sum))  # fmt: skip
claim("N9", "R_T <= 2 of that + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T", "Theorem 5.6",
      kind="E")(lemmas.regret(explicit))  # fmt: skip
