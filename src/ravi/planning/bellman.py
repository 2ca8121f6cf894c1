"""The operators of Section 2: P, P^T, E, E^T and the truncation Pi_H, for one function or a batch; and predecessors.

(P f)(x, a)   = sum_x' P(x' | x, a) f(x')               `expect`
(P^T mu)(x')  = sum_x,a P(x' | x, a) mu(x, a)           `flow`
(E f)(x, a)   = f(x)                                    `extend`
(E^T mu)(x)   = sum_a mu(x, a)                          `marginal`
(Pi_M f)(.)   = max(min(f(.), M), 0)                    `truncate`
"""

from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, over_seeds
from ravi.core import MDP, Array


def expect(mdp: MDP, V: Array) -> Array:
    """P V, of shape (..., X, A) for V of shape (..., X)."""
    batch = np.ascontiguousarray(V, dtype=np.float64).reshape(-1, mdp.states)
    PV = np.empty((len(batch), mdp.states, mdp.actions))
    expect_in_place(0, len(batch), mdp.successors, mdp.transitions, batch, PV)
    return PV.reshape(*V.shape[:-1], mdp.states, mdp.actions)


def expect_with(successors: Array, weights: Array, V: Array) -> Array:
    """sum_j weights[..., x, a, j] V[..., successors[x, a, j]]: P V of kernels (n, X, A, B) on the successors.

    Parameters
    ----------
    successors
        Those of the problem, of shape (X, A, B).
    weights
        Of each successor, of shape (X, A, B) or (n, X, A, B).
    V
        Values, of shape (X,) or (n, X).

    Returns
    -------
    Array
        Of shape (X, A) or (n, X, A).

    Examples
    --------
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/3")
    >>> expect_with(mdp.successors, mdp.transitions, np.ones((4, 3))).shape
    (4, 3, 2)
    """
    return (weights * V[..., successors]).sum(-1)


@compiled
def expect_in_place(low, high, successors, transitions, V, PV):  # type: ignore[no-untyped-def]
    """P V (n, X, A) of rows low, ..., high - 1 of V (n, X); a team's."""
    X, A, B = transitions.shape
    for i in range(low, high):
        v = V[i]
        for x in each(X):
            for a in range(A):
                row, to = transitions[x, a], successors[x, a]
                total = 0.0
                for j in range(B):
                    total += row[j] * v[np.uint32(to[j])]  # unsigned: no test for negative indices
                PV[i, x, a] = total


def flow(mdp: MDP, mu: Array) -> Array:
    """P^T mu, of shape (..., X) for mu of shape (..., X, A)."""
    batch = np.ascontiguousarray(mu, dtype=np.float64).reshape(-1, mdp.states, mdp.actions)
    return _flow(mdp.successors, mdp.transitions, batch).reshape(*mu.shape[:-2], mdp.states)


@compiled
def _flow(successors, transitions, mu):  # type: ignore[no-untyped-def]
    X, A, B = transitions.shape
    n = mu.shape[0]
    out = np.zeros((n, X))
    for i in range(n):
        for x in range(X):
            for a in range(A):
                mass = mu[i, x, a]
                if mass != 0.0:
                    for j in range(B):
                        out[i, successors[x, a, j]] += transitions[x, a, j] * mass
    return out


def extend(f: Array, actions: int) -> Array:
    """E f, of shape (..., X, A)."""
    return np.broadcast_to(f[..., None], (*f.shape, actions))


def marginal(mu: Array) -> Array:
    """E^T mu, of shape (..., X)."""
    return mu.sum(-1)


def truncate(f: Array, M: float) -> Array:
    """Pi_M f."""
    return np.clip(f, 0.0, M)


def backup(r: Array, CB: Array, gamma: float, PV: Array, H: float) -> Array:
    """Q_{k+1} = Pi_H[r + CB_k + gamma P_hat_k V_k], into the memory of PV."""
    over_seeds(backup_in_place, PV, r, CB, gamma, PV, H)
    return PV


@compiled
def backup_in_place(low, high, r, CB, gamma, PV, H):  # type: ignore[no-untyped-def]
    """`backup` of rows low, ..., high - 1. CB: of each of them (n, X, A), or of all (1, X, A). A team's."""
    _, X, A = PV.shape
    for i in range(low, high):
        more = CB[i if CB.shape[0] > 1 else 0]
        for x in each(X):
            for a in range(A):
                PV[i, x, a] = max(min(r[x, a] + more[x, a] + gamma * PV[i, x, a], H), 0.0)


class Predecessors(NamedTuple):
    """Entries start[y] to start[y + 1] are those of state y."""

    start: Array  # (X + 1,)
    pair: Array  # x A + a                                   (X A B,)
    slot: Array  # the place of y among its successors       (X A B,)


def predecessors(successors: Array) -> Predecessors:
    """The pairs that lead to each state, in ascending order."""
    start, entries = entries_of(successors)
    return Predecessors(start, *(part.astype(np.int32) for part in np.divmod(entries, successors.shape[2])))


def entries_of(successors: Array) -> tuple[Array, Array]:
    """Which entries of the successors (X, A, B), one after the other, are each state: start (X + 1,), and the entries,
    those of state y from start[y] to start[y + 1], in ascending order."""
    kind, flat = np.int32 if successors.size < 2**31 else np.int64, successors.reshape(-1)
    start = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=len(successors)))])
    return start.astype(kind), np.argsort(flat, kind="stable").astype(kind)


def deterministic(actions: Array, A: int) -> Array:
    """The policy (X, A) that plays these actions (X,)."""
    policy = np.zeros((len(actions), A))
    policy[np.arange(len(actions)), actions] = 1.0
    return policy
