"""Resamples of seeds, as indices, counts and weights, and their products with what was measured."""

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

SIDE = 64  # of blocks that are multiplied at a time
BLOCK = 2**18  # numbers that are made at a time: weights of resamples, or what is sorted
KEPT = 2**21  # weights that are kept, since they are used again


@lru_cache(maxsize=2)
def picked(n: int, resamples: int, key: int) -> np.ndarray:
    """Which of n seeds each resample holds: (resamples, n)."""
    indices = np.random.Generator(np.random.PCG64(key)).integers(0, n, (resamples, n))
    indices.flags.writeable = False
    return indices


def counted(n: int, resamples: int, key: int, rows: int) -> Iterator[np.ndarray]:
    """How often each of n seeds is in each of the resamples of `picked`: (rows, n) at a time, the last may be fewer."""
    source = np.random.Generator(np.random.PCG64(key))
    for begin in range(0, resamples, rows):
        size = min(rows, resamples - begin)
        places = source.integers(0, n, (size, n))
        places += n * np.arange(size)[:, None]
        yield np.bincount(places.ravel(), minlength=size * n).reshape(size, n)


def drawn(n: int, resamples: int, key: int, points: int) -> Iterator[np.ndarray]:
    """The same as weights: how often each seed was drawn, over n; (rows, n) at a time.

    points: how many numbers will be made of a row. So few rows that these stay in a core's cache.
    """
    rows = max(SIDE, SIDE**3 // (n * points))
    blocks = _weighed(n, resamples, key) if n * resamples > KEPT else [_kept(n, resamples, key)]
    for weights in blocks:
        for begin in range(0, len(weights), rows):
            yield weights[begin : begin + rows]


@lru_cache(maxsize=6)
def _kept(n: int, resamples: int, key: int) -> np.ndarray:
    weights, begin = np.empty((resamples, n)), 0
    for some in _weighed(n, resamples, key):
        weights[begin : begin + len(some)] = some
        begin += len(some)
    weights.flags.writeable = False
    return weights


def _weighed(n: int, resamples: int, key: int) -> Iterator[np.ndarray]:
    for counts in counted(n, resamples, key, max(1, BLOCK // n)):
        yield np.cumsum([0.0] + [1 / n] * int(counts.max()))[counts]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b, in blocks so small that BLAS does each on one core.

    For what resampling multiplies, other cores cost more than they help: ten times, where they have other work.
    """
    (n, K), m = a.shape, b.shape[1]
    if n * K * m <= SIDE**3:
        return a @ b
    result = np.zeros((n, m))
    for i, j, k in itertools.product(*(range(0, size, SIDE) for size in (n, m, K))):
        result[i : i + SIDE, j : j + SIDE] += a[i : i + SIDE, k : k + SIDE] @ b[k : k + SIDE, j : j + SIDE]
    return result


def enough_resamples(resamples: int, level: float) -> int:
    """At least ten beyond each end, up to a hundred thousand in all."""
    return max(resamples, min(100_000, int(np.ceil(20 / (1 - level)))))
