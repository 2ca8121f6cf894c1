"""What are M regularised backups on counts that stand still? One compiled loop.

    Q_j = Pi_H[r + CB(D, V_{j-1}) + gamma P_hat(D) V_{j-1}]
    V_j(x) = (1/eta) log sum_a pi_{j-1}(a|x) exp(eta Q_j(x, a)),    pi_j = pi_{j-1} exp(eta (Q_j - V_j))

Where Q is not fresh, each of the M begins with the Q at hand, and ends with that of the next. A seed's V_j and pi_j are
put aside at the j that was drawn for it.

What does not change within an epoch is found once: the bonus is a number of its pair, times half the span of V where it
scales with that. M plans of `ravi.learners.ravi_ucb.ravi_ucb`, one after another, are the oracle of the loop.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ravi.compiled import bound, compiled
from ravi.core import Array, Data, Learner, Problem, Seedwise
from ravi.planning.mirror import step_in_place
from ravi.random import PICK, REWARD, uniform
from ravi.teams import NEVER, Room, each, first, made, sync, team, team_max, team_min


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


class OfCounts(NamedTuple):
    """The bonus and the estimate of counts, as numbers: what `ravi.learners.ravi_ucb.plus.tabular` is made of."""

    radius: Array  # L of `ravi.optimism.bonuses.of_span`; where not centred, beta of a bonus beta / sqrt(N)
    scale: Array  # of the bonus; both of each seed (n,), or of all (1,)
    span: float  # in place of sp(V); 0 for sp(V) itself
    centre: bool
    clip: bool
    discount: float  # what the bonus is multiplied by: gamma, or 1

    def loops(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """`inner_backups` and `inner_plan` on these."""
        return backups_on_counts, seed_plan

    def scratch(self, problem: Problem, teams: int) -> Any:
        return Scratch(Room((teams, problem.states * problem.actions)), Room((teams, problem.states)))


def of_widths(beta: Array) -> OfCounts:
    """CB = beta / sqrt(N) (Algorithm 2). beta: of each seed (n,), or of all (1,)."""
    return OfCounts(np.ones(1), beta, 0.0, False, False, 1.0)


def of_counts(problem: Problem, constants: Any, eta: Array, fresh: bool) -> Backups:
    """With counts from one: all M in one compiled loop, seed by seed. eta: of each seed (n,), or of all (1,)."""
    (loop, _), counted = constants.loops(), Counted(problem, constants, eta, fresh, 0, "last", lambda of: of)
    room = cache(lambda: made(constants.scratch(problem, 1)))  # it serves one call at a time

    def backups(D: Any, at: Iterates, count: int, chosen: Array, played: Played) -> Iterates:
        at = at._replace(V=at.V.copy(), Q=at.Q.copy())
        loop(0, len(at.V), counted.laid(OfSeeds(D, at, played), chosen, NO_REWARDS, room()), count)
        return at

    return backups


class Scratch(NamedTuple):
    """Of counts, by team."""

    factors: Any  # CB of a pair, in parts of half the span where it is centred   (teams, X A)
    U: Any  # V less its middle                                                   (teams, X)


@compiled
def _factors(own, i):  # type: ignore[no-untyped-def]
    """What the bonuses of a seed are made of, as long as its counts stand still; a team's."""
    radius, scale, _, centre, _, _ = own.constants
    out = own.room.factors[team()]
    far, times = radius[i if radius.shape[0] > 1 else 0], scale[i if scale.shape[0] > 1 else 0]
    for p in each(out.shape[0]):
        if centre:
            n = own.visits[i, p] - 1.0
            out[p] = min(1 + n / (n + 1), times * (math.sqrt(2 * far * n) + 1) / (n + 1))
        else:
            out[p] = (1.0 / math.sqrt(np.float64(own.visits[i, p]))) * (times * far)


