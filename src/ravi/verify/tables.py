"""Claims of Section 5.1 and its lemmas: counts, and how long they stay uncertain."""

from __future__ import annotations

import numpy as np

from ravi.core import Array
from ravi.theory import constants, tabular
from ravi.verify import lemmas
from ravi.verify.books import Evidence, Seen
from ravi.verify.claim import Registry
from ravi.verify.distance import nil, worst
from ravi.verify.scene import delta_of, papers_beta, papers_bound

registry = Registry("tabular")
claim = registry.claim


claim("T0a", "N_{T_k} = 1 + visits, N'_{T_k} = moves (to y_t) of all t < T_k", "Algorithm 2",
      phase="step")(lemmas.counts)  # fmt: skip
claim("T0b", "P_hat_k V_k = N' V_k / N", "Algorithm 2", phase="backup")(lemmas.estimate)
claim("T0c", "CB_k = beta / sqrt(N_{T_k})", "Equation (8)", phase="backup")(lemmas.bonus)


@claim("T1", "|(P - P_hat_k) V_k| <= 8 H sqrt(X log(X A T / delta)) / sqrt(N)", "Lemma 5.1", kind="P", phase="backup")
def tabular_validity(s: Seen) -> tuple[Array, Array]:
    return worst(np.abs(s.backup.PV - s.backup.PV_hat) / s.backup.width), nil(s) + papers_beta(s.scene)


@claim("T1s", "... <= H (sqrt((X ln 2 + ln(X A T / delta)) / 2) + 1) / sqrt(N)", "Lemma 5.1, sharper", kind="P",
       phase="backup")  # fmt: skip
def tabular_validity_sharp(s: Seen) -> tuple[Array, Array]:
    mdp = s.scene.mdp
    beta = constants.beta_tabular_l1(s.scene.H, mdp.states, mdp.actions, s.scene.steps, delta_of(s.scene))
    return worst(np.abs(s.backup.PV - s.backup.PV_hat) / s.backup.width), nil(s) + beta


@claim("T2", "||p_hat_n - P||_1 <= sqrt(2 (X ln 2 + ln(X A T / delta)) / n)", "Weissman et al.", kind="P")
def l1_event(s: Seen) -> tuple[Array, Array]:
    mdp = s.scene.mdp
    n = (s.data.visits - 1).astype(float)  # (n, X, A)
    p = s.data.moves / np.maximum(n, 1)[..., None]
    off = np.abs(p - mdp.transitions).sum(-1)
    log_term = mdp.states * np.log(2) + np.log(mdp.states * mdp.actions * s.scene.steps / delta_of(s.scene))
    return worst(np.where(n > 0, off - np.sqrt(2 * log_term / np.maximum(n, 1)), -np.inf)), nil(s)


@claim("T3a", "sum over visits j < N_k of 1 / sqrt(N_k) <= 2 sqrt2 sum_{x,a} sqrt(n_end)", "Lemma 5.2, pathwise",
       phase="run")  # fmt: skip
def good_visits(e: Evidence) -> tuple[Array, Array]:
    return e.audit.walked.good, 2 * np.sqrt(2) * np.sqrt(e.audit.walked.total).sum((1, 2))


@claim("T3b", "epochs that more than double a pair's count <= log2(n_end + 1)", "Lemma 5.2, pathwise", phase="run")
def doubling_epochs(e: Evidence) -> tuple[Array, Array]:
    excess = e.audit.walked.doublings - np.log2(e.audit.walked.total + 1)
    return worst(excess), np.zeros(e.n)


@claim("T4", "E sum_{t<=T+} 1 / sqrt(N_{T_k}) <= 2 sqrt2 sqrt(X A (T + gamma H)) + (2 + sqrt2) H X A", "Lemma 5.2",
       kind="E")  # fmt: skip
def lemma_5_2(e: Evidence) -> tuple[Array, Array]:
    mdp = e.scene.mdp
    return e.audit.walked.plain, np.array(tabular.bonus_sum(e.scene.H, mdp.states, mdp.actions, e.run.steps, 1.0))


claim("T5", "R_T <= the explicit tabular bound", "Section 5.1", kind="E")(lemmas.regret(papers_bound))
