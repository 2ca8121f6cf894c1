"""R-MAX, MBIE, MBIE-EB, the certainty-equivalent learner and UCBVI-gamma: their limits, tolerance and optimism."""

from dataclasses import replace

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.core import MDP, Until
from ravi.learners.pac.core import Model, backups
from ravi.learners.pac.ucbvi_gamma import ALL
from ravi.mdps import garnet, riverswim
from ravi.planning.solver import solve
from ravi.runtime.api import run
from tests.helpers import assert_same_bits, bits, spy


def ring(states, discount):
    """Actions move to the one or the other side on a ring, four times in five, each for a reward of its own."""
    x = np.arange(states)
    successors = np.stack([np.stack([x, (x + side) % states], -1) for side in (1, -1)], 1)
    probabilities, order = np.where(successors == x[:, None, None], 0.2, 0.8), successors.argsort(-1)
    return MDP(
        rewards=np.random.default_rng(0).uniform(size=(states, 2)),
        successors=np.take_along_axis(successors, order, -1),
        transitions=np.take_along_axis(probabilities, order, -1),
        initial=np.eye(states)[0], discount=discount, name="ring",
    )  # fmt: skip


def backed_up(mdp, constants, data, V):
    X, A, B = mdp.successors.shape
    out = np.empty(X * A)
    model = Model(mdp.rewards.reshape(-1), mdp.successors.reshape(-1, B), *map(float, constants[:4]), constants[4], 0.0)
    backups(model, data.visits[0].reshape(-1), data.moves[0].reshape(-1, B), V, np.arange(X * A, dtype=np.int32), out)
    return out.reshape(X, A)


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


@pytest.mark.parametrize("learner", ["mbie-eb,scale=0", "r-max,m=0", "r-max,scale=0", "mbie,scale=0"])
@pytest.mark.parametrize("mdp", [garnet(15, 3, 3, 0, 0.9), riverswim(6, 0.95)], ids=["garnet", "riverswim"])
def test_without_confidence_they_are_the_certainty_equivalent_learner(learner, mdp):
    assert_same_bits(bits(run(learner, mdp, 2000, [3])), bits(run("certainty-equivalent", mdp, 2000, [3])))


@pytest.mark.parametrize("learner", ["mbie", "mbie-eb", "ucbvi-gamma", "ucbvi-gamma,third_term=off"])
@pytest.mark.parametrize("mdp", [garnet(4, 2, 2, 3, 0.5), riverswim(4, 0.6)], ids=["garnet", "riverswim"])
def test_values_are_optimistic_and_not_without_confidence(learner, mdp):
    """V_t >= V* at all t with probability 1 - 1/T in each of 4 runs: a false alarm has chance below 3e-4."""
    T, best = 20_000, solve(mdp).V

    def lowest(name):
        seen = []
        run(name, mdp, T, 4, measures=[spy(seen)])
        return min((state.V - best).min() for state, _ in seen), seen[-1][0].V

    gap, V = lowest(learner)
    assert gap >= -1e-4
    assert (0.95 * mdp.horizon > V).any()  # the bonus is not all there is
    assert lowest(f"{learner},scale=0.0003")[0] < -0.01


# UCBVI-gamma.


@pytest.mark.parametrize("option", ["scale=0.004,third_term=off", "scale=0.002", "scale=0.005,beta=0.0003"])
@pytest.mark.parametrize("mdp", [garnet(40, 3, 3, 0, 0.8), riverswim(20, 0.9)], ids=["garnet", "riverswim"])
def test_what_is_left_out_of_a_sweep_changes_no_bit(option, mdp):
    T = 4000
    learner = ids.learner(f"ucbvi-gamma,{option}", mdp, T)

    def all_stale(state):
        state.many[:] = ALL
        return learner.plan(state)

    full = learner._replace(plan=all_stale, until=lambda s, time: Until(reset=False, deadline=time + 1))
    short, long = run(learner, mdp, T, 2, measured=False), run(full, mdp, T, 2, measured=False)
    for name in ("Q", "V", "best", "spread", "many"):
        np.testing.assert_array_equal(getattr(short.batch.state, name), getattr(long.batch.state, name), name)
    np.testing.assert_array_equal(short.batch.state.data.moves, long.batch.state.data.moves)
    assert (mdp.horizon > short.batch.state.V).any()
