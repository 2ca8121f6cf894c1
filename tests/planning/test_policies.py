"""evaluate, occupancy and relative entropies: exact to their certificates, and the same alone and in a batch."""

from dataclasses import replace
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.mdps import garnet, riverswim, terrain
from ravi.planning import evaluate, occupancy, return_of, solve
from ravi.planning.bellman import backup, expect, expect_with, extend, flow, marginal, truncate
from ravi.planning.chains import ELIMINATED
from ravi.planning.occupancies import conditional_relative_entropy, relative_entropy
from ravi.validation import InputError
from tests.helpers import dense
from tests.planning.exact import (
    backed_up,
    by_dense_solve,
    cycle,
    distance,
    distance_in_l1,
    exact_occupancy,
    exact_return,
    exact_values,
    random_mdp,
    random_policies,
)

getcontext().prec = 60
DISCOUNTS = st.sampled_from([0.01, 0.3, 0.9, 0.99, 0.999])
SIZES = {"X": st.integers(1, 12), "A": st.integers(1, 3), "gamma": DISCOUNTS, "seed": st.integers(0, 10**6)}


def drawn(X, A, gamma, seed):
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    return mdp, random_policies(seed, mdp)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(**SIZES | {"X": st.integers(1, 5)})
def test_certificates_hold_in_exact_arithmetic(X, A, gamma, seed):
    mdp, policy = drawn(X, A, gamma, seed)
    found, V = evaluate(mdp, policy), exact_values(mdp, policy)
    assert distance(found.V, V) <= Fraction(found.error)
    assert distance(found.Q, backed_up(mdp, V)) <= Fraction(found.error)
    assert distance(found.returns, exact_return(mdp, V)) <= (1 - gamma) * found.error + 1e-15
    answer, (nu, mu) = occupancy(mdp, policy), exact_occupancy(mdp, policy)
    assert distance_in_l1(answer.nu, nu) <= Fraction(answer.error)
    assert distance_in_l1(answer.mu, mu) <= Fraction(answer.error)
    assert answer.error <= 1e-10
    assert found.error <= 1e-9


@pytest.mark.parametrize("gamma", [0.9, 0.999])
@pytest.mark.parametrize("tol", [1e-2, 1e-10])
@pytest.mark.parametrize("X", [ELIMINATED, ELIMINATED + 1, 400])
def test_few_states_are_eliminated_and_many_are_swept_to_the_same_answer(X, tol, gamma):
    mdp = garnet(X, 3, 4, 1, gamma)
    policy = random_policies(0, mdp)
    found, answer, (V, nu) = evaluate(mdp, policy, tol), occupancy(mdp, policy, tol), by_dense_solve(mdp, policy)[:2]
    assert found.error <= tol
    assert answer.error <= max(tol, 2e-10)
    assert np.abs(found.V - V).max() <= found.error + 1e-14 * mdp.horizon**2
    assert np.abs(answer.nu - nu).sum() <= answer.error + 1e-13 * mdp.horizon


def test_a_loose_tolerance_leaves_an_error_that_the_certificate_covers():
    mdp = garnet(400, 3, 2, 1, 0.99)
    policy = random_policies(0, mdp)
    loose, tight = occupancy(mdp, policy, tol=1e-2), occupancy(mdp, policy)
    error = np.abs(loose.nu - tight.nu).sum()
    assert loose.error / 1000 < error <= loose.error <= 1e-2


