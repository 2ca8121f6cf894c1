"""Lemmas of every learner of the paper's form, each once, in the paper's order, for all who claim it.

RAVI-UCB claims them of its epochs (S, A, T and M), its variants of several backups an epoch (V, U, B), both where
rewards change (R), others of their regressions (N, L, W): statements and ids are with their tables, what is measured is
here. r_i are the rewards in backup i.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ravi.core import Array
from ravi.planning.occupancies import divergence
from ravi.theory import constants
from ravi.verify import distance, expected
from ravi.verify.audit import optimisation
from ravi.verify.books import Evidence, Seen, Totals
from ravi.verify.distance import growth, in_norm, nil, worst
from ravi.verify.scene import Comparators, Scene, delta_of, lam

Measured = tuple[Array, Array]


def exact(s: Seen) -> Array:
    """r_i + gamma P V_i."""
    return s.backup.r + s.scene.mdp.discount * s.backup.PV


# ---- Algorithms 1 to 3


def begins(s: Seen) -> Measured:
    """V_1 = V_0, pi_1 = pi_0."""
    parts = s.scene.parts
    return worst(np.abs(s.after.V - parts.initial_value), np.abs(s.after.policy - parts.initial_policy)), nil(s)


def backup(s: Seen) -> Measured:
    """Q_{i+1} = Pi_H[r_i + CB_i + gamma P_hat V_i]."""
    b = s.backup
    return worst(np.abs(b.Q - np.clip(b.r + b.CB + s.scene.mdp.discount * b.PV_hat, 0, s.scene.H))), nil(s)


def mirror(s: Seen) -> Measured:
    """V_{i+1}, pi_{i+1} are the mirror step from pi_i by Q_{i+1}."""
    a = s.after
    return distance.mirror_step(s.backup.Q, s.at.policy, s.scene.parts.eta, a.V, a.policy, a.improper), nil(s)


def ranges(s: Seen) -> Measured:
    """0 <= Q_i <= H, min_a Q_i <= V_i <= max_a Q_i."""
    Q, V = s.backup.Q, s.after.V
    return worst(-Q, Q - s.scene.H, Q.min(-1) - V, V - Q.max(-1)), nil(s)


def counts(s: Seen) -> Measured:
    """N and N' are of what was played."""
    D, moves = s.data, s.books.moves
    return worst(np.abs(D.visits - 1 - moves.sum(-1)), np.abs(D.moves - s.scene.stored(moves))), nil(s)


def regression(s: Seen, books: Any = None) -> Measured:
    """Lambda and b are of what was played; `books` are those of a kind of regression of its own."""
    right = s.books if books is None else books
    pairs = (s.data.covariance, right.covariance), (s.data.response, right.response)
    return np.maximum(*(distance.relative(*pair) for pair in pairs)), nil(s)


def estimate(s: Seen, right: Array | None = None) -> Measured:
    """P_hat V_i is what the parts say of these data, or `right`."""
    right = expected.estimate(s.scene, s.books, s.at.V) if right is None else right
    return worst(np.abs(s.backup.PV_hat - right)), nil(s)


def bonus(s: Seen, right: Array | None = None) -> Measured:
    """CB_i is what the parts say of these data, or `right`."""
    right = expected.bonus(s.scene, s.books, s.at.V) if right is None else right
    return worst(np.abs(s.backup.CB - right) / (1 + right)), nil(s)


# ---- Lemma 4.2


def validity(s: Seen) -> Measured:
    """gamma |(P - P_hat) V_i| <= CB_i."""
    b = s.backup
    return worst(s.scene.mdp.discount * np.abs(b.PV - b.PV_hat) - b.CB), nil(s)


def optimistic(s: Seen) -> Measured:
    """r_i + gamma P V_i <= Q_{i+1}."""
    return worst(exact(s) - s.backup.Q), nil(s)


def not_too_optimistic(s: Seen) -> Measured:
    """Q_{i+1} <= r_i + gamma P V_i + min(2 CB_i, H)."""
    return worst(s.backup.Q - exact(s) - np.minimum(2 * s.backup.CB, s.scene.H)), nil(s)


def lemma_4_2(s: Seen) -> Measured:
    """r_i + gamma P V_i <= Q_{i+1} <= r_i + gamma P V_i + min(2 CB_i, H)."""
    return np.maximum(optimistic(s)[0], not_too_optimistic(s)[0]), nil(s)


# ---- small steps


def small_steps(s: Seen) -> Measured:
    """KL(pi_{i+1} || pi_i)(x) <= eta^2 H^2 / 8."""
    return worst(divergence(s.after.policy, s.at.policy)), nil(s) + (s.scene.parts.eta * s.scene.H) ** 2 / 8


def moved(s: Seen) -> Array:
    """<mu_{i+1} - mu_i, Q_{i+1}> - H(pi_{i+1}||pi_i) / eta."""
    return optimisation(s.scene, s.at, s.backup, s.after)


