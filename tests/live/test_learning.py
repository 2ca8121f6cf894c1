"""A learner in an environment of Gymnasium."""

import os
import re
import signal
from itertools import count

import gymnasium as gym
import numpy as np
import pytest

import ravi
from ravi import ids
from ravi._jit.functions import effort
from ravi.live import learning
from ravi.live.agent import Agent
from ravi.live.learning import Broken, Halted, learn
from ravi.live.policies import evaluate
from ravi.validation import InputError
from tests.helpers import refuses
from tests.live.test_agent import everything, is_told, needs_features
from tests.support.learners import LEARNERS

SCALED = "ravi-ucb,scale=0.003,eta=1"


class Corridor(gym.Env):
    """Five places; right leads on, and the end is an end. Its randomness is that of its reset's seed."""

    observation_space = gym.spaces.Discrete(5)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, fail=None, reward=None, limit=None, stop=(), by=signal.SIGINT):
        self.fail, self.reward, self.limit, self.stop, self.by, self.made = fail, reward, limit, stop, by, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.age = int(self.np_random.integers(2)), 0
        return self.place, {}

    def step(self, action):
        self.made += 1
        self.age += 1
        if self.made == self.fail:
            raise OSError("the robot fell over")
        if self.made in self.stop:
            os.kill(os.getpid(), self.by)
        slip = self.np_random.random() < 0.2
        self.place = min(max(self.place + (1 if action and not slip else -1), 0), 4)
        reward = -1.0 if self.reward is None or self.made != 50 else self.reward
        return self.place, reward, self.place == 4, self.limit is not None and self.age >= self.limit, {}


MOST = {"discount": 0.9, "reward_range": (-1, 0)}


@pytest.mark.parametrize("learner", [one for one in LEARNERS if "," not in one])
@pytest.mark.parametrize("termination", ["absorb", "restart"])
def test_every_learner_drives_a_live_environment(learner, termination):
    name = learner.split(",")[0]
    given = {"termination": termination}
    if ids.LEARNERS[name].oracle:
        refuses("kernel nobody knows", learn, Corridor(), learner, 100, **MOST, **given)
        return
    if name.endswith("/unknown-rewards"):
        refuses("simulates rewards", learn, Corridor(), learner, 100, **MOST, **given)
        return
    if not needs_features(learner) and is_told(learner):
        refuses("give a problem that has them all, or support=off", learn, Corridor(), learner, 100, **MOST, **given)
        learner = f"{learner},support=off"
    if needs_features(learner):
        lake = gym.make("FrozenLake-v1", max_episode_steps=-1)
        table = ravi.gymnasium.mdp(lake, 0.9, termination=termination)
        mixture = ravi.ensemble([table, table], [0.5, 0.5])
        made = learn("FrozenLake-v1", learner, 300, problem=mixture.problem, **given)
    else:
        made = learn(Corridor(), learner, 300, **MOST, **given)
    assert made.plays == 300
    assert made.agent.visits.sum() == 300
    assert made.environment["steps"] <= 300
    if name in ("uniform", "psrl"):
        assert made.environment["terminations"] > 0
    if termination == "restart":
        assert made.environment["steps"] == 300
    assert str(made).startswith(made.agent.learner.name)


def test_compiling_is_not_counted_as_the_time_of_learning(monkeypatch):
    class Slow(Corridor):
        def reset(self, **given):
            monkeypatch.setattr(effort, "seconds", effort.seconds + 100)  # as if so long had been compiled
            return super().reset(**given)

    assert learn(Slow(), steps=20).seconds < 0


def test_a_run_that_is_stopped_goes_on_bit_for_bit(tmp_path):
    whole = learn(Corridor(), SCALED, 2000, **MOST)
    file = tmp_path / "half.agent"
    for stop, by in ((300, signal.SIGINT), (400, signal.SIGTERM)):
        with pytest.raises(Halted) as halted:
            learn(Corridor(stop=[stop], by=by), SCALED, 2000, checkpoint=file, **MOST)
        assert not halted.value.learned.agent.done
    again = learn(Corridor(), SCALED, 2000, checkpoint=file, **MOST)
    assert everything(again.agent) == everything(whole.agent)
    assert again.environment == whole.environment
    done = learn(Corridor(fail=1), SCALED, 2000, checkpoint=file, **MOST)  # nothing is left to do
    assert everything(done.agent) == everything(whole.agent)


