"""How does a sum over steps grow? Running totals per seed, kept at the times that a plot needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array


class Curve(NamedTuple):
    total: Array  # the sum so far               (n,)
    cursor: Array  # the next grid time to fill  (n,)
    values: Array  # the sum at each grid time; nan where a stopped run has not come to   (n, P)


def grid(steps: int, points: int) -> Array:
    """At most `points` times from 1 to T, evenly spread, T among them."""
    return np.unique(np.ceil(np.linspace(0, steps, min(points, steps) + 1)[1:]).astype(np.int64))


def curve(n: int, times: Array) -> Curve:
    return Curve(np.zeros(n), np.zeros(n, np.int64), np.full((n, len(times)), np.nan))


@compiled
def add_steps(times, total, cursor, values, table, first, length, state, action):  # type: ignore[no-untyped-def]
    """Step t adds table[x_t, a_t]."""
    end = times[-1]
    for i in range(total.shape[0]):
        for l in range(length[i]):
            t = first[i] + l
            if t > end:  # padding
                break
            total[i] += table[state[i, l], action[i, l]]
            if times[cursor[i]] == t:
                values[i, cursor[i]] = total[i]
                cursor[i] += 1
