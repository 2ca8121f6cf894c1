"""Tasks: in slices or at once, stopped or resumed, a run gives the same bits, or rows that say what was wrong."""

import io
from dataclasses import replace

import pytest

from ravi import ids
from ravi.lab.experiments import work as working
from ravi.lab.experiments.rows import LEARNER as LEARNERS_OWN
from ravi.lab.experiments.rows import rows_of
from ravi.lab.experiments.work import Task, work
from ravi.runtime import api
from ravi.runtime import api as engine
from ravi.runtime import compiled as compiled_driver
from ravi.runtime.result import Run
from tests.lab.experiments.tasks import (
    LEARNER,
    RIVER,
    bits,
    checkpoint,
    setting,
    setting_of,
    task,
    write_learners,
)


@pytest.fixture(autouse=True)
def epoch_by_epoch(monkeypatch):
    """A stop is asked for before every epoch."""
    monkeypatch.setattr(compiled_driver, "ROWS", 1)
    monkeypatch.setattr(compiled_driver, "MOST", 1)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    write_learners(tmp_path, monkeypatch)


def finished(one, times=1000):
    """The rows of a task that goes on as a driver has it go on; with how many calls it took."""
    (setting, seeds), rows, apart = one.runs[0], [], False
    for calls in range(1, times):
        left = tuple(seed for seed in seeds if seed not in {row["seed"] for row in rows})
        if not left:
            return sorted(rows, key=lambda row: seeds.index(row["seed"])), calls - 1
        outcome = work(one._replace(runs=((setting, left[:1] if apart else left),)))
        rows += [] if outcome.rows is None else bits(outcome.rows)
        apart |= outcome.apart
        one = one._replace(checkpoints=outcome.checkpoints)
    raise AssertionError("it does not end")


def changed(one, **fields):
    return one._replace(runs=tuple((replace(setting, **fields), seeds) for setting, seeds in one.runs))


def asked(times):
    """Says yes when it has been asked so many times."""
    left = iter(range(times))
    return lambda: next(left, None) is None


def test_a_task_is_the_run_that_its_setting_says():
    one = task(seeds=(4, 2))
    world = ids.mdp(RIVER)
    made = engine.run(LEARNER, world, 2_000, [4, 2], points=20, keep_epochs=False)
    rows = work(one).rows
    assert rows["seed"].to_pylist() == [4, 2]
    assert rows["regret"].to_pylist() == list(made.regret)
    assert rows["digest"].to_pylist() == rows_of(made, setting(one), world, "launch")["digest"].to_pylist()


def test_a_task_in_slices_of_no_time_gets_on_by_an_epoch_each_and_ends_with_the_same_bits():
    one = task(steps=300, slice=0.0)
    outcome = work(one)
    assert outcome.rows is None
    assert Run.load(io.BytesIO(checkpoint(outcome))).plays.min() > 0
    assert finished(one)[0] == bits(work(task(steps=300)).rows)


def test_a_stopped_task_goes_on_with_the_same_bits():
    one = task()
    stopped = work(one, asked(20))
    assert stopped.rows is None
    assert bits(work(one._replace(checkpoints=stopped.checkpoints)).rows) == bits(work(one).rows)


def test_a_task_that_is_stopped_before_it_begins_comes_back_as_it_was():
    outcome = work(task(checkpoints={"a": b"anything"}), lambda: True)
    assert (outcome.rows, outcome.checkpoints) == (None, {"a": b"anything"})


@pytest.mark.parametrize("damage", ["cut", "other seeds", "other steps", "other learner"])
def test_a_checkpoint_that_is_not_of_this_task_is_not_gone_on_with(damage):
    one = task()
    others = {
        "other seeds": {"seeds": (7, 8)},
        "other steps": {"steps": 1_000},
        "other learner": {"learner": "psrl"},
    }
    held = checkpoint(work(task(**others.get(damage, {})), asked(20)))
    held = held[:-100] if damage == "cut" else held
    assert bits(work(one._replace(checkpoints={setting(one).digest: held})).rows) == bits(work(one).rows)


