"""Claims of Sections 2 and 3: operators, occupancies and returns; updates, bonuses and epochs."""

from __future__ import annotations

import numpy as np

from ravi.core import Array
from ravi.planning.bellman import expect, extend, flow, marginal
from ravi.planning.evaluation import evaluate
from ravi.planning.occupancies import divergence
from ravi.theory import constants
from ravi.verify import lemmas
from ravi.verify.books import Evidence, Seen
from ravi.verify.chance import Interval, bernstein, chernoff
from ravi.verify.claim import Registry
from ravi.verify.distance import nil, worst

registry = Registry()
claim = registry.claim


# ---- Section 2


@claim("P1", "V^pi = sum_a pi Q^pi,  Q^pi = r + gamma P V^pi", "Section 2", phase="pair")
def bellman_equations(s: Seen) -> tuple[Array, Array]:
    found = evaluate(s.scene.mdp, s.after.policy)
    PV = np.einsum("ny,xay->nxa", found.V, s.scene.P)
    off_V = np.abs(found.V - (s.after.policy * found.Q).sum(-1))
    return worst(off_V, np.abs(found.Q - s.scene.mdp.rewards - s.scene.mdp.discount * PV)), nil(s)


@claim("P2", "<P f, g> = <f, P^T g>,  <E f, g> = <f, E^T g>", "Section 2", phase="run")
def adjoints(e: Evidence) -> tuple[Array, Array]:
    rng, mdp = np.random.default_rng(0), e.scene.mdp
    f, g = rng.normal(size=(20, mdp.states)), rng.normal(size=(20, mdp.states, mdp.actions))
    P = (expect(mdp, f) * g).sum((1, 2)) - (f * flow(mdp, g)).sum(1)
    E = (extend(f, mdp.actions) * g).sum((1, 2)) - (f * marginal(g)).sum(1)
    return np.array([np.abs(P).max(), np.abs(E).max()]), np.zeros(2)


@claim("P3", "E^T mu^pi = gamma P^T mu^pi + (1 - gamma) nu_0", "Equation (1)")
def bellman_flow(s: Seen) -> tuple[Array, Array]:
    mdp = s.scene.mdp
    inflow = mdp.discount * np.einsum("nxa,xay->ny", s.after.mu, s.scene.P) + (1 - mdp.discount) * mdp.initial
    return worst(np.abs(s.after.mu.sum(-1) - inflow)), nil(s)


@claim("P4", "nu^pi is a distribution, and (1 - gamma) sum_h gamma^h u_h", "Section 2", phase="run")
def occupancy_is_a_sum(e: Evidence) -> tuple[Array, Array]:
    mdp, nu, policy = e.scene.mdp, e.audit.played.nu, e.audit.played.policy
    u, total, weight = np.tile(mdp.initial, (e.n, 1)), np.zeros_like(nu), 1.0
    while weight > 1e-12:
        total += (1 - mdp.discount) * weight * u
        u = np.einsum("nx,nxa,xay->ny", u, policy, e.scene.P)
        weight *= mdp.discount
    off = np.maximum(np.abs(total - nu).max(-1), np.abs(nu.sum(-1) - 1))
    return np.maximum(off, -nu.min(-1)), np.full(e.n, 1e-11)


@claim("P5", "<mu^pi, r> = (1 - gamma) <nu_0, V^pi>,  gap = <mu^pi, E V* - Q*>", "Section 2", phase="pair")
def returns(s: Seen) -> tuple[Array, Array]:
    mdp, star = s.scene.mdp, s.scene.solution
    found = (s.after.mu * mdp.rewards).sum((1, 2))
    by_value = evaluate(mdp, s.after.policy).returns
    loss = (s.after.mu * (star.V[:, None] - star.Q)).sum((1, 2))
    return np.maximum(np.abs(found - by_value), np.abs(star.optimum - found - loss)), nil(s)


