"""What was the stream of experience? Every (x_t, a_t, y_t) and reset flag; memory n T, for short runs and tests."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array, Measure, Path, Problem
from ravi.ranges import ActionOrNone, Facts, Flag, PlaceOrNone


class Stream(NamedTuple):
    state: PlaceOrNone  # x_t, -1 where nothing was played    (n, T + room for padding)
    action: ActionOrNone  # a_t
    successor: PlaceOrNone  # y_t
    reset: Flag  # whether a reset followed

    def agrees(self, facts: Facts) -> dict[str, Array]:
        made = np.arange(self.state.shape[1]) < facts.walked[:, None]
        parts = (self.state, self.action, self.successor)
        return {"there are as many plays as the walker has made": [(part >= 0) == made for part in parts]}


def padding(horizon: float) -> int:
    """Plays that there is room for beyond T: T+ - T exceeds 50 H with probability below e^-50."""
    return ceil(50 * horizon) + 1


def stream(problem: Problem, steps: int, *, pad: bool = False) -> Measure:
    beyond = padding(problem.horizon) if pad else 0

    def init(keys: Array) -> Stream:
        shape = (len(keys), steps + beyond)
        state, action, successor = (np.full(shape, -1, np.int32) for _ in range(3))
        return Stream(state, action, successor, np.zeros(shape, np.bool_))

    def record(m: Stream, state: Any, path: Path, opening: bool) -> Stream:
        for i, (first, length) in enumerate(zip(path.time - 1, path.length, strict=True)):
            rows = slice(first, first + length)
            m.state[i, rows] = path.state[i, :length]
            m.action[i, rows] = path.action[i, :length]
            m.successor[i, rows] = path.successor[i, :length]
            m.reset[i, rows] = path.reset[i, :length]
        return m

    def results(m: Stream) -> dict[str, Array]:
        return {f"stream_{name}": array for name, array in m._asdict().items()}

    return Measure("stream", init, record, results)
