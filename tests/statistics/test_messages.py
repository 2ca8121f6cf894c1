"""What cannot be computed is refused, with what is wrong and where."""

import re

import numpy as np
import pytest

from ravi.statistics import (
    best,
    compare,
    enough,
    from_table,
    growth,
    improvement,
    improvements,
    interval,
    normalised,
    profiles,
    scaling,
    seeds_needed,
    stratified,
)
from ravi.validation import InputError
from tests.statistics.test_comparisons import made

TABLE = {
    "learner": ["b", "b", "a", "a", "a"], "mdp": ["m", "m", "m", "m", "n"], "seed": [1, 0, 0, 2, 5],
    "regret": [4.0, 3.0, 1.0, 2.0, 9.0], "off": [0.1, 0.2, 0.3, 0.4, -1],
}  # fmt: skip
ROW = {"learner": "a", "mdp": "m", "seed": 0}
PAIR = {"a": {"m": [1.0, 2.0]}, "b": {"m": [3.0, 5.0]}}


def changed(**columns):
    return lambda: from_table(TABLE | columns)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: interval([1, 2], "meen"), "no statistic 'meen'. Did you mean mean"),
        (lambda: interval([1, 2], level=95), "level is 95"),
        (lambda: interval([]), "values has shape (0,); it must be (n,), not empty"),
        (lambda: interval(["a"]), "not an array of numbers"),
        (lambda: stratified([]), "no groups"),
        (lambda: scaling([1, 2], [[1.0, 1.0], [0.0, 0.0]]), "the mean at size 2 is 0: a power law needs"),
        (lambda: scaling([3, 3], [[1.0, 1.0], [2.0, 2.0]]), "at least two sizes, not 1"),
        (lambda: scaling([1, 2], [[1.0]]), "2 sizes and 1 arrays"),
        (lambda: scaling([0, 2], [[1.0], [2.0]]), "sizes must be positive"),
        (lambda: scaling([1, 2], [[1.0], [1.0, 2.0]], paired=True), "equally many at every size"),
        (lambda: growth([1, 2], np.ones((3, 4))), "one column per time"),
        (lambda: growth([2, 1], np.ones((3, 2))), "ascending"),
        (lambda: growth([1, 2], np.ones((2, 2)), share=2), "share is 2"),
        (lambda: best(made(PAIR), "q"), "no MDP 'q'"),
        (lambda: best(made(PAIR), "m", statistic="meen"), "no statistic 'meen'"),
        (lambda: compare(made(PAIR), "a", "c", "m"), "no learner 'c'. Known: a, b"),
        (lambda: normalised(made({"a": {"m": [0.0]}}), "a"), "regret on m cannot be normalised: the mean of a is 0"),
        (lambda: profiles(made({"a": {"m": [1.0]}, "b": {"n": [1.0]}})), "no learner ran on every MDP"),
        (lambda: improvement(made({"a": {"m": [1.0]}, "b": {"n": [1.0]}}), "a", "b"), "have no MDP in common"),
        (lambda: improvements(made({"a": {"m": [1.0], "n": [1.0]}, "b": {"m": [1.0]}}), ["a", "b"]), "run of b on n"),
        (lambda: seeds_needed(made({"a": {"m": [1.0]}, "b": {"m": [2.0]}}), "a", "b", "m", 1), "a spread needs two"),
        (lambda: seeds_needed(made(PAIR), "a", "b", "m", 1e-9), "more than 1,000,000,000 seeds"),
        (lambda: seeds_needed(made(PAIR), "a", "b", "m", 0), "width"),
        (lambda: enough(made({"a": {"m": [1.0] * 5}}), "m"), "needs two learners"),
        (lambda: enough(made(PAIR), "m"), "a batch has 5 seeds, and there are only 2"),
        (changed(regret=[4.0, 3.0, np.nan, 2.0, 9.0]), "a on m, seed 0: regret is nan"),
        (changed(regret=[4.0, 3.0, 1.0, None, 9.0]), "a on m, seed 2: regret is None"),
        (changed(seed=[1, 1, 0, 2, 5]), "b on m has seed 1 twice"),
        (changed(seed=[1, 0.5, 0, 2, 5]), "seed 0.5: a seed is a whole number"),
        (changed(seed=[1, 0]), "different lengths"),
        (lambda: from_table(TABLE, error="off"), "a on n, seed 5: the error of regret is -1"),
        (lambda: from_table(TABLE, error="offf"), "no column 'offf'. Did you mean off"),
        (lambda: from_table([ROW]), "table[0] has no 'regret'"),
        (lambda: from_table([]), "no runs"),
        (lambda: from_table(3), "not int"),
        (lambda: from_table(TABLE).of("b", "n"), "no run of b on n"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(asked, said):
    with pytest.raises(InputError, match=re.escape(said)):
        asked()
