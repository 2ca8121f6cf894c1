"""The average reward: the criterion of an MDP, its runs and their regret."""

import numpy as np
import pytest

import ravi
from ravi.core import MDP, Measure, Problem, restrict
from ravi.learners.mixture.uclk import uclk_c
from ravi.live.agent import agent
from ravi.mdps.tables import from_dense
from ravi.measures.gain import gains
from ravi.runtime.result import Run
from ravi.validation import InputError
from tests.helpers import spy
from tests.support.learners import AVERAGE, takes

RIVER = "riverswim/4,criterion=average"
LEARNERS = [one for one in AVERAGE if takes(one, RIVER)]


def test_the_criterion_is_part_of_the_mdp(tmp_path):
    mdp = ravi.mdp(RIVER)
    assert (mdp.criterion, mdp.horizon, mdp.problem.criterion) == ("average", np.inf, "average")
    assert ravi.mdp("riverswim/4").criterion == "discounted"
    assert mdp.digest != ravi.mdp("riverswim/4").digest
    mdp.save(tmp_path / "mine.mdp")
    assert MDP.load(tmp_path / "mine.mdp").digest == mdp.digest
    assert ravi.mdp(f"{tmp_path / 'mine.mdp'}").criterion == "average"
    P, r = [[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]]
    assert MDP.from_dense(P, r, initial=0, criterion="average").criterion == "average"
    assert ravi.mdp(MDP.from_dense(P, r, 0.9, 0), criterion="average").discount == 1.0
    assert from_dense(P, r, 0.9, 0).discount == 0.9


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ravi.mdp("riverswim/4,criterion=avarage"), "criterion is 'avarage', not one of discounted, average"),
        (lambda: ravi.mdp("riverswim/4,discount=0.9,criterion=average"), "criterion='average' has none"),
        (lambda: ravi.mdp(RIVER, criterion="average"), "given twice"),
        (lambda: MDP.from_dense([[[1]]], [[1]], 0.9, 0, criterion="average"), "discount is 0.9, but criterion"),
        (lambda: MDP.from_dense([[[1]]], [[1]], initial=0), "discount is missing"),
        (lambda: MDP.from_dense([[[1]]], [[1]], 1.0, 0), "strictly between 0 and 1"),
        (lambda: ravi.run("r-max", RIVER, 100), "r-max is for the discounted criterion, and riverswim/4"),
        (lambda: ravi.run("ravi-ucb", RIVER, 100), "span is missing"),
        (lambda: ravi.run("politex", RIVER, 100), "span is missing"),
        (lambda: ravi.run("mdp-e", RIVER, 100), "span is missing"),
        (lambda: ravi.run("ravi-ucb,span=1", "riverswim/4", 100), "span is given, and it is for the average reward"),
        (lambda: ravi.run("politex,span=1", "riverswim/4", 100), "span is given, but with a discount"),
        (lambda: ravi.run("mdp-e,phase=2", "riverswim/4", 100), "span and phase are for the average reward"),
        (lambda: ravi.run("psrl,schedule=reset", RIVER, 100), "in the average reward nothing resets"),
        (lambda: ravi.run("scal+", RIVER, 100), "span is inf"),
        (lambda: ravi.run("optimistic-q/average", RIVER, 100), "span is missing"),
        (lambda: ravi.run("gamma-lscvi-ucb", RIVER, 100), "span is missing"),
        (lambda: ravi.run("uclk-c", "ensemble/3,5,2,2,criterion=average", 100), "span is missing"),
        (lambda: ravi.run("optimistic-q/average,span=1,horizon=1", RIVER, 100), "horizon is 1; it must be more"),
        (lambda: ravi.run("ucrl2/doubling", RIVER, 100), "for the discounted criterion"),
        (lambda: ravi.run("ucrl2", RIVER, 100, pad=True), "pad is true"),
        (lambda: ravi.run("ucrl2", "riverswim/4", 100, record=["gain"]), "'gain', which is of the average reward"),
        (lambda: ravi.run("ucrl2", RIVER, 100, record=["trajectory"]), "'trajectory', which is of the discounted"),
        (lambda: ravi.occupancy(ravi.mdp(RIVER), np.full((4, 2), 0.5)), "of the average reward"),
        (lambda: ravi.return_of(ravi.mdp(RIVER), np.full((4, 2), 0.5)), "of the average reward"),
        (lambda: ravi.solve(ravi.mdp(RIVER), "value_iteration"), "one method"),
        (lambda: agent("o-reps", ravi.mdp(RIVER).problem, 10), "for the discounted"),
        (lambda: ravi.run("uniform", "trap,criterion=average", 100), "the gain depends on the start"),
    ],
)
def test_what_the_criterion_does_not_allow_is_refused_by_name(call, says):
    with pytest.raises(InputError, match=says):
        call()


@pytest.mark.parametrize("learner", LEARNERS)
def test_runs_are_the_same_in_python_and_nothing_resets(learner):
    T, seeds = 600, [3, 8, 1]
    batch = ravi.run(learner, RIVER, T, seeds, record=["stream"])
    assert not batch.results["stream_reset"].any()
    nothing = Measure("nothing", lambda keys: (), lambda m, state, path, opening: m, lambda m: {})
    by_python = ravi.run(learner, RIVER, T, seeds, record=["stream"], measures=[nothing])
    assert all(np.array_equal(array, by_python.results[name]) for name, array in batch.results.items())
    assert np.array_equal(by_python.last_policy, batch.last_policy)


