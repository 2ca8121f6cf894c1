"""Certified errors hold, against exact fractions and where they are attained; and what the other tests let slip."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import ravi
from ravi.core import MDP
from ravi.learners.fixed import fixed
from ravi.mdps import deep_sea, garnet, riverswim, riverswim_mixture
from ravi.measures.gap import follow, target_of, track
from ravi.measures.trajectory import trajectory
from ravi.planning.evaluation import return_of
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.schedules import at_reset
from tests.helpers import spy
from tests.planning.exact import by_dense_solve, distance, exact_return, exact_values

LEARNER, WORLD = "ravi-ucb,scale=0.003,step_scale=30", riverswim(5, 0.9)


@pytest.mark.parametrize(("X", "discount"), [(3, 0.9), (8, 0.99), (18, 0.9)])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-15])
def test_the_error_of_a_return_holds_against_exact_fractions(X, discount, tol):
    """Also at the rounding floor, without any slack."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        mdp, p = garnet(X, 2, 2, seed, discount), rng.integers(1, 8, X) / 8
        pi, tracked = np.stack([p, 1 - p], -1), track(garnet(X, 2, 2, seed, discount), 1)
        follow(target_of(mdp, tol), tracked, pi[None], np.ones(1, np.int64))
        assert distance(tracked.returns[0], exact_return(mdp, exact_values(mdp, pi))) <= tracked.error[0]


def test_the_bound_on_a_return_is_attained_where_value_and_occupancy_are_off_in_the_same_absorbing_states():
    X, discount = 20, 0.9
    P = np.zeros((X, 1, X))
    P[np.arange(X), 0, np.arange(X)] = 1
    start = np.zeros(X)
    start[[1, 2]] = 0.5
    mdp = MDP.from_dense(P, np.full((X, 1), 0.5), discount, start)
    tracked = track(mdp, 1)
    tracked.value[:] = 5  # V^pi, but for
    tracked.value[0, [1, 2]] = 3, 7
    tracked.dual[0, [1, 2]] = 3, 7  # M^{-T} nu_0 has 5 and 5
    follow(target_of(mdp, 10.0), tracked, np.ones((1, X, 1)), np.ones(1, np.int64))
    ratio = abs(tracked.returns[0] - 0.5) / tracked.error[0]
    assert 0.99 < ratio <= 1


@pytest.mark.parametrize("T", [10_000, 100_000])
def test_the_error_of_the_regret_covers_the_rounding_of_its_sum(T):
    """One state, gap .365 in every one of thousands of short epochs: the sum of float64 numbers errs, and says so."""
    mdp = MDP.from_dense([[[1.0], [1.0]]], [[0.1, 0.83]], 0.5, 0)
    made = run(fixed(mdp.problem, [[0.5, 0.5]])._replace(until=at_reset()), mdp, T, 1)
    exact = T * (Fraction(0.83) - (Fraction(0.1) + Fraction(0.83)) / 2)
    assert abs(float(Fraction(float(made.regret[0])) - exact)) <= made.regret_error[0]


def test_a_chain_that_mixes_slowly_is_solved_not_swept():
    """DeepSea at gamma = .999999: a million sweeps would be needed; the answer is that of `evaluate`."""
    mdp = deep_sea(20, 0.999999)
    made = run("uniform", mdp, 50, 1)
    assert made.regret[0] == pytest.approx(50 * (made.optimum - return_of(mdp, np.full((400, 2), 0.5))), abs=1e-6)
    assert made.regret_error[0] < 1e-6


def test_values_do_not_run_away_where_the_occupancy_is_exact():
    """On a deterministic chain d is exact, so that V was never corrected, and was extrapolated beyond all bounds."""
    mdp = deep_sea(6)
    generator = np.random.default_rng(3)
    against, tracked = target_of(mdp, 1e-10), track(mdp, 1)
    policy = np.zeros((1, mdp.states, mdp.actions))
    policy[..., 0] = 1
    for _ in range(400):
        x = generator.integers(mdp.states)
        policy[0, x] = policy[0, x, ::-1]
        follow(against, tracked, policy, np.ones(1, np.int64))
        assert tracked.error[0] < 1e-9
        assert abs(tracked.returns[0] - return_of(mdp, policy[0])) <= tracked.error[0] + 1e-12
        assert (tracked.value >= 0).all()
        assert (tracked.value <= mdp.horizon * (1 + 1e-12)).all()
    made = run("ucbvi-gamma,scale=0.1", mdp, 30_000, 1)  # its gaps were -0.25 from step 24,753 on, and then 1e170
    assert made.gap_k[0].min() >= -1e-10
    assert made.gap_k[0].max() <= 1
    assert abs(made.gap[0] - (made.optimum - return_of(mdp, made.last_policy[0]))) < 1e-10


def test_a_policy_with_a_nan_is_not_certified():
    mdp = garnet(20, 2, 2, 0, 0.9)
    pi = np.full((1, 20, 2), 0.5)
    pi[0, 3, 1] = np.nan
    tracked = track(mdp, 1)
    follow(target_of(mdp, 1e-10), tracked, pi, np.ones(1, np.int64))
    assert np.isnan(tracked.returns[0])
    assert tracked.error[0] == np.inf


def test_a_regression_that_loses_its_definiteness_says_so():
    base = riverswim_mixture(6, 0.99)
    psi = np.concatenate([base.features, base.features], -1) * 1e9
    theta = np.concatenate([base.parameter, base.parameter]) / 2e9
    mdp = MDP.from_features(psi, theta, base.successors, base.rewards, 0.99, base.initial)
    with pytest.raises(ravi.InputError, match="positive definite"):
        run("ravi-ucb/mixture,scale=0.03,step_scale=30", mdp, 50_000, 1)


def test_a_learner_built_for_another_mdp_is_refused():
    for built, played in (("riverswim/3", "riverswim/400"), ("riverswim/400", "riverswim/3")):
        with pytest.raises(ravi.InputError, match="was built for"):
            run(ravi.learner("ravi-ucb", ravi.mdp(built), 10), played, 10, 1, measured=False)


def test_trajectory_regret_follows_policies_that_move():
    T, seen = 300, []
    made = run(LEARNER, WORLD, T, [3], record=["trajectory", "stream"], measures=[spy(seen)], points=T)
    solution, loss = solve(WORLD), []
    for (state, _), n in zip(seen, np.diff([*made.T_k[0], T + 1]), strict=True):
        loss += [solution.V - by_dense_solve(WORLD, state.policy[0])[0]] * n
    expected = np.cumsum([l[x] for l, x in zip(loss, made.results["stream_state"][0], strict=True)])
    found, error = made.results["trajectory_regret"][0], made.results["trajectory_regret_error"][0]
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert abs(found[-1] - expected[-1]) <= error + T * solution.error
    vague = trajectory(WORLD, T, 5, dataclasses.replace(solution, error=1e-3))
    probe = vague._replace(results=lambda m: {"probe": m.error.copy()})
    assert (run(LEARNER, WORLD, T, [3], measures=[probe]).results["probe"] >= T * 1e-3 * (1 - 1e-9)).all()


def test_the_output_policy_is_there_once_its_time_has_come():
    stopped = run(LEARNER, WORLD, 300, 200, pause=60)
    missing = np.isnan(stopped.output_policy).any((1, 2))
    assert (missing == (stopped.results["output_index"] > stopped.plays)).all()
