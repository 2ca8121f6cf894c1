"""PSRL: posterior sampling, the optimal policy of a kernel drawn from the posterior.

Paper: M. Strens, "A Bayesian framework for reinforcement learning", ICML 2000; I. Osband, D. Russo, B. Van Roy,
"(More) efficient reinforcement learning via posterior sampling", NeurIPS 2013; for schedule=doubling, Y. Ouyang, M.
Gagrani, A. Nayyar, R. Jain, "Learning unknown Markov decision processes: a Thompson sampling approach", NeurIPS 2017
(TSDE).
Setting: Bayesian, tabular; episodic (schedule=reset) or average reward (schedule=doubling).
Trust: CHECKED: the posterior, its prior 1 / X and one draw an episode against public code by the first author of 2013,
the two rules that end an episode of TSDE against public code by others. The posterior draws are tested against their
exact distribution.

The prior of every row is Dirichlet(alpha_0, ..., alpha_0), over all X states or, with support=on, over the B stored
successors of the pair. In epoch k, which starts at t_k:

    P_k(. | x, a) ~ Dirichlet(alpha_0 + N'(x, a, .))
    pi_k          = the optimal policy of (P_k, r, gamma)                 ties: the first action

    schedule=reset      play pi_k until the next reset (a reset begins an episode of Osband et al.)
    schedule=doubling   play pi_k while t <= t_k + (t_k - t_{k-1}) and n_t <= 2 n_{t_k} for all pairs (t_0 = 0)

Constants: alpha_0 = 1 / X, `prior` sets it; with support=on 1, which lost less than 1 / B on riverswim/6 (24 for 32 at
T = 20,000) and on garnets (38 for 46). There is no confidence to scale.
Guarantee: Bayesian regret O~(H X sqrt(A T)), under the prior; with support=on O~(H sqrt(B X A T)), under that one. The
proof compares P and P_k, which have one law given the data, through the sets of UCRL2; a prior on the stored successors
lets these have the radii of rows with B outcomes (`ravi.learners.ucrl.ucrl2`).
Composition: counts from 0 x posterior draw x modified policy iteration x at resets, or doubling.
Cost: O(1) per step. Per plan X^2 A gamma variates, and X^2 A per sweep of all actions, with support=on X A B of both.
With many states (from 160 on at gamma = 0.99) and a prior as small as the usual one, rows are drawn by sticks
(`ravi.learners.posterior.sticks`): some twenty a row, of which a plan draws those that its policy depends on. T / H
plans, or O(sqrt(X A T ln T)) of them.
Deviations: rewards are known. TSDE maximises the average reward: here that of the reset chain of P_k, whose optimal
policy is the discounted one. V is swept until span(T V - V) gamma H <= `tolerance`: pi_k is within that of optimal for
P_k in every state. Where gamma is close to 1, a `tolerance` below 2^-44 gamma H^2, which rounding could keep from being
reached, is raised to that; the one in force is among the settings. It is 1e-6 unless given, and 1e-4 with draws=sticks:
then what planning costs is at most (1 - gamma) 1e-4 a step. Entries of P_k below e^-40 of the greatest of their
row are 0 (`ravi.learners.posterior.dirichlet`). With draws=sticks the end of a row is not drawn where it could not
change a choice or a value by more than the tolerance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from ravi import checks
from ravi.compiled import compiled
from ravi.core import Array, Learner, Path, Problem, Seedwise, Told, Until
from ravi.estimators.counts import EVERY_PLAY, Counts, tallies, tally, tally_play
from ravi.learners.posterior.dirichlet import AHEAD, draw_gammas, normalise
from ravi.learners.posterior.sticks import Sticks, plan_by_sticks, sticks, sticks_of
from ravi.optimism.sets import _product
from ravi.optimism.supported import is_told, outcomes, recorded
from ravi.ranges import Fixed, Next, Policy, Value
from ravi.schedules import at_reset
from ravi.teams import NEVER, Room, each, first, made, sync, team, team_max, team_min

TOLERANCE = {"entries": 1e-6, "sticks": 1e-4}  # of the value of pi_k, under P_k
SHRINK = 0.1  # of the span, by sweeps of a policy between sweeps of all actions
STICKS = len(Sticks._fields)
MANY_STICKS = 10_000  # of a row


class State(NamedTuple):
    data: Annotated[Counts, EVERY_PLAY]
    key: Fixed  # of the draws                           (n,)
    began: Next  # t_k                                   (n,)
    lasted: Next  # t_k - t_{k-1}                        (n,)
    u: Value  # V of the last sample, less its least     (n, X)
    policy: Policy  # (n, X, A)


def psrl(
    problem: Problem, steps: int, *, prior: float | None = None, schedule: str = "reset",
    tolerance: float | None = None, support: str = "off", draws: str | None = None,
) -> Learner:  # fmt: skip
    """PSRL with the prior Dirichlet(`prior`) in every row; unless given, 1 / X, or 1 with support=on. draws: entries or
    sticks; unless given, what takes less time."""
    checks.steps(steps)
    checks.one_of(schedule, ("reset", "doubling"), "schedule")
    X, A = problem.states, problem.actions
    gamma, H = problem.discount, problem.horizon
    told = is_told(support)
    alpha = usual_prior(problem, told) if prior is None else checks.positive(prior, "prior")
    checks.derived(lambda: 10 * outcomes(problem, told) * alpha, "the sum of a row of gamma variates", prior=alpha)
    how = manner(problem, told, alpha) if draws is None else checks.one_of(draws, tuple(TOLERANCE), "draws")
    goal = goal_of(problem, TOLERANCE[how] if tolerance is None else checks.positive(tolerance, "tolerance"))
    if how == "sticks":
        check_sticks(problem, told, alpha, goal)
    draw = sampled(problem, told, alpha, goal, how)

    def init(keys: Array) -> State:
        n = len(keys)
        began, lasted = np.zeros(n, np.int64), np.zeros(n, np.int64)
        return State(
            tallies(problem, n), np.array(keys, np.uint64), began, lasted, np.zeros((n, X)), np.full((n, X, A), 1 / A)
        )

    def plan(s: State) -> State:
        t = 1 + s.data.visits.sum((1, 2), dtype=np.int64)
        s.lasted[:] = t - s.began
        s.began[:] = t
        draw(problem.rewards[None], s.data, s.key, t, s.u, s.policy)
        return s

    def add(s: State, path: Path) -> State:
        tally(s.data, path)
        return s

    def doubling(s: State, time: Array) -> Until:
        return Until(reset=False, deadline=time + s.lasted + 1, visits=s.data.visits + 1)

    def own(s: State, teams: int) -> Own:
        left = (len(s.key), X, A) if schedule == "doubling" else (len(s.key), 0, 0)
        of = drawing(problem, told, alpha, goal, how, teams)
        return Own(of, problem.rewards[None], *s.data, s.key, s.began, s.lasted, s.u, s.policy, Room(left, np.int32))

    kept: dict[str, Any] = {"prior": alpha, "schedule": schedule, "tolerance": gamma * H * goal} | recorded(told)
    if how == "sticks":
        kept["draws"] = how
    reset = schedule == "reset"
    until, seedwise = at_reset() if reset else doubling, Seedwise(seed_plan, seed_learn, own, reset=reset)
    learner = Learner("psrl", init, plan, add, until, kept, told=Told(told, reads_anew=True))
    return learner.compiled_as(seedwise)


def goal_of(problem: Problem, tolerance: float = TOLERANCE["entries"]) -> float:
    """span(T u - u) at which a policy is within `tolerance` of optimal, where rounding lets it be reached."""
    return max(tolerance / (problem.discount * problem.horizon), 2.0**-44 * problem.horizon)


def usual_prior(problem: Problem, told: bool) -> float:
    """alpha_0 unless given: 1 / X over all states, 1 over the stored successors."""
    return 1.0 if told else 1 / problem.states


# rewards (n or 1, X, A), data, keys, t, u and policy, which are written: the optimal policy of a draw, and its values
Draw: TypeAlias = Callable[[Array, Counts, Array, Array, Array, Array], None]


def sampled(problem: Problem, told: bool, prior: float, goal: float, how: str) -> Draw:
    """Of every seed, a kernel from the posterior, on the stored successors where they are told, and the policy that is
    optimal for it, to span(T u - u) <= goal."""
    of = cache(lambda: made(drawing(problem, told, prior, goal, how, 1)))  # its scratch serves one call at a time

    def draw(rewards: Array, D: Counts, key: Array, t: Array, u: Array, policy: Array) -> None:
        draw_and_plan(0, len(u), of(), rewards, D.moves, key, t, u, policy)

    return draw


def manner(problem: Problem, told: bool, prior: float) -> str:
    """How a kernel is drawn: by its entries, or by sticks where at most half as many are needed."""
    goal = goal_of(problem, TOLERANCE["sticks"])
    few = not told and 2 * sticks_of(problem, concentration(problem, prior), goal) <= problem.states
    return "sticks" if few else "entries"


def check_sticks(problem: Problem, told: bool, prior: float, goal: float) -> None:
    """Refuse to draw by sticks where rows are not over all states, or would take too many."""
    if told:
        raise checks.InputError("draws=sticks draws from all states: it goes with support=off")
    if (needed := sticks_of(problem, concentration(problem, prior), goal)) > MANY_STICKS:
        raise checks.InputError(f"draws=sticks takes {needed} sticks a row with prior={prior:g}: take draws=entries")


def concentration(problem: Problem, prior: float) -> float:
    """theta = alpha_0 X, which is 1 of the usual prior, whatever rounding makes of it."""
    return 1.0 if prior == usual_prior(problem, False) else prior * problem.states


def drawing(problem: Problem, told: bool, prior: float, goal: float, how: str, teams: int) -> Posterior | Sticks:
    """What `draw_and_plan` is given."""
    if how == "sticks":
        return sticks(problem, concentration(problem, prior), goal, teams)
    return posterior(problem, told, prior, goal, teams)


class Posterior(NamedTuple):
    """What a draw by entries is made of, and scratch by team."""

    states: Array  # see `mean`
    places: Array  # of the stored successors, in a row of P   (X, A, B)
    gamma: float
    prior: float
    goal: float
    P: Any  # (teams, X, A, entries of a row)
    new: Any  # (teams, X)
    greedy: Any  # (teams, X)
    ahead: Any  # see `draw_gammas`   (teams, *AHEAD)
    shapes: Any  # likewise   (teams, entries of P)


def posterior(problem: Problem, told: bool, prior: float, goal: float, teams: int) -> Posterior:
    X, A, B = problem.successors.shape
    states, places = np.zeros(0, np.int32), problem.successors
    if told:
        states, places = places, np.tile(np.arange(B, dtype=np.int32), (X, A, 1))
    P, new, greedy = Room((teams, X, A, outcomes(problem, told))), Room((teams, X)), Room((teams, X), np.int64)
    rooms = P, new, greedy, Room((teams, *AHEAD)), Room((teams, X * A * P.shape[-1]))
    return Posterior(states, places, problem.discount, prior, goal, *rooms)


@compiled
def draw_and_plan(low, high, of, rewards, moves, key, t, u, policy):  # type: ignore[no-untyped-def]
    """P_k of seeds low, ..., high - 1, and the policy that is optimal for it; a team's."""
    if len(of) == STICKS:  # known when this is compiled: what does not apply is left out
        plan_by_sticks(low, high, of, rewards, moves, key, t, u, policy)
    else:
        _plan_by_entries(low, high, of, rewards, moves, key, t, u, policy)


