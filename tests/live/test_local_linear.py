"""What is learned of a Box where nothing is said: how it moves, planned on a grid."""

import gymnasium as gym
import numpy as np
import pytest

import ravi
from ravi.live import local_linear
from ravi.live.encoders import encoder_from
from ravi.live.grid import Grid
from ravi.live.learning import Broken
from ravi.live.local_linear import LocalLinear
from ravi.live.policies import evaluate
from tests.helpers import refuses

PI = np.pi
SLIDE = Grid([0, -0.1], [1, 0.1], [12, 10], "clip")


class Slide(gym.Env):
    """A sledge on [0, 1], pushed to the left or the right. It begins at rest in the middle, is stopped by the wall at
    0, and every step costs 1 until it passes 1: ten pushes to the right, of 0.01 each, take it there."""

    observation_space = gym.spaces.Box(np.float32([0, -1]), np.float32([2, 1]))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, fail=0):
        self.fail, self.steps = fail, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.speed = 0.5, 0.0
        return np.float32([self.at, self.speed]), {}

    def step(self, action):
        self.steps += 1
        if self.steps == self.fail:
            raise RuntimeError("a broken sledge")
        self.speed = float(np.clip(self.speed + (0.01 if action else -0.01), -0.1, 0.1))
        self.at = max(self.at + self.speed, 0.0)
        self.speed = 0.0 if self.at == 0.0 else self.speed
        return np.float32([self.at, self.speed]), -1.0, self.at >= 1.0, False, {}


def learned(steps=800, env=None, **given):
    return ravi.learn(env or Slide(), steps=steps, grid=SLIDE, reward_range=(-1, 0), progress=False, **given)


def test_few_plays_of_a_sledge_are_enough():
    """0.01 (1 + ... + 10) > 0.5: no policy needs fewer than ten steps."""
    made = learned()
    assert isinstance(made.agent.source, LocalLinear)
    assert made.agent.learner.name == "smooth"
    assert [each.steps for each in made.policy().play(Slide(), episodes=3, limit=50)] == [10, 10, 10]


def test_the_policy_is_the_best_of_the_model():
    made = learned()
    found = evaluate(made.policy(), made.agent.model())
    assert found.gap <= 1e-6 * abs(found.optimum)


def test_a_car_gets_up_its_mountain():
    """Solved is a mean return of -110 at least; benchmarks/grids.md has more seeds."""
    made = ravi.learn("MountainCar-v0", steps=10_000, progress=False)
    returns = [each.total for each in made.policy().play(episodes=100, seed=1)]
    assert np.mean(returns) >= -110


def test_moves_are_regressed():
    """Of a world that is linear in its coordinates, every centre is known, exactly but for the ridge."""
    smooth, rng = LocalLinear(SLIDE), np.random.default_rng(0)
    slopes = rng.normal(size=(2, 3))
    before = rng.uniform(0, 10, (200, 2))
    found, distance = smooth.regression(before, before @ slopes + 1)(smooth.centres)
    assert np.allclose(found, smooth.centres @ slopes + 1, atol=1e-4)
    assert distance.max() <= smooth.close


def test_values_are_interpolated():
    smooth = LocalLinear(Grid([-PI, 0], [PI, 1], [6, 4], angles=1))
    cells, weights = smooth._between(np.array([[[5.75, 1.0]]]))  # between the last and the first angle
    places = np.stack(np.unravel_index(cells, (6, 4)), -1)[0, 0].tolist()
    assert places == [[0, 0], [0, 1], [5, 0], [5, 1]]
    assert weights[0, 0] == pytest.approx([0.125, 0.125, 0.375, 0.375])


def test_ends_are_sides_where_that_explains_them():
    """Beyond 1 everything ends, also where no play was near; in the middle, what ended nearest."""
    arrived = np.array([[0.2, 0.1], [0.9, 0.2], [1.2, 0.15], [0.5, 0.5], [0.5, 0.9]])
    ended = np.array([False, False, True, True, False])
    asked = np.array([[1.1, 0.9], [0.5, 0.52], [0.2, 0.2], [0.9, 0.25]])
    assert LocalLinear(SLIDE).ender(arrived, ended)(asked).tolist() == [True, True, False, False]
    assert not LocalLinear(SLIDE).ender(arrived, ended & False)(asked).any()


def test_a_checkpoint_goes_on(tmp_path):
    whole = learned(700)
    with pytest.raises(Broken):
        learned(700, Slide(fail=400), checkpoint=tmp_path / "a")
    again = learned(700, checkpoint=tmp_path / "a")
    assert again.plays == 700
    assert again.agent.state.seen[0] == again.environment["steps"]  # plays after an end tell nothing
    assert (again.table() == whole.table()).mean() > 0.8  # it was reset where it broke
    first = learned(700, checkpoint=tmp_path / "b")
    held = learned(700, checkpoint=tmp_path / "b")  # nothing is left to do
    assert all((was == now).all() for was, now in zip(first.agent.state, held.agent.state, strict=True))


def test_plays_that_are_remembered_are_the_last(monkeypatch):
    monkeypatch.setattr(local_linear, "MOST", 300)
    made = learned(600)
    assert made.agent.state.before.shape == (1, 300, 2)
    assert made.agent.state.seen[0] > 300
    assert np.isfinite(made.agent.model().rewards).all()


def test_no_interval_speaks_of_a_cell():
    made = learned(300)
    assert made.interval() is None
    assert "states are cells of a Box" in str(made)


def test_other_choices_are_as_before():
    assert learned(50, termination="restart").agent.source == "psrl/pooled"
    huge = Grid([0, -0.1], [1, 0.1], [1000, 1000], "clip")
    assert not LocalLinear.fits(huge)


def test_angles_are_cut_for_their_cosines_and_sines():
    grid = Grid([-PI, -8], [PI, 8], [8, 4], angles=1)
    assert grid.shape == (3,)
    for number in range(grid.size):
        assert grid.number(grid.observation(number)) == number
    assert grid.coordinates([0, -1, 2]) == [-PI / 2, 2]
    assert encoder_from(grid.plain()).plain() == grid.plain()
    assert "angles" not in SLIDE.plain()  # as files had it
    refuses("from low = -pi to high = pi", Grid, [0, -8], [PI, 8], [8, 4], angles=1)
    refuses("no cosines and sines", grid.over, (2, 2), "float64")
    refuses("is not over 2 angles", Grid, [-PI], [PI], [8], angles=2)
