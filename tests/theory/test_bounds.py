"""How bounds compare, grow and degenerate."""

from math import floor, log, log2, sqrt

import pytest

from ravi.theory import Bound, constants, generic, mixture, per_run, tabular


def ladders(H, A):
    """(printed, corrected, sharp) of three families; the generic one has the bonus sum 3 sqrt(T), clipped at most twice
    that."""
    yield (
        lambda T, **k: generic.printed(H, A, T, 3 * sqrt(T), **k),
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


LADDERS = [ladder for H in (1.25, 10.0, 100.0) for A in (2, 128) for ladder in ladders(H, A)]


@pytest.mark.parametrize("ladder", LADDERS)
def test_parts_add_up_and_none_is_negative(ladder):
    for form in ladder:
        for T in (1, 50, 10**6):
            total, *parts = form(T)
            assert total == pytest.approx(sum(parts), rel=1e-15)
            assert min(parts) >= 0
            assert float(form(T)) == total


@pytest.mark.parametrize("ladder", LADDERS)
def test_corrected_is_above_printed_and_sharp_below_corrected(ladder):
    """Part by part. Sharp is below since kappa <= H^3/8, H^2 <= 2 H^2, gamma beta_sharp <= beta, min(2 CB, H) <= 2 CB,
    and, for the mixture, 1 <= 2 beta B / sqrt(lambda) where B >= 1."""
    printed, corrected, sharp = ladder
    for T in (1, 2, 10, 1000, 10**6, 10**12):
        low, middle, high = sharp(T), corrected(T), printed(T)
        assert middle.total > high.total
        assert middle.bonus >= high.bonus
        assert middle.optimisation >= high.optimisation
        assert middle.boundary == high.boundary
        assert high.failure == 0
        assert middle.failure == pytest.approx(1)
        assert low.bonus <= middle.bonus
        assert low.total < middle.total
        assert low.optimisation <= middle.optimisation / 2 * (1 + 1e-12)
        assert low.boundary == pytest.approx(middle.boundary / 2)


@pytest.mark.parametrize("ladder", LADDERS)
def test_bounds_grow_with_T_and_shrink_with_inner_steps(ladder):
    """From T = gamma H / 2 on: before, eta of Theorem 4.1 is too large for E K, and `corrected` falls."""
    grid = [2**i for i in range(6, 50)]
    for form in ladder:
        totals = [form(T).total for T in grid]
        assert totals == sorted(totals)
    for form in ladder[1:]:
        totals = [form(1000, inner_steps=M).total for M in (1, 2, 5, 100)]
        assert totals == sorted(totals, reverse=True)
        much = form(1000, inner_steps=10**15)
        assert much.optimisation + much.boundary < 1e-7 * (form(1000).optimisation + form(1000).boundary)
        assert much.bonus == form(1000).bonus


@pytest.mark.parametrize("A", [2, 8])
def test_bounds_grow_with_every_size(A):
    T = 10**6

    def rises(*bounds):
        totals = [made.total for made in bounds]
        assert totals == sorted(totals)
        assert totals[0] < totals[-1]

    for form in (tabular.printed, tabular.corrected, tabular.sharp):
        rises(*(form(H, 6, A, T) for H in (1.5, 10, 100)))
        rises(*(form(10, X, A, T) for X in (1, 6, 50)))
        rises(*(form(10, 6, a, T) for a in (1, A, 100)))
    for form in (tabular.printed, mixture.printed):  # a smaller delta: larger bonuses
        rises(*(form(10, 6, A, T, delta=p, **({"bound": 1} if form is mixture.printed else {})) for p in (0.5, 1e-9)))
    for form in (mixture.printed, mixture.corrected, mixture.sharp):
        rises(*(form(H, 4, A, T, bound=1) for H in (1.5, 10, 100)))
        rises(*(form(10, d, A, T, bound=1) for d in (1, 4, 50)))
        rises(*(form(10, 4, A, T, bound=B) for B in (1, 2, 50)))


@pytest.mark.parametrize("ladder", [*ladders(1.25, 1), *ladders(100.0, 1)])
def test_with_one_action_nothing_is_lost_in_planning(ladder):
    assert [form(1000).optimisation for form in ladder] == [0, 0, 0]


def slope(values, at):
    (x, y), (a, b) = at, values
    return log(b / a) / log(y / x)


@pytest.mark.parametrize("ladder", LADDERS)
def test_bounds_grow_like_the_root_of_T(ladder):
    """The exponent tends to 1/2. Factors log^{3/2} T at most keep it within 3/2 / log T of it, less where a constant
    part is left; the generic bound has no logarithms."""
    for form in ladder:
        for T in (2**40, 2**50, 2**60):
            assert abs(slope((form(T).total, form(4 * T).total), (T, 4 * T)) - 0.5) < 1.7 / log(T)


def test_exponents_of_H():
    """At T = 4e18: planning H^2 as printed, H^{7/4} sharp; C_2 like H^{3/2} and tabular bonuses like H, up to logs."""
    T, H = 2**62, 1e4
    forms = [
        (lambda H: generic.printed(H, 2, T, 0).optimisation, 2, 1e-9),
        (lambda H: generic.corrected(H, 2, T, 0).optimisation, 2, 1e-9),
        (lambda H: generic.sharp(H, 2, T, 0).optimisation, 7 / 4, 3e-3),
        (lambda H: generic.corrected(H, 2, T, 0, inner_steps=floor(H)).optimisation, 3 / 2, 1e-9),
        (lambda H: tabular.corrected(H, 6, 2, T).bonus, 1, 1e-2),
        (lambda H: tabular.sharp(H, 6, 2, T).bonus, 1, 1e-2),
        (lambda H: mixture.C_2(H, 4, T, bound=1), 3 / 2, 0.05),
        (lambda H: mixture.C_1(H, 4, T, bound=1), 3, 0.06),  # 3, not 3/2 as the paper says of C_1 + C_2
    ]
    for form, exponent, error in forms:
        assert slope((form(H), form(4 * H)), (H, 4 * H)) == pytest.approx(exponent, abs=error)


def test_lemma_4_3_times_H_is_theorem_4_1():
    """With K = E K, the bonus sum of an epoch's steps H <mu, CB>, and delta = 0+."""
    H, A, T = 10.0, 4, 10**5
    K = round(constants.expected_epochs(H, T) - 0.9)
    run = per_run.printed(H, K, 7.0, log(A), constants.eta(H, A, T))
    assert H * run.total == pytest.approx(generic.printed(H, A, T, 70.0).total, rel=1e-12)
    run = per_run.sharp(H, K, 7.0, log(A), constants.eta_sharp(H, A, T))
    assert H * run.total == pytest.approx(generic.sharp(H, A, T, 70.0, delta=1e-12).total, rel=1e-4)


def test_bounds_compare_by_their_totals():
    assert generic.printed(10, 2, 100, 1.0) < generic.printed(10, 2, 100, 2.0)
    assert Bound._fields[0] == "total"


def test_late_epochs_beyond_the_run_add_next_to_nothing():
    """The sum over late epochs stops at 2^{i+1} - 1 <= T in the proof; going on costs less than a thousandth."""
    H, gamma, X, A, T = 5.0, 0.8, 2, 2, 48_000
    beta = gamma * constants.beta_tabular_l1(H, X, A, T, 1 / T)
    late = sum(min(H, 2 * beta / sqrt(2 ** (i + 1) - 1)) for i in range(floor(log2(T + 1))))
    proof = 4 * sqrt(2) * beta * sqrt(X * A * (T + gamma * H)) + X * A * H * late
    assert proof <= tabular.clipped_bonus_sum(H, X, A, T, beta) <= 1.001 * proof
