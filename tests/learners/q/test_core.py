"""Learners that keep a table of Q: each is its literal transcription, and does what its theory says."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.stats import binom, norm

from ravi import ids
from ravi.learners.q.ucb_q import bonus, rate
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import spy
from tests.literal import model_free as literal

STREAMS = ("riverswim/6,discount=0.9", "garnet/7,3,3,seed=4,discount=0.8")
T = 1500


def told(learner, mdp, seed=3, steps=T):
    """A run with its stream, and (state, path) of every epoch."""
    world, seen = ids.mdp(mdp), []
    made = run(learner, world, steps, [seed], record=["stream"], measures=[spy(seen)])
    x, a, y, reset = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor", "reset"))
    return world, made, seen, list(zip(x, a, y, strict=True)), reset


def follow(name, made, world, stream, resets):
    r, gamma, s = world.rewards.tolist(), world.discount, made.settings
    if name == "delayed-q":
        return literal.delayed_q(stream, r, gamma, s["m"], s["eps1"])
    if name == "ucb-q":
        return literal.ucb_q(stream, r, gamma, s["accuracy"], s["delta"], s["scale"])
    if name == "liu-su":
        return literal.liu_su(stream, made.seeds[0], r, gamma, s["accuracy"], s["delta"], s["scale"])
    start = {"zero": 0.0, "optimistic": world.horizon}[s["initial"]]
    return literal.q_learning(stream, resets, made.seeds[0], r, gamma, s["scale"], s["power"], start)


@pytest.mark.parametrize("mdp", STREAMS)
@pytest.mark.parametrize(
    "learner",
    [
        "delayed-q,m=1,accuracy=0.3",
        "delayed-q,m=7,accuracy=0.05",
        "ucb-q,scale=0",
        "ucb-q,scale=0.001,accuracy=0.3,delta=0.2",
        "liu-su,scale=0",
        "liu-su,scale=0.001,accuracy=0.3",
        "q-learning",
        "q-learning,scale=3,power=0.6",
        "q-learning,scale=0.5,initial=optimistic",
    ],
)
def test_a_run_is_its_literal_transcription_step_by_step(learner, mdp):
    """Same action at every step (asserted inside), same policy throughout an epoch, same tables where an epoch ends."""
    world, made, seen, stream, resets = told(learner, mdp)
    name = learner.split(",")[0]
    followed = list(follow(name, made, world, stream, resets))
    assert len(followed) == T
    for state, path in seen:
        first, last = int(path.time[0]), int(path.time[0] + path.length[0] - 1)
        for t in (first, last):
            np.testing.assert_allclose(state.policy[0], followed[t - 1][0], rtol=0, atol=1e-15)
        for table, values in followed[last - 1][1].items():
            np.testing.assert_allclose(getattr(state, table)[0], values, rtol=1e-12, atol=1e-12, err_msg=table)
        if (
            name != "q-learning" and last < T and path.length[0] < path.state.shape[1]
        ):  # nor does an epoch end too early
            assert (np.array(followed[last][0]) != state.policy[0]).any()
    assert len(seen) > 10


@pytest.mark.parametrize("learner", ["delayed-q", "ucb-q"])
@pytest.mark.parametrize("accuracy", [0.1, 0.003])
def test_the_published_constants(learner, accuracy):
    problem = ids.mdp("riverswim/6,discount=0.95")
    s = ids.learner(f"{learner},accuracy={accuracy}", problem, 20000).settings
    if learner == "delayed-q":
        assert (s["eps1"], s["m"]) == pytest.approx(
            literal.delayed_q_samples(6, 2, 0.95, accuracy, 1 / 20000), rel=1e-12
        )
        half = ids.learner(f"{learner},accuracy={accuracy},scale=0.5", problem, 20000).settings["m"]
        assert half == pytest.approx(s["m"] / 4, abs=1)
    else:
        assert s["H_q"] == pytest.approx(literal.ucb_q_constants(0.95, accuracy), rel=1e-12)
        k, H_q, delta = 17, s["H_q"], 1 / 20000
        b = 4 * sqrt(2) * 20 * sqrt(H_q * log(12 * 18 * 19 / delta) / 17)
        assert bonus(k, s["width"], s["pairs"]) == pytest.approx(b, rel=1e-12)


@pytest.mark.parametrize("H_q", [1.0, 2.5, 40.0, 300.0])
def test_the_weights_of_the_targets_have_the_properties_that_the_analysis_uses(H_q):
    """alpha_k^i = alpha_i prod_{j > i} (1 - alpha_j): they sum to 1, rise with i, ..."""
    K = 3000
    w = np.zeros(K + 1)  # alpha_k^i at i = 0, ..., K
    w[0] = 1.0
    over_k = np.zeros(K + 1)  # sum_k alpha_k^i
    for k in range(1, K + 1):
        alpha = rate(k, H_q)
        w[:k] *= 1 - alpha
        w[k] = alpha
        over_k += w
        assert w[0] == 0  # alpha_1 = 1: the initial value is forgotten at once
        assert w.sum() == pytest.approx(1, rel=1e-12)
        assert (np.diff(w[1 : k + 1]) >= -1e-15).all()
        assert w.max() == alpha <= 2 * H_q / k * (1 + 1e-12)
        assert (w * w).sum() <= alpha
        i = np.arange(1, k + 1)
        mean = (w[1 : k + 1] / np.sqrt(i)).sum()
        assert 1 / sqrt(k) * (1 - 1e-12) <= mean <= 2 / sqrt(k)
    assert over_k[1] <= 1 + 1 / H_q  # and sum to 1 + 1/H_q over k: reached from below
    if H_q >= 2.5:
        assert over_k[1] == pytest.approx(1 + 1 / H_q, rel=1e-3)


def test_the_bonus_falls_with_every_play():
    b = np.array([bonus(k, 1.0, 3.0) for k in range(1, 5000)])
    assert (np.diff(b) < 0).all()


@pytest.mark.parametrize("learner", ["ucb-q", "liu-su"])
def test_without_a_bonus_a_deterministic_mdp_is_solved_and_never_underrated(learner):
    world = ids.mdp("garnet/8,3,1,seed=2,discount=0.8")
    best, seen, steps = solve(world), [], 100_000
    made = run(f"{learner},scale=0", world, steps, 4, measures=[spy(seen)])
    for state, _ in seen:
        assert (state.Q_hat >= best.Q - 1e-9).all()
    last = made.batch.state
    assert (made.results["gap"] < 1e-6).all()
    for i in range(4):
        lower = last.Q_hat[i] if learner == "ucb-q" else last.Q[i]
        x = int(world.initial.argmax())
        for _ in range(20):  # along the greedy path the values are those of Q*
            a = int(last.policy[i, x].argmax())
            assert lower[x, a] == pytest.approx(best.V[x], abs=1e-3)
            x = int(world.successors[x, a, 0])


def underrated(learner, mdp, steps, seeds, table, slack=1e-9):
    """How many seeds have an entry of the table below Q* at some time. Values only fall: the last one is the least."""
    world = ids.mdp(mdp)
    made = run(learner, world, steps, seeds, measured=False)
    low = getattr(made.batch.state, table).reshape(seeds, -1, world.states, world.actions)
    return int((low < solve(world).Q - slack).any((1, 2, 3)).sum())


SHORT = "bandit/2,best=0.5,other=0.4,discount=0.5"  # values 0 and H: as noisy as can be
SHARP = 0.5 / (4 * sqrt(2))  # scale at which c_2 = gamma


@pytest.mark.parametrize(("learner", "failures"), [("ucb-q", 0.5), ("liu-su", 1.0)])
def test_the_tables_stay_optimistic_with_the_stated_frequency(learner, failures):
    """At c_2 = gamma at most delta/2 (two tables: delta) of the seeds fail. False alarm: 1e-6."""
    delta, seeds, steps = 0.2, 200, 20_000
    most = binom.isf(1e-6, seeds, failures * delta)
    assert underrated(f"{learner},scale={SHARP},delta={delta}", SHORT, steps, seeds, "Q_hat") <= most
    assert underrated(f"{learner},scale=1,delta={delta}", SHORT, steps, seeds, "Q_hat") <= most
    assert underrated(f"{learner},scale={SHARP / 10},delta={delta}", SHORT, steps, seeds, "Q_hat") > most  # it can fail


def test_delayed_q_stays_optimistic_with_the_stated_frequency():
    """Fewer than X A (1 + X A H / eps1) updates are attempted and Hoeffding bounds each. False alarm: 1e-6."""
    eps1, H, XA, delta, seeds = 0.1, 2.0, 6, 0.1, 100
    tries = XA * (1 + XA * H / eps1)
    m = int(np.ceil(H * H * log(tries / delta) / (2 * eps1**2)))
    assert tries * exp(-2 * m * (eps1 / H) ** 2) <= delta
    most = binom.isf(1e-6, seeds, delta)
    assert underrated(f"delayed-q,accuracy=0.9,m={m}", SHORT, 200_000, seeds, "Q") <= most
    assert underrated("delayed-q,accuracy=0.9,m=3", SHORT, 20_000, seeds, "Q") > most  # it can fail


@pytest.mark.parametrize("m", [1, 4])
def test_delayed_q_only_falls_by_eps1_at_least_and_so_seldom(m):
    world, made, seen, stream, resets = told(f"delayed-q,accuracy=0.5,m={m}", STREAMS[0], steps=20_000)
    eps1, H, (X, A) = made.settings["eps1"], world.horizon, world.rewards.shape
    before, updates = np.full((X, A), H), 0
    for _, tables in follow("delayed-q", made, world, stream, resets):
        drop = before - np.array(tables["Q"])
        assert ((drop == 0) | (drop >= eps1 * (1 - 1e-9))).all()
        updates += int((drop > 0).sum())
        before = np.array(tables["Q"])
    assert 10 < updates <= X * A * H / eps1
    np.testing.assert_allclose(made.batch.state.Q[0], before, rtol=0, atol=1e-12)


def test_delayed_q_comes_to_rest():
    """Once every LEARN is off or unvisited, nothing changes: the policy is near-optimal at a fine enough eps1."""
    world = ids.mdp("riverswim/4,discount=0.8")
    made = run("delayed-q,accuracy=0.05,m=300", world, 300_000, 4)
    assert (made.results["gap"] < 0.01).all()
    assert (made.batch.state.change < 290_000).all()


def test_liu_su_flips_a_fair_coin_of_its_own():
    """z test over 2^18 plays; false alarm 1e-6. The coin is not one of the four numbers of the step."""
    made = run("liu-su", "garnet/4,2,2", 2**14, 16, measured=False)
    by_table = made.batch.state.visits.sum((0, 2, 3))
    assert by_table.sum() == 2**18
    assert abs(by_table[1] - 2**17) / sqrt(2**18 / 4) < norm.isf(0.5e-6)


@pytest.mark.parametrize("initial", ["zero", "optimistic"])
def test_q_learning_finds_q_star_under_uniform_play(initial):
    """epsilon = 1 plays every pair for ever; after 2 10^5 plays ||Q - Q*|| < 0.02 of H = 3.3 (found: 0.008)."""
    world = ids.mdp("garnet/5,2,3,seed=1,discount=0.7")
    made = run(f"q-learning,scale=1e9,initial={initial}", world, 200_000, 4, measured=False)
    assert (made.batch.state.epsilon == 1).all()
    assert np.abs(made.batch.state.Q - solve(world).Q).max() < 0.02


def test_q_learning_explores_less_and_less():
    world, made, seen, _, resets = told("q-learning,scale=2", STREAMS[1])
    for state, path in seen:
        t = int(path.time[0])
        begun = max([1, *(s + 2 for s in range(t - 1) if resets[s])])  # the first step after the last reset
        assert state.epsilon[0] == pytest.approx(min(1, 2 / begun ** (1 / 3)), rel=1e-14)
        np.testing.assert_allclose(np.sort(state.policy[0], -1)[:, 0], state.epsilon[0] / 3, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("delayed-q,accuracy=0", "accuracy"),
        ("delayed-q,accuracy=1e-200", "m"),
        ("delayed-q,m=0", "m"),
        ("delayed-q,scale=-1", "scale"),
        ("ucb-q,accuracy=1", "accuracy"),
        ("ucb-q,delta=2", "delta"),
        ("liu-su,scale=-1", "scale"),
        ("q-learning,power=1", "power"),
        ("q-learning,power=0.5", "power"),
        ("q-learning,initial=best", "initial"),
    ],
)
def test_wrong_options_are_named(text, names):
    with pytest.raises(InputError, match=names):
        ids.learner(text, ids.mdp(STREAMS[0]), 100)


@pytest.mark.parametrize("discount", [0.001, 0.3, 0.9999])
@pytest.mark.parametrize("learner", ["delayed-q", "ucb-q", "liu-su", "q-learning"])
def test_any_discount_will_do(learner, discount):
    made = run(learner, f"riverswim/3,discount={discount}", 300, 2)
    assert np.isfinite(made.regret).all()
    assert all(np.isfinite(value) for value in made.settings.values() if isinstance(value, float))