@compiled
def _plan_by_entries(low, high, of, rewards, moves, key, t, u, policy):  # type: ignore[no-untyped-def]
    """All entries of P_k, and the policy that is optimal for it."""
    states, places, gamma, prior, goal, kernels, new, greedy, ahead, shapes = of
    _, X, A = policy.shape
    k = team()
    P = kernels[k]
    for i in range(low, high):
        draw_gammas(prior, moves[i], places, key[i], t[i], ahead[k], shapes[k], P)
        sync()
        for x in each(X):
            for a in range(A):
                normalise(prior, P[x, a])
        sync()
        optimal(rewards[i if rewards.shape[0] > 1 else 0], P, states, gamma, goal, u[i], new[k], greedy[k])
        for x in each(X):
            for a in range(A):
                policy[i, x, a] = 0.0
            policy[i, x, greedy[k, x]] = 1.0
        sync()


@compiled
def optimal(rewards, P, states, gamma, goal, u, new, greedy):  # type: ignore[no-untyped-def]
    """Modified policy iteration from u, in place, until span(T u - u) <= goal; `greedy` is that of the last T. A
    team's."""
    X, A = rewards.shape
    while True:
        low, high = np.inf, -np.inf
        for x in each(X):
            best, b = -np.inf, 0
            for a in range(A):
                value = rewards[x, a] + gamma * mean(P, states, x, a, u)
                if value > best:
                    best, b = value, a
            new[x], greedy[x] = best, b
            low, high = min(low, best - u[x]), max(high, best - u[x])
        span = team_max(high) - team_min(low)
        _centre(new, u)
        if span <= goal:
            return
        enough = max(SHRINK * span, goal / 2)
        while span > enough:  # sweeps of the greedy policy
            low, high = np.inf, -np.inf
            for x in each(X):
                new[x] = rewards[x, greedy[x]] + gamma * mean(P, states, x, greedy[x], u)
                low, high = min(low, new[x] - u[x]), max(high, new[x] - u[x])
            span = team_max(high) - team_min(low)
            _centre(new, u)


