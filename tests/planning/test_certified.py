"""Certified errors hold, against exact fractions and where they are attained; and what the other tests let slip."""

import dataclasses
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import ravi
from ravi.core import MDP, Until
from ravi.learners.fixed import State, fixed
from ravi.mdps import deep_sea, garnet, riverswim, riverswim_mixture
from ravi.measures.gap import chased, follow, track
from ravi.measures.trajectory import trajectory
from ravi.planning.evaluation import return_of
from ravi.planning.mirror import mirror_step
from ravi.planning.solver import solve
from ravi.runtime import tree
from ravi.runtime.api import resume, run
from ravi.runtime.tree import BLOCK, Log
from ravi.runtime.walk import _cumulative, find, room, start, walk, world_of
from ravi.schedules import at_reset
from tests.helpers import assert_same_bits, bits, dense, spy
from tests.planning.test_mirror import exactly

LEARNER, WORLD = "ravi-ucb,scale=0.003,step_scale=30", riverswim(5, 0.9)


def exact_return(mdp, pi):
    """rho(pi) as a fraction; rows stand for the distributions proportional to them."""
    X, A, gamma, P = mdp.states, mdp.actions, Fraction(mdp.discount), dense(mdp)
    M = []
    for x in range(X):
        w = [Fraction(pi[x, a]) / sum(Fraction(q) for q in pi[x]) for a in range(A)]
        rows = [[Fraction(q) / sum(Fraction(v) for v in P[x, a]) for q in P[x, a]] for a in range(A)]
        chain = [sum(w[a] * rows[a][y] for a in range(A)) for y in range(X)]
        reward = sum(w[a] * Fraction(mdp.rewards[x, a]) for a in range(A))
        M.append([Fraction(int(x == y)) - gamma * chain[y] for y in range(X)] + [reward])
    for k in range(X):
        for i in range(X):
            if i != k and M[i][k]:
                f = M[i][k] / M[k][k]
                M[i] = [u - f * v for u, v in zip(M[i], M[k], strict=True)]
    nu = [Fraction(v) for v in mdp.initial]
    return (1 - gamma) * sum(p / sum(nu) * M[x][X] / M[x][x] for x, p in enumerate(nu))


