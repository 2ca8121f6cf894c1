"""Claims where rewards change: the paper's lemmas with r_k, the table revealed after epoch k, for r.

Lemma 4.3 holds against every fixed policy. It is held, after every number of epochs, against several at once: the best
for as long as each table is in force on average, pi_0, the best of the mean table and of each table by itself; and at
the end, for each seed, against the best for the tables that were revealed to it. What is claimed in expectation is
derived in `ravi.theory.changing_rewards`. The claims of the paper about walks, laws and occupancies are held against
the policies that were played, with the mean table for r; `variants.SHARED` names them.
"""

from __future__ import annotations

import numpy as np

from ravi import validation
from ravi.core import Array, Learner
from ravi.learners.ravi_ucb.changing_rewards import changing, marks
from ravi.mdps.changing_rewards import Changing
from ravi.measures.hindsight import best_fixed
from ravi.planning.occupancies import occupancy, relative_entropy
from ravi.planning.solver import solve
from ravi.theory import Bound
from ravi.theory import changing_rewards as theory
from ravi.verify import expected, lemmas
from ravi.verify import setting as settings
from ravi.verify.chance import Martingale
from ravi.verify.claim import Measured, Registry
from ravi.verify.record import Backups, Played
from ravi.verify.setting import Comparators, RunSetting

MOST_TABLES = 16  # whose best policies are comparators
BEST = 0  # of the comparators: for as long as each table is in force on average

registry = Registry()
claim = registry.claim

# ---- Algorithm 1, with r_k, and Algorithms 2 and 3

claim("R1a", "V_1 = V_0,  pi_1 = pi_0", "Algorithm 1", per="plan")(lemmas.begins)
claim("R1b", "Q_{k+1} = Pi_H[r_k + CB_k + gamma P_hat_k V_k], r_k the table of epoch k's last step, or of epoch k",
      "Discussion", per="step")(lemmas.backup)  # fmt: skip
claim("R1c", "V_{k+1}, pi_{k+1} are the mirror step from pi_k by Q_{k+1}", "Algorithm 1", per="step")(lemmas.mirror)
claim("R1d", "0 <= Q_k <= H,  min_a Q_k <= V_k <= max_a Q_k", "Section 3", per="step")(lemmas.ranges)
claim("R2a", "N and N' are of what was played", "Algorithm 2", about="tabular")(lemmas.counts)
claim("R2b", "Lambda and b are of what was played, with its V_k", "Algorithm 3",
      about="mixture")(lemmas.regression)  # fmt: skip
claim("R2c", "P_hat_k V_k is what Algorithm 2 or 3 says of these data", "Algorithms 2, 3", per="backup",
      about="parts")(lemmas.estimate)  # fmt: skip
claim("R2d", "CB_k is what Equation (8) or (9) says of these data", "Equations (8), (9)", per="backup",
      about="parts")(lemmas.bonus)  # fmt: skip

# ---- the lemmas, with r_k

claim("R3", "gamma |(P - P_hat_k) V_k| <= CB_k", "Equation (2)", kind="P", per="backup")(lemmas.validity)
claim("R4a", "r_k + gamma P V_k <= Q_{k+1}", "Lemma 4.2", per="step", conditional=True)(lemmas.optimistic)
claim("R4b", "Q_{k+1} <= r_k + gamma P V_k + min(2 CB_k, H)", "Lemma 4.2", per="step",
      conditional=True)(lemmas.not_too_optimistic)  # fmt: skip
claim("R4", "both, whether bonuses are valid or not", "Lemma 4.2", kind="P", per="step")(lemmas.lemma_4_2)
claim("R5a", "KL(pi_{k+1} || pi_k)(x) <= eta^2 H^2 / 8", "Hoeffding", per="step")(lemmas.small_steps)
claim("R5b", "<mu_{k+1} - mu_k, Q_{k+1}> - H(pi_{k+1}||pi_k) / eta <= eta kappa(H)", "erratum 12",
      per="step")(lemmas.fenchel_young)  # fmt: skip
claim("R6a", "sum <mu*, r_k> - (1 - gamma) <nu_0, V_k> <= H(pi*||pi_0) / eta + <mu*, E (V_{K+1} - V_0)>, for each pi*",
      "Equation (5)", per="prefix", conditional=True)(lemmas.sum_above)  # fmt: skip
claim("R6b", "sum (1 - gamma) <nu_0, V_k> - <mu_k, r_k> <= <mu_1, E V_1> - <mu_{K+1}, E V_{K+1}> + eta kappa K + "
      "sum <mu_k, min(2 CB_k, H)>", "Equation (7)", per="prefix", conditional=True)(lemmas.sum_below)  # fmt: skip
claim("R6", "sum <mu* - mu_k, r_k> <= sum <mu_k, min(2 CB_k, H)> + H + H(pi*||pi_0) / eta + eta kappa K, for each pi*",
      "Lemma 4.3", per="prefix", conditional=True)(lemmas.lemma_4_3(lemmas.right_side))  # fmt: skip
