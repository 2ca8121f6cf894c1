"""Claims about RAVI-KL for linear mixtures: Lemma 5 and Theorem 4 of docs/explanation/kl.md, on every plan.

Plans are those of `ravi.verify.sets`, of other sets: with G of what was played, radii and levels by their formulas, the
likelihood by its definition, and the fixed points by plain value iteration over E, the set that the learner should have
had. The weights of the truth are those of the MDP, or its weights at the vertices.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from ravi.core import MDP, Array
from ravi.optimism.likelihood import Likelihood, Rows, rows_of, shape, simulators
from ravi.optimism.simplex import Ball, ball, maximum
from ravi.theory import kl as theory
from ravi.verify import lemmas, sets
from ravi.verify.claim import Measured, Registry
from ravi.verify.record import Played, once
from ravi.verify.sets import Plan, at_truth, fixed_point, made_at
from ravi.verify.setting import RunSetting

SHARED = ("K1", "K3", "K4", "K5", "K9a", "K11")  # claims of `sets` that are about any optimistic plan
CLOSE = 1e-9  # of H: value iteration ends at moves of this size
DOUBLED = log(2) + 1e-9  # of a determinant that has at most doubled
SEGMENTS = 40  # halvings on the way to the end of a set

registry = Registry()
claim = registry.claim


class Model(NamedTuple):
    """The kernels, and the truth among them."""

    psi: Array  # (X, A, B, d)
    rows: Rows
    theta: Array  # theta*   (d,)


class Likely(NamedTuple):
    """What claims about mixtures need of the plans besides."""

    apart: Array  # how far the learner's G is off after the first steps, in parts of its largest entry   (K,)
    phi: Array  # phi_U of the learner's V, at all pairs                   (K, X, A, d)
    gap: Array  # of theta_hat                                             (K,)
    likely: Array  # the largest form of Lambda at the ends of the set of likelihoods, in parts of its bound   (K,)
    wide: Array  # 2 CB at the played actions, and what tolerance adds     (K, X)
    G: Array  # I + sum phi_U phi_U^T when the phase began                 (K, d, d)


# ---- every plan


@claim("KM1", "G = I + sum phi_U phi_U^T over the steps", "docs/explanation/kl.md")
def gram(s: Played) -> Measured:
    return s.plan.made.apart, 0.0


@claim("KM2", "F(theta_hat) is within 1e-4 of the minimum", "docs/explanation/kl.md")
def likeliest(s: Played) -> Measured:
    return s.plan.made.gap, theory.GAP


@claim("KM3", "||theta - theta_hat||^2_Lambda <= 2 (rho + gap) for all likely theta", "Lemma 5")
def around(s: Played) -> Measured:
    return s.plan.made.likely, 1


@claim("KM4", "the plan's V is above the fixed point over E, by at most H tol_t", "Lemma 4")
def near_the_fixed_point(s: Played) -> Measured:
    off = s.states.V - s.plan.V
    return np.maximum(off.max(-1) - s.H * s.plan.tol, (-off).max(-1)), CLOSE * s.H**2


@claim("KM5", "gamma (q_k - P) V_k <= gamma H (sqrt((1 + e) / e) beta ||phi_U||_{G^-1} + tol_t), where valid",
       "Theorem 4")  # fmt: skip
def deviations(s: Played) -> Measured:
    return np.where(s.plan.valid, (s.plan.g - s.plan.made.wide).max(-1), -np.inf), 0.0


# ---- the whole run


class Steps(NamedTuple):
    """Along the steps."""

    grown: float  # the most that ln det G had grown by before a step
    potential: float  # sum min{1, ||phi||^2 in the inverse of G}


@once
def steps_of(s: Played) -> Steps:
    made, most, potential, before = s.plan.made, 0.0, 0.0, -1
    for e, row in zip(s.epoch, s.along(made.phi), strict=True):
        if e > before:
            inverse, grown, before = np.linalg.inv(made.G[e]), 0.0, e
        most = max(most, grown)
        q = row @ inverse @ row
        potential += min(1.0, q)
        inverse -= np.outer(inverse @ row, row @ inverse) / (1 + q)
        grown += log(1 + q)
    return Steps(most, potential)


def d_of(s: Played) -> int:
    return int(s.plan.made.G.shape[-1])


@claim("KM6a", "det G is at most twice that of the phase's beginning, before its last step", "Theorem 4", per="run")
def doubled(s: Played) -> Measured:
    return steps_of(s).grown, DOUBLED


@claim("KM6b", "at most D + d log2(1 + T) phases end without a reset, D as in K9d", "Theorem 4", per="run")
def phases(s: Played) -> Measured:
    mdp = s.mdp
    return sets.by_doubling(s), theory.mixture_doublings(d_of(s), mdp.states, mdp.actions, s.T)


@claim("KM6c", "sum min{1, ||phi_U||^2_{G^-1}} <= 2 d ln(1 + T)", "Theorem 4", per="run")
def potential(s: Played) -> Measured:
    return steps_of(s).potential, 2 * d_of(s) * log(1 + s.T)


@claim("KM7", "E steps while theta* is not in E <= sum of the levels", "Lemma 5", kind="E")
def invalid(s: Played) -> Measured:
    return s.invalid_steps, sum(theory.mixture_level(s.H, d_of(s), at) for at in made_at(s))


def explicit(setting: RunSetting) -> float:
    """Infinite where the radii are not the theorem's."""
    given, mdp = setting.sets, setting.mdp
    if given.scale != 1:
        return np.inf
    return theory.mixture(setting.H, given.kernels, mdp.states, mdp.actions, setting.steps, slack=given.slack).total