def test_an_environment_that_raises_loses_nothing(tmp_path):
    file = tmp_path / "robot.agent"
    with pytest.raises(
        Broken, match=r"step \d+: it raised OSError: the robot fell over; the same call goes on"
    ) as broken:
        learn(Corridor(fail=120), SCALED, 1000, checkpoint=file, **MOST)
    kept = broken.value.learned
    assert isinstance(broken.value.__cause__, OSError)
    assert kept.environment["steps"] == 119
    kept.agent.end()
    assert kept.agent.visits.sum() == kept.plays >= 119
    assert (Agent.load(file).visits <= kept.agent.visits).all()
    again = learn(Corridor(), SCALED, 1000, checkpoint=file, **MOST)
    assert again.plays == again.agent.visits.sum() == 1000
    assert again.agent.cuts == 1
    assert again.environment["steps"] > 119


@pytest.mark.parametrize(("reward", "message"), [(np.nan, "nan"), (0.5, "0.5, outside its range"), ("x", "x")])
def test_a_bad_reward_loses_nothing(reward, message, tmp_path):
    file = tmp_path / "bad.agent"
    with pytest.raises(Broken, match=message) as broken:
        learn(Corridor(reward=reward), SCALED, 1000, checkpoint=file, **MOST)
    assert broken.value.learned.environment["steps"] == 50
    assert learn(Corridor(), SCALED, 1000, checkpoint=file, **MOST).agent.visits.sum() == 1000


def test_an_estimate_does_not_rest_on_a_range_that_its_plays_leave():
    with pytest.raises(Broken, match=r"step \d+: the reward is 0.5, outside its range .* was evaluated") as broken:
        learn(Corridor(reward=0.5), SCALED, 40, evaluate=200, **MOST)
    assert broken.value.learned.plays == 40
    assert broken.value.learned.estimate is None


def test_truncations_are_cuts():
    made = learn(Corridor(limit=3), SCALED, 1000, **MOST)
    assert made.environment["truncations"] > 20
    assert made.agent.cuts > 20
    assert made.agent.visits.sum() == 1000


def test_states_that_are_discovered():
    """Sums of cards and what else Blackjack shows: found on the way, or all of them beforehand."""
    given = {"discount": 0.9, "reward_range": (-1, 1), "reward_scale": 0.0}
    found = learn("Blackjack-v1", "psrl", 1500, discover=True, **given)
    known = learn("Blackjack-v1", "psrl", 1500, **given)
    assert found.agent.visits.sum() == known.agent.visits.sum() == 1500
    assert found.agent.table.states < known.agent.table.states == 32 * 11 * 2 + 1
    labels = found.environment["observations"]["labels"]
    assert 100 < len(labels) <= found.agent.table.states
    table, visits = found.agent.table, found.agent.visits.sum(-1)[: len(labels)]
    led_to = set(table.successors[table.moves > 0].tolist())
    assert set(np.flatnonzero(visits == 0).tolist()) <= led_to  # each was met: played in, or led to before a reset
    assert (visits > 0).sum() > 100


def test_a_discovered_stream_goes_on_bit_for_bit(tmp_path):
    given = {"discount": 0.9, "reward_range": (-1, 1), "discover": True}
    whole = learn("Blackjack-v1", SCALED, 1000, **given)
    file = tmp_path / "cards.agent"

    class Stops(gym.Wrapper):
        plays = 0

        def step(self, action):
            self.plays += 1
            if self.plays == 50:
                os.kill(os.getpid(), signal.SIGINT)
            return super().step(action)

    with pytest.raises(Halted):
        learn(Stops(gym.make("Blackjack-v1")), SCALED, 1000, checkpoint=file, **given)
    again = learn("Blackjack-v1", SCALED, 1000, checkpoint=file, **given)
    assert everything(again.agent) == everything(whole.agent)


