"""Relative entropies: closed forms, digits where policies are close, and the chain rule."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.mdps import riverswim
from ravi.planning import occupancy, solve
from ravi.planning.occupancies import conditional_relative_entropy, relative_entropy
from ravi.validation import InputError
from tests.planning.exact import random_mdp

getcontext().prec = 60


def exactly(p, q):
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
    exact = exactly(p, q)
    error = abs(Decimal(float(relative_entropy(p, q))) - exact)
    assert error <= Decimal(1e-14 / step + 1e-13) * exact + Decimal("1e-30")


def test_closed_forms():
    assert relative_entropy([1.0, 0.0], [0.5, 0.5]) == pytest.approx(np.log(2), abs=1e-15)
    assert relative_entropy([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert relative_entropy([0.3, 0.7], [0.3, 0.7]) == 0
    assert relative_entropy([5e-324, 1.0], [0.5, 0.5]) == pytest.approx(np.log(2), abs=1e-15)
    assert relative_entropy([0.5, 0.5], [5e-324, 1.0]) == pytest.approx(np.log(0.5) - np.log(5e-324) / 2, rel=1e-14)
    both = relative_entropy([[0.0, 1.0], [0.25, 0.75]], [0.5, 0.5])
    np.testing.assert_allclose(both, [np.log(2), 0.25 * np.log(0.5) + 0.75 * np.log(1.5)], rtol=1e-14)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(X=st.integers(1, 12), A=st.integers(1, 4), gamma=st.sampled_from([0.3, 0.9, 0.99]), seed=st.integers(0, 10**6))
def test_the_chain_rule(X, A, gamma, seed):
    """P6: KL(mu || mu') = KL(nu || nu') + H(pi || pi')."""
    mdp = random_mdp(seed, X, A, min(3, X), gamma)
    rng = np.random.default_rng(seed)
    policies = rng.dirichlet(np.ones(A), size=(2, X))
    one, other = (occupancy(mdp, policy) for policy in policies)
    joint = relative_entropy(one.mu.ravel(), other.mu.ravel())
    states = relative_entropy(one.nu, other.nu)
    assert joint == pytest.approx(states + conditional_relative_entropy(mdp, *policies), rel=1e-9, abs=1e-12)
    assert joint <= mdp.horizon * conditional_relative_entropy(mdp, *policies) + 1e-12  # Lemma A.1


def test_the_entropy_of_an_optimal_policy_to_the_uniform_one_is_at_most_log_A():
    mdp = riverswim(6, 0.9)
    best, uniform = solve(mdp).policy, np.full((6, 2), 0.5)
    assert conditional_relative_entropy(mdp, best, uniform) == pytest.approx(np.log(2), abs=1e-12)
    assert conditional_relative_entropy(mdp, uniform, best) == np.inf
    batch = conditional_relative_entropy(mdp, np.stack([best, uniform]), np.stack([uniform, uniform]))
    np.testing.assert_allclose(batch, [np.log(2), 0], rtol=0, atol=1e-12)


def test_states_that_are_never_visited_do_not_count():
    mdp = riverswim(6, 0.9)
    left, uniform = np.eye(2)[[0] * 6], np.full((6, 2), 0.5)
    away = left.copy()
    away[3] = [0, 1]  # infinitely far from left, in a state that left never sees
    assert conditional_relative_entropy(mdp, left, away) == 0
    assert conditional_relative_entropy(mdp, uniform, away) == np.inf


def test_bad_input_is_named():
    mdp = riverswim(4, 0.9)
    with pytest.raises(InputError, match="other has shape"):
        conditional_relative_entropy(mdp, np.full((4, 2), 0.5), np.ones((3, 2)))
    with pytest.raises(InputError, match=r"policy has shape \(4, 2\), but other has \(1, 4, 2\)"):
        conditional_relative_entropy(mdp, np.full((4, 2), 0.5), np.full((1, 4, 2), 0.5))
    with pytest.raises(InputError, match="q sums to 2"):
        relative_entropy([0.5, 0.5], [1.0, 1.0])
