"""Counts and ridge regression: against plain sums, closed forms, and each other in the limits where they meet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.core import MDP, Path
from ravi.estimators.counts import counts, known
from ravi.estimators.ridge import parameter, ridge
from ravi.mdps import garnet, garnets, hypercube, riverswim, riverswim_mixture, terrain
from ravi.optimism.bonuses import multiple_of_width
from tests.helpers import dense


def path_of(problem, triples):
    """One seed's path from a list of (x, a, y)."""
    x, a, y = (np.array([column], np.int32) for column in zip(*triples, strict=True))
    slot = (problem.successors[x, a] == y[..., None]).argmax(-1).astype(np.int32)
    return Path(x, a, y, slot, np.zeros(x.shape, bool), np.array([len(triples)]), np.array([1]), y[:, -1])


def random_triples(mdp, length, seed):
    rng = np.random.default_rng(seed)
    pairs = [(rng.integers(mdp.states), rng.integers(mdp.actions)) for _ in range(length)]
    return [(x, a, rng.choice(mdp.successors[x, a], p=mdp.transitions[x, a])) for x, a in pairs]


def test_counts_start_at_one_and_shrink_the_estimate():
    mdp = garnet(6, 2, 3, 0, 0.9)
    estimator = counts(mdp.problem)
    D = estimator.init(1)
    V = np.linspace(0, 5, 6)[None]
    assert (estimator.expect(D, V) == 0).all()  # an unvisited row of P_hat is zero
    assert (estimator.width(D, V) == 1).all()
    triples = random_triples(mdp, 50, 1)
    estimator.add(D, V, path_of(mdp.problem, triples))
    PV, w = estimator.expect(D, V), estimator.width(D, V)
    for x in range(6):
        for a in range(2):
            met = [V[0, y] for s, b, y in triples if (s, b) == (x, a)]
            assert PV[0, x, a] == pytest.approx(sum(met) / (len(met) + 1), rel=1e-14, abs=1e-14)
            assert w[0, x, a] == pytest.approx((len(met) + 1) ** -0.5, rel=1e-15)


MIXTURES = {
    "riverswim": lambda: riverswim_mixture(5, 0.9),
    "hypercube": lambda: hypercube(4, 0.9),
    "ensemble (sparse psi)": lambda: garnets(8, 9, 2, 2, 0, 0.9),
    "terrain": lambda: terrain(3, 3, 0.9),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_ridge_is_its_normal_equations(name):
    mdp, lam = MIXTURES[name](), 0.7
    estimator = ridge(mdp.problem, lam)
    D = estimator.init(1)
    rng = np.random.default_rng(5)
    d = mdp.dimension
    Lam, b = lam * np.eye(d), np.zeros(d)
    for epoch in range(4):
        V = rng.uniform(0, mdp.horizon, (1, mdp.states))
        phi = np.einsum("xajd,xaj->xad", mdp.features, V[0][mdp.successors])
        np.testing.assert_allclose(estimator.embed(V)[0], phi, rtol=1e-13, atol=1e-13)
        theta = np.linalg.solve(Lam, b)
        np.testing.assert_allclose(parameter(D)[0], theta, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(estimator.expect(D, estimator.embed(V))[0], phi @ theta, rtol=1e-9, atol=1e-9)
        norm = np.sqrt(np.einsum("xad,de,xae->xa", phi, np.linalg.inv(Lam), phi))
        np.testing.assert_allclose(estimator.width(D, estimator.embed(V))[0], norm, rtol=1e-9, atol=1e-9)
        triples = random_triples(mdp, 40, epoch)
        estimator.add(D, V, path_of(mdp.problem, triples))
        for x, a, y in triples:
            Lam += np.outer(phi[x, a], phi[x, a])
            b += phi[x, a] * V[0, y]
    np.testing.assert_allclose(D.covariance[0], Lam, rtol=1e-12)
    np.testing.assert_allclose(D.root[0] @ D.root[0].T @ Lam, np.eye(d), atol=1e-8)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 12), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_widths_stay_accurate_for_ill_conditioned_features(seed, d, scale):
    """Near-collinear simulators: the width agrees with an eigen-decomposition, and is never nan."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.ones(4), size=(5, 2))
    kernels = [(1 - 1e-6) * base + 1e-6 * rng.dirichlet(np.ones(4), size=(5, 2)) for _ in range(d)]
    psi = np.stack(kernels, -1) * scale
    successors = np.tile(np.arange(4), (5, 2, 1))
    mdp = MDP.from_features(psi, np.full(d, 1 / d) / scale, successors, np.zeros((5, 2)), 0.9, 0)
    estimator = ridge(mdp.problem, 1.0)
    D = estimator.init(1)
    V = rng.uniform(0, 10, (1, 5))
    estimator.add(D, V, path_of(mdp.problem, random_triples(mdp, 200, seed)))
    phi = estimator.embed(V)
    values, vectors = np.linalg.eigh(D.covariance[0])
    norm = np.sqrt((((phi[0] @ vectors) ** 2) / np.maximum(values, 1e-12)).sum(-1))
    w = estimator.width(D, phi)[0]
    assert np.isfinite(w).all()
    np.testing.assert_allclose(w, norm, rtol=1e-4, atol=1e-9)


def test_a_known_kernel_needs_no_data():
    mdp = riverswim(5, 0.9)
    estimator = known(mdp)
    V = np.arange(5.0)[None]
    np.testing.assert_allclose(estimator.expect(estimator.init(1), V)[0], dense(mdp) @ V[0], rtol=1e-14)
    assert (estimator.width(estimator.init(1), V) == 0).all()
    assert (multiple_of_width(3.0, estimator)(estimator.init(1), V) == 0).all()


@pytest.mark.parametrize("n", [2, 7, 8, 9, 11, 16, 21])
def test_features_of_a_value_do_not_depend_on_the_batch(n):
    """They are computed for eight seeds at a time, and those left over once more with some before them."""
    problem = garnets(3, 6, 2, 3).problem
    embed, V = ridge(problem).embed, np.random.default_rng(0).uniform(size=(n, 6))
    assert (embed(V) == np.concatenate([embed(V[i : i + 1]) for i in range(n)])).all()
