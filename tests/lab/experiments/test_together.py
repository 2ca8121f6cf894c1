"""A tuning grid is one batch, whose rows are those of its settings by themselves, whatever comes in between."""

import os
import sys

import pytest

from ravi import cli
from ravi.lab.experiments import runner
from ravi.lab.experiments import work as working
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.schedule.agenda import Agenda
from ravi.lab.experiments.schedule.settings import Setting
from ravi.lab.experiments.suite_file.specify import specify
from ravi.lab.experiments.work import undone, work
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import gpu as device
from ravi.validation import InputError
from tests.lab.experiments.small import bits as stored
from tests.lab.experiments.tasks import bits, task, write_learners
from tests.lab.experiments.test_agenda import agenda_of, section, suite_of
from tests.lab.experiments.test_runner import drive
from tests.support.pools import Here

GRID = {
    "name": "grid", "steps": 60, "seeds": 3, "points": 5, "columns": ["tuned"], "tuning": {"budget": 5, "seeds": 2},
    "sections": [
        {"name": "a", "mdps": ["riverswim/4"], "learners": ["ravi-ucb", "ravi-ucb+", "ucrl2"]},
        {"name": "b", "mdps": ["riverswim/mixture/4"], "learners": ["ravi-ucb/mixture", "ravi-ucb+/mixture"]},
    ],
}  # fmt: skip
SCALES = (0.001, 0.03, 1.0)


@pytest.fixture(autouse=True)
def epoch_by_epoch(monkeypatch):
    """A stop is asked for before every epoch."""
    monkeypatch.setattr(compiled_driver, "ROWS", 1)
    monkeypatch.setattr(compiled_driver, "MOST", 1)


def grid(names=None, **more):
    """A task that others go with."""
    first, *others = [task(name, **more) for name in names or [f"ravi-ucb,scale={scale}" for scale in SCALES]]
    return first._replace(others=tuple(others))


def alone(one):
    return [bits(work(each).rows) for each in (one._replace(others=()), *one.others)]


def all_rows(outcome):
    return [None if one.rows is None else bits(one.rows) for one in (outcome, *outcome.others)]


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory):
    """The suite, every setting by itself."""
    folder = tmp_path_factory.mktemp("together") / "alone"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Agenda, "along", lambda *arguments: [])
        pool = Here()
        drive(GRID, folder, pool)
    assert not any(task.others for task in pool.made)
    return folder


@pytest.fixture
def as_one(monkeypatch):
    """Nothing may go by itself."""
    monkeypatch.setattr(working, "_one_by_one", None)


def test_tasks_that_go_as_one_batch_give_the_rows_of_each(as_one, monkeypatch):
    one = grid(steps=500, seeds=(4, 2))
    outcome = work(one)
    monkeypatch.undo()
    assert all_rows(outcome) == alone(one)
    assert all(each.plays == 1000 and each.seconds > 0 and not each.left for each in (outcome, *outcome.others))


def test_a_batch_that_is_stopped_comes_back_as_checkpoints_that_go_on_together_or_alone(as_one, monkeypatch):
    one = grid(steps=500)
    left = iter(range(20))
    stopped = work(one, lambda: next(left, None) is None)
    assert all_rows(stopped) == [None] * len(SCALES)
    tasks = [each._replace(checkpoint=back.checkpoint) for each, back in _pairs(one, stopped)]
    again = tasks[0]._replace(others=tuple(each._replace(others=()) for each in tasks[1:]))
    together = all_rows(work(again))
    monkeypatch.undo()
    assert together == alone(one) == alone(again)
    mixed = again._replace(checkpoint=None)  # one begins, and others go on
    assert all_rows(work(mixed)) == alone(one)


def _pairs(one, outcome):
    return zip((one, *one.others), (outcome, *outcome.others), strict=True)


