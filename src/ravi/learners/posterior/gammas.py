"""Gamma variates, of which rows of a Dirichlet distribution are made.

    shape > 1    Marsaglia and Tsang (2000): d (1 + c Z)^3, Z normal by Box and Muller, accepted in 95 % and more
    shape = 1    -ln(1 - U)
    shape < 1    G U^(1 / shape), G of shape + 1

All are exact. They take the blocks of step t under the learner's key (`ravi.random`) one after another, from `part` on.
"""

import math

from ravi._jit.functions import compiled
from ravi.random import block


@compiled
def gamma_above_one(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of shape > 1, and the first block that was not used."""
    d = shape - 1.0 / 3.0
    while True:
        u, w, accept, _ = block(key, t, part)
        part += 1
        z = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w)
        v = 1.0 + 1.0 / math.sqrt(9.0 * d) * z
        if v > 0.0:
            v = v * v * v
            if accept < 1.0 - 0.0331 * z**4 or math.log(accept) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return d * v, part


@compiled
def gamma(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of any shape above 0, and the first block that was not used."""
    if shape > 1.0:
        return gamma_above_one(shape, key, t, part)
    u, _, _, _ = block(key, t, part)
    if shape == 1.0:
        return -math.log(1.0 - u), part + 1
    drawn, part = gamma_above_one(shape + 1.0, key, t, part + 1)
    return drawn * (1.0 - u) ** (1.0 / shape), part


@compiled
def log_gamma(shape, key, t, part):  # type: ignore[no-untyped-def]
    """The logarithm of one, which may be below all that a number holds, and the first block that was not used."""
    if shape >= 1.0:
        drawn, part = gamma(shape, key, t, part)
        return math.log(drawn), part
    u, _, _, _ = block(key, t, part)
    drawn, part = gamma_above_one(shape + 1.0, key, t, part + 1)
    return math.log(drawn) + math.log(1.0 - u) / shape, part
