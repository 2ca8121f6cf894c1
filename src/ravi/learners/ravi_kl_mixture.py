"""RAVI-KL for linear mixtures: optimism over the likely mixtures of d kernels; nothing is tuned.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023, for the setting; the set
is that of likelihoods, with the radius of a universal portfolio (T. Cover, E. Ordentlich 1996).
Trust: DERIVED: the radii, the planning and the regret bound are this library's; docs/kl.md has the proofs.

psi_1, ..., psi_d are kernels and the truth is <theta, psi>, theta on the simplex: the features of the MDP where they
are that, else the kernels at the vertices of all theta that make one. At time t, around the likely theta
(`ravi.optimism.likelihood`) and cut by the simplex,

    E = {theta : ||theta - theta_hat||^2_Lambda / 2 (rho + gap) + e ||theta - theta_hat||^2_G / beta^2 <= 1 + e}
    G = I + sum_s phi_s phi_s^T,   phi_s = phi_U(x_s, a_s),  U = V_k less its middle, in parts of half its span
    V = max_a {r + gamma max_{theta in E} <theta, phi_V>}

and the greedy policy is played until a reset, or until the plays of a pair reach max(1, n). e is 1/10, and all likely
theta are in E. Moves that were seen make the first part small; the second, whose beta is large, is what the regret
bound goes by. With plan=slack another policy is played where it is nearly as optimistic: that of rho / 2, if its own
optimistic return is at least the largest less eps_t.

Constants: rho = ln(2 / delta_t) + C_d(m), delta_t = min{1, d sqrt(H / t)}, beta^2 of `ravi.theory.kl.mixture_radius`;
eps_t = slack d sqrt(H / t), slack = 0.3; plans end within 0.1 / sqrt(t) of their return. T is not used. `scale`
multiplies rho.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ravi import checks
from ravi.compiled import compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import Counts, tallies, tally
from ravi.estimators.ridge import nonzeros
from ravi.learners.ravi_kl import SLACK, TOLERANCE
from ravi.optimism.likelihood import likelihood, shape, simulators
from ravi.optimism.simplex import Ball, ball
from ravi.planning.ellipsoid import embedding_of, on_simplex
from ravi.planning.optimistic import greedy
from ravi.schedules import reset_or_doubling
from ravi.theory import kl as theory

PLANS = ("greedy", "slack")


class State(NamedTuple):
    data: Counts
    gram: Array  # G                                                  (n, d, d)
    theta: Array  # theta_hat                                         (n, d)
    V: Array  # of the most optimistic policy                         (n, X)
    V_other: Array  # of the candidate, at half the radius            (n, X)
    V_own: Array  # of the candidate, at the radius itself            (n, X)
    V_played: Array  # of the policy that is played, with its best theta   (n, X)
    policy: Array  # (n, X, A)


def linear_mixture(
    problem: Problem, steps: int, *, plan: str = "slack", scale: float = 1.0, slack: float | None = None
) -> Learner:
    """RAVI-KL on a linear mixture. `slack` is of plan=slack.

    Setting: discounted with resets, linear mixture of dimension d.
    Guarantee: expected regret O~(d H sqrt(T)), with no T to know. docs/kl.md, Theorem 4.
    Composition: counts of moves x an ellipsoid around a set of likelihoods, and the simplex x policy iteration on sets
    x at resets and doublings.
    Cost: O(d^2) per step; per plan O(d^2) for every move that was seen, and some maxima over an ellipsoid for each of
    the X A pairs.
    """
    checks.steps(steps)
    checks.one_of(plan, PLANS, "plan")
    scale = checks.nonnegative(scale, "scale")
    if slack is not None and plan != "slack":
        raise checks.InputError(f"slack is an option of plan=slack, not of plan={plan}")
    c = SLACK if slack is None else checks.nonnegative(slack, "slack")
    if problem.features is None:
        raise checks.InputError(f"{problem.name} has no features: only a linear mixture MDP has weights to learn")
    psi = simulators(problem)
    X, A, _, d = psi.shape
    r, gamma, H, nu0 = problem.rewards, problem.discount, problem.horizon, problem.initial
    common = (problem.successors, psi, *nonzeros(problem.successors, psi), gamma)
    embed = embedding_of(problem.successors, psi)

    def init(keys: Array) -> State:
        n = len(keys)
        gram, theta, policy = np.tile(np.eye(d), (n, 1, 1)), np.full((n, d), 1 / d), np.full((n, X, A), 1 / A)
        V, other, own, played = (np.full((n, X), H) for _ in range(4))
        return State(tallies(problem, n), gram, theta, V, other, own, played, policy)

    def balls(s: State, i: int, t: float) -> tuple[Ball, Ball]:
        """E, and that of half the radius."""
        level = math.log(2 / theory.mixture_level(H, d, t))
        at = likelihood(psi, s.data.moves[i], s.theta[i], level, scale)
        s.theta[i] = at.theta
        guard = theory.GUARD * s.gram[i] / theory.mixture_radius(d, t, at.rho)
        made = [
            ball((shape(at, part) + guard)[None], at.theta[None], np.array([math.sqrt(1 + theory.GUARD)]))
            for part in (1.0, 0.5)
        ]
        return made[0], made[1]

    def best(B: Ball, V: Array, tol: float, rewards: Array = r) -> tuple[Array, Array]:
        """V and the greedy policy of it   (1, X), (1, X, A)."""
        found = on_simplex((rewards, *common), B, V, np.ones(1, bool), np.inf, tol)
        return found.V, greedy(found.Q)

    def planned(s: State) -> State:
        for i in range(len(s.theta)):
            t = 1.0 + float(s.data.visits[i].sum())
            one, (full, half) = slice(i, i + 1), balls(s, i, t)
            tol = TOLERANCE * H / math.sqrt(t)
            s.V[one], s.policy[one] = best(full, s.V[one], tol)
            s.V_played[i] = s.V[i]
            if plan == "slack":
                s.V_other[one], other = best(half, s.V_other[one], tol)
                if (other != s.policy[one]).any():
                    its = np.where(other[0] > 0, r, -H)  # no other action is ever the best
                    s.V_own[one], _ = best(full, s.V_own[one], tol, its)
                    eps = c * d * math.sqrt(H / t)
                    if (1 - gamma) * (s.V[i] - s.V_own[i]) @ nu0 <= eps:
                        s.policy[one], s.V_played[i] = other, s.V_own[i]
        return s

    def add(s: State, path: Path) -> State:
        low, high = s.V_played.min(-1), s.V_played.max(-1)
        half = np.maximum((high - low) / 2, 1e-12)
        phi = embed((s.V_played - ((high + low) / 2)[:, None]) / half[:, None])
        _gather(s.gram, phi, path.state, path.action, path.length)
        tally(s.data, path)
        return s

    made: dict[str, Any] = {"plan": plan, "scale": scale} | ({"slack": c} if plan == "slack" else {})
    return Learner("ravi-kl/mixture", init, planned, add, reset_or_doubling(), made | {"kernels": d})


@compiled
def _gather(gram, phi, state, action, length):  # type: ignore[no-untyped-def]
    n, d, _ = gram.shape
    for i in range(n):
        for l in range(length[i]):
            row = phi[i, state[i, l], action[i, l]]
            for j in range(d):
                for k in range(d):
                    gram[i, j, k] += row[j] * row[k]
