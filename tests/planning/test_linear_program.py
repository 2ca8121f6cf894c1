"""The linear programs: V* by the one, mu* by the other, and strong duality between them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.mdps import riverswim
from ravi.planning import occupancy, solve
from ravi.planning.bellman import flow, marginal
from ravi.planning.certificates import tables
from ravi.planning.methods import optimal_occupancy, optimal_values
from tests.planning.exact import random_mdp


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    X=st.integers(1, 30),
    A=st.integers(1, 4),
    gamma=st.sampled_from([0.3, 0.9, 0.99]),
    seed=st.integers(0, 10**6),
)
def test_the_flow_program_finds_an_occupancy_measure_of_return_rho_star(X, A, gamma, seed):
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    mu = optimal_occupancy(mdp)
    assert (mu >= 0).all()
    residual = marginal(mu) - gamma * flow(mdp, mu) - (1 - gamma) * mdp.initial
    assert np.abs(residual).max() <= 1e-9
    assert (mu * mdp.rewards).sum() == pytest.approx(solve(mdp).optimum, abs=1e-8)
    values = optimal_values(tables(mdp))
    assert (1 - gamma) * mdp.initial @ values == pytest.approx((mu * mdp.rewards).sum(), abs=1e-8)


def test_it_is_the_occupancy_of_the_optimal_policy_where_that_is_unique():
    for gamma in (0.9, 0.99):
        mdp = riverswim(6, gamma)
        np.testing.assert_allclose(optimal_occupancy(mdp), occupancy(mdp, solve(mdp).policy).mu, rtol=0, atol=1e-9)