@compiled
def _backed_up(fixed, constants, fresh, visits, moves, learned, room, V, Q):  # type: ignore[no-untyped-def]
    """Q of one seed, from its V; a team's."""
    successors, r, gamma, H = fixed
    _, _, span, centre, clip, discount = constants
    U, factors = room.U[team()], room.factors[team()]
    P, B = successors.shape
    low, high = V[0], V[0]
    for x in each(V.shape[0]):
        low, high = min(low, V[x]), max(high, V[x])
    low, high = team_min(low), team_max(high)
    middle = (high + low) / 2 if centre else 0.0
    for x in each(V.shape[0]):
        U[x] = V[x] - middle
    sync()
    half = (high - low if span == 0.0 else span) / 2 if centre else 1.0
    untold = learned.shape[0] > 0
    for p in each(P):
        PV = 0.0
        if visits[p] > 1:
            row, to = moves[p], successors[p]
            for j in range(B):
                PV += row[j] * U[np.uint32(to[j])]
            PV /= visits[p]
        PV = middle + PV
        CB = half * factors[p]
        if clip:
            PV, CB = min(max(PV, low), high), min(CB, high - low)
        CB = discount * CB
        if untold:
            CB = learned[p] + CB
        Q[p] = max(min(r[p] + CB + gamma * PV, H), 0.0)
    sync()


prepared, backed_up, backups = _factors, _backed_up, _factors  # `bound` puts those of a learner here


def inner_backups(low, high, own, count):  # type: ignore[no-untyped-def]
    """M backups of seeds low, ..., high - 1 on data that stand still; a team's."""
    V, Q, by_pair, log_policy, policy, played_V, played_policy = own.iterates
    fixed, constants, fresh, visits, moves, room = own.fixed, own.constants, own.fresh, own.visits, own.moves, own.room
    learned, eta, chosen = own.learned[team()], own.eta, own.chosen
    for i in range(low, high):
        prepared(own, i)
        for half in range(2 * count):  # of a backup
            if (half % 2 == 0) == fresh:
                backed_up(fixed, constants, fresh, visits[i], moves[i], learned, room, V[i], by_pair[i])
            else:
                step_in_place(i, i + 1, log_policy, policy, Q, eta, V)
                sync()
            if half == 2 * chosen[i] + 1:
                for x in each(V.shape[1]):
                    played_V[i, x] = V[i, x]
                    for a in range(policy.shape[2]):
                        played_policy[i, x, a] = policy[i, x, a]
        sync()


def inner_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    _begun(own, i, t)
    backups(i, i + 1, own, own.inner)
    return NEVER


@compiled
def _begun(own, i, t):  # type: ignore[no-untyped-def]
    """Which of the M policies is played, and the most that pairs may earn, where that is not told; a team's."""
    if first():
        own.chosen[i] = own.inner - 1
        if own.picks and own.inner > 1:
            own.chosen[i] = int(own.inner * uniform(own.key[i], t, PICK))
    plays, total, _, spread, _, _ = own.earned
    learned = own.learned[team()]
    for p in each(learned.shape[0]):
        n = plays[i, p]
        hi = 1.0
        if n > 0:
            hi = min(total[i, p] / n + min(spread / math.sqrt(n), 1.0), 1.0)
        learned[p] = hi


backups_on_counts = bound(inner_backups, prepared=_factors, backed_up=_backed_up)
seed_plan = bound(inner_plan, backups=backups_on_counts)


class Rewards(NamedTuple):
    """Of rewards that are not told (`ravi.estimators.rewarded`); of a problem that tells them, of length 0 and 1."""

    plays: Array  # (n, X A)
    total: Array  # (n, X A)
    table: Array  # what is earned, (X A,)
    spread: float
    random: bool
    key: Array  # (n,)


NO_KEY = np.zeros(1, np.uint64)
NO_REWARDS = np.zeros((1, 0))
TOLD = Rewards(np.zeros((1, 0), np.int64), NO_REWARDS, np.zeros(0), 0.0, False, NO_KEY)


