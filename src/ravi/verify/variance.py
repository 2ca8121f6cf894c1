"""Claims of RAVI-UCB+ with samples weighted by their variance: its data, its confidence sets, and its bound.

W = V - min V in [0, R], R = H; at step t, with f = phi_W(x_t, a_t), g = phi_{W^2}(x_t, a_t), and sigma_t of both
regressions as they stood (`ravi.estimators.variance_weighted`), written out again here, with radii for delta / 3:

    Sigma_hat += f f^T / sigma^2,  b_hat += f W(y_t) / sigma^2,    Sigma_tilde += g g^T,  b_tilde += g W(y_t)^2.

Proven (Zhou, Gu and Szepesvari 2021, Theorem 4.1): theta is within beta_tilde of theta_tilde, and within beta_check of
theta_hat, since sigma^2 >= R^2 / d bounds the noise; so sigma_t^2 is at least the variance of W(y_t); so theta is
within beta_hat of theta_hat. The first two hold whatever `scale` is, with radii of scale 1; the others need 1 or more.

The regret: sigma_t^2 <= R^2 + 2 R^2, so ||f|| <= sqrt(3) H ||f / sigma_t||, and ||f / sigma_t|| <= sqrt(d) B_phi are
features as Lemma 5.5 asks for, whatever sigma_t is made of, since it is known before the reset of step t is drawn:

    E[sum_{t <= T+} min(2 CB_t, H)] <= S = (d / log 2) H^2 L+ + 2 gamma sqrt(3) H beta_hat(T) sqrt(d S+ C),

C = f((2 + log T) H) of Lemma A.4, beta_hat growing with t. That variances add up to less than H^2 T, so that S could be
smaller than without weights, is not proven.
"""

from __future__ import annotations

from math import log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.runtime import tree
from ravi.theory import mixture
from ravi.verify import lemmas
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import in_norm, relative, solved
from ravi.verify.expected import regret, times, total
from ravi.verify.record import Played, once
from ravi.verify.setting import RunSetting

registry = Registry("variance")
claim = registry.claim


class Books(NamedTuple):
    """When each epoch opens, and at the end: K + 1 rows."""

    covariance: Array  # Sigma_hat           (rows, d, d)
    response: Array  # b_hat                 (rows, d)
    second_covariance: Array  # Sigma_tilde  (rows, d, d)
    second_response: Array  # b_tilde        (rows, d)
    plays: Array  # t - 1                    (rows,)
    short: Array  # max_t of Var W(y_t) - sigma_t^2, -inf before the first step   (rows,)
    most: Array  # lambda d + sum ||f||^2 / max(R^2 / d, Var W(y_t))   (rows,)


class Radii(NamedTuple):
    hat: float
    check: float
    tilde: float


def radii(setting: RunSetting, t: float, scale: Any) -> Radii:
    """At play t, for delta / 3."""
    R, d, B, regular = setting.H, setting.mdp.dimension, setting.B_phi, setting.lam
    l, bias = log(4 * t**2 * 3 / setting.delta), sqrt(regular) * setting.B_theta
    m, m_second = log1p(t * B**2 / regular), log1p(t * B**2 * R**4 / (d * regular))
    hat = 8 * sqrt(d * m * l) + 4 * sqrt(d) * l + bias
    check = 8 * d * sqrt(m * l) + 4 * sqrt(d) * l + bias
    tilde = 8 * R**2 * sqrt(d * m_second * l) + 4 * R**2 * l + bias
    return Radii(scale * hat, scale * check, scale * tilde)


@once
def books(s: Played) -> Books:
    """Step by step: sigma_t is of both regressions as they stand."""
    setting, T, R, kept = s.setting, s.T, s.H, []
    e, x, a, y = (part[:T] for part in (s.epoch, s.x, s.a, s.y))
    W = s.V - s.V.min(-1, keepdims=True)
    first, second = (setting.phi(values)[e, x, a] for values in (W, W**2))
    P, least = setting.P[x, a], R**2 / setting.mdp.dimension
    variance = (P * W[e] ** 2).sum(-1) - (P * W[e]).sum(-1) ** 2
    hat = tilde = setting.lam * np.eye(setting.mdp.dimension)
    b_hat = b_tilde = np.zeros(len(hat))
    short, most = -np.inf, np.trace(hat)
    for t, (f, g, target) in enumerate(zip(first, second, W[e, y], strict=True)):
        if t + 1 in s.starts:
            kept.append((hat, b_hat, tilde, b_tilde, t, short, most))
        f_hat, g_tilde = np.linalg.solve(hat, f), np.linalg.solve(tilde, g)
        mean, square = np.clip(f_hat @ b_hat, 0, R), np.clip(g_tilde @ b_tilde, 0, R**2)
        of = radii(setting, t + 1, setting.stated.scale)
        E = min(R**2, 2 * R * of.check * sqrt(f @ f_hat)) + min(R**2, of.tilde * sqrt(g @ g_tilde))
        sigma = sqrt(max(least, float(square - mean**2 + E)))
        short, most = max(short, variance[t] - sigma**2), most + f @ f / max(least, variance[t])
        hat, b_hat = hat + np.outer(f, f) / sigma**2, b_hat + f * target / sigma**2
        tilde, b_tilde = tilde + np.outer(g, g), b_tilde + g * target**2
    kept.append((hat, b_hat, tilde, b_tilde, T, short, most))
    return Books(*(np.array(part) for part in zip(*kept, strict=True)))


