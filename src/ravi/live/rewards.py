"""Rewards that are unknown are the mean of those observed, and a bonus for its uncertainty.

    known      r(x, a) is given; what is observed is recorded only
    unknown    r_hat + b,  b(x, a) = c sqrt(ln(2 X A T / delta) / (2 n(x, a))),  at most 1; 1 where n = 0
    changing   the same, but an observation s steps ago weighs e^(-s / memory), in the mean and in n

By Hoeffding's inequality and a union bound over pairs and over the visits of each, |r - r_hat| <= b for all pairs and
times with probability 1 - delta when c = 1: then min{r_hat + b, 1} is optimistic, and the bound of Lemma 4.2 has
2 (CB + b) in place of 2 CB. With changing rewards that holds up to how much they change within the memory.

Rewards that are revealed as a whole (full information) replace the table: `reveal`.
All in units of [0, 1], (r - low) / (high - low).
"""

from __future__ import annotations

from math import exp
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Path
from ravi.optimism.rewards import optimistic_rewards, reward_spread
from ravi.runtime.ranges import Past, Positive
from ravi.validation import InputError

MODES = ("known", "unknown", "changing")
SLACK = 1e-9  # how far outside its range, in parts of it, rounding may put a reward
UNSEEN = (0.0, 1e-300)  # the range before any reward but 0: the first other one makes it that of rewards


class RewardSums(NamedTuple):
    """What was observed of unknown rewards; empty where they are known."""

    weight: Positive  # n, or the weight of observations      (X, A)
    total: Positive  # of rewards in [0, 1]                   (X, A)
    last: Past  # the step of the last observation            (X, A)


class Rewards:
    """Writes into the table (X, A) that the learner reads."""

    def __init__(self, mode: str, scale: float, memory: float | None, steps: int) -> None:
        self.mode = validation.one_of(mode, MODES, "rewards")
        self.scale = validation.nonnegative(scale, "reward_scale")
        if (memory is not None) != (mode == "changing"):
            raise InputError("memory is for rewards='changing', which needs it: steps after which a reward is old")
        self.memory = None if memory is None else validation.positive(memory, "memory")
        self.steps = steps
        self.sums = RewardSums(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0), np.int64))

    def open(self, table: Array, t: int = 0) -> None:
        """Begin with a table (X, A), or go on with a larger one at step t."""
        self.table = table
        if self.mode == "known":
            return
        X, A = table.shape
        x, a = self.sums.weight.shape
        self.sums = RewardSums(*(np.pad(each, ((0, X - x), (0, A - a))) for each in self.sums))
        self.spread = self.scale * reward_spread(X, A, self.steps, validation.delta(None, self.steps))
        self.renew(t)

    def observe(self, path: Path, rewards: Array, t: int) -> None:
        """The steps of a path earned `rewards` (1, L), in [0, 1], the first of them at step t."""
        if self.mode == "known":
            return
        steps = path.state, path.action, rewards, path.length[0]
        _observe(*self.sums, self.table, *steps, t, self.memory or np.inf, self.spread)

    def observe_one(self, x: int, a: int, reward: float, t: int) -> None:
        """The same for a single step."""
        if self.mode != "known":
            _observe_one(*self.sums, self.table, x, a, reward, t, self.memory or np.inf, self.spread)

    def renew(self, t: int) -> None:
        """The table as it is at step t: before a plan, where rewards change; and where the bonus is another."""
        if self.mode == "known":
            return
        weight, total, last = self.sums
        kept = 1.0 if self.memory is None else np.exp((last - t) / self.memory)
        self.table[:] = optimistic_rewards(weight * kept, total * kept, self.spread)

    def reveal(self, rewards: Array) -> None:
        """The rewards are these (X, A), in [0, 1], from now on."""
        if self.mode != "known":
            raise InputError(f"rewards are {self.mode}: what is learned from plays cannot be revealed; say 'known'")
        self.table[:] = validation.between(rewards, 0, 1, "rewards")

    def mean(self) -> Array:
        """r_hat of what was seen; 0 where nothing was."""
        if self.mode == "known":
            return self.table.copy()
        weight, total, _ = self.sums
        return np.divide(total, weight, out=np.zeros(weight.shape), where=weight > 0)


@compiled
def _observe_one(weight, total, last, table, x, a, reward, t, memory, spread):  # type: ignore[no-untyped-def]
    kept = exp((last[x, a] - t) / memory)  # 1 where nothing is forgotten
    last[x, a] = t
    weight[x, a] = weight[x, a] * kept + 1.0
    total[x, a] = total[x, a] * kept + reward
    table[x, a] = min(total[x, a] / weight[x, a] + spread / np.sqrt(weight[x, a]), 1.0)


@compiled
def _observe(weight, total, last, table, state, action, rewards, length, t, memory, spread):  # type: ignore[no-untyped-def]
    for l in range(length):
        _observe_one(weight, total, last, table, state[0, l], action[0, l], rewards[0, l], t + l, memory, spread)


def real_number(reward: Any) -> float:
    """A finite number; a text of one is none."""
    if isinstance(reward, str):
        raise InputError(f"is {reward!r}, not a number")
    try:
        return validation.number(reward, "")
    except InputError as error:
        raise InputError(str(error).strip()) from None


class Outside(InputError):
    """A reward is outside its range."""


class RewardRange:
    """The range of rewards in the user's units, and its map to [0, 1]."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high, self.width = low, high, high - low

    @property
    def unseen(self) -> bool:
        """Whether it is one that follows rewards, and none but 0 was observed."""
        return (self.low, self.high) == UNSEEN

    def wider(self, reward: float) -> RewardRange:
        """The range that holds this reward too."""
        high = 0.0 if self.unseen else self.high
        return RewardRange(float(min(reward, self.low)), float(max(reward, high)))

    def part(self, reward: Any) -> float:
        """A reward in [0, 1]; an error where it is none, or out of range."""
        if type(reward) is not float:
            reward = real_number(reward)
        value = (reward - self.low) / self.width
        if 0.0 <= value <= 1.0:
            return value
        if -SLACK <= value <= 1.0 + SLACK:
            return min(max(value, 0.0), 1.0)
        if value != value:
            raise InputError("is nan, not a number")
        raise Outside(f"is {reward:g}, outside its range from {self.low:g} to {self.high:g}")
