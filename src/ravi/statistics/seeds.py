"""The number of seeds that is enough: by the width of the paired interval, and by the sequential test AdaStop."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ravi.statistics.comparisons import differences
from ravi.statistics.intervals import student
from ravi.statistics.scores import Scores
from ravi.validation import InputError, install_command, positive, probability, whole

MOST = 10**9  # seeds that are looked at
ASSURANCE = 0.8  # the probability that the number suffices


class Needed(NamedTuple):
    """The number of seeds that a width needs.

    Attributes
    ----------
    seeds, pairs
        The number in all, and that of the pairs that are there already.
    width, now
        The width that was asked for, and that of Student's interval for the pairs that are there.
    """

    seeds: int
    pairs: int
    width: float
    now: float


class Verdict(NamedTuple):
    """What the sequential test decided.

    Attributes
    ----------
    enough
        Whether every comparison is decided.
    seeds
        The number of seeds of each learner that were used.
    better
        The better learner of each pair; None where no difference was shown.
    level
        The probability that no decision is wrong.
    """

    enough: bool
    seeds: int
    better: dict[tuple[str, str], str | None]
    level: float

    def __str__(self) -> str:
        open_ = [f"{first} and {second}" for (first, second), name in self.better.items() if name is None]
        if not open_:
            return f"{self.seeds} seeds are enough: every difference is shown at level {self.level:g}"
        return f"{self.seeds} seeds do not tell apart: {'; '.join(open_)} (level {self.level:g})"


def seeds_needed(scores: Scores, first: str, second: str, mdp: str, width: float, *, level: float = 0.95) -> Needed:
    """How many seeds until the interval of the paired difference is at most this wide.

    The spread of few pairs is itself uncertain: it is taken at its upper bound of confidence 0.8 (chi-squared, as if
    differences were normal), so that the number suffices with about that probability. It is a plan, not a test:
    do not stop at the seed that happens to give a narrow interval.
    """
    from scipy.special import chdtri

    level, width = probability(level, "level"), positive(width, "width")
    difference = differences(scores, first, second, mdp)
    n = len(difference)
    if n < 2:
        raise InputError(f"{first} and {second} have {n} seeds in common on {mdp}; a spread needs two")
    spread = float(difference.std(ddof=1))
    bound = spread * np.sqrt((n - 1) / chdtri(n - 1, ASSURANCE))

    def reached(m: int, spread: float) -> float:
        """The width of Student's interval for m pairs."""
        return float(2 * student(0.0, 1.0, level, m - 1)[1] * spread / np.sqrt(m))

    now = reached(n, spread)
    if now <= width:
        return Needed(n, n, width, now)
    low, high = n, 2 * n
    while reached(high, bound) > width:
        low, high = high, 2 * high
        if high > MOST:
            raise InputError(f"more than {MOST:,} seeds would be needed for a width of {width:g}; it is {now:g} now")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle, bound) <= width else (middle, high)
    return Needed(high, n, width, now)


def enough(
    scores: Scores,
    mdp: str,
    *,
    learners: Sequence[str] | None = None,
    against: str | None = None,
    batch: int = 5,
    level: float = 0.95,
    permutations: int = 2000,
) -> Verdict:
    """Whether the seeds that are there decide which learner is better on an MDP, by AdaStop (Mathieu et al., 2023).

    Seeds are looked at in batches, in their order, and a pair is settled at the first look that shows a difference; the
    level holds for all pairs and all looks together. against: compare all with this learner only. A permutation test of
    means: it takes no account of common seeds, so it asks for more of them than `compare` would.
    """
    names = list(dict.fromkeys(learners or [name for name in scores.learners if mdp in scores.values[name]]))
    if against is not None:
        names = [against, *(name for name in names if name != against)]
    if len(names) < 2:
        raise InputError(f"a comparison on {mdp} needs two learners, not {len(names)}")
    level, batch = probability(level, "level"), whole(batch, "batch", 2)
    permutations = whole(permutations, "permutations")
    values = _told_apart(scores, names, mdp)
    looks = min(map(len, values)) // batch
    if not looks:
        raise InputError(f"a batch has {batch} seeds, and there are only {min(map(len, values))}")
    pairs = [(0, i) for i in range(1, len(names))] if against else list(combinations(range(len(names)), 2))
    test = _adastop()(
        n=batch, K=looks, B=permutations, comparisons=np.array(pairs), alpha=1 - level, seed=0
    )  # fmt: skip
    used = 0
    for _ in range(looks):
        used += batch
        test.partial_compare({name: x[:used] for name, x in zip(names, values, strict=True)}, verbose=False)
        if test.is_finished:
            break
    better: dict[tuple[str, str], str | None] = {}
    for i, j in pairs:
        decided = test.decisions[str(np.array((i, j)))]
        lower = {"smaller": names[i], "larger": names[j]}.get(decided)
        upper = {"smaller": names[j], "larger": names[i]}.get(decided)
        better[names[i], names[j]] = upper if scores.larger_is_better else lower
    return Verdict(None not in better.values(), used, better, level)


def _told_apart(scores: Scores, names: Sequence[str], mdp: str) -> list[np.ndarray]:
    """The values of every learner; those of two that differ nowhere by more than both may be off are the same."""
    values = [scores.of(name, mdp)[1] for name in names]
    off = [scores.error(name, mdp) for name in names]
    for j in range(1, len(names)):
        for i in range(j):
            if (np.abs(values[j][:, None] - values[i]) <= off[j][:, None] + off[i]).all():
                values[i] = np.full(len(values[i]), values[i][0])
                values[j] = np.full(len(values[j]), values[i][0])
                break
    return values


def _adastop() -> Any:
    try:
        from adastop import MultipleAgentsComparator
    except ImportError:
        raise InputError(f"the sequential test needs AdaStop: {install_command('seeds')}") from None
    return MultipleAgentsComparator
