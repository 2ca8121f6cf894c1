"""The reset chain: what an average-reward planner finds on it is what a discounted planner finds of the MDP.

P~ = gamma P + (1 - gamma) 1 nu_0^T                                                         `reset_kernel`
nu = P~_pi^T nu,  sum nu = 1                    its stationary law is the occupancy nu^pi
g + h = r_pi + P~_pi h                          its gain is g = rho(pi), its bias h = V^pi + constant    `gain_of`
g* + h = max_a {r + P~ h}                       the best gain is rho*, with h = V* + constant    `best_gain`
"""

from typing import NamedTuple

import numpy as np
import pytest

from ravi.core import MDP
from ravi.mdps import garnet, riverswim
from ravi.planning import evaluate, occupancy, solve
from tests.helpers import dense
from tests.planning.exact import (
    cycle,
    distance,
    exact_occupancy,
    exact_optimum,
    exact_return,
    exact_values,
    random_mdp,
    random_policies,
)

MDPS = {
    "riverswim": lambda: riverswim(6, 0.95),
    "riverswim, far": lambda: riverswim(6, 0.999),
    "garnet": lambda: garnet(15, 3, 4, 2, 0.9),
    "a cycle": lambda: cycle(7, 0.97, 2),
    "some successors of probability 0": lambda: random_mdp(4, 9, 3, 4, 0.85),
    "one state": lambda: random_mdp(5, 1, 3, 1, 0.7),
}


class Gain(NamedTuple):
    """A policy on a chain that never ends."""

    gain: float  # g, its average reward
    bias: np.ndarray  # h with <nu, h> = 0          (X,)
    stationary: np.ndarray  # nu                    (X,)
    policy: np.ndarray  # of which all this is      (X, A)


def reset_kernel(mdp):
    return mdp.discount * dense(mdp) + (1 - mdp.discount) * mdp.initial


def gain_of(P, r, policy) -> Gain:
    """Of any unichain kernel (X, A, X), by dense linear systems: it knows neither gamma nor nu_0.

    The stationary law solves (I - P_pi^T + 1 1^T) nu = 1 and the bias (I - P_pi + 1 nu^T) h = r_pi - g: both matrices
    are regular if, and only if, P_pi has one recurrent class.
    """
    X = len(r)
    P_pi, r_pi = np.einsum("xa,xay->xy", policy, P), (policy * r).sum(-1)
    nu = np.linalg.solve(np.eye(X) - P_pi.T + 1, np.ones(X))
    g = float(nu @ r_pi)
    h = np.linalg.solve(np.eye(X) - P_pi + nu, r_pi - g)  # Poisson's equation
    return Gain(g, h, nu, policy)


def best_gain(P, r) -> Gain:
    """The best gain, its bias and a policy that has both: Howard (1960) for average rewards, ties to the first action.

    An action gives way only to one that is better by more than rounding, so that no policy comes twice.
    """
    states, one_hot = np.arange(len(r)), np.eye(r.shape[1])
    actions = r.argmax(-1)
    while True:
        found = gain_of(P, r, one_hot[actions])
        Q = r + P @ found.bias
        better = Q[states, actions] + 2.0**-52 * (len(r) + 8) * (1 + np.ptp(found.bias)) < Q.max(-1)
        if not better.any():
            return found
        actions = np.where(better, Q.argmax(-1), actions)


@pytest.fixture(params=MDPS)
def mdp(request):
    return MDPS[request.param]()


def policies(mdp):
    greedy = np.eye(mdp.actions)[solve(mdp).Q.argmax(-1)]
    return [*random_policies(0, mdp, 3), np.full((mdp.states, mdp.actions), 1 / mdp.actions), greedy]


def test_the_gain_is_the_return_and_the_bias_the_values_up_to_a_constant(mdp):
    H = mdp.horizon
    for policy in policies(mdp):
        found, discounted = gain_of(reset_kernel(mdp), mdp.rewards, policy), evaluate(mdp, policy)
        assert found.gain == pytest.approx(discounted.returns, abs=1e-12)
        apart = found.bias - discounted.V
        assert np.ptp(apart) <= 1e-13 * H**2
        np.testing.assert_allclose(found.stationary, occupancy(mdp, policy).nu, rtol=0, atol=1e-13 * H)
        assert found.stationary @ found.bias == pytest.approx(0, abs=1e-12 * H)