def test_a_grid_makes_states_of_a_box():
    grid = ravi.Grid([-1.2, -0.07], [0.6, 0.07], [8, 6])
    made = learn("MountainCar-v0", SCALED, 2000, discount=0.95, grid=grid, reward_range=(-1, 0))
    assert made.agent.table.states == 49
    assert made.agent.visits.sum() == 2000
    refuses(
        "is continuous: say into how many cells",
        learn,
        "MountainCar-v0",
        SCALED,
        2000,
        discount=0.95,
        reward_range=(-1, 0),
    )


def test_known_rewards_come_from_the_table_of_the_environment():
    made = learn("FrozenLake-v1", SCALED, 500, discount=0.9, rewards="known")
    world = ravi.gymnasium.mdp(gym.make("FrozenLake-v1", max_episode_steps=-1), 0.9)
    assert (made.agent.problem.rewards == world.rewards).all()


@pytest.mark.parametrize("learner", [None, "psrl"])
def test_the_discount_is_the_same_for_every_learner_unless_it_is_given(learner):
    without, given = (learn("FrozenLake-v1", learner, 300, **more) for more in ({}, {"discount": 0.99}))
    assert without.agent.table.problem.discount == 0.99
    assert (without.agent.policy == given.agent.policy).all()


def test_what_is_missing_is_told(tmp_path):
    refuses("reward_range is missing: Corridor", learn, Corridor(), SCALED, 100, discount=0.9)
    refuses("there is no folder", learn, Corridor(), SCALED, 100, checkpoint=tmp_path / "no" / "x", **MOST)
    world = ids.mdp("garnet/3,2,2,discount=0.9")
    refuses("has 6 states and 2 actions", learn, Corridor(), SCALED, 100, problem=world.problem)
    refuses(
        r"discount is 0.5, but garnet.* has 0.9", learn, Corridor(), SCALED, 100, problem=world.problem, discount=0.5
    )


def test_another_call_does_not_take_over_a_checkpoint(tmp_path):
    file = tmp_path / "one.agent"
    learn(Corridor(), SCALED, 100, checkpoint=file, **MOST)
    for other, message in [
        ({"steps": 200}, "steps 100, not 200"),
        ({"learner": "psrl"}, "learner ravi-ucb,scale=0.003,eta=1, not psrl"),
        ({"seed": 3}, "seed 0, not 3"),
        ({"discount": 0.8}, "discount 0.9, not 0.8"),
        ({"termination": "restart"}, "termination"),
        ({"reward_range": (-2, 0)}, "reward_range"),
        ({"reward_scale": 0.5}, "rewards"),
    ]:
        call = {"env": Corridor(), "learner": SCALED, "steps": 100} | MOST | other
        refuses(message, learn, **call, checkpoint=file)
    (tmp_path / "bad").write_bytes(b"no")
    refuses("not a ravi file", learn, Corridor(), SCALED, 100, checkpoint=tmp_path / "bad", **MOST)


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, r"; ravi\.evaluate\(learned\.policy\(\), ENV\) computes it by the transition table"),
        ({"reward_range": (0, 2)}, "; evaluate=STEPS with more steps narrows it"),
        ({"evaluate": 0}, "not estimated: evaluate=STEPS plays it for that many steps without learning"),
    ],
)
def test_a_result_is_printed_in_five_lines_that_say_what_to_give_for_more(options, more):
    title, *lines = str(ravi.learn("FrozenLake-v1", steps=300, **options)).splitlines()
    assert title.startswith("psrl/pooled on FrozenLake-v1, gamma = 0.99: 300 steps of 300")
    names, said = zip(*(re.split("  +", line.strip(), maxsplit=1) for line in lines), strict=True)
    assert names == ("learned with", "the environment", "the policy earns", "the policy is worth")
    assert re.search("discount 0.99; rewards from 0 to [12] .*; policy planned", said[0])
    assert re.search(f"{more}$", said[2])
    assert said[3] == "not bounded by these plays; until_gap=GAP goes on until it is known to be within GAP of the best"


