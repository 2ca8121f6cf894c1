"""Sampled features: unbiased, linear, with an error that is never larger than said, and bonuses that pay for it."""

from itertools import product

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.estimators.ridge import ridge
from ravi.estimators.sampled import deviation, draw, sampled
from ravi.testing import spy

WIDE = "ensemble/3,20,2,8,discount=0.8"  # d = 3 simulators with 8 successors each: supports of up to 20


@pytest.fixture(scope="module")
def wide():
    return ids.mdp(WIDE)


def vertices(B):
    return np.array(list(product((0.0, 1.0), repeat=B)))  # (2^B, B)


def phi(problem, V):
    return np.einsum("xabd,xab->xad", problem.features, V[problem.successors])


@pytest.mark.parametrize("centre", [False, True])
def test_the_error_is_the_largest_over_all_values(centre):
    mdp = ids.mdp("ensemble/3,12,2,4,discount=0.8")
    made = draw(mdp.problem, 4, 1, centre=centre)
    assert (made.errors > 0).any()
    worst = np.zeros_like(made.errors)
    for V in vertices(mdp.states):
        U = 2 * V - 1 if centre else V
        off = np.linalg.norm(phi(mdp, U) - phi(made.problem, U), axis=-1)
        np.maximum(worst, off, out=worst)
    assert (worst <= made.errors + 1e-12).all()
    assert (made.errors <= 3**0.5 * worst + 1e-12).all()  # coordinates at their own extremes: no looser than sqrt(d)
    largest = max(np.linalg.norm(phi(made.problem, V), axis=-1).max() for V in vertices(mdp.states))
    assert largest <= made.feature_bound


def test_a_pair_with_exactly_m_successors_is_kept_whole_and_its_deviation_is_none(wide):
    support = (np.abs(wide.problem.features).sum(-1) > 0).sum(-1)
    m = int(np.median(support))
    assert (support == m).any()
    none = support <= m
    assert ((deviation(wide.problem, m, 0.1) == 0) == none).all()
    assert ((draw(wide.problem, m, 1).errors == 0) == none).all()


@pytest.mark.parametrize("centre", [False, True])
def test_the_deviation_bound_holds_for_every_draw(wide, centre):
    # 100 draws, each with a failure probability of 1e-4: a false alarm in 1 %, were the bound tight; it is not
    bound = deviation(wide.problem, 6, 1e-4)
    for seed in range(100):
        assert (draw(wide.problem, 6, seed, centre=centre).errors <= bound).all()


def test_sampled_features_are_unbiased(wide):
    """The mean over 500 draws is within five standard errors everywhere; 120 entries, false alarm below 1e-4."""
    V = np.linspace(0, wide.horizon, wide.states) ** 1.5
    drawn = np.array([phi(draw(wide.problem, 3, seed).problem, V) for seed in range(500)])
    error = drawn.std(0) / len(drawn) ** 0.5
    assert (np.abs(drawn.mean(0) - phi(wide, V)) <= 5 * error + 1e-9).all()


def test_with_the_whole_support_it_is_ridge_bit_for_bit(wide):
    T = 600
    exact = ravi.run("ravi-ucb/mixture,scale=0.02,step_scale=30", wide, T, 3, record=["stream"])
    whole = ravi.run("ravi-ucb/mixture-sampled,scale=0.02,step_scale=30,samples=20", wide, T, 3, record=["stream"])
    assert whole.settings["error"] == 0
    assert whole.settings["beta"] == exact.settings["beta"]
    for name in ("stream_state", "stream_action", "output_policy", "reward"):
        np.testing.assert_array_equal(whole.results[name], exact.results[name])
    np.testing.assert_array_equal(whole.batch.state.policy, exact.batch.state.policy)
    other = ravi.run("ravi-ucb/mixture-sampled,scale=0.02,step_scale=30,samples=4", wide, T, 3)
    assert (other.results["output_policy"] != exact.results["output_policy"]).any()


@pytest.mark.parametrize("centre", ["on", "off"])
def test_the_bias_is_the_sum_of_squared_errors_of_the_plays(wide, centre):
    made, seen = draw(wide.problem, 4, 0, centre=centre == "on"), []
    learner = f"ravi-ucb/mixture-sampled,samples=4,step_scale=300,centre={centre}"
    run = ravi.run(learner, wide, 500, 1, measures=[spy(seen)])
    total = 0.0
    for state, path in seen:
        V, L = state.V[0], path.length[0]
        size = (V.max() - V.min()) / 2 if centre == "on" else V.max()
        total += ((size * made.errors[path.state[0, :L], path.action[0, :L]]) ** 2).sum()
    np.testing.assert_allclose(run.batch.state.data.bias, total, rtol=1e-12)
    assert total > 0


def test_centred_a_constant_is_backed_up_exactly(wide):
    estimator = sampled(draw(wide.problem, 3, 0, centre=True))
    features = estimator.embed(np.full((1, wide.states), 3.5))
    assert (estimator.expect(estimator.init(1), features) == 3.5).all()
    assert (features.size == 0).all()


def test_the_bonus_is_the_one_that_is_proved(wide):
    learner = ids.learner("ravi-ucb/mixture-sampled,samples=3,scale=0.5", wide, 1000)
    made = draw(wide.problem, 3, 0)
    D = sampled(made).init(2)._replace(bias=np.array([0.0, 9.0]))
    features = learner.parts.estimator.embed(np.tile(np.linspace(0, 4, wide.states), (2, 1)))
    CB = learner.parts.bonus(D, features)
    norm = np.linalg.norm(features.phi, axis=-1)  # Lambda = I
    B, beta = wide.parameter_bound, learner.settings["beta"]
    np.testing.assert_allclose(CB[0], beta * norm[0] + 0.5 * B * 4 * made.errors, rtol=1e-12)
    np.testing.assert_allclose(CB[1], (beta + 0.5 * B * 3) * norm[1] + 0.5 * B * 4 * made.errors, rtol=1e-12)


def test_a_problem_without_features_is_refused():
    with pytest.raises(ravi.InputError, match="has no features"):
        draw(ids.mdp("riverswim/5").problem, 3)
    assert ridge(draw(ids.mdp(WIDE).problem, 3).problem).init(1).response.shape == (1, 3)
