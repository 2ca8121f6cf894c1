"""occupancy: exact to its certificate, and what the paper's Section 2 says of occupancy measures."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.mdps import garnet, riverswim, terrain
from ravi.planning import evaluate, occupancy, return_of, solve
from ravi.planning.bellman import expect, extend, flow, marginal
from ravi.planning.chains import ELIMINATED
from ravi.validation import InputError
from tests.helpers import dense
from tests.planning.exact import cycle, distance_in_l1, exact_occupancy, random_mdp, random_policies

DISCOUNTS = [0.01, 0.3, 0.9, 0.99, 0.999]

sizes = {
    "X": st.integers(1, 12),
    "A": st.integers(1, 3),
    "gamma": st.sampled_from(DISCOUNTS),
    "seed": st.integers(0, 10**6),
}


@settings(deadline=None, derandomize=True, max_examples=60)
@given(X=st.integers(1, 5), A=st.integers(1, 3), gamma=st.sampled_from(DISCOUNTS), seed=st.integers(0, 10**6))
def test_certificates_hold_in_exact_arithmetic(X, A, gamma, seed):
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    policy = random_policies(seed, mdp)
    answer = occupancy(mdp, policy)
    nu, mu = exact_occupancy(mdp, policy)
    assert distance_in_l1(answer.nu, nu) <= Fraction(answer.error)
    assert distance_in_l1(answer.mu, mu) <= Fraction(answer.error)
    assert answer.error <= 1e-10


@pytest.mark.parametrize("X", [5, ELIMINATED + 1])
def test_a_start_that_sums_to_one_up_to_1e_9_stands_for_a_distribution(X):
    """The certificate holds of the normalised nu_0; what is given misses it by nine times the error."""
    mdp = garnet(X, 2, 3, 0, 0.9)
    sloppy = replace(mdp, initial=np.full(X, (1 - 9e-10) / X))
    exact = replace(mdp, initial=np.full(X, 1 / X))
    policy = random_policies(1, mdp)
    one, other = occupancy(sloppy, policy), occupancy(exact, policy)
    assert one.error <= 1e-10
    assert np.abs(one.nu - other.nu).sum() <= one.error + other.error
    assert np.abs(one.mu - other.mu).sum() <= one.error + other.error
    assert one.nu.sum() == pytest.approx(1, abs=1e-13)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(**sizes)
def test_the_flow_constraints_hold_and_determine_mu(X, A, gamma, seed):
    """P3, for any policy and for an optimal one: E^T mu = gamma P^T mu + (1 - gamma) nu_0."""
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    for policy in (random_policies(seed, mdp), solve(mdp).policy):
        mu = occupancy(mdp, policy).mu
        residual = marginal(mu) - gamma * flow(mdp, mu) - (1 - gamma) * mdp.initial
        assert np.abs(residual).sum() <= 1e-13
        P = np.einsum("xa,xay->xy", policy, dense(mdp))
        nu = (1 - gamma) * np.linalg.solve(np.eye(X) - gamma * P.T, mdp.initial)
        np.testing.assert_allclose(mu, nu[:, None] * policy, rtol=0, atol=1e-14 * mdp.horizon)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(**sizes)
def test_nu_is_the_discounted_sum_of_state_distributions(X, A, gamma, seed):
    """P4: nonnegative, of sum one, (1 - gamma) sum_t gamma^t P(x_t = .)."""
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    policy = random_policies(seed, mdp)
    answer = occupancy(mdp, policy)
    assert (answer.nu >= 0).all()
    assert answer.nu.sum() == pytest.approx(1, abs=1e-12)
    law, total, weight = mdp.initial, np.zeros(X), 1 - gamma
    while weight > 1e-17:
        total, law = total + weight * law, flow(mdp, law[:, None] * policy)
        weight *= gamma
    np.testing.assert_allclose(answer.nu, total, rtol=0, atol=1e-11)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(**sizes)
def test_returns_and_gaps_are_linear_in_mu(X, A, gamma, seed):
    """P5: <mu, r> = (1 - gamma) <nu_0, V^pi>, and rho* - rho(pi) = <mu^pi, E V* - Q*>."""
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    policy = random_policies(seed, mdp)
    mu = occupancy(mdp, policy).mu
    solution = solve(mdp)
    assert (mu * mdp.rewards).sum() == pytest.approx(return_of(mdp, policy), abs=1e-12)
    gap = (mu * (solution.V[:, None] - solution.Q)).sum()
    assert gap == pytest.approx(solution.optimum - return_of(mdp, policy), abs=2e-10)
    best = occupancy(mdp, solution.policy).mu
    assert (best * mdp.rewards).sum() == pytest.approx(solution.optimum, abs=2e-10)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(**sizes)
def test_the_chain_with_resets_has_nu_as_its_law_and_rho_as_its_gain(X, A, gamma, seed):
    """P7: with P' = gamma P + (1 - gamma) 1 nu_0^T, nu is stationary and rho* + V* = max_a (r + P' V*)."""
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    policy = random_policies(seed, mdp)
    reset = gamma * dense(mdp) + (1 - gamma) * mdp.initial
    nu = occupancy(mdp, policy).nu
    np.testing.assert_allclose(nu @ np.einsum("xa,xay->xy", policy, reset), nu, rtol=0, atol=1e-13)
    V = evaluate(mdp, policy).V
    gain = (policy * (mdp.rewards + reset @ V)).sum(-1) - V
    np.testing.assert_allclose(gain, return_of(mdp, policy), rtol=0, atol=1e-10)
    solution = solve(mdp)
    best = (mdp.rewards + reset @ solution.V).max(-1) - solution.V
    np.testing.assert_allclose(best, solution.optimum, rtol=0, atol=3e-10)


def test_the_occupancies_of_riverswim():
    mdp = riverswim(6, 0.9)
    uniform = occupancy(mdp, np.full((6, 2), 0.5)).nu
    listed = [0.625152891069, 0.277897502001, 0.072114065338, 0.018781822501, 0.004979397111, 0.001074321979]
    np.testing.assert_allclose(uniform, listed, rtol=0, atol=1e-12)
    best = occupancy(mdp, solve(mdp).policy).nu
    listed = [0.17151669873, 0.217126381931, 0.161313741651, 0.129100241142, 0.190495162337, 0.130447774209]
    np.testing.assert_allclose(best, listed, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.9, 0.999])
@pytest.mark.parametrize("X", [ELIMINATED, ELIMINATED + 1, 400])
def test_few_states_are_eliminated_and_many_are_swept_to_the_same_answer(X, gamma):
    mdp = garnet(X, 3, 4, 1, gamma)
    policy = random_policies(0, mdp)
    answer = occupancy(mdp, policy)
    P = np.einsum("xa,xay->xy", policy, dense(mdp))
    nu = (1 - gamma) * np.linalg.solve(np.eye(X) - gamma * P.T, mdp.initial)
    assert answer.error <= 2e-10
    assert np.abs(answer.nu - nu).sum() <= answer.error + 1e-13 * mdp.horizon


def test_a_loose_tolerance_leaves_an_error_that_the_certificate_covers():
    mdp = garnet(400, 3, 2, 1, 0.99)
    policy = random_policies(0, mdp)
    loose, tight = occupancy(mdp, policy, tol=1e-2), occupancy(mdp, policy)
    error = np.abs(loose.nu - tight.nu).sum()
    assert loose.error / 1000 < error <= loose.error <= 1e-2


@pytest.mark.parametrize("gamma", [0.99, 0.999])
def test_slow_chains_of_many_states_are_certified_too(gamma):
    X = 1000
    answer = occupancy(cycle(X, gamma), np.ones((X, 1)))
    assert answer.error <= 1e-10
    law = (1 - gamma) * gamma ** np.arange(X) / (1 - gamma**X)
    assert np.abs(answer.nu - law).sum() <= answer.error + 1e-13

    mdp = terrain(20, 2, gamma)
    for policy in (np.full((400, 4), 0.25), np.eye(4)[np.full(400, 1)], solve(mdp).policy):
        answer = occupancy(mdp, policy)
        assert answer.error <= 1e-10
        assert (answer.nu >= 0).all()
        residual = marginal(answer.mu) - gamma * flow(mdp, answer.mu) - (1 - gamma) * mdp.initial
        assert np.abs(residual).sum() * mdp.horizon <= 2 * answer.error


@pytest.mark.parametrize("X", [1, 20, ELIMINATED + 50])
def test_a_batch_does_not_change_a_policy(X):
    mdp = random_mdp(0, X, 3, min(4, X), 0.99)
    batch = random_policies(1, mdp, 5)
    together = occupancy(mdp, batch)
    for i, policy in enumerate(batch):
        alone = occupancy(mdp, policy)
        assert (alone.mu == together.mu[i]).all()
        assert (alone.nu == together.nu[i]).all()
        assert alone.error == together.error[i]


@settings(deadline=None, derandomize=True, max_examples=20)
@given(**sizes)
def test_the_operators_are_adjoint(X, A, gamma, seed):
    """P2: <P f, g> = <f, P^T g>, <E f, g> = <f, E^T g>."""
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    rng = np.random.default_rng(seed)
    f, g = rng.normal(size=X), rng.normal(size=(X, A))
    assert (expect(mdp, f) * g).sum() == pytest.approx((f * flow(mdp, g)).sum(), abs=1e-12)
    assert (extend(f, A) * g).sum() == pytest.approx((f * marginal(g)).sum(), abs=1e-12)


def test_bad_input_is_named():
    mdp = riverswim(4, 0.9)
    with pytest.raises(InputError, match=r"policy has shape \(4,\)"):
        occupancy(mdp, np.ones(4))
    with pytest.raises(InputError, match="tol is -1; it must be positive"):
        occupancy(mdp, np.full((4, 2), 0.5), tol=-1)
