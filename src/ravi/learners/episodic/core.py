"""What learners in episodes share: the stage of a step, counting, and the check of the criterion."""

from __future__ import annotations

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Problem
from ravi.estimators.counts import tally_play
from ravi.learners.q.core import best


def stages_of(problem: Problem, learner: str) -> int:
    """The length of an episode; an error where the problem has none."""
    if problem.episode is None:
        raise validation.InputError(
            f"{learner} is for episodes, and {problem.name} has none: add criterion=episodic,episode=10 to its id"
        )
    return problem.episode


@compiled
def stage_of(stage, i, S, reset):  # type: ignore[no-untyped-def]
    """The stage of a step of seed i, which is counted. A stream may go on beyond the last one, which then lasts."""
    h = stage[i]
    stage[i] = 0 if reset else h + 1
    return min(h, S - 1)


@compiled
def count_step(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step, where `own` begins with visits and moves and ends with room for no visits that are left; one
    thread's."""
    tally_play(own[0], own[1], own[-1], i, x, a, slot)
    return False


@compiled
def play_greedily(row, policy):  # type: ignore[no-untyped-def]
    """max row, and the policy (A,) that plays the first action that attains it."""
    chosen = best(row)
    for a in range(row.shape[0]):
        policy[a] = 1.0 if a == chosen else 0.0
    return row[chosen]
