"""Claims of Section 5.2 and Appendix A: regressions, and how long they stay uncertain."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ravi.core import Array
from ravi.estimators.ridge import parameter
from ravi.planning.evaluation import return_of
from ravi.theory import elliptical, mixture
from ravi.verify import lemmas
from ravi.verify.chance import Martingale
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import growth, in_norm, solved, worst
from ravi.verify.record import Backups, Played, proper
from ravi.verify.setting import RunSetting, papers_beta, papers_bound

registry = Registry("mixture")
claim = registry.claim


claim("M0a", "Lambda_{T_k} = lambda I + sum phi_i phi_i^T, b_{T_k} = sum phi_i V_i(y_i), over t < T_k",
      "Algorithm 3")(lemmas.regression)  # fmt: skip
claim("M0b", "CB_k = beta ||phi_k||_{Lambda^-1}", "Equation (9)", per="backup")(lemmas.bonus)


@claim("M1a", "P = <theta, psi>, ||theta|| <= B", "Assumption 5.3", per="once")
def kernel_is_linear(setting: RunSetting) -> Measured:
    mdp = setting.mdp
    psi: Any = mdp.features
    wrong = np.abs(psi @ setting.theta - mdp.transitions).max()
    return np.array([wrong, np.linalg.norm(setting.theta) - setting.B]), 0.0


@claim("M1b", "||phi_V|| <= B H for V in [0, H]^X", "Assumption 5.3", per="backup")
def features_are_bounded(s: Backups) -> Measured:
    corners = np.array([corner(int(k), s.V.shape[1]) for k in s.k]) * s.H
    return worst(*(np.linalg.norm(phi, axis=-1) for phi in (s.phi, s.setting.phi(corners)))), s.setting.B * s.H


@lru_cache(maxsize=2**15)
def corner(k: int, X: int) -> Array:
    """One of [0, 1]^X that is drawn for epoch k."""
    return np.random.default_rng(k).integers(0, 2, size=X)


@claim("M2", "P_hat_k V_k = <phi_k, theta_hat_k>,  P V_k = <phi_k, theta>", "Appendix A.2", per="backup")
def expectations_are_linear(s: Backups) -> Measured:
    estimate = np.einsum("nxad,nd->nxa", s.phi, solved(s.data.covariance, s.data.response))
    return worst(np.abs(estimate - s.PV_hat), np.abs(s.phi @ s.theta - s.PV)), 0.0


@claim("M3", "P_hat_k V_k - P V_k = <phi_k, Lambda^-1 (sum phi_i (V_i(y_i) - P V_i) - lambda theta)>", "Appendix A.2",
       per="backup")  # fmt: skip
def error_identity(s: Backups) -> Measured:
    by = solved(s.data.covariance, s.books.noise - s.lam * s.theta)
    return lemmas.error(s, np.einsum("nxad,nd->nxa", s.phi, by))


@claim("M4", "||theta_hat_k - theta||_Lambda <= xi_k + sqrt(lambda) B", "Appendix A.2", per="backup")
def ellipsoid(s: Backups) -> Measured:
    off = parameter(s.data) - s.theta
    norm = np.sqrt(np.einsum("nd,nde,ne->n", off, s.data.covariance, off))
    xi = in_norm(s.data.covariance, s.books.noise)  # ||sum phi_i (V_i(y_i) - P V_i)||
    return norm, xi + np.sqrt(s.lam) * s.setting.B


@claim("M5", "xi_k <= H sqrt(2 log(det(Lambda)^(1/2) lambda^(-d/2) / delta))", "Theorem C.2", kind="P", per="backup")
def self_normalised(s: Backups) -> Measured:
    return lemmas.self_normalised(s.setting, s.data.covariance, s.books.noise)


@claim("M6", "log det Lambda_{T_k} <= d log(lambda + (T_k - 1) B^2 H^2 / d)", "Appendix A.2", per="backup")
def determinant(s: Backups) -> Measured:
    d, B = s.setting.dimension, s.setting.B
    steps = s.played.starts[s.learned] - 1
    return np.linalg.slogdet(s.data.covariance)[1], d * np.log(s.lam + steps * B**2 * s.H**2 / d)


@claim("M7", "|(P - P_hat_k) V_k| <= beta ||phi_k||_{Lambda^-1}, beta of Equation (10)", "Lemma 5.4", kind="P",
       per="backup")  # fmt: skip
def mixture_validity(s: Backups) -> Measured:
    return lemmas.within(s, papers_beta(s.setting) * s.width)


def grown(s: Played, bad_only: bool = False) -> float:
    """log det(lambda I + sum phi phi^T) - d log lambda, over all steps t <= T+, or over those of norm >= 1."""
    weights = s.visits * (s.width >= 1) if bad_only else s.visits
    added = np.einsum("nxa,nxad,nxae->de", weights, s.phi, s.phi)
    return float(growth(s.lam * np.eye(len(added)) + added, s.lam))


def cap(s: Played) -> float:
    given = {"bound": s.setting.B, "regularization": s.lam}
    return elliptical.log_determinant(s.H, s.setting.dimension, float(s.T + s.padding), **given)


@claim("M8a", "sum_k (1 / L_k) sum_t log(1 + L_k ||phi||^2) <= log det Lambda_{K+1} - d log lambda", "Lemma A.2",
       per="run")  # fmt: skip
def potential(s: Played) -> Measured:
    L = s.lengths[s.epoch]
    return (np.log1p(L * s.along(s.width) ** 2) / L).sum(), grown(s)


@claim("M8b", "... <= d log(1 + B^2 H^2 T+ / (lambda d))", "Lemma A.2", per="run")
def potential_is_bounded(s: Played) -> Measured:
    return grown(s), cap(s)


def bad_steps(s: Played) -> Array:
    """Whether ||phi|| >= 1   (T+,)."""
    return s.along(s.width) >= 1


@claim("M9", "#{k: some ||phi|| >= 1} <= (log det G - d log lambda) / log 2 <= (d / log 2) log(...)", "Lemma A.3",
       per="run")  # fmt: skip
def bad_epochs(s: Played) -> Measured:
    return len(np.unique(s.epoch[bad_steps(s)])), min(grown(s, bad_only=True), cap(s)) / np.log(2)


@claim("M10", "min(x, n) <= (n / log(1 + n)) log(1 + x)", "Appendix A.4", per="once")
def concavity(setting: RunSetting) -> Measured:
    n = np.arange(1.0, 200.0)[:, None]
    x = np.concatenate([np.linspace(0, 5, 400), np.geomspace(5, 1e6, 400)])
    return (np.minimum(x, n) - n / np.log1p(n) * np.log1p(x)).max(1), 0.0


def largest_factor(s: Played) -> float:
    """max_k C_k, C = L / log(1 + L)."""
    longest = s.lengths.max()
    return float(longest / np.log1p(longest))


@claim("M11", "sum_t min(1, ||phi||^2) <= max_k C_k (log det Lambda_{K+1} - d log lambda)", "Lemma 5.5", per="run")
def clipped_norms(s: Played) -> Measured:
    return np.minimum(1, s.along(s.width) ** 2).sum(), largest_factor(s) * grown(s)


@claim("M12", "E max_k C_k <= f((2 + log T) H),  f(x) = x / log(1 + x)   (printed: (4 + 2 log T) H)", "Lemma A.4",
       kind="E", about="any")  # fmt: skip
def longest_epoch(s: Played) -> Measured:
    return largest_factor(s), elliptical.largest_factor_sharp(s.H, s.T)


@claim("M13", "from the first bad step of an epoch on, H steps are left in the mean", "Lemma 5.5, repaired", kind="E",
       equality=True)  # fmt: skip
def memorylessness(s: Played) -> Measured:
    first = np.flatnonzero(bad_steps(s))
    epochs, index = np.unique(s.epoch[first], return_index=True)
    left = np.cumsum(s.lengths)[epochs] - first[index]
    return (left - s.H).sum(), 0.0, Martingale((s.H - 1) * s.H * len(epochs), s.H)


@claim("M14", "E sum_{t<=T+} CB_t <= C_1(T) + sqrt(T) C_2(T), corrected", "Lemma 5.5", kind="E")
@lemmas.bonus_sum
def lemma_5_5(setting: RunSetting) -> float:
    if setting.beta > papers_beta(setting) * (1 + 1e-9):  # smaller bonuses have a smaller sum
        return np.inf
    given = {"bound": setting.B, "regularization": setting.lam, "delta": setting.delta}
    return mixture.bonus_sum_corrected(setting.H, setting.dimension, setting.steps, **given)


claim("M15", "R_T <= the explicit linear-mixture bound, corrected", "Theorem 5.6",
      kind="E")(lemmas.regret(papers_bound))  # fmt: skip


@claim("M16", "E gap(pi_I) <= bound(T) / T, I uniform in time", "Corollary 5.7", kind="E", about="any")
def corollary_5_7(s: Played) -> Measured:
    gap = s.setting.solution.optimum - return_of(s.mdp, proper(s.output_policy[None])[0][0])
    return gap, min(papers_bound(s.setting) / s.T, 1.0)