def test_the_gain_is_the_return_in_exact_arithmetic():
    mdp = random_mdp(1, 6, 2, 3, 0.9)
    for policy in policies(mdp):
        found = gain_of(reset_kernel(mdp), mdp.rewards, policy)
        V, nu = exact_values(mdp, policy), exact_occupancy(mdp, policy)[0]
        assert distance(found.gain, exact_return(mdp, V)) < 1e-14
        assert distance(found.stationary, nu) < 1e-14
        assert distance(found.bias - found.bias[0], [v - V[0] for v in V]) < 1e-12


def test_the_best_gain_is_the_optimum(mdp):
    found, star = best_gain(reset_kernel(mdp), mdp.rewards), solve(mdp, tol=1e-13)
    assert found.gain == pytest.approx(star.optimum, abs=1e-12)
    assert np.ptp(found.bias - star.V) <= 1e-12 * mdp.horizon**2
    assert evaluate(mdp, found.policy).returns == pytest.approx(star.optimum, abs=1e-11)
    if mdp.states <= 7:
        assert distance(found.gain, exact_optimum(mdp)[2]) < 1e-12


def test_optimal_values_solve_the_average_reward_equation(mdp):
    """rho* + V* = max_a (r + P~ V*), and the bias that was found does too."""
    P, star = reset_kernel(mdp), solve(mdp, tol=1e-13)
    for gain, h in ((star.optimum, star.V), best_gain(P, mdp.rewards)[:2]):
        assert np.abs(gain + h - (mdp.rewards + P @ h).max(-1)).max() <= 1e-13 * mdp.horizon**2 + 1e-12


def test_the_span_of_the_best_bias_is_at_most_the_horizon(mdp):
    assert np.ptp(best_gain(reset_kernel(mdp), mdp.rewards).bias) <= mdp.horizon * (1 + 1e-12)


def test_every_chain_mixes_as_fast_as_resets_come(mdp):
    """||delta_x P~_pi^n - nu^pi||_1 <= 2 gamma^n for every x and n, and within 1.39 H steps to 1/2."""
    P, gamma = reset_kernel(mdp), mdp.discount
    for policy in policies(mdp):
        P_pi, nu = np.einsum("xa,xay->xy", policy, P), occupancy(mdp, policy).nu
        row, n = np.eye(mdp.states), 0
        while gamma**n > 1e-6:
            assert np.abs(row - nu).sum(-1).max() <= 2 * gamma**n + 1e-10
            if n >= np.log(4) * mdp.horizon:
                assert np.abs(row - nu).sum(-1).max() <= 0.5 + 1e-10
            row, n = row @ P_pi, n + 1


def test_the_mixing_bound_is_attained():
    """Two states that keep what they are: only resets mix, and from the state that is never reset to, nothing else."""
    mdp = MDP.from_dense(np.eye(2)[:, None], np.zeros((2, 1)), 0.9, 0)
    row = np.linalg.matrix_power(reset_kernel(mdp)[:, 0], 8)[1]
    assert np.abs(row - [1, 0]).sum() == pytest.approx(2 * 0.9**8, rel=1e-12)


def test_a_kernel_without_resets_has_its_own_gain():
    """No gamma is needed: a chain 0 -> 1 -> 0 that pays 1 in state 1 has gain 1/2, and to go round is best."""
    P, r = np.array([[[0.0, 1], [1, 0]], [[1, 0], [1, 0]]]), np.array([[0, 0.3], [1, 0]])
    found = best_gain(P, r)
    assert found.gain == pytest.approx(0.5, abs=1e-15)
    np.testing.assert_allclose(found.bias, [-0.25, 0.25], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.stationary, [0.5, 0.5], rtol=0, atol=1e-15)
    assert (found.policy == [[1, 0], [1, 0]]).all()
