"""Claims of Section 5.1 and its lemmas: counts, and how long they stay uncertain."""

from __future__ import annotations

import numpy as np

from ravi.theory import constants, tabular
from ravi.verify import lemmas
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import worst
from ravi.verify.record import Backups, Played
from ravi.verify.setting import papers_beta, papers_bound

registry = Registry("tabular")
claim = registry.claim


claim("T0a", "N_{T_k} = 1 + visits, N'_{T_k} = moves (to y_t) of all t < T_k", "Algorithm 2")(lemmas.counts)
claim("T0b", "P_hat_k V_k = N' V_k / N", "Algorithm 2", per="backup")(lemmas.estimate)
claim("T0c", "CB_k = beta / sqrt(N_{T_k})", "Equation (8)", per="backup")(lemmas.bonus)


def error_in_widths(s: Backups, beta: float) -> Measured:
    """|(P - P_hat_k) V_k| sqrt(N) <= beta."""
    return worst(np.abs(s.PV - s.PV_hat) / s.width), beta


@claim("T1", "|(P - P_hat_k) V_k| <= 8 H sqrt(X log(X A T / delta)) / sqrt(N)", "Lemma 5.1", kind="P", per="backup")
def tabular_validity(s: Backups) -> Measured:
    return error_in_widths(s, papers_beta(s.setting))


@claim("T1s", "... <= H (sqrt((X ln 2 + ln(X A T / delta)) / 2) + 1) / sqrt(N)", "Lemma 5.1, sharper", kind="P",
       per="backup")  # fmt: skip
def tabular_validity_sharp(s: Backups) -> Measured:
    mdp, setting = s.mdp, s.setting
    return error_in_widths(s, constants.beta_tabular_l1(s.H, mdp.states, mdp.actions, setting.steps, setting.delta))


@claim("T2", "||p_hat_n - P||_1 <= sqrt(2 (X ln 2 + ln(X A T / delta)) / n)", "Weissman et al.", kind="P")
def l1_event(s: Played) -> Measured:
    mdp, n = s.mdp, (s.data.visits - 1).astype(float)  # (K, X, A)
    off = np.abs(s.data.moves / np.maximum(n, 1)[..., None] - mdp.transitions).sum(-1)
    log_term = mdp.states * np.log(2) + np.log(mdp.states * mdp.actions * s.T / s.setting.delta)
    return worst(np.where(n > 0, off - np.sqrt(2 * log_term / np.maximum(n, 1)), -np.inf)), 0.0


@claim("T3a", "sum over visits j < N_k of 1 / sqrt(N_k) <= 2 sqrt2 sum_{x,a} sqrt(n_end)", "Lemma 5.2, pathwise",
       per="run")  # fmt: skip
def good_visits(s: Played) -> Measured:
    N = np.rint(s.width**-2.0)
    return (np.minimum(s.visits, N) * s.width).sum(), 2 * np.sqrt(2) * np.sqrt(s.total).sum()


@claim("T3b", "epochs that more than double a pair's count <= log2(n_end + 1)", "Lemma 5.2, pathwise", per="run")
def doubling_epochs(s: Played) -> Measured:
    N = np.rint(s.width**-2.0)
    return ((s.visits > N).sum(0) - np.log2(s.total + 1)).max(), 0.0


@claim("T4", "E sum_{t<=T+} 1 / sqrt(N_{T_k}) <= 2 sqrt2 sqrt(X A (T + gamma H)) + (2 + sqrt2) H X A", "Lemma 5.2",
       kind="E")  # fmt: skip
def lemma_5_2(s: Played) -> Measured:
    mdp = s.mdp
    return s.along(s.width).sum(), tabular.bonus_sum(s.H, mdp.states, mdp.actions, s.T, 1.0)


claim("T5", "R_T <= the explicit tabular bound", "Section 5.1", kind="E")(lemmas.regret(papers_bound))
