"""What is chosen for a Box of which nothing is said: cells, the range of rewards, levels of actions."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv, MountainCarEnv

import ravi
from ravi.live import grid_choice
from ravi.live.learning import Broken
from ravi.live.local_linear import LocalLinear, StepMemory
from ravi.live.policies import evaluate
from ravi.validation import StreamError
from tests.helpers import refuses


class Point(gym.Env):
    """A point of a plane without bounds moves by 0.1 to one of four sides, until it is within 0.15 of (1, 1). It begins
    within 0.2 of (0, 0), so that no policy needs fewer than 13 steps, or more than 22."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(4)

    def __init__(self, costs=-1.0, pays=-1.0, fail=0):
        self.costs, self.pays, self.fail, self.steps = costs, pays, fail, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-0.2, 0.2, 2)
        return self.at.copy(), {}

    def step(self, action):
        self.steps += 1
        if self.steps == self.fail:
            raise RuntimeError("a broken point")
        self.at = self.at + 0.1 * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])[action]
        there = bool(np.abs(self.at - 1).max() < 0.15)
        return self.at.copy(), self.pays if there else self.costs, there, False, {}


class Line(gym.Env):
    """A point of [0, 1] is pushed by an action from -1 to 1; what it pays is how near it is to 0.8."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform()
        return np.float32([self.at]), {}

    def step(self, action):
        assert action in self.action_space
        self.at = float(np.clip(self.at + 0.05 * float(action[0]), 0, 1))
        return np.float32([self.at]), 1 - abs(self.at - 0.8), False, False, {}


class Stick(gym.Env):
    """A stick falls the faster the more it leans, and is pushed to one side or the other, until it leans by 1."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-0.05, 0.05, 2)
        return self.at.copy(), {}

    def step(self, action):
        lean, speed = self.at
        speed += 0.1 * (4 * lean + 2 * action - 1)
        self.at = np.array([lean + 0.1 * speed, speed])
        return self.at.copy(), 1.0, bool(abs(self.at[0]) > 1), False, {}


def learned(env, steps, **given):
    return ravi.learn(env, steps=steps, progress=False, **given)


def test_a_point_finds_its_goal_in_a_plane_without_bounds():
    made = learned(Point(), 5000)
    assert isinstance(made.agent.source, LocalLinear)
    assert made.plays == 5000
    assert made.agent.table.problem.units == (-1, 0)
    steps = [each.steps for each in made.policy().play(Point(), episodes=30, limit=200)]
    assert np.mean(steps) <= 25


def test_rewards_that_were_never_met_widen_the_range():
    """The warm-up of this seed does not come to the goal, which pays 5 where all else pays nothing."""
    made = learned(Point(costs=0.0, pays=5.0), 5000)
    assert made.agent.table.problem.units == (0, 5)
    assert made.agent.state.earned.min() >= 0
    assert made.agent.state.earned.max() <= 1
    assert all(each in (0.0, 5.0) for each in np.round(made.agent.cycles, 9))
    totals = [each.total for each in made.policy().play(Point(costs=0.0, pays=5.0), episodes=30, limit=200)]
    assert np.mean(totals) >= 4


def test_a_car_of_another_name_gets_up_its_mountain():
    """Solved is a mean return of -110 at least. Its bounds are known, but the box begins as what was met: to come to
    the goal in so few steps, exploration must begin coarse and lead out of the box."""
    made = learned(MountainCarEnv(), 3000, seed=1)
    returns = [each.total for each in made.policy().play(MountainCarEnv(), episodes=30, seed=1, limit=200)]
    assert np.mean(returns) >= -110


@pytest.mark.parametrize("seed", [0, 2])
def test_few_cells_are_enough_where_the_policy_goes(seed, monkeypatch):
    """14 x 14 cells over all that is met hold a stick for some 40 steps or less; where their policy goes, for long."""
    monkeypatch.setitem(grid_choice.BINS, 2, 14)
    made = learned(Stick(), 1000, seed=seed)
    assert np.mean([each.steps for each in made.policy().play(Stick(), episodes=20, limit=200)]) >= 100


