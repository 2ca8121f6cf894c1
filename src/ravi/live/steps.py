"""What belongs to a step of a stream? Its random numbers, and the action that they draw."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import inf

import numpy as np

from ravi._jit.functions import compiled
from ravi.random import ACTION, RESET, block
from ravi.runtime.ranges import PLAYABLE

AHEAD = 256  # steps whose random numbers are drawn at once
ROWS = 32  # of a policy, that are compared at once


class Numbers:
    """The random numbers of step t of a seed, as `ravi.runtime.walk` has them."""

    def __init__(self, seed: int) -> None:
        self.seed, self.first = np.uint64(seed), -AHEAD  # the first step whose numbers are there
        self.resets: list[float] = []
        self.actions: list[float] = []

    def __call__(self, t: int) -> tuple[float, float]:
        """The numbers of the reset and of the action."""
        if not self.first <= t < self.first + AHEAD:
            (self.resets, self.actions), self.first = _blocks(self.seed, t, AHEAD).tolist(), t
        return self.resets[t - self.first], self.actions[t - self.first]

    def ahead(self, t: int, many: int) -> Iterator[tuple[float, float]]:
        """The numbers of steps t, t + 1, ..., at most `many`, as far as they have been drawn."""
        here = slice(t - self.first, t - self.first + max(many, 0))
        return zip(self.resets[here], self.actions[here], strict=True)


@compiled
def _blocks(key, first, many):  # type: ignore[no-untyped-def]
    """The numbers of the resets and the actions of steps first, first + 1, ...: (2, many)."""
    numbers = np.empty((2, many))
    for i in range(many):
        drawn = block(key, first + i, 0)
        numbers[0, i], numbers[1, i] = drawn[RESET], drawn[ACTION]
    return numbers


@compiled
def only_actions(policy, actions, before):  # type: ignore[no-untyped-def]
    """The action of every state whose row of a policy (X, A) has no other, in place; -1 of all others. Whether all rows
    are distributions, and whether any is another than `before` (X, A), which is written. Rows that are as before are
    not read again: a row of `before` is a distribution, or has a nan, which no row is as."""
    X, A = policy.shape
    sound, other, new, old = True, False, policy.ravel(), before.ravel()
    for first in range(0, X, ROWS):
        last, differing = min(first + ROWS, X), 0
        for e in range(np.uint64(first * A), np.uint64(last * A)):  # at once: one after the other would take five times
            differing += np.float64(new[e]) != old[e]
        if differing > 0:
            other = True
            for x in range(first, last):
                if not _as_before(policy[x], before[x]):
                    actions[x] = _only_action(policy[x], before[x])
                    sound &= before[x, 0] == before[x, 0]
    return sound, other


@compiled
def _as_before(row, before):  # type: ignore[no-untyped-def]
    same = True
    for a in range(row.shape[0]):
        same &= np.float64(row[a]) == before[a]
    return same


@compiled
def _only_action(row, before):  # type: ignore[no-untyped-def]
    """The action of a row that has no other, else -1. `before` becomes the row, or begins with nan if it is no
    distribution."""
    many, only, mass, least = 0, 0, 0.0, 0.0
    for a in range(row.shape[0]):
        p = before[a] = np.float64(row[a])
        mass += p
        least = min(least, p)
        if p != 0.0:
            many += 1
            only = a
    if not (abs(mass - 1.0) <= PLAYABLE and least >= 0.0):  # a nan neither
        before[0] = np.nan
    return only if many == 1 else -1


@compiled
def begin(starts, late, x, initial):  # type: ignore[no-untyped-def]
    """Count a start at x, in place: starts (X,) by state; late, the number of starts before the last one at a state
    that was new; `initial`, the share of every state, empty if it is known."""
    before = starts.sum()
    if starts[x] == 0:
        late[0] = before
    starts[x] += 1
    for z in range(initial.shape[0]):
        initial[z] = starts[z] / (before + 1)


def thresholds(row: list[float]) -> list[float]:
    """Of the actions with these probabilities: `bisect_right` of u is the one that `ravi.runtime.walk.draw` draws by
    u."""
    sums = [*accumulate(row)]
    last = max(a for a, p in enumerate(row) if p > 0.0)
    return [*sums[:last], inf]
