"""Comparisons of learners: paired differences, profiles, the best with its ties."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ravi.statistics.intervals import Interval, band, estimated, finite, interval, resampled
from ravi.statistics.scores import Scores
from ravi.statistics.winning import wilson
from ravi.validation import InputError, probability

POINTS = 101  # thresholds of a profile, unless given
REFERENCE = "uniform"  # the learner by whose regret others are divided, where it is there


class PairedDifference(NamedTuple):
    """Two learners on an MDP, paired by seed.

    Attributes
    ----------
    first, second, mdp
        Their names.
    difference
        Second minus first: positive where first is better.
    pairs
        The number of seeds that both have.
    """

    first: str
    second: str
    mdp: str
    difference: Interval
    pairs: int


class Best(NamedTuple):
    """The best learner on an MDP, and those that the seeds do not tell from it.

    Attributes
    ----------
    mdp, learner
        The MDP, and the learner of the smallest mean, or other statistic.
    ties
        The learners of which the seeds do not show that they are worse.
    behind
        By how much each is behind: the interval that decided, at its corrected level.
    """

    mdp: str
    learner: str
    ties: tuple[str, ...]
    behind: dict[str, Interval]


@dataclass(frozen=True)
class Profiles:
    """The share of runs whose normalised score is at most tau, every MDP counting the same; bands are pointwise.

    Attributes
    ----------
    thresholds
        tau   (K,).
    share, low, high
        By learner, with the ends of the band   (K,).
    level
        Of the band.
    normalised
        What the scores are divided by, in words.
    """

    thresholds: np.ndarray
    share: dict[str, np.ndarray]
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    level: float
    normalised: str


def compare(
    scores: Scores,
    first: str,
    second: str,
    mdp: str,
    *,
    statistic: str = "mean",
    level: float = 0.95,
    resamples: int = 2000,
) -> PairedDifference:
    """By how much first is better than second on the seeds that both have: the same resets, so noise cancels."""
    difference = differences(scores, first, second, mdp)
    if not len(difference):
        raise InputError(f"{first} and {second} have no seed in common on {mdp}")
    found = interval(difference, statistic, level=level, resamples=resamples)
    return PairedDifference(first, second, mdp, found, len(difference))


def differences(scores: Scores, first: str, second: str, mdp: str) -> np.ndarray:
    """Second minus first (n,) by common seed; the other way round where larger is better.

    A difference that is not larger than what both may be off is 0.
    """
    (here, x), (there, y) = scores.of(first, mdp), scores.of(second, mdp)
    _, i, j = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    off = scores.error(first, mdp)[i] + scores.error(second, mdp)[j]
    found = x[i] - y[j] if scores.larger_is_better else y[j] - x[i]
    return np.where(np.abs(found) <= off, 0.0, found)


def normalised(scores: Scores, by: str | None = None) -> tuple[Scores, str]:
    """Scores that can be compared across MDPs, and how they were made so, in words.

    On every MDP they are divided by the mean of the learner `by`: unless given, that of the uniform policy, where it is
    there. Else by the worst mean of any learner.
    """
    if by is not None:
        scores.known(by)
    else:
        uniform = [name for name in scores.learners if name.lower().split(" (")[0] == REFERENCE]
        by = next((name for name in uniform if set(scores.values[name]) == set(scores.mdps)), None)
    pick = min if scores.larger_is_better else max
    scale, share = {}, {}  # share: how far the scale may be off, relative to it
    for mdp in scores.mdps:
        means = {name: float(held[mdp].mean()) for name, held in scores.values.items() if mdp in held}
        chosen = by or pick(means, key=lambda name: means[name])
        scale[mdp] = float(scores.of(chosen, mdp)[1].mean())
        if not scale[mdp] > 0:
            raise InputError(
                f"{scores.value} on {mdp} cannot be normalised: the mean {f'of {by}' if by else 'of the worst'} "
                f"is {scale[mdp]:g}, not positive"
            )
        share[mdp] = float(scores.error(chosen, mdp).mean()) / scale[mdp]
    values = {name: {mdp: x / scale[mdp] for mdp, x in held.items()} for name, held in scores.values.items()}
    errors = {
        name: {mdp: scores.error(name, mdp) / scale[mdp] + np.abs(x) * share[mdp] for mdp, x in held.items()}
        for name, held in values.items()
    }
    words = (
        f"{scores.value} divided by {f'the mean of {by}' if by else 'the worst mean of any learner'} on the same MDP"
    )
    return replace(scores, values=values, errors=errors), words


def profiles(scores: Scores, thresholds: Any = None, *, level: float = 0.95) -> Profiles:
    """The share of runs with a normalised score of at most tau, per learner, averaged over its MDPs.

    Only learners that ran on every MDP are in it. A score that is at tau to within its error counts. Bands are Wilson's
    for as many runs as there are; they do not know that runs come by MDP, which makes them a little too wide.
    """
    level = probability(level, "level")
    whole = [name for name in scores.learners if set(scores.values[name]) == set(scores.mdps)]
    if not whole:
        raise InputError("no learner ran on every MDP: choose MDPs that have learners in common")
    divided, words = normalised(scores)
    held = {name: [divided.values[name][mdp] - divided.error(name, mdp) for mdp in scores.mdps] for name in whole}
    if thresholds is None:
        top = max(float(divided.values[name][mdp].max()) for name in whole for mdp in scores.mdps)
        taus = np.linspace(0, top, POINTS)
    else:
        taus = finite(thresholds, "thresholds", 1)
    share, low, high = {}, {}, {}
    for name, groups in held.items():
        share[name] = np.mean([(x[:, None] <= taus).mean(axis=0) for x in groups], axis=0)
        trials = len(groups) ** 2 / sum(1 / len(x) for x in groups)
        p = share[name]
        low[name], high[name] = wilson(p, p * (1 - p) / trials, len(groups) * min(map(len, groups)), level)
    return Profiles(taus, share, low, high, level, words)


def best(scores: Scores, mdp: str, *, statistic: str = "mean", level: float = 0.95, resamples: int = 2000) -> Best:
    """The learner with the smallest mean (median, iqm), and those of which the seeds do not show that they are worse.

    Another is worse when all of the interval of its paired difference is above 0. The levels are Holm's: that of the
    first look is corrected for all others; who is worse leaves, and the rest is looked at again, corrected for their
    own number. The winner was chosen by the same seeds, so ties are not proofs of equality, nor their absence of being
    first. What is meant to hold is that the truly best is the winner or a tie, with a probability of the level; how
    often it did is in docs/reference/statistics.md. Learners without a common seed cannot be told apart. Where seeds
    differ, as those of a learner that failed on hard ones, the smallest mean may be of the easy ones: whoever is shown
    to be better on common seeds takes the winner's place.
    """
    scores.known(scores.learners[0], mdp)
    level, resamples = resampled(level, resamples)
    sign = -1 if scores.larger_is_better else 1
    there = [name for name in scores.learners if mdp in scores.values[name]]
    found = {name: sign * estimated(scores.of(name, mdp)[1], statistic) for name in there}
    off = {name: float(scores.error(name, mdp).mean()) for name in there}
    least = min(there, key=lambda name: found[name])
    winner = next(name for name in there if name == least or found[name] - found[least] <= off[name] + off[least])
    winners: set[str] = set()
    while True:
        winners.add(winner)
        apart = {name: differences(scores, winner, name, mdp) for name in there if name != winner}
        behind, ties = _behind(apart, statistic, level, resamples)
        ahead = {name: found for name, found in behind.items() if found.high < 0 and name not in winners}
        if not ahead:
            return Best(mdp, winner, tuple(name for name in ties if name not in winners), behind)
        winner = min(ahead, key=lambda name: ahead[name].estimate)


def _behind(
    apart: dict[str, np.ndarray], statistic: str, level: float, resamples: int
) -> tuple[dict[str, Interval], tuple[str, ...]]:
    """How much each is behind, at Holm's levels, and for which of them the interval includes 0."""
    left = [name for name, difference in apart.items() if len(difference)]
    behind: dict[str, Interval] = {}
    worse = set(left)
    while worse:
        corrected = 1 - (1 - level) / len(left)
        for size in {len(apart[name]) for name in left}:  # those of as many seeds are resampled together
            names = [name for name in left if len(apart[name]) == size]
            columns = np.stack([apart[name] for name in names], axis=1)
            found = band(columns, statistic, level=corrected, resamples=resamples)
            for name, middle, low, high in zip(names, *(edge.tolist() for edge in found), strict=True):
                behind[name] = Interval(middle, low, high, corrected)
        worse = {name for name in left if behind[name].low > 0}
        left = [name for name in left if name not in worse]
        worse = worse if left else set()
    ties = tuple(name for name in apart if name in left or name not in behind)
    return {name: behind[name] for name in apart if name in behind}, ties
