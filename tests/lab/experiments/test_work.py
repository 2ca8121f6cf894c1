"""Tasks: in slices or at once, stopped or resumed, a run gives the same bits, or rows that say what was wrong."""

import io
from dataclasses import replace

import pytest

from ravi import ids
from ravi.lab.experiments import work as working
from ravi.lab.experiments.rows import LEARNER as LEARNERS_OWN
from ravi.lab.experiments.rows import rows_of, unpacked
from ravi.lab.experiments.work import work
from ravi.runtime import api
from ravi.runtime import api as engine
from ravi.runtime import compiled as compiled_driver
from ravi.runtime.result import Run
from tests.lab.experiments.tasks import LEARNER, RIVER, bits, task, write_learners


@pytest.fixture(autouse=True)
def epoch_by_epoch(monkeypatch):
    """A stop is asked for before every epoch."""
    monkeypatch.setattr(compiled_driver, "ROWS", 1)
    monkeypatch.setattr(compiled_driver, "MOST", 1)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    write_learners(tmp_path, monkeypatch)


def finished(one, times=1000):
    """The rows of a task that goes on, batch by batch, until all of its seeds are done; with how many calls it took."""
    tasks, rows = [one], []
    for calls in range(1, times):
        task = tasks.pop(0)
        outcome = work(task)
        rows += [] if outcome.rows is None else bits(outcome.rows)
        begun = {seed for batch in outcome.left for seed in batch.seeds} | {row["seed"] for row in rows}
        tasks += [task._replace(seeds=batch.seeds, checkpoint=batch.checkpoint) for batch in outcome.left]
        rest = tuple(seed for seed in task.seeds if seed not in begun)
        tasks += [task._replace(seeds=rest, checkpoint=None)] if rest else []
        if not tasks:
            return sorted(rows, key=lambda row: one.seeds.index(row["seed"])), calls
    raise AssertionError("it does not end")


def asked(times):
    """Says yes when it has been asked so many times."""
    left = iter(range(times))
    return lambda: next(left, None) is None


def test_a_task_is_the_run_that_its_setting_says():
    one = task(seeds=(4, 2))
    world = ids.mdp(RIVER)
    made = engine.run(LEARNER, world, 2_000, [4, 2], points=20, keep_epochs=False)
    rows = unpacked(work(one).rows)
    assert rows["seed"].to_pylist() == [4, 2]
    assert rows["regret"].to_pylist() == list(made.regret)
    assert rows["digest"].to_pylist() == rows_of(made, one.setting, world, "launch")["digest"].to_pylist()


def test_a_task_in_slices_of_no_time_gets_on_by_an_epoch_each_and_ends_with_the_same_bits():
    one = task(steps=300, slice=0.0)
    outcome = work(one)
    assert outcome.rows is None
    assert Run.load(io.BytesIO(outcome.checkpoint)).plays.min() > 0
    assert finished(one)[0] == bits(work(task(steps=300)).rows)


def test_a_stopped_task_goes_on_with_the_same_bits():
    one = task()
    stopped = work(one, asked(20))
    assert stopped.rows is None
    assert bits(work(one._replace(checkpoint=stopped.checkpoint)).rows) == bits(work(one).rows)


def test_a_task_that_is_stopped_before_it_begins_comes_back_as_it_was():
    outcome = work(task(checkpoint=b"anything"), lambda: True)
    assert (outcome.rows, outcome.checkpoint) == (None, b"anything")


@pytest.mark.parametrize("damage", ["cut", "other seeds", "other steps", "other learner"])
def test_a_checkpoint_that_is_not_of_this_task_is_not_gone_on_with(damage):
    one = task()
    others = {
        "other seeds": {"seeds": (7, 8)},
        "other steps": {"steps": 1_000},
        "other learner": {"learner": "uniform"},
    }
    held = work(task(**others.get(damage, {})), asked(20)).checkpoint
    held = held[:-100] if damage == "cut" else held
    assert bits(work(one._replace(checkpoint=held)).rows) == bits(work(one).rows)