@compiled
def _centre(new, u):  # type: ignore[no-untyped-def]
    """u <- new, less its least."""
    least = np.inf
    for x in each(new.shape[0]):
        least = min(least, new[x])
    least = team_min(least)
    sync()  # all have read u
    for x in each(new.shape[0]):
        u[x] = new[x] - least
    sync()


@compiled
def mean(P, states, x, a, v):  # type: ignore[no-untyped-def]
    """<P(. | x, a), v>, whose entries are of `states` (X, A, B), or of all states if that is empty (0,)."""
    if states.ndim == 1:
        return dot(P[x, a], v)
    return _product(P.shape[2], states[x, a], P[x, a], v)


@compiled
def dot(p, v):  # type: ignore[no-untyped-def]
    """<p, v> in four sums, which a core can add side by side."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    size = p.shape[0]
    whole = size - size % 4
    for j in range(0, whole, 4):
        a += p[j] * v[j]
        b += p[j + 1] * v[j + 1]
        c += p[j + 2] * v[j + 2]
        d += p[j + 3] * v[j + 3]
    for j in range(whole, size):
        a += p[j] * v[j]
    return (a + b) + (c + d)


class Own(NamedTuple):
    """What `seed_plan` and `seed_learn` are given."""

    of: Any  # Posterior
    rewards: Array  # (1, X, A)
    visits: Array
    moves: Array
    key: Array
    began: Array
    lasted: Array
    u: Array
    policy: Array
    left: Any  # scratch: visits of a pair until the epoch ends   (n, X, A), or of none (n, 0, 0)


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    visits, left, lasted = own.visits[i], own.left[i], t - own.began[i]
    sync()  # all have read when the last one began
    if first():
        own.began[i], own.lasted[i] = t, lasted
    for x in each(left.shape[0]):
        for a in range(left.shape[1]):
            left[x, a] = visits[x, a] + 1
    sync()
    draw_and_plan(i, i + 1, own.of, own.rewards, own.moves, own.key, own.began, own.u, own.policy)
    return NEVER if left.shape[0] == 0 else t + lasted


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step; one thread's."""
    return tally_play(own.visits, own.moves, own.left, i, x, a, slot)
