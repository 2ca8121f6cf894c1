"""The counts of a learner that knows of no resets: moves x_t, a_t -> x_{t+1}, to wherever a reset may have led.

These are counts of the reset chain P~ = gamma P + (1 - gamma) 1 nu_0^T, and may end in any state: N' is (X, A, X).
"""

import numpy as np

from ravi.core import Array, Problem
from ravi.estimators.counts import Counts


def all_states(X: int, A: int) -> Array:
    """Every state as a successor of every pair: (X, A, X)."""
    states = np.ascontiguousarray(np.broadcast_to(np.arange(X, dtype=np.int32), (X, A, X)))
    states.setflags(write=False)  # as those of a problem: compiled functions are the same for both
    return states


def reset_tallies(problem: Problem, n: int) -> Counts:
    X, A = problem.states, problem.actions
    return Counts(np.zeros((n, X, A), np.int32), np.zeros((n, X, A, X), np.int32))
