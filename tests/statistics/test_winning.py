"""Probabilities of improvement: what is computed from sums over ordered runs is what the definition says."""

import numpy as np
import pytest

from ravi.statistics import improvement, improvements, winning
from ravi.statistics.resampling import picked
from ravi.statistics.winning import wilson
from tests.statistics.test_comparisons import made


def literal(scores, first, second, resamples=300, level=0.95):
    """Every pair of runs, in every resample: w_ij is 1, 1/2 or 0."""
    G, p, every, fewest = len(scores.mdps), 0.0, np.zeros(resamples), np.inf
    for place, mdp in enumerate(scores.mdps):
        (here, x), (there, y) = scores.of(first, mdp), scores.of(second, mdp)
        less = (y - x[:, None]) * (-1 if scores.larger_is_better else 1)
        off = scores.error(first, mdp)[:, None] + scores.error(second, mdp)
        wins = np.where(np.abs(less) <= off, 0.5, less > 0)
        i = picked(len(x), resamples, 2 * place)
        j = i if np.array_equal(here, there) else picked(len(y), resamples, 2 * place + 1)
        p += wins.mean() / G
        every += [wins[np.ix_(a, b)].mean() / G for a, b in zip(i, j, strict=True)]
        fewest = min(fewest, len(x), len(y))
    low, high = wilson(np.array([p]), every.var(), G * fewest, level)
    return p, float(low[0]), float(high[0])


def drawn(seed, a, b, digits=1, off=0.0, **more):
    """Two learners of so many runs on two MDPs, rounded so that many runs are equal; errors of up to `off`."""
    rng = np.random.Generator(np.random.PCG64(seed))
    values = {name: {mdp: np.round(rng.normal(size=n), digits) for mdp in "mn"} for name, n in (("a", a), ("b", b))}
    errors = {name: {mdp: off * rng.random(len(x)) for mdp, x in by.items()} for name, by in values.items()}
    return made(values, errors=errors, **more)


def always(n):
    """a always wins, by more than b may be off; the ends of b come in the other order than its places."""
    off = 2.0 * np.arange(n)[::-1]
    values = {"a": {"m": np.arange(n) - 10.0 * n}, "b": {"m": np.arange(n)}}
    return made(values, errors={"a": {"m": 0 * off}, "b": {"m": off}})


CASES = {
    "ties": drawn(0, 9, 9),
    "other seeds": drawn(2, 8, 8, seeds={name: dict.fromkeys("mn", np.arange(8) + k) for k, name in enumerate("ab")}),
    "fewer seeds": drawn(3, 12, 7),
    "errors": drawn(4, 30, 30, digits=9, off=0.4),
    "larger is better": drawn(5, 11, 11, larger_is_better=True),
    "one seed": drawn(6, 1, 1),
    "9 million pairs": drawn(9, 3000, 3000, digits=9),  # more than 24 bits hold with their halves
    "8 of 8": always(8),  # 2 n^2 half-wins: one more than the largest whole number of 8, or of 16, bits
    "128 of 128": always(128),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_the_definition_says(name):
    R = 3 if "million" in name else 300
    for first, second in (("a", "b"), ("b", "a"), ("a", "a"))[: 1 if R == 3 else 3]:
        found = improvement(CASES[name], first, second, resamples=R)
        assert found[:3] == pytest.approx(literal(CASES[name], first, second, R), rel=1e-12, abs=1e-15)


def test_all_pairs_at_once_are_pairs_one_by_one_however_much_is_held_at_a_time(monkeypatch):
    rng = np.random.Generator(np.random.PCG64(7))
    sizes = {"a": 9, "b": 9, "c": 6}
    scores = made({name: {mdp: rng.normal(size=n).round(1) for mdp in "mn"} for name, n in sizes.items()})
    alone = {pair: improvement(scores, *pair, resamples=200) for pair in (("b", "c"), ("b", "a"), ("c", "a"))}
    for block, kept in ((winning.BLOCK, winning.KEPT), (2**20, 70), (70, 70), (70, 1)):
        monkeypatch.setattr(winning, "BLOCK", block)
        monkeypatch.setattr(winning, "KEPT", kept)
        assert improvements(scores, list("bca"), resamples=200) == alone
