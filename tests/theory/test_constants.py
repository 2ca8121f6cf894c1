"""The constants are what their statements say, and the steps that derive them hold."""

from itertools import pairwise
from math import comb, exp, inf, log, sqrt

import pytest

from ravi.theory import constants

HORIZONS = [1.0, 1.25, 2.0, 5.0, 10.0, 100.0, 1e4]


@pytest.mark.parametrize("gamma", [0.3, 0.9, 0.99])
def test_the_papers_constants(gamma):
    H, X, A, d, T, delta, lam = 1 / (1 - gamma), 6, 3, 4, 1000, 0.01, 0.5
    assert constants.eta(H, A, T) == pytest.approx(sqrt(2 * log(3) / 1000) / H, rel=1e-13)
    assert constants.beta_tabular(H, X, A, T, delta) == pytest.approx(8 * H * sqrt(6 * log(18 * 1000 * 100)), rel=1e-13)
    noise = sqrt(d * log(1 + T * (1.5 * H) ** 2 / (lam * d)) - 2 * log(delta))
    given = {"parameter_bound": 1.2, "feature_bound": 1.5, "regularization": lam}
    assert constants.beta_mixture(H, d, T, delta, **given) == pytest.approx(H * noise + sqrt(lam) * 1.2, rel=1e-13)
    half = constants.beta_mixture_half(H, d, T, delta, **given)
    assert half == pytest.approx(H / 2 * noise + sqrt(lam) * 1.2, rel=1e-13)


def test_beta_of_the_example():
    """d = 3, gamma = .9, B = sqrt(3), T = 1e6."""
    beta = constants.beta_mixture(10, 3, 10**6, 1e-6, parameter_bound=sqrt(3), feature_bound=sqrt(3))
    assert f"{beta:.1f}" == "92.8"


@pytest.mark.parametrize("H", HORIZONS)
def test_kappa_is_the_constrained_maximum(H):
    """The maximum of (H/2) sqrt(2 H h) - h/eta over 0 <= h <= eta^2 H^2/8 is eta kappa, at most eta H^3/8."""
    for eta in (1e-3, 0.1, 2.0):
        most = eta**2 * H**2 / 8
        values = [H / 2 * sqrt(2 * H * h) - h / eta for h in (most * i / 1000 for i in range(1001))]
        assert max(values) == pytest.approx(eta * constants.kappa(H), rel=1e-9)
    assert constants.kappa(H) <= H**3 / 8 * (1 + 1e-12)
    assert constants.kappa(1) == 1 / 8


@pytest.mark.parametrize("H", [1.0, 10.0])
@pytest.mark.parametrize("eta", [0.01, 0.3, 3.0])
def test_an_exponential_tilt_has_relative_entropy_at_most_eta2_H2_over_8(eta, H):
    for p in (0.01, 0.3, 0.5, 0.7, 0.99):  # policy (p, 1 - p), Q = (H, 0): the widest Q
        Z = p * exp(eta * H) + 1 - p
        q = p * exp(eta * H) / Z
        entropy = q * log(q / p) + (1 - q) * log((1 - q) / (1 - p)) if q < 1 else log(1 / p)
        assert entropy <= eta**2 * H**2 / 8 * (1 + 1e-12)


@pytest.mark.parametrize("M", [1, 7])
def test_eta_sharp_minimises_the_optimisation_term(M):
    H, A, T = 10.0, 4, 5000
    cost = lambda eta: log(A) / (M * eta) + eta * constants.kappa(H) * constants.expected_epochs(H, T)  # noqa: E731
    best = constants.eta_sharp(H, A, T, M)
    assert best == pytest.approx(sqrt(log(4) / ((10**2.5 / 4 - 12.5) * M * (0.1 * 5000 + 0.9))), rel=1e-13)
    assert cost(best) < min(cost(best * 1.01), cost(best / 1.01))


def test_with_one_action_any_step_size_serves():
    assert 0 < constants.eta(10, 1, 100) < inf
    assert 0 < constants.eta_sharp(10, 1, 100) < inf


@pytest.mark.parametrize("gamma", [0.2, 0.9, 0.99])
@pytest.mark.parametrize("T", [1, 2, 30])
def test_expected_epochs_is_the_mean_of_one_plus_a_binomial(gamma, T):
    law = [comb(T - 1, k) * (1 - gamma) ** k * gamma ** (T - 1 - k) for k in range(T)]
    mean = sum((1 + k) * p for k, p in enumerate(law))
    assert constants.expected_epochs(1 / (1 - gamma), T) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("gamma", [0.2, 0.9, 0.99])
def test_expected_padding_is_the_mean_of_what_remains_after_T(gamma):
    mean = sum(i * (1 - gamma) * gamma**i for i in range(10_000))
    assert constants.expected_padding(1 / (1 - gamma)) == pytest.approx(mean, rel=1e-12)


def test_epoch_factor_is_increasing_and_concave_from_one():
    grid = [10 ** (i / 20) for i in range(-100, 161)]
    values = [constants.epoch_factor(x) for x in grid]
    assert constants.epoch_factor(1e-12) == pytest.approx(1, abs=1e-9)
    assert constants.epoch_factor(1) == pytest.approx(1 / log(2), rel=1e-15)
    slopes = [(b - a) / (y - x) for (x, y), (a, b) in zip(pairwise(grid), pairwise(values), strict=True)]
    assert min(slopes) > 0
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(slopes))


@pytest.mark.parametrize("X", [1, 2, 25, 1000])
@pytest.mark.parametrize("T", [2, 100, 10**9])
def test_beta_l1_covers_the_error_of_the_shrunk_frequencies_at_every_count(X, T):
    """|(P - P_hat) V| <= n/(n+1) (H/2) sqrt(2 (X log 2 + l)/n) + H/(n+1) for n >= 1, and <= H for n = 0."""
    H, A, delta = 10.0, 2, 1 / T
    beta, l = constants.beta_tabular_l1(H, X, A, T, delta), log(X * A * T / delta)
    assert beta == pytest.approx(H * (sqrt((X * log(2) + l) / 2) + 1), rel=1e-13)
    assert beta >= H
    for n in [*range(1, 50), 10**3, 10**6, 10**9]:
        error = n / (n + 1) * H / 2 * sqrt(2 * (X * log(2) + l) / n) + H / (n + 1)
        assert error <= beta / sqrt(n + 1)


def test_beta_l1_is_below_the_papers_by_more_than_3_6():
    for X in (1, 2, 10, 1000):
        for A in (1, 2, 50):
            for T in (2, 10, 10**6):
                for delta in (1 / T, 0.5, 1.0):
                    beta = constants.beta_tabular_l1(3, X, A, T, delta)
                    assert 3.6 * beta <= constants.beta_tabular(3, X, A, T, delta)
    # The closest case: X = A = 1 and l = log 2, where beta' = 2.2011 H sqrt(X l).
    assert constants.beta_tabular_l1(1, 1, 1, 2, 1.0) / sqrt(log(2)) == pytest.approx(1 + 1 / sqrt(log(2)), rel=1e-13)
