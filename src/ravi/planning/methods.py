"""The methods of `ravi.solve`: what each does between two backups of all actions, and its start.

    value_iteration            W <- T W, centred
    policy_iteration           the values of a policy, solved for; the policy becomes greedy for them (Howard 1960)
    modified_policy_iteration  sweeps of the greedy policy (Puterman 2005, Section 6.5)
    linear_program             one backup of the V that HiGHS finds

All go through one loop, `ravi.planning.sweeps.iterate`, until the span of T W - W is small enough. The span shrinks by
gamma a sweep at least, and by the second eigenvalue of the chain where that is smaller, so there is no need to wait for
gamma^n H to vanish (Puterman 2005, Section 6.6.2).

Policy iteration: an action gives way only to one that is better by more than rounding; where none does, there is
nothing left to improve.

Modified policy iteration: a sweep of the greedy policy costs one A-th of a sweep of all actions, so the policy is swept
until the span of the change is a twentieth of what the last full sweep left. Up to constants, which change no policy
and no span, this is Puterman's from V = T 0, which needs no more full sweeps than value iteration. Where sweeps of a
policy are slow, a Krylov method solves for its values (`chains.approach`). Where many states lead to near ones only,
policies are improved within their band first (`ravi.planning.bands`).

Linear programs are an oracle that shares nothing with the sweeps:

    minimise sum_x V(x) / X       subject to   E V >= r + gamma P V                        `optimal_values`
    maximise <mu, r>, mu >= 0     subject to   E^T mu = gamma P^T mu + (1 - gamma) nu_0    `optimal_occupancy`

The first has V* as its solution, whatever the positive weights; the second, its dual for the weights (1 - gamma) nu_0,
has the occupancy measures of optimal policies.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound, compiled
from ravi.core import MDP, Array
from ravi.planning.bands import start_of
from ravi.planning.certificates import Tables, centre, span_goal, sweep_limit, tables
from ravi.planning.chains import Chain, approach, relative_values
from ravi.planning.sweeps import Sweep, bellman_sweep, iterate, no_sweeps

SHRINK = 0.05  # 0.01 to 0.2 take at most an eighth longer, on random MDPs and on grids
MOST = 1000  # sweeps of one policy
TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the least that HiGHS takes


class Work(NamedTuple):
    """The arrays that a method works on, in place."""

    tables: Tables
    tol: float
    W: Array  # V, centred                       (X,)
    TW: Array  #                                 (X,)
    Q: Array  #                                  (X, A)
    greedy: Array  #                             (X,)
    actions: Array  # of the policy at hand, -1 where there is none   (X,)
    policy: Array  # of these actions            (X, A)
    chain: Chain  # likewise


@compiled
def back_up(own):  # type: ignore[no-untyped-def]
    """A pass of T."""
    low, high, size = bellman_sweep(0, own.W.shape[0], own.tables, own.W, own.Q, own.TW, own.greedy)
    return high - low, span_goal(own.tol, size, own.tables.discount, own.tables.grain), (low, high, size)


@compiled
def improve(own):  # type: ignore[no-untyped-def]
    """A pass of T, and the better actions; no span where there is none."""
    span, goal, found = back_up(own)
    rounding, moved = own.tables.grain * (1 + found[2]), False
    for x in range(own.W.shape[0]):
        if own.Q[x, own.actions[x]] + rounding < own.TW[x]:
            own.actions[x], moved = own.greedy[x], True
    return span if moved else 0.0, goal, found


@compiled
def accept(own, goal, found):  # type: ignore[no-untyped-def]
    """W <- T W, centred."""
    for x in range(own.W.shape[0]):
        own.W[x] = own.TW[x]
    centre(own.W)
    return 0


@compiled
def evaluate_actions(own, goal, found):  # type: ignore[no-untyped-def]
    """W <- the values of the policy at hand, centred."""
    for x in range(own.W.shape[0]):
        for a in range(own.policy.shape[1]):
            own.policy[x, a] = 1.0 if a == own.actions[x] else 0.0
    W, sweeps = relative_values(own.tables, own.policy, own.W, goal / 2)
    for x in range(own.W.shape[0]):
        own.W[x] = W[x]
    return sweeps


@compiled
def sweep_greedy(own, goal, found):  # type: ignore[no-untyped-def]
    """W <- T W, swept towards the values of the greedy policy, centred."""
    follow(0, own.W.shape[0], own.tables, own.greedy, own.actions, own.chain)
    accept(own, goal, found)
    enough = max(SHRINK * (found[1] - found[0]), goal / 2)
    W, sweeps = approach(own.chain, own.tables.discount, own.W, enough, MOST)
    for x in range(own.W.shape[0]):
        own.W[x] = W[x]
    centre(own.W)
    return sweeps


@compiled
def follow(begin, end, tables, greedy, followed, chain):  # type: ignore[no-untyped-def]
    """Make `chain` that of the greedy policy: only the rows of states whose action has changed are written, of states
    begin, ..., end - 1."""
    B = tables.transitions.shape[2]
    for x in range(begin, end):
        a = greedy[x]
        if a != followed[x]:
            followed[x] = a
            chain.source[x] = tables.rewards[x, a]
            for j in range(B):
                chain.state[x * B + j] = tables.successors[x, a, j]
                chain.weight[x * B + j] = tables.transitions[x, a, j]


class Method(NamedTuple):
    """A method: its start, with the passes that this took, and what `iterate` is bound to."""

    start: Callable[[Tables], tuple[Array, int]]
    backup: Any = back_up
    sweep: Any = no_sweeps


def _zero(arrays: Tables) -> tuple[Array, int]:
    return np.zeros(len(arrays.rewards)), 0


def _by_program(arrays: Tables) -> tuple[Array, int]:
    W = optimal_values(arrays)
    centre(W)
    return W, 0


BY_NAME = {
    "modified_policy_iteration": Method(start_of, back_up, sweep_greedy),
    "policy_iteration": Method(_zero, improve, evaluate_actions),
    "value_iteration": Method(_zero, back_up, accept),
    "linear_program": Method(_by_program),
}


def last_sweep(arrays: Tables, tol: float, name: str, most: int | None = None) -> Sweep:
    """The last pass of a method, which the answer and its certificate are of. most: passes for all actions."""
    method, (X, A, B) = BY_NAME[name], arrays.transitions.shape
    by_policy, by_chain = name == "policy_iteration", B if name == "modified_policy_iteration" else 0
    W, passes = method.start(arrays)
    entries = np.empty(X * by_chain, np.uint32), np.empty(X * by_chain), np.empty(X)
    own = Work(
        arrays, tol, W, np.empty(X), np.empty((X, A)), np.empty(X, np.int64), np.full(X, -1),
        np.empty((X if by_policy else 0, A)), Chain(np.arange(X + 1, dtype=np.uint32) * by_chain, *entries),
    )  # fmt: skip
    if by_policy:
        own.actions[:] = arrays.rewards.argmax(-1)
        passes += evaluate_actions(own, span_goal(tol, 0.0, arrays.discount, arrays.grain), (0.0, 0.0, 0.0))
    loop = bound(iterate, backup=method.backup, sweep=method.sweep)
    most = 1 if name == "linear_program" else most or sweep_limit(arrays.discount, arrays.grain)
    (low, high, size), backups, sweeps = loop(own, most)
    return Sweep(own.Q, own.TW, own.greedy, low, high, size, passes + backups + sweeps)


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
