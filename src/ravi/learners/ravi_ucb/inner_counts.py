"""M regularised backups on counts.

They are as in `ravi.learners.ravi_ucb.inner`, with

    Q(x, a) = Pi_H[r + CB + gamma (c + sum_y N(x, a, y) (V(y) - c) / N(x, a))]

What does not change within an epoch is found once: the bonus is a number of its pair, times half the span of V where it
scales with that.

A single backup, or a few states, are worked on in the arrays of the learner, row by row. For several backups of many
states, an epoch first lays out what it needs with actions first: pairs are a W + c, c being the column of a state, and
the successors that were seen come before the others, so that the loops over those end early. LLVM then works on several
pairs at once. States whose actions are all alike, as long as none was played, come last: a backup is one number there,
and a mirror step changes nothing. The bits are the same.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound, compiled
from ravi._jit.teams import Buffer, each, first, sync, team, team_max, team_min
from ravi.core import Array, Problem
from ravi.learners.ravi_ucb.inner import Form, inner_plan
from ravi.planning.mirror import in_columns, in_rows, step_in_columns

MANY = 32  # states from which on columns are faster
LINE = 8  # numbers in a line of the cache


class OfCounts(NamedTuple):
    """The bonus and the estimate of counts, as numbers: what `ravi.learners.ravi_ucb.plus.tabular` is made of."""

    radius: Array  # L of `ravi.optimism.bonuses.of_span`; where not centred, beta of a bonus beta / sqrt(N)
    scale: Array  # of the bonus; both of each seed (n,), or of all (1,)
    span: float  # in place of sp(V); 0 for sp(V) itself
    centre: bool
    clip: bool
    discount: float  # what the bonus is multiplied by: gamma, or 1

    @property
    def varied(self) -> tuple[str, ...]:
        """What is another number in every phase."""
        return ("radius", "scale")

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
    """Scratch, by team; pairs are a W + c, for column c of W."""

    factors: Any  # as of InRows                                (teams, A W)
    U: Any  # as of InRows, of columns                          (teams, X)
    r: Any  # or the most that a pair may earn                  (teams, A W)
    visits: Any  # N(x, a)                                      (teams, A W)
    moves: Any  # N(x, a, y) > 0, then zeros                    (teams, B, A W)
    to: Any  # the column of y                                  (teams, B, A W)
    column: Any  # of a state                                   (teams, X)
    sizes: Any  # columns of states whose actions differ; how many y a pair has at most   (teams, 2)
    Q: Any  #                                                   (teams, A W)
    top: Any  # the largest Q of a state                        (teams, W)
    V: Any  #                                                   (teams, W)
    policy: Any  # of `step_in_columns`, as are the next        (teams, A W)
    tilted: Any  #                                              (teams, A W)
    s: Any  #                                                   (teams, W)
    share: Any  #                                               (teams, W)
    far: Any  #                                                 (teams, W)


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
def optimistic_Q(r, factor, PU, centred, discount, gamma, H):  # type: ignore[no-untyped-def]
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
    (successors, gamma, H), r = own.fixed, own.rewards[i if own.rewards.shape[0] > 1 else 0]
    V, Q, factors, U = own.iterates[0][i], own.iterates[2][i], own.room.factors[team()], own.room.U[team()]
    visits, moves, discount, centred = (
        own.visits[i],
        own.moves[i],
        own.constants.discount,
        _centred(V, U, own.constants),
    )
    for p in each(Q.shape[0]):
        PU = 0.0
        if visits[p] > 1:
            row, to = moves[p], successors[p]
            for j in range(successors.shape[1]):
                PU += row[j] * U[np.uint32(to[j])]
            PU /= visits[p]
        Q[p] = optimistic_Q(r[p], factors[p], PU, centred, discount, gamma, H)
    sync()


def _scratch_of_rows(problem: Problem, teams: int) -> InRows:
    return InRows(Buffer((teams, problem.states * problem.actions)), Buffer((teams, problem.states)))


@compiled
def _put(own, i, numbers):  # type: ignore[no-untyped-def]
    own.eta[i], own.constants.radius[i], own.constants.scale[i] = numbers[0], numbers[1], numbers[2]


ROWS = Form(bound(inner_plan, prepare=_factors, back_up=_backed_up), _scratch_of_rows, _put)


# On arrays with actions first.


@compiled
def _into_columns(own, i):  # type: ignore[no-untyped-def]
    """The arrays of a seed, in columns; a team's."""
    k, room, (successors, _, _), most = team(), own.room, own.fixed, 1
    r = own.rewards[i if own.rewards.shape[0] > 1 else 0]
    V, Q, _, log_policy, policy, _, _ = own.iterates
    moves, to, column, (_, X, A), W = room.moves[k], room.to[k], room.column[k], Q.shape, room.V.shape[1]
    for x in each(X):
        column[x] = 1 if _are_alike(own, i, x, r) else 0
    sync()
    if first():
        low, high = 0, X
        for x in range(X):
            if column[x] == 0:
                column[x], low = low, low + 1
            else:
                high -= 1
                column[x] = high
        room.sizes[k, 0] = low
    sync()
    for x in each(X):
        top = -np.inf
        for a in range(A):
            p, c, size = x * A + a, a * W + column[x], 0
            room.Q[k, c], room.policy[k, c] = Q[i, x, a], in_columns(log_policy[i, x, a], policy[i, x, a])
            room.r[k, c], room.visits[k, c] = r[p], own.visits[i, p]
            room.factors[k, c] = _factor(own.constants, i, own.visits[i, p])
            for j in range(successors.shape[1]):
                n = own.moves[i, p, j]
                if n > 0:
                    moves[size, c], to[size, c] = n, column[successors[p, j]]
                    size += 1
            for j in range(size, successors.shape[1]):
                moves[j, c], to[j, c] = 0.0, 0
            most, top = max(most, size), max(top, Q[i, x, a])
        room.V[k, column[x]], room.top[k, column[x]] = V[i, x], top
    most = team_max(most)
    if first():
        room.sizes[k, 1] = most
    sync()