def test_the_edge_of_a_chosen_grid_is_no_wall():
    """Steps go up by a width, and were met far beyond the grid. The last cell would stay in it and earn what they do:
    it earns the least instead. To explore, what lies beyond is unknown where the grid may grow."""
    grid = ravi.Grid([0.0], [1.0], [10], "clip")
    problem = ravi.mdp("riverswim/11,discount=0.9").problem
    before = np.linspace(0, 20, 81)[:, None]
    told = (before, np.ones_like(before), np.ones(81), np.zeros(81), np.arange(81) % 2, np.array(81))
    state = StepMemory(*(each[None] for each in told), np.zeros((1, 11, 2)))
    for high, unknown in ((np.inf, 0.0), (5.0, 1.0)):
        smooth = LocalLinear(grid, (np.zeros(1), np.full(1, high)))
        model = smooth.model(state, problem)
        assert model.rewards[9].tolist() == [0, 0]
        assert model.rewards[8] == pytest.approx(1)
        assert model.transitions[9, :, model.successors[9, 0] == 9].sum() == 2
        hopeful = smooth.model(state, problem, hope=True)
        assert hopeful.transitions[9, :, -1].tolist() == [unknown, unknown]


def test_a_pole_of_another_name_is_held_for_longer_than_by_chance():
    """Velocities have no bounds. Uniform play holds it for 22 steps in the mean; benchmarks/grids.md has more."""
    made = learned(CartPoleEnv(), 600)
    returns = [each.total for each in made.policy().play(CartPoleEnv(), episodes=20, seed=1, limit=500)]
    assert np.mean(returns) >= 60


def test_actions_of_a_line_are_levels():
    """At 0.8 for ever it earns 1 a step, uniform play 0.7."""
    policy = learned(Line(), 3000).policy()
    assert policy(np.float32([0.3])) == pytest.approx([1], abs=1e-4)
    found = evaluate(policy, Line(), cycles=50)
    assert found.mean * found.cycles > 0.85 * found.plays


@pytest.mark.parametrize(
    ("size", "said"), [(1, "5 levels from [-1] to [1]"), (2, "3 x 3 levels from [-1, -1] to [1, 1]")]
)
def test_levels_of_actions_are_said(size, said):
    class Plane(Point):
        action_space = gym.spaces.Box(-1, 1, (size,), np.float32)

        def step(self, action):
            return super().step(int(action[0] > 0))

    made = learned(Plane(), 40)
    assert dict(made.facts())["actions"] == f"{said} of a Box; a wrapper can set others"
    assert "actions" not in dict(learned(Point(), 40).facts())


def test_a_checkpoint_goes_on(tmp_path):
    with pytest.raises(Broken):
        learned(Point(fail=900), 1200, checkpoint=tmp_path / "a")
    again = learned(Point(), 1200, checkpoint=tmp_path / "a")
    assert again.plays == 1200
    held = learned(Point(), 1200, checkpoint=tmp_path / "a")  # nothing is left to do
    assert all((was == now).all() for was, now in zip(again.agent.state, held.agent.state, strict=True))
    assert held.environment == again.environment
    assert (held.table() == again.table()).all()


def test_what_breaks_in_the_warm_up_is_said():
    refuses(r"step 10: it raised RuntimeError: a broken point", learned, Point(fail=10), 1200, by=StreamError)


def test_what_is_chosen_is_said_and_can_be_said():
    made = learned(Point(), 400)
    assert "60 x 60 cells from" in str(made)
    assert "400 steps of 400" in str(made)
    given = learned(Point(), 400, grid=ravi.Grid(-1, 2, [20, 20], "clip"), reward_range=(-1, 0))
    assert given.environment["observations"]["bins"] == [20, 20]
    assert "grid 20 x 20 cells (given); rewards from -1 to 0 (given)" in str(given)
    refuses(
        "the reward is -1, outside its range from 0 to 1", learned, Point(), 400, by=StreamError, reward_range=(0, 1)
    )


