"""Intervals for means, medians and interquartile means of few seeds; the unit is the seed.

mean     bootstrap-t: seeds are resampled and every resample is studentised, so that skewness moves both ends
iqm      the mean of the middle half, `scipy.stats.trim_mean(values, 0.25)`; the same, with the winsorised variance
median   between order statistics, interpolated: no assumption about the distribution

Where most seeds agree, resamples have next to no spread: no end is farther away than `farthest` says. Where seeds are
too few to be resampled, Student's t stands in. One seed gives an interval without ends, equal values one without width.
Percentile intervals, the common choice, are too short: see docs/reference/statistics.md.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.statistics import resampling
from ravi.statistics.resampling import drawn, enough_resamples, picked, product
from ravi.validation import InputError, must_be

STATISTICS = ("mean", "median", "iqm")
LEAST_FOR_MEAN, LEAST_FOR_IQM = 5, 12  # seeds for bootstrap-t: with fewer, resamples may have next to no variance
CUT = 4  # an interquartile mean leaves out a quarter of the values, rounded down, at each end
MOST_RESAMPLES = 10**6
NOTHING = 1e-12  # a variance, relative to that of the seeds, that is rounding
SHORT = 1000  # values that are sorted faster than parted


class Interval(NamedTuple):
    """An estimate with its interval.

    Attributes
    ----------
    estimate
        The mean, the median or the interquartile mean.
    low, high
        The ends; infinite where there are none.
    level
        The probability with which the interval holds the truth.
    """

    estimate: float
    low: float
    high: float
    level: float


def interval(values: Any, statistic: str = "mean", *, level: float = 0.95, resamples: int = 2000) -> Interval:
    """The mean, median or interquartile mean of values (n,), one per seed, with an interval of this level."""
    return stratified([finite(values, "values", 1)], statistic, level=level, resamples=resamples)


def stratified(
    groups: Sequence[Any], statistic: str = "iqm", *, level: float = 0.95, resamples: int = 2000
) -> Interval:
    """The statistic of all values together, with an interval; groups (n_g,), one per MDP, count the same.

    Seeds are resampled within each group. A group of one seed has no spread that could be known: no ends.
    """
    must_be(statistic, STATISTICS, "statistic")
    level, resamples = resampled(level, resamples)
    several = validation.several(groups, "groups", "arrays of numbers, one for each MDP")
    x = [finite(group, f"groups[{place}]", 1) for place, group in enumerate(several)]
    if not x:
        raise InputError("there are no groups")
    estimate, low, high = _ends([group[:, None] for group in x], statistic, level, resamples)
    return Interval(float(estimate[0]), float(low[0]), float(high[0]), level)


def estimated(values: Any, statistic: str = "mean") -> float:
    """The mean, median or interquartile mean of values (n,)."""
    must_be(statistic, STATISTICS, "statistic")
    return float(_point([finite(values, "values", 1)[:, None]], statistic)[0])


def band(
    curves: Any, statistic: str = "mean", *, level: float = 0.95, resamples: int = 1000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The statistic (P,) of curves (n, P), one row per seed, and the ends of its intervals, each point on its own."""
    must_be(statistic, STATISTICS, "statistic")
    level, resamples = resampled(level, resamples)
    return _ends([finite(curves, "curves", 2)], statistic, level, resamples)


