"""`run` of a suite: a driver hands tasks to workers, keeps what comes back, and can be killed at any time.

The state of an experiment is its folder and nothing else: a driver reads what is there, runs the rest, and counts a run
as done when it is on disk. So the same command resumes, several drivers can share a folder, and the order in which runs
are made, the number of workers and the size of batches leave no trace in the results.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ravi import ids, validation
from ravi.display import progress as display
from ravi.display.progress import PATIENCE
from ravi.lab.experiments.agenda import Agenda, Shard
from ravi.lab.experiments.driver import Driver, Status
from ravi.lab.experiments.freezing import chosen, freeze
from ravi.lab.experiments.manifest import manifest
from ravi.lab.experiments.store import Store
from ravi.lab.experiments.suite import Suite
from ravi.machine import cores
from ravi.runtime import gpu
from ravi.runtime.api import interrupts
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.lab.experiments.executors import Executor
    from ravi.lab.experiments.results import Results

LOG = logging.getLogger("ravi")
MOST_SHARDS = 10**6
ON_CLUSTER = 64  # workers for which the runs of a suite are divided, where nobody says how many there are


def run_suite(
    suite: str | os.PathLike[str] | Mapping[str, Any] | Suite,
    out: str | os.PathLike[str],
    *,
    seeds: Any = None,
    workers: int | None = None,
    cluster: str | None = None,
    shard: str | None = None,
    adopt: bool = False,
    retry: bool = False,
    mix_versions: bool = False,
    slice: float = 30.0,
    allow_code: bool = False,
    device: str | None = None,
    leave: bool = False,
    progress: Callable[[Status], None] | bool | None = None,
    command: Sequence[str] | None = None,
) -> Results:
    """Run the part of a suite that the folder `out` does not hold yet, and return the results.

    Ctrl-C stops it cleanly, and the same call continues.

    Parameters
    ----------
    suite
        The name of a suite of the library, a TOML file, the same as Python data, or a folder of results, which contains
        its suite.
    out
        The folder of results.
    seeds
        Instead of the suite's.
    workers
        Processes on this machine, by default one per core.
    cluster
        The address of a Ray cluster instead, or "local".
    shard
        "i/n", the i-th of n parts of the work.
    adopt
        Accept a changed suite for an existing folder, whose runs are kept.
    retry
        Repeat failed runs.
    mix_versions
        Continue with other versions than the folder was made with.
    slice
        Seconds after which a long run leaves a checkpoint.
    allow_code
        A folder of results may name modules, whose code is then run; a suite's file, or Python data, may in any case
        (docs/guides/security.md).
    device
        "cpu" or "gpu", in place of the suite's; a GPU is used by one worker.
    leave
        End when all that is left is being done by other drivers of the folder, instead of waiting for them.
    progress
        Called with a `Status` now and then; None for a bar on a terminal or in a notebook, False for none.
    command
        The command line, for the manifest.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> import ravi
    >>> section = {"name": "a", "mdps": ["riverswim/3"], "learners": ["psrl", "ravi-ucb"]}
    >>> suite = {"steps": 200, "seeds": 2, "sections": [section]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ravi.run_suite(suite, folder, workers=1).runs.num_rows
    4
    """
    from ravi.lab.experiments.results import results

    store, part = Store(validation.path(out, "out")), shard_of(shard)
    slice = validation.positive(slice, "slice")
    wanted, own = chosen(suite, seeds, allow_code)
    on = validation.one_of(wanted.device if device is None else device, validation.DEVICES, "device")
    if on == "gpu":
        if cluster is not None or workers not in (None, 1):
            raise InputError("device=gpu is the GPU of this machine, and one worker's: leave out cluster and workers")
        gpu.target()
        workers = 1
    n = None if workers is None else validation.whole(workers, "workers", 1, 4096)
    divided = part.parts * (n or (cores() if cluster is None else ON_CLUSTER))
    frozen = freeze(wanted, store, own, adopt, mix_versions, divided, on)
    with (
        store.launch(manifest(command or sys.argv, wanted.plain(), on)) as launch,
        executor_of(n, cluster, modules_of(wanted)) as executor,
        interrupts(signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1) as interrupted,
        status_bar(progress, wanted.name) as tell,
    ):
        LOG.info("%s into %s, with %d workers", wanted.name, store.folder, executor.workers)
        agenda = Agenda(wanted, frozen.facts, part, store.keep_tuning, frozen.workers, on)
        driver = Driver(store, launch, executor, agenda, frozen.contents, retry, mix_versions, slice, leave)
        driver.drive(interrupted, tell)
    return results(out)


@contextmanager
def status_bar(progress: Any, label: str, patience: float = PATIENCE) -> Iterator[Callable[[Status], None] | None]:
    """Runs done, running and failed, rate and time left: reported to the caller's function, on a bar, or not at all."""
    if callable(display.wanted(progress)):
        yield progress
        return

    def words(status: Status) -> str:
        left = "?" if status.left is None else timedelta(seconds=round(status.left))
        told = f"{status.done:,} of {status.total:,} runs, {status.running:,} running, {status.failed:,} failed, "
        return told + f"{status.rate:,.1f}/s, " + ("stopping" if status.stopping else f"{left} left")

    with display.bar(progress, label, patience) as draw:
        yield None if draw is None else lambda status: draw(status.done, status.total, words(status))


def shard_of(text: str | None) -> Shard:
    """`3/8`: the third of eight parts of the work."""
    if text is None:
        return Shard()
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text) if isinstance(text, str) else None
    if found is None:
        raise InputError(f"shard is {validation.shown(text)}, not like 1/4: the first of four parts of the work")
    number, parts = (validation.whole(part, "a number of shard", 0, MOST_SHARDS) for part in found.groups())
    if not 1 <= number <= parts:
        raise InputError(f"shard is {text}: the first number must be from 1 to {parts}")
    return Shard(number, parts)


def executor_of(workers: int | None, cluster: str | None, modules: Sequence[str] = ()) -> Executor:
    """The workers: processes on this machine, or a Ray cluster, to which the modules of a user are sent."""
    if cluster is not None:
        from ravi.lab.experiments.cluster import Cluster

        return Cluster(cluster, workers, modules)
    from ravi.lab.experiments.executors import Processes

    return Processes(workers or cores())


def modules_of(suite: Suite) -> list[str]:
    """The modules of a user that the ids of a suite name."""
    code = [ids.code_in(entry.mdp) for entry in suite.entries] + [
        ids.foreign_name(entry.learner) for entry in suite.entries
    ]
    return list(dict.fromkeys(name.split(":")[0].split(".")[0] for name in code if name is not None))
