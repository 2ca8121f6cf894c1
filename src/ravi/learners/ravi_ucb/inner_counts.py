"""What are M regularised backups on counts? As in `ravi.learners.ravi_ucb.inner`, with

    Q(x, a) = Pi_H[r + CB + gamma (c + sum_y N(x, a, y) (V(y) - c) / N(x, a))]

What does not change within an epoch is found once: the bonus is a number of its pair, times half the span of V where it
scales with that.

A single backup, or a few states, are worked on in the arrays of the learner, row by row. For several backups of many
states, an epoch first lays out what it needs with actions first: pairs are c = a X + x, and the successors that were
seen come before the others, so that the loops over those end early. LLVM then works on several pairs at once. The bits
are the same.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ravi.compiled import bound, compiled
from ravi.core import Array, Problem
from ravi.learners.ravi_ucb.inner import Form, inner_backups, inner_plan
from ravi.planning.mirror_columns import log_in_columns, step_in_columns
from ravi.teams import Room, each, first, sync, team, team_max, team_min

MANY = 32  # states from which on columns are faster


class OfCounts(NamedTuple):
    """The bonus and the estimate of counts, as numbers: what `ravi.learners.ravi_ucb.plus.tabular` is made of."""

    radius: Array  # L of `ravi.optimism.bonuses.of_span`; where not centred, beta of a bonus beta / sqrt(N)
    scale: Array  # of the bonus; both of each seed (n,), or of all (1,)
    span: float  # in place of sp(V); 0 for sp(V) itself
    centre: bool
    clip: bool
    discount: float  # what the bonus is multiplied by: gamma, or 1

    def form(self, problem: Problem, inner: int) -> Form:
        """In rows, or in columns where there are several backups and many states."""
        return COLUMNS if inner > 1 and problem.states >= MANY else ROWS


def of_widths(beta: Array) -> OfCounts:
    """CB = beta / sqrt(N) (Algorithm 2). beta: of each seed (n,), or of all (1,)."""
    return OfCounts(np.ones(1), beta, 0.0, False, False, 1.0)


class InRows(NamedTuple):
    """Scratch, by team."""

    factors: Any  # CB of a pair, in parts of half the span where it is centred   (teams, X A)
    U: Any  # V less its middle                                                   (teams, X)


class InColumns(NamedTuple):
    """Scratch, by team; pairs are a X + x."""

    factors: Any  # as of InRows                                (teams, A X)
    U: Any  # as of InRows                                      (teams, X)
    r: Any  # or the most that a pair may earn                  (teams, A X)
    visits: Any  # N(x, a)                                      (teams, A X)
    moves: Any  # N(x, a, y) > 0, then zeros                    (teams, B, A X)
    to: Any  # y                                                (teams, B, A X)
    most: Any  # how many y a pair has at most                  (teams,)
    Q: Any  #                                                   (teams, A X)
    log_policy: Any  #                                          (teams, A X)
    policy: Any  #                                              (teams, A X)
    tilted: Any  # of `step_in_columns`, as are the next        (teams, A X)
    s: Any  #                                                   (teams, X)
    share: Any  #                                               (teams, X)
    rate: Any  #                                                (teams, X)


# What a backup is, in rows and in columns.


@compiled
def _factor(constants, i, visits):  # type: ignore[no-untyped-def]
    """What the bonus of a pair is made of, as long as its counts stand still."""
    radius, scale = constants.radius, constants.scale
    far, times = radius[i if radius.shape[0] > 1 else 0], scale[i if scale.shape[0] > 1 else 0]
    if constants.centre:
        n = visits - 1.0
        return min(1 + n / (n + 1), times * (math.sqrt(2 * far * n) + 1) / (n + 1))
    return (1.0 / math.sqrt(np.float64(visits))) * (times * far)


@compiled
def _centred(V, U, constants):  # type: ignore[no-untyped-def]
    """U is V less its middle. This middle, what bonuses are in parts of, and where estimates and bonuses are cut to; a
    team's."""
    low, high = V[0], V[0]
    for x in each(V.shape[0]):
        low, high = min(low, V[x]), max(high, V[x])
    low, high = team_min(low), team_max(high)
    middle = (high + low) / 2 if constants.centre else 0.0
    for x in each(V.shape[0]):
        U[x] = V[x] - middle
    sync()
    half = (high - low if constants.span == 0.0 else constants.span) / 2 if constants.centre else 1.0
    if constants.clip:
        return middle, half, low, high, high - low
    return middle, half, -np.inf, np.inf, np.inf


@compiled
def _optimistic(r, factor, PU, centred, discount, gamma, H):  # type: ignore[no-untyped-def]
    """Q of a pair, from the estimate of P U."""
    middle, half, low, high, widest = centred
    PV, CB = min(max(middle + PU, low), high), min(half * factor, widest)
    return max(min(r + discount * CB + gamma * PV, H), 0.0)


# On the arrays of the learner.


@compiled
def _factors(own, i):  # type: ignore[no-untyped-def]
    """The bonuses of a seed; a team's."""
    factors = own.room.factors[team()]
    for p in each(factors.shape[0]):
        factors[p] = _factor(own.constants, i, own.visits[i, p])


