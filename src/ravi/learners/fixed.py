"""Policies that never learn, for comparison: the uniform policy, and the optimum (which knows P).

Paper: none.
Setting: any.
Composition: a fixed policy.
Cost: O(A) per step; no plans.
Trust: DERIVED: nothing is estimated.
"""

from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi.core import MDP, Array, Learner, Problem, Seedwise
from ravi.runtime.ranges import Policy
from ravi.runtime.seedwise import compiled_learner
from ravi.runtime.walk import learn
from ravi.schedules import seed_never
from ravi.validation import policy_table


class State(NamedTuple):
    policy: Policy  # (n, X, A)


def fixed(problem: Problem, policy: Array, name: str = "fixed") -> Learner:
    """Play `policy` (X, A) for ever."""
    table = validation.shaped(policy_table(policy, problem), (problem.states, problem.actions), "policy", "(X, A)")
    table = table / table.sum(-1, keepdims=True)  # rows that miss one within the tolerance

    def init(keys: Array) -> State:
        return State(np.tile(table, (len(keys), 1, 1)))

    form = Seedwise(seed_never, learn, lambda state, teams: (), reset=False, changes=True)  # nothing is learned
    return compiled_learner(name, init, form, {})


def uniform(problem: Problem, steps: int) -> Learner:
    """Every action alike: what a learner must beat.

    Guarantee: regret gap(uniform) T, exactly.
    """
    validation.steps(steps)
    shape = (problem.states, problem.actions)
    return fixed(problem, np.full(shape, 1 / problem.actions), "uniform")


def optimum(mdp: MDP, steps: int) -> Learner:
    """An optimal policy of the true MDP: no learner, the other end of the scale.

    Guarantee: regret 0, to the certified accuracy of the solver.
    """
    from ravi.planning.solver import solve

    validation.steps(steps)
    return fixed(mdp.problem, solve(mdp).policy, "optimum")
