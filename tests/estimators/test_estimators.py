"""Counts and ridge regression: against plain sums, closed forms, and each other in the limits where they meet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.core import MDP, Path
from ravi.estimators.ridge import ridge
from ravi.mdps import garnets


def path_of(problem, triples):
    """One seed's path from a list of (x, a, y)."""
    x, a, y = (np.array([column], np.int32) for column in zip(*triples, strict=True))
    slot = (problem.successors[x, a] == y[..., None]).argmax(-1).astype(np.int32)
    return Path(x, a, y, slot, np.zeros(x.shape, bool), np.array([len(triples)]), np.array([1]), y[:, -1])


def random_triples(mdp, length, seed):
    rng = np.random.default_rng(seed)
    pairs = [(rng.integers(mdp.states), rng.integers(mdp.actions)) for _ in range(length)]
    return [(x, a, rng.choice(mdp.successors[x, a], p=mdp.transitions[x, a])) for x, a in pairs]


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


@pytest.mark.parametrize("n", [2, 7, 8, 9, 11, 16, 21])
def test_features_of_a_value_do_not_depend_on_the_batch(n):
    """They are computed for eight seeds at a time, and those left over once more with some before them."""
    problem = garnets(3, 6, 2, 3).problem
    embed, V = ridge(problem).embed, np.random.default_rng(0).uniform(size=(n, 6))
    assert (embed(V) == np.concatenate([embed(V[i : i + 1]) for i in range(n)])).all()
