"""Every bound, written out once more from gamma."""

from itertools import product
from math import log, sqrt

import pytest

from ravi.theory import elliptical, generic, mixture, per_run, tabular

GAMMAS = [0.2, 0.9, 0.99]
CASES = list(product(GAMMAS, [1, 2, 1000, 10**6, 10**12]))  # gamma, T


def near(value):
    return pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize(("gamma", "T"), CASES)
@pytest.mark.parametrize("A", [1, 2, 128])
def test_theorem_4_1(gamma, T, A):
    H, S, delta = 1 / (1 - gamma), 17.5, 0.003
    assert generic.printed(H, A, T, S).total == near(35 + sqrt(2 * H**4 * log(A) * T) + 2 * H**2)
    made = generic.corrected(H, A, T, S, delta=delta).total
    assert made == near(35 + sqrt(2 * H**4 * T * log(A)) + gamma * H**3 * sqrt(log(A) / (2 * T)) + 2 * H**2 + delta * T)
    kappa, epochs = H**2.5 / 4 - H**2 / 8, (1 - gamma) * T + gamma
    made = generic.sharp(H, A, T, S, delta=delta).total
    assert made == near(17.5 + 2 * H * sqrt(kappa * log(A) * epochs) + H**2 + delta * T)


@pytest.mark.parametrize(("gamma", "T"), CASES)
@pytest.mark.parametrize("M", [2, 10])
def test_theorem_4_1_with_inner_steps(gamma, T, M):
    H, A, S, delta = 1 / (1 - gamma), 5, 17.5, 0.003
    kappa, epochs = H**2.5 / 4 - H**2 / 8, (1 - gamma) * T + gamma
    made = generic.sharp(H, A, T, S, delta=delta, inner_steps=M).total
    assert made == near(17.5 + 2 * H * sqrt(kappa * log(A) * epochs / M) + H**2 / M + delta * T)
    made = generic.corrected(H, A, T, S, delta=delta, inner_steps=M).total
    two = sqrt(2 * H**4 * T * log(A) / M) + gamma * H**3 * sqrt(log(A) / (2 * T * M))
    assert made == near(35 + two + 2 * H**2 / M + delta * T)


def test_theorem_4_1_with_another_step_size():
    H, A, T, eta, M = 10.0, 3, 500, 0.2, 4
    made = generic.corrected(H, A, T, 0, eta=eta, inner_steps=M)
    assert made.optimisation == near(10 * (log(3) / (4 * 0.2) + 0.2 * 500 * (50 + 0.9)))
    made = generic.sharp(H, A, T, 0, eta=eta, inner_steps=M)
    assert made.optimisation == near(10 * (log(3) / (4 * 0.2) + 0.2 * (10**2.5 / 4 - 12.5) * 50.9))


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("K", [0, 1, 300])
def test_lemma_4_3(gamma, K):
    H, S, entropy, eta = 1 / (1 - gamma), 12.0, 0.7, 0.01
    assert per_run.printed(H, K, S, entropy, eta).total == near(24 + 2 * H + 0.7 / 0.01 + 0.01 * H**3 * K / 2)
    kappa = H**2.5 / 4 - H**2 / 8
    assert per_run.sharp(H, K, S, entropy, eta).total == near(12 + H + 0.7 / 0.01 + 0.01 * kappa * K)


@pytest.mark.parametrize(("gamma", "T"), CASES)
@pytest.mark.parametrize(("X", "A"), [(1, 1), (2, 2), (25, 4)])
def test_tabular(gamma, T, X, A):
    H = 1 / (1 - gamma)
    visits = 2 * sqrt(2) * sqrt(X * A * (T + gamma * H)) + (2 + sqrt(2)) * H * X * A
    assert tabular.bonus_sum(H, X, A, T, 3.0) == near(3 * visits)
    beta = 8 * H * sqrt(X * log(X * A * T**2))
    print_ = 2 * beta * visits + sqrt(2 * H**4 * T * log(A)) + 2 * H**2
    assert tabular.printed(H, X, A, T).total == near(print_)
    assert tabular.corrected(H, X, A, T).total == near(print_ + gamma * H**3 * sqrt(log(A) / (2 * T)) + 1)
    beta = gamma * H * (sqrt((X * log(2) + log(X * A * T**2)) / 2) + 1)
    late = sum(min(H, 2 * beta / sqrt(2 ** (i + 1) - 1)) for i in range(200))
    kappa, epochs = H**2.5 / 4 - H**2 / 8, (1 - gamma) * T + gamma
    sharp = 4 * sqrt(2) * beta * sqrt(X * A * (T + gamma * H)) + X * A * H * late
    sharp += 2 * H * sqrt(kappa * log(A) * epochs) + H**2 + 1
    assert tabular.sharp(H, X, A, T).total == pytest.approx(sharp, rel=1e-9)


