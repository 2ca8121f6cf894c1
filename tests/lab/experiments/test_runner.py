"""A suite gives the same bits however it is run: workers, shards, pauses, drivers; and says what it did."""

import json
import os
import signal
import threading
from functools import partial
from itertools import pairwise

import pyarrow.parquet as pq
import pytest

import ravi
from ravi import ids
from ravi.lab.experiments import driver as loop
from ravi.lab.experiments import reproduce
from ravi.lab.experiments.agenda import Agenda, Shard
from ravi.lab.experiments.driver import Driver
from ravi.lab.experiments.freezing import freeze
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.store import Store
from ravi.lab.experiments.work import Task, undone, work
from ravi.lab.report import watch as watching
from ravi.lab.report.page import report
from ravi.lab.report.tables import table
from ravi.runtime import api
from ravi.runtime import compiled as compiled_driver
from ravi.runtime.result import versions
from ravi.validation import InputError
from tests.lab.experiments.small import SMALL, bits
from tests.support.pools import Here

WHOLE = Shard()
pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture
def epoch_by_epoch(monkeypatch):
    """A stop is asked for before every epoch."""
    monkeypatch.setattr(compiled_driver, "ROWS", 1)
    monkeypatch.setattr(compiled_driver, "MOST", 1)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runner") / "undisturbed"
    run_suite(SMALL, folder, workers=2)
    return folder


def test_what_is_stored_is_what_a_single_run_gives(undisturbed):
    held = ravi.results(undisturbed)
    for learner, mdp, section in (("ravi-ucb", "riverswim/4", "tabular"), ("psrl", "riverswim/4", "tabular")):
        made = ravi.run(learner, mdp, 2000, 6, points=20)
        times, seeds, curves = held.curves(mdp=mdp, section=section, label=learner, column="theory")
        assert seeds.tolist() == made.seeds
        assert times.tolist() == made.times.tolist()
        assert (curves == made.regret_curve).all()
        assert (held.regret(mdp=mdp, section=section, label=learner, column="theory")[1] == made.regret).all()


def test_the_same_call_does_nothing_more(undisturbed):
    before = sorted(os.listdir(undisturbed / "parts"))
    seen = []
    run_suite(SMALL, undisturbed, workers=1, progress=seen.append)
    assert sorted(os.listdir(undisturbed / "parts")) == before
    assert len(list((undisturbed / "manifests").iterdir())) >= 2  # but it is on record
    assert all(status.running == 0 for status in seen)


def test_ctrl_c_ends_in_good_order_and_the_same_call_goes_on(undisturbed, tmp_path):
    folder = tmp_path / "stopped"

    def stop(status):
        if status.done:
            signal.raise_signal(signal.SIGINT)

    seen = []
    run_suite(SMALL, folder, workers=2, progress=lambda status: (seen.append(status), seen[1:] or stop(status)))
    held = bits(folder)[0]
    assert 0 < len(held) <= len(bits(undisturbed)[0])
    assert os.listdir(folder / "claims") == [".lock"]
    run_suite(SMALL, folder, workers=2)
    assert bits(folder) == bits(undisturbed)
    assert not os.listdir(folder / "checkpoints")


def driver_of(suite, store, launch, executor, shard=WHOLE, slice=30.0, **more):
    """A driver, as a launch has it."""
    specified = specify(suite)
    frozen = freeze(specified, store)
    agenda = Agenda(specified, frozen.facts, shard, store.keep_tuning, frozen.workers)
    return Driver(store, launch, executor, agenda, frozen.contents, slice=slice, **more)


def drive(suite, folder, executor, **more):
    store = Store(folder)
    freeze(specify(suite), store)
    with store.launch({"versions": versions()}) as launch:
        driver_of(suite, store, launch, executor, **more).drive(lambda: False)


TINY = {
    "name": "tiny", "steps": 50, "seeds": 4, "points": 5,
    "sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["uniform"]}],
}  # fmt: skip


def test_a_driver_waits_for_workers_that_are_being_started(tmp_path):
    class Starting(Here):
        asked = 0

        def free(self):
            self.asked += 1
            return super().free() if self.asked > 5 else 0

        def collect(self, seconds):
            return super().collect(seconds) if self.tasks else []

    drive(TINY, tmp_path / "out", Starting())
    assert ravi.results(tmp_path / "out").counts.done == 4


