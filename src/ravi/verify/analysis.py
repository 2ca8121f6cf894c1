"""Claims of Section 4: optimism, the cost of small steps, and how both add up (with Lemma A.1 and Lemma C.1)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ravi.core import Array
from ravi.planning.bellman import expect
from ravi.planning.occupancies import divergence
from ravi.theory import Bound, constants, generic
from ravi.verify import lemmas
from ravi.verify.chance import Martingale
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import worst
from ravi.verify.record import Backups, Played, under, values
from ravi.verify.setting import RunSetting, of_theorem_4_1

registry = Registry()
claim = registry.claim


def above(s: Backups) -> Array:
    """Delta*_k = rho* - (1 - gamma) <nu_0, V_k>."""
    return s.setting.solution.optimum - (1 - s.gamma) * s.V @ s.mdp.initial


claim("A1a", "r + gamma P V_k <= Q_{k+1}", "Lemma 4.2", per="backup", conditional=True)(lemmas.optimistic)
claim("A1b", "Q_{k+1} <= r + gamma P V_k + min(2 CB_k, H)", "Lemma 4.2", per="backup",
      conditional=True)(lemmas.not_too_optimistic)  # fmt: skip


@claim("A1", "r + gamma P V_k <= Q_{k+1} <= r + 2 CB_k + gamma P V_k, whether bonuses are valid or not", "Lemma 4.2",
       kind="P", per="backup")  # fmt: skip
def lemma_4_2(s: Backups) -> Measured:
    return worst(s.exact - s.Q, s.Q - s.exact - 2 * s.CB), 0.0


@claim("A2", "1 + gamma H = H", "Equation (3)", per="once")
def truncation(setting: RunSetting) -> Measured:
    return abs(1 + setting.gamma * setting.H - setting.H), 0.0


@claim("A3", "Delta*_k = <mu*, r + gamma P V_k - E V_k>", "Equation (4)", per="backup")
def above_is_a_residual(s: Backups) -> Measured:
    return np.abs(above(s) - under(s.setting.mu_star, s.exact - s.V[..., None])), 0.0


@claim("A4", "Delta*_k <= <mu*, Q_{k+1} - E V_k>", "after (4)", per="backup", conditional=True)
def above_is_small(s: Backups) -> Measured:
    return above(s), under(s.setting.mu_star, s.Q - s.V[..., None])


claim("A5", "sum Delta*_k <= H(pi*||pi_0) / eta + <mu*, E (V_{K+1} - V_1)>", "Equation (5)", per="prefix",
      conditional=True)(lemmas.sum_above)  # fmt: skip


def below(s: Backups) -> Array:
    """Delta_k = (1 - gamma) <nu_0, V_k> - rho(pi_k)."""
    return (1 - s.gamma) * s.V @ s.mdp.initial - under(s.at.mu, s.r)


@claim("A6", "Delta_k <= <mu^pi_k, E V_k - Q_{k+1}> + 2 <mu^pi_k, CB_k>", "before (6)", per="backup",
       conditional=True)  # fmt: skip
def below_is_small(s: Backups) -> Measured:
    return below(s), under(s.at.mu, s.V[..., None] - s.Q + 2 * s.CB)


@claim("A7", "<mu^pi_{k+1}, Q_{k+1}> = <nu^pi_{k+1}, V_{k+1} + KL(pi_{k+1}||pi_k) / eta>", "before (6)", per="step")
def regularised_value(s: Backups) -> Measured:
    e = s.after
    right = (e.nu * (e.V + divergence(e.policy, s.at.policy) / s.eta)).sum(-1)
    return np.abs(under(e.mu, s.Q) - right), 0.0


@claim("A8", "Delta_k <= <mu_k, E V_k> - <mu_{k+1}, E V_{k+1}> + <mu_{k+1} - mu_k, Q_{k+1}> - H / eta + 2 <mu_k, CB_k>",
       "Equation (6)", per="step", conditional=True)  # fmt: skip
def below_telescopes(s: Backups) -> Measured:
    return below(s), s.ends[:-1] - s.ends[1:] + s.moved + 2 * under(s.at.mu, s.CB)


def apart(s: Backups) -> Array:
    """KL(mu^{pi_{k+1}} || mu^{pi_k})."""
    n = len(s.V)
    return divergence(s.after.mu.reshape(n, -1), s.at.mu.reshape(n, -1))


@claim("A9", "<mu_{k+1} - mu_k, Q_{k+1}> <= (H / 2) sqrt(2 KL(mu_{k+1}||mu_k))   (printed: H sqrt)", "Pinsker step",
       per="step")  # fmt: skip
def pinsker(s: Backups) -> Measured:
    return under(s.after.mu - s.at.mu, s.Q), s.H / 2 * np.sqrt(2 * apart(s))


@claim("A10", "KL(mu^pi || mu^pi') <= H H(pi || pi')", "Lemma A.1", per="step")
def occupancies_follow_policies(s: Backups) -> Measured:
    return apart(s), s.H * s.entropy


@claim("A11", "<mu_{k+1} - mu_k, Q_{k+1}> - H(pi_{k+1}||pi_k) / eta <= eta H^3 / 2", "Fenchel-Young", per="step")
def fenchel_young(s: Backups) -> Measured:
    return s.moved, s.eta * s.H**3 / 2


claim("A11s", "... <= eta kappa(H),  kappa = H^(5/2) / 4 - H^2 / 8", "erratum 12", per="step")(lemmas.fenchel_young)
claim("A12a", "KL(pi_{k+1} || pi_k)(x) <= eta^2 H^2 / 8", "Hoeffding", per="step")(lemmas.small_steps)


@claim("A12b", "||pi_{k+1} - pi_k||_1 <= eta H / 2", "Hoeffding", per="step")
def small_moves(s: Backups) -> Measured:
    return worst(np.abs(s.after.policy - s.at.policy).sum(-1)), s.eta * s.H / 2


@claim("A13", "sum Delta_k <= <mu_1, E V_1> - <mu_{K+1}, E V_{K+1}> + eta H^3 K / 2 + 2 sum <mu_k, CB_k>",
       "Equation (7)", per="prefix", conditional=True)  # fmt: skip
def sum_below(s: Backups) -> Measured:
    return lemmas.below(s, s.H**3 / 2, 2 * s.bonuses)


@claim("A13s", "... with eta kappa(H) K in place of eta H^3 K / 2", "erratum 12", per="prefix", conditional=True)
def sum_below_sharp(s: Backups) -> Measured:
    return lemmas.below(s, constants.kappa(s.H), 2 * s.bonuses)


@claim("A14", "<mu* - mu_{K+1}, E V_{K+1}> <= H   (printed: 2 H)", "Lemma 4.3", per="step")
def boundary(s: Backups) -> Measured:
    return s.after.V @ s.setting.mu_star.sum(-1) - s.ends[1:], s.H


def printed(s: Backups) -> Array:
    """The right side of Lemma 4.3 as it is printed   (rows + 1, 1)."""
    return lemmas.bounded(s, 2 * s.bonuses + 2 * s.H, s.H**3 / 2)


def certificate(s: Backups) -> Array:
    """The right side of Lemma 4.3, with 2 CB, before anything is bounded   (rows + 1, 1)."""
    return lemmas.certificate(s, 2 * s.bonuses)


claim("A15", "sum gap_k <= 2 sum <mu_k, CB_k> + 2 H + H(pi*||pi_0) / eta + eta H^3 K / 2", "Lemma 4.3", per="prefix",
      conditional=True)(lemmas.lemma_4_3(printed))  # fmt: skip
claim("A15c", "sum gap_k <= the exact certificate: nothing of Lemma 4.3 bounded", "proof of Lemma 4.3", per="prefix",
      conditional=True)(lemmas.lemma_4_3(certificate))  # fmt: skip


@claim("A16", "H(pi* || pi_0) <= log A for uniform pi_0", "Section 4.3", per="once")
def entropy_of_the_uniform(setting: RunSetting) -> Measured:
    """pi* is optimal for r, not for tables that change."""
    return setting.entropy, np.log(setting.mdp.actions) if setting.uniform else np.inf


def spread(s: Played, f: Array) -> Array:
    """The variance of sum_{t in epoch k} f_k(x_t, a_t), whose mean is H <mu^pi_k, f_k>   (K,)."""
    V = values(s.setting, s.at.policy, (s.at.policy * f).sum(-1))
    Q = f + s.gamma * expect(s.mdp, V)
    return s.H * under(s.at.mu, 2 * f * Q - f**2) - (s.H * under(s.at.mu, f)) ** 2


@claim("A17", "E[sum_{t in epoch k} CB_k(x_t, a_t)] = H <mu^pi_k, CB_k>", "Lemma 4.4", kind="E", equality=True)
def bonuses_of_an_epoch(s: Played) -> Measured:
    drift = s.along(s.CB).sum() - s.H * under(s.at.mu, s.CB).sum()
    return drift, 0.0, Martingale(spread(s, s.CB).sum(), s.H * s.CB.max())


@claim("A18", "E sum_{t<=T} <mu^pi_t, CB_t> <= E sum_{t<=T+} CB_t(x_t, a_t)", "Lemma 4.4", kind="E")
def lemma_4_4(s: Played) -> Measured:
    """The sum over whole epochs is a martingale; steps beyond T only take from it."""
    mean = under(s.at.mu, s.CB)
    chance = Martingale(spread(s, s.CB - mean[:, None, None]).sum(), s.H * s.CB.max(), upper=True)
    return (s.in_time * mean).sum() - s.along(s.CB).sum(), 0.0, chance


@claim("A19", "E sum_{t<=T+} gap_t = H E sum_{k<=K(T)} gap_k", "Section 4.3", kind="E", equality=True)
def wald(s: Played) -> Measured:
    """gap_k (L_k - H), L_k geometric: variance gap_k^2 gamma H^2."""
    return (s.gap * (s.lengths - s.H)).sum(), 0.0, Martingale((s.H - 1) * s.H * (s.gap**2).sum(), s.H)


def theorem_4_1(s: Played, rest: Bound) -> Measured:
    """Regret less 2 sum_{t<=T+} CB_t, seed by seed, against the rest of the bound: for the theorem's eta and pi_0."""
    return s.regret - 2 * s.along(s.CB).sum(), rest.total if of_theorem_4_1(s.setting) else np.inf


