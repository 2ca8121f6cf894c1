"""A suite as jobs of Slurm: an array whose tasks are drivers that share a folder, and a report when all have ended.

A task is told by a signal that its time is nearly up: it stops as at Ctrl-C, and puts itself back into the queue, it
alone. What it had claimed is free for the others meanwhile. Compiled functions are kept on the node's own disk.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

from ravi import ids, validation
from ravi.lab.experiments.freezing import chosen, freeze
from ravi.lab.experiments.store import Store
from ravi.runtime.archive import write_text_file
from ravi.validation import InputError

SOON = 120  # seconds before its time limit at which a task is told to stop
MOST = 10**6  # tasks, and cores of a task

TASK = """\
export RAVI_CACHE_DIR="${{SLURM_TMPDIR:-${{TMPDIR:-/tmp}}}}/ravi-$(id -u)"
{command} &
run=$! told= again=
trap 'told=yes again=yes; kill -USR1 $run' USR1
trap 'told=yes; kill -TERM $run' TERM
wait $run; status=$?
while [ "$told" ]; do told=; wait $run; status=$?; done
if [ "$again" ] && [ $status -gt 128 ]; then scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"; fi
exit $status
"""


class Submission(NamedTuple):
    """The scripts of a suite, and the ids of their jobs; none where nothing was submitted."""

    run: str
    report: str
    jobs: tuple[str, ...] = ()

    def text(self) -> str:
        told = f"submitted: array job {self.jobs[0]}, report job {self.jobs[1]}\n" if self.jobs else ""
        return f"{self.run}\n{self.report}{told}"


def submit(
    suite: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    array: int,
    time: str,
    partition: str | None = None,
    cpus: int = 1,
    options: Sequence[str] = (),
    seeds: Any = None,
    allow_code: bool = False,
    dry_run: bool = False,
) -> Submission:
    """Submit a suite to Slurm, as an array job and a report job that depends on it.

    Parameters
    ----------
    suite, seeds, allow_code
        As for `ravi.run_suite`. The suite is frozen now.
    out
        The folder of results, on a disk that all nodes share.
    array
        How many tasks.
    time
        The time limit of a task, as sbatch takes it.
    partition
        Where the tasks run.
    cpus
        Cores of a task, each with a worker.
    options
        Further options of sbatch.
    dry_run
        Write and submit nothing.
    """
    n, each = validation.whole(array, "array", 1, MOST), validation.whole(cpus, "cpus", 1, MOST)
    place = validation.path(out, "out").absolute()
    given = {"time": time, "partition": partition, **{f"option {i + 1}": one for i, one in enumerate(options)}}
    for name, value in given.items():
        if value is not None and re.fullmatch(r"[^\s#]+", value) is None:
            raise InputError(f"{name} is {validation.shown(value)}: sbatch takes one word")
    wanted, own = chosen(suite, seeds, allow_code)
    if not dry_run:
        freeze(wanted, Store(place), own, workers=n * each)
    code = any(ids.foreign_name(one.learner) or ids.code_in(one.mdp) for one in wanted.entries)
    words = [sys.executable, "-m", "ravi", "suite", "run", str(place), "--workers", str(each), "--leave"]
    words += ["--allow-code"] if code else []
    name = re.sub(r"[^\w.-]", "-", wanted.name)
    same = [f"--time={time}", *([f"--partition={partition}"] if partition else []), *options, "--open-mode=append"]
    logs = quote(f"{place}/slurm")
    run = _script(
        [
            f"--job-name=ravi-{name}", f"--array=1-{n}", f"--cpus-per-task={each}", f"--signal=B:USR1@{SOON}",
            "--requeue", f"--output={logs}/%A_%a.log", *same,
        ],
        TASK.format(command=" ".join(map(quote, words))),
    )  # fmt: skip
    report = [sys.executable, "-m", "ravi", "report", str(place)]

    def reported(job: str) -> str:
        head = [f"--job-name=ravi-{name}-report", f"--dependency=afterany:{job}", f"--output={logs}/%j.log", *same]
        return _script(head, " ".join(map(quote, report)) + "\n")

    if dry_run:
        return Submission(run, reported("JOB"))
    (place / "slurm").mkdir(exist_ok=True)
    write_text_file(place / "slurm" / "run.sh", run)
    job = _sbatch(run)
    return Submission(run, reported(job), (job, _sbatch(reported(job))))


def _script(options: Sequence[str], body: str) -> str:
    return "\n".join(["#!/bin/bash", *(f"#SBATCH {one}" for one in options), body])


def _sbatch(script: str) -> str:
    """Submit a script; the id of its job."""
    try:
        done = subprocess.run(["sbatch", "--parsable"], input=script, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(
            f"cannot submit: sbatch: {error.strerror}; where there is no Slurm, --dry-run shows the scripts"
        ) from None
    if done.returncode:
        raise InputError(f"cannot submit: sbatch said: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip().split(";")[0]
