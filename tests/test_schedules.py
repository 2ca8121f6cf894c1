"""Epochs end when their schedules say so, to the step."""

from typing import NamedTuple

import numpy as np
import pytest

from ravi import ids
from ravi.core import Array, Learner, Until
from ravi.estimators.counts import Counts, tallies, tally
from ravi.runtime.api import run
from ravi.schedules import doubling
from tests.helpers import spy

T = 600
WORLD = ids.mdp("garnet/5,2,3,discount=0.8")


class Counting(NamedTuple):
    data: Counts
    policy: Array


def counting(until):
    """The uniform policy, counted."""
    X, A = WORLD.states, WORLD.actions

    def init(keys):
        return Counting(tallies(WORLD.problem, len(keys)), np.full((len(keys), X, A), 1 / A))

    def add(state, path):
        tally(state.data, path)
        return state

    return Learner("counting", init, lambda state: state, add, until, {})


def over_doubling(n, plays):
    return (plays >= np.maximum(n, 1)).any()


def over_third(n, plays):
    return ((plays > 0) & (plays >= 0.3 * n)).any()


def a_third_more(state, time):
    return Until(reset=False, visits=np.maximum(np.ceil(0.3 * state.data.visits), 1).astype(np.int32))


@pytest.mark.parametrize(("until", "over"), [(doubling(), over_doubling), (a_third_more, over_third)])
def test_an_epoch_ends_at_the_first_play_that_its_schedule_names(until, over):
    made = run(counting(until), WORLD, T, 3, record=["stream"])
    for seed in range(3):
        starts, t0 = [1], 0
        n, plays = np.zeros((2, WORLD.states, WORLD.actions))
        for t in range(1, T + 1):
            x, a = made.results["stream_state"][seed, t - 1], made.results["stream_action"][seed, t - 1]
            plays[x, a] += 1
            if over(n, plays) and t < T:
                starts.append(t + 1)
                n, plays, t0 = n + plays, np.zeros_like(plays), t
        assert made.T_k[seed].tolist() == starts
        assert t0 > 0


def test_counts_of_a_blind_learner_are_of_moves_to_where_resets_led():
    made = run("ucrl2,mode=blind,scale=0.1", WORLD, T, 2, record=["stream"])
    states, actions = made.results["stream_state"], made.results["stream_action"]
    data, at = made.batch.state.data, made.batch.walkers.state
    for seed in range(2):
        moves, after = np.zeros_like(data.moves[seed]), np.append(states[seed, 1:], at[seed])
        np.add.at(moves, (states[seed], actions[seed], after), 1)
        assert (data.moves[seed] == moves).all()
        assert (data.visits[seed] == moves.sum(-1)).all()


def test_a_run_by_visits_does_not_depend_on_the_length_of_its_paths(monkeypatch):
    from ravi.runtime import python as python_driver
    from ravi.runtime.walk import empty_path

    whole, short = [], []
    run(counting(doubling()), WORLD, T, 3, measures=[spy(whole)])
    monkeypatch.setattr(python_driver, "empty_path", lambda n, length: empty_path(n, 3))
    run(counting(doubling()), WORLD, T, 3, measures=[spy(short)])
    assert len(whole) == len(short)
    for (state, _), (other, _) in zip(whole, short, strict=True):
        assert (state.data.visits == other.data.visits).all()
