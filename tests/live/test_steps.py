"""Steps in a row are steps one by one: the same files, whatever ends a row."""

from bisect import bisect_right
from functools import partial

import numpy as np
import pytest

from ravi.live.agent import Agent, thresholds
from ravi.live.learning import Broken, learn
from ravi.random import uniform
from ravi.runtime import archive
from ravi.runtime.walk import draw

gym = pytest.importorskip("gymnasium")
LEARNERS = [None, "uniform", "q-learning", "ravi-ucb", "psrl", "ravi-kl,support=off", "mbie-eb,scale=1e-4"]


def one_by_one(monkeypatch):
    def single(self, x, step, *, single=False):
        a = self.act(x)
        self.outside = True
        answer = step(a)
        self.outside = False
        return x, a, *answer

    monkeypatch.setattr(Agent, "play", single)


def files_of(monkeypatch, tmp_path, play):
    """What `play` leaves in a checkpoint, in a row and one by one."""
    for name in ("row", "one"):
        if name == "one":
            one_by_one(monkeypatch)
        play(tmp_path / name)
    return [archive.read(tmp_path / name, "agent") for name in ("row", "one")]


def same(row, one):
    assert row[0] == one[0]
    assert row[1].keys() == one[1].keys()
    for name, array in row[1].items():
        assert array.dtype == one[1][name].dtype, name
        assert array.tobytes() == one[1][name].tobytes(), name


@pytest.mark.parametrize("limit", [-1, 7])
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_row_of_steps_leaves_the_file_of_single_steps(learner, limit, monkeypatch, tmp_path):
    def play(path):
        env = gym.make("FrozenLake-v1", max_episode_steps=limit)
        learn(env, learner, 3000, discount=0.95, checkpoint=path)

    same(*files_of(monkeypatch, tmp_path, play))


@pytest.mark.parametrize("learner", [None, "uniform", "q-learning", "psrl"])
@pytest.mark.parametrize("at", [1, 2, 40, 777])
def test_an_environment_that_breaks_off_within_a_row_leaves_what_came_before(learner, at, monkeypatch, tmp_path):
    class Breaks(gym.Wrapper):
        left = at

        def step(self, action):
            self.left -= 1
            if self.left == 0:
                raise OSError("the cable")
            return super().step(action)

    given = {"discount": 0.99, "termination": "restart", "reward_range": (0, 1)}

    def play(path):
        env = gym.make("FrozenLake-v1", max_episode_steps=-1)
        with pytest.raises(Broken, match=f"step {at}: it raised OSError: the cable"):
            learn(Breaks(env), learner, 3000, **given, checkpoint=path)
        learn(env, learner, 3000, **given, checkpoint=path)

    same(*files_of(monkeypatch, tmp_path, play))


def test_a_reward_out_of_range_within_a_row_is_told_with_its_step(monkeypatch, tmp_path):
    class Pays(gym.Wrapper):
        made = 0

        def step(self, action):
            y, reward, *rest = super().step(action)
            self.made += 1
            return y, reward + 7.0 * (self.made == 55), *rest

    def play(path):
        env = Pays(gym.make("FrozenLake-v1", max_episode_steps=-1))
        with pytest.raises(Broken, match=r"step 55: the reward .* is 7, outside its range"):
            learn(env, "uniform", 3000, discount=0.99, termination="restart", reward_range=(0, 1), checkpoint=path)

    same(*files_of(monkeypatch, tmp_path, play))


def test_thresholds_draw_what_a_walk_draws():
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.full(5, 0.3)) * (rng.random(5) < 0.6) for _ in range(50)]
    rows = [row / row.sum() for row in rows if row.sum() > 0] + [np.eye(3)[2], np.full(3, 1 / 3, np.float32)]
    numbers = partial(uniform, np.uint64(3), 1)
    for row in rows:
        edges = np.cumsum(row, dtype=np.float64)
        near = [np.nextafter(edge, side) for edge in edges for side in (0.0, 2.0)]
        for u in [0.0, np.nextafter(1.0, 0.0), *edges, *near, *(numbers(i) for i in range(20))]:
            if 0 <= u < 1:
                assert bisect_right(thresholds(row.tolist()), u) == draw(row, u)
