"""What do the two linear programs of an MDP say? An oracle that shares nothing with the sweeps.

    minimise sum_x V(x) / X       subject to   E V >= r + gamma P V                        `optimal_values`
    maximise <mu, r>, mu >= 0     subject to   E^T mu = gamma P^T mu + (1 - gamma) nu_0    `optimal_occupancy`

The first has V* as its solution, whatever the positive weights; the second, its dual for the weights (1 - gamma) nu_0,
has the occupancy measures of optimal policies. HiGHS solves both.
"""

from typing import Any

import numpy as np

from ravi.core import MDP
from ravi.planning.certificates import Tables, centre, tables
from ravi.planning.sweeps import Sweep, bellman_sweep

TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the least that HiGHS takes


def linear_program(arrays: Tables, tol: float) -> Sweep:
    """One sweep of the V that the first program gives. `tol` is not asked for: HiGHS has its own."""
    X, A = arrays.rewards.shape
    W = optimal_values(arrays)
    centre(W)
    Q, TW, greedy = np.empty((X, A)), np.empty(X), np.empty(X, np.int64)
    low, high, size = bellman_sweep(0, len(W), arrays, W, Q, TW, greedy)
    return Sweep(Q, TW, greedy, low, high, size, 1)


def optimal_values(arrays: Tables) -> np.ndarray:
    """V* (X,), as the linear program has it."""
    X = arrays.rewards.shape[0]
    answer = _minimise(np.full(X, 1 / X), A_ub=-_constraints(arrays), b_ub=-arrays.rewards.ravel(), bounds=(None, None))
    return np.array(answer)


def optimal_occupancy(mdp: MDP) -> np.ndarray:
    """mu* (X, A), as the linear program has it."""
    arrays = tables(mdp)
    nu0 = mdp.initial / mdp.initial.sum()
    flow = _constraints(arrays).T
    answer = _minimise(-arrays.rewards.ravel(), A_eq=flow, b_eq=(1 - mdp.discount) * nu0, bounds=(0, None))
    return np.array(answer).reshape(mdp.states, mdp.actions)


def _constraints(arrays: Tables) -> Any:
    """E - gamma P, of shape (X A, X)."""
    from scipy import sparse

    X, A, B = arrays.transitions.shape
    pairs = np.arange(X * A + 1) * B
    P = sparse.csr_array((arrays.transitions.ravel(), arrays.successors.ravel().astype(np.int64), pairs), (X * A, X))
    E = sparse.csr_array((np.ones(X * A), np.repeat(np.arange(X), A), np.arange(X * A + 1)), (X * A, X))
    return (E - arrays.discount * P).tocsr()


def _minimise(cost: np.ndarray, **constraints: Any) -> np.ndarray:
    from scipy.optimize import linprog

    result = linprog(cost, method="highs", options=TOLERANCES, **constraints)
    if result.x is None:
        raise RuntimeError(f"HiGHS found no solution: {result.message}")
    return result.x
