"""Tuning is fair by construction: the same list for everyone, an equal budget, the first of the best."""

from contextlib import suppress
from math import inf

import numpy as np
import pytest

from ravi.lab.experiments.agenda import LOST, Runs
from ravi.lab.experiments.plan import Setting, Subject
from ravi.lab.experiments.suite import Tuning
from ravi.lab.experiments.tuning import Configuration, Trials, best, by_lattice, by_optuna, lacking, lattice

BOTH = ("scale", "step_scale")
BASE = Setting("riverswim/6", "d" * 64, "ravi-ucb", "", 1000, 1)


def spend(search, regret):
    """Everything that a search asks for, when it is given regret(configuration)."""
    asked, fresh = [], next(search)
    with suppress(StopIteration):
        while True:
            asked += fresh
            fresh = search.send([regret(configuration) for configuration in fresh])
    return asked


def test_the_first_configuration_is_the_published_one():
    assert lattice(Tuning())[0] == Configuration(1.0, 1.0)
    for search in (by_lattice, by_optuna):
        assert next(search(Tuning(), BOTH, "a" * 20))[0] == Configuration(1.0, 1.0)


@pytest.mark.parametrize("search", [by_lattice, by_optuna])
@pytest.mark.parametrize("multipliers", [BOTH, ("scale",), ("step_scale",)])
def test_every_learner_gets_the_same_number_of_configurations(search, multipliers):
    tuning = Tuning(budget=12)
    asked = spend(search(tuning, multipliers, "a" * 20), lambda c: abs(np.log((c.scale or 1) * (c.step_scale or 1))))
    assert len(asked) == 12
    for name, (low, high) in (("scale", tuning.scale), ("step_scale", tuning.step_scale)):
        values = [getattr(configuration, name) for configuration in asked]
        if name in multipliers:
            assert all(low <= value <= high for value in values)
            assert len(set(values)) > 6
        else:
            assert set(values) == {None}


def test_the_lattice_reaches_the_ends_of_the_bonus_range_and_spreads_over_the_other():
    pairs = lattice(Tuning(budget=20, scale=(1e-4, 1.0), step_scale=(1.0, 100.0)))
    assert (pairs[0].scale, pairs[-1].scale) == (1.0, 1e-4)
    steps = np.sort(np.log10([pair.step_scale for pair in pairs]) / 2)
    assert np.diff(np.concatenate([[0], steps, [1]])).max() < 0.15  # no gap wider than three of twenty


def test_learners_with_one_multiplier_get_the_same_values_as_those_with_two():
    two, one = (next(by_lattice(Tuning(), names, "")) for names in (BOTH, ("scale",)))
    assert [pair.scale for pair in two] == [pair.scale for pair in one]


def test_a_budget_of_one_is_the_published_constants():
    assert lattice(Tuning(budget=1)) == [Configuration(1.0, 1.0)]


def test_optuna_is_led_by_what_it_is_told_and_repeats_itself():
    def regret(configuration):
        return abs(np.log10(configuration.scale) + 3)  # best at 0.001

    first = spend(by_optuna(Tuning(budget=25), ("scale",), "0123456789"), regret)
    assert first == spend(by_optuna(Tuning(budget=25), ("scale",), "0123456789"), regret)
    assert first != spend(by_optuna(Tuning(budget=25), ("scale",), "9876543210"), regret)
    late = [regret(configuration) for configuration in first[15:]]
    assert np.mean(late) < 0.6  # 1.1 for a uniform search
    assert spend(by_optuna(Tuning(budget=5), ("scale",), "0"), lambda c: inf)  # all failing is no error


def test_the_first_of_equals_is_chosen_and_failures_never():
    assert best([3.0, 1.0, 1.0, inf]) == 1
    assert best([inf, inf]) is None
    assert best([]) is None


def tried(regrets, tuning):
    trials = Trials(Subject("a" * 20, BASE, BOTH), tuning)
    for configuration, values in zip(trials.ask(), regrets, strict=True):
        job = Runs(BASE)
        job.add(tuning.seeds)
        failed = np.isinf(values)
        job.settle(np.array(tuning.seeds), failed, np.array(values))
        trials.tried.append((configuration, job))
    return trials


def test_the_record_holds_all_that_was_tried_and_what_was_chosen():
    tuning = Tuning(budget=3, seeds=(7, 8))
    trials = tried([[4.0, 6.0], [1.0, 2.0], [0.0, inf]], tuning)
    assert trials.ask() == []
    record = trials.record()
    assert record["chosen"] == 1  # the third had a failure
    assert [one["regret"] for one in record["configurations"]] == [5.0, 1.5, None]
    assert [one["failed"] for one in record["configurations"]] == [0, 0, 1]
    assert record["configurations"][0]["standard_error"] == pytest.approx(1.0)
    assert record["seeds"] == [7, 8]


def test_nothing_is_chosen_before_every_run_is_stored():
    tuning = Tuning(budget=2, seeds=(7, 8))
    trials = tried([[4.0, 6.0], [1.0, 2.0]], tuning)
    trials.tried[1][1].add([9])
    assert trials.ask() == []  # seed 9 is not a tuning seed
    late = tried([[4.0, 6.0], [1.0, 2.0]], tuning)
    late.tried[0][1].state[1] = 0
    assert late.ask() is None


def test_nothing_is_chosen_where_a_trial_was_lost():
    """By no fault of the learner: the others could make another one the best."""
    tuning = Tuning(budget=3, seeds=(7, 8))
    trials = tried([[4.0, 6.0], [1.0, inf], [2.0, 2.0]], tuning)
    job = trials.tried[1][1]
    job.state[1] = LOST
    job.regrets[1] = np.nan
    assert trials.ask() is None
    assert trials.lost == 1
    record = trials.record()
    assert (record["chosen"], record["missing"]) == (None, 1)
    assert [one["missing"] for one in record["configurations"]] == [0, 1, 0]
    assert [one["regret"] for one in record["configurations"]] == [5.0, None, 2.0]
    assert lacking(record) == "tuning incomplete: 1 of 6 trials missing"
    job.settle(np.array([8]), np.array([False]), np.array([1.0]))
    assert trials.ask() == []
    assert (trials.record()["chosen"], trials.record()["missing"], lacking(trials.record())) == (1, 0, "")


def test_what_is_missing_of_a_search_that_goes_step_by_step_is_all_that_was_not_tried():
    trials = Trials(Subject("a" * 20, BASE, BOTH), Tuning(budget=5, seeds=(7, 8), sampler="optuna"))
    (configuration,) = trials.ask()
    job = Runs(BASE)
    job.add((7, 8))
    job.settle(np.array([7, 8]), np.array([False, True]), np.array([1.0, np.nan]), np.array([False, True]))
    trials.tried.append((configuration, job))
    assert trials.ask() is None
    assert trials.record()["missing"] == 9


def test_no_configuration_is_beyond_the_ends_of_its_range():
    tuning = Tuning(budget=20, scale=(0.12345, 0.98765), step_scale=(1.2345, 5.0))
    for pair in lattice(tuning):
        assert 0.12345 <= pair.scale <= 0.98765
        assert 1.2345 <= pair.step_scale <= 5.0
