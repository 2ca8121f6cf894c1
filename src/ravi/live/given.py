"""What is known of an environment before the first step? A problem that is given, or the environment's own table."""

from __future__ import annotations

import warnings
from math import isclose

from ravi import validation
from ravi.core import MDP, Problem, a_problem
from ravi.live.environment import Environment
from ravi.live.rewards import MODES
from ravi.validation import InputError


def problem_of(
    stream: Environment,
    problem: Problem | None,
    discount: float | None,
    rewards: str | None,
    reward_range: tuple[float, float] | None,
) -> Problem | None:
    """What is known, if anything is; checked against the environment."""
    if problem is None:
        assert discount is not None
        if rewards is None or validation.one_of(rewards, MODES, "rewards") != "known":
            return None
        if stream.discovered:
            raise InputError("rewards='known' are those of a table, and discovered states have numbers of their own")
        told = table_of(stream, discount).problem
        if reward_range is not None and validation.units(reward_range, "reward_range") != told.units:
            raise InputError(f"reward_range is {reward_range}, but the table of {stream.name} has {told.units}")
        return told
    a_problem(problem)
    if discount is not None and not isclose(validation.probability(discount, "discount"), problem.discount):
        raise InputError(f"discount is {discount:g}, but {problem.name} has {problem.discount:g}")
    if reward_range is not None and validation.units(reward_range, "reward_range") != problem.units:
        raise InputError(f"reward_range is {reward_range}, but {problem.name} has {problem.units}")
    if stream.discovered:
        raise InputError(f"{problem.name} numbers its states, and discovered states have numbers of their own")
    if (stream.states, stream.actions) != (problem.states, problem.actions):
        raise InputError(
            f"{stream.name} has {stream.states} states and {stream.actions} actions ({stream.termination}), but "
            f"{problem.name} has {problem.states} and {problem.actions}"
        )
    return problem


def range_of(stream: Environment) -> tuple[float, float] | None:
    """The least and the largest reward, from the environment's own table, if it has one."""
    try:
        return table_of(stream, 0.5).units
    except InputError:
        return None


def table_of(stream: Environment, discount: float) -> MDP:
    """The environment's own table. Its time limit, if it has one, cuts the stream, and is no part of the problem."""
    from ravi.mdps.from_gymnasium import TimeLimitDropped, mdp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TimeLimitDropped)
        return mdp(stream.env, discount, termination=stream.termination)