def fenchel_young(s: Seen) -> Measured:
    """... <= eta kappa(H)."""
    return moved(s), nil(s) + s.scene.parts.eta * constants.kappa(s.scene.H)


# ---- Lemma 4.3, against every comparator


def tightest(measured: Array, bound: Array) -> Measured:
    """The comparator with the least room, of each seed; both (n, C)."""
    measured, bound = np.broadcast_arrays(measured, bound)
    index = np.argmin(bound - measured, axis=1)[:, None]  # a nan comes first
    return np.take_along_axis(measured, index, 1)[:, 0], np.take_along_axis(bound, index, 1)[:, 0]


def gaps(c: Comparators, s: Totals) -> Array:
    """sum_i <mu* - mu^{pi_i}, r_i>   (n, C)."""
    return s.tables @ c.rho.T - s.earned[:, None]


def sum_above(s: Seen) -> Measured:
    """sum Delta*_i = sum <mu*, r_i> - (1 - gamma) <nu_0, V_i> <= H(pi*||pi_0) / eta + <mu*, E (V_{i+1} - V_0)>."""
    c, parts = s.scene.against, s.scene.parts
    rise = (s.after.V - parts.initial_value) @ c.nu.T
    return tightest(s.totals.tables @ c.rho.T - s.totals.hoped[:, None], c.entropy / parts.eta + rise)


def below(s: Seen, step: float, bonuses: Array) -> Measured:
    """sum Delta_i <= <mu_0, E V_0> - <mu_{i+1}, E V_{i+1}> + eta step (i + 1) + bonuses."""
    t, paid = s.totals, s.scene.parts.eta * step * s.totals.backups
    return t.hoped - t.earned, t.first - (s.after.nu * s.after.V).sum(-1) + paid + bonuses


def sum_below(s: Seen) -> Measured:
    return below(s, constants.kappa(s.scene.H), s.totals.capped)


def lemma_4_3(right: Callable[[Scene, Totals], Array]) -> Callable[[Seen], Measured]:
    """sum_i <mu* - mu^{pi_i}, r_i> <= right: what is proven (`right_side`), or that before anything is bounded."""
    return lambda s: tightest(gaps(s.scene.against, s.totals), right(s.scene, s.totals))


def right_side(scene: Scene, s: Totals, c: Comparators | None = None) -> Array:
    """That of Lemma 4.3: sum <mu_i, min(2 CB_i, H)> + H + H(pi*||pi_0) / eta + eta kappa (i + 1)   (n, C); its ends are
    worth H where V_0 is constant."""
    ends = scene.H * (1 if np.ptp(scene.parts.initial_value) == 0 else 2)
    return bounded(scene, s, s.capped + ends, constants.kappa(scene.H), c)


def bounded(scene: Scene, s: Totals, paid: Array, step: float, c: Comparators | None = None) -> Array:
    eta = scene.parts.eta
    return (paid + eta * step * s.backups)[:, None] + (c or scene.against).entropy / eta


def certificate(scene: Scene, s: Totals, bonuses: Array | None = None) -> Array:
    """The right side of Lemma 4.3 before anything is bounded   (n, C)."""
    c, paid = scene.against, s.capped if bonuses is None else bonuses
    begins = c.nu @ scene.parts.initial_value - s.first[:, None]
    return (paid + s.moves)[:, None] + s.end - begins + c.entropy / scene.parts.eta


# ---- Appendix A.2 and Lemma 5.4: how far estimates are off


def error(s: Seen, right: Array) -> Measured:
    """P_hat V_i - P V_i = right."""
    return worst(np.abs(s.backup.PV_hat - s.backup.PV - right)), nil(s)


def self_normalised(s: Seen, covariance: Array, noise: Array) -> Measured:
    """||sum phi_i n_i||_{Lambda^-1} <= H sqrt(2 log(det(Lambda)^(1/2) lambda^(-d/2) / delta)), Theorem C.2."""
    grown = growth(covariance, lam(s.scene)) - 2 * np.log(delta_of(s.scene))
    return in_norm(covariance, noise), s.scene.H * np.sqrt(grown)


def within(s: Seen, bonus: Array) -> Measured:
    """|(P - P_hat) V_i| <= bonus."""
    return worst(np.abs(s.backup.PV - s.backup.PV_hat) - bonus), nil(s)


# ---- in expectation


def regret(bound: Callable[[Scene], float]) -> Callable[[Evidence], Measured]:
    """R_T <= bound."""
    return lambda e: (e.run.regret, np.array(bound(e.scene)))


def bonus_sum(bound: Callable[[Scene], float]) -> Callable[[Evidence], Measured]:
    """E sum_{t <= T+} CB_t <= bound."""
    return lambda e: (e.audit.walked.bonus, np.array(bound(e.scene)))


def capped_bonus_sum(bound: Callable[[Scene], float]) -> Callable[[Evidence], Measured]:
    """E sum_{t <= T+} min(2 CB_t, H) <= bound."""
    return lambda e: (e.audit.walked.capped, np.array(bound(e.scene)))
