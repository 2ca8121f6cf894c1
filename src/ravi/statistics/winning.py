"""The probability that a run of one learner beats a run of another, with its interval, for one pair or for all.

P(a run of first is better than one of second), ties counted half, averaged over MDPs. In a resample of the seeds it is
sum_ij c_i d_j w_ij / (n m), with c and d how often each run was drawn, and w_ij 1, 1/2 or 0. Of second's runs in their
order, those that run i beats are the last: with the sums of d from every place on, a resample costs n + m, not n m. The
sums are of whole numbers, and exact.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ravi.statistics.intervals import Interval, resampled
from ravi.statistics.resampling import BLOCK, KEPT, counted
from ravi.statistics.scores import Scores
from ravi.validation import InputError, several

LEAST_VARIANCE = 1e-20  # of a share: below this it is rounding


def improvement(
    scores: Scores,
    first: str,
    second: str,
    *,
    mdps: Sequence[str] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
) -> Interval:
    """P(a run of first is better than one of second), ties counted half, averaged over the MDPs that both have.

    The variance is that of resampled seeds: the same ones for both learners where they have the same. The interval is
    Wilson's, for as many independent trials as would have that variance, and stays within [0, 1]. Where one learner
    always wins, resamples say nothing: the interval is that of Clopper and Pearson for disjoint pairs, all won.
    """
    named = scores.mdps if mdps is None else tuple(several(mdps, "mdps", "a list of MDPs"))
    for name in (first, second):
        scores.known(name, *named)
    common = [mdp for mdp in named if mdp in scores.values[first] and mdp in scores.values[second]]
    if not common:
        raise InputError(f"{first} and {second} have no MDP in common")
    return _improved(scores, [(first, second)], common, *resampled(level, resamples))[0]


def improvements(
    scores: Scores, learners: Sequence[str], *, level: float = 0.95, resamples: int = 2000
) -> dict[tuple[str, str], Interval]:
    """The same for all pairs (first, second) of learners, first before second, all of which ran on every MDP."""
    level, resamples = resampled(level, resamples)
    learners = list(several(learners, "learners", "a list of learners"))
    for name in learners:
        scores.known(name)
        if missing := [mdp for mdp in scores.mdps if mdp not in scores.values[name]]:
            raise InputError(f"there is no run of {name} on {missing[0]}")
    pairs = [(first, second) for place, second in enumerate(learners) for first in learners[:place]]
    few = max(1, KEPT // resamples)  # at a time
    found: dict[tuple[str, str], Interval] = {}
    for begin in range(0, len(pairs), few):
        some = pairs[begin : begin + few]
        found |= zip(some, _improved(scores, some, scores.mdps, level, resamples), strict=True)
    return found


class _Runs(NamedTuple):
    """A learner's runs on an MDP, the smaller the better, as intervals: each may be off by its error."""

    seeds: bytes
    low: np.ndarray
    high: np.ndarray
    by_low: np.ndarray  # their places in the order of the lower ends
    by_high: np.ndarray  # and in that of the upper ends, which is nearly always the same


class _Match(NamedTuple):
    """Where the runs of some learners, all on the same seeds, stand among those of another."""

    places: list[int]  # of the pairs
    first: tuple[int, int]  # how many runs each of the firsts has, and the key that resamples them
    second: tuple[int, int]  # the same of second
    name: str  # of second
    beats: np.ndarray  # run i of first a beats those of second from this place on, by lower ends   (A, n)
    holds: np.ndarray  # beats them, or cannot be told from them, from this place on, by upper ends   (A, n)


def _improved(
    scores: Scores, pairs: Sequence[tuple[str, str]], mdps: Sequence[str], level: float, resamples: int
) -> list[Interval]:
    p, every, fewest = np.zeros(len(pairs)), np.zeros((len(pairs), resamples)), np.full(len(pairs), np.inf)
    for place, mdp in enumerate(mdps):
        runs = {name: _runs(scores, name, mdp) for name in dict.fromkeys(name for pair in pairs for name in pair)}
        matches = _matches(runs, pairs, 2 * place)
        for match in matches:
            n, m = match.first[0], match.second[0]
            p[match.places] += 1 - (match.beats + match.holds).sum(axis=1) / (2 * n * m)
            fewest[match.places] = np.minimum(fewest[match.places], min(n, m))
        _resample(every, runs, matches)
    G = len(mdps)
    variance = np.array([(one / G).var() for one in every])
    low, high = wilson(p / G, variance, G * fewest, level)
    ends = zip((p / G).tolist(), low.tolist(), high.tolist(), strict=True)
    return [Interval(*one, level) for one in ends]


