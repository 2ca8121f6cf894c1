"""What belongs to a step of a stream? Its random numbers, the action that they draw, a world in which it is certain."""

from __future__ import annotations

import numpy as np

from ravi.compiled import compiled
from ravi.core import Problem
from ravi.random import block
from ravi.walk import World

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


@compiled
def _blocks(key, first, many):  # type: ignore[no-untyped-def]
    """The numbers of steps first, first + 1, ...: (many, 4)."""
    numbers = np.empty((many, 4))
    for i in range(many):
        numbers[i, 0], numbers[i, 1], numbers[i, 2], numbers[i, 3] = block(key, first + i, 0)
    return numbers


def draw(row: list[float], u: float) -> int:
    """An action of these probabilities, as `ravi.walk.draw` draws it."""
    a, mass = 0, 0.0
    for b, p in enumerate(row):
        if p > 0.0:
            a = b
            mass += p
            if u < mass:
                break
    return a


class Certain:
    """A world in which what happened is certain: a learner that learns at every step is walked through it."""

    def __init__(self, problem: Problem) -> None:
        X, A, B = problem.successors.shape
        self.cumulative, self.initial, self.start = np.ones((X, A, B)), np.ones(X), 0
        self.slots: dict[tuple[int, int], int] = {}  # the successor that is certain, of pairs
        stays, resets = (World(problem.successors, self.cumulative, self.initial, p) for p in (0.0, 1.0))
        self.worlds = stays, resets

    def after(self, x: int, a: int, slot: int, reset: bool, then: int) -> World:
        """The world in which (x, a) leads to the successor in this slot, and a reset, where there is one, to `then`."""
        if self.slots.get((x, a)) != slot:
            row = self.cumulative[x, a]
            row[:slot], row[slot:] = 0.0, 1.0
            self.slots[x, a] = slot
        if reset:
            low, high = sorted((self.start, then))
            self.initial[low:high] = 0.0 if then > self.start else 1.0
            self.start = then
        return self.worlds[reset]
