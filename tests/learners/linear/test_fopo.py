"""FOPO: its J is feasible, the largest where it says so, and optimistic; its runs are the transcription's."""

from itertools import product
from math import log, sqrt

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.estimators.gram import gram, renew
from ravi.estimators.linear import features_of, measures
from ravi.learners.linear import largest_gain as module
from ravi.learners.linear.fopo import fopo
from ravi.learners.linear.largest_gain import largest_gain
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense, spy
from tests.learners.contrib.test_rmax_ravi_ucb import WORLDS, backups, exact, small
from tests.literal import linear_learners as literal

TINY = ids.mdp("riverswim/3,discount=0.9")
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


def test_a_run_is_its_literal_transcription_phase_by_phase():
    world, T, seen = TINY, 300, []
    learner = fopo(world.problem, T, scale=0.00005, regularization=0.8)
    made = run(learner, world, T, [4], record=["stream"], measures=[spy(seen)])
    x, a, y = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor"))
    followed = literal.fopo(
        list(zip(x, a, y, strict=True)), world.rewards.tolist(), world.discount, world.initial.tolist(),
        features_of(world.problem)[0].tolist(), 0.8, made.settings["beta"],
    )  # fmt: skip
    policies = set()
    for (state, _), (Q, J, w, b, top) in zip(seen, followed, strict=True):
        assert J < 1
        assert pytest.approx(top, abs=1e-9) == J
        assert state.J[0] == pytest.approx(J, abs=1e-8)
        np.testing.assert_allclose(state.b[0], b, atol=1e-7)
        np.testing.assert_allclose(state.w[0], w, atol=1e-6)
        Q = np.array(Q)
        first = (Q.max(-1, keepdims=True) - 1e-9 <= Q).argmax(-1)
        assert (state.policy[0].argmax(-1) == first).all()
        policies.add(tuple(first))
    assert made.state.heuristic[0] == 0
    assert len(policies) > 2


def test_the_constants():
    s = fopo(WORLDS["linear"].problem, 1000, scale=0.5, span=2.0).settings
    assert s["beta"] == pytest.approx(0.5 * 20 * 4 * 3 * sqrt(log(1000 * 1000)))
    assert s["norm_bound"] == pytest.approx(4 * sqrt(3))
    assert s["search"] == "heuristic"
    assert fopo(TINY.problem, 10).settings["search"] == "exact"
    assert fopo(TINY.problem, 10).settings["span"] == TINY.horizon


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_with_exact_data_and_no_ball_it_finds_the_optimum(world):
    state = backups(fopo(world.problem, 1000, scale=0.0), exact(world, 10**10, 1.0), 1)
    found = solve(world)
    assert state.J[0] == pytest.approx(found.optimum, abs=1e-7)
    pi = state.policy[0]
    value = np.linalg.solve(
        np.eye(world.states) - world.discount * np.einsum("xa,xay->xy", pi, dense(world)),
        (pi * world.rewards).sum(-1),
    )
    assert (1 - world.discount) * world.initial @ value == pytest.approx(found.optimum, abs=1e-7)


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


def test_the_ball_is_smaller_than_a_bonus_for_every_pair():
    """|b| <= beta / sqrt(Lambda) entry by entry gives optimistic value iteration, and a larger J."""
    world = PAIRS
    D = played(world, 25, 1.0, 0)
    beta = 0.3
    J = gain(world, D, beta)[4]
    box = solution(world, D, beta / np.sqrt(np.diagonal(D.covariance[0])))
    assert box - 0.01 > J


@pytest.mark.parametrize("seed", range(6))
def test_it_is_optimistic_when_the_truth_is_feasible(seed):
    """beta just as large as the error of the truth: then J >= rho*. P_hat is a kernel, and J is certified."""
    world = TINY
    D = played(world, 40, 1.0, seed)
    found = solve(world)
    V = np.asarray(found.V)
    v = V - world.initial @ V
    truth = (dense(world) @ v).ravel()  # w*, for phi = e_{x,a}
    b = truth - np.linalg.solve(D.covariance[0], D.moves[0]) @ v
    beta = sqrt(b @ D.covariance[0] @ b) * (1 + 1e-9)
    ok, certified, w, best, J = gain(world, D, beta)
    assert ok
    assert certified
    assert min(found.optimum, 1) - 1e-9 <= J
    assert gain(world, D, 0.0)[4] < J


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


def test_when_the_gain_would_exceed_one_it_is_one():
    world = TINY
    D = played(world, 10, 1.0, 0)
    ok, certified, w, b, J = gain(world, D, 1e4)
    assert ok
    assert certified
    assert pytest.approx(1, abs=1e-7) == J
    assert_feasible(world, D, w, b, J, 1e4, np.inf)


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


