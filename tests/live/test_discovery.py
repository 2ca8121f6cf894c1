"""States and actions that are met on the way."""

import json
import re
from enum import IntEnum

import numpy as np
import pytest

from ravi import discover, ids
from ravi.live.discovery import Discovery
from ravi.live.encoders import Labels, label_of
from ravi.validation import InputError, StreamError
from tests.helpers import refuses
from tests.live.test_agent import everything


class Maze:
    """Rooms in a row, as texts and tuples: from each one can go on, and back; in the last one can wait."""

    def __init__(self, rooms=40, seed=0):
        self.rooms, self.rng = rooms, np.random.default_rng(seed)

    def label(self, i):
        return ("room", i) if i % 2 else f"room {i}"

    def number(self, x):
        return x[1] if isinstance(x, tuple) else int(x.split()[1])

    def actions(self, x):
        i = self.number(x)
        return (["on"] if i + 1 < self.rooms else ["wait"]) + (["back"] if i else []) + (["sing"] if i == 7 else [])

    def play(self, x, a):
        i = self.number(x)
        to = {"on": i + 1, "back": i - 1}.get(a, i)
        y = to if self.rng.random() < 0.95 else i
        return self.label(y), float(i + 1 == self.rooms)


def walked(found, maze, plays, x="room 0"):
    for _ in range(plays):
        a = found.act(x, maze.actions(x))
        y, reward = maze.play(x, a)
        x = "room 0" if found.observe(x, a, y, reward) else y
    return found


@pytest.mark.parametrize(
    "learner", ["ravi-ucb,scale=0.001,eta=1", "psrl", "q-learning", "ucrl2,scale=0.01", "lsvi-ucb,scale=0.01"]
)
def test_a_table_grows_with_what_is_met(learner):
    found = walked(discover(learner, 3000, discount=0.95), Maze(20), 2000)
    met = found.states.size
    assert met > 3
    assert found.agent.visits.sum() == 2000 - 1
    assert found.agent.table.states >= met
    assert len(set(found.states.labels)) == met
    for label in found.states.labels:
        chances = found.probabilities(label)
        assert sum(chances.values()) == pytest.approx(1) or chances == {}
    assert found.probabilities("nowhere") == {}


@pytest.mark.parametrize("learner", ["uniform", "ravi-ucb,scale=0.01,eta=0.1", "ravi-ucb+", "mdp-e", "q-learning"])
def test_actions_that_come_later_are_played(learner):
    """The first state has one action; those that are met later have more, and all of them are played."""
    found = discover(learner, 3000, discount=0.9, seed=1)
    x, played = "door", set()
    offered = {"door": ["in"], "hall": ["left", "right", "wait"], "garden": ["back", "sit"]}
    to = {"in": "hall", "left": "garden", "right": "hall", "wait": "hall", "back": "door", "sit": "garden"}
    for _ in range(3000):
        a = found.act(x, offered[x])
        played.add(a)
        x = "door" if found.observe(x, a, to[a], float(a == "sit")) else to[a]
    assert played == set(to)