def test_a_run_is_not_gone_on_with_by_other_versions(monkeypatch):
    """Its bits would be of two kinds."""
    one = task(slice=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(api, "versions", lambda: {"ravi": "0.0"})
        held = work(task(), asked(100))
    anew = Run.load(io.BytesIO(checkpoint(work(one._replace(checkpoints=held.checkpoints)))))
    assert anew.plays.max() < Run.load(io.BytesIO(checkpoint(held))).plays.min()


def test_one_bad_seed_does_not_spoil_the_others_of_its_batch(mine):
    one = task("misbehaving:refuses,seed=3", seeds=(1, 3, 5))
    outcome = work(one)
    assert (outcome.rows, outcome.checkpoints, outcome.apart) == (None, {}, True)
    rows, _ = finished(one)
    good = bits(work(task("misbehaving:refuses,seed=3", seeds=(1, 5))).rows)
    assert [rows[0], rows[2]] == good
    assert rows[1]["failure"] == LEARNERS_OWN
    assert rows[1]["error"] == "ArithmeticError: not seed 3"
    assert "misbehaving.py" in rows[1]["traceback"]
    assert rows[1]["regret"] is None


def test_a_bad_seed_is_found_though_every_slice_is_short(mine):
    """It fails in the midst of a batch that goes on in slices: none of the others is lost, or begun for ever."""
    learner = "misbehaving:spoils,seed=3,plays=200"
    one = task(learner, seeds=(0, 1, 2, 3, 4), steps=300, slice=0.0)
    rows, _ = finished(one)
    assert [row["failure"] for row in rows] == [None, None, None, LEARNERS_OWN, None]
    assert rows[3]["error"] == "ArithmeticError: not seed 3"
    good = bits(work(task(learner, seeds=(0, 1, 2, 4), steps=300)).rows)
    assert [row["digest"] for row in rows if row["seed"] != 3] == [row["digest"] for row in good]


def test_a_learner_that_exits_fails_and_its_worker_goes_on(mine):
    rows = bits(work(task("misbehaving:exits", seeds=(0,))).rows)
    assert (rows[0]["failure"], rows[0]["error"]) == (LEARNERS_OWN, "SystemExit: no more of this")


def test_as_many_seeds_as_share_the_cache_go_side_by_side_and_what_was_not_begun_comes_back(monkeypatch):
    monkeypatch.setattr(api, "CACHE", 4000)
    widths, true = [], engine.run_settings

    def run_settings(learners, mdp, steps, seeds, **more):
        widths.append(len(seeds)) if steps > 1 else None
        return true(learners, mdp, steps, seeds, **more)

    one = task(seeds=range(10))
    whole = bits(work(one).rows)
    monkeypatch.setattr(engine, "run_settings", run_settings)
    assert bits(work(one).rows) == whole
    width = widths[0]
    assert 1 < width < 10
    assert widths == [width] * (10 // width) + ([10 % width] if 10 % width else [])
    first = work(one, asked(1 + asks_of(task(seeds=range(width)))))
    assert bits(first.rows) == whole[:width]
    assert not first.apart
    assert finished(one)[0] == whole


def asks_of(one):
    """How often a task asks whether to stop."""
    count = 0

    def stop():
        nonlocal count
        count += 1
        return False

    work(one, stop)
    return count


def test_settings_of_a_task_go_one_after_the_other_and_what_is_under_way_goes_first():
    first, second = setting_of("ravi-ucb,scale=0.1"), setting_of("ravi-ucb,scale=0.2")
    one = Task(((first, (0, 1)), (second, (2,))), "launch")
    whole = bits(work(one).rows)
    assert [(row["learner"], row["seed"]) for row in whole] == [
        (first.learner, 0),
        (first.learner, 1),
        (second.learner, 2),
    ]
    stopped = work(one, asked(20))
    assert (stopped.rows, [*stopped.checkpoints]) == (None, [first.digest])
    again = work(one._replace(runs=one.runs[::-1], checkpoints=stopped.checkpoints))
    assert bits(again.rows) == whole
    assert again.plays + stopped.plays == 3 * 2_000
    failing = Task(((first, (0, 1)), (setting_of("psrl"), (2,))), "launch")
    assert bits(work(failing).rows)[2] == bits(work(Task(failing.runs[1:], "launch")).rows)[0]


def test_settings_on_a_gpu_are_one_batch(monkeypatch):
    """Of which all are checkpoints, or rows."""
    true, widths = engine.run_settings, []

    def run_settings(learners, *arguments, device, **more):
        widths.append((device, len(learners)))
        return true(learners, *arguments, **more)

    monkeypatch.setattr(engine, "run_settings", run_settings)
    monkeypatch.setattr(engine, "resume_settings", without_device(engine.resume_settings))
    settings = [setting_of(f"ravi-ucb,scale={scale}") for scale in (0.001, 0.03, 1.0)]
    one = Task(tuple((setting, (4, 2)) for setting in settings), "launch", device="gpu")
    stopped = work(one, asked(20))
    assert ("gpu", 3) in widths
    assert len(stopped.checkpoints) == 3
    together = bits(work(one._replace(checkpoints=stopped.checkpoints)).rows)
    assert together == bits(work(one).rows) == bits(work(one._replace(device="cpu")).rows)


def without_device(resume):
    return lambda *arguments, device, **more: resume(*arguments, **more)


def test_a_checkpoint_of_some_seeds_goes_on_before_the_others():
    one = task(seeds=(5, 6, 7))
    held = work(task(seeds=(6, 7)), asked(20))
    again = work(one._replace(checkpoints=held.checkpoints))
    assert {row["seed"]: row["digest"] for row in bits(again.rows)} == {
        row["seed"]: row["digest"] for row in bits(work(one).rows)
    }
    assert held.plays + again.plays == 3 * 2_000


def test_a_learner_that_refuses_to_go_on_fails_instead_of_beginning_anew_for_ever(mine):
    """Its error is of the kind that a useless checkpoint gives."""
    rows, _ = finished(task("misbehaving:complains,plays=200", seeds=(0,), slice=0.0), times=500)
    assert rows[0]["error"] == "InputError: enough"


@pytest.mark.parametrize(
    ("kind", "said"),
    [("memory", "MemoryError: no more"), ("disk", "OSError: [Errno 28] No space"), ("files", "OSError: [Errno 24] x")],
)
def test_a_fault_of_the_machine_is_not_the_learners(mine, kind, said):
    one = task(f"misbehaving:starves,plays=200,kind={kind}", seeds=(0, 1))
    outcome = work(one)
    assert (outcome.rows, outcome.checkpoints) == (None, {})
    assert outcome.fault.startswith(said)
    assert "misbehaving.py" in outcome.fault.partition("\n")[2]
    held = work(one, asked(3)).checkpoints
    again = work(one._replace(checkpoints=held))
    assert (again.rows, again.checkpoints) == (None, held)  # what it goes on from is not lost
    assert work(task(steps=10)).fault is None


def test_a_learner_that_does_not_exist_gives_failed_rows():
    one = task(seeds=(0,))
    rows = bits(work(changed(one, learner="nobody")).rows)
    assert {row["failure"] for row in rows} == {LEARNERS_OWN}
    assert "there is no learner 'nobody'" in rows[0]["error"]


def test_an_mdp_that_is_another_one_here_gives_failed_rows():
    one = task()
    rows = bits(work(changed(one, mdp_digest="0")).rows)
    assert "another MDP here" in rows[0]["error"]


def test_an_mdp_travels_as_the_content_of_its_file():
    content = io.BytesIO()
    ids.mdp(RIVER).save(content)
    one = task()
    named = changed(one, mdp="mine.mdp")._replace(mdp=content.getvalue())
    assert [row["digest"] for row in bits(work(named).rows)] == [row["digest"] for row in bits(work(one).rows)]


def test_an_outcome_says_what_computed_it():
    outcome = work(task(steps=10))
    assert outcome.versions == working.versions()
    assert outcome.seconds > 0
