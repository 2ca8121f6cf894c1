"""R-MAX, MBIE, MBIE-EB and the certainty-equivalent learner: their pseudo-code, their limits, their optimism."""

from dataclasses import replace
from math import ceil, log, sqrt

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.core import MDP, Until
from ravi.estimators.counts import Counts
from ravi.learners.pac.core import backups
from ravi.learners.pac.model_based import log_subsets
from ravi.mdps import garnet, one_state_of, riverswim
from ravi.optimism.sets import l1
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, dense, spy
from tests.literal import model_based as literal
from tests.support.plans import backup_of

TIGHT = "tolerance=1e-11"


def step_by_step(learner, mdp, T, seed):
    """The stream of a run, and the state after every step."""
    learner = ids.learner(learner, mdp, T)._replace(until=lambda s, time: Until(reset=False, deadline=time + 1))
    seen = []
    made = run(learner, mdp, T, [seed], record=["stream"], measures=[spy(seen)])
    return made.results["stream_state"][0], made.results["stream_action"][0], [state for state, _ in seen]


def lists(mdp):
    return dense(mdp).tolist(), mdp.rewards.tolist(), mdp.discount, mdp.initial.tolist()


def without_ties(mdp):
    """The same kernel with rewards that leave no two actions equal: rounding would choose between them."""
    rewards = np.random.default_rng(0).uniform(size=mdp.rewards.shape)
    return MDP.from_dense(dense(mdp), rewards, mdp.discount, mdp.initial, name=mdp.name)


def ring(states, discount):
    """Actions move to the one or the other side on a ring, four times in five, each for a reward of its own."""
    x = np.arange(states)
    successors = np.stack([np.stack([x, (x + side) % states], -1) for side in (1, -1)], 1)
    probabilities = np.where(successors == x[:, None, None], 0.2, 0.8)
    order = successors.argsort(-1)
    return MDP(
        rewards=np.random.default_rng(0).uniform(size=(states, 2)),
        successors=np.take_along_axis(successors, order, -1),
        transitions=np.take_along_axis(probabilities, order, -1),
        initial=np.eye(states)[0],
        discount=discount,
        name="ring",
    )


MDPS = {
    "garnet": without_ties(garnet(5, 2, 3, 1, 0.8)),
    "dense": without_ties(garnet(4, 3, 4, 2, 0.7, "first")),
    "riverswim": without_ties(riverswim(4, 0.8)),
}
RUNS = [
    ("r-max,m=3", lambda mdp, T, key: literal.r_max(*lists(mdp), T, 3, key)),
    ("mbie,scale=0.3", lambda mdp, T, key: literal.mbie(*lists(mdp), T, T, 1 / T, 0.3, key)),
    ("mbie,scale=0.1,m=6,delta=0.2", lambda mdp, T, key: literal.mbie(*lists(mdp), T, 6, 0.2, 0.1, key)),
    ("mbie-eb,scale=0.1", lambda mdp, T, key: literal.mbie_eb(*lists(mdp), T, T, 1 / T, 0.1, key)),
    ("mbie-eb,scale=0.05,m=6,delta=0.2", lambda mdp, T, key: literal.mbie_eb(*lists(mdp), T, 6, 0.2, 0.05, key)),
    ("certainty-equivalent", lambda mdp, T, key: literal.mbie_eb(*lists(mdp), T, T, 1 / T, 0.0, key)),
]


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize(("learner", "by_hand"), RUNS, ids=[name for name, _ in RUNS])
def test_a_run_is_its_pseudo_code_at_every_step(learner, by_hand, mdp):
    mdp, T, moved = MDPS[mdp], 120, False
    x, a, states = step_by_step(f"{learner},{TIGHT}", mdp, T, 4)
    for (t, x_t, a_t, Q), state in zip(by_hand(mdp, T, 4), states, strict=True):
        assert (x[t - 1], a[t - 1]) == (x_t, a_t), t
        np.testing.assert_allclose(state.Q[0], Q, rtol=0, atol=1e-9)
        moved = moved or len(set(np.argmax(Q, -1))) > 1
    assert moved


