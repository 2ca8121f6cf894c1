"""RiverSwim is the one whose values are known."""

from fractions import Fraction

import numpy as np
import pytest

from ravi.mdps import riverswim, riverswim_mixture
from tests.mdps.oracle import dense, largest_phi, occupancy, optimum, rho, uniform, value

RIGHT_EVERYWHERE = {4: 0.3498, 5: 0.5068, 6: 0.6143, 8: 0.7403, 10: 0.8077}  # the discount from which it is optimal


@pytest.mark.parametrize(
    ("n", "discount", "best", "at_random", "span"),
    [
        (4, 0.9, 0.239731, 0.009601, 2.756),
        (6, 0.9, 0.130448, 0.002100, 3.842),
        (6, 0.95, 0.233465, 0.002333, 4.804),
        (6, 0.99, 0.378547, 0.002665, 5.947),
        (6, 0.999, 0.423300, 0.002767, 6.272),
        (8, 0.95, 0.170177, 0.001539, 6.069),
        (8, 0.99, 0.354381, 0.001508, 8.360),
    ],
)
def test_riverswim_has_its_known_returns(n, discount, best, at_random, span):
    mdp = riverswim(n, discount)
    V, _, top = optimum(mdp)
    assert top == pytest.approx(best, abs=5e-7)
    assert rho(mdp, uniform(mdp)) == pytest.approx(at_random, abs=5e-7)
    assert np.ptp(V) == pytest.approx(span, abs=5e-4)
    assert rho(mdp, np.zeros(n, int)) == pytest.approx(0.005, rel=1e-12)


@pytest.mark.parametrize(
    ("discount", "start"),
    [
        (0.9, Fraction(425329947, 326053817)),
        (0.95, Fraction(17835341097, 3819703271)),
        (0.99, 37.854701140082376),
    ],
)
def test_riverswim_has_its_known_values_at_the_start(discount, start):
    assert optimum(riverswim(6, discount)).V[0] == pytest.approx(float(start), rel=1e-13)


def test_the_value_of_riverswim_is_an_exact_fraction():
    """Right everywhere, solved over the rationals by elimination: 425329947/326053817 at the start."""
    mdp, gamma = riverswim(6, 0.9), Fraction(9, 10)
    P = [[Fraction(float(p)).limit_denominator(100) for p in row] for row in dense(mdp)[:, 1]]
    rows = [[(i == j) - gamma * P[i][j] for j in range(6)] + [Fraction(int(i == 5))] for i in range(6)]
    for i in range(6):
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for j in range(6):
            if j != i:
                rows[j] = [b - rows[j][i] * a for a, b in zip(rows[i], rows[j], strict=True)]
    assert rows[0][-1] == Fraction(425329947, 326053817)


def test_riverswim_has_its_known_occupancies():
    mdp = riverswim(6, 0.9)
    at_random = (0.625152891069, 0.277897502001, 0.072114065338, 0.018781822501, 0.004979397111, 0.001074321979)
    best = (0.17151669873, 0.217126381931, 0.161313741651, 0.129100241142, 0.190495162337, 0.130447774209)
    np.testing.assert_allclose(occupancy(mdp, uniform(mdp)), at_random, atol=1e-12)
    np.testing.assert_allclose(occupancy(mdp, optimum(mdp).policy), best, atol=1e-12)
    assert value(mdp, uniform(mdp))[0] == pytest.approx(0.021000432173684, rel=1e-12)


@pytest.mark.parametrize(("n", "threshold"), RIGHT_EVERYWHERE.items())
def test_right_everywhere_is_optimal_from_the_start_above_its_threshold(n, threshold):
    for discount, optimal in ((threshold - 2e-4, False), (threshold + 2e-4, True)):
        mdp = riverswim(n, discount)
        right = value(mdp, np.ones(n, int))[0]
        assert (right >= optimum(mdp).V[0] - 1e-12) == optimal


@pytest.mark.parametrize(
    ("discount", "eta", "K", "planned", "achieved"),
    [
        (0.9, 0.5, 100, 1.3033368608955852, 1.3036274456371255),
        (0.95, 0.1, 500, 4.6692938678826755, 4.6692941175114909),
    ],
)
def test_the_recursion_of_the_paper_on_riverswim_has_its_known_values(discount, eta, K, planned, achieved):
    """P known, CB = 0, V_0 = 0, uniform pi_0: (<nu_0, V_K>, <nu_0, V^{pi_K}>). Q_1 = E V_0, so V_1 = V_0."""
    mdp = riverswim(6, discount)
    P, log_policy, Q = dense(mdp), np.log(uniform(mdp)), np.zeros((6, 2))
    for _ in range(K):
        V = np.log(np.exp(log_policy + eta * Q).sum(1)) / eta
        log_policy += eta * (Q - V[:, None])
        Q = mdp.rewards + discount * P @ V
    assert V[0] == pytest.approx(planned, rel=1e-11)
    assert value(mdp, np.exp(log_policy))[0] == pytest.approx(achieved, rel=1e-11)


def test_the_smallest_river_has_two_banks():
    P = dense(riverswim(2))
    np.testing.assert_array_equal(P, [[[1, 0], [0.4, 0.6]], [[1, 0], [0.4, 0.6]]])


def test_the_mixture_has_its_known_return_and_bounds():
    mdp = riverswim_mixture(6, 0.9)
    assert optimum(mdp).rho == pytest.approx(0.201982, abs=5e-7)
    np.testing.assert_array_equal(mdp.parameter, (0.35, 0.6, 0.05))
    assert mdp.parameter_bound == 1
    assert mdp.feature_bound == pytest.approx(np.sqrt(3), rel=1e-15) == largest_phi(mdp)
    assert mdp.branching == 3


def test_the_mixture_is_riverswim_away_from_the_ends():
    np.testing.assert_allclose(dense(riverswim_mixture(6))[1:-1], dense(riverswim(6))[1:-1], atol=1e-15)


def test_a_long_river_takes_memory_in_proportion_to_its_length():
    mdp = riverswim(100_000)
    assert mdp.transitions.nbytes == 100_000 * 2 * 3 * 8
    assert mdp.successors.nbytes == 100_000 * 2 * 3 * 4