@claim("A20", "R_T <= 2 E sum_{t<=T+} CB_t + sqrt(2 H^4 T log A) + 2 H^2", "Theorem 4.1", kind="E")
def theorem_printed(s: Played) -> Measured:
    return theorem_4_1(s, generic.printed(s.H, s.mdp.actions, s.T, 0.0))


@claim("A20c", "... with E K = (1 - gamma) T + gamma, and + delta T for failures", "Theorem 4.1, corrected", kind="E")
def theorem_corrected(s: Played) -> Measured:
    setting = s.setting
    return theorem_4_1(s, generic.corrected(s.H, setting.mdp.actions, setting.steps, 0.0, delta=setting.delta))


# ---- Lemma C.1


@claim("C1", "V_k and pi_k are the maximum and the maximiser of <p, Q_k> - KL(p || pi_{k-1}) / eta", "Lemma C.1",
       per="step")  # fmt: skip
def variational(s: Backups) -> Measured:
    Q, V, eta = s.Q, s.after.V, s.eta

    def value(q: Array) -> Array:
        return (q * Q).sum(-1) - divergence(q, s.at.policy) / eta

    others = np.array([policies(int(k), *Q.shape[1:]) for k in s.k_after])
    exceeded = np.max([worst(value(others[:, i]) - V) for i in range(3)], axis=0)
    return np.maximum(worst(np.abs(value(s.after.policy) - V)), exceeded), 0.0


@lru_cache(maxsize=2**15)
def policies(k: int, X: int, A: int) -> Array:
    """Three that are drawn for epoch k   (3, X, A)."""
    return np.random.default_rng(k).dirichlet(np.ones(A), size=(3, X))


@claim("C2", "sum_{i<=k} V_i = (1 / eta) log sum_a pi_0 exp(eta sum_{i<=k} Q_i)", "Lemma C.1", per="prefix")
def telescoping(s: Backups) -> Measured:
    """Q_1 = E V_1 is the first."""
    eta, first = s.eta, s.iterates.V[:1]
    tilted = np.log(s.setting.parts.initial_policy) + eta * (first[..., None] + np.cumsum(s.Q, axis=0))
    top = tilted.max(-1)
    total = (top + np.log(np.exp(tilted - top[..., None]).sum(-1))) / eta
    return worst(np.abs(total - first - np.cumsum(s.after.V, axis=0))), 0.0