@claim("P6", "KL(mu || mu') = KL(nu || nu') + H(pi || pi')", "Section 2", phase="pair")
def chain_rule(s: Seen) -> tuple[Array, Array]:
    """Within a phase only: where the next begins, KL to a policy without some action is infinite."""
    p, e = s.at, s.after
    if s.anew:
        return nil(s) - np.inf, nil(s)
    joint = divergence(e.mu.reshape(len(e.mu), -1), p.mu.reshape(len(p.mu), -1))
    parts = divergence(e.nu, p.nu) + (e.nu * divergence(e.policy, p.policy)).sum(-1)
    return np.abs(joint - parts), nil(s)


@claim("P7", "rho* + V* = max_a (r + P~ V*); nu^pi is stationary for P~_pi", "reset chain", phase="run")
def reset_chain(e: Evidence) -> tuple[Array, Array]:
    """P~ = gamma P + (1 - gamma) 1 nu_0^T is the kernel of x_{t+1} given x_t and a_t, resets included. On that chain
    the average reward of pi, its gain, is rho(pi), and its bias V^pi + constant, since P~_pi V = gamma P_pi V
    + (1 - gamma) <nu_0, V>: the regret of the average-reward literature is, policy by policy, the one that is scored
    here. Every chain resets with probability 1 - gamma, so ||nu P~_pi^n - nu^pi||_1 <= 2 gamma^n for every law nu (1/2
    within 1.39 H steps), and the span of the best bias is that of V*, at most H (tests/verify/test_reset_chain.py)."""
    mdp, star = e.scene.mdp, e.scene.solution
    P = mdp.discount * e.scene.P + (1 - mdp.discount) * mdp.initial
    optimality = np.abs(star.optimum + star.V - (mdp.rewards + P @ star.V).max(-1)).max()
    mu, nu = e.audit.played.mu, e.audit.played.nu
    stationary = np.abs(np.einsum("nxa,xay->ny", mu, P) - nu).max(-1)
    return np.append(stationary, optimality), np.zeros(e.n + 1)


@claim("P8", "the mean gap of pi_I, I uniform in time, is regret / T", "Section 2", phase="run")
def online_to_batch(e: Evidence) -> tuple[Array, Array]:
    T = e.run.steps
    means = [(gaps * np.diff([*starts, T + 1])).sum() / T for gaps, starts in zip(e.run.gap_k, e.run.T_k, strict=True)]
    by_audit = np.abs(e.audit.walked.regret - e.run.regret) / T
    return np.maximum(np.abs(np.array(means) - e.run.regret / T), by_audit), np.zeros(e.n)


# ---- Section 3


claim("S1", "V_1 = V_0,  pi_1 = pi_0", "Algorithm 1", phase="begin")(lemmas.begins)


@claim("S2", "pi_k = pi_{k-1} exp(eta Q_k) / Z = pi_{k-1} exp(eta (Q_k - V_k)),  sum_a pi_k = 1", "Section 3",
       phase="step")  # fmt: skip
def both_updates(s: Seen) -> tuple[Array, Array]:
    p, Q, e, eta = s.at.policy, s.backup.Q, s.after, s.scene.parts.eta
    tilted = p * np.exp(eta * (Q - Q.max(-1, keepdims=True)))
    by_product = tilted / tilted.sum(-1, keepdims=True)
    by_value = p * np.exp(eta * (Q - e.V[..., None]))
    return worst(np.abs(e.policy - by_product), np.abs(e.policy - by_value), e.improper[:, None]), nil(s)


claim("S3", "0 <= Q_k <= H,  min_a Q_k <= V_k <= max_a Q_k", "Section 3", phase="step")(lemmas.ranges)
claim("S4", "gamma |<P - P_hat_k, V_k>| <= CB_k", "Equation (2)", kind="P", phase="backup")(lemmas.validity)


def resets(e: Evidence) -> tuple[Array, Array]:
    """The law of K(T) - 1, Bin(T - 1, 1 - gamma): its values (within 12 deviations) and probabilities."""
    from scipy.stats import binom

    trials, p = e.run.steps - 1, 1 - e.scene.mdp.discount
    middle, far = trials * p, 12 * np.sqrt(trials * p * (1 - p)) + 100
    values = np.arange(max(0, int(middle - far)), min(trials, int(middle + far)) + 1).astype(float)
    return values, binom.pmf(values, trials, p)