class OnCounts(NamedTuple):
    """What the loops and `seed_learn` are given."""

    fixed: Any  # by pairs p = x A + a: successors (X A, B), r (X A,); gamma, H
    eta: Any  # (n,) or (1,)
    fresh: bool
    constants: Any  # as of Counted
    visits: Array  # (n, X A)
    moves: Array  # (n, X A, B)
    iterates: Any  # V, Q, Q by pairs, log pi, pi; V and pi that are played
    inner: int  # M
    picks: bool  # one of the M policies is drawn; else it is the last
    key: Array  # (n,)
    time: Array  # of the next step   (n,)
    earned: Any  # Rewards
    chosen: Any  # at which of the M to put aside   (n,)
    learned: Any  # scratch by team, for rewards that are not told (teams, X A), or of none (teams, 0)
    room: Any  # scratch by team


class OfSeeds(NamedTuple):
    """What a plan works on, of every seed."""

    data: Any  # Counts, or Rewarded ones
    at: Iterates
    played: Played
    key: Array | None = None  # where one of the M policies is drawn
    time: Array | None = None  # of the next step, where the state keeps it


@dataclass(frozen=True, eq=False)
class Counted:
    """What an epoch with counts from one is made of; `own` of its Seedwise."""

    problem: Problem
    constants: Any  # OfCounts; of sets `ravi.learners.ravi_kl.inner_sets.OfSets`
    eta: Array  # (n,) or (1,)
    fresh: bool
    inner: int
    pick: str
    of: Callable[[Any], OfSeeds]  # State -> what is planned on
    # Of rewards that are not told, and are 0 in `problem`: the table (X A,), the spread of their bonus, whether coins
    paid: tuple[Array, float, bool] | None = None

    def __call__(self, state: Any, teams: int) -> OnCounts:
        of, learned = self.of(state), 0 if self.paid is None else self.problem.rewards.size
        chosen, scratch = Room((len(of.at.V),), np.int64), self.constants.scratch(self.problem, teams)
        return self.laid(of, chosen, Room((teams, learned)), scratch)

    @cached_property
    def fixed(self) -> tuple[Array, Array, float, float]:
        """Of the problem, by pairs: successors (X A, B), r (X A,), gamma, H."""
        problem, (X, A, B) = self.problem, self.problem.successors.shape
        return problem.successors.reshape(X * A, B), problem.rewards.reshape(X * A), problem.discount, problem.horizon

    def laid(self, of: OfSeeds, chosen: Any, learned: Any, room: Any) -> OnCounts:
        """The arrays of these seeds, with states and actions in one axis of pairs."""
        X, A, B = self.problem.successors.shape
        (D, at, played, key, time), flat, earned = of, (-1, X * A), TOLD
        if self.paid is not None:
            earned = Rewards(D.plays.reshape(flat), D.total.reshape(flat), *self.paid, D.key)
            D = D.inner
        return OnCounts(
            self.fixed, self.eta, self.fresh, self.constants, D.visits.reshape(flat), D.moves.reshape(-1, X * A, B),
            (at.V, at.Q, at.Q.reshape(flat), at.log_policy, at.policy, *played), self.inner, self.pick == "uniform",
            NO_KEY if key is None else key, np.zeros(len(at.V), np.int64) if time is None else time, earned, chosen,
            learned, room,
        )  # fmt: skip


def on_counts(made: Counted) -> Seedwise:
    """The epoch of one seed."""
    return Seedwise(made.constants.loops()[1], seed_learn, made)


def made_of(learner: Learner) -> Counted | None:
    """What a learner's epoch is made of, where it is one of `on_counts`."""
    own = None if learner.seedwise is None else learner.seedwise.own
    return own if isinstance(own, Counted) else None


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step; one thread's. Both counts are read before one is written."""
    p = x * own.iterates[1].shape[2] + a
    n, m = own.visits[i, p], own.moves[i, p, slot]
    own.visits[i, p], own.moves[i, p, slot], own.time[i] = n + 1, m + 1, t + 1
    plays, total, table, _, random, key = own.earned
    if table.shape[0] > 0:
        reward = table[p]
        if random:
            reward = 1.0 if uniform(key[i], t, REWARD) < reward else 0.0
        plays[i, p] += 1
        total[i, p] += reward
    return False
