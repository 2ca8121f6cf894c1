"""The runs of a setting know where each stands, and are divided into jobs that every driver names alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ravi.lab.experiments.agenda import FAILED, LEFT, LOST, MOST, STORED, Job, Runs, jobs_of
from ravi.lab.experiments.plan import Setting


def setting_of(learner="ravi-ucb", steps=10**6):
    return Setting("riverswim/6", "d" * 64, learner, "", steps, 10)


def runs_of(seeds):
    runs = Runs(setting_of())
    runs.add(seeds)
    return runs


def settle(runs, seeds, failed=False):
    n = len(seeds)
    return runs.settle(np.array(seeds), np.full(n, failed), np.arange(n, dtype=float))


def test_a_success_outranks_a_failure_in_any_order():
    runs = runs_of([5, 6])
    assert settle(runs, [5], failed=True) == (1, 1)
    assert settle(runs, [5], failed=True) == (0, 0)
    assert settle(runs, [5]) == (0, -1)
    assert settle(runs, [5], failed=True) == (0, 0)
    assert runs.state.tolist() == [STORED, LEFT]
    both = runs.settle(np.array([6, 6]), np.array([False, True]), np.array([3.0, np.nan]))
    assert both == (1, 0)
    assert runs.regrets.tolist() == [0.0, 3.0]


def test_what_was_lost_is_not_left_and_anything_outranks_it():
    runs = runs_of([5, 6, 7])
    lost = np.array([True, True, True])
    assert runs.settle(runs.seeds, lost, np.full(3, np.nan), lost) == (3, 3)
    assert (runs.left, runs.unsettled([5, 6, 7]), runs.known([5, 6, 7]), runs.lost([5, 6, 7])) == (0, (), 0, 3)
    assert settle(runs, [5]) == (0, -1)
    assert settle(runs, [6], failed=True) == (0, 0)
    assert runs.settle(runs.seeds, lost, np.full(3, np.nan), lost) == (0, 0)
    assert runs.state.tolist() == [STORED, FAILED, LOST]
    assert (runs.known([5, 6, 7]), runs.lost([5, 6, 7])) == (2, 1)


def test_seeds_of_others_are_let_pass():
    runs = runs_of([1, 3])
    assert settle(runs, [0, 2, 9]) == (0, 0)
    assert runs.unsettled([1, 3]) == (1, 3)
    assert runs.places([0, 1, 2, 3, 4]).tolist() == [-1, 0, -1, 1, -1]
    assert runs_of([]).places([1]).tolist() == [-1]


@given(st.lists(st.tuples(st.sampled_from(["add", "settle", "fail"]), st.integers(0, 12))))
def test_the_counts_are_those_of_the_states(moves):
    runs = Runs(setting_of())
    for what, k in moves:
        if what == "add":
            before = dict(zip(runs.seeds.tolist(), runs.state.tolist(), strict=True))
            runs.add(range(k, k + 3))
            after = dict(zip(runs.seeds.tolist(), runs.state.tolist(), strict=True))
            assert after == dict.fromkeys(range(k, k + 3), LEFT) | before
        else:
            settle(runs, [k], failed=what == "fail")
        assert runs.left == (runs.state == LEFT).sum() == len(runs.unsettled(runs.seeds))
        assert (np.diff(runs.seeds) > 0).all()
        assert np.isinf(runs.regrets).sum() == (runs.state == FAILED).sum()


def shapes(settings, seeds, workers, device="cpu", steps=10**6):
    several = [setting_of(f"ravi-ucb,scale={i}", steps) for i in range(settings)]
    jobs = list(jobs_of(several, np.arange(seeds), workers, device))
    runs = [(setting.learner, seed) for job in jobs for setting in job.variants for seed in job.seeds]
    assert len(runs) == len(set(runs)) == settings * seeds  # every run once
    return [(len(job.variants), len(job.seeds)) for job in jobs]


@pytest.mark.parametrize(
    ("settings", "seeds", "workers", "steps", "found"),
    [
        (1, 0, 2, 10**6, []),
        (1, 3, 1, 10**6, [(1, 3)]),
        (1, 32, 2, 10**6, [(1, 8)] * 4),  # by eights, so that all workers end at about the same time
        (1, 32, 8, 10**6, [(1, 4)] * 8),  # fewer, where workers would have nothing to do
        (1, 32, 100, 10**6, [(1, 1)] * 32),
        (1, 32, 0.01, 10**6, [(1, 32)]),  # a hundred settings for one worker
        (1, 32, 0.01, 10, [(1, 32)]),
        (1, 32, 1, 1000, [(1, 32)]),  # it is over in no time
        (20, 4, 2, 10**6, [(1, 4)] * 20),
        (20, 4, 2, 5000, [(10, 4), (10, 4)]),  # short runs go together
        (20, 4, 0.25, 10**6, [(2, 4)] * 10),
        (1, 3 * MOST, 0.01, 10, [(1, MOST)] * 3),
    ],
)
def test_jobs_leave_work_for_every_worker_and_are_not_too_small(settings, seeds, workers, steps, found):
    assert shapes(settings, seeds, workers, steps=steps) == found


def test_on_a_gpu_settings_are_one_batch():
    assert shapes(20, 8, 4, "gpu") == [(20, 8)]
    assert shapes(3, 40_000, 1, "gpu") == [(1, 40_000)] * 3
    assert shapes(1, 140_000, 1, "gpu") == [(1, 46_667), (1, 46_667), (1, 46_666)]


def test_a_job_is_named_by_what_is_in_it():
    keys = {Job((setting_of(learner),), seeds).key for learner in ("psrl", "ucrl2") for seeds in ((1,), (1, 2), (12,))}
    assert len(keys) == 6
    assert Job((setting_of(),), (1, 2)).key == Job((setting_of(),), (1, 2)).key
