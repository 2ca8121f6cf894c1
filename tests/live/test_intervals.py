"""How good a policy is known to be: the bounds hold as often as they say, tell little too little, and can fail."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache

import gymnasium
import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.live.agent import Agent
from ravi.live.confidence_sets import _plays_enough, confidence_sets
from ravi.live.intervals import Interval, bounds, interval, outward
from ravi.live.stopping_rule import has_unplayed_pairs
from ravi.planning.evaluation import return_of
from tests.helpers import refuses
from tests.live.test_learning import Corridor

SEEDS, PLAYS, DELTA = 200, 400, 0.05
MOST = 21  # of SEEDS that may fail: P(Binomial(200, 0.05) > 21) < 0.0005 is the rate of false alarms


def world_of(seed):
    return ids.mdp(f"garnet/4,2,2,{seed},discount=0.7")


@cache
def played(seed, coins=True):
    """An agent after PLAYS plays in a small random MDP, whose rewards are coins, or depend on the successor alone."""
    world, rng = world_of(seed), np.random.default_rng(seed)
    agent = ravi.agent("psrl/pooled", states=4, actions=2, discount=0.7, steps=PLAYS, reward_scale=0.0, seed=seed)
    initial, transitions = world.initial.cumsum(), world.transitions.cumsum(-1)
    start = lambda: min(int(initial.searchsorted(rng.random(), "right")), 3)  # noqa: E731
    x = start()
    while not agent.done:
        a = agent.act(x)
        y = int(world.successors[x, a, min(int(transitions[x, a].searchsorted(rng.random(), "right")), 1)])
        reward = float(rng.random() < world.rewards[x, a]) if coins else y / 3
        x = start() if agent.observe(x, a, y, reward) else y
    agent.end()
    return agent


@cache
def truth(seed, coins):
    """The best policy of the model of an agent, what it is worth, and the optimum."""
    world, policy = world_of(seed), ravi.solve(played(seed, coins).model()).policy
    if not coins:
        world = replace(world, rewards=(world.transitions * world.successors / 3).sum(-1))
    return policy, float(return_of(world, policy)), float(ravi.solve(world).optimum)


def failures(scale, assume="nothing", coins=True):
    """How many seeds have bounds that do not hold."""
    wrong = 0
    for seed in range(SEEDS):
        policy, value, optimum = truth(seed, coins)
        low, best, gap, *_ = bounds(confidence_sets(played(seed, coins), DELTA, assume, scale=scale), policy)
        wrong += not (low <= value + 1e-9 and optimum <= best + 1e-9 and optimum - value <= gap + 1e-9)
    return wrong


@pytest.mark.parametrize("coins", [True, False])
def test_bounds_hold_as_often_as_they_say(coins):
    assert failures(1.0, coins=coins) <= MOST
    assert failures(1.0, "seen", coins) <= MOST  # after 400 plays all successors were met that matter


@pytest.mark.parametrize("coins", [True, False])
def test_bounds_whose_radius_is_too_small_are_found_out(coins):
    assert failures(0.01, coins=coins) > MOST


def tossed(steps, *payments):
    """An agent that tossed: action a pays payments[a](rng), in a world of one state."""
    rng, agent = np.random.default_rng(0), ravi.agent("uniform", states=1, actions=2, discount=0.5, steps=steps)
    while not agent.done:
        a = agent.act(0)
        agent.observe(0, a, 0, float(payments[a](rng)))
    return agent


def test_a_reward_that_the_successor_tells_is_no_uncertainty_of_its_own():
    sure, coin = (lambda rng: 0.5), (lambda rng: rng.random() < 0.5)
    policy = np.array([[1.0, 0.0]])
    found = interval(tossed(2000, sure, sure), policy, assume="seen")
    np.testing.assert_allclose([found.low, found.best], 1, atol=1e-5)
    widths = [(of := interval(tossed(2000, *two), policy)).best - of.low for two in ((sure, sure), (coin, coin))]
    assert widths[0] < 0.04 < 0.2 < widths[1]


def test_a_policy_whose_rivals_are_all_worse_is_the_best_before_its_value_is_known():
    """Of coins that pay with probability 0.2 and 0.8, which is better is sure long before either mean is."""
    agent = tossed(1000, lambda rng: rng.random() < 0.2, lambda rng: rng.random() < 0.8)
    found = interval(agent, np.array([[0.0, 1.0]]))
    assert found.gap < 1e-5
    assert found.best - found.low > 0.1


def test_bounds_close_in():
    """More plays, a smaller gap; and what is assumed makes it smaller."""
    gaps = []
    for steps in (1000, 4000, 16_000):
        made = ravi.learn(Corridor(), steps=steps, reward_range=(-1, 0), discount=0.9)
        gaps.append(made.interval().gap)
        assert made.interval(assume="seen").gap <= gaps[-1]
    assert gaps[0] > gaps[1] > gaps[2] > 0


def test_an_iteration_that_is_stopped_is_a_bound(monkeypatch):
    found = confidence_sets(played(0), DELTA)
    policy = np.full((4, 2), 0.5)
    low, best, gap, *_ = bounds(found, policy)
    for sweeps in (1, 3, 10, 30):
        monkeypatch.setattr("ravi.live.confidence_sets.SWEEPS", sweeps)
        monkeypatch.setattr("ravi.live.suboptimality.SWEEPS", sweeps)
        monkeypatch.setattr("ravi.live.suboptimality.TIGHTER", sweeps)
        least, most, apart, *_ = bounds(found, policy)
        assert least <= low + 1e-5
        assert most >= best - 1e-5
        assert apart >= gap - 1e-5


def test_a_world_without_chance_is_known_when_all_was_played():
    """If pairs are assumed to do what they did, learning stops as soon as every pair that can be reached was played."""
    lake = gymnasium.make("FrozenLake-v1", max_episode_steps=-1, is_slippery=False)
    made = ravi.learn(lake, steps=5000, until_gap=0.01, assume="seen")
    assert made.plays < 400
    assert made.missed is None
    assert not made.agent.done
    assert not has_unplayed_pairs(made.agent, 16)
    assert abs(made.interval().low - 0.99**5) < 1e-3
    assert made.interval().assumes == (
        "the environment is Markov in its states, rewards lie between 0 and 1, pairs that were played more than 0 "
        "times lead only where they led, moves of such pairs whose rewards were all equal always earn that and resets "
        "lead only where they led"
    )


def test_a_bound_above_half_of_what_a_policy_may_lose_is_not_printed():
    says = "with probability 0.95, if it rains"
    assert str(Interval(0.531, 0.542, 0.011, 0.0, 0.95, "it rains")) == (
        f"at least 0.531 and at most 0.011 below the best, {says}"
    )
    assert str(Interval(0.53, 98.09, 97.56, 0.0, 0.95, "it rains")) == (
        f"at least 0.53, {says}; these plays do not bound how far it is below the best"
    )
    assert str(Interval(0.0, 98.09, 97.56, 0.0, 0.95, "it rains")) == "not bounded by these plays"
    unplayed = ravi.agent("uniform", states=2, actions=2, discount=0.5, steps=9, reward_range=(-3.0, 1.0))
    for policy in (np.full((2, 2), 0.5), np.eye(2)):  # without data the bound is above half for both
        found = interval(unplayed, policy)
        assert (found.low, found.best, found.least) == (-6.0, 2.0, -6.0)
        assert not found.informative


@pytest.mark.parametrize("bound", [0.12345649, -0.12345649, 1e-9, 123456.7, 0.0])
def test_a_bound_is_rounded_so_that_it_holds(bound):
    assert float(outward(bound, up=False)) <= bound <= float(outward(bound, up=True))
    assert float(outward(bound, up=True)) - bound <= 1e-5 * abs(bound)


def test_in_a_world_of_chance_what_is_thought_bad_is_played_until_it_is_known_to_be():
    """At the first looks every pair of the lake may have been played once, to no reward: that is no reason to stop."""
    for seed in (1, 3):
        made = ravi.learn("FrozenLake-v1", steps=40_000, until_gap=0.5, assume="seen", seed=seed)
        assert made.plays > 5000
        assert made.interval().gap <= 0.5
        assert made.interval().best < 1


class Branch(gymnasium.Env):
    """Action 0 stays and earns 0.5. Action 1 leads, nearly never, to a state whose actions nobody knows."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0
        return self.x, {}

    def step(self, action):
        self.x = int(self.x == 0 and action == 1 and self.np_random.random() < 0.02)
        return self.x, 0.5, False, False, {}


