"""Claims of Sections 2 and 3: operators, occupancies and returns; updates, bonuses and epochs."""

from __future__ import annotations

import numpy as np

from ravi.core import Array
from ravi.planning.bellman import expect, extend, flow, marginal
from ravi.planning.evaluation import evaluate
from ravi.planning.occupancies import divergence
from ravi.theory import constants
from ravi.verify import lemmas
from ravi.verify.chance import Law, Martingale
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import worst
from ravi.verify.record import Backups, Played, under
from ravi.verify.setting import RunSetting

registry = Registry()
claim = registry.claim


# ---- Section 2


@claim("P1", "V^pi = sum_a pi Q^pi,  Q^pi = r + gamma P V^pi", "Section 2", per="pair")
def bellman_equations(s: Played) -> Measured:
    found, mdp = evaluate(s.mdp, s.after.policy), s.mdp
    PV = np.einsum("ny,xay->nxa", found.V, s.P)
    off_V = np.abs(found.V - (s.after.policy * found.Q).sum(-1))
    return worst(off_V, np.abs(found.Q - mdp.rewards - s.gamma * PV)), 0.0


@claim("P2", "<P f, g> = <f, P^T g>,  <E f, g> = <f, E^T g>", "Section 2", per="once")
def adjoints(setting: RunSetting) -> Measured:
    rng, mdp = np.random.default_rng(0), setting.mdp
    f, g = rng.normal(size=(20, mdp.states)), rng.normal(size=(20, mdp.states, mdp.actions))
    P = (expect(mdp, f) * g).sum((1, 2)) - (f * flow(mdp, g)).sum(1)
    E = (extend(f, mdp.actions) * g).sum((1, 2)) - (f * marginal(g)).sum(1)
    return np.array([np.abs(P).max(), np.abs(E).max()]), 0.0


@claim("P3", "E^T mu^pi = gamma P^T mu^pi + (1 - gamma) nu_0", "Equation (1)")
def bellman_flow(s: Played) -> Measured:
    inflow = s.gamma * np.einsum("nxa,xay->ny", s.at.mu, s.P) + (1 - s.gamma) * s.mdp.initial
    return worst(np.abs(s.at.mu.sum(-1) - inflow)), 0.0


@claim("P4", "nu^pi is a distribution, and (1 - gamma) sum_h gamma^h u_h", "Section 2", per="run")
def occupancy_is_a_sum(s: Played) -> Measured:
    nu, policy, u = s.at.nu[-1], s.at.policy[-1], s.mdp.initial
    total, weight = np.zeros_like(nu), 1.0
    while weight > 1e-12:
        total += (1 - s.gamma) * weight * u
        u = np.einsum("x,xa,xay->y", u, policy, s.P)
        weight *= s.gamma
    return max(np.abs(total - nu).max(), abs(nu.sum() - 1), -nu.min()), 1e-11


@claim("P5", "<mu^pi, r> = (1 - gamma) <nu_0, V^pi>,  gap = <mu^pi, E V* - Q*>", "Section 2", per="pair")
def returns(s: Played) -> Measured:
    mdp, star = s.mdp, s.setting.solution
    found = under(s.after.mu, mdp.rewards)
    loss = under(s.after.mu, star.V[:, None] - star.Q)
    return np.maximum(np.abs(found - evaluate(mdp, s.after.policy).returns), np.abs(star.optimum - found - loss)), 0.0


@claim("P6", "KL(mu || mu') = KL(nu || nu') + H(pi || pi')", "Section 2", per="pair")
def chain_rule(s: Played) -> Measured:
    """Within a phase only: where the next begins, KL to a policy without some action is infinite."""
    p, e, X, A = s.at, s.after, *s.mdp.rewards.shape
    joint = divergence(e.mu.reshape(-1, X * A), p.mu.reshape(-1, X * A))
    parts = divergence(e.nu, p.nu) + (e.nu * divergence(e.policy, p.policy)).sum(-1)
    off = np.abs(joint - parts)
    off[[rows.start - 1 for _, rows in s.phases[1:]]] = -np.inf
    return off, 0.0


@claim("P7", "rho* + V* = max_a (r + P~ V*); nu^pi is stationary for P~_pi", "reset chain", per="run")
def reset_chain(s: Played) -> Measured:
    """P~ = gamma P + (1 - gamma) 1 nu_0^T is the kernel of x_{t+1} given x_t and a_t, resets included. On that chain
    the average reward of pi, its gain, is rho(pi), and its bias V^pi + constant, since P~_pi V = gamma P_pi V
    + (1 - gamma) <nu_0, V>: the regret of the average-reward literature is, policy by policy, the one that is scored
    here. Every chain resets with probability 1 - gamma, so ||nu P~_pi^n - nu^pi||_1 <= 2 gamma^n for every law nu (1/2
    within 1.39 H steps), and the span of the best bias is that of V*, at most H."""
    mdp, star = s.mdp, s.setting.solution
    P = s.gamma * s.P + (1 - s.gamma) * mdp.initial
    optimality = np.abs(star.optimum + star.V - (mdp.rewards + P @ star.V).max(-1)).max()
    stationary = np.abs(np.einsum("xa,xay->y", s.at.mu[-1], P) - s.at.nu[-1]).max()
    return max(optimality, stationary), 0.0


@claim("P8", "the mean gap of pi_I, I uniform in time, is regret / T", "Section 2", per="run")
def online_to_batch(s: Played) -> Measured:
    T = s.T
    mean, by_record = (s.gap_k * np.diff([*s.starts, T + 1])).sum() / T, (s.in_time * s.gap).sum() / T
    return max(abs(mean - s.regret / T), abs(by_record - s.regret / T)), 0.0


