"""Claims about RAVI-KL for linear mixtures: Lemma 5 and Theorem 4 of docs/explanation/kl.md, on every plan.

Plans are seen as in `ravi.verify.sets`, of other sets: a keeper has its own G, makes radii and levels by their
formulas, the likelihood by its definition, and the fixed points by plain value iteration over E, the set that the
learner should have had. The weights of the truth are those of the MDP, or its weights at the vertices.
"""

from __future__ import annotations

from functools import partial
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from ravi.core import MDP, Array, Path
from ravi.optimism.likelihood import Likelihood, Rows, rows_of, shape, simulators
from ravi.optimism.simplex import Ball, ball, maximum
from ravi.theory import kl as theory
from ravi.verify import lemmas, sets
from ravi.verify.books import Audit, Evidence, Keeper, Seen
from ravi.verify.claim import Registry
from ravi.verify.distance import nil
from ravi.verify.scene import Scene
from ravi.verify.sets import Kept, Plan, at_truth, fixed_point, made_at

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
    """What claims about mixtures need of a plan besides; seeds first."""

    apart: Array  # how far the learner's G is off after the first steps, in parts of its largest entry   (n,)
    phi: Array  # phi_U of the learner's V, at all pairs                   (n, X, A, d)
    gap: Array  # of theta_hat                                             (n,)
    likely: Array  # the largest form of Lambda at the ends of the set of likelihoods, in parts of its bound   (n,)
    V: Array  # of the learner, for the fixed point                        (n, X)
    wide: Array  # 2 CB at the played actions, and what tolerance adds     (n, X)
    opened: Array  # ln det G when the phase began                         (n,)


class Steps(NamedTuple):
    """Along the steps."""

    G: Array  # of the observer                                            (n, d, d)
    grown: Array  # the most that ln det G had grown by before a step      (n,)
    potential: Array  # sum min{1, ||phi||^2 in the inverse of G}          (n,)


# ---- every plan


@claim("KM1", "G = I + sum phi_U phi_U^T over the steps", "docs/explanation/kl.md")
def gram(s: Seen) -> tuple[Array, Array]:
    return s.own.plan.made.apart, nil(s)


@claim("KM2", "F(theta_hat) is within 1e-4 of the minimum", "docs/explanation/kl.md")
def likeliest(s: Seen) -> tuple[Array, Array]:
    return s.own.plan.made.gap, nil(s) + theory.GAP


@claim("KM3", "||theta - theta_hat||^2_Lambda <= 2 (rho + gap) for all likely theta", "Lemma 5")
def around(s: Seen) -> tuple[Array, Array]:
    return s.own.plan.made.likely, nil(s) + 1


@claim("KM4", "the plan's V is above the fixed point over E, by at most H tol_t", "Lemma 4")
def near_the_fixed_point(s: Seen) -> tuple[Array, Array]:
    p = s.own.plan
    off = p.made.V - p.V
    return np.maximum(off.max(-1) - s.scene.H * p.tol, (-off).max(-1)), nil(s) + CLOSE * s.scene.H**2


@claim("KM5", "gamma (q_k - P) V_k <= gamma H (sqrt((1 + e) / e) beta ||phi_U||_{G^-1} + tol_t), where valid",
       "Theorem 4")  # fmt: skip
def deviations(s: Seen) -> tuple[Array, Array]:
    p = s.own.plan
    return np.where(p.valid, (p.g - p.made.wide).max(-1), -np.inf), nil(s)


# ---- the whole run


@claim("KM6a", "det G is at most twice that of the phase's beginning, before its last step", "Theorem 4", phase="run")
def doubled(e: Evidence) -> tuple[Array, Array]:
    return e.audit.own.steps.grown, np.full(e.n, DOUBLED)


@claim("KM6b", "at most D + d log2(1 + T) phases end without a reset, D as in K9d", "Theorem 4", phase="run")
def phases(e: Evidence) -> tuple[Array, Array]:
    mdp, d = e.scene.mdp, e.audit.own.steps.G.shape[-1]
    return e.audit.own.sums.doublings, np.full(e.n, theory.mixture_doublings(d, mdp.states, mdp.actions, e.run.steps))


@claim("KM6c", "sum min{1, ||phi_U||^2_{G^-1}} <= 2 d ln(1 + T)", "Theorem 4", phase="run")
def potential(e: Evidence) -> tuple[Array, Array]:
    return e.audit.own.steps.potential, np.full(e.n, 2 * e.audit.own.steps.G.shape[-1] * log(1 + e.run.steps))


@claim("KM7", "E steps while theta* is not in E <= sum of the levels", "Lemma 5", kind="E")
def invalid(e: Evidence) -> tuple[Array, Array]:
    H, d = e.scene.H, e.audit.own.steps.G.shape[-1]
    return e.audit.own.sums.invalid, np.array(sum(theory.mixture_level(H, d, s) for s in made_at(e)))


