"""What do the least-squares learners of linear MDPs share? Their data, their steps, and when they plan.

All keep Lambda = lambda I + sum phi phi^T and M = sum phi e_y^T (`ravi.estimators.linear`), with phi(x, a) the
problem's features of pairs or, where it has none, one coordinate for every pair, and plan by a backward pass over
stages (`ravi.learners.linear.least_squares`). One regression serves all stages: the kernel is the same at each. They
plan

    reset         at every reset
    determinant   at the step with det Lambda > 2 det Lambda_k: then (d / ln 2) ln(1 + T / (lambda d)) times at most
                  (and after 2^20 steps, where runs can be stopped)
    block         at every reset, and at every age that is a multiple of the number of stages

Cost: a step costs d^2, or d with one-hot features; a plan inverts Lambda in d^3 (less where
it has zeros) and makes its pass. Nothing grows with T.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array, Learner, Path, Problem, Schedule, Until, Walk
from ravi.estimators.gram import Gram, gram, gram_walk, renew
from ravi.estimators.linear import add as add_path
from ravi.estimators.linear import features_of
from ravi.runtime.ranges import Age, Fixed, NextPlay, Number, Policy
from ravi.schedules import at_reset, whenever


class State(NamedTuple):
    data: Gram
    values: Number  # V_h of the stages                       (n, S, X)
    policy: Policy  # greedy, by age or stationary            (n, ages, X, A) or (n, X, A)
    age: Age  # steps since the last reset                    (n,)
    time: NextPlay  # t of the next step                      (n,)
    key: Fixed  #                                             (n,)


Pass = Callable[[State], None]  # makes the values and the policy of a state whose data are renewed, in place


def least_squares(
    problem: Problem, make: Pass, *, name: str, stages: int, ages: int, regularization: float, replan: str,
    settings: dict[str, Any],
) -> Learner:  # fmt: skip
    """The learner that plans `stages` stages by `make`, and plays them by age, or without ages (0) the first."""
    phi = features_of(problem)
    X, A, d = problem.states, problem.actions, phi.shape[-1]

    def init(keys: Array) -> State:
        n = len(keys)
        data = gram(n, d, regularization, X, moves=True)
        policy = np.full((n, ages, X, A) if ages else (n, X, A), 1 / A)
        age, time = np.zeros(n, np.int32), np.ones(n, np.int64)
        return State(data, np.zeros((n, stages, X)), policy, age, time, np.array(keys, np.uint64))

    def plan(s: State) -> State:
        renew(s.data)
        make(s)
        return s

    def add(s: State, path: Path) -> State:
        if replan != "determinant":
            add_path(s.data, phi, path)
        return s._replace(time=s.time + path.length)

    own: Walk | None = gram_walk(lambda s: (s.data, phi, None)) if replan == "determinant" else None
    until = {"reset": at_reset(), "determinant": whenever(), "block": _at_block(stages)}[replan]
    made = settings | {"regularization": regularization, "dimension": d, "stages": stages, "replan": replan}
    return Learner(name, init, plan, add, until, made, walk=own, stages=ages)


def _at_block(length: int) -> Schedule:
    """At the next reset, or after `length` steps."""

    def schedule(state: State, time: Array) -> Until:
        return Until(reset=True, deadline=time + length)

    return schedule
