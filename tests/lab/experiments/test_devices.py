"""Where a suite runs: jobs however they are divided, and a GPU, where whole tuning grids are one batch."""

import os
import sys

import pytest

from ravi import cli
from ravi.lab.experiments import agenda as jobs
from ravi.lab.experiments import runner
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.work import work
from ravi.runtime import gpu as device
from ravi.validation import InputError
from tests.lab.experiments.small import bits
from tests.lab.experiments.test_runner import drive
from tests.support.pools import Here

GRID = {
    "name": "grid", "steps": 60, "seeds": 3, "points": 5, "columns": ["tuned"], "tuning": {"budget": 5, "seeds": 2},
    "sections": [
        {"name": "a", "mdps": ["riverswim/4"], "learners": ["ravi-ucb", "ravi-ucb+", "ucrl2"]},
        {"name": "b", "mdps": ["riverswim/mixture/4"], "learners": ["ravi-ucb/mixture", "ravi-ucb+/mixture"]},
    ],
}  # fmt: skip


def test_the_rows_of_a_tuned_suite_do_not_depend_on_its_jobs(tmp_path, monkeypatch):
    few, many = Here(), Here()
    drive(GRID, tmp_path / "few", few)
    assert max(len(task.runs) for task in few.made) > 1
    monkeypatch.setattr(jobs, "LEAST", 1)
    monkeypatch.setattr(jobs, "FEW", 1)
    drive(GRID, tmp_path / "many", many)
    assert {len(task.runs) for task in many.made} == {1}
    assert len(many.made) > len(few.made)
    assert bits(tmp_path / "few") == bits(tmp_path / "many")


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

    def ran(task):
        asked.append((task.device, len(task.runs)))
        return work(task._replace(device="cpu"))

    class There(Here):
        def __init__(self, workers, cluster, modules):
            assert (workers, cluster, modules) == (1, None, [])
            super().__init__()

        __enter__, __exit__ = lambda self: self, lambda self, *how: None

        def collect(self, seconds):
            back, self.tasks = [(number, ran(task)) for number, task in self.tasks], []
            return back

    monkeypatch.setattr(device, "target", lambda: None)
    monkeypatch.setattr(runner, "executor_of", There)
    suite = GRID | {"sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["ravi-ucb"]}]}
    suite["tuning"] = {"budget": 3, "seeds": 70}
    held = run_suite(suite, tmp_path / "out", device="gpu")
    assert asked == [("gpu", 3), ("gpu", 1)]
    assert (held.counts.done, held.counts.others) == (3, 3 * 70)
    assert [made["device"] for made in held.manifests.values()] == ["gpu"]
