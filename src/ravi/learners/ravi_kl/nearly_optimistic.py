"""The policy that RAVI-KL plays: the most optimistic one, or a candidate that is nearly as optimistic.

    greedy      the policy of U(rho), the largest optimistic return (`ravi.learners.ravi_kl.plausible`)
    half        that of U(rho / 2),                                       if its own is at least U(rho) - eps
    posterior   the optimal policy of a kernel drawn as PSRL draws it,    if its own is at least U(rho) - eps

with eps = slack (U(rho) - U(rho / 2)), rho = scale (ln(m / delta_t) + kappa(n)) and m the number of bounds that must
hold. Own optimistic returns are those at rho. In the average reward returns are gains, and a candidate is played only
where its optimistic biases at rho and at rho / 2 have spans of at most twice that of the greedy policy at rho.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound, compiled
from ravi._jit.teams import NEVER, Buffer, each, first, sync, team, team_max, team_min, team_sum
from ravi.core import Array, Problem
from ravi.estimators.counts import tally_play
from ravi.estimators.rewarded import earn_step
from ravi.learners.posterior.draws import draw_and_plan, goal_of, posterior, usual_prior
from ravi.learners.ravi_kl import plausible
from ravi.learners.ravi_kl.plausible import Sets
from ravi.learners.ravi_kl.plausible import plan as best_policy
from ravi.optimism.relative_entropy import most_of_coins

SPANS = 2.0  # of the most optimistic bias: those of a candidate have at most that span


class Numbers(NamedTuple):
    gamma: float
    bounds: int  # m
    size: float  # H X A, or X A in the average reward, of delta_t
    scale: float
    reward_scale: float
    tolerance: float  # plans end at a span of this / sqrt(t)
    slack: float
    support: bool


class Scratch(NamedTuple):
    of_sets: Any  # by team
    of_draws: Any  # by team: Posterior; () where no candidate is drawn
    of_coins: Any  # (teams, 2, X, 2); none where rewards are known
    rewards: Any  # at most; those of the problem where they are known    (n or 1, X, A)
    drawn: Any  # the actions of a candidate that is drawn                (n, X)
    left: Any  # visits of a pair until the epoch ends                     (n, X, A)


def scratch(problem: Problem, knows_support: bool, draws: bool, unknown: bool, n: int, teams: int) -> Scratch:
    """knows_support: whether the supports are known; unknown: whether the rewards are not."""
    X, A, prior = problem.states, problem.actions, usual_prior(problem, knows_support)
    return Scratch(
        plausible.scratch(problem, teams),
        posterior(problem, knows_support, prior, goal_of(problem), teams) if draws else (),
        Buffer((teams, 2, X, 2) if unknown else (teams, 0, 0, 0)),
        Buffer((n, X, A)) if unknown else problem.rewards[None].copy(), Buffer((n, X), np.int64),
        Buffer((n, X, A), np.int32),
    )  # fmt: skip


class Own(NamedTuple):
    """What a plan is made of."""

    successors: Array
    initial: Array
    numbers: Any
    visits: Array
    moves: Array
    earned: Any
    best: Any  # Warm
    half: Any  # Warm
    drawn: Any  # Drawn
    own: Array
    stage: Array
    policy: Array
    room: Any  # Scratch


@compiled
def greedy(own, i):  # type: ignore[no-untyped-def]
    """The most optimistic policy."""
    level, _, tol = _begin(own, i, own.best.visits)
    _plan(own, i, own.best, 1.0, level, tol)
    _play(own.best.choice[i], own.policy[i])


@compiled
def half(own, i):  # type: ignore[no-untyped-def]
    """That of half the radii, where it is nearly as optimistic."""
    level, _, tol = _begin(own, i, own.half.visits)
    _nearly(own, i, own.half.choice, level, tol)


@compiled
def drawn(own, i):  # type: ignore[no-untyped-def]
    """A candidate from the posterior, where it is nearly as optimistic."""
    draw, room = own.drawn, own.room
    level, t, tol = _begin(own, i, own.half.visits)
    draw_and_plan(i, room.of_draws, room.rewards, own.moves, draw.key, t, draw.u, draw.policy)
    for x in each(draw.policy.shape[1]):
        room.drawn[i, x] = 0
        for a in range(draw.policy.shape[2]):
            if draw.policy[i, x, a] == 1.0:
                room.drawn[i, x] = a
    sync()
    _nearly(own, i, room.drawn, level, tol)


@compiled
def _begin(own, i, planned):  # type: ignore[no-untyped-def]
    """The level of the sets, t of the next step, and the tolerance of plans. Where the level is another one, no bound
    on what a pair is worth holds on: neither of the best policy, nor those whose visits are `planned`."""
    _, bounds, size, _, reward_scale, tolerance, _, _ = own.numbers
    best, visits, stage, room = own.best, own.visits, own.stage, own.room
    _, X, A = visits.shape
    plays = 0
    for x in each(X):
        for a in range(A):
            plays += visits[i, x, a]
    t = team_sum(plays) + 1
    now = _stage(t)
    if now != stage[i]:
        for x in each(X):
            for a in range(A):
                best.visits[i, x, a] = -1
                planned[i, x, a] = -1
    level = math.log(bounds / min(1.0, math.sqrt(size / 2.0**now)))
    if own.earned.plays.shape[0] > 0:
        most_of_coins(
            own.earned.plays[i], own.earned.total[i], level, reward_scale, room.of_coins[team()], room.rewards[i]
        )
    sync()  # all have read the stage
    if first():
        stage[i] = now
    sync()
    return level, t, tolerance / math.sqrt(t)


@compiled
def _stage(t):  # type: ignore[no-untyped-def]
    """The least k with t <= 2^k."""
    k = 0
    while (1 << k) < t:
        k += 1
    return k


@compiled
def _plan(own, i, warm, share, level, tol):  # type: ignore[no-untyped-def]
    """The most optimistic policy at a share of the radii, and its optimistic return."""
    sets = Sets(own.room.rewards, own.visits, own.moves, level, own.numbers.scale, own.numbers.support)
    return best_policy(
        i, own.successors, own.initial, own.numbers.gamma, sets, share, tol,
        (warm.u, warm.dual, warm.bound, warm.visits), warm.choice, False, own.room.of_sets,
    )  # fmt: skip


@compiled
def _nearly(own, i, choice, level, tol):  # type: ignore[no-untyped-def]
    """Play the candidate `choice` (n, X) where its own optimistic return is at least U(rho) - eps, else the best
    policy. The candidate's return is computed only where it is another policy."""
    slack, best = own.numbers.slack, own.best
    half_return = _plan(own, i, own.half, 0.5, level, tol)
    best_return = _plan(own, i, best, 1.0, level, tol)
    differ = 0
    for x in each(choice.shape[1]):
        if choice[i, x] != best.choice[i, x]:
            differ = 1
    chosen = best.choice[i]
    if team_max(differ) > 0:
        sets = Sets(own.room.rewards, own.visits, own.moves, level, own.numbers.scale, own.numbers.support)
        its_return = best_policy(
            i, own.successors, own.initial, own.numbers.gamma, sets, 1.0, tol,
            (own.own, best.dual, best.bound, best.visits), choice, True, own.room.of_sets,
        )  # fmt: skip
        if half_return > -np.inf and its_return >= best_return - slack * (best_return - half_return):
            if own.numbers.gamma < 1.0:
                chosen = choice[i]
            else:
                most = SPANS * _span(own.best.u[i])
                if max(_span(own.own[i]), _span(own.half.u[i])) <= most:
                    chosen = choice[i]
    _play(chosen, own.policy[i])


