"""Lemmas of every learner of the paper's form, each once, in the paper's order, for all who claim it.

RAVI-UCB claims them of its epochs (S, A, T and M), its variants of several backups an epoch (V, U, B), both where
rewards change (R), others of their regressions (N, L, W): statements and ids are with their tables, what is measured is
here. r_i are the rewards in backup i. An identity's bound is 0: a tolerance is granted by the judge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ravi.core import Array
from ravi.planning.occupancies import divergence
from ravi.theory import constants
from ravi.verify import expected
from ravi.verify.claim import Measured
from ravi.verify.distance import growth, in_norm, relative, worst
from ravi.verify.record import Backups, Estimates, Played, before
from ravi.verify.setting import Comparators, RunSetting

# ---- Algorithms 1 to 3


def begins(s: Backups) -> Measured:
    """V_1 = V_0, pi_1 = pi_0; nothing to measure where Q is fresh."""
    parts, first = s.setting.parts, s.iterates.rows(slice(0 if s.setting.parts.fresh else 1))
    if parts.fresh:
        return np.zeros(0), 0.0
    return worst(np.abs(first.V - parts.initial_value), np.abs(first.policy - parts.initial_policy)), 0.0


def backup(s: Backups) -> Measured:
    """Q_{i+1} = Pi_H[r_i + CB_i + gamma P_hat V_i]."""
    return worst(np.abs(s.Q - np.clip(s.r + s.CB + s.gamma * s.PV_hat, 0, s.H))), 0.0


def mirror(s: Backups) -> Measured:
    """V_{i+1}, pi_{i+1} are the mirror step from pi_i by Q_{i+1}."""
    eta, top = s.eta, s.Q.max(-1, keepdims=True)
    tilted = np.log(s.at.policy) + eta * (s.Q - top)
    far = tilted.max(-1, keepdims=True)
    weights = np.exp(tilted - far)
    total = weights.sum(-1, keepdims=True)
    V = top[..., 0] + (far + np.log(total))[..., 0] / eta
    rounding = 1e-15 * s.Q.shape[-1] / eta  # of a logarithm, over eta
    off = np.maximum(np.abs(s.after.V - V) - rounding, 0)
    return worst(off, np.abs(s.after.policy - weights / total), s.after.improper[:, None]), 0.0


def ranges(s: Backups) -> Measured:
    """0 <= Q_i <= H, min_a Q_i <= V_i <= max_a Q_i."""
    Q, V = s.Q, s.after.V
    return worst(-Q, Q - s.H, Q.min(-1) - V, V - Q.max(-1)), 0.0


def counts(s: Played) -> Measured:
    """N and N' are of what was played."""
    e = s.learned
    return worst(np.abs(e.data.visits - 1 - e.books.visits), np.abs(e.data.moves - e.books.moves)), 0.0


def regression(s: Played, books: Any = None) -> Measured:
    """Lambda and b are of what was played; `books` are those of a kind of regression of its own."""
    D, right = s.learned.data, books or s.learned.books
    return np.maximum(relative(D.covariance, right.covariance), relative(D.response, right.response)), 0.0


def estimate(s: Estimates, right: Array | None = None) -> Measured:
    """P_hat V_i is what the parts say of these data, or `right`."""
    return worst(np.abs(s.PV_hat - (expected.estimate(s.setting, s.books, s.V) if right is None else right))), 0.0


def bonus(s: Estimates, right: Array | None = None) -> Measured:
    """CB_i is what the parts say of these data, or `right`."""
    right = expected.bonus(s.setting, s.books, s.V) if right is None else right
    return worst(np.abs(s.CB - right) / (1 + right)), 0.0


# ---- Lemma 4.2


def validity(s: Estimates) -> Measured:
    """gamma |(P - P_hat) V_i| <= CB_i."""
    return worst(s.gamma * np.abs(s.PV - s.PV_hat) - s.CB), 0.0


def optimistic(s: Backups) -> Measured:
    """r_i + gamma P V_i <= Q_{i+1}."""
    return worst(s.exact - s.Q), 0.0


def not_too_optimistic(s: Backups) -> Measured:
    """Q_{i+1} <= r_i + gamma P V_i + min(2 CB_i, H)."""
    return worst(s.Q - s.exact - np.minimum(2 * s.CB, s.H)), 0.0


def lemma_4_2(s: Backups) -> Measured:
    """r_i + gamma P V_i <= Q_{i+1} <= r_i + gamma P V_i + min(2 CB_i, H)."""
    return np.maximum(optimistic(s)[0], not_too_optimistic(s)[0]), 0.0


# ---- small steps


def small_steps(s: Backups) -> Measured:
    """KL(pi_{i+1} || pi_i)(x) <= eta^2 H^2 / 8."""
    return worst(divergence(s.after.policy, s.at.policy)), (s.eta * s.H) ** 2 / 8


