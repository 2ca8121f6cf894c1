"""The bounds of RAVI-KL and the lower bound: the steps of their proofs, against exact values and every learner."""

from math import inf, log, log2, sqrt

import numpy as np
import pytest

import ravi
from ravi.mdps.small import ring
from ravi.theory import kl, lower
from ravi.validation import InputError


def most_doublings(pairs, steps):
    """The most phases that end by doubling, over all ways to divide the visits among pairs: a pair with N visits has
    one at its first visit, and then one whenever the visits in a phase reach those before it, 1, 2, 4, ..."""
    best = [0] * (steps + 1)  # with at most so many visits, of the pairs so far
    for _ in range(pairs):
        best = [max(best[t - n] + n.bit_length() for n in range(t + 1)) for t in range(steps + 1)]
    return best[steps]


@pytest.mark.parametrize("pairs", [1, 2, 3, 6])
def test_doublings_are_bounded_for_every_T_and_the_bound_is_attained(pairs):
    for steps in range(1, 70):
        assert most_doublings(pairs, steps) <= kl.doublings(1, pairs, steps) <= steps
        if steps <= pairs or (steps % pairs == 0 and log2(steps / pairs).is_integer()):
            assert most_doublings(pairs, steps) == kl.doublings(1, pairs, steps)


def test_bounds_hold_where_there_are_fewer_steps_than_pairs():
    """There X A (1 + log2(T / X A)) is negative. The regret is at most T, and so no bound may be below it."""
    H, X, A, T = 20.0, 1000, 10, 500
    assert 1 + log2(T / (X * A)) < 0
    assert kl.doublings(X, A, T) == kl.mixture_doublings(3, X, A, T) == T
    bounds = kl.optimism(H, X, A, 2, T), kl.variance(H, X, A, 2, T), kl.mixture(H, 3, X, A, T)
    assert all(bound.phases == 2 * H * (2 * T + 1) and bound.total > T for bound in bounds)


def test_the_bound_by_the_variance_is_a_number_where_gamma_is_zero():
    X, A, T = 3, 2, 100
    rho, L = max(kl.radii(1.0, X, A, 2, T)), 2 * X * A * log(1 + T / (X * A))
    assert kl.variance(1.0, X, A, 2, T).deviations == pytest.approx(2 * (2 / 3 + sqrt(32 / 3)) * rho * L + X * A + 1)


def test_the_bound_for_mixtures_is_its_formula():
    H, d, X, A, T, c = 10.0, 3, 5, 2, 10_000, 0.3
    rho = log(2 / min(1, d * sqrt(H / T))) + kl.worst_redundancy(T, d) + kl.GAP
    beta = sqrt(8 + 32 * (rho / 2 + 2 * (d - 1) * log(T) + log(T * (T + 1)) + rho + 2))
    D = X * A * (1 + log2(T / (X * A))) + d * log2(1 + T)
    parts = 2 * 0.9 * H * beta * sqrt(11) * sqrt(d * T * log(1 + T)), 2 * H * (2 * D + 1)
    rest = 2 * sqrt(2) * (1 + c) * d * sqrt(H * T) + 0.2 * H * sqrt(2 * T)
    assert kl.mixture(H, d, X, A, T, slack=c).total == pytest.approx(sum(parts) + rest)


def test_the_bounds_are_their_formulas():
    H, X, A, B, T, c = 10.0, 5, 3, 2, 10_000, 0.3
    rho = log(X / min(1, sqrt(H * X * A / 2**14))) + kl.kappa(T)
    rho_G = log(X * A * T) + kl.kappa(T)
    D = X * A * (1 + log2(T / (X * A)))
    invalid = 2 * sqrt(2) * sqrt(H * X * A * T) + 1
    rest = H * X * A + 0.2 * sqrt(2 * T) + 2 * H * (2 * D + 1) + H
    times = (1 + c) / (1 - c)  # 1 + 2 c / (1 - c)
    first = (1 + sqrt(2)) * H * sqrt(X * A * T / 2) * (sqrt(rho) + sqrt(rho_G))
    assert kl.optimism(H, X, A, B, T, slack=c).total == pytest.approx(times * (first + rest) + invalid)
    L, a, b, r = 2 * X * A * log(1 + T / (X * A)), 2**0.5 + 6**0.5, 2 / 3 + (32 / 3) ** 0.5, max(rho, rho_G)
    alpha = a * sqrt(0.9 * r * L)
    second = 2 * (alpha * sqrt(2 * H * T + H**2 * (2 * D + 1)) + b * H * r * L) + 2 * H * alpha**2 + H * X * A + H
    assert kl.variance(H, X, A, B, T, slack=c).total == pytest.approx(times * (second + rest) + invalid)
    assert kl.regret(H, X, A, B, T, slack=c).total == pytest.approx(times * (min(first, second) + rest) + invalid)
    assert kl.optimism(H, X, A, B, T).total == pytest.approx(first + rest + invalid)
    assert kl.optimism(H, X, A, B, T, slack=1).total == inf


def test_the_variance_form_wins_where_the_horizon_is_long():
    for H in (1e3, 1e4):
        assert kl.variance(H, 10, 2, 3, 10**14) < kl.optimism(H, 10, 2, 3, 10**14)


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
