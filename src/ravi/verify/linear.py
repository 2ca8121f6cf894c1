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
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import growth, in_norm, relative, solved
from ravi.verify.record import Estimates, Played
from ravi.verify.regression import corner
from ravi.verify.setting import RunSetting, dense, of_theorem_4_1

registry = Registry("linear")
claim = registry.claim


class Truth(NamedTuple):
    phi: Array  # phi(x, a)                        (X, A, d)
    measures: Array  # m, P = <phi, m>             (d, X)
    longest: float  # b = max ||phi||
    heaviest: float  # W >= ||m V|| for V in [0, H]^X, each coordinate at its own extreme


@lru_cache(maxsize=4)
def truth(mdp: MDP) -> Truth:
    X, A, P = mdp.states, mdp.actions, dense(mdp, mdp.transitions)
    phi = np.eye(X * A).reshape(X, A, X * A) if mdp.pair_features is None else np.array(mdp.pair_features)
    m = np.linalg.lstsq(phi.reshape(X * A, -1), P.reshape(X * A, X), rcond=None)[0]
    weights = np.maximum(np.where(m > 0, m, 0).sum(-1), np.where(m < 0, -m, 0).sum(-1))
    longest = float(np.linalg.norm(phi, axis=-1).max())
    return Truth(phi, m, longest, mdp.horizon * float(np.linalg.norm(weights)))


def covariance(s: Estimates) -> Array:
    """Lambda = lambda I + sum_t phi_t phi_t^T   (rows, d, d)."""
    phi = truth(s.mdp).phi
    return s.lam * np.eye(phi.shape[-1]) + np.einsum("nxa,xad,xae->nde", s.books.visits, phi, phi)


def response(s: Estimates, values: Array) -> Array:
    """sum_t phi_t values_t, of values (rows, X, A, B) at the successors   (rows, d)."""
    return np.einsum("nxaj,nxaj,xad->nd", s.books.moves, values, truth(s.mdp).phi)


def widths(s: Estimates) -> Array:
    """||phi(x, a)||_{Lambda^-1}   (rows, X, A)."""
    phi = truth(s.mdp).phi
    return in_norm(covariance(s), np.broadcast_to(phi, (len(s.V), *phi.shape)))


@claim("L1a", "Lambda = lambda I + sum phi phi^T, M = sum phi e_y^T, over t < T_k", "Discussion")
def data(s: Played) -> Measured:
    e = s.learned
    M = np.einsum("nxay,xad->ndy", dense(s.mdp, e.books.moves), truth(s.mdp).phi)
    return np.maximum(relative(e.data.covariance, covariance(e)), relative(e.data.moves, M)), 0.0


@claim("L1b", "P_hat V_k = <phi, Lambda^-1 M V_k>: every target is that of V_k", "Discussion")
def estimate(s: Played) -> Measured:
    right = response(s, s.V[:, s.mdp.successors])
    return lemmas.estimate(s, np.einsum("xad,nd->nxa", truth(s.mdp).phi, solved(covariance(s), right)))


@claim("L1c", "CB_k = beta ||phi||_{Lambda^-1}, beta = d H sqrt(ln(2 d T / delta))", "Discussion")
def bonus(s: Played) -> Measured:
    d = truth(s.mdp).phi.shape[-1]
    beta = d * s.H * np.sqrt(np.log(2 * d * s.T / s.setting.delta))
    return lemmas.bonus(s, float(s.setting.stated.scale) * beta * widths(s))


@claim("L2", "P_hat V_k - P V_k = <phi, Lambda^-1 (sum phi_t (V_k(y_t) - P V_k) - lambda m V_k)>", "Appendix A.2")
def error_identity(s: Played) -> Measured:
    phi, m, *_ = truth(s.mdp)
    by = solved(covariance(s), noise(s, s.V) - s.lam * s.V @ m.T)
    return lemmas.error(s, np.einsum("xad,nd->nxa", phi, by))


def noise(s: Estimates, V: Array) -> Array:
    """sum_t phi_t (V(y_t) - P V(x_t, a_t))   (rows, d)."""
    mdp = s.mdp
    return response(s, V[:, mdp.successors] - np.einsum("xay,ny->nxa", s.P, V)[..., None])


def spread(s: Estimates) -> Array:
    """(H/2) sqrt(log det Lambda - d log lambda + 2 log(1/delta) + 2 X log 2)   (rows,)."""
    grown = growth(covariance(s), s.lam)
    return s.H / 2 * np.sqrt(grown + 2 * s.setting.log_inverse_delta + 2 * s.mdp.states * np.log(2))


@claim("L3", "||sum phi_t (V(y_t) - P V)|| <= (H/2) sqrt(log det + 2 log(1/delta) + 2 X log 2), at V_k and a corner",
       "Theorem C.2, all V", kind="P")  # fmt: skip
def event(s: Played) -> Measured:
    """The event is one for all V: of the corners, one that is drawn, and the one that the counts of a pair point to."""
    e, X, P = s.learned, s.mdp.states, s.P
    arrived = np.array([np.bincount(s.y[: start - 1], minlength=X) for start in [*s.starts, s.T + 1]])
    moves = arrived - np.einsum("nxa,xay->ny", e.books.visits, P)
    drawn = np.array([corner(k, X) for k in [*range(1, s.K + 1), 0]])
    found = [in_norm(covariance(e), noise(e, V)) for V in (e.V, s.H * (moves > 0), s.H * drawn)]
    return np.max(found, axis=0), spread(e)


@claim("L4", "|(P - P_hat) V_k| <= beta_X ||phi||_{Lambda^-1}, whatever the learner's beta", "all V at once", kind="P")
def validity(s: Played) -> Measured:
    beta = spread(s) + np.sqrt(s.lam) * truth(s.mdp).heaviest
    return lemmas.within(s, beta[:, None, None] * widths(s))


def bonus_sum(setting: RunSetting) -> float:
    found = truth(setting.mdp)
    given = {"feature_bound": found.longest, "regularization": setting.lam}
    return theory.bonus_sum(setting.H, found.phi.shape[-1], setting.steps, setting.beta, **given)


def explicit(setting: RunSetting) -> float:
    """Infinite where nothing is proven: beta below beta_X, or another eta or pi_0."""
    mdp, T, found, beta = setting.mdp, setting.steps, truth(setting.mdp), setting.beta
    given = {"feature_bound": found.longest, "regularization": setting.lam, "delta": setting.delta}
    d = found.phi.shape[-1]
    least = constants.beta_linear(setting.H, mdp.states, d, T, weight_bound=found.heaviest, **given)
    if beta < least or not of_theorem_4_1(setting):
        return np.inf
    return theory.corrected(setting.H, d, mdp.actions, T, beta, **given).total


claim("L5", "E sum_{t<=T+} CB_t <= beta N, N of Lemma 5.5 for max ||phi|| in place of B H", "Lemma 5.5",
      kind="E")(lemmas.bonus_sum(bonus_sum))  # fmt: skip
claim("L6", "beta >= beta_X: R_T <= 2 beta N + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T",
      "Theorem 4.1", kind="E")(lemmas.regret(explicit))  # fmt: skip
