"""A job hands out every run once, takes back what was lost, and learns how large a batch may be."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ravi.experiments.jobs import FAILED, GIVEN, LEFT, LOST, MOST, STORED, Job
from ravi.experiments.settings import Setting

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


def test_batches_grow_to_a_second_and_not_beyond():
    job, sizes = job_of(range(10_000), steps=1_000_000), []
    while batch := job.batch():
        sizes.append(len(batch))
        job.timed(len(batch), 0.01 * len(batch))  # a hundred seeds a second
    assert sizes[:3] == [1, 4, 16]
    assert set(sizes[5:-1]) == {100}
    slow = job_of(range(50))
    first = slow.batch()
    slow.timed(len(first), 20.0 * len(first))
    assert len(slow.batch()) == 1
    quick = job_of(range(5000), steps=10)
    quick.timed(1000, 1e-6)
    assert len(quick.batch()) == MOST


def test_a_driver_that_goes_the_other_way_begins_with_the_last_seeds():
    job = job_of(range(100), steps=250_000)
    job.backwards = True
    assert job.batch() == [96, 97, 98, 99]


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


def test_a_batch_is_taken_up_whole_or_not_at_all():
    job = job_of(range(5))
    assert job.give([1, 2]) == [1, 2]
    assert job.give([2, 3]) == []
    assert job.give([3, 9]) == []
    assert job.state.tolist() == [LEFT, GIVEN, GIVEN, LEFT, LEFT]


@given(st.lists(st.tuples(st.sampled_from(["add", "batch", "settle", "fail"]), st.integers(0, 12))))
def test_the_counts_are_those_of_the_states(moves):
    job = Job(SETTING)
    for what, k in moves:
        if what == "add":
            before = dict(zip(job.seeds.tolist(), job.state.tolist(), strict=True))
            job.add(range(k, k + 3))
            after = dict(zip(job.seeds.tolist(), job.state.tolist(), strict=True))
            assert after == dict.fromkeys(range(k, k + 3), LEFT) | before
        elif what == "batch":
            job.batch()
        else:
            settle(job, [k], failed=what == "fail")
        assert job.left == (job.state == LEFT).sum()
        assert job.under_way == (job.state == GIVEN).sum()
        assert (np.diff(job.seeds) > 0).all()
        assert np.isinf(job.regrets).sum() == (job.state == FAILED).sum()
