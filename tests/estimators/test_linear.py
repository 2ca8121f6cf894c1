"""Least squares over moves is least squares over samples."""

import numpy as np

from ravi import ids
from ravi.core import MDP
from ravi.estimators.linear import features_of, predict, weights, width
from ravi.runtime.api import run
from tests.estimators.test_gram import LAM, PHI, WORLD, D, T, seeing


def test_weights_predictions_and_widths_are_those_of_the_samples():
    made = run(seeing(True), WORLD, T, 2, record=["stream"])
    f = np.random.default_rng(1).uniform(0, 5, (2, WORLD.states))
    w = weights(made.state.data, f)
    wide = width(made.state.data, PHI)
    for seed in range(2):
        x, a, y = (made.results[f"stream_{name}"][seed] for name in ("state", "action", "successor"))
        phi = PHI[0, x, a]
        inverse = np.linalg.inv(LAM * np.eye(D) + phi.T @ phi)
        expected = inverse @ (phi * f[seed, y][:, None]).sum(0)
        np.testing.assert_allclose(w[seed], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(predict(PHI, w)[seed], PHI[0] @ expected, rtol=1e-9, atol=1e-12)
        norms = np.sqrt(np.einsum("xaj,jk,xak->xa", PHI[0], inverse, PHI[0]))
        np.testing.assert_allclose(wide[seed], norms, rtol=1e-9)


def test_every_mdp_is_linear_in_its_pairs():
    phi = features_of(WORLD.problem)
    assert phi.shape == (1, WORLD.states, WORLD.actions, WORLD.states * WORLD.actions)
    assert (phi.reshape(WORLD.states * WORLD.actions, -1) == np.eye(WORLD.states * WORLD.actions)).all()


def test_a_linear_mdp_keeps_its_features():
    rng = np.random.default_rng(3)
    phi, m = rng.dirichlet(np.ones(3), (5, 2)), rng.dirichlet(np.ones(5), 3)
    mdp = MDP.from_linear(phi, m, rng.uniform(size=3), 0.9, 0, name="small")
    np.testing.assert_allclose(mdp.transitions, phi @ m, atol=1e-15)
    assert (features_of(mdp.problem)[0] == phi).all()
    assert ids.mdp("garnet/4,2,2").pair_features is None
