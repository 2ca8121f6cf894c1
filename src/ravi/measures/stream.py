"""What was the stream of experience? Every (x_t, a_t, y_t) and reset flag; memory n T, for short runs and tests."""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Array, Measure, Path, Problem, Recorder
from ravi.runtime.ranges import ActionOrNone, Flag, PlaceOrNone
from ravi.runtime.walk import padding


class Stream(NamedTuple):
    state: PlaceOrNone  # x_t, -1 where nothing was played    (n, T + room for padding)
    action: ActionOrNone  # a_t
    successor: PlaceOrNone  # y_t
    reset: Flag  # whether a reset followed


def stream(problem: Problem, steps: int, *, pad: bool = False) -> Measure:
    beyond = padding(problem.horizon) if pad else 0

    def init(keys: Array) -> Stream:
        shape = (len(keys), steps + beyond)
        state, action, successor = (np.full(shape, -1, np.int32) for _ in range(3))
        return Stream(state, action, successor, np.zeros(shape, np.bool_))

    def record(m: Stream, state: Any, path: Path, opening: bool) -> Stream:
        _write(0, len(m.state), *m, path.time, path.length, path.state, path.action, path.successor, path.reset)
        return m

    def results(m: Stream) -> dict[str, Array]:
        return {f"stream_{name}": array for name, array in m._asdict().items()}

    return Measure("stream", init, record, results, Recorder(record_stream, lambda m, teams, rows: tuple(m)))


@compiled
def record_stream(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """`record`, of one seed; a team's."""
    state, action, successor, reset = own
    xs, actions, ys, _, resets, lengths, firsts, _ = path
    _write(i, i + 1, state, action, successor, reset, firsts, lengths, xs, actions, ys, resets)


@compiled
def _write(  # type: ignore[no-untyped-def]
    low, high, state, action, successor, reset, firsts, lengths, xs, actions, ys, resets
):
    """The steps of seeds low, ..., high - 1, where they belong."""
    for i in range(low, high):
        begin = firsts[i] - 1
        for l in each(lengths[i]):
            state[i, begin + l], action[i, begin + l], successor[i, begin + l] = xs[i, l], actions[i, l], ys[i, l]
            reset[i, begin + l] = resets[i, l]
