"""What is chosen where nothing but the environment is said."""

import gymnasium as gym
import numpy as np
import pytest

import ravi
from ravi.checks import InputError
from ravi.live import defaults
from ravi.live.environment import Environment
from ravi.live.policies import evaluate
from tests.live.test_learning import Corridor

# id, options, plays, and what of the optimum may be lost: benchmarks/environments.md has the numbers of many seeds
WORLDS = [
    ("FrozenLake-v1", {"is_slippery": False}, 400, 0.0),
    ("FrozenLake8x8-v1", {"is_slippery": False}, 1500, 0.0),
    ("CliffWalking-v1", {}, 1000, 0.0),
    ("FrozenLake-v1", {}, 15_000, 0.01),
    ("CliffWalkingSlippery-v1", {}, 15_000, 0.1),
    ("Taxi-v4", {}, 5_000, 0.01),
]


@pytest.mark.parametrize(("name", "options", "plays", "most"), WORLDS)
def test_nothing_need_be_said(name, options, plays, most):
    env = gym.make(name, max_episode_steps=-1, **options)
    found = evaluate(ravi.learn(env, steps=plays).policy(), ravi.mdp(env, discount=0.99))
    assert found.gap <= most * abs(found.optimum) + 1e-6


def test_what_is_chosen():
    made = ravi.learn(Corridor(), steps=500, reward_range=(-1, 0))
    assert (made.agent.given, made.agent.rewards.scale) == ("psrl/pooled,end=5", 0.0)
    assert made.agent.table.told.discount == defaults.DISCOUNT
    assert (made.table() == made.table("planned")).all()
    named = ravi.learn(Corridor(), "uniform", 50, discount=0.9, reward_range=(-1, 0))
    assert named.agent.rewards.scale == 1.0
    assert (named.table() == named.table("last")).all()
    restarted = ravi.learn(Corridor(), steps=50, reward_range=(-1, 0), termination="restart")
    assert restarted.agent.given == "psrl/pooled"


def test_a_range_that_nobody_knows_must_be_said():
    with pytest.raises(InputError, match="reward_range is missing"):
        ravi.learn(Corridor(), steps=50)


def test_ranges_and_grids_of_some_environments_are_known():
    for name in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Blackjack-v1"):
        assert ravi.learn(name, steps=300).plays == 300
    assert defaults.grid("FrozenLake-v1") is None
    assert defaults.reward_range(gym.make("FrozenLake-v1")) is None


def test_plays_after_an_end_are_left_out_but_for_the_first():
    stream = Environment("FrozenLake-v1", seed=1, skip=True)
    ends = 0
    while ends < 3:
        stream.reset()
        successor, cut = 0, False
        while not cut:
            successor, _, cut = stream.step(1)
        assert successor == stream.terminal
        ends += 1
    assert (stream.plays - stream.steps, stream.terminations) == (1, 3)


def test_what_a_cycle_earns_counts_where_it_ends_with_its_environment():
    """Every cycle earns -1 a play up to the end, or the reset: none is left out, so that their mean is the return."""
    made = ravi.learn(Corridor(), steps=4000, reward_range=(-1, 0))
    assert made.agent.cuts == 0
    assert len(made.agent.cycles) == made.environment["resets"] - (not made.agent._restarted)
    value = evaluate(made.policy(), Corridor(), cycles=4000)
    assert made.earned.low <= 0.01 * value.high
    assert made.earned.high >= 0.01 * value.low


def test_a_checkpoint_goes_on(tmp_path):
    whole = ravi.learn(Corridor(), steps=600, reward_range=(-1, 0), checkpoint=tmp_path / "a")
    with pytest.raises(ravi.live.learning.Broken):
        ravi.learn(Corridor(fail=300), steps=600, reward_range=(-1, 0), checkpoint=tmp_path / "b")
    again = ravi.learn(Corridor(), steps=600, reward_range=(-1, 0), checkpoint=tmp_path / "b")
    assert again.plays == whole.plays == 600
    assert np.isfinite(again.agent.state.u).all()
