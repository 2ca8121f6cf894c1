"""What a pair earns, when that is not known."""

import numpy as np
import pytest

from ravi import ids
from ravi.live.agent import agent
from ravi.live.rewards import RewardRange
from ravi.validation import InputError
from tests.helpers import refuses

SIZES = {"states": 2, "actions": 2, "discount": 0.9}


def played(live, rewards, plays, x=0):
    """Stay in a state, and earn rewards(t, a)."""
    for _ in range(plays):
        a = live.act(x)
        live.observe(x, a, x, rewards(live.plays + 1, a))
    live.end()
    return live


def test_the_mean_and_its_bonus():
    T = 200
    live = played(agent("uniform", None, T, **SIZES), lambda t, a: (t % 4) / 4, 150)
    n = live.visits[0].astype(float)
    bonus = np.sqrt(np.log(2 * 2 * 2 * T * T) / (2 * n))  # delta = 1 / T
    np.testing.assert_allclose(live.table.rewards[0], np.minimum(live.rewards.mean()[0] + bonus, 1), rtol=1e-12)
    assert (live.table.rewards[1] == 1).all()  # never played
    assert np.abs(live.rewards.mean()[0] - 3 / 8).max() < 0.1
    half = played(agent("uniform", None, T, reward_scale=0.5, **SIZES), lambda t, a: (t % 4) / 4, 150)
    np.testing.assert_allclose(half.table.rewards[0], np.minimum(half.rewards.mean()[0] + bonus / 2, 1), rtol=1e-12)
    none = played(agent("uniform", None, T, reward_scale=0, **SIZES), lambda t, a: (t % 4) / 4, 150)
    np.testing.assert_allclose(none.table.rewards[0], none.rewards.mean()[0], rtol=1e-12)
    assert (none.table.rewards[1] == 1).all()


def test_forgetting_by_its_definition():
    T, memory = 60, 7.0
    seen = []

    def reward(t, a):
        seen.append((t, a, (t * 7 % 10) / 10))
        return seen[-1][2]

    live = played(agent("uniform", None, T, rewards="changing", memory=memory, reward_scale=0.1, **SIZES), reward, T)
    spread = 0.1 * np.sqrt(np.log(8 * T * T) / 2)
    live.rewards.renew(T)
    for a in range(2):
        weights = np.array([np.exp((t - T) / memory) for t, b, _ in seen if b == a])
        values = np.array([r for _, b, r in seen if b == a])
        wanted = min((weights * values).sum() / weights.sum() + spread / np.sqrt(weights.sum()), 1)
        assert live.table.rewards[0, a] == pytest.approx(wanted, rel=1e-9)


def test_a_learner_follows_rewards_that_change():
    """Two actions, of which first the one and then the other earns: a learner with a memory goes along."""
    T = 4000
    one = agent(
        "ravi-ucb,scale=0.02,eta=1", None, T, states=1, actions=2, discount=0.8, rewards="changing", memory=200,
        reward_scale=0.1,
    )  # fmt: skip
    earned = []
    for t in range(T):
        a = one.act(0)
        earned.append(float(a == (t >= T // 2)))
        one.observe(0, a, 0, earned[-1])
    assert np.mean(earned[1000:2000]) > 0.8
    assert np.mean(earned[3000:]) > 0.8


def test_rewards_that_are_revealed():
    world = ids.mdp("riverswim/3,discount=0.8")
    live = agent("ravi-ucb,scale=0.1,eta=1", world.problem, 100)
    other = np.full((3, 2), 0.25)
    live.reveal(other)
    assert (live.problem.rewards == other).all()
    assert (world.rewards != other).any()  # the MDP's own are as they were
    refuses(r"rewards\[1, 0\] is 1.5", live.reveal, [[0, 0], [1.5, 0], [0, 0]])
    refuses(r"has shape \(2,\)", live.reveal, [0, 0])
    assert (live.problem.rewards == other).all()
    with pytest.raises(InputError, match="rewards are unknown"):
        agent("ravi-ucb", None, 100, **SIZES).reveal(np.zeros((2, 2)))


def test_the_range_of_rewards():
    units = RewardRange(-2.0, 6.0)
    assert units.part(-2) == 0
    assert units.part(np.float32(6)) == 1
    assert units.part(0) == 0.25
    assert units.part(6 + 1e-10) == 1  # rounding
    for bad in (-2.1, 6.1, np.nan, -np.inf, 10**400, "x", None, [1, 2]):
        with pytest.raises(InputError):
            units.part(bad)
