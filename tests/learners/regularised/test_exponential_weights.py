"""POLITEX and MDP-EXP2: what their returns estimate, where plain policy iteration cycles, and what does not explore."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm

from ravi import ids
from ravi.core import Path
from ravi.estimators.linear import features_of
from ravi.learners.regularised.mdp_exp2 import mdp_exp2
from ravi.learners.regularised.politex import politex, weigh
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense
from tests.learners.test_literal import small

WORLD = ids.mdp("garnet/5,2,3,seed=3,discount=0.7")


def uniform_epochs(world, n, J, T):
    """Paths of J whole reset epochs of n seeds under the uniform policy, in T plays each."""
    made = run("uniform", world, T, n, record=["stream"])
    x, a, y, reset = (made.results[f"stream_{name}"] for name in ("state", "action", "successor", "reset"))
    resets = reset.cumsum(1)
    assert (resets[:, -1] >= J).all()
    length = (resets < J).sum(1) + 1
    none, first = np.zeros_like(x), np.ones(n, np.int64)
    return Path(x, a, y, none, reset, length, first, np.zeros(n, np.int32))


def value(world):
    """Q of the uniform policy."""
    P, r = dense(world), world.rewards
    return r + world.discount * P @ np.linalg.solve(np.eye(world.states) - world.discount * P.mean(1), r.mean(1))


def after_epochs(learner, path, n, J):
    state = learner.add(learner.init(np.arange(n)), path)
    assert (state.epochs == J).all()
    assert not state.pending.any()
    return state


def z(excess):
    return excess.mean(0) / (excess.std(0) / sqrt(len(excess)))


def test_returns_between_resets_estimate_a_linear_q_without_bias():
    """E sum_i phi_i (G_i - Q(x_i, a_i)) = 0 for every coordinate: a z test each, false alarm 1e-6 in all."""
    world, n, J = small(seed=5, X=5, A=2, d=3, discount=0.7), 4000, 4
    path = uniform_epochs(world, n, J, 80)
    state = after_epochs(mdp_exp2(world.problem, 1000, phase=J + 1), path, n, J)
    phi, Q = features_of(world.problem)[0], value(world)
    w = np.linalg.lstsq(phi.reshape(-1, 3), Q.ravel(), rcond=None)[0]
    np.testing.assert_allclose(phi @ w, Q, atol=1e-12)  # Q is linear in phi
    used = np.arange(path.state.shape[1]) < path.length[:, None]
    f = phi[path.state, path.action]
    np.testing.assert_allclose(state.covariance - np.eye(3), np.einsum("nlj,nlk,nl->njk", f, f, used), atol=1e-9)
    excess = state.response - np.einsum("nlj,nl,nl->nj", f, Q[path.state, path.action], used)
    assert np.abs(z(excess)).max() < norm.isf(1e-6 / 2 / 3)


@pytest.mark.parametrize("make", [politex, mdp_exp2])
def test_an_epoch_may_come_in_stretches_and_counts_when_it_has_ended(make):
    n, learner, path = 5, make(WORLD.problem, 1000, phase=2), uniform_epochs(WORLD, 5, 2, 80)
    whole, parts = learner.add(learner.init(np.arange(n)), path), learner.init(np.arange(n))
    for begin in range(0, 80, 3):
        piece = [array[:, begin : begin + 3] for array in path[:5]]
        parts = learner.add(parts, Path(*piece, np.clip(path.length - begin, 0, 3), path.time + begin, path.after))
    for one, other in zip(whole, parts, strict=True):
        assert one.tobytes() == other.tobytes()
    state = learner.add(learner.init(np.arange(n)), path._replace(length=path.length - 1))
    assert (state.epochs == 1).all()
    before = state.policy.copy()
    assert (learner.plan(state).policy == before).all()


def test_weights_of_great_sums_are_finite():
    total, policy = np.array([[0.0, 1e6], [5e5, 5e5]]), np.empty((2, 2))
    weigh(total, 10.0, policy)
    np.testing.assert_array_equal(policy, [[0.0, 1.0], [0.5, 0.5]])


@pytest.mark.parametrize("diagonal", [0.0, -1e6, np.nan])
def test_a_regression_that_cannot_be_solved_is_refused(diagonal):
    learner = mdp_exp2(WORLD.problem, 500, phase=1)

    def plan(s):
        s.covariance[:] = diagonal * np.eye(10)
        return learner.plan(s)

    with pytest.raises(InputError, match="positive definite"):
        run(learner._replace(plan=plan), WORLD, 500, 1)
