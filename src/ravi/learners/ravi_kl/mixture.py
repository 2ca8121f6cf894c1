"""RAVI-KL for linear mixtures: optimism over the likely mixtures of d kernels, by the radii of its proofs.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023, for the setting; the set
is that of likelihoods, with the radius of a universal portfolio (T. Cover, E. Ordentlich 1996).
Trust: DERIVED: the radii, the planning and the regret bound are this library's; docs/explanation/kl.md has the proofs.

psi_1, ..., psi_d are kernels and the truth is <theta, psi>, theta on the simplex: the features of the MDP where they
are that, else the kernels at the vertices of all theta that make one. At time t, around the likely theta
(`ravi.optimism.likelihood`) and cut by the simplex,

    E = {theta : ||theta - theta_hat||^2_Lambda / 2 (rho + gap) + e ||theta - theta_hat||^2_G / beta^2 <= 1 + e}
    G = I + sum_s phi_s phi_s^T,   phi_s = phi_U(x_s, a_s),  U = V_k less its middle, in parts of half its span
    V = max_a {r + gamma max_{theta in E} <theta, phi_V>}

and the greedy policy is played until a reset, until the visits of a pair reach max(1, n), or until the step with which
det G is more than doubled. e is 1/10, and all likely theta are in E. Moves that were seen make the first part small;
the second, whose beta is large, is what the regret bound goes by. With plan=slack another policy is played where it is
nearly as optimistic: that of rho / 2 (candidate=half), or the optimal one of a draw from the posterior with a uniform
prior (candidate=posterior, as in PSRL on theta), if its own optimistic return is at least the largest less eps_t.

Constants: rho = ln(2 / delta_t) + C_d(m), delta_t = min{1, d sqrt(H / t)}, beta^2 of `ravi.theory.kl.mixture_radius`;
eps_t = slack d sqrt(H / t), slack = 0.3; plans end within 0.1 / sqrt(t) of their return. T is not used. `scale`
multiplies rho.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, KernelSets, Learner, Path, Problem
from ravi.estimators.counts import Counts, tallies, tally
from ravi.estimators.gram import Gram, gram, gram_walk, renew
from ravi.estimators.ridge import embedding_of, nonzeros
from ravi.learners.mixture.ellipsoid import on_simplex
from ravi.learners.options import takes
from ravi.learners.posterior.mixture import sampled
from ravi.learners.ravi_kl.ravi_kl import Options
from ravi.optimism.extended_value_iteration import greedy
from ravi.optimism.likelihood import Likelihood, likelihood, rows_of, shape, simulators
from ravi.optimism.simplex import Ball, ball
from ravi.runtime.ranges import VALUE, Number, Policy, Value
from ravi.schedules import reset_or_doubling
from ravi.theory import kl as theory

PLANS = ("greedy", "slack")
SLACK = 0.3  # c of eps_t = c d sqrt(H / t)


class State(NamedTuple):
    data: Counts
    gram: Gram  # G
    theta: Policy  # theta_hat                                        (n, d)
    V: Value  # of the most optimistic policy                         (n, X)
    candidate: Annotated[Any, VALUE]  # V at half the radius (n, X), or Drawn; () where there is none
    V_own: Value  # of the candidate, at the radius itself            (n, X)
    V_played: Value  # of the policy that is played, with its best theta   (n, X)
    phi: Number  # phi_U of it                                        (n, X, A, d)
    policy: Policy  # (n, X, A)


@takes("plan", "scale", "slack", "candidate")
def linear_mixture(problem: Problem, T: int, o: Options) -> Learner:
    """RAVI-KL on a linear mixture. `slack` and `candidate` are of plan=slack.

    Setting: discounted with resets, linear mixture of dimension d.
    Guarantee: expected regret O~(d H sqrt(T) + H X A) for T >= X A, with no T to know. docs/explanation/kl.md, Theorem
    4.
    Composition: counts of moves x an ellipsoid around a set of likelihoods, and the simplex x policy iteration on sets
    x at resets and doublings, of visits and of a determinant.
    Cost: O(d^2) per step; per plan O(d^2) for every move that was seen, and some maxima over an ellipsoid for each of
    the X A pairs.
    """
    plan, scale, c = validation.one_of(o.plan, PLANS, "plan"), o.scale, SLACK if o.slack is None else o.slack
    kind = o.candidate
    if problem.features is None:
        raise validation.InputError(f"{problem.name} has no features: only a linear mixture MDP has weights to learn")
    psi = simulators(problem)
    rows, (X, A, _, d) = rows_of(psi), psi.shape
    r, gamma, H, nu0 = problem.rewards, problem.discount, problem.horizon, problem.initial
    common = (problem.successors, psi, *nonzeros(problem.successors, psi), gamma)
    embed, (none, draw) = embedding_of(problem.successors, psi), sampled(problem, psi)

    def init(keys: Array) -> State:
        n = len(keys)
        G, theta, policy = gram(n, d, 1.0, X, moves=False), np.full((n, d), 1 / d), np.full((n, X, A), 1 / A)
        V, own, played = (np.full((n, X), H) for _ in range(3))
        other: Any = () if kind is None else V.copy() if kind == "half" else none(keys)
        return State(tallies(problem, n), G, theta, V, other, own, played, np.zeros((n, X, A, d)), policy)

    def likely(s: State, i: int, t: int) -> Likelihood:
        level = math.log(2 / theory.mixture_level(H, d, t))
        at = likelihood(rows, s.data.moves[i], s.theta[i], level, scale)
        s.theta[i] = at.theta
        return at

    def set_of(s: State, i: int, t: int, at: Likelihood, part: float) -> Ball:
        """E, where rho is that part of itself."""
        guard = theory.GUARD * s.gram.covariance[i] / theory.mixture_radius(d, t, at.rho + at.gap)
        return ball((shape(at, part) + guard)[None], at.theta[None], np.array([math.sqrt(1 + theory.GUARD)]))

    def best(B: Ball, V: Array, tol: float, rewards: Array = r) -> tuple[Array, Array]:
        """V and the greedy policy of it   (1, X), (1, X, A)."""
        found = on_simplex((rewards, *common), B, V, np.ones(1, bool), np.inf, tol)
        return found.V, greedy(found.Q)

    def other_policy(s: State, i: int, t: int, at: Likelihood, tol: float) -> Array:
        """The candidate   (1, X, A)."""
        one = slice(i, i + 1)
        if kind == "posterior":
            draw(s.candidate, i, at, t)
            return s.candidate.policy[one].copy()
        s.candidate[one], policy = best(set_of(s, i, t, at, 0.5), s.candidate[one], tol)
        return policy

    def planned(s: State) -> State:
        renew(s.gram)
        for i in range(len(s.theta)):
            t, one = 1 + int(s.data.visits[i].sum()), slice(i, i + 1)
            at, tol = likely(s, i, t), theory.TOLERANCE * H / math.sqrt(t)
            full = set_of(s, i, t, at, 1.0)
            s.V[one], s.policy[one] = best(full, s.V[one], tol)
            s.V_played[i] = s.V[i]
            if kind is not None:
                other = other_policy(s, i, t, at, tol)
                if (other != s.policy[one]).any():
                    its = np.where(other[0] > 0, r, -H)  # no other action is ever the best
                    its.flags.writeable = False  # as r is: both are compiled once
                    s.V_own[one], _ = best(full, s.V_own[one], tol, its)
                    eps = c * d * math.sqrt(H / t)
                    if (1 - gamma) * (s.V[i] - s.V_own[i]) @ nu0 <= eps:
                        s.policy[one], s.V_played[i] = other, s.V_own[i]
        s.phi[:] = embed(centred(s.V_played))
        return s

    def add(s: State, path: Path) -> State:
        tally(s.data, path)
        return s

    walk = gram_walk(lambda s: (s.gram, s.phi, None))

    made: dict[str, Any] = {"plan": plan, "scale": scale} | ({"slack": c, "candidate": kind} if kind else {})
    made["kernels"] = d
    sets = KernelSets(scale, c if kind else 0.0, d)
    return Learner("ravi-kl/mixture", init, planned, add, reset_or_doubling(), made, walk=walk, sets=sets)


def centred(V: Array) -> Array:
    """U: V less the middle of its range, in parts of half its span   (n, X)."""
    low, high = V.min(-1, keepdims=True), V.max(-1, keepdims=True)
    return (V - (high + low) / 2) / np.maximum((high - low) / 2, 1e-12)
