"""solve: its methods agree, its certificates hold against exact arithmetic, and textbook answers come out."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.core import MDP
from ravi.mdps import one_state_of, riverswim, trap, two_cycle
from ravi.planning import occupancy, return_of, solve
from ravi.planning.bellman import flow, marginal
from ravi.planning.certificates import distributions, mean, miss, tables
from ravi.planning.methods import optimal_occupancy, optimal_values
from ravi.planning.solver import METHODS
from ravi.validation import InputError
from tests.planning.exact import cycle, distance, exact_optimum, exact_return, exact_values, frozen_lake, random_mdp

SWEEPING = [method for method in METHODS if method != "linear_program"]
DISCOUNTS = [0.01, 0.3, 0.9, 0.99, 0.999]


def certify_exactly(mdp, solution):
    """Every bound of `solution`, in exact arithmetic."""
    V, Q, optimum = exact_optimum(mdp)
    assert distance(solution.V, V) <= Fraction(solution.error)
    assert distance(solution.Q, Q) <= Fraction(solution.error)
    assert distance(solution.optimum, optimum) <= Fraction(solution.optimum_error)
    loss = optimum - exact_return(mdp, exact_values(mdp, solution.policy))
    assert 0 <= loss <= Fraction(solution.policy_error)
    return distance(solution.V, V)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    X=st.integers(1, 40),
    A=st.integers(1, 4),
    B=st.integers(1, 6),
    gamma=st.sampled_from(DISCOUNTS),
    tied=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_all_methods_find_the_same_optimum(X, A, B, gamma, tied, seed):
    mdp = random_mdp(seed, X, A, min(B, X), gamma, tied=tied)
    solutions = [solve(mdp, method) for method in METHODS]
    for one in solutions:
        for other in solutions:
            assert np.abs(one.V - other.V).max() <= one.error + other.error
            assert np.abs(one.Q - other.Q).max() <= one.error + other.error
            assert abs(one.optimum - other.optimum) <= one.optimum_error + other.optimum_error
        assert one.error <= (1e-10 if one.method != "linear_program" else 1e-6)
        assert abs(return_of(mdp, one.policy) - one.optimum) <= one.policy_error + one.optimum_error + 1e-13


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    X=st.integers(1, 4),
    A=st.integers(1, 3),
    B=st.integers(1, 3),
    gamma=st.sampled_from(DISCOUNTS),
    tol=st.sampled_from([1e-12, 1e-10, 1e-5, 1e-2, 1.0]),
    method=st.sampled_from(METHODS),
    tied=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_certificates_hold_in_exact_arithmetic(X, A, B, gamma, tol, method, tied, seed):
    mdp = random_mdp(seed, X, A, min(B, X), gamma, tied=tied)
    certify_exactly(mdp, solve(mdp, method, tol))


def test_a_tolerance_that_float64_cannot_reach_is_reported_not_claimed():
    mdp = random_mdp(3, 4, 2, 3, 0.999)
    for method in METHODS:
        solution = solve(mdp, method, tol=1e-300)
        assert 1e-14 < solution.error < 1e-10
        certify_exactly(mdp, solution)


@pytest.mark.parametrize("method", SWEEPING)
def test_rows_that_sum_to_one_up_to_1e_9_stand_for_distributions(method):
    """The certificate is as good as with exact rows, and holds of the normalised ones."""
    mdp = random_mdp(5, 4, 2, 3, 0.99)
    sloppy = MDP(
        rewards=mdp.rewards,
        successors=mdp.successors,
        transitions=mdp.transitions * (1 + 8e-10),
        initial=mdp.initial * (1 - 8e-10),
        discount=0.99,
    )
    solution = solve(sloppy, method)
    assert solution.error <= 1e-10
    certify_exactly(sloppy, solution)


def replacement():
    """Miranda and Fackler, Section 7.6.2: an asset of age 1 to 5 earns 50 - 2.5 a - 2.5 a^2; a new one costs 75."""
    age, P = np.arange(1, 6), np.zeros((5, 2, 5))
    P[np.arange(5), 0, np.minimum(np.arange(5) + 1, 4)] = P[:, 1, 0] = 1
    return P, np.stack([50 - 2.5 * age - 2.5 * age**2, np.full(5, 50.0 - 75)], axis=-1)


def forest():
    """Wait (fire with probability .1) or cut; 4 for an old forest that is kept, 1 and 2 for cutting at ages 1 and 2."""
    P = np.zeros((3, 2, 3))
    P[:, 0, 0], P[:, 1, 0] = 0.1, 1
    P[np.arange(3), 0, [1, 2, 2]] = 0.9
    return P, np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 2.0]])


def textbook(P, r, gamma):
    """An MDP of rewards that are not in [0, 1], and what takes its V* to theirs."""
    low, width = r.min(), np.ptp(r)
    return MDP.from_dense(P, (r - low) / width, gamma, 0), (width, low / (1 - gamma))


PUTERMAN = np.array([[[0.5, 0.5], [0, 1]], [[0, 1], [0, 1]]]), np.array([[5.0, 10.0], [-1.0, -1.0]])  # Section 3.1
ASSET = [216.56004652515267, 190.6222739168363, 172.91363768537366, 169.9040418726374, 169.9040418726374]
CLOSED = [  # an MDP, V* of its first states, to so many
    ((riverswim(6, 0.9), (1, 0)), [425329947 / 326053817], 1e-12),
    ((riverswim(6, 0.99), (1, 0)), [37.854701140082376], 1e-11),
    ((frozen_lake(0.9), (1, 0)), [4348890 / 63127201], 2e-12),
    ((frozen_lake(0.99), (1, 0)), [0.5420259320004729], 2e-12),
    (textbook(*PUTERMAN, 0.95), [-60 / 7, -20], 1e-10),
    (textbook(*replacement(), 0.9), ASSET, 1e-9),
    (textbook(*forest(), 0.9), [26.244, 29.484, 33.484], 1e-11),
    ((trap(0.9), (1, 0)), [10], 1e-8),
    ((two_cycle(0.9), (1, 0)), [10, 90 / 11, 10], 1e-8),
    ((one_state_of([0.25, 0.75], 0.9), (1, 0)), [7.5], 1e-11),
    ((one_state_of([0.5], 0.99), (1, 0)), [50], 1e-9),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("problem", "values", "tol"), CLOSED)
def test_closed_forms(problem, values, tol, method):
    mdp, (width, shift) = problem
    solution = solve(mdp, method, tol=1e-13)
    np.testing.assert_allclose((width * solution.V + shift)[: len(values)], values, rtol=0, atol=tol)
    assert solution.optimum == pytest.approx((1 - mdp.discount) * mdp.initial @ solution.V, abs=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_ties_go_to_the_first_action_and_cost_nothing(method):
    mdp = MDP(
        rewards=np.full((3, 4), 0.5),
        successors=np.tile(np.arange(3), (3, 4, 1)),
        transitions=np.tile([0.25, 0.25, 0.5], (3, 4, 1)),
        initial=0,
        discount=0.9,
    )
    solution = solve(mdp, method)
    assert (solution.policy == np.eye(4)[0]).all()
    np.testing.assert_allclose(solution.Q, 5, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.99, 0.999])
@pytest.mark.parametrize("X", [100, 1000])
def test_what_does_not_mix_is_solved_as_well(X, gamma):
    """A deterministic cycle: V* at the reward is 1 / (1 - gamma^X), and gamma^d of that d steps before it."""
    mdp = cycle(X, gamma, actions=2)
    steps = (X // 2 - np.arange(X)) % X
    for method in SWEEPING:
        solution = solve(mdp, method)
        assert solution.error <= 1e-10
        assert np.abs(solution.V - gamma**steps / (1 - gamma**X)).max() <= solution.error + 1e-12


def test_bad_input_is_named():
    mdp = riverswim(4, 0.9)
    for tol in (0, -1e-3, np.nan, np.inf, "tight"):
        with pytest.raises(InputError, match="tol"):
            solve(mdp, tol=tol)
    with pytest.raises(InputError, match="Did you mean policy_iteration"):
        solve(mdp, "policy_iterations")
    with pytest.raises(
        InputError, match="modified_policy_iteration, policy_iteration, value_iteration, linear_program"
    ):
        solve(mdp, "simplex")
    with pytest.raises(InputError, match="method is None, not one of"):
        solve(mdp, None)


def test_rows_are_divided_by_their_sum_only_where_they_miss_it():
    rows = np.array([[0.5, 0.5], [0.3, 0.7 + 1e-10], [1.0, 0.0]])
    same = distributions(rows[[0, 2]])
    assert (same == rows[[0, 2]]).all()
    assert not same.flags.writeable
    assert rows.flags.writeable
    divided = distributions(rows)
    assert (divided[[0, 2]] == rows[[0, 2]]).all()
    assert miss(divided) <= 2**-52 < miss(rows)
    assert tables(riverswim(6, 0.9)).transitions is not None


def test_a_mean_keeps_its_digits_whatever_its_length():
    rng = np.random.default_rng(0)
    weights, values = rng.uniform(size=100_000), 1000 + rng.uniform(size=100_000)
    exact = sum(Fraction(w) * Fraction(v) for w, v in zip(weights, values, strict=True)) / sum(map(Fraction, weights))
    assert abs(Fraction(mean(weights, values)) - exact) <= 3 * Fraction(2) ** -52 * exact


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_the_error_of_a_policy_is_attained(gamma):
    """One sweep from W = 0: in state 0 both actions earn 0, and the first, which is taken, leads to where nothing is
    ever earned, the second to where every step earns 1. V* = gamma H there, and the policy's value is 0."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 1] = P[2, :, 2] = 1
    mdp = MDP.from_dense(P, [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]], gamma, 0)
    found = solve(mdp, "value_iteration", tol=1 / (1 - gamma))
    assert (found.sweeps, found.policy[0].tolist()) == (1, [1.0, 0.0])
    assert found.policy_error == pytest.approx(gamma, rel=1e-12)  # the loss: gamma H (1 - gamma)
    assert found.policy_error >= gamma


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