@pytest.mark.parametrize(("gamma", "T"), CASES)
@pytest.mark.parametrize(("d", "B", "lam", "A"), [(1, 1.0, 1.0, 1), (3, sqrt(3), 1.0, 2), (8, 1.05, 0.1, 128)])
def test_mixture(gamma, T, d, B, lam, A):
    H, delta = 1 / (1 - gamma), 0.5 / T
    given = {"bound": B, "regularization": lam, "delta": delta}
    L = log(1 + B**2 * H**2 * T / (lam * d))
    beta = H * sqrt(2 * (d / 2 * L + log(1 / delta))) + sqrt(lam) * B
    C1 = beta * d * B * H**2 / (sqrt(lam) * log(2)) * L
    C2 = beta * sqrt(H * (4 + 2 * log(T))) * sqrt(d * L)
    assert mixture.C_1(H, d, T, **given) == near(C1)
    assert mixture.C_2(H, d, T, **given) == near(C2)
    assert mixture.bonus_sum_printed(H, d, T, **given) == near(C1 + sqrt(T) * C2)
    planning = sqrt(2 * H**4 * T * log(A)) + 2 * H**2
    assert mixture.printed(H, d, A, T, **given).total == near(2 * C1 + 2 * sqrt(T) * C2 + planning)

    L_plus = log(1 + B**2 * H**2 * (T + gamma * H) / (lam * d))
    S_plus = (T + gamma * H) * L + gamma * H + gamma * (1 + gamma) * H**2 / T
    sum_ = beta * (B * H**2 / sqrt(lam) * d / log(2) * L_plus + sqrt(d * S_plus * H * (4 + 2 * log(T))))
    assert mixture.bonus_sum_corrected(H, d, T, **given) == near(sum_)
    extra = gamma * H**3 * sqrt(log(A) / (2 * T)) + 0.5
    assert mixture.corrected(H, d, A, T, **given).total == near(2 * sum_ + planning + extra)

    beta = gamma * (H / 2 * sqrt(d * L + 2 * log(1 / delta)) + sqrt(lam) * B)
    longest = (2 + log(T)) * H
    sharp = d * H**2 * L_plus / log(2) + 2 * beta * sqrt(d * S_plus * longest / log(1 + longest))
    clipped = mixture.clipped_bonus_sum(H, d, T, beta, bound=B, regularization=lam)
    assert clipped == near(sharp)
    kappa, epochs = H**2.5 / 4 - H**2 / 8, (1 - gamma) * T + gamma
    sharp += 2 * H * sqrt(kappa * log(A) * epochs) + H**2 + 0.5
    assert mixture.sharp(H, d, A, T, **given).total == near(sharp)


def test_delta_is_one_over_T_unless_given():
    T = 12_345
    for form in (generic.corrected, generic.sharp):
        assert form(10, 2, T, 1.0) == form(10, 2, T, 1.0, delta=1 / T)
    for form in (tabular.printed, tabular.corrected, tabular.sharp):
        assert form(10, 3, 2, T) == form(10, 3, 2, T, delta=1 / T)
    for form in (mixture.printed, mixture.corrected, mixture.sharp):
        assert form(10, 3, 2, T, bound=1.1) == form(10, 3, 2, T, bound=1.1, delta=1 / T)


def test_the_example_of_theorem_5_6():
    """T = 1e6, d = 3, gamma = .9, B = sqrt(3), A = 2, lambda = 1, delta = 1/T, to the digits shown."""
    T, B = 10**6, sqrt(3)
    assert f"{mixture.C_1(10, 3, T, bound=B):.2e}" == "1.28e+06"
    assert f"{mixture.C_2(10, 3, T, bound=B):.2e}" == "1.23e+04"
    assert f"{mixture.printed(10, 3, 2, T, bound=B).total:.2e}" == "2.72e+07"


def test_lemma_a_4_at_its_example():
    """T = 500, H = 10: 164 as printed, 18.6 by concavity."""
    assert f"{elliptical.largest_factor(10, 500):.0f}" == "164"
    assert f"{elliptical.largest_factor_sharp(10, 500):.1f}" == "18.6"
