"""How does a simulator that only draws become a table? By m draws for every pair, and with an error that is stated.

    P_m(y | x, a) = #{j: y_j = y} / m,   y_j = simulator(x, a, u_j),   u_j uniform on [0, 1)

For all pairs at once, with probability 1 - delta, ||P_m - P||_1 <= sqrt(2 (X ln 2 + ln(X A / delta)) / m) (Weissman et
al. 2003, and a union bound), so |(P_m - P) V| is at most half of that times the span of V. The tables are drawn once:
a mixture of them is a linear mixture, but the truth is one only up to that error.
"""

from collections.abc import Callable
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi.mdps.draws import uniforms
from ravi.mdps.simulators import state_of
from ravi.validation import require_memory


class Sampled(NamedTuple):
    """A simulator's table, for `ravi.ensemble`, and how far from the truth it may be."""

    table: list[list[list[tuple[float, int]]]]  # P[x][a] = [(p, y), ...]
    error: float  # ||P_m - P||_1 of every pair, at most, with probability 1 - delta


def sampled(
    simulator: Callable[[int, int, float], int], states: int, actions: int, draws: int, *, seed: int = 0,
    delta: float = 0.01,
) -> Sampled:  # fmt: skip
    """The table of (x, a, u) -> y by `draws` draws for every pair. Give every simulator a seed of its own."""
    X, A, m = validation.whole(states, "states"), validation.whole(actions, "actions"), validation.whole(draws, "draws")
    delta = validation.probability(delta, "delta")
    if not callable(simulator):
        raise validation.InputError(f"simulator is {validation.shown(simulator)}, not a function (x, a, u) -> y")
    size = 200 * X * A * min(m, X) + 100 * m  # lists of Python's own numbers
    require_memory(size, f"a table of {X:,} states, {A:,} actions and {m:,} draws", "states, actions or draws")
    numbers = uniforms(seed)
    table = []
    for x in range(X):
        of_x = []
        for a in range(A):
            label = f"simulator({x}, {a}, u)"
            found = [state_of(simulator(x, a, float(u)), X, label) for u in numbers(m)]
            y, count = np.unique(found, return_counts=True)
            of_x.append([(int(n) / m, int(one)) for one, n in zip(y, count, strict=True)])
        table.append(of_x)
    return Sampled(table, sqrt(2 * (X * log(2) + log(X * A / delta)) / m))