def explicit(scene: Scene) -> float:
    """Infinite where the radii are not the theorem's."""
    given, mdp = scene.sets, scene.mdp
    if given.scale != 1:
        return np.inf
    return theory.mixture(scene.H, given.kernels, mdp.states, mdp.actions, scene.steps, slack=given.slack).total


claim("KM8", "R_T <= the bound of Theorem 4", "Theorem 4", kind="E")(lemmas.regret(explicit))

# ---- what is kept


def keeper(scene: Scene) -> Keeper:
    model = model_of(scene.mdp)
    d = model.psi.shape[-1]

    def steps(n: int) -> Steps:
        return Steps(np.tile(np.eye(d), (n, 1, 1)), np.zeros(n), np.zeros(n))

    return sets.keeping(scene, partial(look, model, scene), steps, follow)


def model_of(mdp: MDP) -> Model:
    psi = simulators(mdp.problem)
    flat: Any = psi.reshape(-1, psi.shape[-1])
    theta: Any = mdp.parameter if psi is mdp.features else nnls(flat, mdp.transitions.ravel())[0]
    return Model(psi, rows_of(psi), theta / theta.sum())


def look(model: Model, scene: Scene, m: Audit, state: Any, path: Path) -> Plan:
    mdp, given, d = scene.mdp, scene.sets, model.psi.shape[-1]
    X, H, gamma, n = mdp.states, scene.H, mdp.discount, len(path.time)
    V, own, likely, gap = np.empty((n, X)), np.empty((n, X)), np.empty(n), np.empty(n)
    valid, wide, policy = np.empty(n, bool), np.empty((n, X)), state.policy
    phi = np.einsum("xajd,nxaj->nxad", model.psi, centred(state.V_played)[:, mdp.successors])
    time, apart, was, moves = path.time.astype(float), np.empty(n), m.own.steps.G, scene.stored(m.books.moves)
    tol = theory.TOLERANCE / np.sqrt(time)
    for i in range(n):
        level = log(2 / theory.mixture_level(H, d, time[i]))
        at = likelihood(model.rows, moves[i], state.theta[i], level, given.scale)
        gap[i], square = at.gap, theory.mixture_radius(d, time[i], at.rho + at.gap)
        Lam, G = shape(at, 1.0), was[i]
        likely[i] = _ends(at, Lam, model.theta)
        E = ball((Lam + theory.GUARD * G / square)[None], at.theta[None], np.array([sqrt(1 + theory.GUARD)]))
        off = model.theta - at.theta
        valid[i] = off @ (Lam + theory.GUARD * G / square) @ off <= 1 + theory.GUARD + 1e-12
        most = partial(_most, model, mdp, Ball(*(np.repeat(part, X * mdp.actions, 0) for part in E)))
        V[i] = fixed_point(mdp, mdp.rewards, most, np.full(X, H), close=CLOSE)
        own[i] = fixed_point(mdp, mdp.rewards, most, V[i], policy[i], close=CLOSE)
        norm = np.sqrt(np.einsum("xad,de,xae->xa", phi[i], np.linalg.inv(G), phi[i]))
        reach = sqrt((1 + theory.GUARD) / theory.GUARD * square)
        played = phi[i, path.state[i], path.action[i]][: path.length[i]]
        G = G + played.T @ played  # the learner adds as it walks
        apart[i] = np.abs(state.gram.covariance[i] - G).max() / G.max()
        wide[i] = (policy[i] * gamma * H * (reach * norm + tol[i])).sum(-1)
    counts = moves.sum(-1)
    return at_truth(
        scene, policy, own, time=time, earned=counts, V=V, valid=valid, plays=(policy * counts).sum(-1),
        eps=given.slack * d * np.sqrt(H / time), tol=tol,
        made=Likely(apart, phi, gap, likely, state.V.copy(), wide, np.linalg.slogdet(was)[1]),
    )  # fmt: skip


def follow(kept: Kept, path: Path) -> None:
    """G, its determinant and the potential along the steps, in place."""
    s, p = kept.steps, kept.plan.made
    for i in np.flatnonzero(path.length):
        G, inverse = s.G[i], np.linalg.inv(s.G[i])
        grown = np.linalg.slogdet(G)[1] - p.opened[i]
        for l in range(path.length[i]):
            s.grown[i] = max(s.grown[i], grown)
            row = p.phi[i, path.state[i, l], path.action[i, l]]
            q = row @ inverse @ row
            s.potential[i] += min(1.0, q)
            G += np.outer(row, row)
            inverse -= np.outer(inverse @ row, row @ inverse) / (1 + q)
            grown += log(1 + q)


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