def test_one_step_is_enough_to_begin():
    assert learned(Point(), 1).plays == 1
    assert learned(Point(), 5).plays == 5


def test_angles_and_constants_are_seen():
    """Two cosines and sines, a speed, and a number that never changes."""
    rng = np.random.default_rng(0)
    turns, speed = rng.uniform(-np.pi, np.pi, (300, 2)), rng.normal(size=300)
    columns = [np.cos(turns[:, 0]), np.sin(turns[:, 0]), np.cos(turns[:, 1]), np.sin(turns[:, 1]), speed, 0 * speed + 7]
    space = gym.spaces.Box(-np.inf, np.inf, (6,), np.float32)
    grid, (low, high) = grid_choice._cells(space, np.stack(columns, -1))
    assert (grid.angles, grid.bins) == (2, [25, 25, 25, 1])
    assert grid.low[:2] == [-np.pi, -np.pi]
    assert low.tolist() == [-np.pi, -np.pi, -np.inf, -np.inf]
    assert high.tolist() == [np.pi, np.pi, np.inf, np.inf]


def test_a_grid_that_grows_keeps_its_steps_and_its_policy():
    smooth = LocalLinear(ravi.Grid([0, 0], [1, 1], [10, 10], "clip"), (np.full(2, -np.inf), np.full(2, np.inf)))
    made = learned(Point(), 300, grid=smooth.grid, reward_range=(-1, 0))
    state = made.agent.state
    state.policy[0, :-1] = np.eye(4)[np.arange(100) % 4]
    real, moves = state.before[0] * 0.1, state.move[0] * 0.1
    to = smooth.resized(state, np.array([-1.0, 0.0]), np.array([1.0, 2.0]))
    assert smooth.grid.low == [-1, 0]
    assert smooth.grid.high == [1, 2]
    assert np.allclose(state.before[0] * [0.2, 0.2] + [-1, 0], real, atol=1e-12)
    assert np.allclose(state.move[0] * 0.2, moves, atol=1e-12)
    assert to[0] == 50  # (0.05, 0.05) lies in the sixth of ten cells from -1 to 1, and in the first from 0 to 2
    assert state.policy[0, 77].argmax() == 59 % 4  # (0.5, 1.5) was clipped to (0.5, 0.95)


class Wide(gym.Env):
    """Observations and actions as given, and steps that lead nowhere."""

    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


TWO = gym.spaces.Discrete(2)
BOX = gym.spaces.Box(0, 1, (2,))


@pytest.mark.parametrize(
    ("observations", "actions", "given", "said"),
    [
        (gym.spaces.Box(0, 1, (7,)), TWO, {}, "has 7 coordinates that may vary"),
        (gym.spaces.Box(0, 255, (80, 90, 3), np.uint8), TWO, {}, "whole numbers: discover=True"),
        (gym.spaces.Box(0, 1, (8, 9)), TWO, {}, "has 72 coordinates that may vary"),
        (BOX, TWO, {"termination": "restart"}, "give grid=ravi.Grid"),
        (BOX, gym.spaces.Box(-np.inf, np.inf, (1,)), {}, "is continuous, and learners here choose among finitely many"),
        (BOX, gym.spaces.Box(-1, 1, (3,)), {}, "is continuous, and learners here choose among finitely many"),
    ],
)
def test_what_is_too_much_is_said(observations, actions, given, said):
    refuses(said, learned, Wide(observations, actions), 400, **given)


def test_six_coordinates_are_not_too_many():
    assert learned(Wide(gym.spaces.Box(0, 1, (6,)), TWO), 40).environment["observations"]["bins"] == [5] * 6