claim("KM8", "R_T <= the bound of Theorem 4", "Theorem 4", kind="E")(lemmas.regret(explicit))

# ---- the plans


@lru_cache(maxsize=4)
def model_of(mdp: MDP) -> Model:
    psi = simulators(mdp.problem)
    flat: Any = psi.reshape(-1, psi.shape[-1])
    theta: Any = mdp.parameter if psi is mdp.features else nnls(flat, mdp.transitions.ravel())[0]
    return Model(psi, rows_of(psi), theta / theta.sum())


def plan_of(s: Played) -> Plan:
    model, mdp, state, time, moves = model_of(s.mdp), s.mdp, s.states, s.starts, s.books.moves
    given, H, gamma, policy, d = s.setting.sets, s.H, s.gamma, state.policy, model.psi.shape[-1]
    phi = np.einsum("xajd,nxaj->nxad", model.psi, centred(state.V_played)[:, mdp.successors])
    tol, G, found = theory.TOLERANCE / np.sqrt(time), np.eye(d), []
    for k in range(s.K):
        level = log(2 / theory.mixture_level(H, d, time[k]))
        at = likelihood(model.rows, moves[k], state.theta[k], level, given.scale)
        square, Lam = theory.mixture_radius(d, time[k], at.rho + at.gap), shape(at, 1.0)
        form = Lam + theory.GUARD * G / square
        E = ball(form[None], at.theta[None], np.array([sqrt(1 + theory.GUARD)]))
        off = model.theta - at.theta
        valid = off @ form @ off <= 1 + theory.GUARD + 1e-12
        most = partial(_most, model, mdp, Ball(*(np.repeat(part, mdp.states * mdp.actions, 0) for part in E)))
        V = fixed_point(mdp, mdp.rewards, most, np.full(mdp.states, H), close=CLOSE)
        own = fixed_point(mdp, mdp.rewards, most, V, policy[k], close=CLOSE)
        norm = np.sqrt(np.einsum("xad,de,xae->xa", phi[k], np.linalg.inv(G), phi[k]))
        reach = sqrt((1 + theory.GUARD) / theory.GUARD * square)
        wide = (policy[k] * gamma * H * (reach * norm + tol[k])).sum(-1)
        rows = phi[k, s.x[s.epoch == k], s.a[s.epoch == k]]
        walked = rows[: s.walked[k]]  # the learner adds as it walks
        right = added(G, walked)
        apart = np.abs(state.gram.covariance[k] - right).max() / right.max()
        found.append((V, own, valid, at.gap, _ends(at, Lam, model.theta), wide, G, apart))
        G = added(G, rows)
    V, own, valid, gap, likely, wide, Gs, off_G = (np.array(part) for part in zip(*found, strict=True))
    counts = moves.sum(-1)
    return at_truth(
        s.setting, policy, own, time=time, earned=counts, V=V, valid=valid, plays=(policy * counts).sum(-1),
        eps=given.slack * d * np.sqrt(H / time), tol=tol, made=Likely(off_G, phi, gap, likely, wide, Gs),
    )  # fmt: skip


def added(G: Array, rows: Array) -> Array:
    """G after the steps with these phi_U   (steps, d)."""
    return G + rows.T @ rows


def _most(model: Model, mdp: MDP, E: Ball, V: Array) -> Array:
    """max_E <theta, phi_V>   (X, A); E of every pair."""
    phi = np.einsum("xajd,xaj->xad", model.psi, V[mdp.successors])
    return maximum(E, phi.reshape(-1, phi.shape[-1]))[0].reshape(phi.shape[:2])


def centred(V: Array) -> Array:
    """U: V less its middle, in parts of half its span; 0 where it has none."""
    low, high = V.min(-1, keepdims=True), V.max(-1, keepdims=True)
    half = (high - low) / 2
    return np.where(half > 1e-12, (V - (low + high) / 2) / np.maximum(half, 1e-12), 0.0)


def likelihood(rows: Rows, moves: Array, theta: Array, log_inverse_level: float, scale: float) -> Likelihood:
    """Of the learner's theta_hat, by the definitions; its gap is what it is."""
    k, d = rows.psi.shape
    N = np.bincount(rows.of, moves.reshape(-1), k + 1)[:k]
    psi, N = rows.psi[N > 0], N[N > 0]
    gap = max((psi.T @ (N / (psi @ theta))).max() - N.sum(), 0.0) if len(N) else 0.0
    return Likelihood(psi, N, theta, gap, scale * (log_inverse_level + theory.worst_redundancy(N.sum(), d)))


def _ends(at: Likelihood, Lam: Array, star: Array) -> float:
    """The largest ||theta - theta_hat||^2_Lambda at the ends of {F <= F(theta_hat) + rho}, on the ways from theta_hat
    to the vertices and to theta*."""

    def F(theta: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(-(at.counts * np.log(at.rows @ theta)).sum())

    least, found = F(at.theta), 0.0
    for aim in (*np.eye(len(star)), star):
        low, high = 0.0, 1.0
        if F(aim) <= least + at.rho:
            low = 1.0
        for _ in range(0 if low else SEGMENTS):
            middle = (low + high) / 2
            inside = F(at.theta + middle * (aim - at.theta)) <= least + at.rho
            low, high = (middle, high) if inside else (low, middle)
        off = low * (aim - at.theta)
        found = max(found, float(off @ Lam @ off))
    return found
