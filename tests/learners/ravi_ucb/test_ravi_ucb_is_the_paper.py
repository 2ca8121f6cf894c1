"""RAVI-UCB against the literal transcriptions of Algorithms 1 to 3: V_k, pi_k, Q_{k+1}, T_k and the stream."""

import numpy as np
import pytest

from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import bandit, garnet, garnets, hypercube, queue, riverswim, riverswim_mixture, terrain, two_cycle
from ravi.runtime.api import run
from tests.helpers import dense, spy
from tests.literal import algorithms

T = 600
TOLERANCE = 1e-10


def agrees(mdp, learner, literal_epochs, seed, T):
    seen = []
    made = run(learner, mdp, T, [seed], record=["stream"], measures=[spy(seen)])
    stream = list(zip(*(made.results[f"stream_{name}"][0] for name in ("state", "action", "successor")), strict=True))
    epochs = list(literal_epochs)
    assert len(epochs) == len(seen) == len(made.T_k[0])
    assert made.T_k[0].tolist() == [epoch[0] for epoch in epochs]
    assert stream == [triple for epoch in epochs for triple in epoch[5]]
    assert len(stream) == T
    for (state, _), (_, V, pi, _, Q, _) in zip(seen, epochs, strict=True):
        np.testing.assert_allclose(state.V[0], V, rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(state.policy[0], pi, rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(state.Q[0], Q, rtol=0, atol=TOLERANCE)
    return epochs


TABULAR = {
    "riverswim": lambda: riverswim(6, 0.9),
    "riverswim, long epochs": lambda: riverswim(4, 0.98),
    "garnet": lambda: garnet(15, 3, 4, 1, 0.9),
    "bandit": lambda: bandit(discount=0.8),
}


@pytest.mark.parametrize("name", TABULAR)
@pytest.mark.parametrize("seed", [0, 1, 12345])
@pytest.mark.parametrize(("scale", "eta"), [(1.0, None), (0.003, 0.2)])
def test_tabular_is_algorithm_2(name, seed, scale, eta):
    mdp = TABULAR[name]()
    learner = ravi_ucb.tabular(mdp.problem, T, scale=scale, eta=eta)
    X, A = mdp.states, mdp.actions
    epochs = algorithms.tabular(
        dense(mdp).tolist(), mdp.rewards.tolist(), mdp.discount, mdp.initial.tolist(), T,
        learner.settings["eta"], learner.settings["beta"], [0.0] * X, [[1 / A] * A] * X, seed,
    )  # fmt: skip
    epochs = agrees(mdp, learner, epochs, seed, T)
    if scale < 1:  # the comparison is of policies that have moved
        assert np.ptp(epochs[-1][2], axis=1).max() > 0.1


MIXTURE = {
    "riverswim": lambda: riverswim_mixture(6, 0.9),
    "hypercube": lambda: hypercube(4, 0.9),
    "ensemble": lambda: garnets(4, 8, 3, 3, 2, 0.9),
    "terrain": lambda: terrain(3, 2, 0.9),
    "queue": lambda: queue(6, 2, 0.9),
    "two-cycle": lambda: two_cycle(),
}


@pytest.mark.parametrize("name", MIXTURE)
@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("scale", "eta", "lam"), [(1.0, None, 1.0), (0.02, 0.2, 0.5)])
def test_linear_mixture_is_algorithm_3(name, seed, scale, eta, lam):
    mdp = MIXTURE[name]()
    steps = 300
    learner = ravi_ucb.linear_mixture(mdp.problem, steps, scale=scale, eta=eta, regularization=lam)
    X, A, d = mdp.states, mdp.actions, mdp.dimension
    psi = np.zeros((X, A, X, d))
    np.put_along_axis(psi, mdp.successors.astype(np.int64)[..., None], mdp.features, axis=2)
    epochs = algorithms.linear_mixture(
        psi.tolist(), mdp.parameter.tolist(), mdp.rewards.tolist(), mdp.discount, mdp.initial.tolist(), steps,
        learner.settings["eta"], learner.settings["beta"], lam, [0.0] * X, [[1 / A] * A] * X, seed,
    )  # fmt: skip
    epochs = agrees(mdp, learner, epochs, seed, steps)
    if scale < 1 and name != "hypercube":
        assert np.ptp(epochs[-1][2], axis=1).max() > 0.1


def test_initial_value_and_policy_are_those_given():
    mdp = riverswim(5, 0.9)
    rng = np.random.default_rng(3)
    V0, pi0 = rng.uniform(0, mdp.horizon, 5), rng.dirichlet([1, 1], 5)
    learner = ravi_ucb.tabular(mdp.problem, 200, beta=0.5, eta=0.3, initial_value=V0, initial_policy=pi0)
    epochs = algorithms.tabular(
        dense(mdp).tolist(),
        mdp.rewards.tolist(),
        0.9,
        mdp.initial.tolist(),
        200,
        0.3,
        0.5,
        V0.tolist(),
        pi0.tolist(),
        9,
    )
    epochs = agrees(mdp, learner, epochs, 9, 200)
    np.testing.assert_allclose(epochs[0][1], V0, rtol=0, atol=1e-12)  # V_1 = V_0
    np.testing.assert_allclose(epochs[0][2], pi0, rtol=0, atol=1e-12)  # pi_1 = pi_0
