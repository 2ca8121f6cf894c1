"""RiverSwim is the one whose values are known."""

from fractions import Fraction

import numpy as np
import pytest

from ravi.mdps import riverswim, riverswim_mixture
from tests.mdps.oracle import dense, largest_phi, optimum, value

RIGHT_EVERYWHERE = {4: 0.3498, 5: 0.5068, 6: 0.6143, 8: 0.7403, 10: 0.8077}  # the discount from which it is optimal


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


@pytest.mark.parametrize(("n", "threshold"), RIGHT_EVERYWHERE.items())
def test_right_everywhere_is_optimal_from_the_start_above_its_threshold(n, threshold):
    for discount, optimal in ((threshold - 2e-4, False), (threshold + 2e-4, True)):
        mdp = riverswim(n, discount)
        right = value(mdp, np.ones(n, int))[0]
        assert (right >= optimum(mdp).V[0] - 1e-12) == optimal


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
