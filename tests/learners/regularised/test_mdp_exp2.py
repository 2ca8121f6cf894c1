"""MDP-EXP2: its literal transcription, what its returns estimate, and that it does not explore."""

from math import ceil, exp, log, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from ravi import ids
from ravi.core import MDP
from ravi.estimators.linear import features_of
from ravi.learners.regularised.mdp_exp2 import mdp_exp2
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense, spy
from tests.learners.contrib.test_rmax_ravi_ucb import WORLDS, small
from tests.learners.regularised.test_politex import uniform_epochs
from tests.literal import linear_learners as literal


@pytest.mark.parametrize("phase", [1, 4])
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_a_run_is_its_literal_transcription_epoch_by_epoch(world, phase):
    T, seen = 1500, []
    learner = mdp_exp2(world.problem, T, phase=phase, step_scale=3000.0 * phase, regularization=0.6)
    made = run(learner, world, T, [4], record=["stream"], measures=[spy(seen)])
    x, a, y, reset = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor", "reset"))
    phi = features_of(world.problem)[0].tolist()
    followed = literal.mdp_exp2(
        list(zip(x, a, y, strict=True)), reset, world.rewards.tolist(), phi, 0.6, made.settings["eta"], phase
    )
    moved = 0.0
    for (state, _), policy in zip(seen, followed, strict=True):
        np.testing.assert_allclose(state.policy[0], policy, rtol=0, atol=1e-9)
        moved = max(moved, np.ptp(state.policy[0], axis=-1).max())
    assert moved > 0.1


def test_the_constants():
    world, T, d = WORLDS["linear"], 10_000, 3
    s = mdp_exp2(world.problem, T).settings
    t_mix, N = 1 / log(1 / 0.8), 2 * log(T) / log(1 / 0.8)
    assert s["phase"] == ceil(16 * d * log(d * T))
    assert s["eta"] == pytest.approx(min(1 / sqrt(T * t_mix), 1 / (24 * d * N)))
    s = mdp_exp2(world.problem, T, coverage=0.9, step_scale=2.0).settings
    assert s["phase"] == ceil(16 * log(d * T) / 0.9)
    assert s["eta"] == pytest.approx(2 * min(1 / sqrt(T * t_mix), 0.9 / (24 * N)))


def test_the_mixing_time_is_that_of_the_papers_assumption():
    """Two laws come closer by e^(-1/t_mix) at every step of the reset chain, whatever the policy; t_mix >= 1."""
    world = WORLDS["linear"]
    shrinks = exp(-1 / mdp_exp2(world.problem, 100).settings["mixing"])
    rng = np.random.default_rng(0)
    for _ in range(20):
        policy = rng.dirichlet(np.ones(world.actions), world.states)
        P = 0.8 * np.einsum("xa,xay->xy", policy, dense(world)) + 0.2 * world.initial
        apart = np.abs(P[:, None] - P[None]).sum(-1).max() / 2  # of two states in one step: none do worse
        assert apart <= shrinks * (1 + 1e-12)
    quick = MDP.from_dense(np.ones((1, 1, 1)), np.ones((1, 1)), 0.1, 0)
    assert mdp_exp2(quick.problem, 100).settings["mixing"] == 1


def test_returns_between_resets_estimate_q_without_bias():
    """E sum_i phi_i (G_i - Q(x_i, a_i)) = 0 for every coordinate: a z test each, false alarm 1e-6 in all."""
    world, n, J = small(seed=5, X=5, A=2, d=3, discount=0.7), 4000, 4
    learner = mdp_exp2(world.problem, 1000, phase=J + 1)
    path = uniform_epochs(world, n, J, 80)
    state = learner.add(learner.init(np.arange(n)), path)
    assert (state.epochs == J).all()
    assert not state.pending.any()
    P, r, gamma = dense(world), world.rewards, world.discount
    V = np.linalg.solve(np.eye(5) - gamma * P.mean(1), r.mean(1))
    phi, Q = features_of(world.problem)[0], r + gamma * P @ V
    w = np.linalg.lstsq(phi.reshape(-1, 3), Q.ravel(), rcond=None)[0]
    np.testing.assert_allclose(phi @ w, Q, atol=1e-12)  # Q is linear in phi
    used = np.arange(path.state.shape[1]) < path.length[:, None]
    f = phi[path.state, path.action]
    np.testing.assert_allclose(state.covariance - np.eye(3), np.einsum("nlj,nlk,nl->njk", f, f, used), atol=1e-9)
    miss = state.response - np.einsum("nlj,nl,nl->nj", f, Q[path.state, path.action], used)
    z = miss.mean(0) / (miss.std(0) / sqrt(n))
    assert np.abs(z).max() < norm.isf(1e-6 / 2 / 3)


def test_it_learns_where_uniform_play_sees_everything_and_not_where_reward_is_far():
    """On Garnet it falls well below uniform; on a RiverSwim of eight states no tuning of its step helps."""
    near, far = ids.mdp("garnet/8,3,3,discount=0.8"), ids.mdp("riverswim/8,discount=0.95")
    T = 10_000
    share = {}
    for world, steps in ((near, (1e3, 1e4)), (far, (1e2, 1e3, 1e4, 1e5))):
        base = run("uniform", world, T, 4).regret.mean()
        tried = [run(mdp_exp2(world.problem, T, phase=5, step_scale=s), world, T, 4).regret.mean() for s in steps]
        share[world.name] = min(tried) / base
    assert share[near.name] < 0.5
    assert share[far.name] > 0.9


@pytest.mark.parametrize("options", [{"coverage": 1e-30}, {"coverage": 1e-307}, {"phase": 2**62}])
def test_a_phase_is_no_longer_than_the_run(options):
    world = WORLDS["linear"]
    learner = mdp_exp2(world.problem, 50, **options)
    assert learner.settings["phase"] == 51
    assert (run(learner, world, 50, 1).state.policy == 1 / world.actions).all()


@pytest.mark.parametrize("diagonal", [0.0, -1e6, np.nan])
def test_a_regression_that_cannot_be_solved_is_refused(diagonal):
    world = WORLDS["linear"]
    learner = mdp_exp2(world.problem, 500, phase=1)

    def plan(s):
        s.covariance[:] = diagonal * np.eye(3)
        return learner.plan(s)

    with pytest.raises(InputError, match="positive definite"):
        run(learner._replace(plan=plan), world, 500, 1)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"phase": 0}, "phase"), ({"coverage": 0}, "coverage"), ({"step_scale": 0}, "step"), ({"regularization": 0}, "r")],
)
def test_bad_arguments_are_named(options, match):
    with pytest.raises(InputError, match=match):
        mdp_exp2(WORLDS["linear"].problem, 100, **options)