def test_slices_and_checkpoints_leave_no_trace(tmp_path, epoch_by_epoch):
    shorter, executor = SMALL | {"steps": 400}, Here()
    drive(shorter, tmp_path / "whole", Here())
    drive(shorter, tmp_path / "sliced", executor, slice=1e-9)  # every epoch is a slice
    assert sum(bool(task.checkpoints) for task in executor.made) > 100
    assert bits(tmp_path / "sliced") == bits(tmp_path / "whole")
    assert not os.listdir(tmp_path / "sliced" / "checkpoints")


LONG = TINY | {
    "steps": 200, "seeds": 8, "sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["psrl"]}],
}  # fmt: skip


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runner") / "long"
    drive(LONG, folder, Here())
    return folder


def test_what_a_worker_did_not_begin_goes_out_again(long, tmp_path, monkeypatch):
    monkeypatch.setattr(api, "CACHE", 5000)
    executor = Here()
    drive(LONG, tmp_path / "out", executor, slice=1e-9)
    assert len({task.runs[0][1] for task in executor.made}) > 1
    assert bits(tmp_path / "out") == bits(long)


def test_the_time_that_is_left_is_told_before_a_long_batch_ends(tmp_path, monkeypatch):
    class Steady(Here):
        def collect(self, seconds):
            return [(number, back._replace(seconds=0.001 * back.plays)) for number, back in super().collect(seconds)]

    monkeypatch.setattr(loop, "TELL", 0.0)
    seen, store = [], Store(tmp_path / "out")
    freeze(specify(LONG), store)
    with store.launch({"versions": versions()}) as launch:
        driver = driver_of(LONG, store, launch, Steady(), slice=1e-9)
        driver.drive(lambda: False, lambda status: seen.append((status.left, status.done)))
    told = [left for left, done in seen if not done and left is not None]
    assert len(told) > 2
    assert all(0 <= later < earlier < 0.001 * 8 * 200 for earlier, later in pairwise(told))
    assert seen[-1] == (0.0, 8)


class Killed(Exception):
    pass


def left_at(folder, number, monkeypatch, slice=1e-9):
    """Run SMALL until its driver is killed at a task that goes on from a checkpoint: nothing is tidied up."""

    def die(at, task):
        if task.checkpoints and at > number:
            raise Killed
        return False

    with monkeypatch.context() as patch:
        patch.setattr(Store, "release", lambda self, job: None)
        with pytest.raises(Killed):
            drive(SMALL, folder, Here(die), slice=slice)


def test_a_checkpoint_that_was_left_is_taken_up(undisturbed, tmp_path, monkeypatch):
    folder = tmp_path / "left"
    left_at(folder, 40, monkeypatch)
    (left,) = os.listdir(folder / "checkpoints")  # one for the job under way
    assert os.listdir(folder / "claims")
    again = Here()
    drive(SMALL, folder, again)
    (taken,) = (task for task in again.made if task.checkpoints)
    assert [*taken.checkpoints] == [left.split("-")[0]]
    assert bits(folder) == bits(undisturbed)
    assert not os.listdir(folder / "checkpoints")
    assert os.listdir(folder / "claims") == [".lock"]


def test_a_damaged_checkpoint_is_named_and_its_work_begins_anew(undisturbed, tmp_path, monkeypatch):
    folder = tmp_path / "damaged"
    left_at(folder, 40, monkeypatch)
    (left,) = (folder / "checkpoints").iterdir()
    left.write_bytes(b"PK\x03\x04 no more than this")
    store = Store(folder)
    assert store.checkpoints() == []
    assert "checkpoints/" in str(store.troubles[0])
    run_suite(SMALL, folder, workers=1)
    assert bits(folder) == bits(undisturbed)


