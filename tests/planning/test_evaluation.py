"""evaluate and return_of: exact to their certificates, and the same for a policy alone and in a batch."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.mdps import garnet, riverswim, terrain, trap
from ravi.planning import evaluate, return_of, solve
from ravi.planning.bellman import expect
from ravi.planning.chains import ELIMINATED
from ravi.validation import InputError
from tests.helpers import dense
from tests.planning.exact import backed_up, cycle, distance, exact_return, exact_values, random_mdp, random_policies

DISCOUNTS = [0.01, 0.3, 0.9, 0.99, 0.999]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    X=st.integers(1, 5),
    A=st.integers(1, 3),
    B=st.integers(1, 3),
    gamma=st.sampled_from(DISCOUNTS),
    seed=st.integers(0, 10**6),
)
def test_certificates_hold_in_exact_arithmetic(X, A, B, gamma, seed):
    mdp = random_mdp(seed, X, A, min(B, X), gamma)
    policy = random_policies(seed, mdp)
    evaluation = evaluate(mdp, policy)
    V = exact_values(mdp, policy)
    assert distance(evaluation.V, V) <= Fraction(evaluation.error)
    assert distance(evaluation.Q, backed_up(mdp, V)) <= Fraction(evaluation.error)
    assert distance(evaluation.returns, exact_return(mdp, V)) <= (1 - gamma) * evaluation.error + 1e-15
    assert evaluation.error <= 1e-10


def by_dense_solve(mdp, policy):
    P = np.einsum("xa,xay->xy", policy, dense(mdp))
    return np.linalg.solve(np.eye(mdp.states) - mdp.discount * P, (policy * mdp.rewards).sum(-1))


@pytest.mark.parametrize("gamma", [0.9, 0.999])
@pytest.mark.parametrize("tol", [1e-2, 1e-10])
@pytest.mark.parametrize("X", [ELIMINATED, ELIMINATED + 1, 400])
def test_few_states_are_eliminated_and_many_are_swept_to_the_same_answer(X, tol, gamma):
    mdp = garnet(X, 3, 4, 1, gamma)
    policy = random_policies(0, mdp)
    evaluation = evaluate(mdp, policy, tol)
    assert evaluation.error <= tol
    assert np.abs(evaluation.V - by_dense_solve(mdp, policy)).max() <= evaluation.error + 1e-14 * mdp.horizon**2


@pytest.mark.parametrize("gamma", [0.99, 0.999])
def test_slow_chains_of_many_states_are_certified_too(gamma):
    """A cycle, an absorbing cell among many, a grid: here sweeps hand over to a Krylov method."""
    X = 1000
    ring = evaluate(cycle(X, gamma), np.ones((X, 1)))
    assert ring.error <= 1e-10
    steps = (X // 2 - np.arange(X)) % X
    assert np.abs(ring.V - gamma**steps / (1 - gamma**X)).max() <= ring.error + 1e-12

    mdp = terrain(20, 2, gamma)
    for policy in (np.full((400, 4), 0.25), np.eye(4)[np.full(400, 1)], solve(mdp).policy):
        evaluation = evaluate(mdp, policy)
        assert evaluation.error <= 2e-10
        assert np.abs(evaluation.V - by_dense_solve(mdp, policy)).max() <= evaluation.error + 1e-13 * mdp.horizon


@pytest.mark.parametrize("X", [1, 20, ELIMINATED + 50])
def test_a_batch_does_not_change_a_policy(X):
    mdp = random_mdp(0, X, 3, min(4, X), 0.99)
    batch = random_policies(1, mdp, 7)
    batch[2] = np.eye(3)[0]
    batch[3, 0] = batch[3, 0] * (1 + 5e-10)  # a row that is divided by its sum
    together = evaluate(mdp, batch)
    for i, policy in enumerate(batch):
        alone = evaluate(mdp, policy)
        assert (together.V[i] == alone.V).all()
        assert (together.Q[i] == alone.Q).all()
        assert alone.returns == together.returns[i] == return_of(mdp, policy)
        assert alone.error == together.error[i]
    assert (return_of(mdp, batch) == together.returns).all()


@settings(deadline=None, derandomize=True, max_examples=30)
@given(X=st.integers(1, 12), A=st.integers(1, 3), seed=st.integers(0, 10**6), gamma=st.sampled_from(DISCOUNTS))
def test_values_satisfy_the_bellman_equations(X, A, seed, gamma):
    """P1: V^pi = sum_a pi Q^pi, Q^pi = r + gamma P V^pi."""
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    policy = random_policies(seed, mdp)
    evaluation = evaluate(mdp, policy)
    slack = 1e-14 * mdp.horizon
    np.testing.assert_allclose(evaluation.V, (policy * evaluation.Q).sum(-1), rtol=0, atol=2 * evaluation.error + slack)
    backup = mdp.rewards + gamma * expect(mdp, evaluation.V)
    np.testing.assert_allclose(evaluation.Q, backup, rtol=0, atol=2 * evaluation.error + slack)


def test_the_uniform_policy_of_riverswim():
    mdp = riverswim(6, 0.9)
    evaluation = evaluate(mdp, np.full((6, 2), 0.5))
    assert evaluation.V[0] == pytest.approx(0.021000432173684, abs=1e-15)
    assert return_of(mdp, np.full((6, 2), 0.5)) == pytest.approx(0.0021000432173684, abs=1e-16)


@pytest.mark.parametrize("gamma", [0.01, 0.9, 0.999, 1 - 1e-7])
def test_the_trap_has_its_closed_form_however_close_gamma_is_to_one(gamma):
    eps = np.array([0.0, 1e-9, 0.1, 1.0])
    policies = np.stack([np.array([[1 - e, e], [1.0, 0.0]]) for e in eps])
    evaluation = evaluate(trap(gamma), policies)
    gap = 1 - evaluation.returns
    bound = (1 - gamma) * evaluation.error + 1e-15
    assert (np.abs(gap - eps / (1 - gamma + gamma * eps)) <= bound + 1e-12).all()


def test_elimination_keeps_its_digits_where_gamma_is_close_to_one():
    """At gamma = 1 - 1e-7 a dense LU solve has lost seven digits of V^pi; differences of V^pi keep theirs here."""
    mdp = riverswim(6, 1 - 1e-7)
    policy = np.full((6, 2), 0.5)
    V, exact = evaluate(mdp, policy).V, exact_values(mdp, policy)
    assert distance(V / float(exact[0]), [v / exact[0] for v in exact]) <= 1e-14


def test_the_policy_that_is_given_is_left_alone():
    mdp = riverswim(4, 0.9)
    policy = np.full((4, 2), 0.5)
    evaluate(mdp, policy)
    assert policy.flags.writeable
    assert (policy == 0.5).all()
    turned = np.asfortranarray(np.tile(policy, (2, 1, 1)))
    assert (evaluate(mdp, turned).V == evaluate(mdp, policy).V).all()


def test_no_policies_have_no_values():
    evaluation = evaluate(riverswim(4, 0.9), np.zeros((0, 4, 2)))
    assert evaluation.V.shape == (0, 4)
    assert evaluation.returns.shape == (0,)
    assert repr(evaluation) == "<Evaluation: 0 policies, V and Q ± 0>"


def test_bad_input_is_named():
    mdp = riverswim(4, 0.9)
    uniform = np.full((4, 2), 0.5)
    for function in (evaluate, return_of):
        with pytest.raises(InputError, match=r"policy has shape \(4, 3\), not \(X, A\) = \(4, 2\)"):
            function(mdp, np.ones((4, 3)))
        with pytest.raises(InputError, match=r"policy\[1\] sums to 1.5"):
            function(mdp, [[0.5, 0.5], [1, 0.5], [0.5, 0.5], [0.5, 0.5]])
        with pytest.raises(InputError, match=r"policy\[0, 0\] is -1, a negative probability"):
            function(mdp, [[-1, 2]] + [[0.5, 0.5]] * 3)
        with pytest.raises(InputError, match="tol is 0; it must be positive"):
            function(mdp, uniform, tol=0)
