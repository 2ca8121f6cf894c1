"""What are M regularised backups on counts that stand still? One compiled loop.

    Q_j = Pi_H[r + CB(D, V_{j-1}) + gamma P_hat(D) V_{j-1}]
    V_j(x) = (1/eta) log sum_a pi_{j-1}(a|x) exp(eta Q_j(x, a)),    pi_j = pi_{j-1} exp(eta (Q_j - V_j))

Where Q is not fresh, each of the M begins with the Q at hand, and ends with that of the next. A seed's V_j and pi_j are
put aside at the j that was drawn for it.

What does not change within an epoch is found once: the bonus is a number of its pair, times half the span of V where it
scales with that. M plans of `ravi.learners.ravi_ucb.ravi_ucb`, one after another, are the oracle of the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array, Data, Learner, Problem, Seedwise
from ravi.planning.mirror import step_in_place
from ravi.random import PICK, REWARD, uniform
from ravi.teams import NEVER, Room, each, first, sync, team, team_max, team_min


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


def of_widths(beta: Array) -> OfCounts:
    """CB = beta / sqrt(N) (Algorithm 2). beta: of each seed (n,), or of all (1,)."""
    return OfCounts(np.ones(1), beta, 0.0, False, False, 1.0)


def of_counts(problem: Problem, constants: OfCounts, eta: Array, fresh: bool) -> Backups:
    """With counts from one: all M in one compiled loop, seed by seed. eta: of each seed (n,), or of all (1,)."""
    X, A, B = problem.successors.shape
    fixed = of_pairs(problem)

    def backups(D: Any, at: Iterates, count: int, chosen: Array, played: Played) -> Iterates:
        V, Q = at.V.copy(), at.Q.copy()
        iterates = (V, Q, Q.reshape(-1, X * A), at.log_policy, at.policy, *played)
        backups_on_counts(
            0, len(V), fixed, eta, fresh, constants, D.visits.reshape(-1, X * A), D.moves.reshape(-1, X * A, B),
            iterates, count, chosen, NO_REWARDS, np.empty((1, X * A)), np.empty((1, X)),
        )  # fmt: skip
        return at._replace(V=V, Q=Q)

    return backups


def of_pairs(problem: Problem) -> tuple[Array, Array, float, float]:
    """What backups of one seed read of a problem, by pairs p = x A + a: successors (X A, B), r (X A,), gamma, H."""
    X, A, B = problem.successors.shape
    return problem.successors.reshape(X * A, B), problem.rewards.reshape(X * A), problem.discount, problem.horizon


NO_REWARDS = np.zeros((1, 0))


@compiled
def _factors(visits, radius, scale, centre, out):  # type: ignore[no-untyped-def]
    """CB of each pair of a seed, in parts of half the span where it is centred."""
    for p in each(visits.shape[0]):
        if centre:
            n = visits[p] - 1.0
            out[p] = min(1 + n / (n + 1), scale * (math.sqrt(2 * radius * n) + 1) / (n + 1))
        else:
            out[p] = (1.0 / math.sqrt(np.float64(visits[p]))) * (scale * radius)


@compiled
def _backed_up(  # type: ignore[no-untyped-def]
    fixed, span, centre, clip, discount, learned, factors, visits, moves, V, U, Q
):
    """Q of one seed, from its V; `learned` are rewards that are not told (X A,), or of none (0,)."""
    successors, r, gamma, H = fixed
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


@compiled
def backups_on_counts(  # type: ignore[no-untyped-def]
    low, high, fixed, eta, fresh, constants, visits, moves, iterates, count, chosen, learned, factors, U
):
    """M backups of seeds low, ..., high - 1 on their counts (n, X A) and (n, X A, B); `factors` (teams, X A) and `U`
    (teams, X) are scratch, and so is what `learned` (teams, X A) holds of rewards that are not told. A team's."""
    radius, scale, span, centre, clip, discount = constants
    V, Q, by_pair, log_policy, policy, played_V, played_policy = iterates
    k = team()
    for i in range(low, high):
        far, times = radius[i if radius.shape[0] > 1 else 0], scale[i if scale.shape[0] > 1 else 0]
        _factors(visits[i], far, times, centre, factors[k])
        for j in range(count):
            if fresh:
                _backed_up(
                    fixed, span, centre, clip, discount, learned[k], factors[k], visits[i], moves[i], V[i], U[k],
                    by_pair[i],
                )  # fmt: skip
            step_in_place(i, i + 1, log_policy, policy, Q, eta, V)
            sync()
            if not fresh:
                _backed_up(
                    fixed, span, centre, clip, discount, learned[k], factors[k], visits[i], moves[i], V[i], U[k],
                    by_pair[i],
                )  # fmt: skip
            if chosen[i] == j:
                for x in each(V.shape[1]):
                    played_V[i, x] = V[i, x]
                    for a in range(policy.shape[2]):
                        played_policy[i, x, a] = policy[i, x, a]


