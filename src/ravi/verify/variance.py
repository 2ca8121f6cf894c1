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

from ravi.core import Array, Path
from ravi.theory import mixture
from ravi.verify import lemmas
from ravi.verify.books import Audit, Keeper, Seen
from ravi.verify.claim import Registry
from ravi.verify.distance import in_norm, nil, relative, solved
from ravi.verify.expected import has, regret, times, total
from ravi.verify.scene import B_phi, B_theta, Scene, delta_of, lam, theta_of

registry = Registry("variance")
claim = registry.claim


class Books(NamedTuple):
    covariance: Array  # Sigma_hat           (n, d, d)
    response: Array  # b_hat                 (n, d)
    second_covariance: Array  # Sigma_tilde  (n, d, d)
    second_response: Array  # b_tilde        (n, d)
    plays: Array  # t - 1                    (n,)
    short: Array  # max_t of Var W(y_t) - sigma_t^2, -inf before the first step   (n,)
    most: Array  # lambda d + sum ||f||^2 / max(R^2 / d, Var W(y_t))   (n,)


class Radii(NamedTuple):
    hat: float
    check: float
    tilde: float


def radii(scene: Scene, t: float, scale: Any) -> Radii:
    """At play t, for delta / 3."""
    R, d, B, regular = scene.H, scene.mdp.dimension, B_phi(scene), lam(scene)
    l, bias = log(4 * t**2 * 3 / delta_of(scene)), sqrt(regular) * B_theta(scene)
    m, m_second = log1p(t * B**2 / regular), log1p(t * B**2 * R**4 / (d * regular))
    hat = 8 * sqrt(d * m * l) + 4 * sqrt(d) * l + bias
    check = 8 * d * sqrt(m * l) + 4 * sqrt(d) * l + bias
    tilde = 8 * R**2 * sqrt(d * m_second * l) + 4 * R**2 * l + bias
    return Radii(scale * hat, scale * check, scale * tilde)


def keeper(scene: Scene) -> Keeper:
    d, R = scene.mdp.dimension, scene.H

    def init(keys: Array) -> Books:
        n = len(keys)
        first = lam(scene) * np.tile(np.eye(d), (n, 1, 1))
        none = np.zeros((n, d))
        most = np.full(n, d * lam(scene))
        return Books(first, none, first.copy(), none.copy(), np.zeros(n), np.full(n, -np.inf), most)

    def follow(m: Audit, path: Path, learned: Array) -> None:
        books, V = m.own, m.played.V
        W = V - V.min(-1, keepdims=True)
        first, second = scene.phi(W), scene.phi(W**2)
        for column in range(int(learned.sum(1).max(initial=0))):
            i = np.nonzero(learned[:, column])[0]
            x, a, y = (part[i, column] for part in (path.state, path.action, path.successor))
            f, g, target = first[i, x, a], second[i, x, a], W[i, y]
            books.plays[i] += 1
            sigma = deviation(books, i, f, g)
            P = scene.P[x, a]
            variance = (P * W[i] ** 2).sum(-1) - (P * W[i]).sum(-1) ** 2
            books.short[i] = np.maximum(books.short[i], variance - sigma**2)
            books.most[i] += (f**2).sum(-1) / np.maximum(R**2 / d, variance)
            f = f / sigma[:, None]
            books.covariance[i] += f[:, :, None] * f[:, None, :]
            books.response[i] += f * (target / sigma)[:, None]
            books.second_covariance[i] += g[:, :, None] * g[:, None, :]
            books.second_response[i] += g * (target**2)[:, None]

    def deviation(books: Books, i: Array, f: Array, g: Array) -> Array:
        """sigma_t of seeds i, from both regressions as they stand."""
        mean = np.einsum("id,id->i", f, solved(books.covariance[i], books.response[i]))
        square = np.einsum("id,id->i", g, solved(books.second_covariance[i], books.second_response[i]))
        found = [radii(scene, t, scene.stated.scale) for t in books.plays[i]]
        check, tilde = np.array([r.check for r in found]), np.array([r.tilde for r in found])
        E = np.minimum(R**2, 2 * R * check * in_norm(books.covariance[i], f))
        E += np.minimum(R**2, tilde * in_norm(books.second_covariance[i], g))
        return np.sqrt(np.maximum(R**2 / d, np.clip(square, 0, R**2) - np.clip(mean, 0, R) ** 2 + E))

    return Keeper(init, follow)


# ---- the data


claim("W1a", "Sigma_hat and b_hat are of what was played, with 1 / sigma_t^2", "UCLK+",
      phase="data")(lambda s: lemmas.regression(s, s.own))  # fmt: skip


