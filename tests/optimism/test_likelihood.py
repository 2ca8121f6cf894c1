"""The likely mixtures: the maximum, the ellipsoid around the set, kernels at the vertices, coverage."""

import numpy as np
import pytest
from scipy.optimize import minimize

import ravi
from ravi.optimism.likelihood import Likelihood, likeliest, likelihood, rows_of, shape, simulators


def seen(mdp, plays, seed):
    """Counts of moves of random plays."""
    rng = np.random.default_rng(seed)
    often = rng.integers(0, plays, mdp.rewards.shape)
    return np.array(
        [[rng.multinomial(often[x, a], mdp.transitions[x, a]) for a in range(mdp.actions)] for x in range(mdp.states)]
    )


def F(at: Likelihood, theta):
    return -(at.counts * np.log(at.rows @ theta)).sum()


MDPS = ("ensemble/4,5,2,3,discount=0.9", "ensemble/3,4,3,2,seed=2,discount=0.9")


@pytest.mark.parametrize("id", MDPS)
@pytest.mark.parametrize("plays", [3, 40, 400])
def test_the_likeliest_is_the_minimum(id, plays):
    mdp = ravi.mdp(id)
    psi, d = simulators(mdp.problem), mdp.dimension
    at = likelihood(rows_of(psi), seen(mdp, plays, 1), np.full(d, 1 / d), 1.0, 1.0)
    theta, gap = likeliest(at.counts, at.rows, np.full(d, 1 / d))
    assert gap <= 1e-3
    assert theta.sum() == pytest.approx(1.0)
    assert (theta >= 0).all()
    best = minimize(
        lambda z: F(at, np.exp(z) / np.exp(z).sum()), np.zeros(d), method="Nelder-Mead",
        options={"maxiter": 20_000, "xatol": 1e-9, "fatol": 1e-10},
    )  # fmt: skip
    assert F(at, theta) <= best.fun + gap + 1e-6


@pytest.mark.parametrize("id", MDPS)
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_the_ellipsoid_holds_the_set(id, part):
    mdp = ravi.mdp(id)
    rng = np.random.default_rng(2)
    psi, d = simulators(mdp.problem), mdp.dimension
    inside = 0
    for plays in (2, 10, 100):
        at = likelihood(rows_of(psi), seen(mdp, plays, plays), np.full(d, 1 / d), 2.0, 1.0)
        Lam, least = shape(at, part), F(at, at.theta)
        others = rng.dirichlet(np.ones(d), 3000)
        others = at.theta + rng.random((3000, 1)) ** 2 * (others - at.theta)
        for theta in others:
            if F(at, theta) <= least + part * at.rho:
                inside += 1
                off = theta - at.theta
                assert off @ Lam @ off <= 1 + 1e-9
    assert inside > 100


def test_moves_of_the_same_features_are_one():
    """F is that of all moves but those at which no kernel differs, and the rows are far fewer."""
    mdp = ravi.mdp("winds/5")
    psi = simulators(mdp.problem)
    rows, moves = rows_of(psi), seen(mdp, 9, 5)
    assert len(rows.psi) == len(np.unique(rows.psi, axis=0)) < 20
    at = likelihood(rows, moves, np.full(4, 1 / 4), 1.0, 1.0)
    flat, N = psi.reshape(-1, 4), moves.ravel()
    told = (np.ptp(flat, axis=1) > 0) & (N > 0)
    for theta in np.random.default_rng(4).dirichlet(np.ones(4), 5):
        assert F(at, theta) == pytest.approx(-(N[told] * np.log(flat[told] @ theta)).sum())


def test_kernels_at_the_vertices():
    """RiverSwim as a mixture has features that are no kernels; the vertices are, and the truth is among them."""
    mdp = ravi.mdp("riverswim/mixture/4")
    psi = simulators(mdp.problem)
    assert (psi >= 0).all()
    np.testing.assert_allclose(psi.sum(2), 1.0, atol=1e-8)
    flat = psi.reshape(-1, psi.shape[3])
    weights = np.linalg.lstsq(
        np.r_[flat, np.ones((1, flat.shape[1]))], np.r_[mdp.transitions.ravel(), 1.0], rcond=None
    )[0]
    np.testing.assert_allclose(flat @ weights, mdp.transitions.ravel(), atol=1e-8)
    assert (weights >= -1e-8).all()
    with pytest.raises(ravi.validation.InputError, match="no features"):
        ravi.ids.learner("ravi-kl/mixture", ravi.mdp("garnet/4,2,2"), 100)


def test_every_plan_is_optimistic_where_the_truth_is_likely():
    mdp = ravi.mdp("ensemble/3,4,3,2,seed=2,discount=0.8")
    best = ravi.solve(mdp).V
    for plan in ("greedy", "slack"):
        state = ravi.run(f"ravi-kl/mixture,plan={plan}", mdp, 300, 4).state
        assert (best - 1e-9 <= state.V).all()
