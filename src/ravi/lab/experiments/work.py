"""The task of a worker: some seeds of one setting, in batches that run side by side, for a slice of time.

With a task may go others, of the same seeds and of settings that differ in multipliers of the learner only: they are
one batch where the learner can be (`ravi.runtime.settings`), to the end or to a checkpoint of every setting; where it
cannot, or where that fails, each is done by itself. So a tuning grid is one batch, and its rows are those of single
runs.

As many seeds run side by side as share a core's cache (`batches.side_by_side`): a wider batch is no faster, and takes
more memory. A task goes on with further batches for about a second; what it has not begun by then goes back. A batch
that is not done when the slice of time is up comes back as a checkpoint, from which any worker goes on, with all of its
seeds or some of them: so a long run survives whatever kills its worker, Ctrl-C loses nothing, and a batch can be
divided among workers that have nothing to do. A learner that fails gives rows that say how; a batch that fails is
halved until it is known whose fault it is.

A fault of the machine is not the learner's: where there is no memory, no room on a disk or no more files, the batch
comes back with what went wrong, and is tried again like one whose worker died. A learner's own code may raise an
OSError too, and nothing tells the two apart: it is tried again as often, and is then lost, not failed.
"""

from __future__ import annotations

import io
import platform
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ravi import ids
from ravi._jit.cache import CacheWarning
from ravi.core import MDP, Learner
from ravi.lab.experiments.rows import LEARNER, LOST, failed_rows, packed, rows_of, said
from ravi.lab.experiments.schedule.plan import digest_of
from ravi.lab.experiments.schedule.settings import Setting
from ravi.runtime import api as engine
from ravi.runtime import tree
from ravi.runtime.api import OPTIONAL, side_by_side
from ravi.runtime.result import Run, versions
from ravi.runtime.settings import alike
from ravi.runtime.world import World, world_named
from ravi.validation import InputError

MACHINE = (MemoryError, OSError, CacheWarning)  # errors that may pass, or not come elsewhere
SECOND = 1.0  # seconds after which a task begins no further batch

Stop = Callable[[], bool]


class Task(NamedTuple):
    setting: Setting
    seeds: tuple[int, ...]
    launch: str  # which launch wants it
    mdp: bytes | None = None  # the content of the MDP's file, where it has no id
    checkpoint: bytes | None = None  # where to go on from: a run of these seeds, maybe among others
    slice: float = 30.0  # seconds after which a run comes back as a checkpoint
    device: str = "cpu"  # or "gpu"
    others: tuple[Task, ...] = ()  # that may go as one batch with it


class Batch(NamedTuple):
    """Seeds that have been begun, and go on together."""

    seeds: tuple[int, ...]
    checkpoint: bytes | None  # where from; None: from the beginning


class Outcome(NamedTuple):
    rows: bytes | None  # an Arrow stream, a row for every seed that is done; None where none is
    left: tuple[Batch, ...]  # what is to go on as it is; seeds of the task that are nowhere were not begun
    seconds: float  # of computing, in this slice
    plays: int  # that were made in them
    versions: dict[str, str]  # of what computed it
    host: str
    fault: str | None = None  # of the machine, in the way of the first that is left: one line, below it a traceback
    others: tuple[Outcome, ...] = ()  # of the tasks that went with it

    @property
    def checkpoint(self) -> bytes | None:
        """The checkpoint of the batch under way."""
        return self.left[0].checkpoint if self.left else None


def undone(task: Task) -> Outcome:
    """The outcome of a task that was not begun."""
    left, others = (Batch(task.seeds, task.checkpoint),), tuple(undone(other) for other in task.others)
    return Outcome(None, left, 0.0, 0, versions(), platform.node(), others=others)


def work(task: Task, stop: Stop = lambda: False) -> Outcome:
    """Do a task, until its slice is over or `stop` says so (it is asked several times a second, between epochs)."""
    if stop():
        return undone(task)
    tasks = [task._replace(others=()), *task.others]
    first, *others = (_as_one(tasks, stop) if task.others else None) or _one_by_one(tasks, stop)
    return first._replace(others=tuple(others))


def _one_by_one(tasks: Sequence[Task], stop: Stop) -> list[Outcome]:
    """Each task by itself; those not begun after a second are returned."""
    began, done = time.perf_counter(), list[Outcome]()
    for task in tasks:
        late = bool(done) and (stop() or time.perf_counter() - began >= min(SECOND, task.slice))
        try:
            done.append(undone(task) if late else _Doing(task, stop).outcome())
        except MACHINE as error:
            done.append(undone(task)._replace(fault="\n".join(said(error))))
    return done


