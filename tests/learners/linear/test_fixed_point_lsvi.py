"""Fixed-point LSVI: its literal transcription, where it contracts, and where it goes in circles."""

from itertools import pairwise
from math import ceil, log, sqrt

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.estimators.linear import features_of
from ravi.learners.linear.fixed_point_lsvi import CAPPED, CYCLE, SETTLED, fixed_point, fixed_point_lsvi
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense, spy
from tests.learners.contrib.test_rmax_ravi_ucb import WORLDS, backups, exact
from tests.literal import linear_learners as literal


@pytest.mark.parametrize("scale", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_a_run_is_its_literal_transcription_phase_by_phase(world, scale):
    T, seen = 600, []
    learner = fixed_point_lsvi(world.problem, T, scale=scale, regularization=0.3)
    made = run(learner, world, T, [4], record=["stream"], measures=[spy(seen)])
    x, a, y = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor"))
    s, phi = made.settings, features_of(world.problem)[0].tolist()
    followed = literal.fixed_point_lsvi(
        list(zip(x, a, y, strict=True)), world.rewards.tolist(), world.discount, phi, 0.3,
        s["alpha"], s["rounds"], s["tolerance"],
    )  # fmt: skip
    unsettled, played = 0, set()
    for (state, _), (policy, J, settled) in zip(seen, followed, strict=True):
        unsettled += not settled
        assert state.unsettled[0] == unsettled
        played.add(state.policy.tobytes())
        if settled:
            np.testing.assert_array_equal(state.policy[0], policy)
            np.testing.assert_allclose(world.horizon - state.V[0], J, rtol=0, atol=1e-9)
    assert unsettled < len(seen) / 2
    assert len(played) > 1 or scale == 1.0


def test_the_constants():
    world, T = WORLDS["linear"], 1000
    s = fixed_point_lsvi(world.problem, T, scale=0.5).settings
    assert s["alpha"] == pytest.approx(0.5 * (5 + 1) * 27 * sqrt(log(6 * 27 * T * T)))
    assert s["tolerance"] == 1 / T
    assert s["rounds"] == ceil(log(5 * T) / log(1 / 0.8))


@pytest.mark.parametrize("gamma", [0.1, 0.3, 0.45, 0.5, 0.9])
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-9])
def test_a_contraction_is_never_given_up(gamma, tol):
    """Cost 1 everywhere: round u moves J by gamma^(u-1), so 1 + ceil(ln(1 / tol) / ln(1 / gamma)) rounds are needed."""
    world = ids.mdp(f"garnet/4,2,2,discount={gamma}")
    U = fixed_point_lsvi(world.problem, 100, tolerance=tol).settings["rounds"]
    P, H = dense(world).reshape(8, 4), 1 / (1 - gamma)
    phi, ones, none = np.eye(8).reshape(4, 2, 8), np.ones((4, 2)), np.zeros((4, 2))
    _, J, rounds, end = fixed_point(ones, none, gamma, H, phi, P, U, tol)
    assert end == SETTLED
    assert abs(rounds - 1 - log(1 / tol) / log(1 / gamma)) < 1.001  # rounding may be for us or against
    np.testing.assert_allclose(J, H, atol=tol * H)