@pytest.mark.parametrize("gamma", [0.99, 0.999])
def test_slow_chains_of_many_states_are_certified_too(gamma):
    """A cycle, an absorbing cell among many, a grid: here sweeps hand over to a Krylov method."""
    X = 1000
    ring, along = evaluate(cycle(X, gamma), np.ones((X, 1))), occupancy(cycle(X, gamma), np.ones((X, 1)))
    assert max(ring.error, along.error) <= 1e-10
    steps = (X // 2 - np.arange(X)) % X
    assert np.abs(ring.V - gamma**steps / (1 - gamma**X)).max() <= ring.error + 1e-12
    assert np.abs(along.nu - (1 - gamma) * gamma ** np.arange(X) / (1 - gamma**X)).sum() <= along.error + 1e-13

    mdp = terrain(20, 2, gamma)
    for policy in (np.full((400, 4), 0.25), np.eye(4)[np.full(400, 1)], solve(mdp).policy):
        found, answer = evaluate(mdp, policy), occupancy(mdp, policy)
        assert max(found.error, 2 * answer.error) <= 2e-10
        assert np.abs(found.V - by_dense_solve(mdp, policy)[0]).max() <= found.error + 1e-13 * mdp.horizon
        assert (answer.nu >= 0).all()
        residual = marginal(answer.mu) - gamma * flow(mdp, answer.mu) - (1 - gamma) * mdp.initial
        assert np.abs(residual).sum() * mdp.horizon <= 2 * answer.error


@pytest.mark.parametrize("X", [1, 20, ELIMINATED + 50])
def test_a_batch_does_not_change_a_policy(X):
    mdp = random_mdp(0, X, 3, min(4, X), 0.99)
    batch = random_policies(1, mdp, 7)
    batch[2] = np.eye(3)[0]
    batch[3, 0] = batch[3, 0] * (1 + 5e-10)  # a row that is divided by its sum
    values, occupancies = evaluate(mdp, batch), occupancy(mdp, batch)
    for i, policy in enumerate(batch):
        for alone, names in ((evaluate(mdp, policy), "V Q returns error"), (occupancy(mdp, policy), "mu nu error")):
            together = values if "V" in names else occupancies
            assert all(np.array_equal(getattr(alone, name), getattr(together, name)[i]) for name in names.split())
        assert return_of(mdp, policy) == values.returns[i]
    assert (return_of(mdp, batch) == values.returns).all()


@pytest.mark.parametrize("X", [5, ELIMINATED + 1])
def test_a_start_that_sums_to_one_up_to_1e_9_stands_for_a_distribution(X):
    """The certificate holds of the normalised nu_0; what is given misses it by nine times the error."""
    mdp = garnet(X, 2, 3, 0, 0.9)
    policy = random_policies(1, mdp)
    one, other = (occupancy(replace(mdp, initial=np.full(X, mass / X)), policy) for mass in (1 - 9e-10, 1))
    assert one.error <= 1e-10
    assert np.abs(one.mu - other.mu).sum() <= one.error + other.error
    assert one.nu.sum() == pytest.approx(1, abs=1e-13)


def test_operators_are_dense_products_for_one_and_for_a_batch():
    mdp, rng = garnet(7, 3, 2, 0, 0.9), np.random.default_rng(0)
    P, f, g = dense(mdp), rng.normal(size=(4, 7)), rng.normal(size=(4, 7, 3))
    for i in (..., 0):
        np.testing.assert_allclose(expect(mdp, f[i]), np.einsum("xay,...y->...xa", P, f[i]), atol=1e-14)
        np.testing.assert_allclose(flow(mdp, g[i]), np.einsum("xay,...xa->...y", P, g[i]), atol=1e-14)
    np.testing.assert_allclose(expect_with(mdp.successors, mdp.transitions, f), expect(mdp, f), atol=1e-14)
    assert (extend(f, 3) == f[..., None]).all()


def test_the_backup_is_cut_at_both_ends():
    """r + CB + gamma PV below 0 becomes 0, above H becomes H: a regression's PV can be anything."""
    r, H = np.array([[0.0, 1.0, 0.5]]), 10.0
    PV, CB = np.array([[[-50.0, 100.0, 2.0]]]), np.array([[[1.0, 0.0, 0.25]]])
    Q = backup(r, CB, 0.9, PV, H)
    assert Q is PV
    np.testing.assert_allclose(Q, [[[0.0, 10.0, 2.55]]], rtol=1e-15)
    assert truncate(np.array([-1.0, 0.0, 5.0, 11.0]), H).tolist() == [0.0, 0.0, 5.0, 10.0]


def test_elimination_keeps_its_digits_where_gamma_is_close_to_one():
    """At gamma = 1 - 1e-7 a dense LU solve has lost seven digits of V^pi; differences of V^pi keep theirs here."""
    mdp, policy = riverswim(6, 1 - 1e-7), np.full((6, 2), 0.5)
    V, exact = evaluate(mdp, policy).V, exact_values(mdp, policy)
    assert distance(V / float(exact[0]), [v / exact[0] for v in exact]) <= 1e-14


def exact_entropy(p, q):
    p, q = [[Decimal(float(v)) for v in one] for one in (p, q)]
    p, q = [[v / sum(one) for v in one] for one in (p, q)]
    return sum((a * (a / b).ln() for a, b in zip(p, q, strict=True) if a), Decimal(0))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(step=st.sampled_from([1e-8, 1e-5, 1e-3, 9e-3, 0.011, 0.3, 5.0, 100.0]), seed=st.integers(0, 10**6))
def test_close_policies_have_an_entropy_with_digits(step, seed):
    """KL is about step^2 / 2; it is right to 1e-16 / step of itself, which is what the rounding of p and q allows."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4))
    q = p * np.exp(step * rng.uniform(-1, 1, size=4))
    q /= q.sum()
    exact = exact_entropy(p, q)
    error = abs(Decimal(float(relative_entropy(p, q))) - exact)
    assert error <= Decimal(1e-14 / step + 1e-13) * exact + Decimal("1e-30")


def test_entropies_in_closed_form():
    half, one = [0.5, 0.5], [1.0, 0.0]
    for p, q, exact in (
        (one, half, np.log(2)), (half, one, np.inf), ([0.3, 0.7], [0.3, 0.7], 0), ([5e-324, 1.0], half, np.log(2)),
        (half, [5e-324, 1.0], np.log(0.5) - np.log(5e-324) / 2),
        ([[0.0, 1.0], [0.25, 0.75]], half, [np.log(2), 0.25 * np.log(0.5) + 0.75 * np.log(1.5)]),
    ):  # fmt: skip
        np.testing.assert_allclose(relative_entropy(p, q), exact, rtol=1e-14, atol=1e-15)
    mdp, uniform = riverswim(6, 0.9), np.full((6, 2), 0.5)
    best, left = solve(mdp).policy, np.eye(2)[[0] * 6]
    away = left.copy()
    away[3] = [0, 1]  # infinitely far from left, in a state that left never visits
    for policy, other, exact in (
        (best, uniform, np.log(2)), (uniform, best, np.inf), (left, away, 0), (uniform, away, np.inf),
        ([best, uniform], [uniform, uniform], [np.log(2), 0]),
    ):  # fmt: skip
        found = conditional_relative_entropy(mdp, np.array(policy), np.array(other))
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)


UNIFORM = np.full((4, 2), 0.5)


@pytest.mark.parametrize(
    ("policy", "options", "says"),
    [
        (np.ones((4, 3)), {}, r"policy has shape \(4, 3\), not \(X, A\) = \(4, 2\)"),
        (np.full(4, 2), {}, r"policy\[0\] is 2; actions are whole numbers, 0 to 1"),
        ([1, 1, 1], {}, "policy has 3 actions, not one for each of 4 states"),
        ([[0.5, 0.5], [1, 0.5], [0.5, 0.5], [0.5, 0.5]], {}, r"policy\[1\] sums to 1.5"),
        ([[-1, 2]] + [[0.5, 0.5]] * 3, {}, r"policy\[0, 0\] is -1, a negative probability"),
        (UNIFORM, {"tol": 0}, "tol is 0; it must be positive"),
        (UNIFORM, {"tol": -1}, "tol is -1; it must be positive"),
    ],
)
def test_bad_input_is_named(policy, options, says):
    for function in (evaluate, return_of, occupancy):
        with pytest.raises(InputError, match=says):
            function(riverswim(4, 0.9), policy, **options)


def test_entropies_name_bad_input():
    mdp = riverswim(4, 0.9)
    with pytest.raises(InputError, match="other has shape"):
        conditional_relative_entropy(mdp, UNIFORM, np.ones((3, 2)))
    with pytest.raises(InputError, match=r"policy has shape \(4, 2\), but other has \(1, 4, 2\)"):
        conditional_relative_entropy(mdp, UNIFORM, UNIFORM[None])
    with pytest.raises(InputError, match="q sums to 2"):
        relative_entropy([0.5, 0.5], [1.0, 1.0])