class Rewards(NamedTuple):
    """Of rewards that are not told (`ravi.estimators.rewarded`); of a problem that tells them, of length 0 and 1."""

    plays: Array  # (n, X A)
    total: Array  # (n, X A)
    table: Array  # what is earned, (X A,)
    spread: float
    random: bool
    key: Array  # (n,)


class OnCounts(NamedTuple):
    """What `seed_plan` and `seed_learn` are given."""

    fixed: Any  # of_pairs
    eta: Array  # (n,) or (1,)
    fresh: bool
    constants: Any  # as of Counted
    visits: Array  # (n, X A)
    moves: Array  # (n, X A, B)
    iterates: Any
    inner: int  # M
    picks: bool  # one of the M policies is drawn; else it is the last
    key: Array  # (n,)
    time: Array  # of the next play   (n,)
    earned: Any  # Rewards
    chosen: Any  # scratch by seed
    learned: Any  # scratch by team, as are
    factors: Any
    U: Any


class OfSeeds(NamedTuple):
    """What a plan works on, of every seed."""

    data: Any  # Counts, or Rewarded ones
    at: Iterates
    played: Played
    key: Array | None = None  # where one of the M policies is drawn
    time: Array | None = None  # of the next play, where the state keeps it


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

    def functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """`plan` and `learn`."""
        return seed_plan, seed_learn

    def __call__(self, state: Any, teams: int) -> Any:
        X, A, B = self.problem.successors.shape
        D, at, played, key, time = self.of(state)
        n, flat = len(at.V), (-1, X * A)
        none, zero = np.zeros((1, 0), np.int64), np.zeros(1, np.uint64)
        earned, learned = Rewards(none, np.zeros((1, 0)), np.zeros(0), 0.0, False, zero), 0
        if self.paid is not None:
            learned = X * A
            earned = Rewards(D.plays.reshape(flat), D.total.reshape(flat), *self.paid, D.key)
            D = D.inner
        return OnCounts(
            of_pairs(self.problem), self.eta, self.fresh, self.constants, D.visits.reshape(flat),
            D.moves.reshape(-1, X * A, B), (at.V, at.Q, at.Q.reshape(flat), at.log_policy, at.policy, *played),
            self.inner, self.pick == "uniform", zero if key is None else key,
            np.zeros(n, np.int64) if time is None else time, earned, Room((n,), np.int64), Room((teams, learned)),
            Room((teams, X * A)), Room((teams, X)),
        )  # fmt: skip


def on_counts(made: Counted) -> Seedwise:
    """The epoch of one seed."""
    return Seedwise(*made.functions(), made)


def made_of(learner: Learner) -> Counted | None:
    """What a learner's epoch is made of, where it is one of `on_counts`."""
    own = None if learner.seedwise is None else learner.seedwise.own
    return own if isinstance(own, Counted) else None


@compiled
def begun(own, i, t):  # type: ignore[no-untyped-def]
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


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of RAVI-UCB on counts, or of RAVI-UCB+, of one seed; a team's."""
    begun(own, i, t)
    backups_on_counts(
        i, i + 1, own.fixed, own.eta, own.fresh, own.constants, own.visits, own.moves, own.iterates, own.inner,
        own.chosen, own.learned, own.factors, own.U,
    )  # fmt: skip
    return NEVER


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset):  # type: ignore[no-untyped-def]
    """Count the play; one thread's."""
    p = x * own.iterates[1].shape[2] + a
    own.visits[i, p] += 1
    own.moves[i, p, slot] += 1
    own.time[i] = t + 1
    plays, total, table, _, random, key = own.earned
    if table.shape[0] > 0:
        reward = table[p]
        if random:
            reward = 1.0 if uniform(key[i], t, REWARD) < reward else 0.0
        plays[i, p] += 1
        total[i, p] += reward
    return False
