"""Integrals on nodes: densities are what they claim, draws follow them, and grids that are too coarse are refused."""

import numpy as np
import pytest
from scipy import stats

from ravi.continuous import ContinuousMDP, ContinuousProblem, beta, grid, level, pendulum, quadrature, swing_up
from ravi.validation import InputError

FALSE_ALARM = 1e-6  # of each Kolmogorov-Smirnov test, over the choice of keys; the keys are fixed


def density(problem, i, x, a, c, points):
    out = np.empty(len(points))
    problem.factor(problem.constants, i, np.array(x), a, c, points, out)
    return out


def drawn(problem, i, x, a, keys):
    out = np.empty((len(keys), problem.axes))
    for key, y in zip(keys, out, strict=True):
        problem.draw(problem.constants, i, np.array(x), a, np.uint64(key), 7, 8, y)
    return out


def test_the_densities_of_the_level_are_beta():
    problem, y = level().problem, np.linspace(0, 1, 21)
    for i, a in np.ndindex(3, 3):
        m = 0.5 + 0.4 * np.tanh(2.5 * (0.3 + beta.SHIFTS[i][a] - 0.5))
        np.testing.assert_allclose(
            density(problem, i, [0.3], a, 0, y), stats.beta(40 * m, 40 * (1 - m)).pdf(y), atol=1e-12
        )


def test_the_densities_of_the_pendulum_are_a_wrapped_and_a_conditioned_normal():
    problem = pendulum().problem
    angles, speeds = np.linspace(-np.pi, np.pi, 13), np.linspace(-8, 8, 13)
    for x in ([3.0, 7.5], [-0.2, -1.0]):
        angle, speed = swing_up.mean(problem.constants, 1, np.array(x), 2)
        turns = 2 * np.pi * np.arange(-3, 4)[:, None]
        wrapped = stats.norm(angle, 0.35).pdf(angles + turns).sum(0)
        np.testing.assert_allclose(density(problem, 1, x, 2, 0, angles), wrapped, atol=1e-12)
        cut = stats.truncnorm((-8 - speed) / 0.9, (8 - speed) / 0.9, speed, 0.9)
        np.testing.assert_allclose(density(problem, 1, x, 2, 1, speeds), cut.pdf(speeds), atol=1e-12)


def test_draws_follow_the_densities():
    problem = level().problem
    m = beta.mean(problem.constants, 0, 0.4, 2)
    y = drawn(problem, 0, [0.4], 2, range(2000))[:, 0]
    assert stats.kstest(y, stats.beta(40 * m, 40 * (1 - m)).cdf).pvalue > FALSE_ALARM
    problem = pendulum().problem
    x = np.array([2.9, 7.9])  # so that the angle wraps, and the speed is at its end
    angle, speed = swing_up.mean(problem.constants, 0, x, 1)
    y = drawn(problem, 0, x, 1, range(2000))
    assert (np.abs(y) <= [np.pi, 8]).all()
    assert stats.kstest(swing_up.wrapped.py_func(y[:, 0] - angle), stats.norm(0, 0.35).cdf).pvalue > FALSE_ALARM
    assert (
        stats.kstest(y[:, 1], stats.truncnorm((-8 - speed) / 0.9, (8 - speed) / 0.9, speed, 0.9).cdf).pvalue
        > FALSE_ALARM
    )


def test_first_states_follow_their_density():
    problem = level().problem
    out = np.empty((2000, 1))
    for key, x in enumerate(out):
        problem.begin(problem.constants, np.uint64(key), 0, 1 << 20, x)
    assert stats.kstest(out[:, 0], stats.beta(*beta.START).cdf).pvalue > FALSE_ALARM


def test_rows_are_distributions_with_the_moments_of_the_density():
    problem = pendulum().problem
    on = grid(problem, 32, 24)
    rows, off = quadrature.rows(problem, on, [[0.5, 1.0], [-1.0, -3.0]])
    assert off < 1e-5
    np.testing.assert_allclose(rows.sum(-1), 1, atol=1e-13)
    angle, speed = swing_up.mean(problem.constants, 2, np.array([-1.0, -3.0]), 0)
    row = rows[1, 0 * 3 + 2]  # action 0, simulator 2
    cut = stats.truncnorm((-8 - speed) / 0.9, (8 - speed) / 0.9, speed, 0.9)
    np.testing.assert_allclose(row @ on.nodes[:, 1], cut.mean(), atol=1e-5)
    np.testing.assert_allclose(row @ np.cos(on.nodes[:, 0]), np.cos(angle) * np.exp(-(0.35**2) / 2), atol=1e-7)


def test_the_error_of_normalisation_falls_geometrically_on_the_level():
    """Gauss-Legendre on functions that are smooth inside: 8, 16, 32 nodes."""
    problem = level().problem
    off = [quadrature.check_grid(problem, grid(problem, m), 1) for m in (8, 16, 32)]
    assert off[0] > 1e-3
    assert off[1] < 1e-4
    assert off[2] < 1e-7
    assert quadrature.check_grid(problem, grid(problem, 64)) < 1e-11


def test_a_grid_that_is_too_coarse_is_refused():
    problem = pendulum().problem
    with pytest.raises(InputError, match="on 8 x 8 nodes a density integrates to 1 only within"):
        quadrature.check_grid(problem, grid(problem, 8))
    with pytest.raises(InputError, match="sizes are 3, but pendulum has 2 axes"):
        grid(problem, 4, 4, 4)


def test_states_are_in_the_box():
    problem = pendulum().problem
    on = grid(problem, 4)
    with pytest.raises(InputError, match=r"x\[1, 1\] is 9, outside the box"):
        quadrature.rows(problem, on, [[0, 0], [0, 9]])
    with pytest.raises(InputError, match=r"x has shape \(1, 3\), not \(N, 2\)"):
        quadrature.rows(problem, on, [[0, 0, 0]])


def test_a_problem_names_what_is_wrong():
    good = level().problem
    given = {name: getattr(good, name) for name in ContinuousProblem.__dataclass_fields__}
    with pytest.raises(InputError, match=r"low\[0\] is 2, but high\[0\] is 1"):
        ContinuousProblem(**given | {"low": [2.0]})
    with pytest.raises(InputError, match="periodic has 2 entries, but the box has 1 axes"):
        ContinuousProblem(**given | {"periodic": (True, False)})
    with pytest.raises(InputError, match="parameter"):
        ContinuousMDP(good, [0.5, 0.4, 0.2])
