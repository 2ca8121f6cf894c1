"""Features and parameter make the kernel, and the declared bounds are bounds."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi.core import MDP
from ravi.mdps import (
    bandit,
    ensemble,
    fork,
    garnet,
    garnets,
    hypercube,
    queue,
    riverswim_mixture,
    terrain,
    two_cycle,
    two_ends,
    winds,
)
from tests.helpers import dense
from tests.mdps.oracle import dense_features, largest_phi, optimum, value

MIXTURES = {
    "riverswim": lambda: riverswim_mixture(5),
    "bandit": lambda: bandit(3),
    "hypercube": lambda: hypercube(4, seed=2),
    "two-cycle": two_cycle,
    "garnets": lambda: garnets(3, 6, 2, 2, seed=1),
    "garnets, dense": lambda: garnets(2, 7, 2, 7),
    "terrain": lambda: terrain(3, 2),
    "terrain, one type": lambda: terrain(2, 1),
    "garnets, border": lambda: garnets(4, 6, 2, 2, border=2),
    "two-ends": lambda: two_ends(4),
    "winds": lambda: winds(3),
    "winds, even": lambda: winds(2),
    "fork": lambda: fork(3),
    "queue": lambda: queue(6, 3),
    "queue, one place": lambda: queue(1, 2),
}


@pytest.fixture(params=MIXTURES)
def mixture(request):
    return MIXTURES[request.param]()


def test_features_and_parameter_make_the_kernel(mixture):
    np.testing.assert_allclose(dense_features(mixture) @ mixture.parameter, dense(mixture), atol=1e-14)


def test_the_bounds_are_bounds(mixture):
    assert np.linalg.norm(mixture.parameter) <= mixture.parameter_bound * (1 + 1e-15)
    assert largest_phi(mixture) <= mixture.feature_bound * (1 + 1e-15)


def test_no_state_is_stored_without_features_or_need(mixture):
    """A pair holds the successors where psi is not zero, and others only to fill up to B."""
    used = (mixture.features != 0).any(-1).sum(-1)
    assert used.max() == mixture.branching


def test_an_ensemble_is_the_weighted_mean_of_its_kernels():
    told = garnet(8, 2, 3)
    mdps = [told, *(like(told, garnet(8, 2, b, seed=b)) for b in (1, 4, 8))]
    theta = np.array([0.1, 0.2, 0.3, 0.4])
    mdp = ensemble(mdps, theta)
    np.testing.assert_allclose(dense(mdp), sum(w * dense(m) for w, m in zip(theta, mdps, strict=True)), atol=1e-15)
    for i, simulator in enumerate(mdps):
        np.testing.assert_array_equal(dense_features(mdp)[..., i], dense(simulator))
    assert (mdp.parameter_bound, mdp.feature_bound) == (1, 2)
    assert largest_phi(mdp) == pytest.approx(2, rel=1e-15)  # sqrt(d), at V = H


def test_one_simulator_may_be_right():
    told = garnet(5, 2, 2)
    mdp = ensemble([told, like(told, garnet(5, 2, 2, seed=1))], 1)
    np.testing.assert_array_equal(mdp.parameter, (0, 1))
    np.testing.assert_array_equal(dense(mdp), dense(garnet(5, 2, 2, seed=1)))


def like(told, kernel):
    return MDP(
        rewards=told.rewards,
        successors=kernel.successors,
        transitions=kernel.transitions,
        initial=told.initial,
        discount=told.discount,
    )


def test_the_garnets_of_an_ensemble_differ_and_its_weights_are_a_distribution():
    mdp = garnets(4, 10, 2, 3, seed=7)
    psi = dense_features(mdp)
    np.testing.assert_allclose(psi.sum(2), 1, atol=1e-14)
    assert ((psi > 0).sum(2) == 3).all()
    assert all((psi[..., i] != psi[..., j]).any() for i in range(4) for j in range(i))
    assert mdp.parameter.sum() == pytest.approx(1, rel=1e-15)
    assert (mdp.parameter > 0).all()


def test_a_terrain_moves_slips_and_bounces():
    mdp = terrain(3, 2, seed=4)
    P, s = dense(mdp), mdp.parameter[:-1]
    assert mdp.parameter_bound**2 == pytest.approx(1 + (s**2).sum(), rel=1e-14)
    assert mdp.feature_bound == pytest.approx(np.sqrt(2), rel=1e-15)
    assert 0 < s[0] < 0.25 < s[1] < 0.5
    centre, up, right, left, down = 4, 1, 5, 3, 7
    slip = 1 - P[centre, 0, up]
    assert np.isclose(slip, s).any()
    np.testing.assert_allclose(P[centre, 0, [left, right]], slip / 2, atol=1e-15)
    np.testing.assert_allclose(P[centre, 1, [up, right, down]], (slip / 2, 1 - slip, slip / 2), atol=1e-15)
    corner = 1 - P[0, 0, 0] - P[0, 0, 1]  # up from the corner: bounce, or slip left (bounce) or right
    assert corner == pytest.approx(0, abs=1e-15)
    assert np.isclose(2 * P[0, 0, 1], s).any()
    assert mdp.branching == 3


def test_the_queue_is_a_birth_and_death_chain():
    mdp = queue(4, 2, arrival=0.2, service=0.5, cost=1.0)
    P = dense(mdp)
    np.testing.assert_allclose(np.diag(P[:, 0], 1), 0.2, atol=1e-15)
    np.testing.assert_allclose(np.diag(P[:, 1], 1), 0.2, atol=1e-15)
    np.testing.assert_allclose(np.diag(P[:, 0], -1), 0.25, atol=1e-15)
    np.testing.assert_allclose(np.diag(P[:, 1], -1), 0.5, atol=1e-15)
    assert (np.triu(P.swapaxes(0, 1), 2) == 0).all()
    assert (np.tril(P.swapaxes(0, 1), -2) == 0).all()
    np.testing.assert_allclose(mdp.rewards, [[1, 0.5], [0.875, 0.375], [0.75, 0.25], [0.625, 0.125], [0.5, 0]])
    assert mdp.feature_bound == pytest.approx(np.sqrt(3), rel=1e-15)
    np.testing.assert_allclose(mdp.parameter, (0.2, 0.25, 0.5, 1))


def test_a_border_takes_weight_from_the_last_simulators_and_changes_nothing_else():
    whole, cut = garnets(5, 6, 2, 2, seed=3), garnets(5, 6, 2, 2, seed=3, border=2)
    np.testing.assert_array_equal(dense_features(whole), dense_features(cut))
    np.testing.assert_array_equal(whole.rewards, cut.rewards)
    np.testing.assert_array_equal(cut.parameter[3:], 0)
    np.testing.assert_allclose(cut.parameter[:3], whole.parameter[:3] / whole.parameter[:3].sum(), rtol=1e-14)


@pytest.mark.parametrize("name", ["small", "chains", "grids"])
def test_the_examples_of_mixtures_that_disagree_are_what_they_say(name):
    found = doctest.testmod(importlib.import_module(f"ravi.mdps.{name}"))
    assert (found.attempted > 0, found.failed) == (True, 0)


@pytest.mark.parametrize(("d", "weight", "high", "low"), [(4, 0.32, 0.9, 0.1), (2, 0.9, 0.7, 0.2), (5, 0.5, 1.0, 0.0)])
def test_a_fork_has_its_values(d, weight, high, low):
    mdp = fork(d, 0.9, weight, high, low)
    theta, half = np.array([weight, *[(1 - weight) / (d - 1)] * (d - 1)]), 0.45
    p = low + (high - low) * theta
    np.testing.assert_allclose(dense(mdp)[0, :, 1], p, atol=1e-15)
    for a in range(d):
        V = value(mdp, np.full(3, a))
        assert V[0] == pytest.approx(0.9 * p[a] / (1 - half - 0.9 * half), rel=1e-12)
        assert V[1] - V[2] == pytest.approx(1 / (1 - half), rel=1e-12)  # a stay in state 1
    assert optimum(mdp).policy[0] == 0
    assert optimum(fork(d, 0.9, weight, high, low, best=1)).policy[0] == 1


def test_two_ends_lead_where_their_simulators_say():
    mdp = two_ends(5, left=0.6)
    psi = dense_features(mdp)
    np.testing.assert_allclose(psi[2, 1, [3, 2, 1]], 0.85 * np.eye(3) + 0.05, atol=1e-15)
    np.testing.assert_allclose(psi[0, 1, 0], (0.1, 0.95, 0.95), atol=1e-15)  # a step over the end stays there
    np.testing.assert_allclose(dense(mdp)[2, 0, [1, 2]], (0.9, 0.1), atol=1e-15)
    np.testing.assert_array_equal(mdp.rewards, [[0.6] * 2, *[[0] * 2] * 3, [1] * 2])
    best = optimum(two_ends())
    np.testing.assert_array_equal(best.policy, (0, 0, 0, 0, 0, 0, 0, 1, 1))
    assert best.V[0] == pytest.approx(0.55 * 20, rel=1e-12)  # action 0 stays at the left end


def test_winds_blow_along_the_column_first_and_then_along_the_row():
    psi = dense_features(winds(3))
    for k, cell in enumerate((1, 1, 7, 7)):  # from the centre, 4: up for the upper corners, down for the lower
        assert psi[4, 1, cell, k] == pytest.approx(0.6)
        assert psi[4, 1, 5, k] == pytest.approx(0.4)
    assert psi[1, 2, 0, 0] == pytest.approx(0.6)  # at the upper edge, along the row
    assert psi[0, 0, 0, 0] == pytest.approx(1)  # in its corner, against the border
    np.testing.assert_allclose(winds(3).rewards[[0, 2, 8, 6], 0], (1, 0.9, 0.8, 0.7))
    assert winds(3).rewards.sum() == pytest.approx(4 * 3.4)
    assert optimum(winds()).policy[12] == 1


def test_the_table_of_mixtures_says_their_dimensions():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "simulators.md").read_text()
    rows = re.findall(r"^\| `(\S+)` \| (\d+) \|", page, re.MULTILINE)
    assert len(rows) == 9
    for i, (id, d) in enumerate(rows):
        mdp = ravi.mdp(id)
        assert mdp.dimension == int(d)
        kernels = (mdp.features >= 0).all() and np.allclose(mdp.features.sum(2), 1)
        assert kernels == (i < 6)
