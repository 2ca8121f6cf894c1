"""A suite on Slurm, of which there is a stand-in: tasks share the folder, are queued again, and a report follows."""

import os
import stat
import sys
from pathlib import Path

import pytest

import ravi
from ravi._jit.cache import cache_folder
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.slurm import submit
from ravi.validation import InputError
from tests.lab.experiments.small import SMALL, bits
from tests.support.command import typed

# It runs what it is given, tasks side by side, as Slurm would; where there is a file `limit`, the first task is told
# once that its time is nearly up. `scontrol requeue JOB_TASK` leaves a file, and the task is started again.
SBATCH = """#!{python}
import os, re, signal, subprocess, sys, time
from pathlib import Path
place, script = Path({place!r}), sys.stdin.read()
job = str(100 + len([*place.glob("*.sh")]))
(place / (job + ".sh")).write_text(script)
logs = Path(re.search("--output=(.*)/", script)[1])

def start(task):
    variables = {{"SLURM_ARRAY_JOB_ID": job, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_TMPDIR": {place!r}}}
    log = open(logs / f"{{job}}_{{task}}.log", "a")
    (place / "started").open("a").write(f"{{job}}_{{task}}\\n")
    return subprocess.Popen(["bash", "-c", script], env=os.environ | variables, stdout=log, stderr=log)

array = re.search(r"--array=1-(\\d+)", script)
tasks = {{task: start(task) for task in range(1, int(array[1]) + 1 if array else 2)}}
while tasks:
    time.sleep(0.1)
    for task, process in [*tasks.items()]:
        if task == 1 and (place / "limit").exists() and len([*logs.parent.glob("claims/[!.]*")]) == 2:
            (place / "limit").unlink()
            time.sleep(0.5)
            process.send_signal(signal.SIGUSR1)
        if process.poll() is not None:
            again = place / f"{{job}}_{{task}}"
            tasks[task] = start(task) if again.exists() else tasks.pop(task)
            again.unlink(missing_ok=True)
    tasks = {{task: process for task, process in tasks.items() if process.poll() is None}}
print(job + ";cluster")
"""
SCONTROL = """#!/bin/sh
[ "$1" = requeue ] && touch {place}/$2
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """The place of the stand-in, whose nodes know what is compiled here."""
    place = tmp_path / "slurm"
    place.mkdir()
    for name, text in (("sbatch", SBATCH), ("scontrol", SCONTROL)):
        (place / name).write_text(text.format(python=sys.executable, place=str(place)))
        (place / name).chmod(stat.S_IRWXU)
    (place / f"ravi-{os.getuid()}").symlink_to(cache_folder().parent)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return place


def started(place):
    return sorted((place / "started").read_text().split())


@pytest.mark.slow
def test_an_array_of_tasks_gives_the_bits_of_one_process_and_a_report(slurm, tmp_path):
    run_suite(SMALL, tmp_path / "here", workers=2)
    out = tmp_path / "out"
    made = submit(SMALL, out, array=2, time="10:00", partition="cpu", options=["--account=mine"])
    assert made.jobs == ("100", "101")
    assert started(slurm) == ["100_1", "100_2", "101_1"]
    assert bits(out) == bits(tmp_path / "here")
    assert (out / "report.html").exists()
    held = ravi.results(out)
    assert held.runs.num_rows == len(bits(out)[0])
    assert len(held.manifests) == 2
    assert os.listdir(out / "claims") == [".lock"]
    assert sorted(os.listdir(out / "slurm")) == ["100_1.log", "100_2.log", "101_1.log", "run.sh"]


@pytest.mark.slow
def test_a_task_whose_time_is_up_is_queued_again_by_itself_and_goes_on(slurm, tmp_path):
    long = {
        "name": "long", "steps": 3_000_000, "seeds": 2, "points": 5,
        "sections": [{"name": "a", "mdps": ["riverswim/6"], "learners": ["psrl"]}],
    }  # fmt: skip
    out = tmp_path / "out"
    (slurm / "limit").touch()
    submit(long, out, array=2, time="10:00")
    assert started(slurm) == ["100_1", "100_1", "100_2", "101_1"]
    assert "stopped; the same command goes on" in (out / "slurm" / "100_1.log").read_text()
    held = ravi.results(out)
    assert held.counts.done == held.counts.planned == 2
    assert (held.regret()[1] == ravi.run("psrl", "riverswim/6", 3_000_000, 2, points=5).regret).all()


def test_the_scripts_say_what_was_asked_for_and_a_dry_run_writes_nothing(tmp_path):
    words = ["--array", 7, "--time", "4:00:00", "--partition", "cpu", "--cpus", 8, "--sbatch", "--qos=low --mem=4G"]
    said = typed("suite", "submit", "quick", "--out", "a b", *words, "--dry-run", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    run, report = said.stdout.split("#!/bin/bash\n")[1:]
    for line in (
        "--job-name=ravi-quick", "--array=1-7", "--cpus-per-task=8", "--signal=B:USR1@120", "--requeue",
        f"--output='{tmp_path}/a b/slurm'/%A_%a.log", "--time=4:00:00", "--partition=cpu", "--qos=low", "--mem=4G",
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in run
    assert f"-m ravi suite run '{tmp_path}/a b' --workers 8 --leave &" in run
    assert "#SBATCH --dependency=afterany:JOB\n" in report
    assert "#SBATCH --time=4:00:00\n#SBATCH --partition=cpu\n#SBATCH --qos=low\n" in report
    assert os.listdir(tmp_path) == []


def test_a_folder_names_code_only_where_that_is_allowed(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from ravi.learners.fixed import uniform as lazy\n")
    monkeypatch.chdir(tmp_path)
    suite = SMALL | {"folder": str(tmp_path), "sections": [SMALL["sections"][0] | {"learners": ["mine:lazy"]}]}
    asked = {"array": 1, "time": "5", "dry_run": True}
    assert "--leave --allow-code &" in submit(suite, "out", **asked).run
    assert "--allow-code" not in submit(SMALL, "out", **asked).run
    run_suite(suite | {"steps": 10}, "out", workers=1, shard="1/9")
    with pytest.raises(InputError, match="is not run"):
        submit("out", "out", **asked)
    assert "--leave --allow-code &" in submit("out", "out", **asked, allow_code=True).run


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"array": 0}, "array is 0"),
        ({"cpus": 1.5}, "cpus"),
        ({"time": "1:00 #x"}, "time is '1:00 #x': sbatch takes one word"),
        ({"partition": ""}, "partition is '': sbatch takes one word"),
        ({"options": ["--a\n--b"]}, "option 1 is"),
    ],
)
def test_what_sbatch_cannot_take_is_refused(tmp_path, changes, why):
    with pytest.raises(InputError, match=why):
        submit(SMALL, tmp_path / "out", **{"array": 1, "time": "5"} | changes)
    assert not (tmp_path / "out").exists()


def test_what_sbatch_refuses_is_told(tmp_path, monkeypatch):
    asked = {"array": 1, "time": "5"}
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="sbatch: No such file or directory; where there is no Slurm, --dry-run shows"):
        submit(SMALL, tmp_path / "out", **asked)
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho invalid partition >&2\nexit 1\n")
    Path(tmp_path / "sbatch").chmod(stat.S_IRWXU)
    with pytest.raises(InputError, match="cannot submit: sbatch said: invalid partition"):
        submit(SMALL, tmp_path / "out", **asked)
