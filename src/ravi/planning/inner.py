"""What are M regularised backups on data that stand still? One call: on counts one compiled loop, else M of each part.

    Q_j = Pi_H[r + CB(D, V_{j-1}) + gamma P_hat(D) V_{j-1}]
    V_j(x) = (1/eta) log sum_a pi_{j-1}(a|x) exp(eta Q_j(x, a)),    pi_j = pi_{j-1} exp(eta (Q_j - V_j))

Where Q is not fresh, each of the M begins with the Q at hand, and ends with that of the next. A seed's V_j and pi_j are
put aside at the j that was drawn for it.

On counts, what does not change within an epoch is found once: the bonus is a number of its pair, times half the span
of V where it scales with that. The parts of `of_parts`, called one after another, are the oracle of the compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array, Bonus, Data, Estimator, Problem
from ravi.optimism.relative_entropy import seen, top_of
from ravi.optimism.sets import shortfall
from ravi.planning.bellman import backup
from ravi.planning.mirror import mirror_step, step_in_place


class Iterates(NamedTuple):
    """Where the sequence stands. Log pi and pi are written in place."""

    V: Array  # V_j             (n, X)
    Q: Array  # Q_j, or Q_{j+1} where it is not fresh   (n, X, A)
    log_policy: Array  # log pi_j   (n, X, A)
    policy: Array  # pi_j       (n, X, A)


class Played(NamedTuple):
    """Of the backup that was drawn; written in place."""

    V: Array  # V_m             (n, X)
    policy: Array  # pi_m       (n, X, A)


# D, iterates, how many, at which to put aside (n,), where to -> the iterates after them
Backups: TypeAlias = Callable[[Data, Iterates, int, Array, Played], Iterates]


def of_parts(problem: Problem, estimator: Estimator, bonus: Bonus, eta: float, fresh: bool) -> Backups:
    """With any estimator and any bonus."""
    r, gamma, H = problem.rewards, problem.discount, problem.horizon

    def backed_up(D: Data, V: Array) -> Array:
        phi = estimator.embed(V)
        PV = estimator.expect(D, phi)  # TRANSITION-ESTIMATE
        return backup(r, bonus(D, phi), gamma, PV, H)  # BONUS

    def backups(D: Data, at: Iterates, count: int, chosen: Array, played: Played) -> Iterates:
        V, Q, log_policy, policy = at
        for j in range(count):
            if fresh:
                Q = backed_up(D, V)
            V, log_policy, policy = mirror_step(log_policy, policy, Q, eta, in_place=True)
            if not fresh:
                Q = backed_up(D, V)
            now = chosen == j
            if now.any():
                played.V[now], played.policy[now] = V[now], policy[now]
        return Iterates(V, Q, log_policy, policy)

    return backups


class OfCounts(NamedTuple):
    """The bonus and the estimate of counts, as numbers: what `ravi.learners.ravi_ucb_plus.tabular` is made of."""

    radius: float  # L of `ravi.optimism.bonuses.of_span`; where not centred, beta of a bonus beta / sqrt(N)
    scale: float  # of the bonus
    span: float  # in place of sp(V); 0 for sp(V) itself
    centre: bool
    clip: bool
    discount: float  # what the bonus is multiplied by: gamma, or 1


def of_counts(problem: Problem, constants: OfCounts, eta: float, fresh: bool) -> Backups:
    """With counts from one: all M in one compiled loop, seed by seed."""
    r, gamma, H, successors = problem.rewards, problem.discount, problem.horizon, problem.successors

    def backups(D: Any, at: Iterates, count: int, chosen: Array, played: Played) -> Iterates:
        V, Q = at.V.copy(), at.Q.copy()
        _of_counts(
            successors, r, gamma, H, eta, fresh, *constants, D.visits, D.moves, V, Q, at.log_policy, at.policy, count,
            chosen, played.V, played.policy,
        )  # fmt: skip
        return at._replace(V=V, Q=Q)

    return backups


@compiled
def _factors(visits, radius, scale, centre, out):  # type: ignore[no-untyped-def]
    """CB of each pair of a seed, in parts of half the span where it is centred."""
    X, A = visits.shape
    for x in range(X):
        for a in range(A):
            if centre:
                n = visits[x, a] - 1.0
                out[x, a] = min(1 + n / (n + 1), scale * (np.sqrt(2 * radius * n) + 1) / (n + 1))
            else:
                out[x, a] = (1.0 / np.sqrt(np.float64(visits[x, a]))) * (scale * radius)


@compiled
def _backed_up(  # type: ignore[no-untyped-def]
    successors, r, gamma, H, span, centre, clip, discount, factors, visits, moves, V, U, Q
):
    """Q of one seed, from its V."""
    X, A = r.shape
    B = successors.shape[2]
    low, high = V[0], V[0]
    for x in range(1, X):
        low, high = min(low, V[x]), max(high, V[x])
    middle = (high + low) / 2 if centre else 0.0
    for x in range(X):
        U[x] = V[x] - middle
    half = (high - low if span == 0.0 else span) / 2 if centre else 1.0
    for x in range(X):
        for a in range(A):
            PV = 0.0
            if visits[x, a] > 1:
                row, to = moves[x, a], successors[x, a]
                for j in range(B):
                    PV += row[j] * U[np.uint32(to[j])]
                PV /= visits[x, a]
            PV = middle + PV
            CB = half * factors[x, a]
            if clip:
                PV, CB = min(max(PV, low), high), min(CB, high - low)
            CB = discount * CB
            Q[x, a] = max(min(r[x, a] + CB + gamma * PV, H), 0.0)


@compiled
def _of_counts(  # type: ignore[no-untyped-def]
    successors, r, gamma, H, eta, fresh, radius, scale, span, centre, clip, discount, visits, moves, V, Q, log_policy,
    policy, count, chosen, played_V, played_policy,
):  # fmt: skip
    n, X, A = Q.shape
    factors, U = np.empty((X, A)), np.empty(X)
    for i in range(n):
        _factors(visits[i], radius, scale, centre, factors)
        one = slice(i, i + 1)
        for j in range(count):
            if fresh:
                _backed_up(
                    successors, r, gamma, H, span, centre, clip, discount, factors, visits[i], moves[i], V[i], U, Q[i]
                )
            V[i] = step_in_place(log_policy[one], policy[one], Q[one], eta)[0]
            if not fresh:
                _backed_up(
                    successors, r, gamma, H, span, centre, clip, discount, factors, visits[i], moves[i], V[i], U, Q[i]
                )
            if chosen[i] == j:
                played_V[i] = V[i]
                played_policy[i] = policy[i]


def of_sets(problem: Problem, radius: Callable[[Data], Array], support: bool, eta: float) -> Backups:
    """With counts from one and the sets of `ravi.optimism.relative_entropy`, of radii `radius` (n, X, A); fresh."""
    r, gamma, H, successors = problem.rewards, problem.discount, problem.horizon, problem.successors

    def backups(D: Any, at: Iterates, count: int, chosen: Array, played: Played) -> Iterates:
        V, Q = at.V.copy(), at.Q.copy()
        _of_sets(
            successors, r, gamma, H, eta, support, D.visits, D.moves, radius(D), V, Q, at.log_policy, at.policy, count,
            chosen, played.V, played.policy,
        )  # fmt: skip
        return at._replace(V=V, Q=Q)

    return backups


@compiled
def _of_sets(  # type: ignore[no-untyped-def]
    successors, r, gamma, H, eta, support, visits, moves, rho, V, Q, log_policy, policy, count, chosen, played_V,
    played_policy,
):  # fmt: skip
    n, X, A, B = moves.shape
    size, to, p = np.empty((X, A), np.int32), np.empty((X, A, B), np.int32), np.empty((X, A, B))
    dual, y = np.empty((X, A)), np.empty(B)
    for i in range(n):
        one, v = slice(i, i + 1), V[i]
        for x in range(X):
            for a in range(A):
                plays = visits[i, x, a] - 1
                size[x, a] = seen(successors[x, a], moves[i, x, a], plays, rho[i, x, a], to[x, a], p[x, a])
                dual[x, a] = np.nan
        for j in range(count):
            highest = v.max()
            for x in range(X):
                for a in range(A):
                    U, K = top_of(successors[x, a], v) if support else highest, size[x, a]
                    if K > 0:
                        d = rho[i, x, a] / (visits[i, x, a] - 1)
                        below, dual[x, a] = shortfall(K, to[x, a], p[x, a], d, v, U, dual[x, a], y)
                        U -= below
                    Q[i, x, a] = max(min(r[x, a] + gamma * U, H), 0.0)
            v[:] = step_in_place(log_policy[one], policy[one], Q[one], eta)[0]
            if chosen[i] == j:
                played_V[i] = v
                played_policy[i] = policy[i]
