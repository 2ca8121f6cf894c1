"""Least-squares learners of linear MDPs: their data, their steps, when they plan, and the backward pass of a plan.

All keep Lambda = lambda I + sum phi phi^T and M = sum phi e_y^T (`ravi.estimators.linear`), with phi(x, a) the
problem's features of pairs or, where it has none, one coordinate for every pair, and plan by a backward pass over
stages. One regression serves all stages: the kernel is the same at each. They plan

    reset         at every reset
    determinant   at the step with det Lambda > 2 det Lambda_k: then (d / ln 2) ln(1 + T / (lambda d)) times at most
                  (and after 2^20 steps, where runs can be stopped)
    block         at every reset, and at every age that is a multiple of the number of stages

Cost: a step costs d^2, or d with one-hot features; a plan inverts Lambda in d^3 (less where
it has zeros) and makes its pass. Nothing grows with T.

The backward pass recomputes all past targets. With the data of `ravi.estimators.linear`, K = Lambda^{-1} M (d, X), so
that w_f = K f for every f, V_S given, and for h = S - 1, ..., 0:

    m_h = min V_{h+1} where the pass is centred, else 0
    w_h = gamma K (V_{h+1} - m_h) + xi_h                           xi_h: noise, for randomised methods
    Q_h(x, a) = Pi_[0, cap][r(x, a) + CB(x, a) + gamma m_h + <phi(x, a), w_h>]
    V_h(x) = max_a Q_h(x, a), then at most min V_h + span

The greedy policy of stage h is that of age h; ties go to the first action. Where a plan of S stages serves for more
ages than S it is repeated: age S is stage 0 again. A policy with one stage is that of h = 0.

K and phi are read by their non-zero entries, so that d = X A one-hot features cost no more than counts. A pass costs
S (nnz K + nnz phi + X A). It ends early where V_h = V_{h+1} to the last bit and there is no noise: all earlier stages
are then the same.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Path, Problem, Schedule, Until, Walk
from ravi.estimators.gram import Gram, gram, gram_walk, renew
from ravi.estimators.linear import add as add_path
from ravi.estimators.linear import add_product, features_of
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


NO_NOISE = np.zeros((0, 0, 0))


class Backups(NamedTuple):
    """The numbers that a pass is made with."""

    discount: float  # gamma, or 1 for undiscounted stages
    cap: float  # the largest value
    last: float  # V_S
    span: float = np.inf
    centred: bool = False


class Lists(NamedTuple):
    """phi by its non-zero entries: coordinate j of pair[e] is value[e], for e in start[j], ..., start[j + 1] - 1."""

    start: Array  # (d + 1,)
    pair: Array  # x * A + a
    value: Array


def lists(phi: Array) -> Lists:
    """The non-zero entries of features (1, X, A, d), by coordinate."""
    rows = phi.reshape(-1, phi.shape[-1])
    coordinate, pair = np.nonzero(rows.T)
    start = np.searchsorted(coordinate, np.arange(rows.shape[1] + 1))
    return Lists(start, pair, np.ascontiguousarray(rows[pair, coordinate]))


def backward(
    r: Array, phi: Lists, D: Gram, bonus: Array, backups: Backups, values: Array, policy: Array, noise: Array = NO_NOISE
) -> None:
    """V_0, ..., V_{S-1} into `values` (n, S, X), the greedy policies into `policy` (n, ages, X, A) or (n, X, A).

    bonus: (n, X, A). noise: xi (n, S, d), or none.
    """
    staged = policy if policy.ndim == 4 else policy[:, None]
    _backward(r, *phi, D.inverse, D.moves, bonus, noise, *backups, values, staged)


@compiled
def _backward(  # type: ignore[no-untyped-def]
    r, start, pair, value, inverse, moves, bonus, noise, gamma, cap, last, span, centred, values, policy,
):  # fmt: skip
    n, S, X = values.shape
    A, d, ages = r.shape[1], inverse.shape[1], policy.shape[1]
    noisy = noise.shape[0] > 0
    K = np.empty((d, X))
    begin, place, entry = np.empty(X + 1, np.int64), np.empty(X * d, np.int64), np.empty(X * d)
    w, base, Q, V, best = np.empty(d), np.empty(X * A), np.empty(X * A), np.empty(X), np.empty(X, np.int64)
    U = np.empty(X)
    for i in range(n):
        K[:] = 0.0
        add_product(inverse[i], moves[i], K)
        kept = 0
        for y in range(X):  # the entries of K, state by state
            begin[y] = kept
            for c in range(d):
                if K[c, y] != 0.0:
                    place[kept], entry[kept] = c, K[c, y]
                    kept += 1
        begin[X] = kept
        for x in range(X):
            for a in range(A):
                base[x * A + a] = r[x, a] + bonus[i, x, a]
        V[:] = last
        same = False
        for h in range(S - 1, -1, -1):
            if not same:
                m = 0.0
                if centred:
                    m = V[0]
                    for x in range(1, X):
                        m = min(m, V[x])
                w[:] = 0.0
                for y in range(X):
                    f = gamma * (V[y] - m)
                    if begin[y + 1] - begin[y] == d:  # no zeros: the same sums, without looking up places
                        row = entry[begin[y] : begin[y + 1]]
                        for j in range(d):
                            w[j] += row[j] * f
                    elif f != 0.0:
                        for e in range(begin[y], begin[y + 1]):
                            w[place[e]] += entry[e] * f
                if noisy:
                    for j in range(d):
                        w[j] += noise[i, h, j]
                Q[:] = base
                for j in range(d):
                    f = w[j]
                    if start[j + 1] - start[j] == X * A:
                        row = value[start[j] : start[j + 1]]
                        for p in range(X * A):
                            Q[p] += f * row[p]
                    elif f != 0.0:
                        for e in range(start[j], start[j + 1]):
                            Q[pair[e]] += f * value[e]
                same = not noisy
                for x in range(X):
                    top, choice = -1.0, 0
                    for a in range(A):
                        q = min(max(Q[x * A + a] + gamma * m, 0.0), cap)
                        if q > top:
                            top, choice = q, a
                    U[x], best[x] = top, choice
                least = U[0]
                for x in range(1, X):
                    least = min(least, U[x])
                for x in range(X):
                    v = min(U[x], least + span)
                    same = same and v == V[x]
                    V[x] = v
            values[i, h] = V
            for j in range(h, ages, S):
                for x in range(X):
                    for a in range(A):
                        policy[i, j, x, a] = 0.0
                    policy[i, j, x, best[x]] = 1.0