def test_ascents_never_fall_and_the_best_of_all_starts_is_the_largest_gain():
    """For kernels: the J that is reported is max_pi F(pi), and the heuristic's ascent reaches it from some policy."""
    for seed in range(12):
        world = ids.mdp(f"garnet/4,2,2,seed={seed},discount=0.8")
        D = played(world, 40, 1.0, seed)
        phi, K = features_of(world.problem)[0], measures(D)[0].reshape(4, 2, 4)
        top = gain(world, D, 0.3)[4]
        F = []
        for pi in product(range(2), repeat=4):
            K_pi = K[range(4), pi]
            y = np.linalg.solve((np.eye(4) - 0.8 * K_pi).T, world.initial)
            y /= y.sum()
            g = (y[:, None] * phi[range(4), pi]).sum(0)
            F.append(y @ world.rewards[range(4), pi] + 0.3 * 0.8 * sqrt(g @ D.inverse[0] @ g))
        assert top == pytest.approx(min(max(F), 1), abs=1e-9)
        m_hat, args = measures(D)[0], (world.rewards, world.discount, world.initial, phi)
        heuristic = -np.inf
        for start in product(range(2), repeat=4):  # the ascent that the heuristic makes, from every policy
            policy = np.array(start, np.int64)
            last = -np.inf
            for _ in range(20):
                _, b = module._best_b(0.8, world.initial, phi, K, D.inverse[0], 0.3, policy)
                _, ok, _, _, J = module._shortened(*args, K, m_hat, b, np.inf, policy)
                assert ok
                assert last - 1e-9 <= J  # it never falls
                last = J
            heuristic = max(heuristic, last)
        assert heuristic == pytest.approx(top, abs=1e-8)


def test_the_policy_of_the_largest_bound_is_found_where_the_discount_matters():
    """F(pi) = <y, r_pi> + beta gamma ||phi_pi^T y||, gamma = .5: without its gamma another policy would often win."""
    others = 0
    for seed in range(30):
        world = ids.mdp(f"garnet/4,2,2,seed={seed},discount=0.5")
        D, gamma, beta = played(world, 15, 1.0, seed), 0.5, 4.0
        phi, K = features_of(world.problem)[0], measures(D)[0].reshape(4, 2, 4)
        policies, parts = list(product(range(2), repeat=4)), []
        for pi in policies:
            y = np.linalg.solve((np.eye(4) - gamma * K[range(4), pi]).T, world.initial)
            y /= y.sum()
            g = (y[:, None] * phi[range(4), pi]).sum(0)
            parts.append((y @ world.rewards[range(4), pi], beta * sqrt(g @ D.inverse[0] @ g)))
        F = [reward + gamma * bonus for reward, bonus in parts]
        best = np.zeros(4, np.int64)
        module._best_policy(world.rewards, gamma, world.initial, phi, K, D.inverse[0], beta, 16, best)
        assert F[policies.index(tuple(best.tolist()))] == pytest.approx(max(F), abs=1e-12)
        others += F[int(np.argmax([reward + bonus for reward, bonus in parts]))] < max(F) - 1e-6
    assert others > 2


def test_large_problems_are_refused():
    with pytest.raises(InputError, match="X <= 100"):
        fopo(ids.mdp("garnet/101,1,2").problem, 10)
    with pytest.raises(InputError, match="d <= 200"):
        fopo(ids.mdp("garnet/60,4,2").problem, 10)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"span": 0}, "span"), ({"beta": -1}, "beta"), ({"regularization": 0}, "reg"), ({"scale": -1}, "scale")],
)
def test_bad_arguments_are_named(options, match):
    with pytest.raises(InputError, match=match):
        fopo(TINY.problem, 100, **options)


def test_where_nothing_is_feasible_the_policy_stays_and_the_seed_counts_it():
    """Two states that never lead to one another, with values 10 apart, and ||w|| <= 2 sqrt(2)."""
    world = MDP.from_dense(np.eye(2)[:, None].repeat(2, 1), [[0, 0], [1, 1]], 0.9, 0)
    state = backups(fopo(world.problem, 100, span=1e-9, beta=0.0), exact(world, 10**6, 1.0), 1)
    assert np.isnan(state.J[0])
    assert state.failed[0] == state.heuristic[0] == 1
    assert (state.policy == 0.5).all()
    assert backups(fopo(world.problem, 100, beta=0.0), exact(world, 10**6, 1.0), 1).J[0] == pytest.approx(0, abs=1e-9)
