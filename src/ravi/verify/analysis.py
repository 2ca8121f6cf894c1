"""Claims of Section 4: optimism, the cost of small steps, and how both add up (with Lemma A.1 and Lemma C.1)."""

from __future__ import annotations

import numpy as np

from ravi.core import Array
from ravi.planning.occupancies import divergence
from ravi.theory import Bound, constants, generic
from ravi.verify import lemmas
from ravi.verify.books import Evidence, Seen, Totals
from ravi.verify.chance import Interval, bernstein
from ravi.verify.claim import Registry
from ravi.verify.distance import nil, worst
from ravi.verify.lemmas import exact, moved
from ravi.verify.scene import Scene, delta_of, of_theorem_4_1, uniform

registry = Registry()
claim = registry.claim


def above(s: Seen) -> Array:
    """Delta*_k = rho* - (1 - gamma) <nu_0, V_k>."""
    mdp = s.scene.mdp
    return s.scene.solution.optimum - (1 - mdp.discount) * s.at.V @ mdp.initial


def under(mu: Array, f: Array) -> Array:
    """<mu, f> for every seed."""
    return (mu * f).sum((-2, -1))


claim("A1a", "r + gamma P V_k <= Q_{k+1}", "Lemma 4.2", phase="backup", conditional=True)(lemmas.optimistic)
claim("A1b", "Q_{k+1} <= r + gamma P V_k + min(2 CB_k, H)", "Lemma 4.2", phase="backup",
      conditional=True)(lemmas.not_too_optimistic)  # fmt: skip


@claim("A1", "r + gamma P V_k <= Q_{k+1} <= r + 2 CB_k + gamma P V_k, whether bonuses are valid or not", "Lemma 4.2",
       kind="P", phase="backup")  # fmt: skip
def lemma_4_2(s: Seen) -> tuple[Array, Array]:
    b = s.backup
    return worst(exact(s) - b.Q, b.Q - exact(s) - 2 * b.CB), nil(s)


@claim("A2", "1 + gamma H = H", "Equation (3)", phase="run")
def truncation(e: Evidence) -> tuple[Array, Array]:
    return np.array([abs(1 + e.scene.mdp.discount * e.scene.H - e.scene.H)]), np.zeros(1)


@claim("A3", "Delta*_k = <mu*, r + gamma P V_k - E V_k>", "Equation (4)", phase="backup")
def above_is_a_residual(s: Seen) -> tuple[Array, Array]:
    return np.abs(above(s) - under(s.scene.mu_star, exact(s) - s.at.V[..., None])), nil(s)


@claim("A4", "Delta*_k <= <mu*, Q_{k+1} - E V_k>", "after (4)", phase="backup", conditional=True)
def above_is_small(s: Seen) -> tuple[Array, Array]:
    return above(s), under(s.scene.mu_star, s.backup.Q - s.at.V[..., None])


claim("A5", "sum Delta*_k <= H(pi*||pi_0) / eta + <mu*, E (V_{K+1} - V_1)>", "Equation (5)", phase="prefix",
      conditional=True)(lemmas.sum_above)  # fmt: skip


def below(s: Seen) -> Array:
    """Delta_k = (1 - gamma) <nu_0, V_k> - rho(pi_k)."""
    return (1 - s.scene.mdp.discount) * s.at.V @ s.scene.mdp.initial - under(s.at.mu, s.backup.r)


@claim("A6", "Delta_k <= <mu^pi_k, E V_k - Q_{k+1}> + 2 <mu^pi_k, CB_k>", "before (6)", phase="backup",
       conditional=True)  # fmt: skip
def below_is_small(s: Seen) -> tuple[Array, Array]:
    return below(s), under(s.at.mu, s.at.V[..., None] - s.backup.Q + 2 * s.backup.CB)


@claim("A7", "<mu^pi_{k+1}, Q_{k+1}> = <nu^pi_{k+1}, V_{k+1} + KL(pi_{k+1}||pi_k) / eta>", "before (6)", phase="step")
def regularised_value(s: Seen) -> tuple[Array, Array]:
    e = s.after
    right = (e.nu * (e.V + divergence(e.policy, s.at.policy) / s.scene.parts.eta)).sum(-1)
    return np.abs(under(e.mu, s.backup.Q) - right), nil(s)


@claim("A8", "Delta_k <= <mu_k, E V_k> - <mu_{k+1}, E V_{k+1}> + <mu_{k+1} - mu_k, Q_{k+1}> - H / eta + 2 <mu_k, CB_k>",
       "Equation (6)", phase="step", conditional=True)  # fmt: skip
