"""Rewards that change: what is revealed when, the best fixed policy in hindsight, regret, and Lemma 4.3 with r_k."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import ravi
from ravi.changing import best_fixed, by_program, run_changing
from ravi.checks import InputError
from ravi.engine import run
from ravi.ids import learner
from ravi.learners import ravi_ucb
from ravi.learners.changing import changing as on
from ravi.mdps import garnet, riverswim, riverswim_mixture
from ravi.mdps.changing import changing, tides
from ravi.planning.mirror import mirror_step_array
from ravi.theory.constants import kappa
from tests.helpers import dense, spy

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
    scored = run_changing(name, same, T, 3)
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
            V, _, policy = mirror_step_array(np.log(policy), policy, Q, eta)
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
    made = run_changing(MOVING, w, T, [3, 8], points=10)
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
        assert made.plays[row].sum() == T
        best = (occupancy_of(w.mdp, made.comparator[row]) * sums[-1]).sum()
        assert best == pytest.approx(T * made.optimum[row], abs=1e-8)
    assert made.regret_error.max() < 1e-8
    np.testing.assert_allclose(made.optimum, made.optimum_by_program, rtol=0, atol=1e-9)


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
    made = run_changing("ravi-ucb,step_scale=10", w, T, 8)
    assert made.lemma.valid.all()
    assert (made.lemma.measured <= made.lemma.bound).all()
    assert (made.lemma.bound <= made.lemma.printed).all()


def test_lemma_4_3_counts_every_epoch_with_the_table_that_came_last():
    w, T = world(block=5), 300
    seen = []
    made = run_changing(MOVING, w, T, [6])
    again = run(on(learner(MOVING, w.mdp, T), w), w.mdp, T, [6], measures=[spy(seen)])
    starts = [*again.T_k[0].tolist(), T + 1]
    tables = [w.tables[(last - 2) // 5 % 3] for last in starts[1:]]
    mus = [occupancy_of(w.mdp, state.policy[0]) for state, _ in seen]
    fixed = [occupancy_of(w.mdp, np.eye(2)[list(choice)]) for choice in product(range(2), repeat=4)]
    most = max((mu * sum(tables)).sum() for mu in fixed)
    measured = most - sum((mu * r).sum() for mu, r in zip(mus, tables, strict=True))
    assert made.lemma.measured[0] == pytest.approx(measured, abs=1e-9)
    bonuses = sum((mu * state.CB[0]).sum() for mu, (state, _) in zip(mus, seen, strict=True))
    eta, H, K = again.settings["eta"], 5.0, len(tables)
    printed = 2 * bonuses + np.log(2) / eta + K * eta * H**3 / 2 + 2 * H
    assert made.lemma.printed[0] == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize(("value", "ends"), [(2.0, 1), (np.array([0.0, 5.0, 0.0, 1.0]), 2)])
def test_lemma_4_3_has_another_horizon_where_it_begins_with_values_that_differ(value, ends):
    """<mu* - mu_{K+1}, E V_{K+1}> <= H, and <mu_1 - mu*, E V_0> <= H where V_0 is not constant. No bonuses here."""
    w, T = world(), 100
    base = ravi_ucb.tabular(w.mdp.problem, T, scale=0, eta=0.1, initial_value=value)
    made = run_changing(base, w, T, 3)
    K, H = made.run.state.epoch, w.mdp.horizon
    less = K * 0.1 * (H**3 / 2 - kappa(H)) + (2 - ends) * H
    np.testing.assert_allclose(made.lemma.printed - made.lemma.bound, less, rtol=1e-9)


def test_regret_grows_more_slowly_than_time():
    """RiverSwim with its reward left and right in turns: 16 times the plays, four times the regret and not 16."""
    few, many = (run_changing("ravi-ucb,scale=0.001,step_scale=30", tides(), T, 6).regret.mean() for T in (1000, 16000))
    assert 0 < few < 60
    assert many / few < 8


def test_a_batch_does_not_change_a_seed():
    w = world()
    batch = run_changing(MOVING, w, 400, [5, 3, 9])
    for row, seed in enumerate((5, 3, 9)):
        alone = run_changing(MOVING, w, 400, [seed])
        assert alone.regret_curve[0].tobytes() == batch.regret_curve[row].tobytes()
        assert alone.lemma.bound[0] == batch.lemma.bound[row]


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
            ravi.run_changing(name, tides(), 100)
