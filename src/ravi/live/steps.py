"""What belongs to a step of a stream? Its random numbers, and the action that they draw."""

from __future__ import annotations

from itertools import accumulate
from math import inf

import numpy as np

from ravi.compiled import compiled
from ravi.random import block

AHEAD = 256  # steps whose random numbers are drawn at once


class Numbers:
    """The random numbers of step t of a seed, as `ravi.walk` has them."""

    def __init__(self, seed: int) -> None:
        self.seed, self.first = np.uint64(seed), -AHEAD  # the first step whose numbers are there
        self.held: list[list[float]] = []

    def __call__(self, t: int) -> list[float]:
        if not self.first <= t < self.first + AHEAD:
            self.held, self.first = _blocks(self.seed, t, AHEAD).tolist(), t
        return self.held[t - self.first]

    def ahead(self, t: int, many: int) -> list[list[float]]:
        """The numbers of steps t, t + 1, ..., `many` at most, as far as they are there."""
        begin = t - self.first
        return self.held[begin : begin + max(many, 0)]


@compiled
def _blocks(key, first, many):  # type: ignore[no-untyped-def]
    """The numbers of steps first, first + 1, ...: (many, 4)."""
    numbers = np.empty((many, 4))
    for i in range(many):
        numbers[i, 0], numbers[i, 1], numbers[i, 2], numbers[i, 3] = block(key, first + i, 0)
    return numbers


@compiled
def only_actions(policy, actions):  # type: ignore[no-untyped-def]
    """The action of every state whose row of a policy (X, A) has no other, in place; -1 of all others."""
    X, A = policy.shape
    for x in range(X):
        many, only = 0, 0
        for a in range(A):
            if policy[x, a] != 0.0:
                many += 1
                only = a
        actions[x] = only if many == 1 else -1


def thresholds(row: list[float]) -> list[float]:
    """Of these probabilities: `bisect_right` of a number u in [0, 1) is the action that `ravi.walk.draw` draws by it."""
    sums = [*accumulate(row)]
    last = max(a for a, p in enumerate(row) if p > 0.0)
    return [*sums[:last], inf]