def test_policies():
    made = learn(Corridor(), SCALED, 500, **MOST)
    assert (made.policy("output").table == made.agent.output).all()
    for which in ("last", "output", "planned"):
        np.testing.assert_allclose(made.policy(which).table.sum(-1), 1)
    refuses("policy", made.policy, "best")


def no_room(handle):
    raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_loses_nothing(tmp_path, monkeypatch):
    """At the end, where the stream broke off, at Ctrl-C and at a checkpoint in between."""
    monkeypatch.setattr(os, "fsync", no_room)
    for env, said, plays in [
        (Corridor(), "cannot write .*No space left on device; what was learned is in .learned$", 300),
        (Corridor(fail=50), "the robot fell over; cannot write .*; what was learned is in .learned$", 299),
        (Corridor(stop=[50]), "^cannot write .*; what was learned is in .learned$", 299),
    ]:
        with pytest.raises(Broken, match=said) as broken:
            learn(env, SCALED, 300, checkpoint=tmp_path / "one.agent", **MOST)
        assert 49 <= broken.value.learned.plays <= plays
        assert broken.value.learned.policy().table.shape == (6, 2)
    monkeypatch.setattr(learning, "PACE", -1.0)
    with pytest.raises(Broken, match=r"^cannot write"):
        learn(Corridor(), SCALED, 300, checkpoint=tmp_path / "one.agent", **MOST)
    assert not os.listdir(tmp_path)


def planning(stop):
    """RAVI-UCB with a Ctrl-C in the middle of some plans."""
    plans = count()

    def build(problem, steps):
        made = ids.learner(SCALED, problem, steps)

        def plan(state):
            state = made.plan(state)
            for _ in range(stop.get(next(plans), 0)):
                os.kill(os.getpid(), signal.SIGINT)
            return state

        return made._replace(plan=plan)

    return build


def test_a_second_ctrl_c_interrupts_a_plan_at_once_and_one_does_not(tmp_path):
    """In the middle of a plan an agent is none that can be kept."""
    file, given = tmp_path / "one.agent", MOST | {"discount": 0.97}
    with pytest.raises(Halted) as halted:
        learn(Corridor(), planning({3: 1}), 500, checkpoint=file, **given)
    stopped = halted.value.learned.agent
    assert stopped.plans >= 4
    assert stopped.visits.sum() == stopped.time == stopped.plays - 1  # one waits to be taken in
    kept = file.read_bytes()
    with pytest.raises(KeyboardInterrupt) as at_once:
        learn(Corridor(), planning({1: 2}), 500, checkpoint=file, **given)
    assert not isinstance(at_once.value, Halted)
    assert file.read_bytes() == kept
    assert learn(Corridor(), planning({}), 500, checkpoint=file, **given).plays == 500


def test_a_second_ctrl_c_does_not_wait_for_the_environment(tmp_path):
    class Stuck(Corridor):
        def step(self, action):
            for _ in range(2 if self.made in self.stop else 0):
                os.kill(os.getpid(), signal.SIGINT)
            return super().step(action)

    with pytest.raises(Halted) as halted:
        learn(Stuck(stop=[50]), SCALED, 300, checkpoint=tmp_path / "one.agent", **MOST)
    assert halted.value.learned.environment["steps"] == 50
    assert learn(Stuck(), SCALED, 300, checkpoint=tmp_path / "one.agent", **MOST).plays == 300


def test_states_that_are_discovered_are_not_those_of_a_table_or_a_problem():
    refuses("numbers of their own", learn, "FrozenLake-v1", SCALED, 100, discount=0.9, discover=True, rewards="known")
    world = ids.mdp("garnet/1,2,1")
    with pytest.raises(InputError, match="numbers of their own"):
        learn(ravi.gymnasium.make(world), SCALED, 100, problem=world.problem, discover=True)


