"""Environments as streams: what a termination and a truncation do, seeds that go on, and streams that are not sound."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ravi import gymnasium as bridge
from ravi.live.environment import Environment, StreamError, seed_of
from ravi.live.grid import Grid
from ravi.mdps.environments import open_environment
from tests.helpers import refuses


class Script(gymnasium.Env):
    """Answers what it is told to; begins in state 0, then 1, then 2, ..."""

    def __init__(self, answers=(), *, observations=None, actions=None):
        self.observation_space = spaces.Discrete(5) if observations is None else observations
        self.action_space = spaces.Discrete(2, start=3) if actions is None else actions
        self.answers, self.played, self.seeds = list(answers), [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        return len(self.seeds) - 1, {}

    def step(self, action):
        self.played.append(action)
        return self.answers.pop(0)


def answer(state=0, reward=0.0, terminated=False, truncated=False):
    return state, reward, terminated, truncated, {}


def counters(stream):
    return {name: getattr(stream, name) for name in ("plays", "resets", "steps", "terminations", "truncations")}


def test_a_terminated_transition_is_absorbed_until_the_reset():
    env = Script([answer(2, 1.5), answer(4, 7.0, terminated=True), answer(1)])
    stream = Environment(env)
    assert (stream.states, stream.actions, stream.terminal) == (6, 2, 5)
    assert stream.reset() == 0
    assert stream.step(0) == (2, 1.5, False)
    assert stream.step(1) == (5, 7.0, False)  # its own reward, and then none
    assert [stream.step(a) for a in (0, 1, 1)] == [(5, 0.0, False)] * 3
    assert env.played == [3, 4]  # actions start at 3; those that were absorbed did not reach it
    assert counters(stream) == {"plays": 5, "resets": 1, "steps": 2, "terminations": 1, "truncations": 0}
    assert stream.reset() == 1
    assert stream.step(0) == (1, 0.0, False)


def test_a_terminated_transition_restarts_where_the_environment_begins():
    env = Script([answer(4, 7.0, terminated=True), answer(3, 1.0)])
    stream = Environment(env, termination="restart")
    assert (stream.states, stream.terminal) == (5, None)
    assert stream.reset() == 0
    assert stream.step(0) == (1, 7.0, False)  # state 1 is where the second reset begins
    assert stream.step(0) == (3, 1.0, False)
    assert counters(stream) == {"plays": 2, "resets": 2, "steps": 2, "terminations": 1, "truncations": 0}


@pytest.mark.parametrize("termination", ["absorb", "restart"])
def test_a_truncated_transition_keeps_its_successor_and_needs_a_reset(termination):
    stream = Environment(Script([answer(4, 2.0, truncated=True), answer(2)]), termination=termination)
    stream.reset()
    assert stream.step(0) == (4, 2.0, True)
    assert counters(stream) == {"plays": 1, "resets": 1, "steps": 1, "terminations": 0, "truncations": 1}
    refuses("step 2: the environment must be reset first", stream.step, 0, by=StreamError)
    assert stream.reset() == 1
    assert stream.step(0) == (2, 0.0, False)


@pytest.mark.parametrize(("termination", "successor"), [("absorb", 5), ("restart", 1)])
def test_a_termination_wins_over_a_truncation(termination, successor):
    stream = Environment(Script([answer(4, 2.0, terminated=True, truncated=True)]), termination=termination)
    stream.reset()
    assert stream.step(0) == (successor, 2.0, False)
    assert (stream.terminations, stream.truncations) == (1, 0)


def test_the_seed_of_a_reset_is_a_function_of_the_seed_and_the_number_of_the_reset():
    env = Script([answer(terminated=True)])
    stream = Environment(env, termination="restart", seed=7)
    stream.reset()
    stream.step(0)
    stream.reset()
    assert env.seeds == [seed_of(7, k) for k in range(3)]
    seeds = {seed_of(seed, k) for seed in range(30) for k in range(30)}
    assert len(seeds) == 900
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) >= 2**62
    assert seed_of(0, 0) == 0x933305F987BCF5FB >> 1  # printf '0 0' | sha256sum; never another: checkpoints depend on it


def played(stream, actions):
    """What a stream answers; it is reset where it is cut or absorbed."""
    answers = []
    for action in actions:
        answers.append(stream.step(action))
        successor, _, cut = answers[-1]
        if cut or successor == stream.terminal:
            answers.append(stream.reset())
    return answers


@pytest.mark.parametrize("termination", ["absorb", "restart"])
def test_a_fresh_environment_goes_on_at_a_reset_bit_for_bit(termination):
    def fresh():
        return Environment("FrozenLake-v1", termination=termination, seed=3)

    actions = np.random.default_rng(0).integers(0, 4, 300).tolist()
    one = fresh()
    one.reset()
    played(one, actions)
    plain = json.loads(json.dumps(one.plain()))
    two = fresh()
    two.restore(plain)
    assert counters(two) == counters(one)
    one.restore(plain)  # also where one stands, the next is a reset
    refuses("must be reset first", one.step, 0, by=StreamError)
    one.restore(plain)
    assert two.reset() == one.reset()
    assert played(two, actions) == played(one, actions)
    assert two.plain() == one.plain()
    assert one.terminations > 10


def test_a_stream_does_not_go_on_as_another():
    plain = Environment("FrozenLake-v1", seed=3).plain()
    for other, fact in [
        (Environment("FrozenLake-v1", seed=4), "seed"),
        (Environment("FrozenLake-v1", termination="restart", seed=3), "termination"),
        (Environment("CliffWalking-v1", seed=3), "name"),
        (Environment(gymnasium.make("FrozenLake-v1", map_name="8x8"), seed=3), "options"),
        (Environment(gymnasium.make("FrozenLake-v1", is_slippery=False), seed=3), "options"),
    ]:
        refuses(f"this stream has {fact}", other.restore, plain)


@pytest.mark.parametrize(("id", "certain"), [("FrozenLake-v1", False), ("CliffWalking-v1", True), ("Taxi-v4", True)])
def test_a_stream_numbers_states_as_the_mdp_of_its_table_does(id, certain):
    mdp = bridge.by_id(id, 0.9, "absorb", "")
    stream = Environment(gymnasium.make(id, max_episode_steps=-1), seed=1)
    assert (stream.states, stream.actions, stream.terminal) == (mdp.states, mdp.actions, mdp.states - 1)
    x = stream.reset()
    for action in np.random.default_rng(1).integers(0, mdp.actions, 3000).tolist():
        y, reward, cut = stream.step(action)
        assert not cut
        assert mdp.transitions[x, action][mdp.successors[x, action] == y].sum() > 0
        if certain:  # one successor, and so one reward
            assert mdp.in_units(mdp.rewards[x, action]) == pytest.approx(reward, abs=1e-12)
        x = stream.reset() if y == stream.terminal else y


def test_a_box_is_cut_by_a_grid_and_actions_may_have_parts():
    class Moving(gymnasium.Env):
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.MultiDiscrete([2, 3])

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.array([0.9, -0.9], np.float32), {}

        def step(self, action):
            assert action in self.action_space
            return np.array([action[0] - 0.5, (action[1] - 1) / 2], np.float32), np.float32(0.5), False, False, {}

    stream = Environment(Moving(), grid=Grid(-1, 1, [2, 4]))
    assert (stream.states, stream.actions) == (9, 6)
    assert stream.reset() == 1 * 4 + 0
    assert stream.step(0) == (0 * 4 + 1, 0.5, False)  # (0, 0): -0.5 and -0.5
    assert stream.step(5) == (1 * 4 + 3, 0.5, False)  # (1, 2): 0.5 and 0.5
    assert type(stream.step(5)[1]) is float


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (answer(5), r"Script, step 1: the observation 5 is not among whole numbers from 0 to 4"),
        (answer(1.0), "step 1: the observation 1.0 is not among"),
        (answer(reward=np.nan), "step 1: the reward is nan, not a finite number"),
        (answer(reward=float("inf")), "step 1: the reward is inf"),
        (answer(reward=np.float32(-np.inf)), "step 1: the reward is -inf"),
        (answer(reward=None), "step 1: the reward is None, not a number"),
        (answer(reward="1"), "step 1: the reward is '1', not a number"),
        (answer(reward=np.array([1.0])), r"step 1: the reward is array\(\[1.\]\), not a number"),
        ((0, 0.0, False, {}), "step 1: it gave .*, not the five values of a step"),
        (None, "step 1: it gave None"),
    ],
)
def test_a_stream_that_is_not_sound_is_an_error_that_names_the_play_and_the_value(given, message):
    stream = Environment(Script([given]))
    stream.reset()
    refuses(message, stream.step, 0, by=StreamError)


@pytest.mark.parametrize("reward", [2, np.float32(2), np.int64(2), np.array(2.0), True + 1])
def test_numbers_of_any_type_are_rewards(reward):
    stream = Environment(Script([answer(reward=reward)]))
    stream.reset()
    assert stream.step(0)[1] == 2.0
    assert type(Environment(Script()).reset()) is int


def test_a_reset_that_is_not_sound_is_an_error():
    class Bad(Script):
        answer = 9, {}

        def reset(self, *, seed=None, options=None):
            return self.answer

    with pytest.raises(StreamError, match="Bad, step 0, reset 1: the observation 9 is not among"):
        Environment(Bad()).reset()
    Bad.answer = 3
    with pytest.raises(StreamError, match="reset 1: it gave 3, not an observation and its info"):
        Environment(Bad()).reset()


@pytest.mark.parametrize("when", ["step", "in place", "reset"])
def test_an_action_set_that_varies_is_an_error_that_names_both(when):
    class Varying(Script):
        def step(self, action):
            if when == "step":
                self.action_space = spaces.Discrete(3)
            elif when == "in place":
                self.action_space.n = np.int64(3)
                self.action_space.start = np.int64(0)
            return super().step(action)

        def reset(self, *, seed=None, options=None):
            if when == "reset" and self.seeds:
                self.action_space = spaces.Discrete(3)
            return super().reset(seed=seed)

    stream = Environment(Varying([answer()]))
    stream.reset()
    steps = [lambda: stream.step(0)] if when == "step" else [lambda: stream.step(0), stream.reset]
    for sound in steps[:-1]:
        sound()
    refuses(r"the actions were whole numbers from 3 to 4, and now are .* from 0 to 2", steps[-1], by=StreamError)


def test_an_action_space_made_anew_with_the_same_actions_is_the_same():
    class Fresh(Script):
        def step(self, action):
            self.action_space = spaces.Discrete(2, start=3)
            return super().step(action)

    stream = Environment(Fresh([answer(), answer()]))
    stream.reset()
    assert [stream.step(0), stream.step(1)] == [(0, 0.0, False)] * 2


def test_plays_before_a_reset_and_actions_that_are_none_are_errors():
    stream = Environment(Script([answer()]))
    refuses("step 1: the environment must be reset first", stream.step, 0, by=StreamError)
    stream.reset()
    for action in (-1, 2):
        refuses(f"action {action}, but actions are 0 to 1", stream.step, action, by=StreamError)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Environment("Nowhere-v0"), "Gymnasium makes no environment of 'Nowhere-v0'"),
        (lambda: Environment(Script), r"Script is a class, not an environment: Script\(\) makes one"),
        (
            lambda: open_environment("FrozenLake-v1", {"map_name": "9x9"}),
            "environment of 'FrozenLake-v1': KeyError: '9x9'",
        ),
        (lambda: Environment(3), "3 is no Gymnasium environment: it has no reset"),
        (lambda: Environment("FrozenLake-v1", termination="stop"), "termination is 'stop', not one of"),
        (lambda: Environment("FrozenLake-v1", seed=-1), "seed is -1; it must be at least 0"),
        (lambda: Environment("CartPole-v1"), "is continuous: say into how many cells"),
        (lambda: Environment(gymnasium.make_vec("FrozenLake-v1", 2, vectorization_mode="sync")), "many environments"),
        (lambda: Environment("Pendulum-v1", grid=Grid(-10, 10, 3)), "is continuous; learners here choose among"),
    ],
)
def test_what_is_no_stream_is_refused(make, message):
    refuses(message, make)
