"""An agenda asks for exactly the runs of its suite, once, whatever the shards; for tuned ones when they are chosen."""

import numpy as np
import pyarrow as pa
import pytest

from ravi.lab.experiments import plan
from ravi.lab.experiments.agenda import Agenda, Shard
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
