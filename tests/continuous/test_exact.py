"""The reference: its equations are solved, and its error falls with the number of nodes."""

import numpy as np
import pytest

import ravi
from ravi.continuous import exact, level, reference
from ravi.validation import InputError


@pytest.fixture(scope="module")
def fine():
    found = reference(level(), 512)
    return found, exact.optimal(found)


def test_the_nodes_are_an_mdp_that_other_solvers_agree_on():
    ref = reference(level(), 16)
    mdp = ravi.MDP.from_dense(ref.transitions, ref.rewards, 0.9, ref.initial, renormalise=True)
    found = exact.optimal(ref)
    assert found.error < 1e-8
    np.testing.assert_allclose(found.optimum, ravi.solve(mdp).optimum, atol=1e-9)
    policy = np.full((16, 3), 1 / 3)
    np.testing.assert_allclose(exact.return_of(ref, policy), ravi.return_of(mdp, policy), atol=1e-9)


def test_elimination_and_iteration_agree(monkeypatch):
    ref = reference(level(), 64)
    policy = np.random.default_rng(0).dirichlet(np.ones(3), 64)
    direct = exact.value_of(ref, policy)
    monkeypatch.setattr(exact, "DIRECT", 0)
    np.testing.assert_allclose(exact.value_of(ref, policy), direct, atol=2e-9)


def test_the_extension_is_the_solution_at_the_nodes():
    ref = reference(level(), 32)
    V = exact.optimal(ref).V
    np.testing.assert_allclose(exact.extend(ref, V, ref.grid.nodes).max(-1), V, atol=1e-10)


def error(mdp, m, fine, best):
    ref = reference(mdp, m, tolerance=1)
    V = exact.extend(ref, exact.optimal(ref).V, fine.grid.nodes).max(-1)
    return np.abs(V - best.V).max()


def test_the_error_falls_with_the_square_of_the_nodes_of_the_level(fine):
    """V* has kinks where the best action changes, and Gauss-Legendre has order 2 on kinks."""
    m = np.array([16, 32, 64, 128])
    errors = np.array([error(level(), one, *fine) for one in m])
    order = -np.polyfit(np.log(m), np.log(errors), 1)[0]
    assert 1.7 < order < 2.3
    assert errors[-1] < 5e-4


def test_a_smooth_policy_has_the_same_return_on_128_and_on_512_nodes(fine):
    def smooth(x):
        up = 1 / (1 + np.exp(-8 * (x[:, 0] - 0.4)))
        return np.stack([0.1 * (1 - up), 0.9 * (1 - up), up], axis=-1)

    coarse = reference(level(), 128)
    here, there = (exact.return_of(ref, smooth(ref.grid.nodes)) for ref in (coarse, fine[0]))
    assert abs(here - there) < 1e-10


def test_a_reference_that_is_too_coarse_is_refused():
    with pytest.raises(InputError, match="take more nodes"):
        reference(level(), 8)
