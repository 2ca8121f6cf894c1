"""A job hands out every run once, takes back what was not begun, and knows where every run stands."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ravi.lab.experiments.schedule.jobs import FAILED, GIVEN, LEFT, LOST, MOST, STORED, Job
from ravi.lab.experiments.schedule.settings import Setting

SETTING = Setting("riverswim/6", "d" * 64, "ravi-ucb", "", 10_000, 10)


def job_of(seeds, steps=10_000):
    job = Job(Setting("riverswim/6", "d" * 64, "ravi-ucb", "", steps, 10))
    job.add(seeds)
    return job


def settle(job, seeds, failed=False):
    n = len(seeds)
    return job.settle(np.array(seeds), np.full(n, failed), np.arange(n, dtype=float))


def test_every_seed_is_handed_out_once():
    job, seen = job_of(range(100)), []
    while batch := job.batch():
        seen += batch
        job.timed(len(batch), 0.5)
    assert sorted(seen) == list(range(100))
    assert (job.left, job.under_way) == (0, 100)


def test_a_batch_is_as_wide_as_it_may_be():
    job = job_of(range(2 * MOST))
    assert job.batch(3) == [0, 1, 2]
    assert len(job.batch(10 * MOST)) == MOST
    assert len(job.batch()) == MOST - 3
    assert job_of(range(5)).batch(64) == [0, 1, 2, 3, 4]


def test_what_was_handed_out_and_not_begun_goes_out_again():
    job = job_of(range(6))
    job.batch()
    settle(job, [0])
    job.put_back([0, 2, 3])
    assert (job.left, job.under_way) == (2, 3)
    assert job.batch() == [2, 3]


def test_a_driver_that_goes_the_other_way_begins_with_the_last_seeds():
    job = job_of(range(100))
    job.backwards = True
    assert job.batch(4) == [96, 97, 98, 99]


def test_a_success_outranks_a_failure_in_any_order():
    job = job_of([5, 6])
    assert settle(job, [5], failed=True) == (1, 1)
    assert settle(job, [5], failed=True) == (0, 0)
    assert settle(job, [5]) == (0, -1)
    assert settle(job, [5], failed=True) == (0, 0)
    assert job.state.tolist() == [STORED, LEFT]
    both = job.settle(np.array([6, 6]), np.array([False, True]), np.array([3.0, np.nan]))
    assert both == (1, 0)
    assert job.regrets.tolist() == [0.0, 3.0]


def test_what_was_lost_is_not_handed_out_again_and_anything_outranks_it():
    job = job_of([5, 6, 7])
    lost = np.array([True, True, True])
    assert job.settle(job.seeds, lost, np.full(3, np.nan), lost) == (3, 3)
    assert not job.batch()
    assert (job.settled([5, 6, 7]), job.known([5, 6, 7]), job.lost([5, 6, 7])) == (True, 0, 3)
    assert settle(job, [5]) == (0, -1)
    assert settle(job, [6], failed=True) == (0, 0)
    assert job.settle(job.seeds, lost, np.full(3, np.nan), lost) == (0, 0)
    assert job.state.tolist() == [STORED, FAILED, LOST]
    assert (job.known([5, 6, 7]), job.lost([5, 6, 7])) == (2, 1)


def test_seeds_of_others_are_let_pass():
    job = job_of([1, 3])
    assert settle(job, [0, 2, 9]) == (0, 0)
    assert job.state.tolist() == [LEFT, LEFT]
    assert job.places([0, 1, 2, 3, 4]).tolist() == [-1, 0, -1, 1, -1]
    assert job_of([]).places([1]).tolist() == [-1]
    assert not job_of([]).batch()


def test_of_a_batch_that_is_taken_up_go_out_those_that_are_to_be_run():
    job = job_of(range(5))
    assert job.give([1, 2]) == [1, 2]
    assert job.give([2, 3, 9]) == [3]
    settle(job, [0])
    assert job.give([0, 1]) == []
    assert job.state.tolist() == [STORED, GIVEN, GIVEN, GIVEN, LEFT]
    assert job.unsettled([0, 2, 4]) == [2, 4]


@given(st.lists(st.tuples(st.sampled_from(["add", "batch", "back", "settle", "fail"]), st.integers(0, 12))))
def test_the_counts_are_those_of_the_states(moves):
    job = Job(SETTING)
    for what, k in moves:
        if what == "add":
            before = dict(zip(job.seeds.tolist(), job.state.tolist(), strict=True))
            job.add(range(k, k + 3))
            after = dict(zip(job.seeds.tolist(), job.state.tolist(), strict=True))
            assert after == dict.fromkeys(range(k, k + 3), LEFT) | before
        elif what == "batch":
            assert len(job.batch(k + 1)) <= k + 1
        elif what == "back":
            job.put_back([seed for seed in range(k) if seed in job.seeds])
        else:
            settle(job, [k], failed=what == "fail")
        assert job.left == (job.state == LEFT).sum()
        assert job.under_way == (job.state == GIVEN).sum()
        assert (np.diff(job.seeds) > 0).all()
        assert np.isinf(job.regrets).sum() == (job.state == FAILED).sum()