def _as_one(tasks: Sequence[Task], stop: Stop) -> list[Outcome] | None:
    """All tasks as one batch; None if that is impossible or fails: one by one, each reports its own failure."""
    task, doing = tasks[0], [_Doing(task, stop) for task in tasks]
    setting, record = task.setting, _record(task.setting)
    try:
        if any(_changed(one) is not None for one in tasks):
            return None
        mdp = _mdp(setting.mdp, setting.mdp_digest, task.mdp)
        learners = [mdp.learner(one.setting.learner, setting.steps) for one in tasks]
        if not alike(learners):
            return None
        _warm(learners[0], mdp, setting, record, task.device)
        taken = [Batch(one.seeds, one.checkpoint) for one in tasks]
        given = zip(taken, learners, strict=True)
        held = [_held(batch, setting, learner, mdp, record) for batch, learner in given]
        stood = [one for one in held if one is not None]
        over = until(time.perf_counter() + task.slice, stop)
        if len(stood) == len(tasks):
            made = engine.resume_settings(
                stood, learners, mdp, stop=over, progress=False, device=task.device, threads=1
            )
        elif stood:
            return None
        else:
            made = engine.run_settings(
                learners, mdp, setting.steps, task.seeds, record=record, points=setting.points, keep_epochs=False,
                stop=over, progress=False, device=task.device, threads=1,
            )  # fmt: skip
        for one, batch, before, run in zip(doing, taken, held, made, strict=True):
            one.came(batch, before, run, mdp)
    except Exception:
        return None
    return [one.so_far() for one in doing]


class _Doing:
    """A task, as far as it is."""

    def __init__(self, task: Task, stop: Stop) -> None:
        self.task, self.stop = task, stop
        self.rows: list[pa.RecordBatch] = []
        self.begun: deque[Batch] = deque()
        self.seconds, self.plays = 0.0, 0
        self.fault: str | None = None

    def outcome(self) -> Outcome:
        self._do()
        return self.so_far()

    def so_far(self) -> Outcome:
        rows = packed(pa.Table.from_batches(self.rows).combine_chunks().to_batches()[0]) if self.rows else None
        return Outcome(rows, tuple(self.begun), self.seconds, self.plays, versions(), platform.node(), self.fault)

    def _do(self) -> None:
        task, setting = self.task, self.task.setting
        changed = _changed(task)
        if changed is not None:  # not the learner's fault: the next launch runs it again
            self.rows.append(failed_rows(setting, task.seeds, task.launch, LOST, changed))
            return
        record = _record(setting)
        try:
            mdp = _mdp(setting.mdp, setting.mdp_digest, task.mdp)
            learner = mdp.learner(setting.learner, setting.steps)
        except MACHINE:
            raise
        except Exception as error:  # whatever the seed
            self._failed(task.seeds, error)
            return
        fresh: deque[tuple[int, ...]] = deque()
        if task.checkpoint is not None:
            self.begun.append(Batch(task.seeds, task.checkpoint))
        else:
            alone = task.device == "cpu"
            width = _width(learner, mdp, setting, record, task.seeds[0]) if alone else len(task.seeds)
            fresh.extend(task.seeds[k : k + width] for k in range(0, len(task.seeds), width))
        began = time.perf_counter()
        while self.begun or fresh:
            batch = self.begun.popleft() if self.begun else Batch(fresh.popleft(), None)
            try:
                _warm(learner, mdp, setting, record, task.device)
                self._run(batch, learner, mdp, record, until(time.perf_counter() + task.slice, self.stop))
            except MACHINE as error:
                self.begun.appendleft(batch)
                self.fault = "\n".join(said(error))
                return
            except Exception as error:
                self._broken(batch, error)
            if self.stop() or time.perf_counter() - began >= min(SECOND, task.slice):
                return

    def _run(self, batch: Batch, learner: Learner, mdp: World, record: tuple[str, ...], over: Stop) -> None:
        """Run a batch, to its end or to a checkpoint."""
        task, setting = self.task, self.task.setting
        held = _held(batch, setting, learner, mdp, record)
        if held is not None:
            made = engine.resume(held, learner, mdp, stop=over, progress=False, device=task.device, threads=1)
        else:
            made = engine.run(
                learner, mdp, setting.steps, batch.seeds, record=record, points=setting.points, keep_epochs=False,
                stop=over, progress=False, device=task.device, threads=1,
            )  # fmt: skip
        self.came(batch, held, made, mdp)

    def came(self, batch: Batch, held: Run | None, made: Run, mdp: World) -> None:
        """Record the run of a batch that continued from `held`, or was begun."""
        self.seconds += made.seconds - (0.0 if held is None else held.seconds)
        self.plays += int(made.plays.sum()) - (0 if held is None else int(held.plays.sum()))
        if not made.complete:
            content = io.BytesIO()
            made.save(content)
            self.begun.appendleft(Batch(batch.seeds, content.getvalue()))
        elif not np.isfinite(regret := made.results.get("regret_total", np.zeros(0))).all():
            raise FloatingPointError(f"the regret is {regret[~np.isfinite(regret)][0]}")
        else:
            self.rows.append(rows_of(made, self.task.setting, mdp, self.task.launch))

    def _broken(self, batch: Batch, error: Exception) -> None:
        """A batch failed: one seed has a row that says so; several are tried again in parts."""
        if len(batch.seeds) == 1:
            self._failed(batch.seeds, error)
        else:
            middle = len(batch.seeds) // 2
            halves = (batch.seeds[:middle], batch.seeds[middle:])
            self.begun.extendleft(Batch(half, batch.checkpoint) for half in reversed(halves))

    def _failed(self, seeds: tuple[int, ...], error: Exception) -> None:
        short, trace = said(error)
        self.rows.append(failed_rows(self.task.setting, seeds, self.task.launch, LEARNER, short, trace))