def below_telescopes(s: Seen) -> tuple[Array, Array]:
    ends = (s.at.nu * s.at.V).sum(-1) - (s.after.nu * s.after.V).sum(-1)
    return below(s), ends + moved(s) + 2 * under(s.at.mu, s.backup.CB)


def apart(s: Seen) -> Array:
    """KL(mu^{pi_{k+1}} || mu^{pi_k})."""
    n = len(s.at.V)
    return divergence(s.after.mu.reshape(n, -1), s.at.mu.reshape(n, -1))


@claim("A9", "<mu_{k+1} - mu_k, Q_{k+1}> <= (H / 2) sqrt(2 KL(mu_{k+1}||mu_k))   (printed: H sqrt)", "Pinsker step",
       phase="step")  # fmt: skip
def pinsker(s: Seen) -> tuple[Array, Array]:
    return under(s.after.mu - s.at.mu, s.backup.Q), s.scene.H / 2 * np.sqrt(2 * apart(s))


@claim("A10", "KL(mu^pi || mu^pi') <= H H(pi || pi')", "Lemma A.1", phase="step")
def occupancies_follow_policies(s: Seen) -> tuple[Array, Array]:
    entropy = (s.after.nu * divergence(s.after.policy, s.at.policy)).sum(-1)
    return apart(s), s.scene.H * entropy


@claim("A11", "<mu_{k+1} - mu_k, Q_{k+1}> - H(pi_{k+1}||pi_k) / eta <= eta H^3 / 2", "Fenchel-Young", phase="step")
def fenchel_young(s: Seen) -> tuple[Array, Array]:
    return moved(s), nil(s) + s.scene.parts.eta * s.scene.H**3 / 2


claim("A11s", "... <= eta kappa(H),  kappa = H^(5/2) / 4 - H^2 / 8", "erratum 12", phase="step")(lemmas.fenchel_young)
claim("A12a", "KL(pi_{k+1} || pi_k)(x) <= eta^2 H^2 / 8", "Hoeffding", phase="step")(lemmas.small_steps)


@claim("A12b", "||pi_{k+1} - pi_k||_1 <= eta H / 2", "Hoeffding", phase="step")
def small_moves(s: Seen) -> tuple[Array, Array]:
    moves = np.abs(s.after.policy - s.at.policy).sum(-1)
    return worst(moves), nil(s) + s.scene.parts.eta * s.scene.H / 2


@claim("A13", "sum Delta_k <= <mu_1, E V_1> - <mu_{K+1}, E V_{K+1}> + eta H^3 K / 2 + 2 sum <mu_k, CB_k>",
       "Equation (7)", phase="prefix", conditional=True)  # fmt: skip
def sum_below(s: Seen) -> tuple[Array, Array]:
    return lemmas.below(s, s.scene.H**3 / 2, 2 * s.totals.bonuses)


@claim("A13s", "... with eta kappa(H) K in place of eta H^3 K / 2", "erratum 12", phase="prefix", conditional=True)
def sum_below_sharp(s: Seen) -> tuple[Array, Array]:
    return lemmas.below(s, constants.kappa(s.scene.H), 2 * s.totals.bonuses)


@claim("A14", "<mu* - mu_{K+1}, E V_{K+1}> <= H   (printed: 2 H)", "Lemma 4.3", phase="step")
def boundary(s: Seen) -> tuple[Array, Array]:
    return s.after.V @ s.scene.mu_star.sum(-1) - (s.after.nu * s.after.V).sum(-1), nil(s) + s.scene.H


def printed(scene: Scene, s: Totals) -> Array:
    """The right side of Lemma 4.3 as it is printed   (n, 1)."""
    return lemmas.bounded(scene, s, 2 * s.bonuses + 2 * scene.H, scene.H**3 / 2)


def certificate(scene: Scene, s: Totals) -> Array:
    """The right side of Lemma 4.3, with 2 CB, before anything is bounded   (n, 1)."""
    return lemmas.certificate(scene, s, 2 * s.bonuses)


claim("A15", "sum gap_k <= 2 sum <mu_k, CB_k> + 2 H + H(pi*||pi_0) / eta + eta H^3 K / 2", "Lemma 4.3", phase="prefix",
      conditional=True)(lemmas.lemma_4_3(printed))  # fmt: skip
claim("A15c", "sum gap_k <= the exact certificate: nothing of Lemma 4.3 bounded", "proof of Lemma 4.3", phase="prefix",
      conditional=True)(lemmas.lemma_4_3(certificate))  # fmt: skip


