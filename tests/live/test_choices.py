"""What is chosen where nothing but the environment is said."""

import gymnasium as gym
import numpy as np
import pytest

import ravi
from ravi.live import choices
from ravi.live.environment import Environment
from ravi.live.learning import Halted
from ravi.live.policies import evaluate
from tests.helpers import refuses
from tests.live.test_learning import Corridor, everything

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
    assert (made.agent.source, made.agent.rewards.scale) == ("psrl/pooled,end=5", 0.0)
    assert made.agent.table.problem.discount == choices.DISCOUNT
    assert (made.table() == made.table("planned")).all()
    named = ravi.learn(Corridor(), "uniform", 50, discount=0.9, reward_range=(-1, 0))
    assert named.agent.rewards.scale == 1.0
    assert (named.table() == named.table("last")).all()
    restarted = ravi.learn(Corridor(), steps=50, reward_range=(-1, 0), termination="restart")
    assert restarted.agent.source == "psrl/pooled"


class Toll(Corridor):
    """A corridor without slips whose steps pay by where they lead: more than before only at places met later."""

    PAYS = (-3.0, 0.25, 0.5, -7.0, 20.0)

    def step(self, action):
        place, _, end, cut, more = super().step(action)
        return place, self.PAYS[place], end, cut, more


def test_a_range_that_nobody_knows_is_that_of_what_is_earned():
    """Every reward that is learned or shown is in the units of the environment, however the range grew meanwhile."""
    made = ravi.learn(Toll(), steps=600, seed=1)
    agent = made.agent
    assert agent.table.problem.units == (-7, 20)
    successors, moves = agent.table.successors, agent.table.moves
    pays = np.array([*Toll.PAYS, Toll.PAYS[4]])[successors]  # place 4 is the end, state 5, where nothing more is earned
    pays[5] = 0.0
    for means in (agent.state.earned.paid[0], agent.table.least, agent.table.most, agent.table.earned / moves.clip(1)):
        assert np.abs((27 * means - 7 - pays)[moves > 0]).max() < 1e-9
    met = moves.sum(-1) > 0
    expected = (moves * pays).sum(-1)[met] / moves.sum(-1)[met]
    assert 27 * agent.state.earned.mean[0][met] - 7 == pytest.approx(expected)
    assert made.interval() is None
    assert "not bounded: the range of rewards is not known; reward_range=(least, largest)" in str(made)
    told = ravi.learn(Toll(), steps=600, seed=1, reward_range=(-7, 20))
    assert "range observed" not in str(told)
    assert [evaluate(each.policy(), made.agent.model()).gap < 1e-9 for each in (made, told)] == [True, True]


def test_a_range_of_losses_ends_at_0():
    made = ravi.learn(Corridor(), steps=100)
    assert made.agent.table.problem.units == made.policy().units == (-1, 0)
    assert "rewards from -1 to 0 (those observed, and 0)" in str(made)


class Duck:
    """All that an environment needs, and no `gymnasium.Env`."""

    observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(2)

    def reset(self, seed=None):
        self.x = 0
        return self.x, {}

    def step(self, action):
        self.x = (self.x + int(action)) % 3
        return self.x, float(self.x == 2), False, False, {}


def test_a_class_that_is_no_environment_of_gymnasium_may_have_what_one_needs(tmp_path):
    ravi.learn(Duck(), steps=100, checkpoint=tmp_path / "it.agent").policy().save(tmp_path / "it.policy")
    policy = ravi.load_policy(tmp_path / "it.policy")
    assert [policy(x) for x in range(3)] == [1, 1, 0]
    assert policy.play(Duck(), limit=10)[0].total == 9
    assert evaluate(policy, Duck(), cycles=3).no_table == "Duck has no transition table"
    assert ravi.learn(Duck(), "uniform", 50, reward_range=np.array([0, 1]), discover=True).plays == 50
    refuses("Duck has no table P to be read", ravi.mdp, Duck(), discount=0.9)