@pytest.mark.parametrize(("X", "discount"), [(3, 0.9), (8, 0.99), (18, 0.9)])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-15])
def test_the_error_of_a_return_holds_against_exact_fractions(X, discount, tol):
    """Also at the rounding floor, without any slack."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        mdp, p = garnet(X, 2, 2, seed, discount), rng.integers(1, 8, X) / 8
        pi, tracked = np.stack([p, 1 - p], -1), track(garnet(X, 2, 2, seed, discount), 1)
        follow(chased(mdp, tol), tracked, pi[None], np.ones(1, np.int64))
        assert abs(float(Fraction(float(tracked.returns[0])) - exact_return(mdp, pi))) <= tracked.error[0]


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
    follow(chased(mdp, 10.0), tracked, np.ones((1, X, 1)), np.ones(1, np.int64))
    ratio = abs(tracked.returns[0] - 0.5) / tracked.error[0]
    assert 0.99 < ratio <= 1


@pytest.mark.parametrize("T", [10_000, 100_000])
def test_the_error_of_the_regret_covers_the_rounding_of_its_sum(T):
    """One state, gap .365 in every one of thousands of short epochs: the sum of float64 numbers errs, and says so."""
    mdp = MDP.from_dense([[[1.0], [1.0]]], [[0.1, 0.83]], 0.5, 0)
    made = run(fixed(mdp.problem, [[0.5, 0.5]])._replace(until=at_reset()), mdp, T, 1)
    exact = T * (Fraction(0.83) - (Fraction(0.1) + Fraction(0.83)) / 2)
    assert abs(float(Fraction(float(made.regret[0])) - exact)) <= made.regret_error[0]


def test_distributions_that_miss_one_within_the_tolerance_are_certified_too():
    P, r = np.full((2, 2, 2), 0.5), np.array([[0.0, 1.0], [0.5, 0.2]])
    made = run("optimum", MDP.from_dense(P, r, 0.9, [0.5, 0.5 + 9e-10]), 1000, 1)
    assert abs(made.regret[0]) <= made.regret_error[0]
    mdp = MDP.from_dense(P, r, 0.99, 0)
    exact = 1000 * (solve(mdp, tol=1e-12).optimum - return_of(mdp, np.full((2, 2), 0.5)))
    made = run(fixed(mdp.problem, np.full((2, 2), 0.5) * (1 - 9e-10)), mdp, 1000, 1)
    assert abs(made.regret[0] - exact) <= made.regret_error[0] + 1e-9


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
    against, tracked = chased(mdp, 1e-10), track(mdp, 1)
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
    follow(chased(mdp, 1e-10), tracked, pi, np.ones(1, np.int64))
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


def test_seeds_are_kept_to_the_last_digit():
    seeds = [2**53, 2**53 + 1, 2**63 - 1]
    made = run("uniform", WORLD, 20, seeds, record=["stream"])
    assert made.seeds == seeds
    assert (made.results["stream_state"][0] != made.results["stream_state"][1]).any()
    assert run("uniform", WORLD, 5, np.array([7], np.int64)).seeds == [7]
    assert run("uniform", WORLD, 5, np.int64(3)).seeds == [0, 1, 2]


def test_a_run_stopped_while_some_seeds_have_ended_goes_on_bit_for_bit():
    T = 200
    stopped = run(LEARNER, WORLD, T, 30, pause=190)
    assert (stopped.plays == T).any()
    assert (stopped.plays < T).any()
    assert not stopped.complete
    assert (stopped.padding == 0).all()
    again, whole = resume(stopped, LEARNER, WORLD), run(LEARNER, WORLD, T, 30)
    for row in range(30):
        assert_same_bits(bits(again, row), bits(whole, row))
    assert resume(dataclasses.replace(stopped, seconds=1e6), LEARNER, WORLD).seconds > 1e6


def test_padding_adds_nothing_to_any_sum():
    mdp, T = garnet(4, 2, 2, 0, 0.5), 100
    plain, padded = (run(LEARNER, mdp, T, 40, record=["trajectory"], pad=pad) for pad in (False, True))
    assert padded.padding.max() > 0
    for name in ("reward_total", "trajectory_regret", "trajectory_regret_total", "trajectory_regret_error",
                 "regret_total", "regret_error"):  # fmt: skip
        assert (plain.results[name] == padded.results[name]).all(), name


def test_trajectory_regret_follows_policies_that_move():
    T, seen = 300, []
    made = run(LEARNER, WORLD, T, [3], record=["trajectory", "stream"], measures=[spy(seen)], points=T)
    P, solution, loss = dense(WORLD), solve(WORLD), []
    for (state, _), n in zip(seen, np.diff([*made.T_k[0], T + 1]), strict=True):
        pi = state.policy[0]
        chain = np.einsum("xa,xay->xy", pi, P)
        loss += [solution.V - np.linalg.solve(np.eye(5) - 0.9 * chain, (pi * WORLD.rewards).sum(-1))] * n
    expected = np.cumsum([l[x] for l, x in zip(loss, made.results["stream_state"][0], strict=True)])
    np.testing.assert_allclose(made.results["trajectory_regret"][0], expected, atol=1e-8)
    vague = trajectory(WORLD, T, 5, dataclasses.replace(solution, error=1e-3))
    probe = vague._replace(results=lambda m: {"probe": m.error.copy()})
    assert (run(LEARNER, WORLD, T, [3], measures=[probe]).results["probe"] >= T * 1e-3 * (1 - 1e-9)).all()


def test_the_output_policy_is_there_once_its_time_has_come():
    stopped = run(LEARNER, WORLD, 300, 200, pause=60)
    missing = np.isnan(stopped.output_policy).any((1, 2))
    assert (missing == (stopped.results["output_index"] > stopped.plays)).all()


def test_the_uniform_policy_has_one_epoch():
    assert [len(starts) for starts in run("uniform", WORLD, 200, 3).T_k] == [1, 1, 1]


def test_rounding_leaves_nothing_to_what_has_probability_zero():
    row = np.array([0.1] * 10 + [0.0])
    assert row[find(_cumulative(row), 1 - 2.0**-53)] > 0
    mdp, n = MDP.from_dense([[[1.0]] * 3], [[0.0] * 3], 0.9, 0), 200
    world, path = world_of(mdp), room(n, 5)
    half = np.tile([[0.3, 0.2, 0.0]], (n, 1, 1))  # far from one, so that it shows
    walk(world, State(half), start(world, np.arange(n)), path, np.zeros(n, np.uint8), Until(False, np.full(n, 5)), 5)
    assert set(np.unique(path.action)) == {0, 1}


def test_values_of_small_steps_have_all_digits():
    rng = np.random.default_rng(1)
    for eta in (1e-6, 1e-5, 1e-4, 1e-3):
        for _ in range(50):
            Q, log_pi = rng.uniform(0, 100, 4), np.log(np.full(4, 0.25))
            V = mirror_step(log_pi[None, None], np.full((1, 1, 4), 0.25), Q[None, None], eta)[0][0, 0]
            assert abs(Decimal(float(V)) - exactly(log_pi, Q, eta)[0]) <= Decimal("1e-13")


@pytest.mark.parametrize(("eta", "top"), [(0.01, 10), (1.0, 50)])
def test_many_steps_leave_every_row_normalised(eta, top):
    rng, log_pi = np.random.default_rng(0), np.log(np.full((1, 50, 4), 0.25))
    pi = np.exp(log_pi)
    for _ in range(5000):
        _, log_pi, pi = mirror_step(log_pi, pi, rng.uniform(0, top, (1, 50, 4)), eta, in_place=True)
    assert np.abs(pi.sum(-1) - 1).max() < 1e-15
    most = log_pi.max(-1, keepdims=True)
    assert np.abs(most[..., 0] + np.log(np.exp(log_pi - most).sum(-1))).max() < 1e-15


def test_logs_keep_every_row_and_join_from_the_first():
    log = Log(2, np.int64)
    for k in range(BLOCK):
        log.row()[:] = k
    assert len(log.table) == BLOCK
    assert Log.join([Log.of(np.array([[7]])), Log.of(np.array([[1], [2]]))]).table.tolist() == [[7, 1], [0, 2]]


def test_a_stored_state_of_another_shape_is_refused():
    with pytest.raises(ravi.InputError, match="another MDP"):
        tree.fill((np.zeros(3),), {"0": np.zeros(4)})