@compiled
def _backed_up(own, i):  # type: ignore[no-untyped-def]
    """Q of one seed, from its V; a team's."""
    successors, r, gamma, H = own.fixed
    V, Q, factors, U = own.iterates[0][i], own.iterates[2][i], own.room.factors[team()], own.room.U[team()]
    visits, moves, learned, discount = own.visits[i], own.moves[i], own.learned[team()], own.constants.discount
    untold, centred = learned.shape[0] > 0, _centred(V, U, own.constants)
    for p in each(Q.shape[0]):
        PU = 0.0
        if visits[p] > 1:
            row, to = moves[p], successors[p]
            for j in range(successors.shape[1]):
                PU += row[j] * U[np.uint32(to[j])]
            PU /= visits[p]
        Q[p] = _optimistic(learned[p] if untold else r[p], factors[p], PU, centred, discount, gamma, H)
    sync()


def _scratch_of_rows(problem: Problem, teams: int) -> InRows:
    return InRows(Room((teams, problem.states * problem.actions)), Room((teams, problem.states)))


backups_in_rows = bound(inner_backups, prepared=_factors, backed_up=_backed_up)
ROWS = Form(backups_in_rows, bound(inner_plan, backups=backups_in_rows), _scratch_of_rows)


# On arrays with actions first.


@compiled
def _into_columns(own, i):  # type: ignore[no-untyped-def]
    """The arrays of a seed, in columns; a team's."""
    k, room, learned, (successors, r, _, _) = team(), own.room, own.learned[team()], own.fixed
    _, Q, _, log_policy, policy, _, _ = own.iterates
    _, X, A = Q.shape
    B, most, moves, to = successors.shape[1], 1, room.moves[k], room.to[k]
    for x in each(X):
        for a in range(A):
            p, c = x * A + a, a * X + x
            room.Q[k, c], room.log_policy[k, c], room.policy[k, c] = Q[i, x, a], log_policy[i, x, a], policy[i, x, a]
            room.r[k, c] = learned[p] if learned.shape[0] > 0 else r[p]
            room.visits[k, c] = own.visits[i, p]
            room.factors[k, c] = _factor(own.constants, i, own.visits[i, p])
            size = 0
            for j in range(B):
                n = own.moves[i, p, j]
                if n > 0:
                    moves[size, c], to[size, c] = n, successors[p, j]
                    size += 1
            for j in range(size, B):
                moves[j, c], to[j, c] = 0.0, 0
            most = max(most, size)
    most = team_max(most)
    if first():
        room.most[k] = most


@compiled
def _backed_up_in_columns(own, i):  # type: ignore[no-untyped-def]
    """Q of one seed, from its V; a team's."""
    k, room, (_, _, gamma, H), discount = team(), own.room, own.fixed, own.constants.discount
    Q, U, visits, r, factors = room.Q[k], room.U[k], room.visits[k], room.r[k], room.factors[k]
    centred = _centred(own.iterates[0][i], U, own.constants)
    moves, to = room.moves[k, 0], room.to[k, 0]
    for c in each(Q.shape[0]):
        Q[c] = moves[c] * U[np.uint32(to[c])]
    for j in range(1, room.most[k]):
        moves, to = room.moves[k, j], room.to[k, j]
        for c in each(Q.shape[0]):
            Q[c] += moves[c] * U[np.uint32(to[c])]
    for c in each(Q.shape[0]):
        Q[c] = _optimistic(r[c], factors[c], Q[c] / visits[c], centred, discount, gamma, H)
    sync()


@compiled
def _by_columns(own, i):  # type: ignore[no-untyped-def]
    """A mirror step of one seed; a team's."""
    k, room, step = team(), own.room, own.eta[i if own.eta.shape[0] > 1 else 0]
    step_in_columns(
        room.log_policy[k], room.policy[k], room.Q[k], step, own.iterates[0][i], room.tilted[k], room.s[k],
        room.share[k], room.rate[k],
    )  # fmt: skip


@compiled
def _put_aside(own, i):  # type: ignore[no-untyped-def]
    """V_j and pi_j of one seed are those that it plays; a team's."""
    V, _, _, _, _, played_V, played_policy = own.iterates
    policy, (_, X, A) = own.room.policy[team()], played_policy.shape
    for x in each(X):
        played_V[i, x] = V[i, x]
        for a in range(A):
            played_policy[i, x, a] = policy[a * X + x]


@compiled
def _out_of_columns(own, i):  # type: ignore[no-untyped-def]
    """The iterates of a seed, back where they are kept; a team's."""
    k, room, (_, Q, _, log_policy, policy, _, _) = team(), own.room, own.iterates
    _, X, A = Q.shape
    for x in each(X):
        for a in range(A):
            c = a * X + x
            Q[i, x, a], before, policy[i, x, a] = room.Q[k, c], policy[i, x, a], room.policy[k, c]
            log_policy[i, x, a] = log_in_columns(log_policy[i, x, a], before, room.log_policy[k, c], policy[i, x, a])


def _scratch_of_columns(problem: Problem, teams: int) -> InColumns:
    X, A, B = problem.successors.shape
    rows, pairs, slots = Room((teams, X)), Room((teams, X * A)), Room((teams, B, X * A))
    to, most = Room(slots.shape, np.int32), Room((teams,), np.int64)
    return InColumns(pairs, rows, pairs, pairs, slots, to, most, pairs, pairs, pairs, pairs, rows, rows, rows)


backups_in_columns = bound(
    inner_backups, prepared=_into_columns, backed_up=_backed_up_in_columns, stepped=_by_columns, put_aside=_put_aside,
    finished=_out_of_columns,
)  # fmt: skip
COLUMNS = Form(backups_in_columns, bound(inner_plan, backups=backups_in_columns), _scratch_of_columns)