def test_what_cannot_be_one_batch_or_fails_as_one_goes_by_itself(tmp_path, monkeypatch):
    write_learners(tmp_path, monkeypatch)
    monkeypatch.setattr(working, "SECOND", 60.0)  # however long it takes to compile
    for names in (
        ["q-learning", "q-learning"],
        ["ravi-ucb,scale=0.1", "ravi-ucb,scale=-1"],
        ["ravi-ucb,scale=0.1", "misbehaving:refuses,seed=1"],
    ):
        one = grid(names, steps=100)
        assert all_rows(work(one)) == alone(one)
    assert all_rows(work(one))[1][1]["failure"] == "learner"
    with monkeypatch.context() as patch:  # there is no room for all at once
        patch.setattr(working.engine, "run_settings", _no_room(working.engine.run_settings))
        one = grid(steps=100)
        assert all_rows(work(one)) == alone(one)
    monkeypatch.setattr(working, "SECOND", 0.0)  # what was not begun comes back
    outcome = work(grid(["q-learning", "q-learning"], steps=100))
    assert outcome.rows is not None
    assert [batch.seeds for batch in outcome.others[0].left] == [(0, 1)]


def _no_room(true):
    def run_settings(learners, *arguments, **more):
        if len(learners) > 1:
            raise MemoryError("no more")
        return true(learners, *arguments, **more)

    return run_settings


def test_a_task_that_was_not_begun_comes_back_with_those_that_go_with_it():
    back = undone(grid(checkpoint=b"anything"))
    assert [one.checkpoint for one in (back, *back.others)] == [b"anything"] * len(SCALES)


def test_settings_are_of_a_kind_that_differ_in_multipliers_only():
    def kind(learner, **more):
        fields = {"mdp": "a", "mdp_digest": "b", "source": "", "steps": 9, "points": 1} | more
        return Setting(learner=learner, **fields).kind

    assert kind("ravi-ucb,scale=0.1,step_scale=3") == kind("ravi-ucb") == kind("ravi-ucb,beta=1,eta=2")
    assert len({kind("ravi-ucb"), kind("ravi-ucb+"), kind("ravi-ucb,delta=0.1"), kind("ravi-ucb", steps=8)}) == 4
    assert kind("ravi-ucb", mdp_digest="c") != kind("ravi-ucb") != kind("ravi-ucb", record=("reward",))


def test_few_seeds_take_other_settings_along_and_leave_work_for_all_workers():
    names = [f"ravi-ucb,scale={i}" for i in range(1, 7)]

    def taken(seeds, workers, **more):
        agenda = agenda_of(suite_of(section(seeds=range(seeds), learners=(*names, "psrl"))))
        found = []
        while (batch := agenda.take(workers)) is not None:
            found.append(1 + len(agenda.along(*batch, workers, **more)))
        assert agenda.idle
        return found

    assert taken(4, 1) == taken(4, 2) == [6, 1]
    assert taken(4, 4) == [3, 3, 1]
    assert taken(4, 1, rows=64) == [6, 1]
    assert taken(4, 1, rows=63) == [1] * 7
    assert taken(65, 1) == [1] * 7
    assert taken(65, 1, rows=2**16) == [6, 1]


def test_only_the_same_seeds_go_along():
    agenda = agenda_of(suite_of(section(seeds=range(4), learners=("ravi-ucb", "ravi-ucb,scale=2", "ravi-ucb,scale=3"))))
    second = list(agenda.jobs.values())[1]
    second.give([3])
    job, seeds = agenda.take()
    assert [one.setting.learner for one in agenda.along(job, seeds)] == ["ravi-ucb,scale=3.0"]


@pytest.mark.parametrize("slice", [30.0, 1e-9])
def test_the_rows_of_a_tuned_suite_are_those_of_its_settings_alone(one_by_one, tmp_path, slice):
    pool = Here()
    drive(GRID, tmp_path / "out", pool, slice=slice)
    assert stored(tmp_path / "out") == stored(one_by_one)
    assert not os.listdir(tmp_path / "out" / "checkpoints")
    trials = [task for task in pool.made if task.others]
    if slice == 30.0:
        assert [len(task.others) for task in trials] == [4] * 5
    else:
        assert max(len(task.others) for task in trials if task.checkpoint is not None) == 4


def test_a_worker_that_dies_of_a_batch_costs_nothing_and_its_settings_go_alone(one_by_one, tmp_path):
    pool = Here(lambda number, task: bool(task.others))
    drive(GRID, tmp_path / "out", pool)
    assert stored(tmp_path / "out") == stored(one_by_one)
    assert sum(bool(task.others) for task in pool.made) == 5