def test_learning_goes_on_while_a_pair_is_unplayed_that_the_observed_moves_lead_to():
    agent = ravi.agent("uniform", states=2, actions=2, discount=0.5, steps=9)
    assert not has_unplayed_pairs(agent, None)  # no state was met
    while not agent.visits[0].all():
        agent.observe(0, agent.act(0), 1, 0.5, cut=True)
        agent.end(0)
    assert has_unplayed_pairs(agent, None)
    assert not has_unplayed_pairs(agent, 1)
    made = ravi.learn(Branch(), steps=4000, until_gap=10.0, discount=0.9, reward_range=(0, 1), termination="restart")
    assert made.interval().gap <= 10.0  # as it is without any data
    assert not has_unplayed_pairs(made.agent, None)
    assert made.plays > 1


def test_a_stream_that_explores_goes_on_bit_for_bit(tmp_path, monkeypatch):
    kept, save = [], Agent.save
    monkeypatch.setattr("ravi.live.learning.PACE", 0)
    monkeypatch.setattr(Agent, "save", lambda *of: (save(*of), kept.append((tmp_path / "a").read_bytes())))
    given = {"steps": 1500, "until_gap": 1e-3, "seed": 1}
    whole = ravi.learn("FrozenLake-v1", checkpoint=tmp_path / "a", **given)
    assert whole.agent.done
    assert "1,500 steps of 1,500 in" in str(whole)
    assert "epochs, until_gap = 0.001 not reached\n" in str(whole)
    monkeypatch.undo()
    (tmp_path / "b").write_bytes(kept[len(kept) // 2])
    again = ravi.learn("FrozenLake-v1", checkpoint=tmp_path / "b", **given)
    assert (again.agent.table.moves == whole.agent.table.moves).all()
    assert again.missed == 1e-3


def test_known_rewards_and_a_known_start_are_taken_as_they_are():
    world = world_of(1)
    agent = ravi.agent("uniform", world.problem, 50)
    policy, found = np.full((4, 2), 0.5), confidence_sets(agent, DELTA)
    for pairs, start in (found.low, found.best):
        assert (pairs.other == world.rewards.ravel()).all()
        assert (pairs.reward[:, 0] == world.rewards.ravel()).all()
        np.testing.assert_allclose(start.weight[0, ::2], world.initial)
        assert start.radius == 0
    assert interval(agent, policy).low >= 0


def test_what_no_interval_speaks_of():
    drifting = ravi.learn(Corridor(), "psrl", 50, discount=0.9, reward_range=(-1, 0), rewards="changing", memory=20)
    jack = ravi.learn("Blackjack-v1", steps=50, discover=True)
    by_age = ravi.learn(Corridor(), "rlsvi", 50, discount=0.9, reward_range=(-1, 0))
    for made, why in (
        (drifting, "rewards change"),
        (jack, "states are discovered"),
        (by_age, "the steps since a reset"),
    ):
        assert made.interval() is None
        assert f"not bounded: {made.no_interval}" in str(made)
        assert why in made.no_interval
    steps = []
    for name, given in (("CartPole-v1", {}), ("Pendulum-v1", {}), ("FrozenLake-v1", {"discover": True})):
        env = gymnasium.make(name)
        env.step = steps.append
        refuses("until_gap asks for an interval, but states are", ravi.learn, env, steps=500, until_gap=0.1, **given)
    assert not steps  # it is told before the first of them
    refuses("assume", ravi.learn, Corridor(), steps=50, reward_range=(-1, 0), until_gap=1, assume="much")


def test_that_plays_showed_nothing_new_is_known_of_few_pairs_by_many():
    """Twenty plays of pairs that had been played before, three of a pair at most; else 20 / R plays of each."""
    assert _plays_enough(np.array([4] * 6 + [3, 1, 0])) == 0
    assert _plays_enough(np.array([99] * 6 + [2, 1, 0])) == 20 / 7
    assert _plays_enough(np.ones(45)) == 20
    world = ravi.gymnasium.make(ravi.mdp("riverswim/6,discount=0.9"))
    made = ravi.learn(world, steps=6000, until_gap=0.5, discount=0.9, assume="seen")
    assert (made.agent.visits[:6] > 0).all()  # and not two of the states, as after seven steps


def test_an_interval_is_the_same_interpreted_and_compiled(tmp_path):
    """Where pairs are rare, a logarithm of 0 is -inf in both."""
    script = (
        "import sys, ravi, gymnasium\n"
        "from ravi._jit import functions as compiled\n"
        "compiled.WORTH = float(sys.argv[1])\n"
        "with compiled.sparing(60.0):\n"
        "    found = ravi.learn(gymnasium.make('FrozenLake-v1'), steps=1000)\n"
        "    print(repr(found.interval()), compiled.effort.interpreted > 0)"
    )
    told = []
    for worth in ("-1", "1e9"):
        cache = {"RAVI_CACHE_DIR": str(tmp_path / worth)}
        done = subprocess.run(
            [sys.executable, "-c", script, worth], capture_output=True, text=True, check=True, env=os.environ | cache
        )
        told.append(done.stdout.split())
    assert (told[0][-1], told[1][-1]) == ("False", "True")
    assert told[0][:-1] == told[1][:-1]
