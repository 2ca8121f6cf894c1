"""What a pair earns, when that is not known."""

import numpy as np
import pytest

from ravi import ids
from ravi.live.agent import agent
from ravi.live.rewards import RewardRange
from ravi.validation import InputError

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


def test_the_bonus_covers_the_truth():
    """With probability 1 - delta at all times: here at every play of 200 streams."""
    T, missed = 300, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        live = agent("uniform", None, T, seed=seed, **SIZES)
        for _ in range(T):
            a = live.act(0)
            live.observe(0, a, 0, float(rng.random() < 0.3 + 0.2 * a))
        live.end()
        missed += (live.table.rewards[0] < [0.3, 0.5]).any()
    assert missed == 0  # 200 / T of them would be allowed


def test_old_rewards_are_forgotten():
    """Rewards that change from 0 to 1 at half time: a memory follows, a mean does not."""
    T = 2000
    given = {"reward_scale": 0.0, "seed": 1}
    steady = played(agent("uniform", None, T, **SIZES, **given), lambda t, a: float(t > T / 2), T)
    moving = played(
        agent("uniform", None, T, rewards="changing", memory=100, **SIZES, **given), lambda t, a: float(t > T / 2), T
    )
    assert np.abs(steady.rewards.mean()[0] - 0.5).max() < 0.05
    assert (moving.table.rewards[0] > 1 - 1e-3).all()  # e^-10 of the weight is old


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


def test_what_was_long_not_played_is_worth_trying_again():
    T = 3000
    given = {"rewards": "changing", "memory": 50, "reward_scale": 0.2}
    live = agent("uniform", None, T, **SIZES, **given)
    played(live, lambda t, a: 0.25, 500, x=0)
    live._pending = None
    live._restarted = True
    played(live, lambda t, a: 0.25, 2000, x=1)
    live.rewards.renew(live.time)
    assert (live.table.rewards[0] == 1).all()
    assert (live.table.rewards[1] < 0.7).all()


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
    with pytest.raises(InputError, match=r"rewards\[1, 0\] is 1.5"):
        live.reveal([[0, 0], [1.5, 0], [0, 0]])
    with pytest.raises(InputError, match=r"has shape \(2,\)"):
        live.reveal([0, 0])
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
