"""The work of a worker on a job: its runs, for a slice of time, and what comes of it: rows, or a checkpoint.

As many seeds run side by side as share a core's cache (`api.side_by_side`): a wider batch is no faster, and takes more
memory. What is not done when the slice of time is up comes back as a checkpoint, from which any worker goes on: so a
long run survives whatever kills its worker, and Ctrl-C loses nothing. A learner that fails gives rows that say how; a
batch of several runs that fails comes back `apart`, and its runs are done one by one.

A fault of the machine is not the learner's: where there is no memory, no room on a disk or no more files, the work
comes back with what went wrong, and is tried again like one whose worker died. A learner's own code may raise an
OSError too, and nothing tells the two apart: it is tried again as often, and is then lost, not failed.
"""

from __future__ import annotations

import io
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ravi import ids
from ravi._jit.cache import CacheWarning
from ravi.core import MDP, Learner
from ravi.lab.experiments.plan import Setting, digest_of
from ravi.lab.experiments.rows import LEARNER, LOST, error_texts, failed_rows, rows_of
from ravi.runtime import api as engine
from ravi.runtime.api import OPTIONAL, side_by_side
from ravi.runtime.result import Run, versions
from ravi.runtime.world import World, find_world
from ravi.validation import InputError

MACHINE = (MemoryError, OSError, CacheWarning)  # errors that may pass, or not come elsewhere

Stop = Callable[[], bool]


class Task(NamedTuple):
    runs: tuple[tuple[Setting, tuple[int, ...]], ...]  # settings of one MDP, each with its seeds
    launch: str  # which launch wants it
    mdp: bytes | None = None  # the content of the MDP's file, where it has no id
    checkpoints: Mapping[str, bytes] = {}  # setting -> a run of some of its seeds, to go on from
    slice: float = 30.0  # seconds after which a run comes back as a checkpoint
    device: str = "cpu"  # or "gpu"


class Outcome(NamedTuple):
    rows: pa.Table | None  # a row for every run that is done; None where none is
    checkpoints: Mapping[str, bytes]  # of the batch under way; what is neither here nor in `rows` was not begun
    seconds: float  # of computing
    plays: int  # that were made in them
    versions: dict[str, str]  # of what computed it
    host: str
    apart: bool = False  # a batch failed: its runs are to be done one by one
    fault: str | None = None  # of the machine: one line, below it a traceback


def undone(task: Task, **more: Any) -> Outcome:
    """The outcome of a task that was not begun."""
    return Outcome(None, task.checkpoints, 0.0, 0, versions(), platform.node(), **more)


def work(task: Task, stop: Stop = lambda: False) -> Outcome:
    """Do a task, until its slice is over or `stop` says so (it is asked several times a second, between epochs)."""
    if stop():
        return undone(task)
    rows: list[pa.Table] = []
    checkpoints, seconds, plays, apart, fault = dict(task.checkpoints), 0.0, 0, False, None
    try:
        for settings, held, made, mdp in _batches(task, until(time.perf_counter() + task.slice, stop)):
            seconds += sum(run.seconds for run in made) - sum(run.seconds for run in held)
            plays += sum(int(run.plays.sum()) for run in made) - sum(int(run.plays.sum()) for run in held)
            if all(run.complete for run in made):
                rows += [_checked(run, one, mdp, task.launch) for run, one in zip(made, settings, strict=True)]
                checkpoints = {}
            else:
                checkpoints = {one.digest: _saved(run) for run, one in zip(made, settings, strict=True)}
    except MACHINE as error:
        fault = "\n".join(error_texts(error))
    except _Changed as error:  # not the learner's fault: the next launch runs it again
        rows = [failed_rows(setting, seeds, task.launch, LOST, str(error)) for setting, seeds in task.runs]
    except (Exception, SystemExit) as error:
        (setting, seeds), checkpoints = task.runs[0], {}
        apart = len(task.runs) > 1 or len(seeds) > 1
        if not apart:
            short, trace = error_texts(error)
            rows = [failed_rows(setting, seeds, task.launch, LEARNER, short, trace)]
    return Outcome(
        pa.concat_tables(rows) if rows else None, checkpoints, seconds, plays, versions(), platform.node(), apart, fault
    )


class _Changed(Exception):
    """The MDP or the learner is not what was launched."""


Batch = tuple[Sequence[Setting], Sequence[Run], list[Run], World]  # its settings, the runs before and now, the MDP


