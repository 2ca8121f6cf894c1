"""The lower bound: every step of its proof is held against exact values, and every learner against the whole."""

from math import sqrt

import numpy as np
import pytest

import ravi
from ravi.mdps.small import ring
from ravi.theory import lower
from ravi.validation import InputError


def test_the_bound_is_what_it_says():
    for H, S, A, T in [(3, 1, 2, 3), (20, 4, 2, 20_000), (100, 8, 5, 10**6)]:
        made = lower.ring(H, S, A, T)
        assert made.gap <= 1 / (2 * H) * (1 + 1e-12)
        assert float(made) == pytest.approx(2 / 3 * 2 * H / 7 * made.gap * T / 10)
        assert float(made) >= sqrt(H * 2 * S * A * T) / 420


@pytest.mark.parametrize(
    "learner", ["ravi-kl", "ravi-kl,plan=greedy", "psrl,support=on", "ucrl2b,support=on", "uniform"]
)
def test_no_learner_is_below_it(learner):
    H, S, A, T = 4.0, 2, 2, 2_000
    made = lower.ring(H, S, A, T)
    regrets = [ravi.run(learner, ring(S, made.gap, 1 - 1 / H, A, seed), T, 2).regret.mean() for seed in range(8)]
    assert np.mean(regrets) >= float(made)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ((2, 1, 2, 100), "needs H >= 3"),
        ((10, 1, 1, 100), "two actions"),
        ((10, 1, 2, 9), "needs T >= H"),
        ((10, 40, 4, 100), "H S A / 4 = 400"),
        ((10, 0, 2, 100), "gadgets"),
    ],
)
def test_what_it_does_not_hold_for_is_named(wrong, says):
    with pytest.raises(InputError, match=says):
        lower.ring(*wrong)