def test_a_policy_that_grows_is_one():
    found = discover("ravi-ucb,scale=0.001,eta=1", 3000, discount=0.95)
    maze = Maze(20)
    walked(found, maze, 300)
    before = found.agent.policy
    found.agent.grow(40, 7)
    after = found.agent.policy
    A = before.shape[1]
    np.testing.assert_allclose(after[: len(before), :A], before * A / 7, rtol=1e-12)
    np.testing.assert_allclose(after.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(np.exp(found.agent.state.log_policy[0]), after, rtol=1e-12)


def test_a_learner_finds_the_end_of_a_maze_that_it_did_not_know():
    maze = Maze(12)
    found = walked(discover("psrl", 20_000, discount=0.97, reward_scale=0.0), maze, 20_000)
    assert found.states.size == 12
    assert found.agent.table.actions == 3
    assert found.agent.earned.value > 0.4
    assert found.probabilities("room 4")["on"] > 0.99


@pytest.mark.parametrize("plays", [1, 37, 400])
def test_it_goes_on_from_a_file_bit_for_bit(tmp_path, plays):
    maze = Maze(20)
    found = walked(discover("ravi-ucb,scale=0.001,eta=1", 3000, discount=0.95), maze, plays)
    found.save(tmp_path / "maze.agent")
    again = Discovery.load(tmp_path / "maze.agent")
    assert again.states.labels == found.states.labels
    assert again.actions == found.actions
    for one in (found, again):
        one.agent._pending = (*one.agent._pending[:4], True, False)  # a reset
        walked(one, Maze(20, seed=5), 500)
    assert everything(found.agent) == everything(again.agent)


def test_a_set_of_actions_that_varies_is_told():
    found = discover("psrl", 100, discount=0.9)
    a = found.act("here", ["left", "right"])
    found.observe("here", a, "here", 0.5)
    refuses(
        re.escape("the actions of state 'here' were ['left', 'right'], and now are ['left']"),
        found.act,
        "here",
        ["left"],
        by=StreamError,
    )
    assert found.act("here", ["right", "left"]) in ("left", "right")  # the same set, in another order


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda found: found.act("x", []), "state 'x' has no actions"),
        (lambda found: found.act("x", ["a", "a"]), "are not distinct"),
        (lambda found: found.act(0.5, ["a"]), "0.5 cannot be a label"),
        (lambda found: found.act({1: 1}, ["a"]), "cannot be a label"),
        (lambda found: found.observe("x", "a", "y", 0.0), "act comes first"),
        (lambda found: found.observe("x", found.act("y", ["a"]), "y", 0.0), "but the agent chose 'a' in state 'y'"),
        (lambda found: found.observe("y", found.act("y", ["a"]), "z", np.nan), "is nan"),
    ],
)
def test_a_bad_stream_is_told(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call(discover("psrl", 100, discount=0.9))


def test_a_bad_reward_leaves_no_trace():
    found = discover("psrl", 100, discount=0.9)
    a = found.act("x", ["a"])
    with pytest.raises(InputError):
        found.observe("x", a, "new", 7.0)
    assert found.states.labels == ["x"]
    found.observe("x", a, "new", 0.5)
    assert found.states.labels == ["x", "new"]


def test_labels_are_told_apart():
    """1, True and "1" are three things, as they are in a file."""
    labels = Labels()
    met = [1, True, "1", (1, 2), ((1, 2), "x"), None, 0, False]
    assert [labels.number(label) for label in met] == list(range(8))
    assert [labels.number(label) for label in met] == list(range(8))
    assert labels.number(np.int64(1)) == 0
    assert labels.number(np.array([1, 2])) == 3
    assert labels.number([1, 2]) == 3
    again = Labels.of(labels.plain())
    assert [again.number(label) for label in met] == list(range(8))
    assert label_of(np.bool_(True)) is True


def test_a_mixture_cannot_grow():
    refuses("has no features", discover, "ravi-ucb/mixture", 100, discount=0.9)
    world = ids.mdp("riverswim/mixture/5,discount=0.9")
    from ravi.live.agent import agent

    with pytest.raises(InputError, match="has features; a table with features cannot grow"):
        agent("ravi-ucb/mixture", world.problem, 100).grow(9, 2)


def test_to_ask_for_a_state_does_not_meet_it():
    found = discover("ravi-ucb,scale=0.01", 100, discount=0.9)
    found.act(1, ["left", "right"])
    for stranger in (True, 2, "1", (1,)):  # 1 == True, but they are two labels
        assert found.probabilities(stranger) == {}
    assert found.states.labels == [1]
    assert set(found.probabilities(1)) == {"left", "right"}


def test_texts_and_numbers_of_any_type_are_labels_that_a_file_gives_back():
    class Colour(IntEnum):
        RED = 1

    for one, same in [("a", np.str_("a")), (1, Colour.RED), (2, np.int8(2)), ((("k", 3),), {"k": np.int64(3)})]:
        labels = Labels()
        assert labels.number(one) == labels.number(same) == 0
        assert Labels.of(json.loads(json.dumps(labels.plain()))).number(same) == 0
    assert label_of({"b": 1, "a": 0}) == label_of({"a": 0, "b": 1})
