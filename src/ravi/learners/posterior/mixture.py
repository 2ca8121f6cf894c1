"""PSRL on theta: posterior sampling for linear mixtures, the optimal policy of weights drawn from their posterior.

Paper: I. Osband, D. Russo, B. Van Roy, "(More) efficient reinforcement learning via posterior sampling", NeurIPS 2013.
Setting: Bayesian, linear mixture of dimension d.
Trust: DERIVED: the paper's principle, on the weights; no paper was followed to the letter. The draws are tested against
their exact distribution.

psi_1, ..., psi_d are kernels and the truth is <theta, psi>, theta on the simplex: the features of the MDP where they
are that, else the kernels at the vertices of all theta that make one, as in RAVI-KL for mixtures. The prior is uniform
on the simplex. At a reset, with N_c plays that made the move c = (x, a, y),

    theta_k ~ the density that is proportional to prod_c <theta, psi_c>^{N_c}
    (`ravi.learners.posterior.weights`) pi_k    = the optimal policy of (<theta_k, psi>, r, gamma)
    ties: the first action

and pi_k is played until the next reset.

Constants: none. There is no confidence to scale.
Guarantee: Bayesian regret O~(d H sqrt(T)) where theta was drawn from the prior, as that of `ensemble` is: theta and
theta_k have one law given the data, and both are in the sets of docs/explanation/kl.md, Theorem 4, whose sum for phases
that end at resets is that of the paper's Lemmas 5.5 and A.4. None for a theta that is given.
Composition: counts of moves x posterior draw x modified policy iteration x at resets.
Cost: O(1) per step; per plan 4 d moves of a chain, each some sums over the features that were seen, a maximum of the
likelihood, and X A B per sweep of all actions.
Deviations: draws are those of a Markov chain that leaves the posterior as it is, from one plan to the next. V is swept
until the policy is within 1e-6 of optimal for theta_k in every state.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import Counts, tallies, tally
from ravi.learners.posterior.draws import goal_of
from ravi.learners.posterior.sparse import SHRINK
from ravi.learners.posterior.weights import draw_weights
from ravi.optimism.likelihood import Likelihood, likelihood, rows_of, simulators
from ravi.optimism.sets import _product
from ravi.planning.sweeps import lowest
from ravi.runtime.ranges import Fixed, Policy, Value
from ravi.schedules import at_reset

TOLERANCE = 1e-6  # of the value of pi_k, under theta_k


class Drawn(NamedTuple):
    """The last draw from the posterior."""

    key: Fixed  # (n,)
    theta: Policy  # theta_k                   (n, d)
    u: Value  # its V, less its least          (n, X)
    policy: Policy  # its optimal policy       (n, X, A)


class State(NamedTuple):
    data: Counts
    likeliest: Policy  # theta_hat             (n, d)
    drawn: Drawn
    policy: Policy  # that of the draw         (n, X, A)


def linear_mixture(problem: Problem, steps: int) -> Learner:
    """PSRL on the weights of d kernels, with a uniform prior."""
    validation.steps(steps)
    if problem.features is None:
        raise validation.InputError(f"{problem.name} has no features: only a linear mixture MDP has weights to draw")
    psi = simulators(problem)
    rows, d = rows_of(psi), psi.shape[-1]
    none, draw = sampled(problem, psi)

    def init(keys: Array) -> State:
        first = none(keys)
        return State(tallies(problem, len(keys)), np.full((len(keys), d), 1 / d), first, first.policy.copy())

    def plan(s: State) -> State:
        for i in range(len(s.likeliest)):
            at = likelihood(rows, s.data.moves[i], s.likeliest[i], 0.0, 1.0)
            s.likeliest[i] = at.theta
            draw(s.drawn, i, at, 1 + int(s.data.visits[i].sum()))
        s.policy[:] = s.drawn.policy
        return s

    def add(s: State, path: Path) -> State:
        tally(s.data, path)
        return s

    return Learner("psrl/mixture", init, plan, add, at_reset(), {"kernels": d})


def sampled(
    problem: Problem, psi: Array
) -> tuple[Callable[[Array], Drawn], Callable[[Drawn, int, Likelihood, int], None]]:
    """What there is before the first draw, by keys; and the next draw of one seed with its optimal policy, in place."""
    (X, A, _, d), goal = psi.shape, goal_of(problem, TOLERANCE)

    def none(keys: Array) -> Drawn:
        n = len(keys)
        return Drawn(np.array(keys, np.uint64), np.full((n, d), 1 / d), np.zeros((n, X)), np.full((n, X, A), 1 / A))

    def draw(last: Drawn, i: int, at: Likelihood, t: int) -> None:
        draw_weights(at, last.theta[i], last.key[i], t)
        P = psi @ last.theta[i]
        _optimal(problem.rewards, P, problem.successors, problem.discount, goal, last.u[i], last.policy[i])

    return none, draw


@compiled
def _optimal(rewards, P, successors, gamma, goal, u, policy):  # type: ignore[no-untyped-def]
    """Modified policy iteration from u, in place, until span(T u - u) <= goal; the policy of the last T."""
    X, A, B = P.shape
    new, greedy = np.empty(X), np.empty(X, np.int64)
    while True:
        low, high = np.inf, -np.inf
        for x in range(X):
            best, b = -np.inf, 0
            for a in range(A):
                value = rewards[x, a] + gamma * _product(B, successors[x, a], P[x, a], u)
                if value > best:
                    best, b = value, a
            new[x], greedy[x] = best, b
            low, high = min(low, best - u[x]), max(high, best - u[x])
        span = high - low
        _centre(new, u)
        if span <= goal:
            break
        enough = max(SHRINK * span, goal / 2)
        while span > enough:  # sweeps of the greedy policy
            low, high = np.inf, -np.inf
            for x in range(X):
                a = greedy[x]
                new[x] = rewards[x, a] + gamma * _product(B, successors[x, a], P[x, a], u)
                low, high = min(low, new[x] - u[x]), max(high, new[x] - u[x])
            span = high - low
            _centre(new, u)
    policy[:] = 0.0
    for x in range(X):
        policy[x, greedy[x]] = 1.0


@compiled
def _centre(new, u):  # type: ignore[no-untyped-def]
    """u <- new, less its least."""
    least = lowest(new)
    for x in range(u.shape[0]):
        u[x] = new[x] - least
