"""The constants are what their statements say; what they rest on holds against exact sums."""

from math import ceil, comb, exp, inf, log, sqrt

import pytest

from ravi.theory import constants, elliptical, selection, tabular

GAMMAS = [0.2, 0.8, 0.95]


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
    assert constants.epoch_factor(1e-12) == pytest.approx(1, abs=1e-9)
    assert constants.epoch_factor(H) == pytest.approx(H / log(1 + H), rel=1e-15)


@pytest.mark.parametrize("H", [1.0, 1.25, 2.0, 10.0, 100.0, 1e4])
def test_kappa_is_the_constrained_maximum(H):
    """The maximum of (H/2) sqrt(2 H h) - h/eta over 0 <= h <= eta^2 H^2/8 is eta kappa, at most eta H^3/8."""
    for eta in (1e-3, 0.1, 2.0):
        most = eta**2 * H**2 / 8
        values = [H / 2 * sqrt(2 * H * h) - h / eta for h in (most * i / 1000 for i in range(1001))]
        assert max(values) == pytest.approx(eta * constants.kappa(H), rel=1e-9)
    assert constants.kappa(H) <= H**3 / 8 * (1 + 1e-12)


@pytest.mark.parametrize("M", [1, 7])
def test_eta_sharp_minimises_the_optimisation_term(M):
    best = constants.eta_sharp(10.0, 4, 5000, M)
    assert best == pytest.approx(sqrt(log(4) / ((10**2.5 / 4 - 12.5) * M * (0.1 * 5000 + 0.9))), rel=1e-13)
    for any_eta in (constants.eta(10, 1, 100), constants.eta_sharp(10, 1, 100)):  # of one action
        assert 0 < any_eta < inf


@pytest.mark.parametrize("gamma", [0.2, 0.9, 0.99])
@pytest.mark.parametrize("T", [1, 2, 30])
def test_expected_epochs_and_padding_are_means(gamma, T):
    """Of one plus a binomial, and of what remains after T."""
    law = [comb(T - 1, k) * (1 - gamma) ** k * gamma ** (T - 1 - k) for k in range(T)]
    mean = sum((1 + k) * p for k, p in enumerate(law))
    assert constants.expected_epochs(1 / (1 - gamma), T) == pytest.approx(mean, rel=1e-12)
    mean = sum(i * (1 - gamma) * gamma**i for i in range(10_000))
    assert constants.expected_padding(1 / (1 - gamma)) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("X", [1, 2, 25, 1000])
@pytest.mark.parametrize("T", [2, 100, 10**9])
def test_beta_l1_covers_the_error_of_the_shrunk_frequencies_at_every_count(X, T):
    """|(P - P_hat) V| <= n/(n+1) (H/2) sqrt(2 (X log 2 + l)/n) + H/(n+1) for n >= 1, and <= H for n = 0."""
    H, A, delta = 10.0, 2, 1 / T
    beta, l = constants.beta_tabular_l1(H, X, A, T, delta), log(X * A * T / delta)
    assert beta == pytest.approx(H * (sqrt((X * log(2) + l) / 2) + 1), rel=1e-13)
    assert H <= beta <= constants.beta_tabular(H, X, A, T, delta) / 3.6
    for n in [*range(1, 50), 10**3, 10**6, 10**9]:
        error = n / (n + 1) * H / 2 * sqrt(2 * (X * log(2) + l) / n) + H / (n + 1)
        assert error <= beta / sqrt(n + 1)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("T", [1, 2, 10, 1000])
@pytest.mark.parametrize(("d", "B", "lam"), [(1, 1.0, 1.0), (4, 1.05, 1.0), (8, 2.0, 1e6)])
def test_the_logarithms_up_to_T_plus(gamma, T, d, B, lam):
    """Under the law of T+ - T, cut where it is below 1e-17."""
    H, after = 1 / (1 - gamma), [(1 - gamma) * gamma**i for i in range(ceil(40 / -log(gamma)))]
    c, given = B**2 * H**2 / (lam * d), {"bound": B, "regularization": lam}
    exact = sum(p * (T + g) * log(1 + c * (T + g)) for g, p in enumerate(after))
    assert exact <= elliptical.padded_log(H, d, T, **given)
    exact = sum(p * d * log(1 + c * (T + g)) for g, p in enumerate(after))
    made = elliptical.log_determinant(H, d, T + gamma * H, **given)
    assert exact <= made * (1 + 1e-12)
    assert made == pytest.approx(d * log(1 + c * (T + gamma * H)), rel=1e-9)
    assert elliptical.bad_epochs(H, d, T, **given) == pytest.approx(d * log(1 + c * T) / log(2), rel=1e-9)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("T", [1, 2, 30, 500])
def test_lemma_a_4_against_the_exact_law_of_the_longest_of_T_epochs(gamma, T):
    """K(T) <= T, and lengths are independent: P(max <= m) = (1 - gamma^m)^T."""
    H, most = 1 / (1 - gamma), ceil((50 + log(T)) / -log(gamma))
    law = [(1 - gamma**m) ** T - (1 - gamma ** (m - 1)) ** T for m in range(1, most)]
    assert sum(p * m for m, p in enumerate(law, 1)) <= elliptical.longest_epoch(H, T)
    factor = sum(p * m / log(1 + m) for m, p in enumerate(law, 1))
    assert factor <= elliptical.largest_factor_sharp(H, T) <= elliptical.largest_factor(H, T)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("T", [1, 2, 100, 5000])
def test_lemma_5_2_with_one_pair_is_exact(gamma, T):
    """An epoch starts at s > 1 with probability 1 - gamma, at N = s, for H steps: E sum = H + sum_{s=2}^T s^{-1/2}."""
    H = 1 / (1 - gamma)
    exact = H + sum(1 / sqrt(s) for s in range(2, T + 1))
    assert exact <= tabular.bonus_sum(H, 1, 1, T, 1.0)
    exact = H * min(6.0, H) + sum(min(6.0 / sqrt(s), H) for s in range(2, T + 1))
    assert exact <= tabular.clipped_bonus_sum(H, 1, 1, T, 3.0)


@pytest.mark.parametrize("delta", [0.9, 0.25, 0.01, 1e-9])
@pytest.mark.parametrize("eps", [0.5, 0.01])
def test_selection_fails_with_probability_delta_at_most_and_is_not_wasteful(eps, delta):
    J, W = selection.candidates(delta), selection.rollouts(eps, delta)
    assert 2.0**-J <= delta / 2 < 2.0 ** -(J - 1)  # all candidates are worse than twice the mean
    assert 2 * J * exp(-2 * W * (eps / 2) ** 2) <= delta / 2 < 2 * J * exp(-2 * (W - 1) * (eps / 2) ** 2)  # Hoeffding
