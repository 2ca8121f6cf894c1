"""PSRL in episodes: one kernel is drawn for an episode, and its optimal policy by stage is played (`psrl`).

Rows are drawn until what is left of each is worth at most `tolerance` in an episode, and that goes to the state of the
last stick: with w_0 left, two kernels differ by w_0 S in the value of a step and by w_0 S^2 in that of an episode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, Buffer
from ravi.core import Array, Learner, Problem, Seedwise, SideInformation
from ravi.estimators.counts import Counts, tallies
from ravi.learners.episodic.core import count_step
from ravi.learners.posterior.draws import draw_and_plan_backward, posterior
from ravi.optimism.known_support import support_setting
from ravi.runtime.ranges import Age, Fixed, Policy
from ravi.runtime.seedwise import compiled_learner


class State(NamedTuple):
    data: Counts
    key: Fixed  # of the draws             (n,)
    policy: Policy  # by stage             (n, S, X, A)
    age: Age  # steps since the reset      (n,)


def psrl_in_episodes(problem: Problem, knows_support: bool, prior: float, tolerance: float) -> Learner:
    """PSRL, whose options are checked."""
    X, A, S = problem.states, problem.actions, problem.episode or 0
    tail = tolerance / S**2
    posterior(problem, knows_support, prior, tail, 1)  # an error where a row takes too many draws

    def init(keys: Array) -> State:
        n = len(keys)
        age, policy = np.zeros(n, np.int32), np.full((n, S, X, A), 1 / A)
        return State(tallies(problem, n), np.array(keys, np.uint64), policy, age)

    def own(s: State, teams: int) -> tuple[Any, ...]:
        of, values = posterior(problem, knows_support, prior, tail, teams), Buffer((teams, 2, X))
        return *s.data, of, problem.rewards, s.key, s.policy, values, Buffer((len(s.key), 0, 0), np.int32)

    kept = {"prior": prior, "schedule": "reset", "tolerance": tolerance, "stages": S} | support_setting(knows_support)
    form = Seedwise(seed_plan, count_step, own, time=lambda s: 1 + s.data.visits.sum((1, 2), dtype=np.int64))
    side = SideInformation(knows_support, reads_anew=True)
    return compiled_learner("psrl", init, form, kept, stages=S, side_information=side)


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An episode of one seed; a team's."""
    _, moves, of, rewards, key, policy, values, _ = own
    draw_and_plan_backward(i, of, rewards, moves, key, t, values, policy)
    return NEVER