@compiled
def _span(u):  # type: ignore[no-untyped-def]
    """max u - min u."""
    low, high = np.inf, -np.inf
    for x in each(u.shape[0]):
        low, high = min(low, u[x]), max(high, u[x])
    return team_max(high) - team_min(low)


@compiled
def _play(choice, policy):  # type: ignore[no-untyped-def]
    """The policy of one seed that takes these actions."""
    X, A = policy.shape
    for x in each(X):
        for a in range(A):
            policy[x, a] = 1.0 if a == choice[x] else 0.0
    sync()


choose = greedy  # `bound` puts that of a learner here


def _seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed; it ends at a reset, or when the visits of a pair within it reach those before."""
    visits, left = own.visits[i], own.room.left[i]
    for x in each(visits.shape[0]):
        for a in range(visits.shape[1]):
            left[x, a] = max(visits[x, a], 1)
    choose(own, i)
    return NEVER


def plan_with(candidate: str | None) -> Callable[..., Any]:
    """The plan of one seed."""
    return bound(_seed_plan, choose={None: greedy, "half": half, "posterior": drawn}[candidate])


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step, and what it earns where rewards are not known; one thread's."""
    plays, total, key, table, law = own.earned
    if plays.shape[0] > 0:
        earn_step(plays, total, key, table, law, i, t, x, a)
    return tally_play(own.visits, own.moves, own.room.left, i, x, a, slot)