def test_a_batch_whose_worker_is_stopped_is_kept_setting_by_setting(one_by_one, tmp_path):
    """And the next driver takes them up as one batch."""

    class Killed(Exception):
        pass

    class Dies(Here):
        def collect(self, seconds):
            if len(self.made) > 8:
                raise Killed
            return super().collect(seconds)

    with pytest.raises(Killed):
        drive(GRID, tmp_path / "out", Dies(), slice=1e-9)
    assert len(os.listdir(tmp_path / "out" / "checkpoints")) >= 5
    pool = Here()
    drive(GRID, tmp_path / "out", pool)
    assert pool.made[0].checkpoint is not None
    assert pool.made[0].others
    assert stored(tmp_path / "out") == stored(one_by_one)
    assert not os.listdir(tmp_path / "out" / "checkpoints")


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    device.target.cache_clear()
    yield
    device.target.cache_clear()


def test_without_a_gpu_nothing_is_begun(no_gpu, tmp_path, monkeypatch, capsys):
    why = "device=gpu needs CuPy and numba-cuda, and cupy is not installed: pip install 'ravi\\[gpu\\]'"
    for suite, more in ((GRID, {"device": "gpu"}), (GRID | {"device": "gpu"}, {})):
        with pytest.raises(InputError, match=why):
            run_suite(suite, tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(
        "steps = 100\nseeds = 2\n[[sections]]\nname = 'a'\nmdps = ['riverswim/4']\nlearners = ['ravi-ucb']\n"
    )
    for words in (["riverswim/4", "ravi-ucb", "--save", "it"], ["grid.toml", "--out", "out"]):
        monkeypatch.setattr(sys, "argv", ["ravi", "run", *words, "--device", "gpu"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code not in (None, 0)
        assert "device=gpu needs CuPy" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["grid.toml"]


def test_what_does_not_run_on_a_gpu_is_told_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "target", lambda: None)
    wanted = GRID | {"sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["ravi-ucb", "o-reps"]}]}
    with pytest.raises(InputError, match="device=gpu: o-reps does not run there"):
        run_suite(wanted, tmp_path / "out", device="gpu")
    for more in ({"workers": 2}, {"cluster": "local"}):
        with pytest.raises(InputError, match="leave out cluster and workers"):
            run_suite(GRID, tmp_path / "out", device="gpu", **more)
    assert not (tmp_path / "out").exists()


def test_a_suite_says_where_it_runs():
    assert specify(GRID | {"device": "gpu"}).plain()["device"] == "gpu"
    assert specify(specify(GRID | {"device": "gpu"}).plain()).device == "gpu"
    assert "device" not in specify(GRID).plain()
    with pytest.raises(InputError, match="device is 'tpu', not one of cpu, gpu"):
        specify(GRID | {"device": "tpu"})
    with pytest.raises(InputError, match="device is 'tpu', not one of cpu, gpu"):
        run_suite(GRID, "out", device="tpu")


def test_a_driver_with_a_gpu_gives_wide_batches_to_one_worker_which_has_them_there(tmp_path, monkeypatch):
    asked = []

    def ran(task, stop=lambda: False):
        asked.append((task.device, *(other.device for other in task.others)))
        return work(task._replace(device="cpu", others=tuple(one._replace(device="cpu") for one in task.others)), stop)

    class There(Here):
        def __init__(self, workers, cluster):
            assert (workers, cluster) == (1, None)
            super().__init__()

        __enter__, __exit__ = lambda self: self, lambda self, *how: None

        def collect(self, seconds):
            (number, task), *self.tasks = self.tasks
            return [(number, ran(task))]

    monkeypatch.setattr(device, "target", lambda: None)
    monkeypatch.setattr(runner, "pool_of", There)
    suite = GRID | {"sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["ravi-ucb"]}]}
    suite["tuning"] = {"budget": 3, "seeds": 70}
    held = run_suite(suite, tmp_path / "out", device="gpu")
    assert asked == [("gpu",) * 3, ("gpu",)]
    assert (held.counts.done, held.counts.others) == (3, 3 * 70)
    assert [made["device"] for made in held.manifests.values()] == ["gpu"]
