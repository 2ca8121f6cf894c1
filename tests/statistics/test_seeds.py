"""How many seeds: the rule gives what it promises, and AdaStop's verdict is passed on as it is."""

import sys

import numpy as np
import pytest
from scipy import stats

from ravi.statistics import compare, enough, seeds_needed
from ravi.validation import InputError
from tests.statistics.test_comparisons import made


def two(n, shift=1.0, key=0):
    rng = np.random.Generator(np.random.PCG64(key))
    return made({"a": {"m": rng.normal(size=n)}, "b": {"m": rng.normal(size=n) + shift}})


def test_the_rule_is_the_smallest_number_that_is_narrow_enough():
    scores = two(10)
    found = seeds_needed(scores, "a", "b", "m", 0.5)
    difference = scores.values["b"]["m"] - scores.values["a"]["m"]
    spread = difference.std(ddof=1) * np.sqrt(9 / stats.chi2.ppf(0.2, 9))  # its upper bound, of confidence 0.8

    def width(n):
        return 2 * stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n)

    assert width(found.seeds) <= 0.5 < width(found.seeds - 1)
    assert found.pairs == 10
    assert found.now == pytest.approx(2 * stats.t.ppf(0.975, 9) * difference.std(ddof=1) / np.sqrt(10))


def test_the_number_suffices_as_often_as_is_assured():
    """300 pilots of 8 pairs, then as many seeds as they say; assurance 0.8; four standard errors are 0.092."""
    kept = 0
    for key in range(300):
        needed = seeds_needed(two(8, key=key), "a", "b", "m", 1.5)
        found = compare(two(needed.seeds, key=10_000 + key), "a", "b", "m", resamples=300).difference
        kept += found.high - found.low <= 1.5
    assert kept / 300 >= 0.8 - 0.092


class TestAdaStop:
    @pytest.fixture(autouse=True)
    def _there(self):
        pytest.importorskip("adastop", reason="AdaStop comes with ravi[seeds]")

    def test_a_clear_difference_is_decided_early_and_for_the_better(self):
        rng = np.random.Generator(np.random.PCG64(0))
        scores = made({name: {"m": rng.normal(size=20) + shift} for name, shift in (("a", 0), ("b", 8), ("c", 0))})
        found = enough(scores, "m", permutations=500)
        assert found.better == {("a", "b"): "a", ("a", "c"): None, ("b", "c"): "c"}
        assert not found.enough
        assert str(found) == "20 seeds do not tell apart: a and c (level 0.95)"
        found = enough(scores, "m", against="b", permutations=500)
        assert found.better == {("b", "a"): "a", ("b", "c"): "c"}
        assert found.enough
        assert found.seeds < 20
        assert str(found) == f"{found.seeds} seeds are enough: every difference is shown at level 0.95"

    def test_what_differs_by_less_than_its_error_is_not_told_apart(self):
        values = {name: {"m": np.full(10, 5 + shift)} for name, shift in (("a", 0), ("b", 1e-10), ("c", 1))}
        errors = {name: {"m": np.full(10, 1e-9)} for name in values}
        assert enough(made(values), "m", permutations=500).better["a", "b"] == "a"
        found = enough(made(values, errors=errors), "m", permutations=500)
        assert found.better == {("a", "b"): None, ("a", "c"): "a", ("b", "c"): "b"}


def test_without_adastop_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "adastop", None)
    with pytest.raises(InputError, match=r"pip install 'ravi\[seeds\]'"):
        enough(two(10), "m")