def _batches(task: Task, over: Stop) -> Iterator[Batch]:
    """The batches of a task, one after the other until its time is over.

    On a GPU all settings are one batch. On a CPU it would be no faster, and each goes by itself.
    """
    first, same = task.runs[0][0], all(seeds == task.runs[0][1] for _, seeds in task.runs)
    try:
        for one, _ in task.runs:
            if one.source and ids.source_of(one.learner) != one.source:
                raise _Changed(f"the file of {one.learner} has changed since it was launched")
        mdp = _mdp(first.mdp, first.mdp_digest, task.mdp)
    except InputError as error:
        raise _Changed(str(error)) from None
    record = tuple(name for name in first.record if name in OPTIONAL)
    more: dict[str, Any] = {"stop": over, "progress": False, "device": task.device, "threads": 1}
    begun = False
    groups = [task.runs] if task.device == "gpu" and same else [(one,) for one in task.runs]
    for group in sorted(
        groups, key=lambda group: group[0][0].digest not in task.checkpoints
    ):  # what is under way first
        settings, seeds = [setting for setting, _ in group], group[0][1]
        learners = [mdp.learner(setting.learner, setting.steps) for setting in settings]
        _warm(learners[0], mdp, first, record, more)
        held = _held(task, group, learners, mdp, record)
        fresh = [seed for seed in seeds if not held or seed not in held[0].seeds]
        width = len(fresh)
        if task.device == "cpu" and len(fresh) > 1:
            width = side_by_side(learners[0], mdp, first.steps, fresh[0], record, first.points)
        if held:
            yield settings, held, engine.resume_settings(held, learners, mdp, **more), mdp
            begun = True
        for k in range(0, len(fresh), max(1, width)):
            if begun and over():
                return
            made = engine.run_settings(
                learners, mdp, first.steps, fresh[k : k + width], record=record, points=first.points,
                keep_epochs=False, **more,
            )  # fmt: skip
            yield settings, (), made, mdp
            begun = True


def _checked(run: Run, setting: Setting, mdp: World, launch: str) -> pa.Table:
    """The rows of a complete run, whose regret must be a number."""
    regret = run.results.get("regret_total", np.zeros(0))
    if not np.isfinite(regret).all():
        raise FloatingPointError(f"the regret is {regret[~np.isfinite(regret)][0]}")
    return rows_of(run, setting, mdp, launch)


def _saved(run: Run) -> bytes:
    content = io.BytesIO()
    run.save(content)
    return content.getvalue()


def _held(task: Task, group: Any, learners: Sequence[Learner], mdp: World, record: Sequence[str]) -> list[Run]:
    """The runs of the checkpoints; none where one is damaged, of other seeds or of other versions: they begin anew."""
    found = list[Run]()
    for (setting, seeds), learner in zip(group, learners, strict=True):
        options = {"record": list(record), "points": setting.points, "pad": False, "keep_epochs": False}
        try:
            run = Run.load(io.BytesIO(task.checkpoints.get(setting.digest, b"")))
            if (run.versions, run.steps, run.options) != (versions(), setting.steps, options | {"measured": True}):
                return []
            if not {*run.seeds} <= {*seeds} or (found and run.seeds != found[0].seeds):
                return []
            found.append(engine.resume(run, learner, mdp, stop=lambda: True))  # no epoch yet
        except InputError:
            return []
    return found


def until(deadline: float, stop: Stop = lambda: False) -> Stop:
    """A function that says to stop when `stop` does, or at a time of `perf_counter`, but not before the first epoch."""
    first = True

    def over() -> bool:
        nonlocal first
        late, first = not first and time.perf_counter() >= deadline, False
        return late or stop()

    return over


@lru_cache(8)
def _mdp(name: str, digest: str, content: bytes | None) -> World:
    mdp = find_world(name if content is None else MDP.load(io.BytesIO(content)))
    if digest_of(name, mdp) != digest:
        raise _Changed(f"{name} is another MDP here than where the work was planned: is this another version of it?")
    return mdp


_warmed: set[tuple[Any, ...]] = set()


def _warm(learner: Learner, mdp: World, setting: Setting, record: tuple[str, ...], more: dict[str, Any]) -> None:
    """Load or compile what the learner needs, once per process, so that times are those of running."""
    world = "" if mdp.kind == "tabular" else mdp.name  # loops of other kinds are compiled for each
    key = (learner.name.split(",")[0], world, bool(mdp.sizes[2]), record, more["device"])
    if key not in _warmed:
        given = briefly(learner, mdp, setting.learner)
        engine.run(given, mdp, 1, 1, record=record, keep_epochs=False, **more | {"stop": lambda: False})
        _warmed.add(key)


def briefly(learner: Learner, mdp: World, text: str) -> Learner | str:
    """The learner for a run of fewer steps: itself, but on continuous states, where it is made for its T, by its id."""
    return text if mdp.kind == "continuous" else learner
