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
from ravi.runtime.ranges import Age, Policy
from ravi.runtime.seedwise import compiled_learner
from ravi.runtime.walk import learn
from ravi.schedules import seed_never
from ravi.validation import policy_table


class State(NamedTuple):
    policy: Policy  # (n, X, A)


class Staged(NamedTuple):
    policy: Policy  # by stage, in episodes    (n, S, X, A)
    age: Age  # steps since the reset          (n,)


def fixed(problem: Problem, policy: Array, name: str = "fixed") -> Learner:
    """Play `policy` for ever: (X, A), or in episodes by stage, (S, X, A)."""
    shape, S = (problem.states, problem.actions), problem.episode
    if S is None or np.ndim(policy) == 2:
        table, S = validation.check_shape(policy_table(policy, problem), shape, "policy", "(X, A)"), 0
    else:
        table = validation.check_shape(policy_table(policy, problem), (S, *shape), "policy", "(S, X, A)")
    table = table / table.sum(-1, keepdims=True)  # rows that miss one within the tolerance

    def init(keys: Array) -> State | Staged:
        n = len(keys)
        rows = np.tile(table, (n, *[1] * table.ndim))
        return Staged(rows, np.zeros(n, np.int32)) if S else State(rows)

    form = Seedwise(seed_never, learn, lambda state, teams: (), reset=False, changes=True)  # nothing is learned
    return compiled_learner(name, init, form, {}, stages=S)


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
