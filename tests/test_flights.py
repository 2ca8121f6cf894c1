"""Seeds that go through their epochs by themselves on a CPU. That every learner does the same then is in test_teams."""

from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import pytest

import ravi
from ravi import engine, flights, ids
from ravi.compiled import Ready
from ravi.worlds import Tabular
from tests.helpers import assert_same_bits

LEARNER, WORLD, T = "ravi-ucb,beta=0.5,eta=0.2", ids.mdp("riverswim/3,discount=0.9"), 60_000
OPTIONS = {"pad": True, "points": 7, "record": ["stream"], "progress": False}


@pytest.fixture
def at_once(monkeypatch):
    """Runs change over at their first look, whatever it costs; afterwards the function is as if it were new."""
    monkeypatch.setattr(flights, "COSTS", dict.fromkeys(flights.COSTS, 0.0))
    monkeypatch.setattr(flights, "OFTEN", 0.002)
    yield
    flights.function_of.cache_clear()


def test_a_run_that_changes_over_has_the_same_bits_and_so_has_one_that_is_stopped_then(at_once, monkeypatch):
    went = []
    here = flights.Here.go
    monkeypatch.setattr(flights.Here, "go", lambda self, epochs: (went.append(epochs), here(self, epochs))[1])
    monkeypatch.setattr(flights, "SEEDS", 0)
    plain = ravi.run(LEARNER, WORLD, T, 3, **OPTIONS)
    assert not went
    monkeypatch.setattr(flights, "SEEDS", 8)
    alone = ravi.run(LEARNER, WORLD, T, 3, **OPTIONS)
    assert sum(went) > 1000
    assert_same_bits(alone.results, plain.results)
    begun = len(went)

    @contextmanager
    def pressed():  # Ctrl-C, after a while
        yield lambda: len(went) > begun + 5

    monkeypatch.setattr(engine, "interrupts", pressed)
    with pytest.raises(ravi.Stopped) as caught:
        ravi.run(LEARNER, WORLD, T, 3, **OPTIONS)
    monkeypatch.undo()
    half = caught.value.run
    assert 0 < half.plays.sum() < 3 * T
    assert_same_bits(ravi.resume(half, LEARNER, WORLD, progress=False).results, plain.results)


def test_a_learner_with_another_plan_and_a_stop_of_ones_own_go_epoch_by_epoch(at_once, monkeypatch):
    monkeypatch.setattr(flights.Here, "go", lambda self, epochs: pytest.fail("it goes by itself"))
    learner, asked = ids.learner(LEARNER, WORLD, 2000), []
    ravi.run(learner._replace(plan=lambda s: learner.plan(s)), WORLD, 2000, 1, **OPTIONS)
    ravi.run(learner, WORLD, 2000, 1, stop=lambda: bool(asked.append(1)), **OPTIONS)
    assert len(asked) > 100


@pytest.mark.parametrize(
    ("text", "seeds", "record", "can"),
    [
        (LEARNER, 16, [], True),
        (LEARNER, 17, [], False),  # more seeds are quicker epoch by epoch
        (LEARNER, 1, ["trajectory"], False),  # scored by sweeps there: other bits
        ("o-reps", 1, [], False),
    ],
)
def test_who_can_change_over(text, seeds, record, can):
    learner = ids.learner(text, WORLD, 100)
    options = {"record": record, "points": 5, "pad": False, "keep_epochs": True, "measured": True}
    change = flights.Change(learner, Tabular(WORLD).scores(learner, 100, options).measures, np.zeros(seeds), 100)
    assert (change.function is not None) == can


@pytest.mark.parametrize(
    ("when", "epochs", "pays"),
    [(Ready.NOW, 0, True), (Ready.LOADED, 50, False), (Ready.LOADED, 1000, True), (Ready.COMPILED, 1000, False),
     (Ready.COMPILED, 10_000, True)],
)  # fmt: skip
def test_a_run_changes_over_where_the_calls_that_it_saves_take_longer(monkeypatch, when, epochs, pays):
    """A hundredth of T is done."""
    monkeypatch.setattr(flights, "ready", lambda function: when)
    monkeypatch.setattr(flights, "_made", defaultdict(int))
    change = flights.Change(ids.learner(LEARNER, WORLD, T), [], np.zeros(1), T)
    assert change.pays(epochs, np.array([T // 100])) == pays


def test_runs_that_are_short_count_together(monkeypatch):
    monkeypatch.setattr(flights, "ready", lambda function: Ready.COMPILED)
    monkeypatch.setattr(flights, "_made", defaultdict(int))
    runs = [flights.Change(ids.learner(LEARNER, WORLD, T), [], np.zeros(1), T) for _ in range(80)]
    assert [change.pays(6000, np.array([T])) for change in runs].index(True) == 69  # 70 x 6000 x 12 us > 5 s
