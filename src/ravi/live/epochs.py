"""How does a stream become epochs? A step is counted and learned from; where the epoch ends, the learner plans.

It is the loop of `ravi.runtime.python` turned inside out: what happened is told, step by step (`ravi.live.agent`). The
table grows as the stream is seen, and the learner is built anew on it where that changes shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP, Floats, Learner, Path, Problem, Until, Walkers
from ravi.live.keeping import BUFFER, Play
from ravi.live.rewards import Range, Rewards
from ravi.live.steps import Numbers, begin, only_actions, thresholds
from ravi.live.table import Table, Widened, grown, laid
from ravi.random import OUTPUT, uniform
from ravi.runtime.walk import TYPES, Walking, check_policies, keep, room
from ravi.schedules import STRETCH, after_a_stretch
from ravi.validation import InputError

NOT_OVER = np.zeros(1, np.bool_)
ENDLESS = Until(reset=False)  # but for its deadline

Builder = Callable[[Problem, int], Learner]


class Epochs:
    """A learner with its state and its table: what `ravi.live.agent.Agent` does with a step that it was told."""

    def __init__(
        self,
        learner: str | Builder | Learner,
        problem: Problem,
        steps: int,
        rewards: str,
        reward_scale: float,
        memory: float | None,
        seed: int,
        start_known: bool,
    ) -> None:
        self.given, self.steps, self.seed, self.start_known = learner, steps, seed, start_known
        self.table = Table(
            problem, closed=problem.features is not None or isinstance(problem, MDP) or isinstance(learner, Learner)
        )
        self.rewards = Rewards(rewards, reward_scale, memory, steps)
        if isinstance(learner, Learner) and rewards != "known":
            raise InputError(
                f"{learner.name} is built already: where rewards are {rewards}, give its id or its builder"
            )
        self.range = Range(*problem.units)
        self.follows = False  # whether the range grows to hold what is earned, for a learner that can be rescaled
        self.time = 0  # steps taken in
        self._pending: Play | None = None
        self._acted: tuple[int, int] | None = None  # the state and the action of the step under way
        self._to_reset = 0.0  # and the number that says whether a reset follows
        self._numbers = Numbers(seed)
        self._restart = 1 - problem.discount
        self.starts = np.zeros(problem.states, np.int64)  # how often a stretch began where
        self.late_start = np.zeros(1, np.int64)  # and how often one had, when one last began where none had
        self.cycles: list[float] = []  # what was earned from reset to reset, in the user's units
        self.cycle, self.length = 0.0, 0  # what this one earned so far, in parts of [0, 1], and its steps
        self.whole = True  # whether it began with a reset
        self.cuts = 0  # resets that were not the learner's
        self.index = 1 + int(steps * uniform(seed, 0, OUTPUT))  # I, the time of the output policy
        self.output: Floats | None = None
        self.rewards.open(self.table.rewards)
        self._make: Builder | None = None  # what an id says
        self._walk: Walking | None
        self._light: bool
        self._own: tuple[Any, ...] | None  # what its `learn` is given, of this state
        self._own_of: Any = None
        self._build()
        keys = np.array([seed], np.uint64)
        self.state = self.learner.init(keys)
        self._check_sizes()
        self._walkers = Walkers(np.zeros(1, np.int32), np.zeros(1, np.int64), keys)
        self._over = np.ones(1, np.uint8)
        self._opened(Until(True), 0)
        self._path, self._parts = room(1, BUFFER), np.zeros((1, BUFFER))  # steps to add, and what they earned
        self._columns = tuple(column[0].data for column in (*self._path[:5], self._parts))
        self._waiting = 0  # how many they are
        self._after = 0  # the state after them
        self._only = np.full(problem.states, -1, np.int32)  # by state: its action, where it has no other
        self._before = np.full((problem.states, problem.actions), np.nan)  # the policy, when it was read last
        self._actions = self._only.data
        self._rows: dict[int, list[float]] = {}  # of others, by state: the thresholds of all
        self._followed: Floats | None = None
        self.plans = 0
        self._restarted = True  # whether the next state is a start
        self.extra: dict[str, Any] = {}  # what was kept beside it

    @property
    def policy(self) -> Floats:
        """What it plays now: (X, A), or (S, X, A) by age."""
        return self.state.policy[0].copy()

    # The learner, on the table as it is.

    def _build(self) -> None:
        """The learner on the table as it is now."""
        from ravi import ids

        self.problem, self._stale = self.table.problem(), False
        if isinstance(self.given, str):
            if self._make is None:
                self._make = ids.maker(self.given)
            self.learner = self._make(self.problem, self.steps)
        elif isinstance(self.given, Learner):
            self.learner = self.given
        elif callable(self.given):
            made = self.given(self.problem, self.steps)
            self.learner = validation.instance(made, Learner, "what the builder makes", "a ravi.Learner")
        else:
            raise InputError(
                f"learner is {validation.shown(self.given)}, not an id, a ravi.Learner or a function of them"
            )
        if self.learner.told.rewards is not None and self.rewards.mode != "known":
            raise InputError(
                f"{self.learner.name} simulates rewards that are unknown, and here they are: the learner without that, "
                f"with rewards={self.rewards.mode!r}, learns them"
            )
        if self.learner.told.support:
            if not self.start_known:
                raise InputError(
                    f"{self.learner.name} is told the successors of every pair (support=on), and here they are met on "
                    "the way: give a problem that has them all, or support=off"
                )
            self.table.closed = self.table.exact = True
        if self.learner.walk is not None and not isinstance(self.learner.walk, Walking):
            raise InputError(
                f"{self.learner.name} walks by itself: on a stream, its walk is of `ravi.runtime.walk.walking`"
            )
        self._walk, self._own = self.learner.walk, None  # of a learner that learns at every step
        self._light = (  # whether it learns nothing from paths, and ends its epochs itself: then a plan is its `plan`
            self._walk is not None and self.learner.add is keep and self.learner.until is after_a_stretch
        )

    def _check_sizes(self) -> None:
        told, wanted = self.state.policy.shape[-2:], self.table.sizes[:2]
        if told != wanted:
            raise InputError(
                f"{self.learner.name} was built for {told[0]} states and {told[1]} actions, "
                f"not {wanted[0]} and {wanted[1]}"
            )

    def _grow(self, states: int, actions: int) -> None:
        X, A, _ = self.table.sizes
        self.table.grow(states, actions)
        self.rewards.open(self.table.rewards, self.time)
        self.starts = np.concatenate([self.starts, np.zeros(states - X, np.int64)])
        self._build()
        self.state = grown(self.state, self.learner.init(self._walkers.key))
        self._check_sizes()
        if self._until.visits is not None:
            more = np.ones((1, states, actions), self._until.visits.dtype)
            more[:, :X, :A] = self._until.visits
            self._opened(self._until._replace(visits=more), self._deadline)
        self._only, self._before = np.full(states, -1, np.int32), np.full((states, actions), np.nan)
        self._actions = self._only.data
        self._read()

    def _widen(self, reward: float) -> None:
        """The range of rewards holds this one too, from now on."""
        self._add()
        was, now = self.range, self.range.wider(reward)
        scale, shift = (was.high - was.low) / (now.high - now.low), (was.low - now.low) / (now.high - now.low)
        table, rewards = self.table, self.rewards
        seen = table.moves > 0
        for parts, counts in (
            (table.earned, table.moves), (table.least, seen), (table.most, seen), (rewards.total, rewards.weight)
        ):  # fmt: skip
            parts[:] = np.minimum(parts * scale + shift * counts, counts)
        self.cycle = self.cycle * scale + shift * self.length
        self.state.rescale(scale, shift)
        self.range, table.told = now, replace(table.told, units=(now.low, now.high))
        rewards.renew(self.time)
        self._build()

    # Epochs.

    def _started(self, x: int) -> None:
        """A stretch begins at x."""
        self._restarted = False
        begin(self.starts, self.late_start, x, self.table.initial[: 0 if self.start_known else None])

    def _plan(self) -> None:
        """Open an epoch."""
        if not self._light:
            self._add()
        if self._stale:
            self._build()
        if self.rewards.memory is not None:
            self.rewards.renew(self.time)
        self.state = self.learner.plan(self.state)
        if not self._read() or self._followed is not None:
            check_policies(self.learner.name, self.state.policy, self._walkers.key, NOT_OVER)
        if self._light:
            self._opened(ENDLESS, min(self.steps, self.time + STRETCH))
        else:
            until = self.learner.until(self.state, self._walkers.time)
            self._opened(until, self.steps if until.deadline is None else min(self.steps, int(until.deadline[0])))
        self._over[0] = 0
        self.plans += 1

    def _opened(self, until: Until, deadline: int) -> None:
        """The epoch lasts until this, or until the deadline; of its visits, if they count, `_left` says how many are
        left."""
        self._until, self._deadline = until, deadline
        self._left = None if until.visits is None else until.visits.data

    def _read(self) -> bool:
        """The policy may be another one; whether it is known to be one."""
        policy = self.state.policy[0] if self._followed is None else self._followed
        sound, other = False, True
        if policy.ndim == 2 and policy.dtype.char in TYPES:
            sound, other = only_actions(policy, self._only, self._before)
        else:
            self._only[:], self._before[:] = -1, np.nan
        if other:
            self._rows.clear()
        return bool(sound)

    def _row(self, x: int) -> list[float]:
        """The thresholds of all actions in x; kept as long as the policy is the same, where it is not by age."""
        policy = self.state.policy[0] if self._followed is None else self._followed
        if policy.ndim == 3:
            return thresholds(policy[min(int(self.state.age[0]), len(policy) - 1), x].tolist())
        self._rows[x] = row = thresholds(policy[x].tolist())
        return row

    # Steps.

    def _take_in(self, play: Play, then: int) -> None:
        """The step that waits is complete: it led to `then`."""
        x, a, y, reward, reset, cut = play
        slot = self.table.slot(x, a, y)
        if slot < 0:
            self._relay(x, a, y)
            slot = self.table.slot(x, a, y)
        self._pending = None
        t = self.time = self.time + 1
        if t == self.index:
            self.output = self.policy
        self.cycle += reward
        self.length += 1
        if reset:
            self._end_cycle(cut)
        n, (states, actions, successors, slots, resets, rewards) = self._waiting, self._columns
        states[n], actions[n], successors[n], slots[n], resets[n], rewards[n] = x, a, y, slot, reset, reward
        self._waiting, self._after = n + 1, then
        if self._walk is not None and self._learned(t, x, a, y, slot, reset, then, reward):
            self._over[0] = 1
        if self.learner.stages:
            self.state.age[0] = 0 if reset else self.state.age[0] + 1
        left = self._left
        if left is not None:
            left[0, x, a] = remaining = left[0, x, a] - 1
            if remaining <= 0:
                self._over[0] = 1
        if (reset and self._until.reset) or t >= self._deadline:
            self._over[0] = 1
        if n + 1 == BUFFER:
            self._add()

    def _learned(self, t: int, x: int, a: int, y: int, slot: int, reset: bool, then: int, reward: float) -> bool:
        """What a learner that learns at every step makes of this one; whether the epoch ends with it."""
        assert self._walk is not None
        self.rewards.observe_one(x, a, reward, t)
        if self._own is None or self._own_of is not self.state:
            self._own, self._own_of = self._walk.own(self.state, self._walkers), self.state
        over: bool = self._walk.learn(self._own, 0, t, x, a, y, slot, reset, then)
        return over

    def _add(self) -> None:
        """What waits, into the learner: ADD."""
        if self._waiting:
            path = self._waiting_path()
            self._walkers.state[0], self._walkers.time[0] = self._after, self.time
            self._count(path, self.table, self.rewards)
            self._waiting = 0
            self.state = self.learner.add(self.state, path)

    def _waiting_path(self) -> Path:
        """What waits, as a path."""
        path, n = self._path, self._waiting
        path.length[0], path.time[0], path.after[0] = n, self.time - n + 1, self._after
        return path

    def _count(self, path: Path, table: Table, rewards: Rewards) -> None:
        table.count(path, self._parts)
        if self._walk is None:  # else they were observed step by step
            rewards.observe(path, self._parts, int(path.time[0]))

    def _counted(self) -> tuple[Table, Rewards]:
        """The table and the rewards with what waits, as copies: who looks at an agent changes nothing. (A learner may
        read rewards when it adds: when that is must not depend on who looked.)"""
        table, rewards = self.table.copied(), deepcopy(self.rewards)
        if self._waiting:
            self._count(self._waiting_path(), table, rewards)
        return table, rewards

    def _relay(self, x: int, a: int, y: int) -> None:
        """A successor was met for the first time: the learner's state in the new layout, and the learner anew, unless
        it reads the table at every plan. ADD needs states and slots only, so that one that learns from paths is built
        when it plans next."""
        self._add()
        sizes = self.table.sizes
        layout = self.table.meet(x, a, y)
        if layout is not None and sizes[2] < sizes[0]:
            self.state = laid(self.state, layout, sizes)
        self._stale |= not self.learner.told.reads_anew
        if self._walk is not None or isinstance(layout, Widened):
            self._build()

    def _end_cycle(self, cut: bool) -> None:
        """What was earned since the last reset counts, unless the stream was cut before the next one."""
        low, high = self.table.told.units
        if self.whole and not cut:
            self.cycles.append(low * self.length + (high - low) * self.cycle)
        self.cuts += cut
        self._restarted, self.whole, self.cycle, self.length = True, True, 0.0, 0
