"""Probabilities of improvement: what is computed from sums over ordered runs is what the definition says."""

import numpy as np
import pytest

from ravi.statistics import improvement, improvements, resampling, winning
from ravi.statistics.resampling import picked
from ravi.statistics.scores import Scores
from ravi.statistics.winning import wilson
from ravi.validation import InputError


def made(values, seeds=None, errors=None, **more):
    """Scores of {learner: {mdp: values}}; seeds 0, 1, ... unless given."""
    kept = seeds or {name: {mdp: np.arange(len(x)) for mdp, x in by.items()} for name, by in values.items()}
    mdps = tuple(dict.fromkeys(mdp for by in values.values() for mdp in by))
    return Scores(values, kept, tuple(values), mdps, errors=errors or {}, **more)


def literal(scores, first, second, resamples=300, level=0.95, key=0):
    """Every pair of runs, in every resample: w_ij is 1, 1/2 or 0."""
    G, p, every, fewest = len(scores.mdps), 0.0, np.zeros(resamples), np.inf
    for place, mdp in enumerate(scores.mdps):
        (here, x), (there, y) = scores.of(first, mdp), scores.of(second, mdp)
        less = (y - x[:, None]) * (-1 if scores.larger_is_better else 1)
        off = scores.error(first, mdp)[:, None] + scores.error(second, mdp)
        wins = np.where(np.abs(less) <= off, 0.5, less > 0)
        i = picked(len(x), resamples, key + 2 * place)
        j = i if np.array_equal(here, there) else picked(len(y), resamples, key + 2 * place + 1)
        p += wins.mean() / G
        every += [wins[np.ix_(a, b)].mean() / G for a, b in zip(i, j, strict=True)]
        fewest = min(fewest, len(x), len(y))
    low, high = wilson(np.array([p]), every.var(), G * fewest, level)
    return p, float(low[0]), float(high[0])


def drawn(seed, sizes, *, digits=1, off=0.0):
    """Two MDPs, rounded so that many runs are equal; errors of up to `off`."""
    rng = np.random.Generator(np.random.PCG64(seed))
    values = {name: {mdp: np.round(rng.normal(size=n), digits) for mdp in "mn"} for name, n in sizes.items()}
    errors = {name: {mdp: off * rng.random(len(x)) for mdp, x in by.items()} for name, by in values.items()}
    return values, errors if off else {}


def always(n):
    """a always wins, by more than b may be off; the ends of b come in the other order than its places."""
    x, off = np.arange(n) - 10.0 * n, 2.0 * np.arange(n)[::-1]
    return made({"a": {"m": x}, "b": {"m": np.arange(float(n))}}, None, {"a": {"m": 0 * off}, "b": {"m": off}})


CASES = {
    "ties": made(drawn(0, {"a": 9, "b": 9})[0]),
    "no ties": made(drawn(1, {"a": 40, "b": 40}, digits=9)[0]),
    "other seeds": made(
        drawn(2, {"a": 8, "b": 8})[0],
        {"a": dict.fromkeys("mn", np.arange(8)), "b": dict.fromkeys("mn", np.arange(1, 9))},
    ),
    "fewer seeds": made(drawn(3, {"a": 12, "b": 7})[0]),
    "errors": made(*(lambda values, errors: (values, None, errors))(*drawn(4, {"a": 30, "b": 30}, digits=9, off=0.4))),
    "larger is better": made(drawn(5, {"a": 11, "b": 11})[0], larger_is_better=True),
    "one seed": made(drawn(6, {"a": 1, "b": 1})[0]),
    "9 million pairs": made(  # more than 24 bits hold with their halves
        {name: {"m": by["m"]} for name, by in drawn(9, {"a": 3000, "b": 3000}, digits=9)[0].items()}
    ),
    "8 of 8": always(8),  # 2 n^2 half-wins: one more than the largest whole number of 8, or of 16, bits
    "128 of 128": always(128),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_the_definition_says(name):
    R = 3 if "million" in name else 300
    for first, second in (("a", "b"), ("b", "a"), ("a", "a"))[: 1 if R == 3 else 3]:
        found = improvement(CASES[name], first, second, resamples=R)
        assert found[:3] == pytest.approx(literal(CASES[name], first, second, R), rel=1e-12, abs=1e-15)


def test_all_pairs_at_once_are_pairs_one_by_one():
    values, errors = drawn(7, {"a": 9, "b": 9, "c": 6, "d": 9}, off=0.1)
    scores = made(values, None, errors)
    found = improvements(scores, list("dbca"), resamples=200)
    assert set(found) == {("d", "b"), ("d", "c"), ("b", "c"), ("d", "a"), ("b", "a"), ("c", "a")}
    for (first, second), one in found.items():
        assert one == improvement(scores, first, second, resamples=200)


def test_how_much_is_held_at_a_time_changes_nothing(monkeypatch):
    values, errors = drawn(8, {"a": 9, "b": 9, "c": 6}, off=0.1)
    scores = made(values, None, errors)
    whole = improvements(scores, list("abc"), resamples=200)
    for block, kept in ((2**20, 70), (70, 70), (70, 1)):  # resamples kept or not, some of them or one at a time
        monkeypatch.setattr(winning, "BLOCK", block)
        monkeypatch.setattr(winning, "KEPT", kept)
        assert improvements(scores, list("abc"), resamples=200) == whole


def test_who_is_not_everywhere_is_named():
    scores = made({"a": {"m": np.ones(3), "n": np.ones(3)}, "b": {"m": np.ones(3)}})
    with pytest.raises(InputError, match="there is no run of b on n"):
        improvements(scores, ["a", "b"])
    with pytest.raises(InputError, match="there is no learner 'c'"):
        improvements(scores, ["a", "c"])
    assert improvement(scores, "a", "b").estimate == 0.5  # on those that both have
    assert resampling.BLOCK < resampling.KEPT