@claim("A16", "H(pi* || pi_0) <= log A for uniform pi_0", "Section 4.3", phase="run")
def entropy_of_the_uniform(e: Evidence) -> tuple[Array, Array]:
    return np.array([e.scene.entropy]), np.array([np.log(e.scene.mdp.actions) if uniform(e.scene) else np.inf])


@claim("A17", "E[sum_{t in epoch k} CB_k(x_t, a_t)] = H <mu^pi_k, CB_k>", "Lemma 4.4", kind="E", equality=True)
def bonuses_of_an_epoch(e: Evidence) -> tuple[Array, Array, Interval]:
    w = e.audit.walked
    return w.drift, np.array(0.0), bernstein(w.variance.sum(), e.scene.H * w.largest.max(), e.n)


@claim("A18", "E sum_{t<=T} <mu^pi_t, CB_t> <= E sum_{t<=T+} CB_t(x_t, a_t)", "Lemma 4.4", kind="E")
def lemma_4_4(e: Evidence) -> tuple[Array, Array, Interval]:
    """The sum over whole epochs is a martingale; steps beyond T only take from it."""
    w = e.audit.walked
    law = bernstein(w.spread.sum(), e.scene.H * w.largest.max(), e.n, upper=True)
    return w.under_mu - w.bonus, np.array(0.0), law


@claim("A19", "E sum_{t<=T+} gap_t = H E sum_{k<=K(T)} gap_k", "Section 4.3", kind="E", equality=True)
def wald(e: Evidence) -> tuple[Array, Array, Interval]:
    """gap_k (L_k - H), L_k geometric: variance gap_k^2 gamma H^2."""
    w, H = e.audit.walked, e.scene.H
    law = bernstein((H - 1) * H * w.gap_squares.sum(), H, e.n)
    return w.gap_steps - H * w.gap_epochs, np.array(0.0), law


def theorem_4_1(e: Evidence, rest: Bound) -> tuple[Array, Array]:
    """Regret less 2 sum_{t<=T+} CB_t, seed by seed, against the rest of the bound: for the theorem's eta and pi_0."""
    return e.run.regret - 2 * e.audit.walked.bonus, np.array(rest.total if of_theorem_4_1(e.scene) else np.inf)


@claim("A20", "R_T <= 2 E sum_{t<=T+} CB_t + sqrt(2 H^4 T log A) + 2 H^2", "Theorem 4.1", kind="E")
def theorem_printed(e: Evidence) -> tuple[Array, Array]:
    return theorem_4_1(e, generic.printed(e.scene.H, e.scene.mdp.actions, e.run.steps, 0.0))


@claim("A20c", "... with E K = (1 - gamma) T + gamma, and + delta T for failures", "Theorem 4.1, corrected", kind="E")
def theorem_corrected(e: Evidence) -> tuple[Array, Array]:
    delta = delta_of(e.scene)
    return theorem_4_1(e, generic.corrected(e.scene.H, e.scene.mdp.actions, e.run.steps, 0.0, delta=delta))


# ---- Lemma C.1


@claim("C1", "V_k and pi_k are the maximum and the maximiser of <p, Q_k> - KL(p || pi_{k-1}) / eta", "Lemma C.1",
       phase="step")  # fmt: skip
def variational(s: Seen) -> tuple[Array, Array]:
    Q, V, eta = s.backup.Q, s.after.V, s.scene.parts.eta

    def value(q: Array) -> Array:
        return (q * Q).sum(-1) - divergence(q, s.at.policy) / eta

    others = np.random.default_rng(s.k).dirichlet(np.ones(Q.shape[-1]), size=(3, 1, Q.shape[1]))  # for all seeds
    exceeded = np.max([worst(value(q) - V) for q in others], axis=0)
    return np.maximum(worst(np.abs(value(s.after.policy) - V)), exceeded), nil(s)


@claim("C2", "sum_{i<=k} V_i = (1 / eta) log sum_a pi_0 exp(eta sum_{i<=k} Q_i)", "Lemma C.1", phase="prefix")
def telescoping(s: Seen) -> tuple[Array, Array]:
    eta, pi0 = s.scene.parts.eta, s.scene.parts.initial_policy
    tilted = np.log(pi0) + eta * s.audit.total_Q
    top = tilted.max(-1)
    total = (top + np.log(np.exp(tilted - top[..., None]).sum(-1))) / eta
    return worst(np.abs(total - s.audit.total_V)), nil(s)
