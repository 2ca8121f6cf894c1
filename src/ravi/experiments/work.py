"""What does a worker do? A task: some seeds of one setting, run to their end or to the end of its slice of time.

A task that is not done when its time is up comes back as a checkpoint, from which another worker goes on: so a long run
survives whatever kills its worker, and Ctrl-C loses nothing. A learner that fails gives rows that say how.

A fault of the machine is not the learner's: where there is no memory, no room on a disk or no more files, the task
comes back with what went wrong, and is tried again like one whose worker died. A learner's own code may raise an
OSError too, and nothing tells the two apart: it is tried again as often, and is then lost, not failed.
"""

from __future__ import annotations

import io
import platform
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ravi import engine, ids
from ravi.checks import InputError
from ravi.compiled import CacheWarning
from ravi.core import MDP, Learner
from ravi.experiments.rows import LEARNER, LOST, failed_rows, packed, rows_of, said
from ravi.experiments.settings import Setting
from ravi.files import load_mdp
from ravi.runs import Run, versions

MACHINE = (MemoryError, OSError, CacheWarning)  # errors that may pass, or not come elsewhere


class Task(NamedTuple):
    setting: Setting
    seeds: tuple[int, ...]
    launch: str  # which launch wants it
    mdp: bytes | None = None  # the content of the MDP's file, where it has no id
    checkpoint: bytes | None = None  # where to go on from
    slice: float = 30.0  # seconds after which a run comes back as a checkpoint


class Outcome(NamedTuple):
    rows: bytes | None  # an Arrow stream, a row for every seed; None while the task is not done
    checkpoint: bytes | None  # what to go on from when it is not; None: from the beginning
    seconds: float  # of computing, in this slice
    versions: dict[str, str]  # of what computed it
    host: str
    fault: str | None = None  # of the machine, in the way of the task: one line, below it a traceback


def work(task: Task, stop: Callable[[], bool] = lambda: False) -> Outcome:
    """Do a task, until its slice is over or `stop` says so (it is asked before every epoch)."""
    began, fault = time.perf_counter(), None
    try:
        rows, checkpoint = (None, task.checkpoint) if stop() else _done(task, stop)
    except MACHINE as error:
        rows, checkpoint, fault = None, task.checkpoint, "\n".join(said(error))
    return Outcome(rows, checkpoint, time.perf_counter() - began, versions(), platform.node(), fault)


def _done(task: Task, stop: Callable[[], bool]) -> tuple[bytes | None, bytes | None]:
    setting = task.setting
    changed = _changed(task)
    if changed is not None:  # not the learner's fault: the next launch runs it again
        return packed(failed_rows(setting, task.seeds, task.launch, LOST, changed)), None
    try:
        mdp = _mdp(setting.mdp, setting.mdp_digest, task.mdp)
        learner = ids.learner(setting.learner, mdp, setting.steps)
        record = tuple(name for name in setting.record if name in engine.OPTIONAL)
        _warm(learner, mdp, record)
        made = _run(task, learner, mdp, record, _until(task.slice, stop))
        if made.complete and not np.isfinite(made.regret).all():
            raise FloatingPointError(f"the regret is {made.regret[~np.isfinite(made.regret)][0]}")
        if not made.complete:
            content = io.BytesIO()
            made.save(content)
            return None, content.getvalue()
        return packed(rows_of(made, setting, mdp, task.launch)), None
    except MACHINE:
        raise
    except Exception as error:
        if len(task.seeds) == 1:
            short, trace = said(error)
            return packed(failed_rows(setting, task.seeds, task.launch, LEARNER, short, trace)), None
    alone = [task._replace(seeds=(seed,), checkpoint=None, slice=float("inf")) for seed in task.seeds]
    rows = [_done(one, stop)[0] for one in alone]  # which of them is it?
    if None in rows:  # stopped meanwhile
        return None, task.checkpoint
    return packed(_joined([row for row in rows if row is not None])), None


def _run(task: Task, learner: Learner, mdp: MDP, record: tuple[str, ...], until: Callable[[], bool]) -> Run:
    held = _held(task, learner, mdp)
    if held is not None:
        return engine.resume(held, learner, mdp, stop=until)
    return engine.run(
        learner, mdp, task.setting.steps, task.seeds, record=record, points=task.setting.points, keep_epochs=False,
        stop=until,
    )  # fmt: skip


def _held(task: Task, learner: Learner, mdp: MDP) -> Run | None:
    """The run of the task's checkpoint; none where that is damaged, or of other versions: then it begins anew."""
    if task.checkpoint is None:
        return None
    try:
        held = Run.load(io.BytesIO(task.checkpoint))
        if held.versions != versions() or held.seeds != list(task.seeds) or held.steps != task.setting.steps:
            return None
        return engine.resume(held, learner, mdp, stop=lambda: True)  # no epoch yet: what a learner raises is its own
    except InputError:
        return None


def _until(seconds: float, stop: Callable[[], bool]) -> Callable[[], bool]:
    """Stop when asked to, or when the slice is over; but every slice gets on by an epoch."""
    deadline, first = time.perf_counter() + seconds, True

    def until() -> bool:
        nonlocal first
        over, first = not first and time.perf_counter() >= deadline, False
        return over or stop()

    return until


def _changed(task: Task) -> str | None:
    """Why this is not what was launched; None where it is."""
    setting = task.setting
    try:
        if setting.source and ids.source_of(setting.learner) != setting.source:
            return f"the file of {setting.learner} has changed since it was launched"
        _mdp(setting.mdp, setting.mdp_digest, task.mdp)
    except InputError as error:
        return str(error)
    return None


@lru_cache(8)
def _mdp(name: str, digest: str, content: bytes | None) -> MDP:
    mdp = ids.mdp(name) if content is None else load_mdp(io.BytesIO(content))
    if mdp.digest != digest:
        raise InputError(f"{name} is another MDP here than where the work was planned: is this another version of it?")
    return mdp


_warmed: set[tuple[str, bool, tuple[str, ...]]] = set()


def _warm(learner: Learner, mdp: MDP, record: tuple[str, ...]) -> None:
    """Load or compile what the learner needs, once per process, so that times are those of running."""
    key = (learner.name.split(",")[0], bool(mdp.dimension), record)
    if key not in _warmed:
        engine.run(learner, mdp, 1, 1, record=record, keep_epochs=False, stop=lambda: False)
        _warmed.add(key)


def _joined(rows: list[bytes]) -> pa.RecordBatch:
    from ravi.experiments.rows import unpacked

    return pa.concat_tables([unpacked(row) for row in rows]).combine_chunks().to_batches()[0]
