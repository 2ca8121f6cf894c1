"""Draws of simulators: normal, truncated normal, Gamma and Beta numbers from uniform(key, t, lane), compiled.

Rejection takes as many lanes as it needs: each function gives the next free lane beside its number.
"""

import math

from ravi._jit.functions import compiled
from ravi.random import uniform


@compiled
def normal(key, t, lane):  # type: ignore[no-untyped-def]
    """Standard normal, by Box and Muller; and the next lane."""
    u, v = 1.0 - uniform(key, t, lane), uniform(key, t, lane + 1)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v), lane + 2


@compiled
def normal_within(mean, deviation, low, high, key, t, lane):  # type: ignore[no-untyped-def]
    """Normal, given that it lies in [low, high], which holds the mean: by rejection; and the next lane."""
    while True:
        z, lane = normal(key, t, lane)
        y = mean + deviation * z
        if low <= y <= high:
            return y, lane


@compiled
def gamma(shape, key, t, lane):  # type: ignore[no-untyped-def]
    """Gamma(shape, 1), shape >= 1, by rejection (Marsaglia and Tsang 2000); and the next lane."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        z, lane = normal(key, t, lane)
        v = (1.0 + c * z) ** 3
        u, lane = 1.0 - uniform(key, t, lane), lane + 1
        if v > 0.0 and math.log(u) < 0.5 * z * z + d - d * v + d * math.log(v):
            return d * v, lane


@compiled
def beta(p, q, key, t, lane):  # type: ignore[no-untyped-def]
    """Beta(p, q), p and q >= 1; and the next lane."""
    one, lane = gamma(p, key, t, lane)
    other, lane = gamma(q, key, t, lane)
    return one / (one + other), lane