def test_a_run_is_not_gone_on_with_by_other_versions(monkeypatch):
    """Its bits would be of two kinds."""
    one = task(slice=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(api, "versions", lambda: {"ravi": "0.0"})
        held = work(task(), asked(100)).checkpoint
    anew = Run.load(io.BytesIO(work(one._replace(checkpoint=held)).checkpoint))
    assert anew.plays.max() < Run.load(io.BytesIO(held)).plays.min()


def test_one_bad_seed_does_not_spoil_the_others_of_its_batch(mine):
    rows = bits(work(task("misbehaving:refuses,seed=3", seeds=(1, 3, 5))).rows)
    good = bits(work(task("misbehaving:refuses,seed=3", seeds=(1, 5))).rows)
    assert [rows[0], rows[2]] == good
    assert rows[1]["failure"] == LEARNERS_OWN
    assert rows[1]["error"] == "ArithmeticError: not seed 3"
    assert "misbehaving.py" in rows[1]["traceback"]
    assert rows[1]["regret"] is None


def test_a_batch_with_a_bad_seed_that_is_stopped_comes_back_unfinished(mine):
    one = task("misbehaving:refuses,seed=3", seeds=(1, 3), checkpoint=b"no run")
    outcome = work(one, asked(20))
    assert outcome.rows is None
    assert [batch.seeds for batch in outcome.left] == [(1,), (3,)]  # they go on apart: it is known that one is bad
    assert Run.load(io.BytesIO(outcome.checkpoint)).seeds == [1]
    assert outcome.left[1].checkpoint == b"no run"


def test_a_bad_seed_is_found_by_halving_though_every_slice_is_short(mine):
    """It fails in the midst of a batch that goes on in slices: none of the others is lost, or begun for ever."""
    learner = "misbehaving:spoils,seed=3,plays=200"
    one = task(learner, seeds=(0, 1, 2, 3, 4), steps=300, slice=0.0)
    rows, calls = finished(one)
    assert [row["failure"] for row in rows] == [None, None, None, LEARNERS_OWN, None]
    assert rows[3]["error"] == "ArithmeticError: not seed 3"
    good = bits(work(task(learner, seeds=(0, 1, 2, 4), steps=300)).rows)
    assert [row["digest"] for row in rows if row["seed"] != 3] == [row["digest"] for row in good]


def test_as_many_seeds_as_share_the_cache_go_side_by_side_and_what_was_not_begun_comes_back(monkeypatch):
    monkeypatch.setattr(api, "CACHE", 4000)
    widths = []

    def run(learner, mdp, steps, seeds, **more):
        widths.append(len(seeds)) if steps > 1 else None
        return true(learner, mdp, steps, seeds, **more)

    one, true = task(seeds=range(10)), engine.run
    whole = bits(work(one).rows)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "run", run)
        assert bits(work(one).rows) == whole
        width = widths[0]
        assert 1 < width < 10
        assert widths == [width] * (10 // width) + ([10 % width] if 10 % width else [])
        patch.setattr(working, "SECOND", 0.0)
        first = work(one)
    assert bits(first.rows) == whole[:width]
    assert first.left == ()
    assert finished(one)[0] == whole


def test_a_checkpoint_can_be_gone_on_with_by_some_of_its_seeds():
    one = task(seeds=(5, 6, 7))
    held = work(one, asked(20))
    assert held.left[0].seeds == (5, 6, 7)
    whole = bits(work(one).rows)
    for seeds in ((6,), (7, 5)):
        part = work(one._replace(seeds=seeds, checkpoint=held.checkpoint))
        assert part.plays < 2_000 * len(seeds)
        assert bits(part.rows) == [row for seed in seeds for row in whole if row["seed"] == seed]
    assert held.plays + work(one._replace(checkpoint=held.checkpoint)).plays == 3 * 2_000


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
    assert (outcome.rows, outcome.checkpoint) == (None, None)
    assert outcome.fault.startswith(said)
    assert "misbehaving.py" in outcome.fault.partition("\n")[2]
    held = work(one, asked(3)).checkpoint
    again = work(one._replace(checkpoint=held))
    assert (again.rows, again.checkpoint) == (None, held)  # what it goes on from is not lost
    assert work(task(steps=10)).fault is None


def test_a_learner_that_does_not_exist_gives_failed_rows():
    one = task()
    rows = bits(work(one._replace(setting=replace(one.setting, learner="nobody"))).rows)
    assert {row["failure"] for row in rows} == {LEARNERS_OWN}
    assert "there is no learner 'nobody'" in rows[0]["error"]


def test_an_mdp_that_is_another_one_here_gives_failed_rows():
    one = task()
    rows = bits(work(one._replace(setting=replace(one.setting, mdp_digest="0"))).rows)
    assert "another MDP here" in rows[0]["error"]


def test_an_mdp_travels_as_the_content_of_its_file():
    content = io.BytesIO()
    ids.mdp(RIVER).save(content)
    one = task()
    named = one._replace(setting=replace(one.setting, mdp="mine.mdp"), mdp=content.getvalue())
    assert [row["digest"] for row in bits(work(named).rows)] == [row["digest"] for row in bits(work(one).rows)]


def test_an_outcome_says_what_computed_it():
    outcome = work(task(steps=10))
    assert outcome.versions == working.versions()
    assert outcome.seconds > 0
