"""Estimators of tables: counts of plays and moves, N and N', with P_hat = N'/N (Section 5.1, Algorithm 2).

    N_1(x, a) = 1,  N'_1(x, a, x') = 0
    N_{t+1}(x_t, a_t) = N_t(x_t, a_t) + 1,  N'_{t+1}(x_t, a_t, y_t) = N'_t(x_t, a_t, y_t) + 1
    P_hat_k(x' | x, a) = N'_{T_k}(x, a, x') / N_{T_k}(x, a)

Since N starts at one, P_hat is a sub-probability: its rows sum to n / (n + 1), and an unvisited row is zero. The
paper means it so, and Lemma 5.1 pays for it. The width is N^{-1/2}.

The learners that the paper is compared with count plays as they are, from n = 0, with p_hat = N' / max(n, 1):
`tallies`. What lies beyond the stored successors has count 0; it is for the learner to allow for it. A learner that
knows of no resets counts moves x_t, a_t -> x_{t+1}, to wherever a reset may have led: counts of the reset chain
P~ = gamma P + (1 - gamma) 1 nu_0^T, which may end in any state (`reset_tallies`, N' of shape (X, A, X)).

With the kernel itself in place of an estimate (`known`) RAVI-UCB becomes MD-MPI, its regularised planner.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import MDP, Array, Estimator, Path, Problem
from ravi.planning import bellman
from ravi.runtime.ranges import Count, Range

VISITS = Range(
    lambda N, f, begun, held: begun + held.moves.sum(-1) == N, "the number of moves that were counted from the pair"
)


class Counts(NamedTuple):
    """Counts of plays and moves.

    Attributes
    ----------
    visits
        N(x, a), or n(x, a) where counts begin at zero, of shape (n, X, A).
    moves
        N'(x, a, x') on the successors, of shape (n, X, A, B).

    Examples
    --------
    >>> import ravi
    >>> data = tallies(ravi.mdp("riverswim/3").problem, 4)
    >>> data.visits.shape, data.moves.shape
    ((4, 3, 2), (4, 3, 2, 3))
    """

    visits: Annotated[Array, VISITS]
    moves: Count


def tallies(problem: Problem, n: int) -> Counts:
    """Plays from zero: n(x, a) = 0 and N'(x, a, x') = 0, for n seeds.

    Parameters
    ----------
    problem
        The problem.
    n
        The number of seeds.

    Returns
    -------
    Counts

    Examples
    --------
    >>> import ravi
    >>> tallies(ravi.mdp("riverswim/3").problem, 4).visits.sum()
    np.int64(0)
    """
    shape = problem.successors.shape
    return Counts(np.zeros((n, *shape[:2]), np.int32), np.zeros((n, *shape), np.int32))


def next_time(s: Any) -> Array:
    """t of the next step, by the plays that the data of a state count from zero   (n,)."""
    now: Array = 1 + s.data.visits.sum((1, 2), dtype=np.int64)
    return now


def reset_tallies(problem: Problem, n: int) -> Counts:
    """The same, with all states as successors."""
    X, A = problem.states, problem.actions
    return Counts(np.zeros((n, X, A), np.int32), np.zeros((n, X, A, X), np.int32))


def all_states(X: int, A: int) -> Array:
    """Every state as a successor of every pair: (X, A, X)."""
    states = np.ascontiguousarray(np.broadcast_to(np.arange(X, dtype=np.int32), (X, A, X)))
    states.setflags(write=False)  # as those of a problem: compiled functions are the same for both
    return states


def tally(D: Counts, path: Path) -> Counts:
    """Count the steps of a path, in place.

    Parameters
    ----------
    D
        The counts.
    path
        The path.

    Returns
    -------
    Counts
        D itself.

    Examples
    --------
    >>> import ravi
    >>> from ravi.core import Path
    >>> data = tallies(ravi.mdp("riverswim/3").problem, 1)
    >>> step = np.array([[2]]), np.array([[1]]), np.array([[1]]), np.array([[1]]), np.array([[False]])
    >>> path = Path(*step, length=np.array([1]), time=np.array([1]), after=np.array([1]))
    >>> tally(data, path).visits[0, 2]
    array([0, 1], dtype=int32)
    """
    _add(D.visits, D.moves, path.state, path.action, path.slot, path.length)
    return D


def counts(problem: Problem) -> Estimator:
    """P_hat by counts, N_1 = 1, with the width N^{-1/2}.

    Parameters
    ----------
    problem
        The problem.

    Returns
    -------
    Estimator

    Examples
    --------
    >>> import ravi
    >>> estimator = counts(ravi.mdp("riverswim/3").problem)
    >>> estimator.width(estimator.init(1), np.zeros((1, 3))).min()
    np.float64(1.0)
    """
    successors = problem.successors

    def init(n: int) -> Counts:
        none = tallies(problem, n)
        return none._replace(visits=none.visits + 1)  # N_1 = 1

    def expect(D: Counts, V: Array) -> Array:
        return _expect(successors, D.visits, D.moves, V)

    return Estimator(init, lambda V: V, expect, lambda D, V: _width(D.visits), lambda D, V, path: tally(D, path))


class Nothing(NamedTuple):
    """No data: there is nothing to learn."""


def known(mdp: MDP) -> Estimator:
    """The kernel itself, of width 0."""

    def width(D: Nothing, V: Array) -> Array:
        return np.zeros((V.shape[0], mdp.states, mdp.actions))

    def expect(D: Nothing, V: Array) -> Array:
        return bellman.expect(mdp, V)

    return Estimator(lambda n: Nothing(), lambda V: V, expect, width, lambda D, V, path: D)


@compiled
def _expect(successors, visits, moves, V):  # type: ignore[no-untyped-def]
    n, X, A, B = moves.shape
    PV = np.empty((n, X, A))
    for i in range(n):
        v = V[i]
        for x in range(X):
            for a in range(A):
                total = 0.0
                if visits[i, x, a] > 1:
                    row, to = moves[i, x, a], successors[x, a]
                    for j in range(B):
                        total += row[j] * v[np.uint32(to[j])]
                    total /= visits[i, x, a]
                PV[i, x, a] = total
    return PV


@compiled
def _width(visits):  # type: ignore[no-untyped-def]
    N = visits.ravel()
    w = np.empty(N.size)
    for p in range(N.size):
        w[p] = 1.0 / np.sqrt(np.float64(N[p]))
    return w.reshape(visits.shape)


@compiled
def _add(visits, moves, state, action, slot, length):  # type: ignore[no-untyped-def]
    for i in range(state.shape[0]):
        for l in range(length[i]):
            x, a = state[i, l], action[i, l]
            visits[i, x, a] += 1
            moves[i, x, a, slot[i, l]] += 1


@compiled
def tally_play(visits, moves, left, i, x, a, slot):  # type: ignore[no-untyped-def]
    """Count one step of seed i; whether it was the last of those that are `left` of its pair (n, X, A), or of none
    (n, 0, 0). All is read before any is written, so that a GPU waits once."""
    n, m = visits[i, x, a], moves[i, x, a, slot]
    more = left[i, x, a] - 1 if left.shape[1] > 0 else 1
    visits[i, x, a], moves[i, x, a, slot] = n + 1, m + 1
    if left.shape[1] > 0:
        left[i, x, a] = more
    return more <= 0