@claim("S5", "K(T) - 1 ~ Bin(T - 1, 1 - gamma): its variance", "Section 3", kind="E", equality=True)
def epochs_are_binomial(e: Evidence) -> tuple[Array, Array, Interval]:
    T, gamma = e.run.steps, e.scene.mdp.discount
    mean = (T - 1) * (1 - gamma)
    values, probabilities = resets(e)
    law = chernoff((values - mean) ** 2, probabilities, e.n)
    return (e.audit.walked.epochs - 1 - mean) ** 2, np.array((T - 1) * gamma * (1 - gamma)), law


@claim("S6a", "E K(T) = (1 - gamma) T + gamma   (printed: (1 - gamma) T)", "Section 4.3", kind="E", equality=True)
def expected_epochs(e: Evidence) -> tuple[Array, Array, Interval]:
    values, probabilities = resets(e)
    law = chernoff(1 + values, probabilities, e.n)
    return e.audit.walked.epochs, np.array(constants.expected_epochs(e.scene.H, e.run.steps)), law


@claim("S6b", "E[T+ - T] = gamma H", "Section 3", kind="E", equality=True)
def expected_padding(e: Evidence) -> tuple[Array, Array, Interval]:
    values = np.arange(int(40 * e.scene.H) + 1).astype(float)
    law = chernoff(values, (1 - e.scene.mdp.discount) * e.scene.mdp.discount**values, e.n)
    return e.run.padding.astype(float), np.array(constants.expected_padding(e.scene.H)), law


@claim("S7", "T steps; x_{t+1} = y_t unless a reset follows", "Algorithm 1", phase="run")
def plays(e: Evidence) -> tuple[Array, Array]:
    off = np.abs(e.run.plays - e.run.steps) + e.audit.walked.shortfall
    return off + np.abs(e.audit.walked.visited - e.plays), np.zeros(e.n)


claim("S8", "Q_{k+1} = Pi_H[r + CB_k + gamma P_hat_k V_k]", "Algorithm 1", phase="backup")(lemmas.backup)


def drawn(deviations: Array, variances: Array) -> tuple[Array, Array, Interval]:
    """How often each of several things was drawn, less its mean: cells of one martingale each, seeds first."""
    n = len(deviations)
    law = bernstein(variances.reshape(n, -1).sum(0), 1 / 3, n)
    return deviations.reshape(n, -1), np.array(0.0), law


@claim("S9a", "a_t ~ pi_k(. | x_t): visits of each pair less their mean", "Algorithm 1", kind="E", equality=True)
def actions_are_drawn(e: Evidence) -> tuple[Array, Array, Interval]:
    return drawn(e.audit.walked.chosen, e.audit.walked.choice)


@claim("S9b", "y_t ~ P(. | x_t, a_t): moves of each pair less their mean", "Algorithm 1", kind="E", equality=True)
def successors_are_drawn(e: Evidence) -> tuple[Array, Array, Interval]:
    P, moves = e.scene.P, e.audit.books.moves
    visits = moves.sum(-1, keepdims=True)
    return drawn(moves - visits * P, visits * P * (1 - P))


@claim("S9c", "x_1, and x_{t+1} after a reset, ~ nu_0: starts in each state less their mean", "Algorithm 1", kind="E",
       equality=True)  # fmt: skip
def starts_are_drawn(e: Evidence) -> tuple[Array, Array, Interval]:
    nu0, starts = e.scene.mdp.initial, e.audit.walked.starts
    total = starts.sum(-1, keepdims=True)
    return drawn(starts - total * nu0, total * nu0 * (1 - nu0))


@claim("S10", "a reset follows with probability 1 - gamma, whatever (x_t, a_t): resets less their mean", "Algorithm 1",
       kind="E", equality=True)  # fmt: skip
def resets_are_drawn(e: Evidence) -> tuple[Array, Array, Interval]:
    gamma, w = e.scene.mdp.discount, e.audit.walked
    return drawn(w.resets - (1 - gamma) * w.total, gamma * (1 - gamma) * w.total)