def test_a_range_may_be_an_array():
    assert ravi.learn(Duck(), steps=10, reward_range=np.array([0.0, 2.0])).policy().units == (0, 2)


def test_noise_in_rewards_is_kept_when_the_range_grows():
    state = ravi.learn("Blackjack-v1", steps=2000, reward_range=(-1, 1)).agent.state
    before = [each.copy() for each in state.earned]
    state.rescale(0.25, 0.5)
    met, played = state.data.moves > 0, state.data.visits > 0
    assert before[2].max() > 0
    assert (state.earned.squares == before[2] / 16).all()
    assert (state.earned.paid == np.where(met, 0.25 * before[0] + 0.5, before[0])).all()
    assert (state.earned.mean == np.where(played, 0.25 * before[1] + 0.5, before[1])).all()


def test_a_stream_whose_range_grows_goes_on_from_its_checkpoint_bit_for_bit(tmp_path):
    whole = ravi.learn(Toll(), steps=600, seed=6).agent
    file, ranges = tmp_path / "toll.agent", []
    for stop in (2, 5, 60):
        with pytest.raises(Halted) as halted:
            ravi.learn(Toll(stop=[stop]), steps=600, seed=6, checkpoint=file)
        ranges.append(halted.value.learned.agent.table.problem.units)
    assert ranges[0] != ranges[-1]
    again = ravi.learn(Toll(), steps=600, seed=6, checkpoint=file).agent
    assert again.follows
    assert again.table.problem.units == whole.table.problem.units == (-7, 20)
    assert everything(again) == everything(whole)
    refuses(
        "was made with learner psrl/pooled,end=5,largest=10000",
        ravi.learn,
        Toll(),
        steps=600,
        seed=6,
        checkpoint=file,
        reward_range=(-7, 20),
    )


class Sea(gym.Env):
    """Deep sea of n x n, where the way to what pays costs .01 / n a step."""

    observation_space, action_space = gym.spaces.MultiDiscrete([5, 5]), gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.row = self.column = 0
        return np.zeros(2, np.int64), {}

    def step(self, action):
        right = action == (self.row + self.column) % 2
        reward = -0.002 * right + float(right and self.row == self.column == 4)
        end = self.row == 4
        self.row, self.column = min(self.row + 1, 4), min(max(self.column + 2 * right - 1, 0), 4)
        return np.array([self.row, self.column]), reward, end, False, {}


@pytest.mark.parametrize("seed", range(4))
def test_what_was_never_tried_may_pay_more_than_all_that_was(seed):
    """All that is seen before the corner costs something, and nothing is gained on the way."""
    made = ravi.learn(Sea(), steps=1500, seed=seed)
    assert made.policy().play(Sea(), limit=5)[0].total > 0.98
    assert made.agent.source == "psrl/pooled,end=25,largest=10000"
    assert ravi.learn(Sea(), steps=10, seed=seed, reward_range=(-1, 1)).agent.source == "psrl/pooled,end=25"


