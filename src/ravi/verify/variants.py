"""Claims of variants with several backups an epoch (RAVI-UCB+): the paper's lemmas for every one of them.

Backup i leads from V_i to Q_{i+1}, with i = 0 at V_0 and pi_0; a mirror step to V_{i+1} and pi_{i+1}. The claims of the
paper about walks, laws and occupancies are held against the policies that were played, as they are for RAVI-UCB; SHARED
names them.
"""

from __future__ import annotations

import numpy as np

from ravi.core import Array
from ravi.verify import expected, lemmas
from ravi.verify.chance import Martingale
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import worst
from ravi.verify.preliminaries import drawn
from ravi.verify.record import Backups, Played, under

SHARED = (
    "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "S5", "S6a", "S6b", "S7", "S9a", "S9b", "S9c", "S10", "A2", "A16",
    "A17", "A19", "M12", "T2",
)  # fmt: skip

registry = Registry()
claim = registry.claim

# ---- the backups

claim("V1a", "V_1 = V_0, pi_1 = pi_0, where Q_1 = E V_0", "Algorithm 1", per="plan")(lemmas.begins)
claim("V1b", "Q_{i+1} = Pi_H[r + CB_i + gamma P_hat V_i], for each of the M", "RAVI-UCB+",
      per="backup")(lemmas.backup)  # fmt: skip
claim("V1c", "V_{i+1}, pi_{i+1} are the mirror step from pi_i by Q_{i+1}", "Algorithm 1", per="step")(lemmas.mirror)
claim("V1d", "0 <= Q_i <= H,  min_a Q_i <= V_i <= max_a Q_i", "Section 3", per="step")(lemmas.ranges)
claim("V2a", "N and N' are of what was played", "Algorithm 2", about="tabular")(lemmas.counts)
claim("V2b", "Lambda and b are of what was played, with the V_m that was played", "RAVI-UCB+",
      about="mixture")(lemmas.regression)  # fmt: skip
claim("V2c", "P_hat V_i is what the parts say of these data", "RAVI-UCB+", per="backup",
      about="parts")(lemmas.estimate)  # fmt: skip
claim("V2d", "CB_i is what the parts say of these data", "RAVI-UCB+", per="backup", about="parts")(lemmas.bonus)


@claim("V2e", "CB_i <= its envelope when the epoch of pi_i began", "RAVI-UCB+", per="backup", about="parts")
def enveloped(s: Backups) -> Measured:
    return worst(s.CB - expected.envelope(s.setting, s.older, s.V)), 0.0


# ---- the lemmas, for every backup

claim("V3", "gamma |(P - P_hat) V_i| <= CB_i, for every backup", "Equation (2)", kind="P",
      per="backup")(lemmas.validity)  # fmt: skip
claim("V4a", "r + gamma P V_i <= Q_{i+1}", "Lemma 4.2", per="backup", conditional=True)(lemmas.optimistic)
claim("V4b", "Q_{i+1} <= r + gamma P V_i + min(2 CB_i, H)", "Lemma 4.2", per="backup",
      conditional=True)(lemmas.not_too_optimistic)  # fmt: skip
claim("V4", "both, whether bonuses are valid or not", "Lemma 4.2", kind="P", per="backup")(lemmas.lemma_4_2)
claim("V5a", "KL(pi_{i+1} || pi_i)(x) <= eta^2 H^2 / 8", "Hoeffding", per="step")(lemmas.small_steps)
claim("V5b", "<mu_{i+1} - mu_i, Q_{i+1}> - H(pi_{i+1}||pi_i) / eta <= eta kappa(H)", "erratum 12",
      per="step")(lemmas.fenchel_young)  # fmt: skip
claim("V6a", "sum Delta*_i <= H(pi*||pi_0) / eta + <mu*, E (V_{i+1} - V_0)>", "Equation (5)", per="prefix",
      conditional=True)(lemmas.sum_above)  # fmt: skip
claim("V6b", "sum Delta_i <= <mu_0, E V_0> - <mu_{i+1}, E V_{i+1}> + eta kappa (i + 1) + sum <mu_i, min(2 CB_i, H)>",
      "Equation (7)", per="prefix", conditional=True)(lemmas.sum_below)  # fmt: skip