def test_a_job_that_another_driver_has_claimed_is_left_to_it_until_that_ends(tmp_path):
    """Then what it has stored is not made again, and what it has not is."""
    folder = tmp_path / "out"
    one, other = Store(folder), Store(folder)
    freeze(specify(TINY), one)
    made, launched = [], one.launch({"versions": versions()})

    class Waiting(Here):
        def collect(self, seconds):
            if not self.tasks and not made:  # it waits: the other driver does its job, and ends
                made.append(driver_of(TINY, one, first, Here()))
                made[0].drive(lambda: False)
                launched.__exit__(None, None, None)
            return super().collect(seconds)

    first = launched.__enter__()
    (job,) = driver_of(TINY, one, first, Here()).agenda.waiting
    assert one.claim(job.key)
    with other.launch({"versions": versions()}) as second:
        executor = Waiting()
        driver = driver_of(TINY, other, second, executor)
        assert driver._next() is None
        assert [waiting.key for waiting in driver.elsewhere] == [job.key]
        one.release(job.key)
        driver.drive(lambda: False)
        assert not executor.made
    held = ravi.results(folder)
    assert (held.counts.done, len(held.parts)) == (4, 1)


@pytest.mark.parametrize("suite", [TINY, TINY | {"columns": ["tuned"]}])  # of which nothing is tuned
def test_a_driver_that_may_leave_ends_when_others_do_all_that_is_left(tmp_path, suite):
    folder = tmp_path / "out"
    one, other = Store(folder), Store(folder)
    freeze(specify(suite), one)
    with one.launch({"versions": versions()}) as first, other.launch({"versions": versions()}) as second:
        for job in driver_of(suite, one, first, Here()).agenda.waiting:
            assert one.claim(job.key)
        driver = driver_of(suite, other, second, Here(), leave=True)
        driver.drive(lambda: False)
        assert ravi.results(folder).counts.done == 0
        waiting = driver_of(suite, other, second, Here())
        assert waiting._next() is None
        assert not waiting._over()


def test_a_driver_waits_for_trials_that_others_make(tmp_path):
    one, other = Store(tmp_path / "out"), Store(tmp_path / "out")
    freeze(specify(TUNED), one)
    with one.launch({"versions": versions()}) as first, other.launch({"versions": versions()}) as second:
        for job in driver_of(TUNED, one, first, Here()).agenda.waiting:
            assert one.claim(job.key)
        driver = driver_of(TUNED, other, second, Here(), leave=True)
        assert driver._next() is None
        assert driver.elsewhere
        assert not driver._over()


def test_a_driver_reads_what_others_have_stored_after_it_has_claimed_a_job(tmp_path):
    """They may have done it since the last look, and released it."""
    folder, executor = tmp_path / "out", Here()
    store = Store(folder)
    freeze(specify(TINY), store)
    with store.launch({"versions": versions()}) as launch:
        driver = driver_of(TINY, store, launch, executor)
        drive(TINY, folder, Here())
        driver.drive(lambda: False)
    assert not executor.made
    assert os.listdir(folder / "claims") == [".lock"]


