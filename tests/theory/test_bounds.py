"""Every bound written out once more from gamma; how its forms compare, and how they grow."""

from itertools import product
from math import log, sqrt

import pytest

from ravi.theory import generic, mixture, per_run, sampled, tabular
from ravi.validation import InputError

GAMMAS = [0.2, 0.9, 0.99]
CASES = list(product(GAMMAS, [1, 2, 1000, 10**6, 10**12]))  # gamma, T


def near(value):
    return pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize(("gamma", "T"), CASES)
@pytest.mark.parametrize(("A", "M"), [(1, 1), (2, 1), (128, 1), (5, 2), (5, 10)])
def test_theorem_4_1(gamma, T, A, M):
    H, S, delta = 1 / (1 - gamma), 17.5, 0.003
    plans, given = sqrt(2 * H**4 * T * log(A)), {"delta": delta, "inner_steps": M}
    assert generic.printed(H, A, T, S).total == near(35 + plans + 2 * H**2)
    made = generic.corrected(H, A, T, S, **given).total
    more = gamma * H**3 * sqrt(log(A) / (2 * T))
    assert made == near(35 + (plans + more) / sqrt(M) + 2 * H**2 / M + delta * T)
    kappa, epochs = H**2.5 / 4 - H**2 / 8, (1 - gamma) * T + gamma
    made = generic.sharp(H, A, T, S, **given).total
    assert made == near(17.5 + 2 * H * sqrt(kappa * log(A) * epochs / M) + H**2 / M + delta * T)


def test_theorem_4_1_with_another_step_size():
    given = {"eta": 0.2, "inner_steps": 4}
    made = generic.corrected(10.0, 3, 500, 0, **given)
    assert made.optimisation == near(10 * (log(3) / (4 * 0.2) + 0.2 * 500 * (50 + 0.9)))
    made = generic.sharp(10.0, 3, 500, 0, **given)
    assert made.optimisation == near(10 * (log(3) / (4 * 0.2) + 0.2 * (10**2.5 / 4 - 12.5) * 50.9))


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("K", [0, 1, 300])
def test_lemma_4_3(gamma, K):
    H, S, entropy, eta = 1 / (1 - gamma), 12.0, 0.7, 0.01
    assert per_run.printed(H, K, S, entropy, eta).total == near(24 + 2 * H + 0.7 / 0.01 + 0.01 * H**3 * K / 2)
    kappa = H**2.5 / 4 - H**2 / 8
    assert per_run.sharp(H, K, S, entropy, eta).total == near(12 + H + 0.7 / 0.01 + 0.01 * kappa * K)
    with pytest.raises(NotImplementedError, match="no such form"):
        per_run.corrected(H, K, S, entropy, eta)


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


def ladders(H, A):
    """(printed, corrected, sharp) of three families; the generic one has the bonus sum 3 sqrt(T), clipped at most twice
    that."""
    yield (
        lambda T, **k: generic.printed(H, A, T, 3 * sqrt(T)),
        lambda T, **k: generic.corrected(H, A, T, 3 * sqrt(T), **k),
        lambda T, **k: generic.sharp(H, A, T, 6 * sqrt(T), **k),
    )
    for X in (2, 25):
        yield tuple(
            lambda T, form=form, X=X, **k: form(H, X, A, T, **k)
            for form in (tabular.printed, tabular.corrected, tabular.sharp)
        )
    for d, B, lam in ((1, 1.0, 1.0), (4, 1.05, 1.0), (8, 3.0, 25.0)):
        yield tuple(
            lambda T, form=form, d=d, B=B, lam=lam, **k: form(H, d, A, T, bound=B, regularization=lam, **k)
            for form in (mixture.printed, mixture.corrected, mixture.sharp)
        )


@pytest.mark.parametrize("ladder", [one for H in (1.25, 10.0, 100.0) for A in (2, 128) for one in ladders(H, A)])
def test_corrected_is_above_printed_and_sharp_below_corrected(ladder):
    """Part by part. Sharp is below since kappa <= H^3/8, H^2 <= 2 H^2, gamma beta_sharp <= beta, min(2 CB, H) <= 2 CB,
    and, for the mixture, 1 <= 2 beta B / sqrt(lambda) where B >= 1."""
    printed, corrected, sharp = ladder
    for T in (1, 2, 10, 1000, 10**6, 10**12):
        low, middle, high = sharp(T), corrected(T), printed(T)
        for total, *parts in (low, middle, high):
            assert total == pytest.approx(sum(parts), rel=1e-15)
            assert min(parts) >= 0
        assert low < middle > high
        assert middle.bonus >= max(low.bonus, high.bonus)
        assert middle.optimisation >= high.optimisation
        assert low.optimisation <= middle.optimisation / 2 * (1 + 1e-12)
        assert middle.boundary == high.boundary == pytest.approx(2 * low.boundary)
        assert (high.failure, middle.failure) == (0, pytest.approx(1))
        assert corrected(T, delta=1 / T) == middle  # unless it is given
        assert sharp(T, delta=1 / T) == low


def test_without_an_error_the_bound_is_that_of_the_mixture():
    given = {"bound": 2.0, "regularization": 0.5, "delta": 0.01}
    exact = sampled.corrected(8.0, 3, 4, 5000, parameter_bound=1.5, error=0.0, **given)
    assert exact.total == pytest.approx(mixture.corrected(8.0, 3, 4, 5000, **given).total, rel=1e-12)
    more = [
        sampled.corrected(8.0, 3, 4, T, parameter_bound=1.5, error=0.1, bound=2.0).total / T for T in (10**6, 10**12)
    ]
    assert more[1] > 0.1  # what sampling leaves out is lost at every play
    with pytest.raises(InputError, match="error"):
        sampled.bonus_sum(8.0, 3, 100, bound=2.0, parameter_bound=1.0, error=-0.1)
