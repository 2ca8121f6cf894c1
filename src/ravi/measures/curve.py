"""Curves: the running sum over the steps of every seed, kept at the times that a plot needs."""

from typing import Annotated, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.random import earned
from ravi.runtime.ranges import Number, NumberOrNan, Range


def grid(steps: int, points: int) -> Array:
    """At most `points` times from 1 to T, evenly spread, T among them."""
    return np.unique(np.ceil(np.linspace(0, steps, min(points, steps) + 1)[1:]).astype(np.int64))


def passed(times: Array, time: Array) -> Array:
    """How many of the times (P,) have come, at `time` (n,)."""
    return np.searchsorted(times, time, side="right")


def cursor_into(name: str) -> Range:
    """The range of a cursor into the field `name` (n, P), which is filled at the times of `grid`."""
    return Range(
        lambda cursor, f, _, held: cursor == passed(grid(f.steps, getattr(held, name).shape[1]), f.time),
        "the place of the first time that is still to come",
    )


class Curve(NamedTuple):
    """A sum at the times of `grid`."""

    total: Number  # the sum so far                (n,)
    cursor: Annotated[Array, cursor_into("values")]  # the next time to fill   (n,)
    values: NumberOrNan  # the sum at each time; nan where a stopped run has not come to   (n, P)


def curve(n: int, times: Array) -> Curve:
    """A curve of n seeds before any step."""
    return Curve(np.zeros(n), np.zeros(n, np.int64), np.full((n, len(times)), np.nan))


@compiled
def add_steps(i, times, kept, table, law, key, path):  # type: ignore[no-untyped-def]
    """Step t of seed i adds to its curve what this law draws with mean table[x_t, a_t], by law 0 that itself."""
    (total, cursor, values), (state, action, _, _, _, length, first, _) = kept, path
    P, end = times.shape[0], times[times.shape[0] - 1]
    so_far, at, l = total[i], cursor[i], 0
    last = min(length[i], max(end - first[i] + 1, 0))  # beyond T it is padding
    while l < last:
        stop = last if at == P else min(last, times[at] - first[i] + 1)
        for step in range(l, stop):
            so_far += earned(law, key[i], first[i] + step, table[state[i, step], action[i, step]])
        l = stop
        if at < P and times[at] == first[i] + l - 1:
            values[i, at] = so_far
            at += 1
    total[i], cursor[i] = so_far, at