def test_a_problem_has_its_range_and_a_checkpoint_its_problem(tmp_path):
    worlds = [ids.mdp(f"garnet/5,2,5,seed={seed}") for seed in (0, 1)]
    given = {"termination": "restart", "checkpoint": tmp_path / "one.agent"}
    envs = [ravi.gymnasium.make(world) for world in worlds]
    refuses("reward_range is", learn, envs[0], SCALED, 100, problem=worlds[0].problem, reward_range=(-5, 5), **given)
    learn(envs[0], SCALED, 100, problem=worlds[0].problem, **given)
    envs[1].name = envs[0].name
    refuses("another problem", learn, envs[1], SCALED, 100, problem=worlds[1].problem, **given)
    assert learn(envs[0], SCALED, 100, problem=worlds[0].problem, **given).plays == 100


def test_a_range_without_the_zero_of_the_end_is_explained():
    class Dear(Corridor):
        def step(self, action):
            place, _, *rest = super().step(action)
            return place, 1.5, *rest

    with pytest.raises(Broken, match="a terminated step leads to a state that earns 0"):
        learn(Dear(), "uniform", 2000, discount=0.97, reward_range=(1, 2))


def test_more_states_than_memory_holds_are_told():
    class Vast(Corridor):
        observation_space = gym.spaces.Discrete(2**45)

    refuses("discover=True has room", learn, Vast(), SCALED, 100, **MOST)
    assert learn(Vast(), SCALED, 100, discover=True, **MOST).plays == 100


def test_an_environment_that_is_made_here_is_closed(monkeypatch):
    closed = []
    monkeypatch.setitem(gym.registry, "Corridor-v0", gym.envs.registration.EnvSpec("Corridor-v0", Corridor))
    monkeypatch.setattr(Corridor, "close", lambda self: closed.append(self), raising=False)
    learn("Corridor-v0", SCALED, 50, **MOST)
    assert len(closed) == 1
    learn(Corridor(), SCALED, 50, **MOST)
    assert len(closed) == 1


def test_an_output_policy_of_before_some_states_were_met_is_played():
    """It has no rows for them: they are unknown to it."""
    given = {"discount": 0.95, "reward_range": (-1, 1), "discover": True}
    early = next(
        seed
        for seed in range(100)
        if ravi.agent("uniform", None, 500, states=1, actions=1, discount=0.5, seed=seed).index < 20
    )
    made = learn("Blackjack-v1", "uniform", 500, seed=early, **given)
    policy = made.policy("output")
    assert policy.table.shape[0] < len(made.environment["observations"]["labels"])
    found = evaluate(policy, cycles=50)
    assert found.unknown > 0


def test_an_mdp_is_an_environment_that_never_ends_with_the_discount_of_the_mdp():
    mdp = ravi.mdp("riverswim/3,discount=0.8")
    made = [ravi.learn(each, steps=500) for each in (mdp, "riverswim/3,discount=0.8")]
    assert [each.policy().discount for each in made] == [0.8, 0.8]
    assert [each.table().shape for each in made] == [(3, 2), (3, 2)]
    assert (made[0].table() == made[1].table()).all()
    same = ravi.learn(ravi.gymnasium.make(mdp), steps=500, discount=0.8, termination="restart")
    assert (same.table() == made[0].table()).all()
    assert made[1].policy().play(limit=5)[0].steps == 5  # where it was learned
    best = ravi.Policy.of("riverswim/3,discount=0.8", ravi.solve(mdp).policy)
    assert (best.discount, best.environment["termination"], [best(x) for x in range(3)]) == (0.8, "restart", [1, 1, 1])
    assert ravi.learn("riverswim/3", steps=10, discount=0.9).policy().discount == 0.9


@pytest.mark.parametrize(("given", "says"), [
    (("FrozenLake-v1", 1000), "learner is 1000, not the id of one; a number of steps is given as steps=1000"),
    (("psrl", "FrozenLake-v1"), "psrl is a learner, not an environment; the environment comes first"),
    (("FrozenLak-v1",), "Did you mean: `FrozenLake`"),
    (("riverswin/6",), "Did you mean"),
])  # fmt: skip
def test_what_is_no_environment_is_told(given, says):
    with pytest.raises(InputError) as told:
        ravi.learn(*given)
    assert says in str(told.value)
