"""Sets in relative entropy: their radii, and the largest and least values that they allow."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln, rel_entr

from ravi.estimators.counts import Counts
from ravi.optimism import relative_entropy as sets
from ravi.theory import kl as theory


def rows(rng, count, B, most=60):
    """Counts of pairs with B successors: of many plays and of few, none included."""
    plays = rng.integers(0, most, count)
    return np.array([rng.multinomial(n, rng.dirichlet(np.full(B, 0.4))) for n in plays], np.int32)


def data(moves):
    """One seed, one action: a pair per row."""
    return Counts(moves.sum(-1, dtype=np.int32)[None, :, None], moves[None, :, None])


def by_bisection(p, f, d, support_top):
    """max {<q, f> : KL(p || q) <= d} by the betting dual: the mu with max_l sum p ln(1 - l (f - mu)/(M - mu)) = d."""
    seen = p > 0
    M = support_top

    def exceeds(mu):
        z = (f[seen] - mu) / (M - mu)
        lam = np.concatenate([np.linspace(0, 1, 4001)[:-1], 1 - np.logspace(-12, -4, 400)])
        return (p[seen] * np.log1p(-lam[:, None] * z)).sum(-1).max() - d

    low = p @ f
    if M - low < 1e-12 or d == 0:
        return low
    high = M - 1e-13 * max(M - low, 1e-3)
    return high if exceeds(high) <= 0 else brentq(exceeds, low, high, xtol=1e-13)


@pytest.mark.parametrize("support", [True, False])
def test_the_largest_value_is_that_of_the_betting_dual(support):
    rng = np.random.default_rng(1)
    B, X = 4, 7
    moves = rows(rng, X, B)
    successors = np.array([np.sort(rng.choice(X, B, replace=False)) for _ in range(X)], np.int32)[:, None]
    rho = rng.exponential(3.0, (1, X, 1))
    V = rng.random((1, X))
    low, high = sets.ends(successors, data(moves), rho, support, V)
    for x in range(X):
        f = V[0, successors[x, 0]]
        n = moves[x].sum()
        for sign, found in ((1.0, high[0, x, 0]), (-1.0, low[0, x, 0])):
            top = (sign * f).max() if support else (sign * V).max()
            wanted = top if n == 0 else by_bisection(moves[x] / n, sign * f, rho[0, x, 0] / n, top)
            assert found == pytest.approx(sign * wanted, abs=2e-7)


def test_kappa_is_the_worst_redundancy_of_two_symbols():
    for n in (1, 2, 3, 10, 23, 24, 25, 60, 400):
        k = np.arange(n + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(k > 0, k * np.log(k / n), 0) + np.where(k < n, (n - k) * np.log((n - k) / n), 0)
        kt = gammaln(k + 0.5) + gammaln(n - k + 0.5) - gammaln(n + 1) - math.log(math.pi)
        ratio = best - kt
        assert ratio.argmax() in (0, n)
        assert sets.kappa(n) == pytest.approx(ratio.max(), abs=1e-11)
        assert theory.kappa(n) == pytest.approx(ratio.max(), abs=1e-11)
    assert sets.kappa(0) == pytest.approx(0.0, abs=1e-14)
    for n in (10**3, 10**6, 10**9):  # gammaln loses digits there: its series does not
        assert sets.kappa(n) == pytest.approx(0.5 * math.log(math.pi * n) + 1 / (8 * n), abs=1e-9)


@pytest.mark.parametrize("symbols", [2, 3, 7])
def test_the_redundancy_of_data_is_that_of_the_mixture_and_at_most_its_worst(symbols):
    rng = np.random.default_rng(3)
    moves = rows(rng, 50, symbols, most=300)
    n = moves.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(moves > 0, moves * np.log(moves / np.maximum(n, 1)[:, None]), 0).sum(-1)
    kt = (gammaln(moves + 0.5) - gammaln(0.5)).sum(-1) - gammaln(n + symbols / 2) + gammaln(symbols / 2)
    found = sets.of_all_values(data(moves), 0.0, symbols)[0, :, 0]
    np.testing.assert_allclose(found, best - kt, atol=1e-9)
    worst = np.array([theory.worst_redundancy(m, symbols) for m in n])
    assert (found <= worst + 1e-9).all()
    one = np.zeros((1, symbols), np.int32)
    one[0, -1] = 77  # all plays led to one state: the worst there is
    assert sets.of_all_values(data(one), 0.0, symbols).item() == pytest.approx(theory.worst_redundancy(77, symbols))


def test_rewards_are_at_most_what_their_coins_allow():
    plays = np.array([0, 1, 5, 5, 5, 1000])[None, :, None]
    total = np.array([0.0, 1.0, 0.0, 2.0, 5.0, 300.0])[None, :, None]
    level = math.log(20.0)
    most = sets.highest_rewards(plays, total, np.array([level]), 1.0)[0, :, 0]

    def kl(p, m):
        return rel_entr(p, m) + rel_entr(1 - p, 1 - m)

    assert most[0] == 1.0
    assert most[1] == most[4] == 1.0
    for j in (2, 3, 5):
        n, mean = plays[0, j, 0], total[0, j, 0] / plays[0, j, 0]
        assert n * kl(mean, most[j]) == pytest.approx(level + theory.kappa(n), rel=1e-9)
        assert most[j] > mean
    known = sets.highest_rewards(plays, total, np.array([level]), 0.0)[0, :, 0]
    np.testing.assert_allclose(known[1:], (total / np.maximum(plays, 1))[0, 1:, 0], atol=1e-12)
