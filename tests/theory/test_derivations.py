"""What the bounds rest on, against exact sums and against paths: padding, longest epochs, frozen counts."""

import random
from math import ceil, exp, log, sqrt

import pytest

from ravi.theory import elliptical, selection, tabular

GAMMAS = [0.2, 0.8, 0.95]


def after(gamma):
    """The law of T+ - T, cut where it is below 1e-17."""
    return [(1 - gamma) * gamma**i for i in range(ceil(40 / -log(gamma)))]


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("T", [1, 2, 10, 1000])
@pytest.mark.parametrize(("d", "B", "lam"), [(1, 1.0, 1.0), (4, 1.05, 1.0), (8, 2.0, 1e6)])
def test_the_logarithms_up_to_T_plus(gamma, T, d, B, lam):
    H = 1 / (1 - gamma)
    c = B**2 * H**2 / (lam * d)
    given = {"bound": B, "regularization": lam}
    exact = sum(p * (T + g) * log(1 + c * (T + g)) for g, p in enumerate(after(gamma)))
    assert exact <= elliptical.padded_log(H, d, T, **given)
    exact = sum(p * d * log(1 + c * (T + g)) for g, p in enumerate(after(gamma)))
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
    longest = sum(p * m for m, p in enumerate(law, 1))
    factor = sum(p * m / log(1 + m) for m, p in enumerate(law, 1))
    assert longest <= elliptical.longest_epoch(H, T)
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


@pytest.mark.parametrize("seed", range(20))
def test_lemma_5_2_on_paths(seed):
    """Epochs of any lengths, visits in any order: early visits sum to 2 sqrt(2) sqrt(n), late epochs double N."""
    draw = random.Random(seed)
    pairs, gamma = draw.randint(1, 6), draw.choice([0.9, 0.99])
    N, early, late_epochs = [1] * pairs, [0.0] * pairs, [0] * pairs
    for _ in range(300):
        visits, favourite = [0] * pairs, draw.randrange(pairs)
        while True:
            pair = favourite if draw.random() < 0.7 else draw.randrange(pairs)
            if visits[pair] < N[pair]:
                early[pair] += 1 / sqrt(N[pair])
            elif visits[pair] == N[pair]:
                assert N[pair] >= 2 ** (late_epochs[pair] + 1) - 1
                late_epochs[pair] += 1
            visits[pair] += 1
            if draw.random() > gamma:
                break
        N = [n + v for n, v in zip(N, visits, strict=True)]
    for n, total in zip(N, early, strict=True):
        assert total <= 2 * sqrt(2) * sqrt(n - 1)
    assert sum(late_epochs) > 0


@pytest.mark.parametrize("delta", [0.9, 0.25, 0.01, 1e-9])
@pytest.mark.parametrize("eps", [0.5, 0.01])
def test_selection_fails_with_probability_delta_at_most_and_is_not_wasteful(eps, delta):
    J, W = selection.candidates(delta), selection.rollouts(eps, delta)
    assert 2.0**-J <= delta / 2 < 2.0 ** -(J - 1)  # all candidates are worse than twice the mean
    assert 2 * J * exp(-2 * W * (eps / 2) ** 2) <= delta / 2 < 2 * J * exp(-2 * (W - 1) * (eps / 2) ** 2)  # Hoeffding
    assert selection.expected_steps(10, eps, delta) == 10 * J * W
