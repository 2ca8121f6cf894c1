"""The border: what is right goes through as the number that it is, and an error names the entry that is wrong."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ravi import mdp, validation
from ravi.validation import InputError, policy_table

PROBLEM = mdp("riverswim/3,discount=0.9").problem


@pytest.mark.parametrize(("given", "taken"), [(3, 3), ("3", 3), (1e6, 10**6), ("1e6", 10**6), (np.int8(7), 7)])
def test_whole_numbers_in_every_spelling(given, taken):
    assert validation.whole(given, "n") == taken


def test_a_whole_number_keeps_its_last_digit():
    assert validation.whole(2**53 + 1, "n") == validation.whole(str(2**53 + 1), "n") == 2**53 + 1


@pytest.mark.parametrize(
    ("check", "given", "says"),
    [
        (validation.whole, 2.5, "n is 2.5, not a whole number"),
        (validation.whole, 0, "n is 0; it must be at least 1"),
        (validation.whole, True, "n is True, not a number"),
        (validation.whole, np.ones(2), r"n is array\(\[1., 1.\]\), not a number"),
        (validation.number, "ten", "n is 'ten', not a number"),
        (validation.number, math.inf, "n is inf, not a finite number"),
        (validation.positive, 0, "n is 0; it must be positive"),
        (validation.positive, 1e-320, "n is 9.99989e-321; it must be at least 1e-307"),
        (validation.nonnegative, -1, "n is -1; it must not be negative"),
        (validation.probability, 1, "n is 1; it must lie strictly between 0 and 1"),
        (validation.chance, 1.5, r"n is 1.5, outside \[0, 1\]"),
        (validation.flag, "no", "n is 'no', neither True nor False"),
        (validation.path, "a\0b", "n is 'a.x00b', not a path"),
        (validation.function, 3, "n is 3, not a function"),
        (validation.finite, [[0, 1], [2, math.nan]], r"n\[1, 1\] is nan, not a finite number"),
        (validation.array, ["1"], "n is not an array of numbers: it holds texts"),
        (validation.array, [1j], "n holds complex numbers"),
        (validation.units, (2, 1), "n is 2 to 1: the least reward must be below the largest"),
    ],
)
def test_what_is_wrong_is_named(check, given, says):
    with pytest.raises(InputError, match=says):
        check(given, "n")


def test_minus_zero_is_zero_and_fractions_are_numbers():
    assert math.copysign(1, validation.nonnegative(-0.0, "n")) == 1
    np.testing.assert_array_equal(validation.finite([Fraction(1, 4), 2], "n"), [0.25, 2.0])


def test_a_view_that_repeats_is_read_once():
    """10^12 entries of one number take no memory, neither before nor after."""
    seen = validation.finite(np.broadcast_to(np.float32(0.5), (10**6, 10**6)), "n")
    assert seen.shape == (10**6, 10**6)
    assert seen.strides == (0, 0)


@pytest.mark.parametrize(
    ("given", "taken"), [(3, [0, 1, 2]), ("5-7", [5, 6, 7]), ("1,7,9-10", [1, 7, 9, 10]), ([4, 2], [4, 2])]
)
def test_seeds_in_every_spelling(given, taken):
    assert validation.seeds(given) == taken


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([3, 1, 3], "seeds names seed 3 twice"),
        ([], "seeds is empty"),
        ([1, -1], r"seeds\[1\] is -1; it must be at least 0"),
        ("7-5", "seeds is '7-5'; a range goes upwards: 5-7"),
        (10**6 + 1, "at most 1000000"),
        ("0-999999,1000000", "names more than 1,000,000 seeds"),
    ],
)
def test_seeds_that_cannot_be(given, says):
    with pytest.raises(InputError, match=says):
        validation.seeds(given)


def test_rows_are_distributions_to_the_tolerance_and_no_further():
    row = np.array([[0.5, 0.5], [0.5, 0.5 + 0.9 * validation.SUM_TOLERANCE]])
    assert validation.sums_to_one(row, "p") is row
    with pytest.raises(InputError, match=r"p\[1\] sums to 1.000000002, not 1"):
        validation.sums_to_one(np.array([[0.5, 0.5], [0.5, 0.500000002]]), "p")
    with pytest.raises(InputError, match=r"p\[0, 1\] is -0.5, a negative probability"):
        validation.sums_to_one(np.array([[1.5, -0.5]]), "p")
    with pytest.raises(InputError, match=r"policy has shape \(3, 3\), not \(X, A\) = \(3, 2\)"):
        policy_table(np.full((3, 3), 1 / 3), PROBLEM)
    with pytest.raises(InputError, match=r"policy\[2, 0\] is 0; every action needs"):
        policy_table([[0.5, 0.5], [0.5, 0.5], [0, 1]], PROBLEM, interior=True)


def test_a_start_is_a_state_or_a_distribution():
    np.testing.assert_array_equal(validation.distribution(1, 3), [0, 1, 0])
    with pytest.raises(InputError, match="initial is state 3, but states are 0 to 2"):
        validation.distribution(3, 3)


def test_an_array_that_is_sealed_is_its_own_and_cannot_be_written():
    given = np.arange(6.0).reshape(2, 3).T
    kept = validation.sealed(given)
    given[:] = -1
    assert kept.flags.c_contiguous
    assert kept.min() == 0
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 1


def test_near_words_are_offered_and_values_of_any_kind_shown():
    assert validation.did_you_mean("ravi-ubc", ["ravi-ucb", "psrl"]) == " Did you mean ravi-ucb?"
    assert validation.did_you_mean("xyz", ["psrl"]) == ""
    assert "\n" not in validation.shown("a\nb")
    assert len(validation.shown("x" * 10**5)) < 100

    class Mute:
        def __repr__(self):
            raise RuntimeError

    assert "Mute" in validation.shown(Mute())


def test_what_is_computed_from_options_is_finite_or_names_them():
    assert validation.derived(lambda: 2.0, "beta", scale=1.0) == 2
    with pytest.raises(InputError, match=r"beta is not a finite number with scale = 1e\+300 and delta = 0.1"):
        validation.derived(lambda: 1e300 * 1e300, "beta", scale=1e300, delta=0.1)
    assert validation.step_size(None, 3.0, published=0.5) == 1.5
    assert validation.step_size(2.0, 3.0, published=0.5) == 6
    assert validation.delta(None, 50) == 1 / 50
