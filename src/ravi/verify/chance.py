"""The interval that the mean of n seeds leaves by chance with probability at most `level`.

Where the law of a seed's value is known, by Chernoff's bound; where the value is a martingale whose conditional
variances are known, by Bernstein's; both hold for every number of seeds. Elsewhere by Student's t, which is exact only
if seeds are normal: it is kept for inequalities, where a bound that holds with room is not exceeded by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ravi.core import Array

Interval: TypeAlias = Callable[[float], tuple[Array, Array]]  # level -> low, high, of each mean
SCALES = 64  # of the random variance in Bernstein's bound, from step^2 to 2^63 step^2


class Martingale(NamedTuple):
    """A seed's value is one, or several."""

    variance: Any  # the sum of its conditional variances
    step: float  # the scale of its increments
    upper: bool = False  # whether only values above the bound count


class Law(NamedTuple):
    """A seed's value has this law."""

    values: Array
    probabilities: Array


def law(seeds: list[Any], values: Array, bound: float) -> Interval:
    """That of the mean of `values`, by what is known of each seed: a `Martingale`, a `Law` or nothing."""
    first, n = seeds[0], len(seeds)
    if isinstance(first, Martingale):
        variance = np.sum([one.variance for one in seeds], axis=0)
        return bernstein(variance, max(one.step for one in seeds), n, upper=first.upper)
    return student(values, bound) if first is None else chernoff(first.values, first.probabilities, n)


def chernoff(values: Array, probabilities: Array, n: int) -> Interval:
    """For the mean of n independent draws from a known law: P(mean >= s) <= (E e^{u X} e^{-u s})^n for every u > 0."""
    mean = float(values @ probabilities)
    deviation = sqrt(max(float((values - mean) ** 2 @ probabilities), 1e-300))
    u = np.geomspace(1e-3, 1e3, 200) / deviation

    def interval(level: float) -> tuple[Array, Array]:
        room = log(2 / level) / n
        high = mean + ((_cumulant(values - mean, probabilities, u) + room) / u).min()
        low = mean - ((_cumulant(mean - values, probabilities, u) + room) / u).min()
        return np.array(low), np.array(high)

    return interval


def _cumulant(values: Array, probabilities: Array, u: Array) -> Array:
    """log E e^{u X}, for every u."""
    possible = probabilities > 0
    terms = u[:, None] * values[possible] + np.log(probabilities[possible])
    top = terms.max(1)
    return top + np.log(np.exp(terms - top[:, None]).sum(1))


def bernstein(variance: Array, step: Array | float, n: int, *, upper: bool = False) -> Interval:
    """For S / n, S a martingale with the summed conditional variances `variance`, and increments of scale `step`.

    P(S >= x, variance <= v) <= exp(-x^2 / (2 (v + step x))), if the conditional moments of increments are below those
    of an exponential law of mean `step` (a geometric one of mean `step` too); increments up to c have step c / 3. The
    variance is random: it is rounded up to one of SCALES values, and the probabilities are added up.
    """
    v, b = np.broadcast_arrays(np.asarray(variance, float), np.asarray(step, float))
    moves = (v > 0) & (b > 0)
    square = np.where(moves, b, 1.0) ** 2
    rounded = square * 2 ** np.ceil(np.log2(np.maximum(np.where(moves, v, 1.0) / square, 1)))

    def interval(level: float) -> tuple[Array, Array]:
        l = log((1 if upper else 2) * SCALES / level)
        room = np.where(moves, b * l + np.sqrt((b * l) ** 2 + 2 * rounded * l), 0.0) / n
        return np.full_like(room, -np.inf) if upper else -room, room

    return interval


def student(values: Array, bound: float) -> Interval:
    """For the mean of `values`, which is at most `bound` in expectation."""
    from scipy.stats import t

    n = len(values)
    error = float(values.std(ddof=1)) / sqrt(n)

    def interval(level: float) -> tuple[Array, Array]:
        return np.array(-np.inf), np.array(bound + float(t.isf(level, n - 1)) * error)

    return interval