claim("R6c", "... <= the exact certificate: nothing of Lemma 4.3 bounded", "proof of Lemma 4.3", per="prefix",
      conditional=True)(lemmas.lemma_4_3(lemmas.certificate))  # fmt: skip


@claim("R6d", "Lemma 4.3 at the end, against the best fixed policy for the tables revealed to each seed", "Lemma 4.3",
       per="prefix", conditional=True)  # fmt: skip
def lemma_in_hindsight(s: Backups) -> Measured:
    counts = np.bincount(s.table, minlength=len(s.setting.world.tables)).astype(float)
    c = comparators(s.setting, best_fixed(s.setting.world, counts).policy[None])
    bound = np.full(len(s.V), np.inf)
    bound[-1] = lemmas.right_side(s, c)[-1, 0]
    return lemmas.gaps(s, c)[1:, 0], bound


# ---- in expectation


@claim("R7", "E sum_{t<=T+} <mu* - mu_t, r_t> = H E sum_{k<=K(T)} <mu* - mu_k, r_k>, for each pi*", "Discussion",
       kind="E", equality=True)  # fmt: skip
def last_plays_stand_for_all(s: Played) -> Measured:
    """A martingale by steps. With f = f_t, a step adds f to the left side, and with probability 1 - gamma ends the
    epoch and adds H f to the right side: the difference has the mean 0 and the variance gamma f^2 + (1 - gamma)
    (gamma H f)^2 = gamma H f^2, and its size is at most H, since |f| <= 1."""
    f = s.lost
    last = f[np.cumsum(s.lengths).astype(int) - 1]
    return f.sum(0) - s.H * last.sum(0), 0.0, Martingale(s.gamma * s.H * (f**2).sum(0), s.H / 3)


claim("R8", "E sum_{t<=T+} min(2 CB_t, H) <= S, of counts or of a regression", "Lemmas 5.2, 5.5",
      kind="E")(lemmas.capped_bonus_sum(expected.bonus_sum))  # fmt: skip


@claim("R9a", "E sum_{t<=T+} (<mu* - mu_t, r_t> - min(2 CB_t, H)) <= H (log A / eta + eta kappa E K) + H^2, up to the "
       "first invalid epoch, for the best pi*", "Theorem 4.1", kind="E")  # fmt: skip
def theorem_with_measured_bonuses(s: Played) -> Measured:
    """Nothing is asked of the bonuses: {k < tau} is known when epoch k begins."""
    setting, valid = s.setting, s.sequences[0].valid[s.epoch]
    bound = theory.sharp(s.H, setting.mdp.actions, setting.steps, 0.0, eta=setting.eta)
    rest = bound.optimisation + s.H**2 if setting.plain else np.inf
    return (valid * (s.lost[:, BEST] - s.capped)).sum(), rest


@claim("R9", "max_pi* E sum_{t<=T} <mu* - mu_t, r_t> <= S + H (log A / eta + eta kappa E K) + H^2 + gamma H + delta T",
       "Theorem 4.1", kind="E")  # fmt: skip
def theorem(s: Played) -> Measured:
    """The best pi* is the one for as long as each table is in force on average: no other earns more up to T."""
    return s.lost[: s.T, BEST].sum(), expected.total(regret(s.setting))


def regret(setting: RunSetting) -> Bound | None:
    """The bound with the eta and beta of the run; None where bonuses are not known to be valid."""
    if setting.kind == "generic" or not expected.valid(setting) or not setting.plain:
        return None
    S, eta, delta = expected.bonus_sum(setting), setting.eta, setting.delta
    return theory.sharp(setting.H, setting.mdp.actions, setting.steps, S, delta=delta, eta=eta)


# ---- the setting


def setting_of(learner: Learner, world: Changing, steps: int) -> tuple[Learner, RunSetting]:
    """The learner on this world (made for it already, or for its kernel), and what it is held against."""
    made = changing(learner, world) if learner.side_information.world is None else learner
    for (name, was), now in zip(marks(made.side_information.world).items(), marks(world).values(), strict=True):
        if was != now:
            raise validation.InputError(f"{made.name} was made with {name} {was}, not {now}")
    setting = settings.setting_of(made, world.mdp, steps, solve(world.mdp, tol=1e-12))
    setting = setting._replace(world=world, parts=setting.parts._replace(backups=None))  # those are with one table
    J = len(world.tables)
    turns = [world.expected(steps), np.ones(J), *np.eye(J)[:MOST_TABLES]]
    best = [best_fixed(world, counts).policy for counts in turns]
    return made, setting._replace(against=comparators(setting, np.array([*best, setting.parts.initial_policy])))


def comparators(setting: RunSetting, policies: Array) -> Comparators:
    """`policies` (C, X, A)."""
    found = occupancy(setting.mdp, policies)
    apart = relative_entropy(policies, np.broadcast_to(setting.parts.initial_policy, policies.shape))
    return Comparators(found.nu, np.einsum("cxa,jxa->cj", found.mu, setting.world.tables), (found.nu * apart).sum(-1))
