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
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ravi import ids
from ravi._jit.cache import CacheWarning
from ravi.core import MDP, Learner
from ravi.lab.experiments.rows import LEARNER, LOST, error_texts, failed_rows, packed, rows_of
from ravi.lab.experiments.schedule.plan import digest_of
from ravi.lab.experiments.schedule.settings import Setting
from ravi.runtime import api as engine
from ravi.runtime.api import OPTIONAL, side_by_side
from ravi.runtime.result import Run, versions
from ravi.runtime.world import World, world_named
from ravi.validation import InputError

MACHINE = (MemoryError, OSError, CacheWarning)  # errors that may pass, or not come elsewhere

Stop = Callable[[], bool]


class Task(NamedTuple):
    settings: tuple[Setting, ...]  # of several, the runs go as one batch
    seeds: tuple[int, ...]
    launch: str  # which launch wants it
    mdp: bytes | None = None  # the content of the MDP's file, where it has no id
    checkpoints: tuple[bytes, ...] = ()  # where to go on from: a run of some of the seeds, for every setting
    slice: float = 30.0  # seconds after which a run comes back as a checkpoint
    device: str = "cpu"  # or "gpu"


class Outcome(NamedTuple):
    rows: bytes | None  # an Arrow stream, a row for every run that is done; None where none is
    checkpoints: tuple[bytes, ...]  # of the batch under way; what is neither here nor in `rows` was not begun
    seconds: float  # of computing
    plays: int  # that were made in them
    versions: dict[str, str]  # of what computed it
    host: str
    apart: bool = False  # a batch failed: its runs are to be done one by one
    fault: str | None = None  # of the machine: one line, below it a traceback

    @property
    def whole(self) -> bool:
        """Whether nothing is known to be left."""
        return self.rows is not None and not (self.checkpoints or self.apart or self.fault)


def undone(task: Task, **more: Any) -> Outcome:
    """The outcome of a task that was not begun."""
    return Outcome(None, task.checkpoints, 0.0, 0, versions(), platform.node(), **more)


def work(task: Task, stop: Stop = lambda: False) -> Outcome:
    """Do a task, until its slice is over or `stop` says so (it is asked several times a second, between epochs)."""
    if stop():
        return undone(task)
    rows: list[pa.RecordBatch] = []
    checkpoints, seconds, plays, apart, fault = task.checkpoints, 0.0, 0, False, None
    try:
        for held, made, mdp in _batches(task, until(time.perf_counter() + task.slice, stop)):
            seconds += sum(run.seconds for run in made) - sum(run.seconds for run in held)
            plays += sum(int(run.plays.sum()) for run in made) - sum(int(run.plays.sum()) for run in held)
            if all(run.complete for run in made):
                checkpoints = ()
                each = zip(made, task.settings, strict=True)
                rows += [_checked(run, setting, mdp, task.launch) for run, setting in each]
            else:
                checkpoints = tuple(map(_saved, made))
    except MACHINE as error:
        fault = "\n".join(error_texts(error))
    except _Changed as error:  # not the learner's fault: the next launch runs it again
        rows += [failed_rows(setting, task.seeds, task.launch, LOST, str(error)) for setting in task.settings]
    except (Exception, SystemExit) as error:
        apart = len(task.settings) * len(task.seeds) > 1
        if not apart:
            short, trace = error_texts(error)
            rows = [failed_rows(task.settings[0], task.seeds, task.launch, LEARNER, short, trace)]
        checkpoints = ()
    content = packed(pa.Table.from_batches(rows).combine_chunks().to_batches()[0]) if rows else None
    return Outcome(content, checkpoints, seconds, plays, versions(), platform.node(), apart, fault)


class _Changed(Exception):
    """The MDP or the learner is not what was launched."""


def _batches(task: Task, over: Stop) -> Iterator[tuple[Sequence[Run], list[Run], World]]:
    """The batches of a task, one after the other until its time is over: as each was before, and as it is now."""
    setting = task.settings[0]
    try:
        for one in task.settings:
            if one.source and ids.source_of(one.learner) != one.source:
                raise _Changed(f"the file of {one.learner} has changed since it was launched")
        mdp = _mdp(setting.mdp, setting.mdp_digest, task.mdp)
    except InputError as error:
        raise _Changed(str(error)) from None
    learners = [mdp.learner(one.learner, setting.steps) for one in task.settings]
    record = tuple(name for name in setting.record if name in OPTIONAL)
    more: dict[str, Any] = {"stop": over, "progress": False, "device": task.device, "threads": 1}
    _warm(learners[0], mdp, setting, record, more)
    held = _held(task, learners, mdp, record)
    fresh = [seed for seed in task.seeds if not held or seed not in held[0].seeds]
    if held:
        yield held, engine.resume_settings(held, learners, mdp, **more), mdp
    width = len(fresh)
    if task.device == "cpu" and len(fresh) > 1:
        width = side_by_side(learners[0], mdp, setting.steps, fresh[0], record, setting.points)
    for first in range(0, len(fresh), max(1, width)):
        if (first or held) and over():
            return
        yield (), engine.run_settings(
            learners, mdp, setting.steps, fresh[first : first + width], record=record, points=setting.points,
            keep_epochs=False, **more,
        ), mdp  # fmt: skip


def _checked(run: Run, setting: Setting, mdp: World, launch: str) -> pa.RecordBatch:
    """The rows of a complete run, whose regret must be a number."""
    regret = run.results.get("regret_total", np.zeros(0))
    if not np.isfinite(regret).all():
        raise FloatingPointError(f"the regret is {regret[~np.isfinite(regret)][0]}")
    return rows_of(run, setting, mdp, launch)


def _saved(run: Run) -> bytes:
    content = io.BytesIO()
    run.save(content)
    return content.getvalue()


def _held(task: Task, learners: Sequence[Learner], mdp: World, record: Sequence[str]) -> list[Run]:
    """The runs of the checkpoints; none where one is damaged, of other seeds or of other versions: they begin anew."""
    setting, found = task.settings[0], list[Run]()
    options = {"record": list(record), "points": setting.points, "pad": False, "keep_epochs": False, "measured": True}
    if len(task.checkpoints) != len(learners):
        return []
    for content, learner in zip(task.checkpoints, learners, strict=True):
        try:
            run = Run.load(io.BytesIO(content))
            if (run.versions, run.steps, run.options) != (versions(), setting.steps, options):
                return []
            if not {*run.seeds} <= {*task.seeds} or (found and run.seeds != found[0].seeds):
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
    mdp = world_named(name if content is None else MDP.load(io.BytesIO(content)))
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