@pytest.mark.parametrize("learner", ["mbie,scale=0.2", "mbie-eb,scale=0.03", "certainty-equivalent", "r-max,m=5"])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-6])
@pytest.mark.parametrize(
    "mdp", [garnet(12, 3, 3, 5, 0.9), garnet(70, 2, 2, 5, 0.9), ring(66, 0.9)], ids=lambda mdp: mdp.name
)
def test_values_are_within_the_tolerance_of_their_fixed_point(learner, tolerance, mdp):
    """Against value iteration from H, on what the run has counted. Of many states, plans are local where they can."""
    seen: list = []
    made = ids.learner(f"{learner},tolerance={tolerance}", mdp, 3000)
    run(made, mdp, 3000, [1], measures=[spy(seen)])
    least = made.settings.get("m", 1) if made.name == "r-max" else 1
    constants = mdp.discount, mdp.horizon, made.settings.get("beta", 0.0), made.settings.get("radius", 0.0), least
    worst = 0.0
    for state, _ in seen[:: max(1, len(seen) // 40)]:
        V = np.full(mdp.states, mdp.horizon)
        for _ in range(350):  # 10 * 0.9^350 < 1e-14
            V = backed_up(mdp, constants, state.data, V).max(-1)
        worst = max(worst, np.abs(state.V[0] - V).max())
        np.testing.assert_array_equal(state.Q[0], backed_up(mdp, constants, state.data, state.known[0]))
        np.testing.assert_array_equal(state.V[0], state.Q[0].max(-1))
    assert worst <= tolerance + 1e-12
    assert worst > tolerance / 1e5  # the tolerance is used


@pytest.mark.parametrize("learner", ["mbie-eb,scale=0.03,tolerance=0.1", "certainty-equivalent,tolerance=0.01"])
def test_rewards_that_change_as_a_whole_reach_the_pairs_that_are_not_played(learner):
    """Plans are local, so small a change as this one is; but soon Q is the backup of `known` by the new rewards."""
    mdp = ring(66, 0.9)
    live, x = ravi.agent(learner, mdp.problem, 4000), 0
    rng, new = np.random.default_rng(1), 0.999 * mdp.rewards
    for t in range(4000):
        if t == 3000:
            live.reveal(new)
        a = live.act(x)
        y = int(rng.choice(mdp.successors[x, a], p=mdp.transitions[x, a]))
        x = 0 if live.observe(x, a, y, float((new if t >= 3000 else mdp.rewards)[x, a])) else y
    live.end()
    constants = mdp.discount, mdp.horizon, live.learner.settings.get("beta", 0.0), 0.0, 1
    revealed = replace(mdp, rewards=new)
    np.testing.assert_array_equal(live.state.Q[0], backed_up(revealed, constants, live.state.data, live.state.known[0]))


def backed_up(mdp, constants, data, V):
    X, A, B = mdp.successors.shape
    out = np.empty(X * A)
    flat = mdp.rewards.reshape(-1), mdp.successors.reshape(-1, B)
    counts = data.visits[0].reshape(-1), data.moves[0].reshape(-1, B)
    backups(*flat, *constants, *counts, V, np.arange(X * A, dtype=np.int32), out)
    return out.reshape(X, A)


def test_the_ball_is_that_of_the_confidence_sets():
    rng = np.random.default_rng(0)
    for _ in range(50):
        mdp = garnet(7, 2, int(rng.integers(1, 8)), int(rng.integers(1000)), 0.9)
        moves = rng.integers(0, 4, (1, *mdp.successors.shape)).astype(np.int32)
        moves[..., 0] += moves.sum(-1) == 0
        D, c, V = Counts(moves.sum(-1).astype(np.int32), moves), rng.uniform(0, 4), rng.uniform(0, 3, 7).round(1)
        ball = backup_of(l1, mdp.rewards[None], mdp.successors, 0.9, D, c / np.sqrt(D.visits))
        Q = np.empty((1, 7, 2))
        ball(V[None], np.ones(1, bool), Q)
        np.testing.assert_allclose(backed_up(mdp, (0.9, 1e9, 0.0, c, 1), D, V), Q[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("learner", ["mbie-eb,scale=0", "r-max,m=0", "r-max,scale=0", "mbie,scale=0"])
@pytest.mark.parametrize("mdp", [garnet(15, 3, 3, 0, 0.9), riverswim(6, 0.95)], ids=["garnet", "riverswim"])
def test_without_confidence_they_are_the_certainty_equivalent_learner(learner, mdp):
    assert_same_bits(bits(run(learner, mdp, 2000, [3])), bits(run("certainty-equivalent", mdp, 2000, [3])))


@pytest.mark.parametrize("learner", ["r-max,m=7", "mbie,m=7,scale=0.1", "mbie-eb,m=7,scale=0.1"])
def test_counts_stop_at_m(learner):
    visits = run(learner, garnet(4, 2, 2, 0, 0.8), 2000, 3, measured=False).batch.state.data.visits
    assert visits.max() == 7
    np.testing.assert_array_equal(visits.max((1, 2)), 7)


def test_r_max_plans_only_when_a_pair_becomes_known():
    made = run("r-max,m=5", garnet(6, 2, 3, 0, 0.8), 3000, 4)
    assert (np.array([len(starts) for starts in made.T_k]) <= 6 * 2 + 3).all()  # and when a long run is cut
    made = run("r-max", riverswim(6, 0.95), 2000, [0])
    assert len(made.T_k[0]) == 1  # m > T: the first action for ever


def test_constants_are_the_papers():
    mdp, T = garnet(6, 2, 3, 0, 0.9), 10_000
    X, A, H = 6, 2, 10.0
    m = ids.learner("r-max", mdp, T).settings["m"]
    assert m == ceil(2 * (X * log(2) + log(X * A * T)) * H**4 / (0.1 * H) ** 2)
    assert ids.learner("r-max,scale=0.1", mdp, T).settings["m"] == pytest.approx(m / 100, abs=1)
    assert ids.learner("r-max,accuracy=0.2", mdp, T).settings["m"] == pytest.approx(m / 4, abs=1)
    beta = ids.learner("mbie-eb", mdp, T).settings["beta"]
    assert beta == pytest.approx(H * sqrt(log(2 * X * A * T * T) / 2), rel=1e-12)
    radius = ids.learner("mbie,delta=0.1,m=50", mdp, T).settings["radius"]
    assert radius == pytest.approx(sqrt(2 * (log(2**X - 2) + log(2 * X * A * 50 / 0.1))), rel=1e-12)
    assert log_subsets(2) == pytest.approx(log(2), rel=1e-15)
    assert log_subsets(5000) == pytest.approx(5000 * log(2), rel=1e-15)
    assert ids.learner("mbie", one_state_of([0.1, 0.2], 0.9), T).settings["radius"] == 0


@pytest.mark.parametrize(
    "wrong", ["r-max,accuracy=0", "r-max,m=-1", "mbie,m=0", "mbie-eb,scale=-1", "mbie,delta=1", "mbie-eb,tolerance=0"]
)
def test_errors_name_the_argument(wrong):
    with pytest.raises(InputError, match=wrong.split(",")[1].split("=")[0]):
        ids.learner(wrong, riverswim(4, 0.8), 100)


def inside(mdp, state, radius):
    """For each seed, whether every ball holds the true row."""
    n, N = state.data
    distance = np.abs(N / np.maximum(n, 1)[..., None] - mdp.transitions).sum(-1)
    return ((distance <= radius / np.sqrt(np.maximum(n, 1))) | (n == 0)).all((1, 2))


def test_the_balls_of_mbie_hold_the_truth_as_often_as_stated():
    """With probability 1 - delta / 2 at all times: of 400 runs at delta = 0.4, over 125 misses have chance 1e-7."""
    mdp, T = garnet(3, 2, 3, 0, 0.5), 400
    learner = ids.learner("mbie,delta=0.4", mdp, T)
    radius, held, third = learner.settings["radius"], [], []
    for first in range(0, 400, 50):
        seen = []
        run(learner, mdp, T, range(first, first + 50), measures=[spy(seen)])
        held += list(np.all([inside(mdp, state, radius) for state, _ in seen], axis=0))
        third += list(np.all([inside(mdp, state, radius / 3) for state, _ in seen], axis=0))
    assert len(held) == 400
    assert held.count(False) <= 125
    assert third.count(False) > 200  # the bound is loose, but a third of it is not one


@pytest.mark.parametrize("learner", ["mbie", "mbie-eb"])
@pytest.mark.parametrize("mdp", [garnet(4, 2, 2, 3, 0.5), riverswim(4, 0.6)], ids=["garnet", "riverswim"])
def test_values_are_optimistic_and_not_without_confidence(learner, mdp):
    """V_t >= V* at all t with probability 1 - 1/T in each of 8 runs: a false alarm has chance below 3e-4."""
    T, best = 30_000, solve(mdp).V

    def lowest(name):
        seen = []
        run(name, mdp, T, 8, measures=[spy(seen)])
        return min((state.V - best).min() for state, _ in seen), seen[-1][0].V

    gap, V = lowest(learner)
    assert gap >= -1e-4
    assert (0.9 * mdp.horizon > V).any()  # the bonus is not all there is
    wrong, _ = lowest(f"{learner},scale=0.01")
    assert wrong < -0.01


@pytest.mark.parametrize("name", ["r-max", "mbie", "mbie-eb", "certainty-equivalent"])
def test_the_recorded_tolerance_is_the_one_asked_unless_rounding_forbids_it(name):
    for asked in (1e-3, 1e-7):
        made = ids.learner(f"{name},tolerance={asked}", riverswim(4, 0.9), 100).settings["tolerance"]
        assert made == pytest.approx(asked, rel=1e-12)
    raised = ids.learner(f"{name},tolerance=1e-12", riverswim(4, 0.9999), 100).settings["tolerance"]
    assert raised == pytest.approx(2.0**-44 * 0.9999 * 1e8, rel=1e-9)
