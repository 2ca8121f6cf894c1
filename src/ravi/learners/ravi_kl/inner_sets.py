"""What are M regularised backups on sets of kernels? As in `ravi.learners.ravi_ucb.inner`, with

    TRANSITION-ESTIMATE (L + U) / 2,    BONUS gamma (U - L) / 2,    L = min_C <q, V>,  U = max_C <q, V>

for the sets C of `ravi.optimism.relative_entropy`, with radii for all values. Where rewards are known and Q is fresh,
Q = Pi_H[r + gamma U] is found without L, and Newton's method for U goes on from where it ended at the last backup.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array, Problem
from ravi.learners.ravi_ucb.inner import NO_REWARDS, Backups, Counted, Iterates, Played, begun, of_pairs, seed_learn
from ravi.optimism.relative_entropy import redundancy, seen, top_of
from ravi.optimism.sets import shortfall
from ravi.planning.mirror import step_in_place
from ravi.teams import NEVER, Room, each, made, sync, team, team_max


class OfSets(NamedTuple):
    """The radii, scale (level + ln p_hat(y^n) / KT(y^n)), and where kernels are."""

    level: float  # ln(X A / delta)
    symbols: int
    scale: float
    support: bool  # whether kernels are on the stored successors only


class Scratch(NamedTuple):
    """By team."""

    size: Any  # of the successors of a pair that were seen   (teams, X A)
    to: Any  # which                                          (teams, X A, B)
    p: Any  # and their frequencies                           (teams, X A, B)
    radius: Any  # rho / n                                    (teams, X A)
    dual: Any  # where Newton's method ended                  (teams, X A)
    y: Any  # of `shortfall`                                  (teams, X A, B)
    minus: Any  # -V                                          (teams, X)


def scratch(problem: Problem, teams: int) -> Scratch:
    X, A, B = problem.successors.shape
    pairs, rows = (teams, X * A), (teams, X * A, B)
    return Scratch(
        Room(pairs, np.int32), Room(rows, np.int32), Room(rows), Room(pairs), Room(pairs), Room(rows), Room((teams, X))
    )


def of_sets(problem: Problem, sets: OfSets, eta: float) -> Backups:
    """With counts from one, known rewards, and a fresh Q."""
    X, A, B = problem.successors.shape
    fixed, step = of_pairs(problem), np.atleast_1d(np.float64(eta))
    room = cache(lambda: made(scratch(problem, 1)))  # it serves one call at a time

    def backups(D: Any, at: Iterates, count: int, chosen: Array, played: Played) -> Iterates:
        V, Q = at.V.copy(), at.Q.copy()
        backups_on_sets(
            0, len(V), fixed, step, True, True, sets, D.visits.reshape(-1, X * A), D.moves.reshape(-1, X * A, B),
            (V, Q, Q.reshape(-1, X * A), at.log_policy, at.policy, *played), count, chosen, NO_REWARDS, room(),
        )  # fmt: skip
        return at._replace(V=V, Q=Q)

    return backups


class OnSets(NamedTuple):
    """What `seed_plan` and `seed_learn` are given."""

    of: Any  # OnCounts
    above: bool  # whether U is all that is asked for
    room: Any


@dataclass(frozen=True, eq=False)
class Plausible(Counted):
    """What an epoch with counts from one and sets is made of."""

    def __call__(self, state: Any, teams: int) -> Any:
        above = self.fresh and self.paid is None
        return OnSets(super().__call__(state, teams), above, scratch(self.problem, teams))

    def functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return seed_plan, seed_learn_on_sets


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    of = own.of
    begun(of, i, t)
    backups_on_sets(
        i, i + 1, of.fixed, of.eta, of.fresh, own.above, of.constants, of.visits, of.moves, of.iterates, of.inner,
        of.chosen, of.learned, own.room,
    )  # fmt: skip
    return NEVER


@compiled
def seed_learn_on_sets(own, i, t, x, a, y, slot, reset):  # type: ignore[no-untyped-def]
    """Count the play; one thread's."""
    return seed_learn(own.of, i, t, x, a, y, slot, reset)


@compiled
def backups_on_sets(  # type: ignore[no-untyped-def]
    low, high, fixed, eta, fresh, above, sets, visits, moves, iterates, count, chosen, learned, room
):
    """M backups of seeds low, ..., high - 1 on their counts, as `ravi.learners.ravi_ucb.inner.backups_on_counts`. A
    team's."""
    successors, level, symbols, scale = fixed[0], sets.level, sets.symbols, sets.scale
    V, Q, by_pair, log_policy, policy, played_V, played_policy = iterates
    k = team()
    size, to, p, radius, dual = room.size[k], room.to[k], room.p[k], room.radius[k], room.dual[k]
    for i in range(low, high):
        for j in each(size.shape[0]):
            n = visits[i, j] - 1
            rho = scale * (level + redundancy(moves[i, j], n, symbols))
            size[j] = seen(successors[j], moves[i, j], n, rho, to[j], p[j])
            radius[j], dual[j] = rho / max(n, 1), np.nan
        for m in range(count):
            if fresh:
                _backed_up(fixed, above, sets.support, learned[k], room, V[i], by_pair[i])
            step_in_place(i, i + 1, log_policy, policy, Q, eta, V)
            sync()
            if not fresh:
                _backed_up(fixed, above, sets.support, learned[k], room, V[i], by_pair[i])
            if chosen[i] == m:
                for x in each(V.shape[1]):
                    played_V[i, x] = V[i, x]
                    for a in range(policy.shape[2]):
                        played_policy[i, x, a] = policy[i, x, a]
        sync()


@compiled
def _backed_up(fixed, above, support, learned, room, v, Q):  # type: ignore[no-untyped-def]
    """Q of one seed, from its V; `learned` are rewards that are not told (X A,), or of none (0,)."""
    successors, r, gamma, H = fixed
    k = team()
    size, to, p, radius, dual, y, minus = (
        room.size[k], room.to[k], room.p[k], room.radius[k], room.dual[k], room.y[k], room.minus[k],
    )  # fmt: skip
    top, less = -np.inf, -np.inf
    for x in each(v.shape[0]):
        top, less = max(top, v[x]), max(less, -v[x])
    top = team_max(top)
    if above:
        for j in each(size.shape[0]):
            U, K = top_of(successors[j], v) if support else top, size[j]
            if K > 0:
                below, dual[j] = shortfall(K, to[j], p[j], radius[j], v, U, dual[j], y[j])
                U -= below
            Q[j] = max(min(r[j] + gamma * U, H), 0.0)
        sync()
        return
    less = team_max(less)
    for x in each(v.shape[0]):
        minus[x] = -v[x]
    sync()
    for j in each(size.shape[0]):
        U = _largest(successors[j], support, size[j], to[j], p[j], radius[j], v, top, y[j])
        L = -_largest(successors[j], support, size[j], to[j], p[j], radius[j], minus, less, y[j])
        CB = (U - L) / 2 * gamma
        if learned.shape[0] > 0:
            CB = learned[j] + CB
        Q[j] = max(min(r[j] + CB + gamma * ((L + U) / 2), H), 0.0)
    sync()


@compiled
def _largest(successors, support, K, to, p, d, v, top, y):  # type: ignore[no-untyped-def]
    """max_C <q, v> of a pair."""
    U = top_of(successors, v) if support else top
    return U - shortfall(K, to, p, d, v, U, np.nan, y)[0] if K > 0 else U
