"""An epoch of M regularised backups on data that stand still, of one seed.

    Q_j = Pi_H[r + CB(D, V_{j-1}) + gamma P_hat(D) V_{j-1}]
    V_j(x) = (1/eta) log sum_a pi_{j-1}(a|x) exp(eta Q_j(x, a)),    pi_j = pi_{j-1} exp(eta (Q_j - V_j))

Where Q is not fresh, each of the M begins with the Q at hand, and ends with that of the next. V_j and pi_j are put
aside at the j that was drawn for the seed. Where rewards are not known, r is the most that a pair may earn.

The loop is here; the backups are those of counts (`ravi.learners.ravi_ucb.inner_counts`) or of sets of kernels
(`ravi.learners.ravi_kl.inner_sets`). The array operators of `ravi.learners.ravi_ucb.ravi_ucb.plan_of` are the oracle.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, Buffer, each, first, sync
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.estimators.rewarded import NOTHING, Earned, earn_step
from ravi.planning.mirror import step_in_place
from ravi.random import PICK, uniform


class Form(NamedTuple):
    """How an epoch is computed."""

    plan: Callable[..., Any]  # `inner_plan`, with functions bound to it
    scratch: Callable[[Problem, int], Any]  # of so many teams
    put: Callable[..., Any]  # own, i, numbers (k,): eta and the `varied` constants of seed i; one thread's


@compiled
def _step_rows(own, i):  # type: ignore[no-untyped-def]
    """A mirror step of one seed; a team's."""
    V, Q, _, log_policy, policy, _, _ = own.iterates
    step_in_place(i, i + 1, log_policy, policy, Q, own.eta, V)


@compiled
def _put_aside(own, i):  # type: ignore[no-untyped-def]
    """V_j and pi_j of one seed are those that it plays; a team's."""
    V, _, _, _, policy, played_V, played_policy = own.iterates
    for x in each(V.shape[1]):
        played_V[i, x] = V[i, x]
        for a in range(policy.shape[2]):
            played_policy[i, x, a] = policy[i, x, a]


@compiled
def _nothing(own, i):  # type: ignore[no-untyped-def]
    """Where the iterates are worked on in place, they are there at the end."""


prepare, back_up = _nothing, _nothing  # `bound` puts those of a learner here,
step, put_aside, finish = _step_rows, _put_aside, _nothing  # and others here, if it works in arrays of its own


def inner_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    _begin(own, i, t)
    prepare(own, i)
    for half in range(2 * own.inner):  # of a backup
        if (half % 2 == 0) == own.fresh:
            back_up(own, i)
        else:
            step(own, i)
            sync()
        if half == 2 * own.chosen[i] + 1:
            put_aside(own, i)
    finish(own, i)
    sync()
    return NEVER


@compiled
def _begin(own, i, t):  # type: ignore[no-untyped-def]
    """Which of the M policies is played, and the most that pairs may earn, where that is not known; a team's."""
    if first():
        own.chosen[i] = own.inner - 1
        if own.picks and own.inner > 1:
            own.chosen[i] = int(own.inner * uniform(own.key[i], t, PICK))
    plays, total, _, _, _ = own.earned
    for x in each(plays.shape[1]):
        for a in range(plays.shape[2]):
            n, hi = plays[i, x, a], 1.0
            if n > 0:
                hi = min(total[i, x, a] / n + min(own.spread / math.sqrt(n), 1.0), 1.0)
            own.rewards[i, x * plays.shape[2] + a] = hi
    sync()


NO_KEY = np.zeros(1, np.uint64)


class Work(NamedTuple):
    """What an epoch works on, of every seed; all but the data is written in place."""

    data: Any  # Counts, or Rewarded ones
    V: Array  # V_j             (n, X)
    Q: Array  # Q_j, or Q_{j+1} where it is not fresh   (n, X, A)
    log_policy: Array  # log pi_j   (n, X, A)
    policy: Array  # pi_j       (n, X, A)
    V_played: Array  # V_m, of the backup that was drawn   (n, X)
    policy_played: Array  # pi_m    (n, X, A)
    key: Array | None = None  # where one of the M policies is drawn   (n,)
    time: Array | None = None  # of the next step, where the state keeps it   (n,)


class OnCounts(NamedTuple):
    """The buffers of `inner_plan` and `seed_learn`."""

    fixed: Any  # by pairs p = x A + a: successors (X A, B); gamma, H
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
    earned: Any  # Earned
    spread: float  # of the bonus of rewards that are not known
    rewards: Any  # the most that pairs earn: one row of all seeds where it is known   (n or 1, X A)
    chosen: Any  # at which of the M to put aside   (n,)
    room: Any  # scratch by team


@dataclass(frozen=True, eq=False)
class Counted:
    """What an epoch with counts from one is made of; `own` of its Seedwise."""

    problem: Problem
    constants: Any  # OfCounts of `inner_counts`; of sets OfSets of `ravi.learners.ravi_kl.inner_sets`
    eta: Array  # (n,) or (1,)
    fresh: bool
    inner: int
    pick: str
    work: Callable[[Any], Work]  # State -> what is planned on
    paid: tuple[float, int] | None = None  # of rewards that are not known: the spread of their bonus, their law

    @property
    def form(self) -> Form:
        form: Form = self.constants.form(self.problem, self.inner)
        return form

    @property
    def seedwise(self) -> Seedwise:
        """The epoch of one seed."""
        return Seedwise(self.form.plan, seed_learn, self, time=self.times)

    def times(self, state: Any) -> Array:
        """t of the next step; where nothing is drawn, it is not asked for."""
        time, n = self.work(state).time, len(state.policy)
        return np.ones(n, np.int64) if time is None else time

    def __call__(self, state: Any, teams: int) -> OnCounts:
        """The arrays of all seeds, with states and actions in one axis of pairs."""
        problem, (X, A, B), n = self.problem, self.problem.successors.shape, len(state.policy)
        D, V, Q, log_policy, policy, *played, key, time = self.work(state)
        flat, earned, spread = (n, X * A), NOTHING, 0.0
        rewards: Any = problem.rewards.reshape(1, X * A).copy()
        if self.paid is not None:
            (spread, law), rewards = self.paid, Buffer(flat)
            earned, D = Earned(D.plays, D.total, D.key, problem.rewards, law), D.inner
        return OnCounts(
            (problem.successors.reshape(X * A, B), problem.discount, problem.horizon), self.eta, self.fresh,
            self.constants, D.visits.reshape(flat), D.moves.reshape(*flat, B),
            (V, Q, Q.reshape(flat), log_policy, policy, *played), self.inner, self.pick == "uniform",
            NO_KEY if key is None else key, np.zeros(n, np.int64) if time is None else time, earned, spread, rewards,
            Buffer((n,), np.int64), self.form.scratch(problem, teams),
        )  # fmt: skip


def counted_by(learner: Learner) -> Counted | None:
    """What a learner's epoch is made of, where it is one of `Counted`."""
    own = None if learner.seedwise is None else learner.seedwise.own
    return own if isinstance(own, Counted) else None


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step; one thread's. Both counts are read before one is written."""
    p = x * own.iterates[1].shape[2] + a
    n, m = own.visits[i, p], own.moves[i, p, slot]
    own.visits[i, p], own.moves[i, p, slot], own.time[i] = n + 1, m + 1, t + 1
    plays, total, key, table, law = own.earned
    if plays.shape[0] > 0:
        earn_step(plays, total, key, table, law, i, t, x, a)
    return False