def opened(s: Played) -> Books:
    """When each epoch opens: K rows."""
    return tree.take(books(s), np.arange(s.K))


# ---- the data


claim("W1a", "Sigma_hat and b_hat are of what was played, with 1 / sigma_t^2",
      "UCLK+")(lambda s: lemmas.regression(s, books(s)))  # fmt: skip


@claim("W1b", "Sigma_tilde and b_tilde are of the squares", "UCLK+")
def squared(s: Played) -> Measured:
    own, D = books(s), s.learned.data
    apart = relative(D.second_covariance, own.second_covariance), relative(D.second_response, own.second_response)
    return np.max([*apart, np.abs(D.plays - own.plays)], axis=0), 0.0


@claim("W1c", "P_hat V = min V + <phi_W, theta_hat>, cut to [min V, max V], at the V that is played", "UCLK+")
def estimate(s: Played) -> Measured:
    low, high = (part[:, None, None] for part in (s.V.min(-1), s.V.max(-1)))
    theta = solved(opened(s).covariance, opened(s).response)
    right = low + np.einsum("nxad,nd->nxa", s.setting.phi(s.V - low[..., 0]), theta)
    return lemmas.estimate(s, np.clip(right, low, high) if s.setting.has("clip") else right)


@claim("W1d", "CB = gamma min(beta_hat(T_k) ||phi_W||, sp(V)), at the V that is played", "UCLK+")
def bonus(s: Played) -> Measured:
    hat, phi = of_next(s, "hat", s.setting.stated.scale)[:-1], s.setting.phi(s.V - s.V.min(-1, keepdims=True))
    right = hat[:, None, None] * in_norm(opened(s).covariance, phi)
    cut = np.minimum(right, np.ptp(s.V, axis=-1)[:, None, None])
    return lemmas.bonus(s, times(s.setting) * (cut if s.setting.has("clip") else right))


def of_next(s: Played, name: str, scale: Any = 1.0) -> Array:
    """The radius for the next step   (K + 1,)."""
    return np.array([getattr(radii(s.setting, 1 + t, scale), name) for t in books(s).plays])


# ---- the confidence sets


def away(s: Played, covariance: Array, response: Array) -> Array:
    """||theta_hat - theta||_Lambda   (K + 1,)."""
    gap = solved(covariance, response) - s.theta
    return np.sqrt(np.einsum("nd,nde,ne->n", gap, covariance, gap))


def at_scale_1(setting: RunSetting, bound: Any) -> Any:
    return bound if setting.stated.scale >= 1 else np.inf


@claim("W2a", "||theta_tilde - theta|| <= beta_tilde", "Zhou et al., Theorem 4.1", kind="P")
def second_moments(s: Played) -> Measured:
    D = s.learned.data
    return away(s, D.second_covariance, D.second_response), of_next(s, "tilde")


@claim("W2b", "||theta_hat - theta|| <= beta_check", "Zhou et al., Theorem 4.1", kind="P")
def coarse(s: Played) -> Measured:
    return away(s, s.learned.data.covariance, s.learned.data.response), of_next(s, "check")


@claim("W2c", "sigma_t^2 >= Var W(y_t), and tr Sigma_hat is no larger than that allows, at a scale of 1 or more",
       "Zhou et al., Lemma 5.2", kind="P")  # fmt: skip
def variances(s: Played) -> Measured:
    """sigma_t by the record; the trace of the learner's Sigma_hat, relative to what it may be."""
    grown = np.trace(s.learned.data.covariance, axis1=1, axis2=2) / books(s).most - 1
    return np.maximum(books(s).short, grown), at_scale_1(s.setting, 0.0)


@claim("W2d", "||theta_hat - theta|| <= beta_hat, at a scale of 1 or more", "Zhou et al., Theorem 4.1", kind="P")
def fine(s: Played) -> Measured:
    D = s.learned.data
    return away(s, D.covariance, D.response), at_scale_1(s.setting, of_next(s, "hat"))


# ---- the bounds


def clipped_bonus_sum(setting: RunSetting) -> float:
    """S; infinite where bonuses are larger than the theorem's."""
    H, d, T = setting.H, setting.mdp.dimension, setting.steps
    if setting.stated.scale > 1:
        return np.inf
    beta = times(setting) * sqrt(3) * H * radii(setting, T, 1.0).hat
    return mixture.clipped_bonus_sum(H, d, T, beta, bound=sqrt(d) * setting.B_phi / H, regularization=setting.lam)


def explicit(setting: RunSetting) -> float:
    """Infinite where the constants are not the theorem's."""
    return total(regret(setting, clipped_bonus_sum(setting)))


claim("W3", "E sum_{t<=T+} min(2 CB_t, H) <= S, with sigma_t^2 <= 3 H^2", "Lemma 5.5",
      kind="E")(lemmas.capped_bonus_sum(clipped_bonus_sum))  # fmt: skip
claim("W4", "R_T <= S + H (log A / (M eta) + eta kappa E K) + H^2 / M + delta T, + H / M where fresh", "Theorem 4.1",
      kind="E")(lemmas.regret(explicit))  # fmt: skip