def test_the_regret_is_the_sum_of_bellman_gaps():
    mdp, T = ravi.mdp(RIVER), 300
    made = ravi.run("ucrl2b", mdp, T, seeds=5, record=["stream"], points=7)
    best = ravi.solve(mdp, tol=1e-12)
    ahead = (mdp.transitions * best.bias[mdp.successors]).sum(-1)
    gaps = best.gain + best.bias[:, None] - mdp.rewards - ahead
    x, a = made.results["stream_state"], made.results["stream_action"]
    sums = gaps[x, a].cumsum(-1)
    assert np.abs(made.regret_curve - sums[:, made.times - 1]).max() <= made.regret_error.max() <= 1e-8
    end = made.results["stream_successor"][:, -1]
    assert np.array_equal(made.results["boundary"], best.bias[end] - best.bias[x[:, 0]])
    assert made.results["realised"] == pytest.approx(T * best.gain - mdp.rewards[x, a].sum(-1), abs=1e-9)


def test_without_chance_the_regret_is_what_was_lost_and_the_boundary():
    """No martingale: T g* - sum r = sum Delta + boundary, under every seed."""
    made = ravi.run("uniform", "deep-sea/5,criterion=average", 1000, seeds=20)
    off = made.results["realised"] - made.regret - made.results["boundary"]
    assert np.abs(off).max() <= made.regret_error.max()


def test_in_the_mean_the_regret_is_what_was_lost_and_the_boundary():
    """The martingale has mean 0: within five standard errors, by chance not once in a million."""
    made = ravi.run("uniform", RIVER, 200, seeds=4000)
    off = made.results["realised"] - made.regret - made.results["boundary"]
    assert abs(off.mean()) <= 5 * off.std() / np.sqrt(len(off)) + made.regret_error.max()


def test_the_regret_by_gains_is_that_of_every_policy_by_the_state_it_is_played_in(tmp_path):
    """Against `ravi.evaluate`; alone, resumed and in Python with the same bits."""
    mdp, T, seen = ravi.mdp(RIVER), 400, []
    run = ravi.run("ucrl2b,scale=0.1", mdp, T, 3, record=["gain", "stream"], measures=[spy(seen)], points=T)
    best, losses = ravi.solve(mdp), np.empty((3, T))
    for state, path in seen:
        for i in range(3):
            first, many = int(path.time[i]), int(path.length[i])
            gain = ravi.evaluate(mdp, state.policy[i]).gain
            losses[i, first - 1 : first - 1 + many] = best.gain - gain[path.state[i, :many]]
    off = np.abs(run.results["gain_regret"] - losses.cumsum(-1))
    assert off.max() <= run.results["gain_regret_error"].max() <= 1e-8
    compiled = ravi.run("ucrl2b,scale=0.1", mdp, T, 3, record=["gain", "stream"], points=T)
    half = ravi.run("ucrl2b,scale=0.1", mdp, T, 3, record=["gain", "stream"], points=T, pause=100)
    half.save(tmp_path / "half.run")
    for other in (compiled, ravi.resume(Run.load(tmp_path / "half.run"), "ucrl2b,scale=0.1", mdp)):
        assert all(np.array_equal(run.results[name], other.results[name], equal_nan=True) for name in other.results)
    assert "by the gains" in str(compiled)


@pytest.mark.parametrize("seed", range(30))
def test_gains_are_those_of_evaluate_where_there_are_several_classes(seed):
    """Random sparse chains of up to 12 states, with transient states and several recurrent classes among them."""
    rng = np.random.default_rng(seed)
    X, A = int(rng.integers(1, 13)), 2
    P = np.zeros((X, A, X))
    for x, a in np.ndindex(X, A):
        to = rng.choice(X, min(X, int(rng.integers(1, 3))), replace=False)
        P[x, a, to] = rng.dirichlet(np.full(len(to), 0.3))
    mdp = MDP.from_dense(P, rng.random((X, A)), initial=0, criterion="average", renormalise=True)
    policy = np.eye(A)[rng.integers(0, A, X)]
    G, reach, numbers, pi = np.empty((X, X)), np.empty((X, X), np.bool_), np.empty((4, X)), np.empty(A)
    gains(mdp.rewards, mdp.successors, mdp.transitions, policy, G, reach, numbers, pi)
    exact = ravi.evaluate(mdp, policy)
    np.testing.assert_allclose(numbers[3], exact.gain, rtol=0, atol=exact.gain_error + 4 * (X + 4) ** 3 * 2.2e-16)


def test_uclk_c_has_the_discount_and_the_span_of_its_paper():
    """gamma = 1 - sqrt(d / (c T)), c = 2 sp: the learner of that discount, on the same stream."""
    mdp, T, sp = ravi.mdp("ensemble/3,5,2,2,criterion=average"), 150, 0.7
    gamma = 1 - np.sqrt(3 / (2 * sp * T))
    of_paper = uclk_c(restrict(mdp.problem, Problem, discount=gamma), T, scale=0.001, span=2 * sp)
    one, other = (ravi.run(made, mdp, T, 3) for made in (f"uclk-c,scale=0.001,span={sp}", of_paper))
    assert one.settings["discount"] == pytest.approx(gamma, rel=1e-15)
    assert all(np.array_equal(one.results[name], other.results[name]) for name in one.results)


def test_an_optimal_policy_has_no_regret():
    made = ravi.run("optimum", RIVER, 5000, seeds=3)
    assert (made.regret <= made.regret_error).all()
    assert made.regret_error.max() <= 1e-8
    assert "average reward" in str(made)
    assert "gain g*" in str(made)
