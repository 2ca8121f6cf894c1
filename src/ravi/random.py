"""Random numbers without state: uniform(key, t, i), a pure function.

Philox4x64-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3") turns a counter of four
words under a key of two into four words of 64 bits. Here the key is (key, 0) and the counter (t, i // 4, 0, 0); the
lane i % 4 of the block is the number, its upper 53 bits a float in [0, 1). So a step costs one block, and number i of
step t is the same alone, in a batch, in another process, after a resume, and for every learner. Rewards of a
beta law have counters (t, part, 1, 0) of their own.
"""

from typing import Any

import numpy as np
from numba.extending import overload

from ravi._jit.functions import compiled, interpreted

# The numbers of step t, in the block of lanes 0 to 3.
RESET, ACTION, SUCCESSOR, INITIAL = 0, 1, 2, 3
# Numbers beyond the first block belong to learners that randomise (lanes 4, 5, ... of step t):
PICK, REWARD = 4, 5  # which of several policies is played; whether a coin pays
# Step 0 is never played; its block holds the first state (INITIAL) and the index of the output policy.
OUTPUT = 0
# Policies that are played by themselves, from reset to reset: cycle c has the steps from (c + 1) CYCLE on, beyond any
# step of a learner.
CYCLE = 2**32

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_SHIFT, _UNIT = np.uint64(11), 2.0**-53


def high(a: Any, b: Any) -> Any:
    """The upper word of the 128-bit product of two words; a GPU has an instruction for it (`ravi._jit.cuda`)."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a1 * b0 + ((a0 * b0) >> _HALF)
    return a1 * b1 + (middle >> _HALF) + (((middle & _LOW) + a0 * b1) >> _HALF)


overload(high, strict=False)(lambda a, b: high)


@compiled
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Philox4x64-10: four words of 64 bits from a counter of four and a key of two."""
    for _ in range(10):
        c0, c1, c2, c3 = high(_M1, c2) ^ c1 ^ k0, _M1 * c2, high(_M0, c0) ^ c3 ^ k1, _M0 * c0
        k0, k1 = k0 + _W0, k1 + _W1
    return c0, c1, c2, c3


@compiled
def block(key, t, part):  # type: ignore[no-untyped-def]
    """The four uniform numbers i = 4 part, ..., 4 part + 3 of step t, each in [0, 1)."""
    zero = np.uint64(0)
    c0, c1, c2, c3 = philox(np.uint64(t), np.uint64(part), zero, zero, np.uint64(key), zero)
    return (c0 >> _SHIFT) * _UNIT, (c1 >> _SHIFT) * _UNIT, (c2 >> _SHIFT) * _UNIT, (c3 >> _SHIFT) * _UNIT


@compiled
def uniform(key, t, i):  # type: ignore[no-untyped-def]
    """Number i of step t under `key`, uniform on [0, 1): a pure function of the three.

    Parameters
    ----------
    key
        The seed.
    t
        The step.
    i
        The number's place: 0 to 3 are those of the step itself, learners that randomise take the others.

    Returns
    -------
    float

    Examples
    --------
    >>> from ravi.random import uniform
    >>> uniform(7, 1, 4) == uniform(7, 1, 4) != uniform(7, 2, 4)
    True
    """
    return block(key, t, i // 4)[i % 4]


def uniforms(keys: Any, t: int, i: int) -> Any:
    """Number i of step t under each of `keys` (n,): `uniform`, without a loop to be compiled."""
    if len(keys) < 64:  # arrays take as long for one as for hundreds
        return np.array([uniform(key, t, i) for key in keys])
    with np.errstate(over="ignore"):
        return interpreted(block)(np.asarray(keys, np.uint64), t, i // 4)[i % 4]


_BETA = np.uint64(1)  # the third word of the counters of beta variates


@compiled
def earned(law, key, t, mean):  # type: ignore[no-untyped-def]
    """What step t earns under `key`, with this mean r in [0, 1], by a law (a value of `ravi.validation.LAWS`).

    The laws are: r itself; 1 with probability r, else 0; Beta(2 r, 2 (1 - r)), which is uniform where r = 1/2.
    """
    if law == 0:
        return mean
    if law == 1:
        return 1.0 if uniform(key, t, REWARD) < mean else 0.0
    return _beta(key, t, mean)


@compiled
def _beta(key, t, mean):  # type: ignore[no-untyped-def]
    """Johnk's (1964): of U^(1 / a) and V^(1 / b), the first in parts of their sum, once that is at most 1, which has a
    probability of at least 1/2 where a + b = 2."""
    if mean <= 0.0 or mean >= 1.0:
        return mean
    part, zero = np.uint64(0), np.uint64(0)
    while True:
        c0, c1, _, _ = philox(np.uint64(t), part, _BETA, zero, np.uint64(key), zero)
        u, v = (c0 >> _SHIFT) * _UNIT, (c1 >> _SHIFT) * _UNIT
        a, b = u ** (0.5 / mean), v ** (0.5 / (1.0 - mean))
        if 0.0 < a + b <= 1.0:
            return a / (a + b)
        part += np.uint64(1)