@claim("W1b", "Sigma_tilde and b_tilde are of the squares", "UCLK+", phase="data")
def squared(s: Seen) -> tuple[Array, Array]:
    b, D = s.own, s.data
    apart = relative(D.second_covariance, b.second_covariance), relative(D.second_response, b.second_response)
    return np.max([*apart, np.abs(D.plays - b.plays)], axis=0), nil(s)


@claim("W1c", "P_hat V = min V + <phi_W, theta_hat>, cut to [min V, max V], at the V that is played", "UCLK+")
def estimate(s: Seen) -> tuple[Array, Array]:
    low, high = (part[:, None, None] for part in (s.after.V.min(-1), s.after.V.max(-1)))
    phi = s.scene.phi(s.after.V - s.after.V.min(-1, keepdims=True))
    right = low + np.einsum("nxad,nd->nxa", phi, solved(s.own.covariance, s.own.response))
    return lemmas.estimate(s, np.clip(right, low, high) if has(s.scene, "clip") else right)


@claim("W1d", "CB = gamma min(beta_hat(T_k) ||phi_W||, sp(V)), at the V that is played", "UCLK+")
def bonus(s: Seen) -> tuple[Array, Array]:
    spread = np.ptp(s.after.V, axis=-1)[:, None, None]
    hat = np.array([radii(s.scene, 1 + t, s.scene.stated.scale).hat for t in s.own.plays])[:, None, None]
    right = hat * in_norm(s.own.covariance, s.scene.phi(s.after.V - s.after.V.min(-1, keepdims=True)))
    return lemmas.bonus(s, times(s.scene) * (np.minimum(right, spread) if has(s.scene, "clip") else right))


# ---- the confidence sets


def away(scene: Scene, covariance: Array, response: Array) -> Array:
    """||theta_hat - theta||_Lambda   (n,)."""
    gap = solved(covariance, response) - theta_of(scene)
    return np.sqrt(np.einsum("nd,nde,ne->n", gap, covariance, gap))


def at_hand(s: Seen, name: str) -> Array:
    """The radius for the next step, at scale 1   (n,)."""
    return np.array([getattr(radii(s.scene, 1 + t, 1.0), name) for t in s.own.plays])


@claim("W2a", "||theta_tilde - theta|| <= beta_tilde", "Zhou et al., Theorem 4.1", kind="P", phase="data")
def second_moments(s: Seen) -> tuple[Array, Array]:
    return away(s.scene, s.data.second_covariance, s.data.second_response), at_hand(s, "tilde")


@claim("W2b", "||theta_hat - theta|| <= beta_check", "Zhou et al., Theorem 4.1", kind="P", phase="data")
def coarse(s: Seen) -> tuple[Array, Array]:
    return away(s.scene, s.data.covariance, s.data.response), at_hand(s, "check")


@claim("W2c", "sigma_t^2 >= Var W(y_t), and tr Sigma_hat is no larger than that allows, at a scale of 1 or more",
       "Zhou et al., Lemma 5.2", kind="P", phase="data")  # fmt: skip
def variances(s: Seen) -> tuple[Array, Array]:
    """sigma_t by the observer; the trace of the learner's Sigma_hat, relative to what it may be."""
    grown = np.trace(s.data.covariance, axis1=1, axis2=2) / s.own.most - 1
    return np.maximum(s.own.short, grown), nil(s) + (0.0 if s.scene.stated.scale >= 1 else np.inf)


@claim("W2d", "||theta_hat - theta|| <= beta_hat, at a scale of 1 or more", "Zhou et al., Theorem 4.1", kind="P",
       phase="data")  # fmt: skip
def fine(s: Seen) -> tuple[Array, Array]:
    bound = at_hand(s, "hat") if s.scene.stated.scale >= 1 else nil(s) + np.inf
    return away(s.scene, s.data.covariance, s.data.response), bound


# ---- the bounds


def clipped_bonus_sum(scene: Scene) -> float:
    """S; infinite where bonuses are larger than the theorem's."""
    H, d, T = scene.H, scene.mdp.dimension, scene.steps
    if scene.stated.scale > 1:
        return np.inf
    beta = times(scene) * sqrt(3) * H * radii(scene, T, 1.0).hat
    return mixture.clipped_bonus_sum(H, d, T, beta, bound=sqrt(d) * B_phi(scene) / H, regularization=lam(scene))


def explicit(scene: Scene) -> float:
    """Infinite where the constants are not the theorem's."""
    return total(regret(scene, clipped_bonus_sum(scene)))


claim("W3", "E sum_{t<=T+} min(2 CB_t, H) <= S, with sigma_t^2 <= 3 H^2", "Lemma 5.5",
      kind="E")(lemmas.capped_bonus_sum(clipped_bonus_sum))  # fmt: skip
claim("W4", "R_T <= S + H (log A / (M eta) + eta kappa E K) + H^2 / M + delta T, + H / M where fresh", "Theorem 4.1",
      kind="E")(lemmas.regret(explicit))  # fmt: skip