def test_several_drivers_make_every_run_once(tmp_path):
    folder = tmp_path / "out"
    wanted = SMALL | {"sections": SMALL["sections"][:1]}
    freeze(specify(wanted), Store(folder), workers=8)

    def go():
        store = Store(folder)
        with store.launch({"versions": versions()}) as launch:
            driver_of(wanted, store, launch, Here()).drive(lambda: False)

    threads = [threading.Thread(target=go) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = ravi.results(folder)
    assert held.counts.done == held.counts.planned
    assert sum(pq.read_metadata(folder / "parts" / part).num_rows for part in held.parts) == held.runs.num_rows


def by_shards(folder):
    for shard in ("3/3", "1/3", "2/3"):
        run_suite(SMALL, folder, workers=1, shard=shard)


def by_half_and_by_itself(folder):
    run_suite(SMALL, folder, workers=1, shard="1/2")
    run_suite(folder, folder, workers=1)


def by_a_thread(folder):
    thread = threading.Thread(target=run_suite, args=(SMALL, folder), kwargs={"workers": 2})
    thread.start()
    thread.join(120)


def by_workers_that_die_once(folder):
    drive(SMALL, folder, Here(loses=lambda number, task: number % 5 == 0))


@pytest.mark.parametrize(
    "run",
    [partial(run_suite, SMALL, workers=1), by_shards, by_half_and_by_itself, by_a_thread, by_workers_that_die_once],
)
def test_a_suite_gives_the_same_bits_however_it_is_run(undisturbed, tmp_path, run):
    run(tmp_path / "out")
    assert bits(tmp_path / "out") == bits(undisturbed)


def test_a_run_that_kills_every_worker_becomes_a_row_and_the_rest_goes_on(undisturbed, tmp_path):
    folder = tmp_path / "poison"

    def poison(number, task):
        return any(3 in seeds and setting.learner == "psrl" for setting, seeds in task.runs)

    drive(SMALL, folder, Here(loses=poison))
    failures = ravi.results(folder).sql("select seed, failure, error from failures").to_pylist()
    assert [(row["seed"], row["failure"]) for row in failures] == [(3, "lost")]
    assert "died 3 times" in failures[0]["error"]
    run_suite(SMALL, folder, workers=1)  # what was lost is run again
    assert bits(folder) == bits(undisturbed)


TUNED = {
    "name": "tuned", "steps": 200, "seeds": 3, "points": 5, "columns": ["tuned"], "tuning": {"budget": 3, "seeds": 2},
    "sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["ravi-ucb"]}],
}  # fmt: skip


def test_tuning_chooses_by_what_is_on_disk(tmp_path, monkeypatch):
    keep, rows = Store.keep_tuning, []

    def count(store, subject, record):
        rows.append(sum(pq.read_metadata(part).num_rows for part in (tmp_path / "out" / "parts").iterdir()))
        keep(store, subject, record)

    monkeypatch.setattr(Store, "keep_tuning", count)
    monkeypatch.setattr(loop, "FLUSH", 1e9)
    monkeypatch.setattr(loop, "FLUSH_MOST", 1e9)
    drive(TUNED | {"sections": [TUNED["sections"][0] | {"learners": ["ravi-ucb", "ucrl2"]}]}, tmp_path / "out", Here())
    assert rows == [12, 12]  # of two learners, each with three configurations and two seeds


class Starved(Here):
    """The machine fails some tasks, so many times each."""

    def __init__(self, fails, times):
        super().__init__()
        self.fails, self.times, self.failed = fails, times, []

    def collect(self, seconds):
        ((number, outcome),) = super().collect(seconds)
        task = self.made[number]
        if self.fails(task) and self.failed.count(task.runs) < self.times:
            self.failed.append(task.runs)
            outcome = undone(task, fault="MemoryError: no more\nTraceback")
        return [(number, outcome)]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runner") / "tuned"
    drive(TUNED, folder, Here())
    return folder


def a_trial(task):
    """Whether the best configuration is being tried."""
    return any(setting.points == 1 and "scale=0.0001" in setting.learner for setting, _ in task.runs)


def test_a_fault_of_the_machine_that_passes_costs_nothing(tuned, tmp_path):
    drive(TUNED, tmp_path / "out", Starved(lambda task: True, 2))
    assert bits(tmp_path / "out") == bits(tuned)


def test_a_tuning_with_lost_trials_is_not_final_says_so_and_is_gone_on_with(tuned, tmp_path):
    folder = tmp_path / "out"
    drive(TUNED, folder, Starved(a_trial, 100))
    held = ravi.results(folder)
    failures = held.sql("select distinct failure, error, traceback from failures").to_pylist()
    error = "the machine failed it 3 times; at last MemoryError: no more"
    assert failures == [{"failure": "lost", "error": error, "traceback": "Traceback"}]
    (record,) = held.tuning.values()
    assert (record["chosen"], record["missing"]) == (None, 2)
    why = "tuning incomplete: 2 of 6 trials missing"
    assert why in held.summary()
    assert f"ravi-ucb on riverswim/4, T = 200: {why}" in str(held)
    assert table(held).records[0]["why"] == why
    view = watching.View(folder)
    view.look(0.0)
    assert why in watching.text(view)
    assert not view.finished
    assert why in report(folder).read_text()
    assert reproduce._other_choices(held) == []
    drive(TUNED, folder, Here())
    assert bits(folder) == bits(tuned)
    assert (ravi.results(folder).unfinished(), ravi.results(folder).untuned) == ([], {})
    view.look(1.0)  # the record was replaced under its name
    assert view.finished


def test_a_failing_learner_is_a_row_and_can_be_tried_again(tmp_path, monkeypatch):
    (tmp_path / "mylearners.py").write_text(
        "from ravi import Learner\n"
        "from ravi.learners.fixed import uniform\n"
        "import os\n"
        "def picky(problem, steps) -> Learner:\n"
        "    learner = uniform(problem, steps)\n"
        "    def init(keys):\n"
        "        if (keys == 2).any() and not os.path.exists(os.environ['MENDED']):\n"
        "            raise ValueError('seed 2 is not for me')\n"
        "        return learner.init(keys)\n"
        "    return learner._replace(init=init)\n"
    )
    monkeypatch.setenv("MENDED", str(tmp_path / "mended"))
    monkeypatch.syspath_prepend(tmp_path)
    suite = {
        "steps": 500, "seeds": 5, "points": 5, "name": "picky",
        "sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["mylearners:picky", "uniform"]}],
    }  # fmt: skip
    held = run_suite(suite, tmp_path / "out", workers=2)
    assert len(held.runs) == 10
    (failure,) = held.sql("select * from failures").to_pylist()
    assert (failure["seed"], failure["failure"]) == (2, "learner")
    assert failure["error"] == "ValueError: seed 2 is not for me"
    assert "mylearners.py" in failure["traceback"]
    assert len(run_suite(suite, tmp_path / "out", workers=1).sql("select * from failures")) == 1  # it is on record
    (tmp_path / "mended").touch()
    assert len(run_suite(suite, tmp_path / "out", workers=1, retry=True).sql("select * from failures")) == 0


def test_a_regret_that_is_no_number_is_a_failure_and_never_chosen(tmp_path, monkeypatch):
    (tmp_path / "odd.py").write_text(
        "import numpy as np\n"
        "from ravi import Learner\n"
        "from ravi.learners.fixed import uniform\n"
        "def nan_at_one(problem, steps, scale: float = 1.0) -> Learner:\n"
        "    learner = uniform(problem, steps)\n"
        "    def init(keys):\n"
        "        state = learner.init(keys)\n"
        "        return state._replace(policy=state.policy * np.nan) if scale == 1 else state\n"
        "    return learner._replace(init=init, plan=lambda state: state)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    suite = {
        "steps": 200, "seeds": 2, "points": 2, "name": "odd", "columns": ["theory", "tuned"],
        "tuning": {"budget": 2, "seeds": 2, "scale": [0.1, 1]},
        "sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["odd:nan_at_one"]}],
    }  # fmt: skip
    held = run_suite(suite, tmp_path / "out", workers=1)
    failures = held.sql("select distinct error from failures").to_pylist()
    why = "InputError: uniform planned what is no policy: seed "
    assert all(failure["error"].startswith(why) and "sums to nan" in failure["error"] for failure in failures)
    (record,) = held.tuning.values()
    assert (record["chosen"], [one["failed"] for one in record["configurations"]]) == (1, [2, 0])
    assert len(held.regret(column="tuned")[1]) == 2


def test_an_error_that_cannot_be_told_is_told_as_far_as_can_be(tmp_path, monkeypatch):
    (tmp_path / "rude.py").write_text(
        "from ravi import Learner\n"
        "class Mute(Exception):\n"
        "    def __str__(self):\n"
        "        raise ValueError('no')\n"
        "def mute(problem, steps) -> Learner:\n"
        "    raise Mute\n"
        "def odd(problem, steps) -> Learner:\n"
        "    raise ValueError('x\\ud800y')\n"
        "def long(problem, steps) -> Learner:\n"
        "    raise ValueError('z' * 10**6)\n"
        "def okay(problem, steps) -> Learner:\n"
        "    raise AssertionError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    errors = {}
    for name in ("mute", "odd", "long", "okay"):
        setting = Setting("riverswim/4", ravi.mdp("riverswim/4").digest, f"rude:{name}", "", 10, 1)
        (row,) = work(Task(((setting, (0,)),), "here")).rows.to_pylist()
        assert row["failure"] == "learner"
        errors[name] = row
    assert errors["mute"]["error"].startswith("Mute: (its text cannot be had")
    assert errors["odd"]["error"] == "ValueError: x\\ud800y"
    assert len(errors["long"]["error"]) == 1000
    assert len(errors["long"]["traceback"]) <= 50_000
    assert errors["okay"]["error"] == "AssertionError"


def test_a_learner_that_is_edited_while_it_runs_is_not_stored_as_what_it_was(tmp_path, monkeypatch):
    (tmp_path / "edited.py").write_text("from ravi.learners.fixed import uniform as build\n")
    monkeypatch.syspath_prepend(tmp_path)
    setting = Setting(
        "riverswim/4", ravi.mdp("riverswim/4").digest, "edited:build", ids.source_of("edited:build"), 10, 1
    )
    assert work(Task(((setting, (0,)),), "here")).rows["failure"].to_pylist() == [None]
    (tmp_path / "edited.py").write_text("from ravi.learners.fixed import uniform as build  # not the same\n")
    (row,) = work(Task(((setting, (0,)),), "here")).rows.to_pylist()
    assert row["failure"] == "lost"  # the next launch runs it again
    assert "has changed since it was launched" in row["error"]


def signalled(suite, folder, number, workers):
    """What a run tells of its progress, whose first word is followed by a signal."""
    seen = []

    def send(status):
        seen.append(status)
        if len(seen) == 1:
            signal.raise_signal(number)

    run_suite(suite, folder, workers=workers, progress=send)
    return seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_what_a_scheduler_sends_is_like_ctrl_c(tmp_path, number):
    last = signalled(SMALL | {"steps": 10**6}, tmp_path / "out", number, 2)[-1]
    assert last.stopping
    assert last.done < last.total


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_is_ignored_stays_ignored(tmp_path, number):
    """`nohup ravi suite run` starts with SIGHUP ignored, a job in the background of a script with SIGINT."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        signalled(SMALL | {"steps": 20}, tmp_path / "out", number, 1)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    counts = ravi.results(tmp_path / "out").counts
    assert counts.done == counts.planned


def test_an_edited_suite_needs_another_folder_or_to_be_taken_on(undisturbed, tmp_path):
    folder = tmp_path / "edited"
    run_suite(SMALL, folder, workers=1, shard="1/2")
    more = SMALL | {"seeds": 8}
    with pytest.raises(InputError, match=r"(?s)holds another suite.*seeds"):
        run_suite(more, folder, workers=1)
    run_suite(more, folder, workers=1, adopt=True)
    held = bits(folder)[0]
    assert held.items() >= bits(undisturbed)[0].items()
    assert len(held) > len(bits(undisturbed)[0])
    frozen = json.loads((folder / "specification.json").read_text())
    assert frozen["suite"]["sections"][0]["seeds"] == list(range(8))


def test_other_versions_are_refused_unless_mixed_knowingly(tmp_path):
    folder = tmp_path / "old"
    run_suite(SMALL, folder, workers=1, shard="1/4")
    ((launch, made),) = Store(folder).manifests().items()
    made["versions"]["numpy"] = "1.0.0"
    (folder / "manifests" / f"{launch}.json").write_text(json.dumps(made))
    with pytest.raises(InputError, match=r"numpy.*1\.0\.0"):
        run_suite(SMALL, folder, workers=1)
    run_suite(SMALL, folder, workers=1, mix_versions=True)


def test_an_mdp_from_a_file_is_kept_with_the_results(tmp_path):
    ravi.mdp("riverswim/5").save(tmp_path / "mine.mdp")
    suite = {
        "steps": 500, "seeds": 3, "points": 5, "name": "file",
        "sections": [{"name": "a", "mdps": [str(tmp_path / "mine.mdp")], "learners": ["psrl"]}],
    }  # fmt: skip
    run_suite(suite, tmp_path / "out", workers=1)
    made = ravi.run("psrl", "riverswim/5", 500, 3, points=5)
    ravi.mdp("riverswim/3").save(tmp_path / "mine.mdp")  # an edit does not change what was launched
    held = run_suite(tmp_path / "out", tmp_path / "out", workers=1)
    assert (held.regret(label="psrl")[1] == made.regret).all()
    with pytest.raises(InputError, match="another MDP"):
        run_suite(suite, tmp_path / "out", workers=1)
    (tmp_path / "mine.mdp").unlink()
    more = run_suite(tmp_path / "out", tmp_path / "out", seeds=5, adopt=True, workers=1)
    assert (more.regret(label="psrl")[1] == ravi.run("psrl", "riverswim/5", 500, 5).regret).all()


def test_workers_with_other_versions_are_refused(tmp_path):
    class Other(Here):
        def collect(self, seconds):
            ((number, outcome),) = super().collect(seconds)
            return [(number, outcome._replace(versions=outcome.versions | {"numpy": "0.1"}, host="elsewhere"))]

    with pytest.raises(InputError, match=r"elsewhere.*numpy"):
        drive(SMALL, tmp_path / "a", Other())
    drive(SMALL, tmp_path / "b", Other(), mix_versions=True)
