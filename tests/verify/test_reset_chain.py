"""The reset chain: what an average-reward planner finds on it is what a discounted planner finds of the MDP."""

import numpy as np
import pytest

from ravi.checks import InputError
from ravi.core import MDP
from ravi.mdps import garnet, riverswim
from ravi.planning import evaluate, occupancy, solve
from ravi.verify.reset_chain import Gain, gain_of, reset_kernel
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


def test_the_kernel_is_that_of_the_states_that_are_played(mdp):
    """Row by row: gamma P(y | x, a) + (1 - gamma) nu_0(y)."""
    P, told = dense(mdp), reset_kernel(mdp)
    for x in range(mdp.states):
        for a in range(mdp.actions):
            for y in range(mdp.states):
                assert told[x, a, y] == mdp.discount * P[x, a, y] + (1 - mdp.discount) * mdp.initial[y]
    np.testing.assert_allclose(told.sum(-1), 1, rtol=0, atol=1e-14)


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


def test_bad_input_is_named():
    P, r = np.full((2, 1, 2), 0.5), np.zeros((2, 1))
    with pytest.raises(InputError, match=r"P\[0, 0\] sums to 1.2"):
        best_gain(P * 1.2, r)
    with pytest.raises(InputError, match=r"policy has shape \(1, 2\)"):
        gain_of(P, r, np.ones((1, 2)))
    with pytest.raises(InputError, match=r"P has shape \(2, 2\)"):
        gain_of(P[:, 0], r, np.ones((2, 1)))