def _record(setting: Setting) -> tuple[str, ...]:
    """What a run records, of what the setting keeps."""
    return tuple(name for name in setting.record if name in OPTIONAL)


def _width(learner: Learner, mdp: World, setting: Setting, record: tuple[str, ...], seed: int) -> int:
    """How many seeds go side by side; one, where the first of them cannot even begin."""
    try:
        return side_by_side(learner, mdp, setting.steps, seed, record, setting.points)
    except MACHINE:
        raise
    except Exception:
        return 1


def _held(batch: Batch, setting: Setting, learner: Learner, mdp: World, record: tuple[str, ...]) -> Run | None:
    """The run of a batch's checkpoint; none where that is damaged, or of other versions: then it begins anew."""
    if batch.checkpoint is None:
        return None
    points = setting.points
    options = {"record": list(record), "points": points, "pad": False, "keep_epochs": False, "measured": True}
    try:
        held = Run.load(io.BytesIO(batch.checkpoint))
        if (held.versions, held.steps, held.options) != (versions(), setting.steps, options):
            return None
        if not {*batch.seeds} <= {*held.seeds}:
            return None
        held = engine.resume(held, learner, mdp, stop=lambda: True)  # no epoch yet: what a learner raises is its own
    except MACHINE:
        raise
    except InputError:
        return None
    places = np.array([held.seeds.index(seed) for seed in batch.seeds])
    share = len(places) / len(held.seeds)
    return replace(held, seeds=list(batch.seeds), batch=tree.take(held.batch, places), seconds=share * held.seconds)


def until(deadline: float, stop: Stop = lambda: False) -> Stop:
    """A function that says to stop when `stop` does, or at a time of `perf_counter`, but not before the first epoch."""
    first = True

    def over() -> bool:
        nonlocal first
        late, first = not first and time.perf_counter() >= deadline, False
        return late or stop()

    return over


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
def _mdp(name: str, digest: str, content: bytes | None) -> World:
    mdp = world_named(name if content is None else MDP.load(io.BytesIO(content)))
    if digest_of(name, mdp) != digest:
        raise InputError(f"{name} is another MDP here than where the work was planned: is this another version of it?")
    return mdp


_warmed: set[tuple[str, str, bool, tuple[str, ...], str]] = set()


def _warm(learner: Learner, mdp: World, setting: Setting, record: tuple[str, ...], device: str) -> None:
    """Load or compile what the learner needs, once per process, so that times are those of running."""
    world = "" if mdp.kind == "tabular" else mdp.name  # loops of other kinds are compiled for each
    key = (learner.name.split(",")[0], world, bool(mdp.sizes[2]), record, device)
    if key not in _warmed:
        given = briefly(learner, mdp, setting.learner)
        more: dict[str, Any] = {"keep_epochs": False, "progress": False, "device": device, "threads": 1}
        engine.run(given, mdp, 1, 1, record=record, stop=lambda: False, **more)
        _warmed.add(key)


def briefly(learner: Learner, mdp: World, text: str) -> Learner | str:
    """The learner for a run of fewer steps: itself, but on continuous states, where it is made for its T, by its id."""
    return text if mdp.kind == "continuous" else learner
