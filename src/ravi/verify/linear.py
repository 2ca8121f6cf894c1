"""Claims of RAVI-UCB on a linear MDP: its data, and what is proven of it where X is finite.

P(x' | x, a) = <phi(x, a), m(x')>, m by least squares from the truth. `ravi.theory.linear` has the proof that bonuses
are valid for every V at once, at the price of X log 2, and what follows where the learner's beta is so large.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ravi.core import MDP, Array
from ravi.theory import constants
from ravi.theory import linear as theory
from ravi.verify import lemmas
from ravi.verify.books import Seen
from ravi.verify.claim import Registry
from ravi.verify.distance import growth, in_norm, nil, relative, solved
from ravi.verify.scene import Scene, beta_of, delta_of, kernel_of, lam, of_theorem_4_1

registry = Registry("linear")
claim = registry.claim


class Truth(NamedTuple):
    phi: Array  # phi(x, a)                        (X, A, d)
    measures: Array  # m, P = <phi, m>             (d, X)
    longest: float  # b = max ||phi||
    heaviest: float  # W >= ||m V|| for V in [0, H]^X, each coordinate at its own extreme


@lru_cache(maxsize=4)
def truth(mdp: MDP) -> Truth:
    X, A, P = mdp.states, mdp.actions, kernel_of(mdp)
    phi = np.eye(X * A).reshape(X, A, X * A) if mdp.pair_features is None else np.array(mdp.pair_features)
    m = np.linalg.lstsq(phi.reshape(X * A, -1), P.reshape(X * A, X), rcond=None)[0]
    weights = np.maximum(np.where(m > 0, m, 0).sum(-1), np.where(m < 0, -m, 0).sum(-1))
    longest = float(np.linalg.norm(phi, axis=-1).max())
    return Truth(phi, m, longest, mdp.horizon * float(np.linalg.norm(weights)))


keeper = None  # counts are enough


def covariance(s: Seen) -> Array:
    """Lambda = lambda I + sum_t phi_t phi_t^T   (n, d, d)."""
    phi = truth(s.scene.mdp).phi
    return lam(s.scene) * np.eye(phi.shape[-1]) + np.einsum("nxa,xad,xae->nde", s.books.moves.sum(-1), phi, phi)


def widths(s: Seen) -> Array:
    """||phi(x, a)||_{Lambda^-1}   (n, X, A)."""
    phi = truth(s.scene.mdp).phi
    return in_norm(covariance(s), np.broadcast_to(phi, (len(s.after.V), *phi.shape)))


@claim("L1a", "Lambda = lambda I + sum phi phi^T, M = sum phi e_y^T, over t < T_k", "Discussion", phase="data")
def data(s: Seen) -> tuple[Array, Array]:
    M = np.einsum("nxay,xad->ndy", s.books.moves, truth(s.scene.mdp).phi)
    return np.maximum(relative(s.data.covariance, covariance(s)), relative(s.data.moves, M)), nil(s)


@claim("L1b", "P_hat V_k = <phi, Lambda^-1 M V_k>: every target is that of V_k", "Discussion")
def estimate(s: Seen) -> tuple[Array, Array]:
    phi = truth(s.scene.mdp).phi
    right = np.einsum("nxay,xad,ny->nd", s.books.moves, phi, s.after.V)
    return lemmas.estimate(s, np.einsum("xad,nd->nxa", phi, solved(covariance(s), right)))


@claim("L1c", "CB_k = beta ||phi||_{Lambda^-1}, beta = d H sqrt(ln(2 d T / delta))", "Discussion")
def bonus(s: Seen) -> tuple[Array, Array]:
    d = truth(s.scene.mdp).phi.shape[-1]
    beta = d * s.scene.H * np.sqrt(np.log(2 * d * s.scene.steps / delta_of(s.scene)))
    return lemmas.bonus(s, float(s.scene.stated.scale) * beta * widths(s))


@claim("L2", "P_hat V_k - P V_k = <phi, Lambda^-1 (sum phi_t (V_k(y_t) - P V_k) - lambda m V_k)>", "Appendix A.2")
def error_identity(s: Seen) -> tuple[Array, Array]:
    phi, m, *_ = truth(s.scene.mdp)
    by = solved(covariance(s), noise(s, s.after.V) - lam(s.scene) * s.after.V @ m.T)
    return lemmas.error(s, np.einsum("xad,nd->nxa", phi, by))


def noise(s: Seen, V: Array) -> Array:
    """sum_t phi_t (V(y_t) - P V(x_t, a_t))   (n, d)."""
    moves = s.books.moves
    surplus = np.einsum("nxay,ny->nxa", moves - moves.sum(-1, keepdims=True) * s.scene.P, V)
    return np.einsum("nxa,xad->nd", surplus, truth(s.scene.mdp).phi)


def spread(s: Seen) -> Array:
    """(H/2) sqrt(log det Lambda - d log lambda + 2 log(1/delta) + 2 X log 2)   (n,)."""
    grown = growth(covariance(s), lam(s.scene))
    return s.scene.H / 2 * np.sqrt(grown - 2 * np.log(delta_of(s.scene)) + 2 * s.scene.mdp.states * np.log(2))


@claim("L3", "||sum phi_t (V(y_t) - P V)|| <= (H/2) sqrt(log det + 2 log(1/delta) + 2 X log 2), at V_k and a corner",
       "Theorem C.2, all V", kind="P", phase="data")  # fmt: skip
def event(s: Seen) -> tuple[Array, Array]:
    """The event is one for all V: of the corners, one that is drawn, and the one that the counts of a pair point to."""
    moves = s.books.moves.sum((1, 2)) - np.einsum("nxa,xay->ny", s.books.moves.sum(-1), s.scene.P)
    drawn = np.random.default_rng(s.k).integers(0, 2, size=s.scene.mdp.states)
    corners = s.scene.H * (moves > 0), s.scene.H * np.broadcast_to(drawn, s.after.V.shape)
    found = [in_norm(covariance(s), noise(s, V)) for V in (s.after.V, *corners)]
    return np.max(found, axis=0), spread(s)


@claim("L4", "|(P - P_hat) V_k| <= beta_X ||phi||_{Lambda^-1}, whatever the learner's beta", "all V at once", kind="P")
def validity(s: Seen) -> tuple[Array, Array]:
    beta = spread(s) + np.sqrt(lam(s.scene)) * truth(s.scene.mdp).heaviest
    return lemmas.within(s, beta[:, None, None] * widths(s))


def bonus_sum(scene: Scene) -> float:
    found = truth(scene.mdp)
    given = {"feature_bound": found.longest, "regularization": lam(scene)}
    return theory.bonus_sum(scene.H, found.phi.shape[-1], scene.steps, beta_of(scene), **given)


def explicit(scene: Scene) -> float:
    """Infinite where nothing is proven: beta below beta_X, or another eta or pi_0."""
    mdp, T, found, beta = scene.mdp, scene.steps, truth(scene.mdp), beta_of(scene)
    given = {"feature_bound": found.longest, "regularization": lam(scene), "delta": delta_of(scene)}
    d = found.phi.shape[-1]
    least = constants.beta_linear(scene.H, mdp.states, d, T, weight_bound=found.heaviest, **given)
    if beta < least or not of_theorem_4_1(scene):
        return np.inf
    return theory.corrected(scene.H, d, mdp.actions, T, beta, **given).total


claim("L5", "E sum_{t<=T+} CB_t <= beta N, N of Lemma 5.5 for max ||phi|| in place of B H", "Lemma 5.5",
      kind="E")(lemmas.bonus_sum(bonus_sum))  # fmt: skip
claim("L6", "beta >= beta_X: R_T <= 2 beta N + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T",
      "Theorem 4.1", kind="E")(lemmas.regret(explicit))  # fmt: skip
