"""Least-squares value iteration in linear MDPs: its limits, its noise, and what theory says."""

from math import log, sqrt

import numpy as np
from scipy.stats import binom

from ravi import ids
from ravi.estimators.gram import gram, renew
from ravi.estimators.linear import features_of
from ravi.learners.linear.least_squares import Backups, backward, lists
from ravi.learners.linear.lsvi import lsvi_ucb
from ravi.runtime.api import run
from tests.helpers import dense


def known(world):
    """Data in which every pair was seen once, with all of its successors in proportion."""
    phi = features_of(world.problem)
    d = phi.shape[-1]
    D = gram(1, d, 1.0, world.states, moves=True)
    D.covariance[0] = np.einsum("xaj,xak->jk", phi[0], phi[0])
    D.moves[0] = np.einsum("xaj,xay->jy", phi[0], dense(world))
    return renew(D), phi


def test_a_pass_ends_where_values_repeat_and_repeats_a_plan_beyond_its_stages():
    world = ids.mdp("riverswim/8,discount=0.9")
    D, phi = known(world)
    shape, H = (1, world.states, world.actions), world.horizon
    values, policy = np.empty((1, 5, 8)), np.empty((1, 15, 8, 2))
    backward(world.rewards, lists(phi), D, np.full(shape, 2 * H), Backups(0.9, H, 0.0), values, policy)
    assert (values == H).all()
    assert (policy[..., 0] == 1).all()  # ties go to the first action
    assert (policy[..., 1:] == 0).all()
    backward(world.rewards, lists(phi), D, np.zeros(shape), Backups(0.9, H, 0.0), values, policy)
    assert (policy[0, :5] == policy[0, 5:10]).all()
    assert (policy[0, :5] == policy[0, 10:]).all()
    assert (policy[0, 0] != policy[0, 4]).any()
    first = np.empty((1, 8, 2))
    backward(world.rewards, lists(phi), D, np.zeros(shape), Backups(0.9, H, 0.0), values, first)
    assert (first[0] == policy[0, 0]).all()


def test_the_ellipsoid_covers_the_weights():
    """For one f with values in [0, 1], fixed beforehand, at all times with probability 0.8 at least:

    ||w_hat - w||_Lambda <= sqrt(2 ln(1 / 0.2) + ln det Lambda - d ln lambda) / 2 + sqrt(lambda) ||w||

    (Abbasi-Yadkori et al. 2011; f(y) is 1/2-sub-Gaussian). At the end of 300 runs with a data-dependent policy, more
    than 83 misses have a probability below 1e-3. Of radii divided by 10 most miss.
    """
    world, T, n, lam = ids.mdp("linear/20,3,4"), 400, 300, 1.0
    made = run(lsvi_ucb(world.problem, T, scale=0.02), world, T, n, measured=False)
    D, phi = renew(made.state.data), features_of(world.problem)
    f = np.random.default_rng(1).integers(0, 2, world.states).astype(float)
    rows = phi.reshape(-1, 4)
    w = np.linalg.lstsq(rows, (dense(world) @ f).ravel(), rcond=None)[0]
    np.testing.assert_allclose(rows @ w, (dense(world) @ f).ravel(), atol=1e-12)
    missed = np.einsum("ijk,ik->ij", D.inverse, D.moves @ f) - w
    error = np.sqrt(np.einsum("ij,ijk,ik->i", missed, D.covariance, missed))
    radius = np.sqrt(2 * log(5) + D.log_det - 4 * log(lam)) / 2 + sqrt(lam) * np.linalg.norm(w)
    assert binom.sf(83, n, 0.2) < 1e-3
    assert (error > radius).sum() <= 83
    assert (error > radius / 10).mean() > 0.5
