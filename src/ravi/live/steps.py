"""What belongs to a step of a stream? Its random numbers, and the action that they draw."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import inf

import numpy as np

from ravi.compiled import compiled
from ravi.random import ACTION, RESET, block
from ravi.ranges import PLAYABLE

AHEAD = 256  # steps whose random numbers are drawn at once


class Numbers:
    """The random numbers of step t of a seed, as `ravi.walk` has them."""

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
    are distributions, and whether any is another than `before` (X, A), which is written."""
    X, A = policy.shape
    sound, other = True, False
    for x in range(X):
        many, only, mass, least = 0, 0, 0.0, 0.0
        for a in range(A):
            p = np.float64(policy[x, a])
            other |= p != before[x, a]
            before[x, a] = p
            mass += p
            least = min(least, p)
            if p != 0.0:
                many += 1
                only = a
        actions[x] = only if many == 1 else -1
        if not (abs(mass - 1.0) <= PLAYABLE and least >= 0.0):  # a nan neither
            sound = False
    return sound, other


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
    """Of the actions with these probabilities: `bisect_right` of u is the one that `ravi.walk.draw` draws by u."""
    sums = [*accumulate(row)]
    last = max(a for a, p in enumerate(row) if p > 0.0)
    return [*sums[:last], inf]
