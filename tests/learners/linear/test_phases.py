"""Linear MDPs in phases of doubled determinants: fixed-point LSVI, FOPO and RMAX-RAVI-UCB, and their limits."""

from itertools import pairwise
from math import sqrt

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.estimators.gram import gram, renew
from ravi.estimators.linear import features_of, measures
from ravi.learners.linear.fixed_point_lsvi import CAPPED, CYCLE, fixed_point
from ravi.learners.linear.fopo import fopo
from ravi.learners.linear.largest_gain import largest_gain
from ravi.planning.solver import solve
from tests.helpers import dense
from tests.learners.test_literal import small

WORLDS = {"linear": small(), "pairs": ids.mdp("riverswim/4,discount=0.9")}


def exact(world, per_pair, lam):
    """Data as if every pair had been played `per_pair` times, with successors as likely as they are."""
    phi = features_of(world.problem)[0]
    D = gram(1, phi.shape[-1], lam, world.states, moves=True)
    D.covariance[0] += per_pair * np.einsum("xaj,xak->jk", phi, phi)
    D.moves[0] = per_pair * np.einsum("xaj,xay->jy", phi, dense(world))
    return renew(D)


def backups(learner, D, epochs):
    """The policies and values of `epochs` plans in one phase with data D."""
    state = learner.init(np.zeros(1, np.uint64))
    for mine, given in zip(state.data, D, strict=True):
        mine[...] = given
    for _ in range(epochs):
        state = learner.plan(state)
    return state


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize(
    ("learner", "plans", "slack"),
    [("fixed-point-lsvi,scale=0", 1, 1e-4), ("fopo,scale=0", 1, 1e-7), ("rmax-ravi-ucb,step_scale=30", 600, 0.02)],
)
def test_with_much_data_a_plan_is_optimal(learner, plans, slack, world):
    """Values too: V, J, or V_k, which RMAX-RAVI-UCB comes to by small steps."""
    state = backups(ids.learner(learner, world, 10**6), exact(world, 10**10, 1.0), plans)
    best = solve(world, tol=1e-9)
    assert ((state.policy[0] * best.Q).sum(-1) >= best.V - slack).all()
    if "fopo" in learner:
        assert state.J[0] == pytest.approx(best.optimum, abs=slack)
    else:
        V = state.V[0] if "fixed" in learner else state.V_up[0]
        np.testing.assert_allclose(V, best.V, atol=slack * world.horizon)


# Fixed-point LSVI.


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


# FOPO.


PAIRS = ids.mdp("garnet/3,2,2,discount=0.8")


def played(world, plays, lam, seed):
    """Data of `plays` pairs drawn uniformly, with their successors."""
    rng = np.random.default_rng(seed)
    phi, P = features_of(world.problem)[0], dense(world)
    D = gram(1, phi.shape[-1], lam, world.states, moves=True)
    for _ in range(plays):
        x, a = rng.integers(world.states), rng.integers(world.actions)
        y = rng.choice(world.states, p=P[x, a] / P[x, a].sum())
        D.covariance[0] += np.outer(phi[x, a], phi[x, a])
        D.moves[0, :, y] += phi[x, a]
    return renew(D)


def gain(world, D, beta, bound=np.inf):
    phi = features_of(world.problem)[0]
    known = (world.rewards, world.discount, world.initial, phi)
    return largest_gain(*known, measures(D)[0], D.inverse[0], beta, bound)


def assert_feasible(world, D, w, b, J, beta, bound):
    """v = max_a {r - J + gamma <phi, w>}: <nu_0, v> = 0, w = m_hat v + b, and the bounds."""
    phi = features_of(world.problem)[0]
    v = (world.rewards - J + world.discount * phi @ w).max(-1)
    size = 1 + np.abs(v).max()
    assert abs(world.initial @ v) <= 1e-7 * size
    np.testing.assert_allclose(w, np.linalg.solve(D.covariance[0], D.moves[0]) @ v + b, atol=1e-7 * size)
    assert sqrt(b @ D.covariance[0] @ b) <= beta * (1 + 1e-9)
    assert J <= 1 + 1e-12
    assert np.linalg.norm(w) <= bound * (1 + 1e-12)


