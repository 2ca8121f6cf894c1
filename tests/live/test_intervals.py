"""How good a policy is known to be: the bounds hold as often as they say, tell little too little, and can fail."""

from functools import cache

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.checks import InputError
from ravi.live.intervals import highest, interval, lowest, plausible
from ravi.planning.evaluation import return_of
from tests.live.test_learning import Corridor

SEEDS, PLAYS, DELTA = 150, 400, 0.05
MOST = 17  # of SEEDS that may fail: P(Binomial(150, 0.05) > 17) < 0.0005 is the rate of false alarms


def world_of(seed):
    return ids.mdp(f"garnet/4,2,2,{seed},discount=0.7")


@cache
def played(seed, learner="psrl/pooled"):
    """An agent after PLAYS plays in a small random MDP, whose rewards are coins."""
    world, rng = world_of(seed), np.random.default_rng(seed)
    agent = ravi.agent(learner, states=4, actions=2, discount=0.7, steps=PLAYS, reward_scale=0.0, seed=seed)
    start = lambda: int(rng.choice(4, p=world.initial))  # noqa: E731
    x = start()
    while not agent.done:
        a = agent.act(x)
        y = int(rng.choice(world.successors[x, a], p=world.transitions[x, a]))
        x = start() if agent.observe(x, a, y, float(rng.random() < world.rewards[x, a])) else y
    agent.end()
    return agent


def failures(scale, assume="nothing"):
    """How many seeds have bounds that do not hold."""
    wrong = 0
    for seed in range(SEEDS):
        agent, world = played(seed), world_of(seed)
        policy = ravi.solve(agent.model()).policy
        found = plausible(agent, DELTA, assume, scale=scale)
        value, optimum = float(return_of(world, policy)), float(ravi.solve(world).optimum)
        wrong += not (lowest(found, policy) <= value + 1e-9 and optimum <= highest(found) + 1e-9)
    return wrong


def test_bounds_hold_as_often_as_they_say():
    assert failures(1.0) <= MOST
    assert failures(1.0, "seen") <= MOST  # after 400 plays all successors were met that matter


def test_bounds_whose_radius_is_too_small_are_found_out():
    assert failures(0.01) > MOST


def test_bounds_close_in():
    """More plays, a smaller gap; and what is assumed makes it smaller."""
    gaps = []
    for steps in (1000, 4000, 16_000):
        made = ravi.learn(Corridor(), steps=steps, reward_range=(-1, 0), discount=0.9)
        gaps.append(made.interval(assume="nothing").gap)
        assert made.interval().gap <= gaps[-1]
    assert gaps[0] > gaps[1] > gaps[2] > 0


def test_an_iteration_that_is_stopped_is_a_bound(monkeypatch):
    found = plausible(played(0), DELTA)
    policy = np.full((4, 2), 0.5)
    low, high = lowest(found, policy), highest(found)
    for sweeps in (1, 3, 10, 30):
        monkeypatch.setattr("ravi.live.intervals.SWEEPS", sweeps)
        assert lowest(found, policy) <= low + 1e-5
        assert highest(found) >= high - 1e-5


def test_a_world_without_chance_is_known_when_all_was_played():
    """Assuming that pairs do what they did, learning stops as soon as every pair that matters was played."""
    lake = {"name": "FrozenLake-v1", "is_slippery": False}
    import gymnasium

    made = ravi.learn(gymnasium.make(lake.pop("name"), max_episode_steps=-1, **lake), steps=5000, until_gap=0.01)
    assert made.plays < 200
    assert not made.agent.done
    assert abs(made.interval().low - 0.99**5) < 1e-3
    assert str(made.interval()).endswith("with probability 0.95, if pairs do only what they were seen to do")


def test_known_rewards_and_a_known_start_are_taken_as_they_are():
    world = world_of(1)
    agent = ravi.agent("uniform", world.problem, 50)
    policy, found = np.full((4, 2), 0.5), plausible(agent, DELTA)
    assert (found.low == world.rewards).all()
    assert (found.high == world.rewards).all()
    states, starts, _ = found.start
    np.testing.assert_allclose(starts.moves[0, 0, 0], world.initial)
    assert interval(agent, policy).low >= 0


def test_what_no_interval_speaks_of():
    drifting = ravi.learn(Corridor(), "psrl", 50, discount=0.9, reward_range=(-1, 0), rewards="changing", memory=20)
    with pytest.raises(InputError, match="rewards change"):
        drifting.interval()
    jack = ravi.learn("Blackjack-v1", steps=50, discover=True)
    with pytest.raises(InputError, match="states are discovered"):
        jack.interval()
    with pytest.raises(InputError, match="assume"):
        ravi.learn(Corridor(), steps=50, reward_range=(-1, 0), until_gap=1, assume="much")