def test_groups_of_pairs_settle_in_the_rounds_that_a_contraction_takes_at_the_one_fixed_point():
    """Orthogonal features: J is the fixed point of c + gamma P_hat J - CB, and from J_0 = 0 rounds never fall."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        X, A, d, gamma, H = 6, 2, 4, 0.9, 10.0
        group = rng.integers(d, size=(X, A))
        phi = np.eye(d)[group]
        N = rng.integers(0, 30, size=(d, X)) * (rng.uniform(size=(d, X)) < 0.5)
        m_hat = N / (N.sum(-1, keepdims=True) + 1.0)
        c, CB = rng.uniform(size=(X, A)), rng.uniform(0, 0.3, size=(X, A))
        tol = 1e-4
        U = ceil(log(H / tol) / log(1 / gamma))
        w, J, rounds, end = fixed_point(c, CB, gamma, H, phi, m_hat, U, tol)
        assert end == SETTLED
        assert rounds <= U
        other = rng.uniform(0, H, X)  # from elsewhere, by plain array code
        for _ in range(400):
            other = np.clip((c + gamma * phi @ (m_hat @ other) - CB).min(-1), 0, H)
        np.testing.assert_allclose(J, other, rtol=0, atol=tol * H)
        last = np.zeros(X)
        for most in range(1, 30):
            then = fixed_point(c, CB, gamma, H, phi, m_hat, most, 0.0)[1]
            assert (then >= last - 1e-12).all()  # the least step is the last one
            last = then


def extrapolating(lam):
    """Two states. Action 1 was played once in each; action 0 never, and its features lie beyond those of action 1."""
    phi = np.array([[[0.0, 1.0], [0.6, 0.4]], [[1.0, 0.0], [0.4, 0.6]]])
    c = np.array([[0.2, 1.0], [0.4, 1.0]])
    seen = phi[:, 1]  # (x_0, 1) led to x_0, (x_1, 1) to x_1
    m_hat = np.linalg.solve(lam * np.eye(2) + seen.T @ seen, seen.T @ np.eye(2))
    return c, phi, m_hat


def test_where_the_estimate_is_no_kernel_it_goes_in_circles_and_says_so():
    """P_hat of action 0 is (-2, 3) and (3, -2) up to lambda: J jumps between (0, 1) and (1, 0)."""
    c, phi, m_hat = extrapolating(1e-6)
    np.testing.assert_allclose(phi[:, 0] @ m_hat, [[-2, 3], [3, -2]], atol=1e-3)
    none, H = np.zeros((2, 2)), 10.0
    for most, end in ((60, CYCLE), (6, CAPPED)):
        w, J, rounds, how = fixed_point(c, none, 0.9, H, phi, m_hat, most, 1e-4)
        assert how == end
        assert rounds == most or how == CYCLE
    long = [np.zeros(2)]
    for _ in range(2000):
        long.append(np.clip((c + 0.9 * phi @ (m_hat @ long[-1])).min(-1), 0, H))
    np.testing.assert_allclose(long[-1], long[-3], atol=1e-9)
    assert sorted([long[-1].round(3).tolist(), long[-2].round(3).tolist()]) == [[0, 1], [1, 0]]
    steps = [np.abs(then - now).max() for now, then in pairwise(long[:7])]
    np.testing.assert_allclose(J, long[int(np.argmin(steps)) + 1], atol=1e-9)  # of 6 rounds, that of the least step
    np.testing.assert_allclose(w, m_hat @ long[int(np.argmin(steps))], atol=1e-9)


def test_a_learner_counts_the_plans_that_found_no_fixed_point():
    rng = np.random.default_rng(0)
    phi, m = rng.dirichlet(np.ones(3), (4, 3)), rng.dirichlet(np.ones(4) / 3, 3)
    world = MDP.from_linear(phi, m, rng.uniform(size=3), 0.9, np.full(4, 0.25), name="few")
    made = run(fixed_point_lsvi(world.problem, 400, scale=0.0, regularization=1e-3, rounds=1000), world, 400, 200)
    assert (made.state.unsettled > 0).sum() > 10
    assert (made.state.cycles <= made.state.unsettled).all()
    assert made.state.cycles.max() > 0
    pairs = ids.mdp("riverswim/4,discount=0.9")
    assert not run(fixed_point_lsvi(pairs.problem, 400, scale=0.0), pairs, 400, 20).state.unsettled.any()


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_with_much_data_and_no_bonus_it_finds_the_optimal_values(world):
    state = backups(fixed_point_lsvi(world.problem, 10**6, scale=0.0), exact(world, 10**9, 1.0), 1)
    P, r, gamma = dense(world), world.rewards, world.discount
    V = np.zeros(world.states)
    for _ in range(2000):
        V = (r + gamma * P @ V).max(-1)
    np.testing.assert_allclose(state.V[0], V, atol=1e-4)
    assert state.unsettled[0] == 0
    assert ((state.policy[0] * (r + gamma * P @ V)).sum(-1) >= V - 1e-4).all()


def test_costs_to_the_reset_are_the_horizon_less_the_value():
    """E of the sum of 1 - r until the reset is H - V: the shortest-path form."""
    world = WORLDS["linear"]
    P, gamma = dense(world), world.discount
    P_pi, r_pi = P.mean(1), world.rewards.mean(1)
    V = np.linalg.solve(np.eye(world.states) - gamma * P_pi, r_pi)
    costs = np.linalg.solve(np.eye(world.states) - gamma * P_pi, 1 - r_pi)
    np.testing.assert_allclose(costs, world.horizon - V, rtol=1e-12)


def test_pairs_that_were_not_played_are_the_best_there_is_without_any_bonus():
    world = ids.mdp("riverswim/4,discount=0.9")
    learner = fixed_point_lsvi(world.problem, 1000, scale=0.0)
    state = learner.plan(learner.init(np.zeros(1, np.uint64)))
    np.testing.assert_allclose(world.horizon - state.V[0], (1 - world.rewards).min(-1), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"rounds": 0}, "rounds"), ({"tolerance": 0}, "tolerance"), ({"regularization": 0}, "reg"), ({"scale": -1}, "sc")],
)
def test_bad_arguments_are_named(options, match):
    with pytest.raises(InputError, match=match):
        fixed_point_lsvi(WORLDS["linear"].problem, 100, **options)
