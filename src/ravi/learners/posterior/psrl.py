"""PSRL: posterior sampling, the optimal policy of a kernel drawn from the posterior.

Paper: M. Strens, "A Bayesian framework for reinforcement learning", ICML 2000; I. Osband, D. Russo, B. Van Roy,
"(More) efficient reinforcement learning via posterior sampling", NeurIPS 2013; for schedule=doubling, Y. Ouyang, M.
Gagrani, A. Nayyar, R. Jain, "Learning unknown Markov decision processes: a Thompson sampling approach", NeurIPS 2017
(TSDE).
Setting: Bayesian, tabular; discounted with resets (schedule=reset-or-doubling), episodic (reset) or average reward
(doubling).
Trust: CHECKED: the posterior, its prior 1 / X and one draw an episode against public code by the first author of 2013,
the two rules that end an episode of TSDE against public code by others. The posterior draws are tested against their
exact distribution.

The prior of every row is Dirichlet(alpha_0, ..., alpha_0), over all X states or, with support=on, over the support of
the pair. In epoch k, which starts at t_k:

    P_k(. | x, a) ~ Dirichlet(alpha_0 + N'(x, a, .))
    pi_k          = the optimal policy of (P_k, r, gamma), in the average reward with 1 - 1 / (t_k + 1) for gamma, in
                    episodes by stage and without a discount (ties: the first action)

    schedule=reset-or-doubling   play pi_k until the next reset, or until the visits of a pair in the epoch reach
                                 max(1, n_{t_k}), as RAVI-KL does; without resets, that alone
    schedule=reset               play pi_k until the next reset: in episodes, the algorithm of Osband et al.
    schedule=doubling            play pi_k while t <= t_k + (t_k - t_{k-1}) and n_t <= 2 n_{t_k} for all pairs (t_0 = 0)

Constants: alpha_0 = 1 / X, `prior` sets it; with support=on 1. There is no confidence to scale. With a discount the
schedule was chosen by the regret on the suite `lead` (docs/explanation/lead.md).
Guarantee: Bayesian regret O~(H X sqrt(A T)), under the prior; with support=on O~(H sqrt(B X A T)), under that one, B
the states of the largest support. The proof compares P and P_k, which have one law given the data, through the sets of
UCRL2; a prior on the support lets these have the radii of rows with B outcomes (`ravi.learners.ucrl.ucrl`). An epoch
that ends at a doubling adds at most 2 H, and there are at most X A log2(2 T / X A) of them. In the average reward,
with schedule=doubling: O~(H X sqrt(A T)), H a bound on the spans of the biases of all kernels of the prior.
Composition: counts from 0 x posterior draw x modified policy iteration x at resets and doublings, or either.
Cost: O(1) per step. Per plan a gamma variate for every successor met of a pair, or in its support, and some twenty
uniform numbers for all other states, of which a plan draws those that its policy depends on
(`ravi.learners.posterior.draws`); as much per sweep. T / H plans, X A log2(2 T / X A) more with doublings, or
O(sqrt(X A T ln T)) of them (doubling).
Deviations: rewards are known. In episodes there is no other: pi_k is within `tolerance` of optimal for P_k. TSDE
maximises the average reward. With a discount, here that is the one of the reset chain of P_k, whose optimal policy is
the discounted one; in the average reward pi_k is found with a discount so close to 1 that its gain under P_k is within
span(h_k) / (t_k + 1) + `tolerance` / sqrt(t_k) of the best (`ravi.learners.posterior.draws`), where the paper allows 1
/ (k + 1). With a discount, V is swept until span(T V - V) gamma H <= `tolerance`: pi_k is within that of optimal for
P_k in every state, which costs at most (1 - gamma) times the tolerance a step. Where gamma is close to 1, a `tolerance`
below 2^-44 gamma H^2, which rounding could keep from being reached, is raised to that; the one in force is among the
settings. The end of a row is not drawn where it could not change a choice or a value by more than the tolerance allows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, Buffer, each, first, sync
from ravi.core import Array, Learner, Problem, Seedwise, SideInformation
from ravi.estimators.counts import Counts, next_time, tallies, tally_play
from ravi.learners.posterior.draws import TOLERANCE, draw_and_plan, goal_of, posterior, usual_prior
from ravi.learners.posterior.in_episodes import psrl_in_episodes
from ravi.optimism.known_support import on_support, support_setting, uses_support
from ravi.runtime.ranges import Fixed, Next, Policy, Value
from ravi.runtime.seedwise import compiled_learner

SCHEDULES = ("reset", "reset-or-doubling", "doubling")


class State(NamedTuple):
    data: Counts
    key: Fixed  # of the draws                           (n,)
    began: Next  # t_k                                   (n,)
    lasted: Next  # t_k - t_{k-1}                        (n,)
    u: Value  # V of the last sample, less its least     (n, X)
    policy: Policy  # (n, X, A)


def psrl(
    problem: Problem, steps: int, *, prior: float | None = None, schedule: str | None = None,
    tolerance: float = TOLERANCE, support: str = "off",
) -> Learner:  # fmt: skip
    """PSRL with the prior Dirichlet(`prior`) in every row; unless given, 1 / X, or 1 with support=on. The `schedule` is
    reset-or-doubling with a discount, doubling (TSDE) in the average reward and reset in episodes, unless given."""
    validation.steps(steps)
    usual = {"average": "doubling", "episodic": "reset"}.get(problem.criterion, "reset-or-doubling")
    schedule = validation.one_of(usual if schedule is None else schedule, SCHEDULES, "schedule")
    if schedule != "reset" and problem.criterion == "episodic":
        raise validation.InputError(f"schedule is {schedule}, and in episodes a policy lasts for one: take reset")
    if schedule == "reset" and problem.criterion == "average":
        raise validation.InputError("schedule is reset, and in the average reward nothing resets: take doubling")
    knows_support = uses_support(support)
    problem = on_support(problem, knows_support)
    X, A = problem.states, problem.actions
    alpha = usual_prior(problem, knows_support) if prior is None else validation.positive(prior, "prior")
    validation.finite_result(lambda: 10 * X * alpha, "the sum of a row of gamma variates", prior=alpha)
    validation.positive(tolerance, "tolerance")
    if problem.criterion == "episodic":
        return psrl_in_episodes(problem, knows_support, alpha, tolerance)
    goal = goal_of(problem, tolerance)
    posterior(problem, knows_support, alpha, goal, 1)  # an error where a row takes too many draws

    def init(keys: Array) -> State:
        n = len(keys)
        began, lasted = np.zeros(n, np.int64), np.zeros(n, np.int64)
        return State(
            tallies(problem, n), np.array(keys, np.uint64), began, lasted, np.zeros((n, X)), np.full((n, X, A), 1 / A)
        )

    def own(s: State, teams: int) -> Own:
        n, of = len(s.key), posterior(problem, knows_support, alpha, goal, teams)
        left = Buffer((n, 0, 0) if schedule == "reset" else (n, X, A), np.int32)
        return Own(
            of, problem.rewards[None], *s.data, s.key, s.began, s.lasted, s.u, s.policy, left, schedule == "doubling"
        )

    form = Seedwise(
        seed_plan, seed_learn, own, reset=schedule != "doubling", time=next_time,
        left=None if schedule == "reset" else lambda own: own.left,
    )  # fmt: skip
    tolerance = goal if problem.criterion == "average" else problem.discount * problem.horizon * goal
    kept = {"prior": alpha, "schedule": schedule, "tolerance": tolerance}
    return compiled_learner(
        "psrl",
        init,
        form,
        kept | support_setting(knows_support),
        side_information=SideInformation(knows_support, reads_anew=True),
    )


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
    tsde: bool  # whether they, and the deadline, are those of TSDE


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    visits, left, lasted = own.visits[i], own.left[i], t - own.began[i]
    sync()  # all have read when the last one began
    if first():
        own.began[i], own.lasted[i] = t, lasted
    for x in each(left.shape[0]):
        for a in range(left.shape[1]):
            left[x, a] = visits[x, a] + 1 if own.tsde else max(visits[x, a], 1)
    sync()
    draw_and_plan(i, own.of, own.rewards, own.moves, own.key, t, own.u, own.policy)
    return t + lasted if own.tsde else NEVER


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step; one thread's."""
    return tally_play(own.visits, own.moves, own.left, i, x, a, slot)
