"""An agenda asks for exactly the runs of its suite, once, whatever the shards; for tuned ones when they are chosen.

The runs of a setting know where each stands, and are divided into jobs that every driver names alike.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ravi.lab.experiments import plan
from ravi.lab.experiments.agenda import FAILED, LEFT, LOST, MOST, STORED, Agenda, Job, Runs, Shard, jobs_of
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.suite import Section, Suite, Tuning

WHOLE = Shard()
TUNING = Tuning(budget=3, seeds=(100, 101), scale=(0.01, 1.0))


def suite_of(*sections, tuning=TUNING):
    return Suite("mine", tuple(sections), tuning=tuning)


def section(name="one", columns=("given",), seeds=range(20), learners=("ravi-ucb", "psrl"), **more):
    return Section(
        name=name, mdps=("riverswim/4",), learners={id: id for id in learners}, steps=(1000,), seeds=tuple(seeds),
        columns=columns, **more,
    )  # fmt: skip


def agenda_of(suite, shard=WHOLE, records=None, workers=1):
    records = {} if records is None else records
    return Agenda(suite, plan.facts_of(suite, {}), shard, records.__setitem__, workers)


def stored(setting, seeds, regrets, failed=False):
    n = len(seeds)
    columns = {
        "setting": pa.array([setting] * n, pa.string()),
        "seed": pa.array(seeds, pa.int64()),
        "failure": pa.array(["learner" if failed else None] * n, pa.string()),
        "regret": pa.array([None if failed else regret for regret in regrets], pa.float64()),
    }
    return pa.table(columns)


def regret_of(setting, seed):
    """A made-up regret, which is least at scale = 0.1."""
    scale = float(dict(part.split("=") for part in setting.learner.split(",")[1:]).get("scale", 1))
    return abs(np.log10(scale) + 1) + seed * 1e-6


def carry_out(agenda):
    """Do all that it asks for; what was done, in its order."""
    done = []
    agenda.advance()
    while agenda.waiting:
        for setting, seeds in agenda.left(agenda.waiting.popleft()):
            done += [(setting, seed) for seed in seeds]
            agenda.settle(stored(setting.digest, seeds, [regret_of(setting, seed) for seed in seeds]))
        agenda.advance()
    return done


def test_every_run_of_the_suite_is_asked_for_once():
    agenda = agenda_of(suite_of(section(), section("two", seeds=range(10, 30))))
    done = carry_out(agenda)
    assert len(done) == len({(setting.digest, seed) for setting, seed in done}) == 2 * 30  # the sections overlap
    assert agenda.done == agenda.total == 60
    assert agenda.seconds_left == 0


def test_what_sections_share_is_told_once_before_tuning_has_chosen():
    tuned = {"columns": ("tuned",), "learners": ("ucrl2",)}
    suite = suite_of(section(**tuned), section("two", seeds=range(10, 30), **tuned))
    agenda = agenda_of(suite)
    agenda.advance()
    assert agenda.total == 30 + 6
    assert plan.asked(plan.planned(suite, agenda.facts, {})) == (set(), 30)
    assert len(carry_out(agenda)) == 30 + 6


def test_what_is_stored_is_not_asked_for():
    agenda = agenda_of(suite_of(section(learners=("psrl",))))
    (digest,) = agenda.runs
    agenda.settle(stored(digest, list(range(15)), [1.0] * 15))
    assert [seed for _, seed in carry_out(agenda)] == [15, 16, 17, 18, 19]


def test_a_tuned_entry_runs_the_best_configuration_on_the_reported_seeds():
    records = {}
    agenda = agenda_of(suite_of(section(columns=("theory", "tuned"), learners=("ucrl2",))), records=records)
    total = agenda.total
    done = carry_out(agenda)
    reported = {(setting.learner, seed) for setting, seed in done if seed < 100}
    assert {learner for learner, _ in reported} == {"ucrl2", "ucrl2,scale=0.1"}
    assert {(setting.learner, seed) for setting, seed in done if seed >= 100} == {
        (learner, seed) for learner in ("ucrl2", "ucrl2,scale=0.1", "ucrl2,scale=0.01") for seed in (100, 101)
    }
    assert len(done) == total == 20 + 6 + 20
    (record,) = records.values()
    assert record["configurations"][record["chosen"]]["learner"] == "ucrl2,scale=0.1"
    assert plan.planned(agenda.suite, agenda.facts, records)[1].setting.learner == "ucrl2,scale=0.1"


def test_a_learner_with_nothing_to_tune_runs_once_for_both_columns():
    agenda = agenda_of(suite_of(section(columns=("theory", "tuned"), learners=("psrl",))))
    assert len(carry_out(agenda)) == 20


def test_published_constants_that_are_best_are_not_run_twice():
    suite = suite_of(section(columns=("theory", "tuned"), learners=("ucrl2",)), tuning=Tuning(budget=1, seeds=(100,)))
    assert len(carry_out(agenda_of(suite))) == 20 + 1


def test_where_all_configurations_fail_nothing_is_reported():
    records = {}
    agenda = agenda_of(suite_of(section(columns=("tuned",), learners=("ucrl2",))), records=records)
    agenda.advance()
    while agenda.waiting:
        for setting, seeds in agenda.left(agenda.waiting.popleft()):
            agenda.settle(stored(setting.digest, seeds, [None] * len(seeds), failed=True))
        agenda.advance()
    assert (agenda.done, agenda.failed) == (6, 6)
    assert next(iter(records.values()))["chosen"] is None
    assert [one.setting for one in plan.planned(agenda.suite, agenda.facts, records)] == [None]


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_shards_are_disjoint_and_make_up_the_whole(parts):
    suite = suite_of(
        section(columns=("theory", "tuned"), seeds=range(50), learners=("ucrl2", "ravi-ucb")),
        section("two", seeds=range(40, 90)),
    )
    whole = {(setting.digest, seed) for setting, seed in carry_out(agenda_of(suite))}
    done = [carry_out(agenda_of(suite, Shard(i + 1, parts), workers=parts)) for i in range(parts)]
    runs = [(setting.digest, seed) for shard in done for setting, seed in shard]
    assert set(runs) == whole
    assert len(runs) == len(whole)
    assert all(done)  # nobody is idle


@pytest.mark.parametrize("workers", [1, 20])
def test_runs_that_were_stored_before_their_job_was_known_count(workers):
    suite = suite_of(section(columns=("tuned",), learners=("ucrl2",)))
    first = agenda_of(suite)
    done = carry_out(first)
    again = agenda_of(suite, workers=workers)
    for setting, seed in done:
        again.settle(stored(setting.digest, [seed], [regret_of(setting, seed)]))
    assert carry_out(again) == []
    assert again.done == first.done == len(done)


def test_drivers_come_to_the_same_jobs_whatever_is_stored():
    suite = suite_of(section(columns=("theory", "tuned"), learners=("ucrl2", "psrl")))
    first, second = agenda_of(suite, workers=3), agenda_of(suite, workers=3)
    for job in first.waiting:
        second.settle(stored(job.variants[0].digest, job.seeds[:2], [1.0, 1.0]))
    assert [job.key for job in first.waiting] == [job.key for job in second.waiting]
    assert [len(second.left(job)[0][1]) for job in second.waiting] == [len(job.seeds) - 2 for job in first.waiting]
    assert {job.key for job in agenda_of(suite, workers=1).waiting} != {job.key for job in first.waiting}


def test_shards_do_not_repeat_what_tuning_chooses_and_others_run_anyway():
    suite = suite_of(
        section(columns=("theory", "tuned"), seeds=range(50), learners=("ucrl2",)),
        tuning=Tuning(budget=1, seeds=(100,)),
    )  # the only configuration is the published one
    runs = [run for i in range(3) for run in carry_out(agenda_of(suite, Shard(i + 1, 3)))]
    assert len(runs) == len({(setting.digest, seed) for setting, seed in runs}) == 51


def test_what_is_tuned_is_known_by_all_that_it_depends_on():
    """Other tuning seeds, another budget, or another learner's file are another subject."""
    suite = suite_of(section(columns=("tuned",), learners=("ucrl2",)))
    facts = plan.facts_of(suite, {})
    (entry,) = suite.entries
    subjects = {
        plan.subject_of(entry, known, tuning).digest
        for tuning in (TUNING, Tuning(budget=3, seeds=(100, 102), scale=(0.01, 1.0)), Tuning(seeds=(100, 101)))
        for known in (facts, facts._replace(learners={"ucrl2": facts.learners["ucrl2"] | {"source": "another"}}))
    }
    assert len(subjects) == 6


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