class Words(gym.Env):
    """Five steps to the right earn 1; observations are what `shown` makes of the place."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space, shown):
        self.observation_space, self.shown = space, shown

    def reset(self, seed=None, options=None):
        self.place = 0
        return self.shown(0), {}

    def step(self, action):
        self.place = max(0, self.place + 2 * int(action) - 1)
        return self.shown(self.place), float(self.place == 5), self.place == 5, False, {}


INTEGERS = gym.spaces.Box(0, 255, (2, 2), np.uint8)


@pytest.mark.parametrize(
    ("space", "shown"),
    [
        (INTEGERS, lambda place: np.full((2, 2), place, np.uint8)),
        (gym.spaces.Text(9), lambda place: "x" * place),
        (gym.spaces.MultiDiscrete([9] * 4), lambda place: np.array([0, place, 0, 1])),
        (gym.spaces.Dict({"way": gym.spaces.Discrete(4), "seen": INTEGERS}),
         lambda place: {"way": 3, "seen": np.full((2, 2), place, np.uint8)}),
    ],
)  # fmt: skip
def test_observations_that_are_not_listed_get_numbers_as_they_are_met(space, shown):
    made = ravi.learn(Words(space, shown), steps=1000)
    assert len(made.environment["observations"]["labels"]) == 6  # and the end
    assert [made.policy()(shown(place)) for place in range(5)] == [1] * 5


def test_observations_that_are_few_or_continuous_are_not_discovered():
    small, large = gym.spaces.MultiDiscrete([9] * 3), gym.spaces.Discrete(5000)
    image, mixed = gym.spaces.Box(0, 255, (99, 99), np.uint8), gym.spaces.Tuple((gym.spaces.Box(0, 1), INTEGERS))
    assert not any(map(choices.needs_discovery, (small, large, image, mixed, gym.spaces.MultiBinary(9))))
    assert choices.needs_discovery(gym.spaces.MultiBinary(2000))


class Rare(Corridor):
    """Pays 2 at the end of the corridor, and nothing before."""

    def step(self, action):
        place, _, end, cut, more = super().step(action)
        return place, 2.0 * end, end, cut, more


def test_nothing_bounds_a_policy_where_nobody_knows_the_range_of_rewards():
    """A range that holds the rewards observed bounds those that were not by nothing."""
    early = ravi.learn(Rare(), steps=2)
    assert "none but 0 was observed" in str(early)
    for steps in (2, 500):
        assert ravi.learn(Rare(), steps=steps).interval() is None
    refuses(
        r"until_gap asks for an interval, but the range of rewards is not known",
        ravi.learn,
        Rare(),
        steps=500,
        until_gap=0.1,
    )
    assert ravi.learn(Rare(), steps=500, reward_range=(0, 2)).interval() is not None


@pytest.mark.parametrize("seed", range(8))
def test_bad_luck_at_first_does_not_keep_the_learner_from_what_pays(seed):
    """Under seed 0 the only two steps to the right slip, and nothing else shows that there is chance."""
    made = ravi.learn(Rare(), steps=3000, discount=0.9, seed=seed)
    assert made.agent.table.problem.units == (0, 2)
    assert (made.table()[:4, 1] == 1).all()


@pytest.mark.parametrize("reward", [np.nan, np.inf, "much"])
def test_what_is_no_number_widens_no_range(reward):
    with pytest.raises(ravi.StreamError, match="step 51: the reward is"):
        ravi.learn(Corridor(reward=reward), steps=100)


def test_ranges_and_grids_of_some_environments_are_known():
    for name in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Blackjack-v1"):
        assert ravi.learn(name, steps=300).plays == 300
    assert choices.known_grid(gym.make("FrozenLake-v1")) is None
    assert choices.known_range(gym.make("FrozenLake-v1")) is None
    assert choices.known_range(gym.make("CartPole-v1", sutton_barto_reward=True)) == (-1, 0)


def test_what_is_known_of_an_environment_is_not_of_one_that_a_wrapper_changes():
    """Rewards times 10 leave the range, and observations times 100 the grid."""
    car, wrappers = gym.make("MountainCar-v0"), gym.wrappers
    assert choices.known_grid(wrappers.RecordEpisodeStatistics(car)) is not None
    large = wrappers.TransformObservation(car, lambda each: 100 * each, gym.spaces.Box(-120, 120, (2,)))
    assert choices.known_grid(large) is None
    assert choices.known_range(large) is None
    jack = wrappers.TransformReward(gym.make("Blackjack-v1"), lambda reward: 10 * reward)
    assert ravi.learn(jack, steps=200).agent.table.problem.units == (-10, 10)


def test_what_was_earned_is_not_estimated_where_stretches_were_cut_short():
    """Those that are left whole are the short ones."""
    made = ravi.learn(gym.wrappers.TimeLimit(gym.make("CliffWalking-v1", max_episode_steps=-1), 20), steps=2000)
    assert made.environment["truncations"] > 10
    assert made.earned is None
    assert "the environment cut a stretch short" in dict(made.facts())["earned"]
    assert ravi.learn("CliffWalking-v1", steps=2000).earned is not None


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
