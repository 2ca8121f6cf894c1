"""PSRL on theta: posterior sampling for linear mixtures, the optimal policy of weights drawn from their posterior.

Paper: I. Osband, D. Russo, B. Van Roy, "(More) efficient reinforcement learning via posterior sampling", NeurIPS 2013.
Setting: Bayesian, linear mixture of dimension d.
Trust: DERIVED: the paper's principle, on the weights; no paper was followed to the letter. The draws are tested against
their exact distribution.

psi_1, ..., psi_d are kernels and the truth is <theta, psi>, theta on the simplex: the features of the MDP where they
are that, else the kernels at the vertices of all theta that make one, as in RAVI-KL for mixtures. The prior is uniform
on the simplex. At a reset, with N_c plays that made the move c = (x, a, y),

    theta_k ~ the density that is proportional to prod_c <theta, psi_c>^{N_c}
    pi_k    = the optimal policy of (<theta_k, psi>, r, gamma)
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

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import bound, compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import Counts, tallies, tally
from ravi.learners.posterior.draws import goal_of
from ravi.learners.posterior.sparse import MOST, SHRINK
from ravi.optimism.likelihood import Likelihood, likelihood, rows_of, simulators
from ravi.optimism.sets import _product
from ravi.planning.sweeps import iterate, lowest
from ravi.random import block
from ravi.runtime.ranges import Fixed, Policy, Value
from ravi.schedules import at_reset

MOVES = 4  # times d, from one draw to the next
WIDTH = 8.0  # of the interval, in standard deviations
CUTS = 100  # of an interval, at most: it is a point by then


def draw_weights(at: Likelihood, theta: Array, key: int, t: int) -> None:
    """Draw the weights of d kernels from their posterior, by hit-and-run with slices on the simplex; theta in place.

    With a uniform prior on the simplex and counts N_c of moves with features psi_c, the posterior density of theta is
    proportional to exp(-F(theta)), F(theta) = -sum_c N_c ln <theta, psi_c> (`ravi.optimism.likelihood`), and
    log-concave. A move of the chain (R. L. Smith 1984; R. M. Neal 2003, "Slice sampling")

        u ~ N(0, C), C = (sum_c N_c psi_c psi_c^T / p_c^2 + d^2 I)^{-1} on the plane sum u = 0
            with p_c = <theta_hat, psi_c>
        F <= F(theta) + e is the slice, e exponential;  an interval of `WIDTH` around 0, where it falls by chance
        s uniform on the interval, which is cut at s while theta + s u is not in the slice;  theta <- theta + s u

    leaves the posterior as it is, whatever C, which is of the data alone. In units of C the posterior is about as wide
    in all directions, so that 4 d moves from one draw to the next are many: their correlation was 0 to .2 on ensembles
    of 10 kernels, up to .8 on ensembles of 30 with few steps. Where no move tells kernels apart, draws are independent.

    The uniforms are the blocks 1, 2, ... of step t under the learner's key (`ravi.random`), in the order of use.
    """
    d = len(theta)
    if len(at.rows) == 0:
        _flat(theta, key, t)
        return
    rows = at.rows / (at.rows @ at.theta)[:, None]
    covariance = np.linalg.inv((rows * at.counts[:, None]).T @ rows + d**2 * np.eye(d))
    one = covariance.sum(0)
    covariance -= np.outer(one, one) / one.sum()
    size, axes = np.linalg.eigh(covariance)
    _wander(theta, at.rows, at.counts, axes * np.sqrt(np.maximum(size, 0.0)), key, t)


@compiled
def _flat(theta, key, t):  # type: ignore[no-untyped-def]
    """theta ~ Dirichlet(1, ..., 1)."""
    d = theta.shape[0]
    for j in range(d):
        theta[j] = -math.log(1.0 - block(key, t, 1 + j)[0])
    theta /= theta.sum()


@compiled
def _wander(theta, rows, counts, root, key, t):  # type: ignore[no-untyped-def]
    """MOVES d moves, in place. root root^T = C."""
    d, m = theta.shape[0], rows.shape[0]
    u, z, p, q = np.empty(d), np.empty(d + 3), np.empty(m), np.empty(m)
    part = 1
    for c in range(m):
        p[c] = 0.0
        for j in range(d):
            p[c] += rows[c, j] * theta[j]
    for _ in range(MOVES * d):
        for j in range(0, d, 4):  # normals, by Box and Muller
            a, b, e, f = block(key, t, part)
            part += 1
            r, s = math.sqrt(-2.0 * math.log(1.0 - a)), math.sqrt(-2.0 * math.log(1.0 - e))
            z[j], z[j + 1] = r * math.cos(2.0 * math.pi * b), r * math.sin(2.0 * math.pi * b)
            z[j + 2], z[j + 3] = s * math.cos(2.0 * math.pi * f), s * math.sin(2.0 * math.pi * f)
        mean = 0.0
        for j in range(d):
            u[j] = 0.0
            for k in range(d):
                u[j] += root[j, k] * z[k]
            mean += u[j] / d
        placed, level, first, _ = block(key, t, part)
        part += 1
        low, high = -WIDTH * placed, WIDTH * (1.0 - placed)
        for j in range(d):  # where it leaves the simplex
            u[j] -= mean
            if u[j] > 0.0:
                low = max(low, -theta[j] / u[j])
            elif u[j] < 0.0:
                high = min(high, -theta[j] / u[j])
        for c in range(m):
            q[c] = 0.0
            for j in range(d):
                q[c] += rows[c, j] * u[j]
            q[c] /= p[c]
        least = math.log(1.0 - level)  # of -F(theta + s u) + F(theta)
        s = low + (high - low) * first
        for cut in range(CUTS):
            gain = 0.0
            for c in range(m):
                ratio = 1.0 + s * q[c]
                gain += counts[c] * math.log(ratio) if ratio > 0.0 else -np.inf
            if gain >= least:
                break
            if s < 0.0:
                low = s
            else:
                high = s
            s = low + (high - low) * block(key, t, part)[cut % 4]
            part += cut % 4 == 3
            if cut == CUTS - 1:
                s = 0.0
        part += 1
        total = 0.0
        for j in range(d):
            theta[j] = max(theta[j] + s * u[j], 0.0)
            total += theta[j]
        for j in range(d):
            theta[j] /= total
        for c in range(m):
            p[c] *= 1.0 + s * q[c]


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
        new, actions = np.empty(X), np.empty(X, np.int64)
        _optimal((problem.rewards, P, problem.successors, problem.discount, goal, last.u[i], new, actions), MOST)
        last.policy[i] = np.eye(A)[actions]

    return none, draw


@compiled
def _back_up(own):  # type: ignore[no-untyped-def]
    """u <- T u less its least, and the actions that attain it; the span of the move, twice, and the goal."""
    rewards, P, successors, gamma, goal, u, new, greedy = own
    X, A, B = P.shape
    low, high = np.inf, -np.inf
    for x in range(X):
        best, b = -np.inf, 0
        for a in range(A):
            value = rewards[x, a] + gamma * _product(B, successors[x, a], P[x, a], u)
            if value > best:
                best, b = value, a
        new[x], greedy[x] = best, b
        low, high = min(low, best - u[x]), max(high, best - u[x])
    _centre(new, u)
    return high - low, goal, high - low


@compiled
def _sweep(own, goal, span):  # type: ignore[no-untyped-def]
    """Sweeps of the greedy policy, until they move by a part of the span; how many."""
    rewards, P, successors, gamma, _, u, new, greedy = own
    X, _, B = P.shape
    enough, sweeps = max(SHRINK * span, goal / 2), 0
    while span > enough:
        low, high = np.inf, -np.inf
        for x in range(X):
            a = greedy[x]
            new[x] = rewards[x, a] + gamma * _product(B, successors[x, a], P[x, a], u)
            low, high = min(low, new[x] - u[x]), max(high, new[x] - u[x])
        span = high - low
        _centre(new, u)
        sweeps += 1
    return sweeps


@compiled
def _centre(new, u):  # type: ignore[no-untyped-def]
    """u <- new, less its least."""
    least = lowest(new)
    for x in range(u.shape[0]):
        u[x] = new[x] - least


_optimal = bound(iterate, backup=_back_up, sweep=_sweep)
