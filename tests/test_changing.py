"""Rewards that change: what is revealed when, the best fixed policy in hindsight, regret, and Lemma 4.3 with r_k."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import ravi
from ravi.ids import learner
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.learners.ravi_ucb.changing_rewards import changing as on
from ravi.mdps import garnet, riverswim, riverswim_mixture
from ravi.mdps.changing_rewards import changing, tides
from ravi.measures.hindsight import best_fixed, by_program
from ravi.planning.solver import solve
from ravi.runtime.api import resume, run
from ravi.theory.constants import kappa
from ravi.validation import InputError
from tests.helpers import dense, spy
from tests.literal.mirror import mirror_step

MOVING = "ravi-ucb,scale=0.003,step_scale=30"


def occupancy_of(mdp, pi):
    """mu^pi by dense algebra."""
    P = np.einsum("xa,xay->xy", pi, dense(mdp))
    nu = np.linalg.solve(np.eye(mdp.states) - mdp.discount * P.T, (1 - mdp.discount) * mdp.initial)
    return nu[:, None] * pi


def world(seed=0, block=7, clock="plays", J=3):
    mdp = garnet(4, 2, 3, 3, 0.8)
    return changing(mdp, np.random.default_rng(seed).random((J, 4, 2)) ** 3, block=block, clock=clock)


@pytest.mark.parametrize("clock", ["plays", "epochs"])
@pytest.mark.parametrize("name", [MOVING, "ravi-ucb/mixture,scale=0.02,step_scale=30"])
def test_constant_rewards_are_an_ordinary_run_bit_for_bit(clock, name):
    mdp, T = riverswim_mixture(5, 0.9), 800
    same = changing(mdp, [mdp.rewards] * 3, block=11, clock=clock)
    made = {}
    for label, one in (("ordinary", learner(name, mdp, T)), ("changing", on(learner(name, mdp, T), same))):
        seen = []
        made[label] = run(one, mdp, T, 3, record=["stream"], measures=[spy(seen)]), seen
    ordinary, varying = made["ordinary"], made["changing"]
    assert ordinary[0].regret.tobytes() == varying[0].regret.tobytes()
    for (one, _), (two, _) in zip(ordinary[1], varying[1], strict=True):
        assert one.V.tobytes() == two.V.tobytes()
        assert one.policy.tobytes() == two.policy.tobytes()
    for stream in ("state", "action", "successor"):
        assert ordinary[0].results[f"stream_{stream}"].tobytes() == varying[0].results[f"stream_{stream}"].tobytes()
    assert np.ptp(ordinary[0].last_policy, axis=-1).max() > 0.1
    scored = run(name, same, T, 3)
    np.testing.assert_allclose(scored.regret, ordinary[0].regret, rtol=0, atol=1e-6)


@pytest.mark.parametrize("clock", ["plays", "epochs"])
def test_Q_takes_the_table_of_the_epoch_that_has_ended(clock):
    """By plain formulas, epoch by epoch: r_k is that of the last play, or of epoch k."""
    w, T = world(clock=clock), 700
    base = learner("ravi-ucb,scale=0.01,step_scale=20", w.mdp, T)
    seen = []
    made = run(on(base, w), w.mdp, T, [4, 5], measures=[spy(seen)])
    gamma, H, eta, beta = 0.8, 5.0, base.settings["eta"], base.settings["beta"]
    used = set()
    for row in range(2):
        Q, policy = np.zeros((1, 4, 2)), np.full((1, 4, 2), 0.5)
        starts = [*made.T_k[row].tolist(), T + 1]
        for k in range(len(starts) - 1):
            state = seen[k][0]
            V, _, policy = mirror_step(np.log(policy), policy, Q, eta)
            np.testing.assert_allclose(state.V[row], V[0], rtol=0, atol=1e-9)
            np.testing.assert_allclose(state.policy[row], policy[0], rtol=0, atol=1e-9)
            N, moves = state.data.visits[row], np.zeros((4, 2, 4))
            np.put_along_axis(moves, w.mdp.successors.astype(int), state.data.moves[row].astype(float), 2)
            last = starts[k + 1] - 1
            j = ((last if clock == "plays" else k + 1) - 1) // 7 % 3
            used.add(j)
            Q = w.tables[j] + beta / np.sqrt(N) + gamma * (moves / N[..., None]) @ V[0]
            Q = np.clip(Q, 0, H)[None]
    assert used == {0, 1, 2}
    assert np.ptp(policy, axis=-1).max() > 0.1


@pytest.mark.parametrize("clock", ["plays", "epochs"])
def test_tables_to_come_are_not_seen(clock):
    block, T = (60, 400) if clock == "plays" else (12, 400)
    w = world(block=block, clock=clock, J=4)
    other = replace(w, tables=np.concatenate([w.tables[:2], 1 - w.tables[2:]]))
    runs = [run(on(learner(MOVING, w.mdp, T), one), w.mdp, T, [1], record=["stream"]) for one in (w, other)]
    differ = runs[0].results["stream_action"][0] != runs[1].results["stream_action"][0]
    assert differ.any()
    starts = runs[0].T_k[0]
    if clock == "plays":
        begin = starts[starts > 2 * block].min()  # the first epoch after one whose last play had table 2 or 3
    else:
        begin = starts[2 * block + 1]
    assert not differ[: begin - 1].any()
    assert differ[begin - 1 :].any()


@pytest.mark.parametrize("clock", ["plays", "epochs"])
def test_regret_is_that_of_the_policies_played_against_the_best_of_all(clock):
    w, T = world(clock=clock), 500
    seen = []
    made = run(MOVING, w, T, [3, 8], points=10)
    again = run(on(learner(MOVING, w.mdp, T), w), w.mdp, T, [3, 8], measures=[spy(seen)])
    fixed = [occupancy_of(w.mdp, np.eye(2)[list(choice)]) for choice in product(range(2), repeat=4)]
    for row in range(2):
        starts = [*again.T_k[row].tolist(), T + 1]
        earned, total = np.zeros(T), np.zeros((T, 4, 2))
        for k in range(len(starts) - 1):
            mu = occupancy_of(w.mdp, seen[k][0].policy[row])
            for t in range(starts[k], starts[k + 1]):
                table = w.tables[((t if clock == "plays" else k + 1) - 1) // 7 % 3]
                earned[t - 1], total[t - 1] = (mu * table).sum(), table
        sums = total.cumsum(0)
        regret = np.array([max((mu * sums[t - 1]).sum() for mu in fixed) for t in made.times])
        np.testing.assert_allclose(made.regret_curve[row], regret - earned.cumsum()[made.times - 1], rtol=0, atol=1e-8)
        assert abs(made.regret[row] - made.regret_curve[row, -1]) <= 1e-9
        assert made.results["plays"][row].sum() == T
        best = (occupancy_of(w.mdp, made.results["comparator"][row]) * sums[-1]).sum()
        assert best == pytest.approx(T * made.results["optimum"][row], abs=1e-8)
    assert made.regret_error.max() < 1e-8
    np.testing.assert_allclose(made.results["optimum"], made.results["optimum_by_program"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_fixed_policy_is_the_best_of_all_by_both_solvers(seed):
    w, rng = world(seed), np.random.default_rng(seed)
    counts = rng.integers(1, 100, 3)
    mean = np.tensordot(counts / counts.sum(), w.tables, 1)
    most = max((occupancy_of(w.mdp, np.eye(2)[list(c)]) * mean).sum() for c in product(range(2), repeat=4))
    assert best_fixed(w, counts).rho == pytest.approx(most, abs=1e-10)
    assert by_program(w, counts) == pytest.approx(most, abs=1e-9)


@pytest.mark.parametrize("clock", ["plays", "epochs"])
def test_lemma_4_3_holds_with_the_tables_that_were_revealed(clock):
    """In its sharp form, with valid bonuses."""
    w, T = world(clock=clock, block=40), 2000
    made = run("ravi-ucb,step_scale=10", w, T, 8)
    assert made.results["valid"].all()
    assert (made.results["lemma_measured"] <= made.results["lemma_bound"]).all()
    assert (made.results["lemma_bound"] <= made.results["lemma_printed"]).all()


def test_lemma_4_3_counts_every_epoch_with_the_table_that_came_last():
    w, T = world(block=5), 300
    seen = []
    made = run(MOVING, w, T, [6])
    again = run(on(learner(MOVING, w.mdp, T), w), w.mdp, T, [6], measures=[spy(seen)])
    starts = [*again.T_k[0].tolist(), T + 1]
    tables = [w.tables[(last - 2) // 5 % 3] for last in starts[1:]]
    mus = [occupancy_of(w.mdp, state.policy[0]) for state, _ in seen]
    fixed = [occupancy_of(w.mdp, np.eye(2)[list(choice)]) for choice in product(range(2), repeat=4)]
    most = max((mu * sum(tables)).sum() for mu in fixed)
    measured = most - sum((mu * r).sum() for mu, r in zip(mus, tables, strict=True))
    assert made.results["lemma_measured"][0] == pytest.approx(measured, abs=1e-9)
    bonuses = sum((mu * state.CB[0]).sum() for mu, (state, _) in zip(mus, seen, strict=True))
    eta, H, K = again.settings["eta"], 5.0, len(tables)
    printed = 2 * bonuses + np.log(2) / eta + K * eta * H**3 / 2 + 2 * H
    assert made.results["lemma_printed"][0] == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize(("value", "ends"), [(2.0, 1), (np.array([0.0, 5.0, 0.0, 1.0]), 2)])
def test_lemma_4_3_has_another_horizon_where_it_begins_with_values_that_differ(value, ends):
    """<mu* - mu_{K+1}, E V_{K+1}> <= H, and <mu_1 - mu*, E V_0> <= H where V_0 is not constant. No bonuses here."""
    w, T = world(), 100
    base = ravi_ucb.tabular(w.mdp.problem, T, scale=0, eta=0.1, initial_value=value)
    made = run(base, w, T, 3)
    K, H = made.state.epoch, w.mdp.horizon
    less = K * 0.1 * (H**3 / 2 - kappa(H)) + (2 - ends) * H
    np.testing.assert_allclose(made.results["lemma_printed"] - made.results["lemma_bound"], less, rtol=1e-9)


# ---- stopping and going on


def arrays(made):
    """All that a run gives, as bits."""
    return {name: value.tobytes() for name, value in (made.results | {"policy": made.last_policy}).items()}


@pytest.mark.parametrize("clock", ["plays", "epochs"])
@pytest.mark.parametrize("name", [MOVING, "ravi-ucb/mixture,scale=0.02,step_scale=30"])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(clock, name, tmp_path):
    """Anywhere, once or over and over, in memory or from a file."""
    mdp, T = riverswim_mixture(4, 0.8), 120
    w = changing(mdp, np.random.default_rng(1).random((3, 4, 2)), block=4, clock=clock)
    whole = arrays(run(name, w, T, [2, 5, 7], points=12))
    for pause in (0, 1, 13, 60, 111, 119, 120, 500):
        stopped = run(name, w, T, [2, 5, 7], points=12, pause=pause)
        stopped.save(tmp_path / "half.run")
        assert arrays(resume(stopped, name, w)) == whole
        assert arrays(resume(ravi.Run.load(tmp_path / "half.run"), name, w)) == whole
    steps = run(name, w, T, [2, 5, 7], points=12, pause=5)
    for pause in range(20, 140, 15):
        steps = resume(steps, name, w, pause=pause)
    assert arrays(steps) == whole


def test_a_stopped_run_is_scored_up_to_there():
    w, T = world(), 400
    whole, half = run(MOVING, w, T, [3], points=8), run(MOVING, w, T, [3], points=8, pause=200)
    t = int(half.plays[0])
    assert 200 <= t < T
    assert "stopped after" in repr(half)
    assert "stopped" not in repr(whole)
    reached = whole.times <= t
    np.testing.assert_array_equal(half.regret_curve[0][reached], whole.regret_curve[0][reached])
    assert np.isnan(half.regret_curve[0][~reached]).all()
    assert half.results["plays"].sum() == t
    assert half.regret[0] == pytest.approx(best_fixed(w, half.results["plays"][0]).rho * t - half.results["earned"][0])
    nothing = run(MOVING, w, T, [3], pause=0)
    assert (nothing.regret[0], nothing.plays.sum(), nothing.results["lemma_measured"][0]) == (0.0, 0, 0.0)
    asked = run(MOVING, w, T, [3], stop=lambda: True)
    assert arrays(asked) == arrays(nothing)


def test_a_file_says_what_it_is_and_goes_on_in_its_own_world_only(tmp_path):
    w, T = world(), 200
    run(MOVING, w, T, [3], pause=50).save(tmp_path / "half.run")
    read = ravi.Run.load(tmp_path / "half.run")
    assert read.learner == "ravi-ucb/changing"
    assert (read.settings["block"], read.settings["clock"]) == (7, "plays")
    assert "ravi-ucb/changing on garnet" in repr(read)
    assert "block=7, clock=plays" in str(read)
    for other in (replace(w, block=8), replace(w, clock="epochs"), replace(w, tables=w.tables[[1, 0, 2]])):
        with pytest.raises(InputError, match="the stopped run was made with settings"):
            resume(read, MOVING, other)
    with pytest.raises(InputError, match="the stopped run was made with learner ravi-ucb/changing, not ravi-ucb"):
        resume(read, MOVING, w.mdp)
    with pytest.raises(InputError, match="the stopped run was made with learner ravi-ucb, not ravi-ucb/changing"):
        resume(run(MOVING, w.mdp, T, [3], pause=50), MOVING, w)


def test_a_run_says_what_it_was_scored_against():
    made = run(MOVING, "tides/4,block=5", 100, 2)
    assert made.world == "changing"
    assert made.optimum is None
    assert "of the best fixed policy" in str(made)
    with pytest.raises(AttributeError, match=r"did not record 'gap' \(its world is changing\)"):
        made.gap  # noqa: B018
    with pytest.raises(InputError, match="record names 'trajectory', which is against one V"):
        run(MOVING, "tides/4", 100, record=["trajectory"])
    with pytest.raises(InputError, match="pad is true: where rewards change"):
        run(MOVING, "tides/4", 100, pad=True)


def test_an_id_names_a_world():
    by_id = run(MOVING, "tides/4,block=5", 100, 2)
    assert arrays(by_id) == arrays(run(MOVING, tides(4, block=5), 100, 2))


def test_what_cannot_be_is_refused():
    river = riverswim(4, 0.9)
    bad = np.zeros((2, 4, 2))
    bad[1, 2, 0] = 1.5
    with pytest.raises(InputError, match=r"tables\[1, 2, 0\] is 1.5"):
        changing(river, bad)
    with pytest.raises(InputError, match=r"tables has shape \(4, 2\)"):
        changing(river, np.zeros((4, 2)))
    with pytest.raises(InputError, match="clock is 'days'"):
        changing(river, np.zeros((1, 4, 2)), clock="days")
    for name in ("ravi-ucb+", "ucrl2"):
        with pytest.raises(InputError, match="no form for changing rewards"):
            run(name, tides(), 100)


def test_the_id_of_a_world_whose_rewards_change_is_not_taken_for_an_mdp():
    with pytest.raises(
        InputError,
        match=r"tides/4 is no MDP, but a problem of another kind: RiverSwim whose rewards change\. `ravi\.run`",
    ):
        ravi.mdp("tides/4")


def test_the_errors_of_a_regret_in_hindsight_have_the_rounding_of_their_sums():
    """J + 4 roundings of eps = 2^-52 for the mean of J tables, and t of the sum of t returns."""
    world, t, eps = tides(3, block=5, discount=0.5), 200, 2.0**-52
    made = run("ravi-ucb", world, t, 1).results
    best = best_fixed(world, made["plays"][0])
    alone = solve(world.average(made["plays"][0]), "value_iteration", 1e-12).optimum_error
    assert (best.error - alone) / eps == pytest.approx(len(made["plays"][0]) + 4, rel=1e-6)
    assert (made["regret_error"][0] - made["error"][0] - t * best.error) / eps == pytest.approx(t * t, rel=1e-3)