claim("V6",
      "sum gap_i <= sum <mu_i, min(2 CB_i, H)> + H + H(pi*||pi_0) / eta + eta kappa (i + 1), over all M K backups",
      "Lemma 4.3", per="prefix", conditional=True)(lemmas.lemma_4_3(lemmas.right_side))  # fmt: skip
claim("V6c", "sum gap_i <= the exact certificate: nothing of Lemma 4.3 bounded", "proof of Lemma 4.3", per="prefix",
      conditional=True)(lemmas.lemma_4_3(lemmas.certificate))  # fmt: skip


# ---- what is played


@claim("V7a", "the plan ends where its M backups lead", "RAVI-UCB+", per="plan")
def planned(s: Backups) -> Measured:
    state = s.played.states
    ends = (state.V_last, s.plans.V[:, -1]), (state.Q, s.plans.Q), (state.last_policy, s.plans.policy[:, -1])
    return worst(*(np.abs(one[s.epochs] - other) for one, other in ends)), 0.0


@claim("V7b", "pi_m is played, m drawn by number 4 of step T_k, and V_m goes into ADD", "RAVI-UCB+", per="plan")
def played(s: Backups) -> Measured:
    of_policy, of_V = off(s)
    rows = np.arange(len(of_V)), s.plans.chosen
    return np.maximum(of_policy[rows], of_V[rows]), 0.0


def off(s: Backups) -> tuple[Array, Array]:
    """How far what is played is from each of the M   (epochs, M), twice."""
    state, plans = s.played.states, s.plans
    of_policy = np.abs(plans.policy - state.policy[s.epochs, None]).max((2, 3))
    return of_policy, np.abs(plans.V - state.V[s.epochs, None]).max(2)


def nearest(s: Backups) -> Array:
    """Which of the M is played: the one that was drawn, if none is nearer   (epochs,)."""
    apart, rows = np.add(*off(s)), np.arange(len(s.plans.chosen))
    return np.where(apart[rows, s.plans.chosen] <= apart.min(1), s.plans.chosen, apart.argmin(1))


@claim("V7c", "m is uniform: epochs of each of the M less their mean", "RAVI-UCB+", kind="E", equality=True)
def uniformly(s: Played) -> Measured:
    M, K = s.setting.parts.inner, s.K
    times = np.bincount(np.concatenate([nearest(one) for one in s.sequences]), minlength=M)
    if s.setting.parts.pick != "uniform":
        return times, np.inf, Martingale(0.0, 1.0)
    return drawn(times - K / M, K / M * (1 - 1 / M) + 0 * times)


@claim("V7d", "E sum_k gap(pi_m) = E sum_k (1/M) sum_j gap(pi_j)", "Discussion", kind="E", equality=True)
def on_average(s: Played) -> Measured:
    lead = variance = 0.0
    for one in s.sequences:
        K, M = one.plans.V.shape[:2]
        made = one.iterates.mu[one.setting.parts.fresh :][: K * M]  # V_0 is not planned
        gaps = -under(made, s.mdp.rewards).reshape(K, M)
        lead += (gaps[np.arange(K), nearest(one)] - gaps.mean(1)).sum()
        variance += gaps.var(1).sum()
    return lead, 0.0 if s.setting.parts.pick == "uniform" else np.inf, Martingale(variance, 1 / 3)


# ---- the bounds

claim("V8", "E sum_{t<=T+} min(2 CB_t, H) <= S, of counts or of a regression", "Lemmas 5.2, 5.5",
      kind="E")(lemmas.capped_bonus_sum(expected.bonus_sum))  # fmt: skip
claim("V9", "R_T <= S + H (log A / (M eta) + eta kappa E K) + H^2 / M + delta T, + H / M where fresh", "Theorem 4.1",
      kind="E")(lemmas.regret(expected.explicit))  # fmt: skip
claim("V9s", "R_T <= S + max(S, s) + s + ..., s = H sqrt(kappa log A E K / M), where eta is balanced", "Theorem 4.1",
      kind="E")(lemmas.regret(expected.doubled))  # fmt: skip
