"""M regularised backups on sets of kernels.

They are as in `ravi.learners.ravi_ucb.inner`, with

    TRANSITION-ESTIMATE (L + U) / 2,    BONUS gamma (U - L) / 2,    L = min_C <q, V>,  U = max_C <q, V>

for the sets C of `ravi.optimism.relative_entropy`, with radii for all values. Where rewards are known and Q is fresh,
Q = Pi_H[r + gamma U] is found without L, and Newton's method for U goes on from where it ended at the last backup.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound, compiled
from ravi._jit.teams import Buffer, each, sync, team, team_max
from ravi.core import Array, Problem
from ravi.learners.ravi_ucb.inner import Form, inner_plan
from ravi.optimism.relative_entropy import redundancy, seen
from ravi.optimism.sets import best_in_ball


class OfSets(NamedTuple):
    """The radii, scale (level + ln p_hat(y^n) / KT(y^n)), and where kernels are."""

    level: Array  # ln(X A / delta), of each seed (n,), or of all (1,)
    symbols: int
    scale: float
    support: bool  # whether kernels are on the support only

    @property
    def varied(self) -> tuple[str, ...]:
        """What is another number in every phase."""
        return ("level",)

    def form(self, problem: Problem, inner: int) -> Form:
        return ON_SETS


class Scratch(NamedTuple):
    """By team."""

    size: Any  # of the successors of a pair that were seen   (teams, X A)
    to: Any  # which                                          (teams, X A, B)
    p: Any  # and their frequencies                           (teams, X A, B)
    radius: Any  # rho / n                                    (teams, X A)
    dual: Any  # where Newton's method ended                  (teams, X A)
    y: Any  # of `shortfall`                                  (teams, X A, B)
    minus: Any  # -V                                          (teams, X)


def _scratch(problem: Problem, teams: int) -> Scratch:
    X, A, B = problem.successors.shape
    pairs, rows = Buffer((teams, X * A)), Buffer((teams, X * A, B))
    size, to = Buffer(pairs.shape, np.int32), Buffer(rows.shape, np.int32)
    return Scratch(size, to, rows, pairs, pairs, rows, Buffer((teams, X)))


@compiled
def _balls(own, i):  # type: ignore[no-untyped-def]
    """The sets of a seed, as long as its counts stand still; a team's."""
    successors, sets, room, k = own.fixed[0], own.constants, own.room, team()
    size, to, p, radius, dual = room.size[k], room.to[k], room.p[k], room.radius[k], room.dual[k]
    level = sets.level[i if sets.level.shape[0] > 1 else 0]
    for j in each(size.shape[0]):
        n = own.visits[i, j] - 1
        rho = sets.scale * (level + redundancy(own.moves[i, j], n, sets.symbols))
        size[j] = seen(successors[j], own.moves[i, j], n, rho, to[j], p[j])
        radius[j], dual[j] = rho / max(n, 1), np.nan


@compiled
def _backed_up(own, i):  # type: ignore[no-untyped-def]
    """Q of one seed, from its V; a team's."""
    (successors, gamma, H), v, Q = own.fixed, own.iterates[0][i], own.iterates[2][i]
    k, room, support, r = team(), own.room, own.constants.support, own.rewards[i if own.rewards.shape[0] > 1 else 0]
    size, to, p, radius, dual, y, minus = (
        room.size[k], room.to[k], room.p[k], room.radius[k], room.dual[k], room.y[k], room.minus[k],
    )  # fmt: skip
    top, less = -np.inf, -np.inf
    for x in each(v.shape[0]):
        top, less = max(top, v[x]), max(less, -v[x])
    top = team_max(top)
    if own.fresh and own.earned.plays.shape[0] == 0:  # U is all that is asked for
        for j in each(size.shape[0]):
            U, dual[j] = best_in_ball(successors[j], support, size[j], to[j], p[j], radius[j], v, top, dual[j], y[j])
            Q[j] = max(min(r[j] + gamma * U, H), 0.0)
        sync()
        return
    less = team_max(less)
    for x in each(v.shape[0]):
        minus[x] = -v[x]
    sync()
    for j in each(size.shape[0]):
        U, _ = best_in_ball(successors[j], support, size[j], to[j], p[j], radius[j], v, top, np.nan, y[j])
        less_L, _ = best_in_ball(successors[j], support, size[j], to[j], p[j], radius[j], minus, less, np.nan, y[j])
        L = -less_L
        Q[j] = max(min(r[j] + (U - L) / 2 * gamma + gamma * ((L + U) / 2), H), 0.0)
    sync()


@compiled
def _put(own, i, numbers):  # type: ignore[no-untyped-def]
    own.eta[i], own.constants.level[i] = numbers[0], numbers[1]


ON_SETS = Form(bound(inner_plan, prepare=_balls, back_up=_backed_up), _scratch, _put)