def _ends(
    x: list[np.ndarray], statistic: str, level: float, resamples: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates (P,) and their ends, of groups (n_g, P)."""
    values = np.concatenate(x)
    estimate = _point(x, statistic)
    if min(map(len, x)) == 1:
        return estimate, np.full_like(estimate, -np.inf), np.full_like(estimate, np.inf)
    method = {"mean": _mean, "median": _median, "iqm": _iqm}[statistic]
    wide = 1 if statistic == "mean" else len(values)  # numbers of a resample of one point
    few = max(1, resampling.BLOCK // (enough_resamples(resamples, level) * wide))  # points at a time
    parts = [method([group[:, p : p + few] for group in x], level, resamples) for p in range(0, values.shape[1], few)]
    low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    same = np.all([(group == group[0]).all(axis=0) for group in x], axis=0)  # nothing varies within any group
    return estimate, np.where(same, estimate, low), np.where(same, estimate, high)


def _point(x: list[np.ndarray], statistic: str) -> np.ndarray:
    values = np.concatenate(x)
    if statistic == "mean":
        found = np.mean([group.mean(axis=0) for group in x], axis=0)
    elif statistic == "median":
        found = _middle(values.T, _weights(x))
    else:
        found = _trimmed(values.T, _weights(x))[0]
    return np.where((values == values[0]).all(axis=0), values[0], found)  # no rounding where all are equal


# The mean.


def _mean(x: list[np.ndarray], level: float, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    G, N = len(x), sum(map(len, x))
    mean = np.mean([group.mean(axis=0) for group in x], axis=0)
    variance = sum(group.var(axis=0, ddof=1) / len(group) for group in x) / G**2
    error = np.sqrt(variance)
    if LEAST_FOR_MEAN > N - G + 1:
        return student(mean, error, level, N - G)
    unit, R = np.where(error > 0, error, 1.0), enough_resamples(resamples, level)
    moved, spread = np.zeros((2, R, len(mean)))  # mean* - mean and its squared error, in units of the error
    for place, group in enumerate(x):
        n, begin = len(group), 0
        z = (group - group.mean(axis=0)) / unit
        squares = z**2
        for u in drawn(n, R, place, len(mean)):
            rows = slice(begin, begin := begin + len(u))
            moves = product(u, z)
            moved[rows] += moves / G
            spread[rows] += np.maximum(product(u, squares) - moves**2, 0) / ((n - 1) * G**2)
    return studentised(mean, error, moved, spread, level, N - G)


def studentised(
    estimate: np.ndarray, error: np.ndarray, moved: Any, spread: Any, level: float, freedom: int
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of bootstrap-t: estimate - q error, q the quantiles of moved / sqrt(spread), (R, P) in units of error.

    A resample that has moved without a spread is infinitely far; one that is not a number, on either side. No quantile
    is beyond `farthest`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = moved / np.sqrt(spread)
    if not (spread > NOTHING).all():
        with np.errstate(invalid="ignore"):
            ratios = np.where(spread > NOTHING, ratios, np.sign(moved) * np.inf)
        ratios = np.where((spread <= NOTHING) & (np.abs(moved) <= np.sqrt(NOTHING)), 0.0, ratios)
    below, above = _quantiles(ratios, (1 - level) / 2, (1 + level) / 2)
    most = farthest(level, freedom)
    return estimate - np.minimum(above, most) * error, estimate - np.maximum(below, -most) * error


def _quantiles(x: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Two quantiles of every column (R, P), values that occur; what is not a number is far below, or far above."""
    R = len(x)
    a, b = (max(0, int(np.ceil(R * share - 1))) for share in (low, high))
    columns = np.ascontiguousarray(x.T)
    unknown = np.isnan(columns)
    if not unknown.any():
        if R <= SHORT:
            columns.sort(axis=1)
        else:
            columns.partition((a, b), axis=1)
        return columns[:, a], columns[:, b]
    below, above = (np.where(unknown, far, columns) for far in (-np.inf, np.inf))
    below.partition(a, axis=1)
    above.partition(b, axis=1)
    return below[:, a], above[:, b]


@cache
def farthest(level: float, freedom: int) -> float:
    """How many standard errors an end of bootstrap-t is away at most: about three times as many as Student's.

    When all of n seeds agree but one, a third of the resamples miss it: they have no spread, and the quantile is as
    large as the rest is close. These are the most skewed values that there are, of skewness (n - 2) / sqrt(n - 1). The
    limit is what Hall's (1992) cubic correction of Student's t for skewness gives for them, on its longer side, which
    needs no resamples; at levels so high that Student's own end is farther away, it is that.
    """
    from scipy.special import stdtrit

    n = max(3, freedom + 1)
    t = float(stdtrit(n - 1, (1 + level) / 2))
    k = (n - 2) / np.sqrt(n * (n - 1))  # the skewness, over sqrt(n)
    return float(max(t, 3 / k * (1 + np.cbrt(k * (t + k / 6) - 1))))


def student(estimate: Any, error: Any, level: float, freedom: int) -> tuple[Any, Any]:
    from scipy.special import stdtrit

    width = stdtrit(max(1, freedom), (1 + level) / 2) * error
    return estimate - width, estimate + width


# The interquartile mean.


def _iqm(x: list[np.ndarray], level: float, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Tukey and McLaughlin (1963): the error from winsorised values; with enough seeds, bootstrap-t on it."""
    G, N = len(x), sum(map(len, x))
    w = _weights(x)
    middle, low, high, kept = _trimmed(np.concatenate(x).T, w)
    error = np.sqrt(_winsorised([group.T for group in x], low, high, kept))
    if LEAST_FOR_IQM > N - G + 1:
        left = N - 2 * (N // CUT)
        longer = np.sqrt((N - 1) * left / (N * max(1, left - 1)))  # theirs, for few values
        return student(middle, longer * error, level, left - G)
    R, P = enough_resamples(resamples, level), len(middle)
    again = [group.T[:, picked(len(group), R, place)] for place, group in enumerate(x)]  # (P, R, n_g)
    found, low, high, kept = _trimmed(np.concatenate(again, axis=2).reshape(P * R, N), w)
    spread = _winsorised([group.reshape(P * R, -1) for group in again], low, high, kept).reshape(P, R)
    unit = np.where(error > 0, error, 1.0)
    moved = (found.reshape(P, R).T - middle) / unit
    return studentised(middle, error, moved, spread.T / unit**2, level, max(1, N - 2 * (N // CUT) - G))


def _trimmed(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The interquartile means of rows (M, N), the smallest and largest value kept, and the weight that is kept."""
    N = len(w)
    if np.all(w == w[0]):
        cut = N // CUT
        inside = np.sort(x, axis=1)[:, cut : N - cut]
        return inside.mean(axis=1), inside[:, 0], inside[:, -1], np.full(len(x), 1 - 2 * cut / N)
    order = np.argsort(x, axis=1, kind="stable")
    values, weights = np.take_along_axis(x, order, 1), w[order]
    before = np.cumsum(weights, axis=1)
    after = 1 - before + weights
    inside = (before > 1 / CUT + NOTHING) & (after > 1 / CUT + NOTHING)  # whole values, while less than a quarter goes
    weights = weights * inside
    kept = weights.sum(axis=1)
    low = np.where(inside, values, np.inf).min(axis=1)
    high = np.where(inside, values, -np.inf).max(axis=1)
    return (values * weights).sum(axis=1) / kept, low, high, kept


def _winsorised(x: list[np.ndarray], low: np.ndarray, high: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The squared errors (M,) of interquartile means of groups of rows (M, n_g): outer values are moved to the ends."""
    inside = [np.clip(group, low[:, None], high[:, None]) for group in x]
    return sum(group.var(axis=1, ddof=1) / group.shape[1] for group in inside) / (len(x) * kept) ** 2


# The median.


def _median(x: list[np.ndarray], level: float, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    if len(x) == 1:
        return _ordered(x[0], level)
    R, P = enough_resamples(resamples, level), x[0].shape[1]
    again = [group.T[:, picked(len(group), R, place)] for place, group in enumerate(x)]
    found = _middle(np.concatenate(again, axis=2).reshape(P * R, -1), _weights(x)).reshape(P, R)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=1)
    estimate = _middle(np.concatenate(x).T, _weights(x))
    lost = np.sqrt(np.mean([len(group) / (len(group) - 1) for group in x]))  # resamples of n vary less by (n - 1) / n
    return estimate + lost * (low - estimate), estimate + lost * (high - estimate)


def _ordered(x: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Hettmansperger and Sheather (1986): between the two pairs of order statistics whose levels enclose this one.

    No pair reaches 0.95 below six seeds: the ends are then infinite.
    """
    from scipy.special import bdtr

    n = len(x)
    v = np.sort(x, axis=0)
    reached = np.append(1 - 2 * bdtr(np.arange(n // 2), n, 0.5), 0.0)  # by (v[k], v[n - 1 - k]), k = 0, 1, ...
    if reached[0] < level:
        return np.full(x.shape[1], -np.inf), np.full(x.shape[1], np.inf)
    k = int(np.flatnonzero(reached >= level)[-1])
    share = (reached[k] - level) / (reached[k] - reached[k + 1])
    share = (n - k - 1) * share / (k + 1 + (n - 2 * k - 2) * share)
    inner = min(k + 1, (n - 1) // 2)
    low = (1 - share) * v[k] + share * v[inner]
    high = (1 - share) * v[n - 1 - k] + share * v[n - 1 - inner]
    return low, high


def _middle(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The medians of rows (M, N) under weights (N,)."""
    if np.all(w == w[0]):
        return np.median(x, axis=1)
    order = np.argsort(x, axis=1, kind="stable")
    values, before = np.take_along_axis(x, order, 1), np.cumsum(w[order], axis=1)
    left = np.argmax(before >= 0.5 - NOTHING, axis=1)[:, None]
    right = np.argmax(before > 0.5 + NOTHING, axis=1)[:, None]
    return ((np.take_along_axis(values, left, 1) + np.take_along_axis(values, right, 1)) / 2)[:, 0]


def _weights(x: list[np.ndarray]) -> np.ndarray:
    """The weights of the values, in the order of the groups: every group has the same total."""
    if len({len(group) for group in x}) == 1:
        return np.full(len(x) * len(x[0]), 1 / (len(x) * len(x[0])))
    return np.concatenate([np.full(len(group), 1 / (len(x) * len(group))) for group in x])


# The border.


def finite(values: Any, name: str, axes: int) -> np.ndarray:
    """An array of this many axes, not empty, of finite numbers."""
    x = validation.finite(values, name)
    if x.ndim != axes or not x.size:
        raise InputError(f"{name} has shape {x.shape}; it must be {'(n,)' if axes == 1 else '(n, P)'}, not empty")
    return x


def resampled(level: Any, resamples: Any) -> tuple[float, int]:
    """The level of an interval, and how many resamples are drawn, as numbers."""
    return validation.probability(level, "level"), validation.whole(resamples, "resamples", 1, MOST_RESAMPLES)