def solution(world, D, b):
    """J for a given b, by relative value iteration; None where it does not converge."""
    phi, gamma = features_of(world.problem)[0], world.discount
    K = phi @ np.linalg.solve(D.covariance[0], D.moves[0])
    v = np.zeros(world.states)
    for _ in range(3000):
        then = (world.rewards + gamma * (K @ v + phi @ b)).max(-1)
        J = world.initial @ then
        then = then - J
        if np.abs(then).max() > 1e6:
            return None
        if np.abs(then - v).max() < 1e-11:
            return J
        v = then
    return None


@pytest.mark.parametrize("beta", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_for_pairs_no_b_of_the_ball_does_better(beta, seed):
    """Random points of the ball, those of every policy, and ascents from both: none has a larger J."""
    world, rng = PAIRS, np.random.default_rng(seed)
    D = played(world, 25, 1.0, seed)
    found, certified, w, b, J = gain(world, D, beta)
    assert found
    assert certified
    assert_feasible(world, D, w, b, J, beta, np.inf)
    assert pytest.approx(solution(world, D, b), abs=1e-8) == J
    root = np.linalg.cholesky(np.linalg.inv(D.covariance[0]))
    for _ in range(300):
        u = rng.normal(size=6)
        tried = solution(world, D, beta * root @ u / np.linalg.norm(u))
        assert min(tried, 1) <= J + 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_what_the_heuristic_reports_is_feasible_and_beats_random_search(seed):
    """Features that are no groups of pairs: P_hat may be no kernel. J is feasible, and no random b does better."""
    world = small(seed=seed, X=4, A=2, d=3)
    D = played(world, 12, 0.05, seed)
    for beta, bound in ((0.0, np.inf), (0.2, np.inf), (1.0, 3.0), (50.0, 6.0)):
        ok, certified, w, b, J = gain(world, D, beta, bound)
        if not ok:
            assert solution(world, D, np.zeros(3)) is None or bound < np.inf
            continue
        assert_feasible(world, D, w, b, J, beta, bound)
        if bound == np.inf and beta > 0:
            rng = np.random.default_rng(seed)
            root = np.linalg.cholesky(np.linalg.inv(D.covariance[0]))
            for _ in range(200):
                u = rng.normal(size=3)
                tried = solution(world, D, beta * root @ u / np.linalg.norm(u))
                assert tried is None or tried > 1 or tried <= J + 1e-7


def test_a_bound_on_w_that_binds_is_kept_and_the_maximum_not_certified():
    world, bound_at = PAIRS, 0
    for seed in range(20):
        D = played(world, 25, 1.0, seed)
        none, free = gain(world, D, 0.0), gain(world, D, 0.4)
        low, high = np.linalg.norm(none[2]), np.linalg.norm(free[2])
        if low < high and free[4] < 1:
            bound_at += 1
            bound = (low + high) / 2
            ok, certified, w, b, J = gain(world, D, 0.4, bound)
            assert ok
            assert not certified
            assert none[4] < J < free[4]
            assert np.linalg.norm(w) == pytest.approx(bound, rel=1e-6)
            assert_feasible(world, D, w, b, J, 0.4, bound)
    assert bound_at > 3


def test_where_nothing_is_feasible_the_policy_stays_and_the_seed_counts_it():
    """Two states that never lead to one another, with values 10 apart, and ||w|| <= 2 sqrt(2)."""
    world = MDP.from_dense(np.eye(2)[:, None].repeat(2, 1), [[0, 0], [1, 1]], 0.9, 0)
    state = backups(fopo(world.problem, 100, span=1e-9, scale=0.0), exact(world, 10**6, 1.0), 1)
    assert np.isnan(state.J[0])
    assert state.failed[0] == state.heuristic[0] == 1
    assert (state.policy == 0.5).all()
    assert backups(fopo(world.problem, 100, scale=0.0), exact(world, 10**6, 1.0), 1).J[0] == pytest.approx(0, abs=1e-9)
