"""The terms of certified errors that rounding makes: by hand, where all else in the error is 0; eps = 2^-52."""

import numpy as np
import pytest

import ravi
from ravi.core import MDP
from ravi.learners.fixed import fixed
from ravi.measures.curve import curve, grid
from ravi.measures.gap import SMALL, follow, target_of, track
from ravi.measures.regret import charge
from ravi.measures.trajectory import trajectory
from ravi.planning.solver import solve

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