# ---- Section 3


claim("S1", "V_1 = V_0,  pi_1 = pi_0", "Algorithm 1", per="plan")(lemmas.begins)


@claim("S2", "pi_k = pi_{k-1} exp(eta Q_k) / Z = pi_{k-1} exp(eta (Q_k - V_k)),  sum_a pi_k = 1", "Section 3",
       per="step")  # fmt: skip
def both_updates(s: Backups) -> Measured:
    p, e, eta = s.at.policy, s.after, s.eta
    tilted = p * np.exp(eta * (s.Q - s.Q.max(-1, keepdims=True)))
    by_product = tilted / tilted.sum(-1, keepdims=True)
    by_value = p * np.exp(eta * (s.Q - e.V[..., None]))
    return worst(np.abs(e.policy - by_product), np.abs(e.policy - by_value), e.improper[:, None]), 0.0


claim("S3", "0 <= Q_k <= H,  min_a Q_k <= V_k <= max_a Q_k", "Section 3", per="step")(lemmas.ranges)
claim("S4", "gamma |<P - P_hat_k, V_k>| <= CB_k", "Equation (2)", kind="P", per="backup")(lemmas.validity)


def resets(setting: RunSetting) -> Law:
    """The law of K(T) - 1, Bin(T - 1, 1 - gamma): its values (within 12 deviations) and probabilities."""
    from scipy.stats import binom

    trials, p = setting.steps - 1, 1 - setting.gamma
    middle, far = trials * p, 12 * np.sqrt(trials * p * (1 - p)) + 100
    values = np.arange(max(0, int(middle - far)), min(trials, int(middle + far)) + 1).astype(float)
    return Law(values, binom.pmf(values, trials, p))


@claim("S5", "K(T) - 1 ~ Bin(T - 1, 1 - gamma): its variance", "Section 3", kind="E", equality=True)
def epochs_are_binomial(s: Played) -> Measured:
    trials, law = s.T - 1, resets(s.setting)
    mean = trials * (1 - s.gamma)
    return (s.K - 1 - mean) ** 2, mean * s.gamma, law._replace(values=(law.values - mean) ** 2)


@claim("S6a", "E K(T) = (1 - gamma) T + gamma   (printed: (1 - gamma) T)", "Section 4.3", kind="E", equality=True)
def expected_epochs(s: Played) -> Measured:
    law = resets(s.setting)
    return s.K, constants.expected_epochs(s.H, s.T), law._replace(values=1 + law.values)


@claim("S6b", "E[T+ - T] = gamma H", "Section 3", kind="E", equality=True)
def expected_padding(s: Played) -> Measured:
    values = np.arange(int(40 * s.H) + 1).astype(float)
    return s.padding, constants.expected_padding(s.H), Law(values, (1 - s.gamma) * s.gamma**values)


@claim("S7", "T steps; x_{t+1} = y_t unless a reset follows", "Algorithm 1", per="run")
def plays(s: Played) -> Measured:
    T, jumps = s.T, ((s.x[1:] != s.y[:-1]) & ~s.reset[:-1]).sum()
    return abs(s.plays - T) + jumps + abs(len(s.x) - T - s.padding), 0.0


claim("S8", "Q_{k+1} = Pi_H[r + CB_k + gamma P_hat_k V_k]", "Algorithm 1", per="backup")(lemmas.backup)


def drawn(deviations: Array, variances: Array) -> Measured:
    """How often each of several things was drawn, less its mean: cells of one martingale each."""
    return deviations.ravel(), 0.0, Martingale(variances.ravel(), 1 / 3)


@claim("S9a", "a_t ~ pi_k(. | x_t): visits of each pair less their mean", "Algorithm 1", kind="E", equality=True)
def actions_are_drawn(s: Played) -> Measured:
    here, pi = s.visits.sum(-1, keepdims=True), s.at.policy
    return drawn((s.visits - here * pi).sum(0), (here * pi * (1 - pi)).sum(0))


@claim("S9b", "y_t ~ P(. | x_t, a_t): moves of each pair less their mean", "Algorithm 1", kind="E", equality=True)
def successors_are_drawn(s: Played) -> Measured:
    P, T, moves = s.P, s.T, np.zeros_like(s.P)
    np.add.at(moves, (s.x[:T], s.a[:T], s.y[:T]), 1.0)
    visits = moves.sum(-1, keepdims=True)
    return drawn(moves - visits * P, visits * P * (1 - P))


@claim("S9c", "x_1, and x_{t+1} after a reset, ~ nu_0: starts in each state less their mean", "Algorithm 1", kind="E",
       equality=True)  # fmt: skip
def starts_are_drawn(s: Played) -> Measured:
    nu0 = s.mdp.initial
    starts = np.bincount([s.x[0], *s.x[1:][s.reset[:-1]]], minlength=len(nu0))
    return drawn(starts - starts.sum() * nu0, starts.sum() * nu0 * (1 - nu0))


@claim("S10", "a reset follows with probability 1 - gamma, whatever (x_t, a_t): resets less their mean", "Algorithm 1",
       kind="E", equality=True)  # fmt: skip
def resets_are_drawn(s: Played) -> Measured:
    resets = np.zeros(s.total.shape)
    np.add.at(resets, (s.x, s.a), s.reset.astype(float))
    return drawn(resets - (1 - s.gamma) * s.total, s.gamma * (1 - s.gamma) * s.total)
