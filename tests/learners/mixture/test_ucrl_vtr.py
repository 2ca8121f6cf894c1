"""UCRL-VTR: what its radius promises, and rounding. Runs are compared with a transcription in `test_literal`."""

import numpy as np
import pytest
from scipy.stats import binom

from ravi import ids
from ravi.estimators.by_age import checked, learn
from ravi.estimators.gram import gram
from ravi.learners.mixture.ucrl_vtr import ucrl_vtr
from ravi.mdps import riverswim_mixture
from ravi.planning.backward import lists
from ravi.runtime.api import run
from ravi.runtime.walk import empty_path
from ravi.validation import InputError
from tests.helpers import spy


def violations(scale, delta, seeds, T=1500):
    """Seeds of which theta leaves the ellipsoid of some plan."""
    mdp, total = riverswim_mixture(4, 0.8), 0
    learner = ucrl_vtr(mdp.problem, T, scale=scale, delta=delta, truncation=0.5)
    for first in range(0, seeds, 50):  # few enough to be run side by side
        seen = []
        run(learner, mdp, T, range(first, first + 50), measures=[spy(seen)])
        out = np.zeros(50, bool)
        for state, _ in seen:
            error = mdp.parameter - state.theta
            out |= np.sqrt(np.einsum("ni,nij,nj->n", error, state.data.covariance, error)) > state.beta
        total += out.sum()
    return total


def test_the_ellipsoid_covers_theta_as_often_as_promised():
    """At all plans at once with probability 1 - delta. If it were so, more than `most` of 200 seeds would be out with
    probability below 1e-6; an ellipsoid of a sixteenth of the radius is caught."""
    delta, seeds = 0.1, 200
    most = binom.isf(1e-6, seeds, delta)
    assert violations(1.0, delta, seeds) <= most
    assert violations(1 / 16, delta, seeds) > most


def test_ages_go_on_along_a_path_and_start_anew_after_a_reset():
    mdp, S, began = riverswim_mixture(4, 0.8), 3, 1
    rng = np.random.default_rng(2)
    V, path, data = rng.uniform(0, 5, (1, S + 1, 4)), empty_path(1, 8), gram(1, 3, 1.0, 4, moves=False)
    path.state[:], path.action[:], path.successor[:] = (rng.integers(0, k, (1, 8)) for k in (4, 2, 4))
    path.reset[0, [4, 5]] = True
    path.length[:] = 8
    learn(lists(mdp.problem), data, np.zeros(1, np.int64), V, np.full(1, began, np.int32), path)
    Lam, b = np.eye(3), np.zeros(3)
    for l, stage in enumerate([1, 2, 2, 2, 2, 0, 0, 1]):  # ages 1, 2, 3, 4, 5, reset, 0, reset, 0, 1
        v, pair = V[0, stage + 1], (path.state[0, l], path.action[0, l])
        phi = v[mdp.successors[pair]] @ mdp.features[pair]
        Lam, b = Lam + np.outer(phi, phi), b + phi * v[path.successor[0, l]]
    np.testing.assert_allclose(data.covariance[0], Lam, rtol=1e-12)
    np.testing.assert_allclose(data.response[0], b, rtol=1e-12)


def test_a_wrong_determinant_is_put_right_at_the_next_renewal():
    """And an inverse that is wrong by less than is seen at a plan."""
    mdp = riverswim_mixture(4, 0.8)
    learner = ucrl_vtr(mdp.problem, 3000)

    def init(keys):
        state = learner.init(keys)
        state.data.inverse[:] *= 1 + 1e-8
        state.data.log_det[:] += 1.0
        return state

    for T, right in ((999, False), (1000, True), (2500, True)):
        data = run(learner._replace(init=init), mdp, T, 1, measured=False).state.data
        np.testing.assert_allclose(data.inverse[0], np.linalg.inv(data.covariance[0]), rtol=1e-6)
        assert (abs(data.log_det[0] - np.linalg.slogdet(data.covariance[0])[1]) < 1e-9) == right


# Rounding


def drifted(d=4, n=3):
    """Lambda of 50 features, and its inverse."""
    rng, D = np.random.default_rng(2), gram(n, d, 0.5, 5, moves=False)
    F = rng.uniform(0, 3, (n, 50, d))
    D.covariance[:] += np.einsum("ntj,ntk->njk", F, F)
    D.inverse[:] = np.linalg.inv(D.covariance)
    D.log_det[:] = np.linalg.slogdet(D.covariance)[1]
    return D


@pytest.mark.parametrize("spoil", [1 + 1e-6, -1.0, 0.0, np.nan])
def test_an_inverse_that_has_drifted_is_computed_anew_for_its_seed_alone(spoil):
    D, right = drifted(), drifted()
    checked(D)
    assert all((one == other).all() for one, other in zip(D, right, strict=True))  # nothing to do
    D.inverse[1, :, 2] *= spoil
    D.inverse[1, 2] = D.inverse[1, :, 2]
    D.log_det[1] = 7.0
    checked(D)
    np.testing.assert_allclose(D.inverse[1], right.inverse[1], rtol=1e-10)
    np.testing.assert_allclose(D.log_det, right.log_det, rtol=1e-12)
    for i in (0, 2):
        assert (D.inverse[i] == right.inverse[i]).all()
    D.log_det[2] = np.nan
    np.testing.assert_allclose(checked(D).log_det, right.log_det, rtol=1e-12)


@pytest.mark.parametrize("covariance", [np.ones((4, 4)), np.full((4, 4), np.nan), 1e16 * np.ones((4, 4)) + np.eye(4)])
def test_a_matrix_without_an_inverse_in_working_precision_is_refused(covariance):
    D = drifted()
    D.covariance[1] = covariance
    with pytest.raises(InputError, match="positive definite"):
        checked(D)


@pytest.mark.parametrize("learner", ["ucrl-vtr", "oppo"])
def test_with_little_regularization_plans_are_made_with_the_inverse(learner):
    """Where Sherman and Morrison's formula, which goes on for 900 plays, is off by 16 percent."""
    mdp, seen = ids.mdp("ensemble/3,5,2,2,discount=0.9"), []
    run(f"{learner},regularization=1e-8", mdp, 900, 2, measures=[spy(seen)])
    for state, _ in seen:
        np.testing.assert_allclose(state.data.inverse @ state.data.covariance.sum(-1)[..., None], 1, atol=1e-2)
        assert np.isfinite(state.policy).all()