def _runs(scores: Scores, learner: str, mdp: str) -> _Runs:
    seeds, values = scores.of(learner, mdp)
    x, off = -values if scores.larger_is_better else values, scores.error(learner, mdp)
    return _Runs(np.asarray(seeds, np.int64).tobytes(), x - off, x + off, np.argsort(x - off), np.argsort(x + off))


def _matches(runs: dict[str, _Runs], pairs: Sequence[tuple[str, str]], key: int) -> list[_Match]:
    """The pairs by second, and by the seeds of first; the same resamples for both, where they have the same seeds."""
    alike: dict[tuple[str, bytes], list[int]] = {}
    for k, (one, two) in enumerate(pairs):
        alike.setdefault((two, runs[one].seeds), []).append(k)
    matches = []
    for (name, seeds), places in alike.items():
        firsts, second = [runs[pairs[k][0]] for k in places], runs[name]
        beats = np.searchsorted(second.low[second.by_low], [held.high for held in firsts], side="right")
        holds = np.searchsorted(second.high[second.by_high], [held.low for held in firsts], side="left")
        mine, other = (len(firsts[0].low), key), (len(second.low), key + (seeds != second.seeds))
        matches.append(_Match(places, mine, other, name, beats, holds))
    return matches


def _resample(every: np.ndarray, runs: dict[str, _Runs], matches: Sequence[_Match]) -> None:
    """Add to every (pairs, R) the share of pairs of runs that first wins, in every resample of the seeds."""
    R, most = every.shape[1], max(len(held.low) for held in runs.values())
    exact = np.min_scalar_type(-2 * most**2 - 1)  # whole numbers, as short as all sums allow
    rows = min(R, max(1, BLOCK // most))  # that are held at a time
    names = dict.fromkeys(name for match in matches for name in (match.first, match.second))
    sources = {name: _counts(*name, R, rows, exact) for name in names}
    for begin in range(0, R, rows):
        counts = {name: next(source) for name, source in sources.items()}
        for match in matches:
            low, high = _sums(runs[match.name], counts[match.second])
            exact_order = low is high and np.array_equal(match.beats, match.holds)  # every run from every other
            c, size = counts[match.first], (1 if exact_order else 2) * match.first[0] * match.second[0]
            for k, beats, holds in zip(match.places, match.beats, match.holds, strict=True):
                every[k, begin : begin + rows] += (
                    np.einsum("ir,ir->r", c, low[beats] if exact_order else low[beats] + high[holds]) / size
                )


def _counts(n: int, key: int, resamples: int, rows: int, exact: np.dtype) -> Iterator[np.ndarray]:
    """How often each of n runs is in each resample: (n, rows) at a time."""
    if n * resamples > BLOCK:
        yield from (np.ascontiguousarray(some.T, dtype=exact) for some in counted(n, resamples, key, rows))
    else:
        whole = _kept(n, key, resamples, exact)
        for begin in range(0, resamples, rows):
            yield np.ascontiguousarray(whole[:, begin : begin + rows])


@lru_cache(maxsize=64)
def _kept(n: int, key: int, resamples: int, exact: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(next(counted(n, resamples, key, resamples)).T, dtype=exact)


def _sums(second: _Runs, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of counts (m, rows) from every place on, by lower and by upper ends: (m + 1, rows) each."""

    def of(order: np.ndarray) -> np.ndarray:
        sums = np.zeros((len(order) + 1, counts.shape[1]), counts.dtype)
        for place in range(len(order) - 1, -1, -1):
            np.add(sums[place + 1], counts[order[place]], out=sums[place])
        return sums

    low = of(second.by_low)
    return low, low if np.array_equal(second.by_low, second.by_high) else of(second.by_high)


def wilson(p: np.ndarray, variance: Any, fewest: Any, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's intervals for shares p of so many trials that they would have this variance; `fewest` at 0 and 1."""
    from scipy.special import ndtri

    z2 = ndtri((1 + level) / 2) ** 2
    inside = (p > 0) & (p < 1) & (np.asarray(variance) > LEAST_VARIANCE)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.where(inside, p * (1 - p) / variance, fewest)
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    edge = ((1 - level) / 2) ** (1 / np.asarray(fewest))
    low = np.where(p >= 1, edge, np.where(p <= 0, 0.0, centre - half))
    high = np.where(p <= 0, 1 - edge, np.where(p >= 1, 1.0, centre + half))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)
