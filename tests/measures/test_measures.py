"""Regret and its relatives: against dense solves, closed forms, and certificates that must hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ravi
from ravi.core import MDP
from ravi.learners.fixed import fixed
from ravi.mdps import bandit, deep_sea, garnet, riverswim
from ravi.measures.curve import curve, grid
from ravi.measures.gap import SMALL, follow, target_of, track
from ravi.measures.regret import charge
from ravi.measures.trajectory import trajectory
from ravi.planning.solver import solve
from ravi.random import uniform
from ravi.runtime.api import run
from tests.planning.exact import by_dense_solve


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    X=st.sampled_from([1, 2, SMALL, SMALL + 1, 40]),
    A=st.integers(1, 4),
    discount=st.sampled_from([0.05, 0.5, 0.9, 0.99, 0.999]),
    step=st.sampled_from([1e-6, 1e-3, 0.1, 3.0]),
    seed=st.integers(0, 10**6),
)
def test_returns_of_a_moving_policy_are_within_their_certified_error(X, A, discount, step, seed):
    rng = np.random.default_rng(seed)
    mdp = garnet(X, A, min(3, X), seed, discount)
    tracked = track(mdp, 2)
    logits = rng.normal(size=(2, X, A))
    for _ in range(6):
        logits += step * rng.normal(size=logits.shape)
        pi = np.exp(logits - logits.max(-1, keepdims=True))
        pi /= pi.sum(-1, keepdims=True)
        follow(target_of(mdp, 1e-10), tracked, pi, np.ones(2, np.int64))
        for i in range(2):
            slack = 1e-13 * mdp.horizon  # of the dense solve
            assert abs(tracked.returns[i] - by_dense_solve(mdp, pi[i])[2]) <= tracked.error[i] + slack
            assert tracked.error[i] < 1e-9


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-7])
def test_a_loose_tolerance_gives_a_larger_error_that_still_holds(tol):
    mdp = garnet(60, 3, 3, 1, 0.99)
    rng = np.random.default_rng(0)
    errors, misses = [], []
    tracked = track(mdp, 1)
    for _ in range(30):
        pi = rng.dirichlet([1, 1, 1], 60)[None]
        follow(target_of(mdp, tol), tracked, pi, np.ones(1, np.int64))
        errors.append(tracked.error[0])
        misses.append(abs(tracked.returns[0] - by_dense_solve(mdp, pi[0])[2]))
    assert (np.array(misses) <= errors).all()
    assert max(errors) <= tol + 1e-9
    assert max(errors) > tol / 1e3  # it stopped where it was told to


@pytest.mark.parametrize("discount", [0.9, 0.999])
def test_slowly_mixing_chains_are_certified_too(discount):
    """A deterministic cycle, absorbing states, DeepSea: no mixing at all."""
    n = 30
    ring = MDP.from_dense(
        [[np.eye(n)[(x + 1) % n], np.eye(n)[x]] for x in range(n)], [[x / n, 0.1] for x in range(n)], discount, 0
    )
    rng = np.random.default_rng(2)
    for mdp in (ring, bandit(30, discount=discount), deep_sea(5, discount)):
        tracked = track(mdp, 1)
        for sharp in (0.0, 1.0, 30.0):
            logits = sharp * rng.normal(size=(1, mdp.states, mdp.actions))
            pi = np.exp(logits - logits.max(-1, keepdims=True))
            pi /= pi.sum(-1, keepdims=True)
            follow(target_of(mdp, 1e-10), tracked, pi, np.ones(1, np.int64))
            assert abs(tracked.returns[0] - by_dense_solve(mdp, pi[0])[2]) <= tracked.error[0] + 1e-12 * mdp.horizon
            assert tracked.error[0] < 1e-9


def test_the_curve_is_the_sum_of_the_gaps_at_every_kept_time():
    mdp, T = riverswim(5, 0.9), 2000
    made = run("ravi-ucb,scale=0.003,eta=0.3", mdp, T, 3, points=37)
    assert len(made.times) == 37
    assert made.times[-1] == T
    for row in range(3):
        lengths = np.diff([*made.T_k[row], T + 1])
        per_step = np.repeat(made.gap_k[row], lengths)
        np.testing.assert_allclose(made.regret_curve[row], per_step.cumsum()[made.times - 1], rtol=1e-10)
    assert np.ptp(made.gap_k[0]) > 0.01  # the policies have moved


@pytest.mark.parametrize(("steps", "points"), [(1, 500), (3, 500), (1000, 500), (997, 10), (10**9, 500)])
def test_the_grid_ends_at_T_and_has_no_more_points_than_asked(steps, points):
    times = grid(steps, points)
    assert times[-1] == steps
    assert len(times) == min(steps, points)
    assert (np.diff(times) > 0).all()
    assert times[0] >= 1


def test_the_output_policy_is_that_of_a_uniform_time():
    mdp, T = riverswim(5, 0.9), 500
    made = run("ravi-ucb,scale=0.003,eta=0.3", mdp, T, 8)
    index = made.results["output_index"]
    assert index.tolist() == [1 + int(T * uniform(seed, 0, 0)) for seed in made.seeds]
    for row in range(8):
        k = np.searchsorted(made.T_k[row], index[row], side="right") - 1
        assert abs(made.optimum - by_dense_solve(mdp, made.output_policy[row])[2] - made.gap_k[row][k]) < 1e-9


def test_the_mean_gap_of_the_output_policy_is_regret_over_T():
    """Over 4,000 keys, within 5 standard errors (chance of a false alarm 6e-7, on fixed keys)."""
    mdp, T = riverswim(3, 0.8), 60
    made = run("ravi-ucb,scale=0.003,eta=0.5", mdp, T, 4000)
    gaps = np.array([made.optimum - by_dense_solve(mdp, pi)[2] for pi in made.output_policy])
    difference = gaps - made.regret / T
    assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(4000)
    assert difference.std() > 1e-3


EPS = 2.0**-52


def standing(X, A):
    """Every action stays and earns 1/2; gamma = 1/2: H = 2, V = 1, and all numbers are dyadic."""
    P = np.repeat(np.eye(X)[:, None], A, axis=1)
    return MDP.from_dense(P, np.full((X, A), 0.5), 0.5, 0)


def error_of_return(X, A, off):
    """In eps, of the uniform policy, from a V that is off by as much in every state."""
    mdp = standing(X, A)
    tracked = track(mdp, 1)
    tracked.value[:] = 1 + off
    follow(target_of(mdp, 10.0), tracked, np.full((1, X, A), 1 / A), np.ones(1, np.int64))
    assert tracked.returns[0] == 0.5
    return tracked.error[0] / EPS


def test_the_rounding_of_a_swept_return():
    """grain = B + 12 = 13, X = 20. rho_V = 0 and rho_d = 0:

        2 grain (1 + H) + X + 8 = 78 + 28, and with A = 8 actions (2 A - 12) (1 + H) = 12 more.

    V is too large by 1/2: rho_V = -1/4 in every state, without a span, and m = 1/4 times (X A + B + 12) (1 + H) + X + 8
    more: (33 3 + 28) / 4; with eight actions (173 3 + 28 + 12) / 4.
    """
    assert SMALL < 20
    assert error_of_return(20, 1, 0.0) == 106
    assert error_of_return(20, 8, 0.0) == 118
    assert error_of_return(20, 1, 0.5) == 106 + 127 / 4
    assert error_of_return(20, 8, 0.5) == 118 + 559 / 4


def test_the_rounding_of_a_solved_return():
    """X = 2: 2 13 3 + 2 + 8."""
    assert error_of_return(2, 1, 0.0) == 88


def test_the_rounding_of_a_regret():
    """Three epochs of one step with gap 1: the sums 1, 2, 3, each to 2 eps of itself."""
    times, (error, base, base_error) = grid(3, 3), np.zeros((3, 1))
    regret = curve(1, times)
    for t in range(3):
        charge(0, times, regret, (error, np.zeros(1, np.int64), base, base_error), t, 1, 1.0, 0.0, True)
    assert (regret.total[0], error[0] / EPS) == (3.0, 2 * (1 + 2 + 3))


def test_the_rounding_of_a_trajectory_regret():
    """T eps of the sum: here of T times 1."""
    mdp, T = MDP.from_dense([[[1.0], [1.0]]], [[1.0, 0.5]], 0.5, 0), 64
    solution = solve(mdp)
    measure = trajectory(mdp, T, 5, solution)
    both = measure._replace(results=lambda m: measure.results(m) | {"without": m.error.copy()})
    made = ravi.run(fixed(mdp.problem, [[0.0, 1.0]]), mdp, T, 1, measures=[both]).results
    assert made["trajectory_regret_total"][0] == pytest.approx(T)  # V* - V = 2 - 1 in every step
    rounding = made["trajectory_regret_error"][0] - made["without"][0]
    assert rounding / EPS == pytest.approx(T * T, rel=1e-3)
    assert made["without"][0] >= T * solution.error > 0  # every step has that of V*, and of V^pi