@compiled
def _are_alike(own, i, x, r):  # type: ignore[no-untyped-def]
    """Whether no action of a state was played, and all have the same reward, and the same Q where that is at hand."""
    Q, A, alike = own.iterates[1], own.iterates[1].shape[2], True
    for a in range(A):
        p = x * A + a
        alike &= own.visits[i, p] == 1 and r[p] == r[x * A]
        alike &= own.fresh or Q[i, x, a] == Q[i, x, 0]
    return alike


@compiled
def _backed_up_in_columns(own, i):  # type: ignore[no-untyped-def]
    """Q of one seed, from its V; a team's."""
    k, room, (_, gamma, H), discount = team(), own.room, own.fixed, own.constants.discount
    U, top, rows, most, W = room.U[k], room.top[k], room.sizes[k, 0], room.sizes[k, 1], room.V.shape[1]
    centred = _centred(room.V[k, : U.shape[0]], U, own.constants)
    for c in each(U.shape[0]):
        top[c] = optimistic_Q(room.r[k, c], room.factors[k, c], 0.0, centred, discount, gamma, H) if c >= rows else 0.0
    for b in range(0, room.Q.shape[1], W):
        Q, visits = room.Q[k, b : b + rows], room.visits[k, b : b + rows]
        r, factors = room.r[k, b : b + rows], room.factors[k, b : b + rows]
        for j in range(most):
            moves, to = room.moves[k, j, b : b + rows], room.to[k, j, b : b + rows]
            for c in each(rows):
                Q[c] = (Q[c] if j > 0 else 0.0) + moves[c] * U[np.uint32(to[c])]
        for c in each(rows):
            Q[c] = optimistic_Q(r[c], factors[c], Q[c] / visits[c], centred, discount, gamma, H)
        for c in each(rows):
            top[c] = max(top[c], Q[c])


@compiled
def _by_columns(own, i):  # type: ignore[no-untyped-def]
    """A mirror step of one seed; a team's."""
    k, room, step = team(), own.room, own.eta[i if own.eta.shape[0] > 1 else 0]
    V, top, rows = room.V[k], room.top[k], room.sizes[k, 0]
    step_in_columns(
        rows, room.policy[k], room.Q[k], top, step, V, room.tilted[k], room.s[k], room.share[k], room.far[k]
    )
    for c in each(room.U.shape[1]):
        V[c] = V[c] if c < rows else top[c]


@compiled
def _put_aside(own, i):  # type: ignore[no-untyped-def]
    """V_j and pi_j of one seed are those that it plays; a team's."""
    k, room, (_, _, _, _, _, V, policy) = team(), own.room, own.iterates
    for x in each(V.shape[1]):
        c = room.column[k, x]
        V[i, x] = room.V[k, c]
        for a in range(policy.shape[2]):
            policy[i, x, a] = max(room.policy[k, a * room.V.shape[1] + c], 0.0)
    sync()  # all have read, before the next step


@compiled
def _out_of_columns(own, i):  # type: ignore[no-untyped-def]
    """The iterates of a seed, back where they are kept; a team's."""
    k, room, (V, Q, _, log_policy, policy, _, _) = team(), own.room, own.iterates
    sync()  # all have backed up
    for x in each(V.shape[1]):
        c, W = room.column[k, x], room.V.shape[1]
        V[i, x] = room.V[k, c]
        for a in range(Q.shape[2]):
            Q[i, x, a] = room.Q[k, a * W + c] if c < room.sizes[k, 0] else room.top[k, c]
            log_policy[i, x, a], policy[i, x, a] = in_rows(
                log_policy[i, x, a], policy[i, x, a], room.policy[k, a * W + c]
            )


def _scratch_of_columns(problem: Problem, teams: int) -> InColumns:
    X, A, B = problem.successors.shape
    W = (-(-X // LINE) | 1) * LINE  # an odd number of lines: actions of a state do not compete for a place in the cache
    rows, pairs, slots = Buffer((teams, W)), Buffer((teams, A * W)), Buffer((teams, B, A * W))
    states, sizes = Buffer((teams, X), np.int32), Buffer((teams, 2), np.int64)
    return InColumns(
        pairs, Buffer((teams, X)), pairs, pairs, slots, Buffer(slots.shape, np.int32), states, sizes, pairs, rows,
        rows, pairs, pairs, rows, rows, rows,
    )  # fmt: skip


COLUMNS = Form(
    bound(
        inner_plan, prepare=_into_columns, back_up=_backed_up_in_columns, step=_by_columns, put_aside=_put_aside,
        finish=_out_of_columns,
    ),
    _scratch_of_columns, _put,
)  # fmt: skip