def fenchel_young(s: Backups) -> Measured:
    """<mu_{i+1} - mu_i, Q_{i+1}> - H(pi_{i+1} || pi_i) / eta <= eta kappa(H)."""
    return s.moved, s.eta * constants.kappa(s.H)


# ---- Lemma 4.3, against every comparator; sums over the first 0, 1, ... backups


def tightest(measured: Array, bound: Array) -> Measured:
    """The comparator with the least room, of each row but that of no backups; both (rows + 1, C)."""
    measured, bound = np.broadcast_arrays(measured[1:], bound[1:])
    index = np.argmin(bound - measured, axis=1)[:, None]  # a nan comes first
    return np.take_along_axis(measured, index, 1)[:, 0], np.take_along_axis(bound, index, 1)[:, 0]


def gaps(s: Backups, c: Comparators | None = None) -> Array:
    """sum_i <mu* - mu^{pi_i}, r_i>   (rows + 1, C)."""
    return s.optimal(c or s.setting.against) - s.earned[:, None]


def sum_above(s: Backups) -> Measured:
    """sum Delta*_i = sum <mu*, r_i> - (1 - gamma) <nu_0, V_i> <= H(pi*||pi_0) / eta + <mu*, E (V_{i+1} - V_0)>."""
    c, rise = s.setting.against, s.iterates.V - s.setting.parts.initial_value
    return tightest(s.optimal(c) - s.hoped[:, None], c.entropy / s.eta + rise @ c.nu.T)


def below(s: Backups, step: float, bonuses: Array) -> Measured:
    """sum Delta_i <= <mu_0, E V_0> - <mu_{i+1}, E V_{i+1}> + eta step (i + 1) + bonuses."""
    bound = s.ends[0] - s.ends + s.eta * step * s.count + bonuses
    return (s.hoped - s.earned)[1:], bound[1:]


def sum_below(s: Backups) -> Measured:
    return below(s, constants.kappa(s.H), s.capped)


def lemma_4_3(right: Callable[[Backups], Array]) -> Callable[[Backups], Measured]:
    """sum_i <mu* - mu^{pi_i}, r_i> <= right: what is proven (`right_side`), or that before anything is bounded."""
    return lambda s: tightest(gaps(s), right(s))


def right_side(s: Backups, c: Comparators | None = None) -> Array:
    """That of Lemma 4.3: sum <mu_i, min(2 CB_i, H)> + H + H(pi*||pi_0) / eta + eta kappa (i + 1)   (rows + 1, C); its
    ends are worth H where V_0 is constant."""
    ends = s.H * (1 if np.ptp(s.setting.parts.initial_value) == 0 else 2)
    return bounded(s, s.capped + ends, constants.kappa(s.H), c)


def bounded(s: Backups, paid: Array, step: float, c: Comparators | None = None) -> Array:
    eta = s.eta
    return (paid + eta * step * s.count)[:, None] + (c or s.setting.against).entropy / eta


def certificate(s: Backups, bonuses: Array | None = None) -> Array:
    """The right side of Lemma 4.3 before anything is bounded   (rows + 1, C)."""
    c, paid = s.setting.against, (s.capped if bonuses is None else bonuses) + before(s.moved)
    begins = c.nu @ s.setting.parts.initial_value - s.ends[0]
    ends = s.iterates.V @ c.nu.T - s.ends[:, None]
    return paid[:, None] + ends - begins + c.entropy / s.eta


# ---- Appendix A.2 and Lemma 5.4: how far estimates are off


def error(s: Estimates, right: Array) -> Measured:
    """P_hat V_i - P V_i = right."""
    return worst(np.abs(s.PV_hat - s.PV - right)), 0.0


def self_normalised(setting: RunSetting, covariance: Array, noise: Array) -> Measured:
    """||sum phi_i n_i||_{Lambda^-1} <= H sqrt(2 log(det(Lambda)^(1/2) lambda^(-d/2) / delta)), Theorem C.2."""
    grown = growth(covariance, setting.lam)
    return in_norm(covariance, noise), setting.H * np.sqrt(grown + 2 * setting.log_inverse_delta)


def within(s: Estimates, bonus: Array) -> Measured:
    """|(P - P_hat) V_i| <= bonus."""
    return worst(np.abs(s.PV - s.PV_hat) - bonus), 0.0


# ---- in expectation


def regret(bound: Callable[[RunSetting], float]) -> Callable[[Played], Measured]:
    """R_T <= bound."""
    return lambda s: (s.regret, bound(s.setting))


def bonus_sum(bound: Callable[[RunSetting], float]) -> Callable[[Played], Measured]:
    """E sum_{t <= T+} CB_t <= bound."""
    return lambda s: (s.along(s.CB).sum(), bound(s.setting))


def capped_bonus_sum(bound: Callable[[RunSetting], float]) -> Callable[[Played], Measured]:
    """E sum_{t <= T+} min(2 CB_t, H) <= bound."""
    return lambda s: (s.capped.sum(), bound(s.setting))
