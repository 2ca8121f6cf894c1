"""The compiled driver: each seed goes through all its epochs by one compiled function, on a CPU or a GPU.

The function, `_advance`, plans, walks and records an epoch of one seed after the other. It is called for about a tenth
of a second at a time; between two calls the run is looked at: progress, callbacks, stops and pauses. On a CPU the seeds
are shared out among threads. A learner takes part by its `Seedwise`, a measure by its `Recorder` (`ravi.core`); all
others are run by `ravi.runtime.python`, with the same bits.
"""

from __future__ import annotations

import time
from collections import namedtuple
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from inspect import signature
from math import ceil, isfinite
from math import log as logarithm
from types import FunctionType
from typing import Any, NamedTuple, Protocol

import numpy as np

from ravi._jit import teams
from ravi._jit.functions import compiled, effort, instance, uncounted
from ravi._jit.teams import NEVER, Buffer, enough, first, seeds, some, sync
from ravi.core import Array, Learner, Measure, Recorder
from ravi.runtime.walk import NO_AGES, NO_VISITS, World, check_policies, empty_path, steps_with
from ravi.runtime.walk import learn as nothing

AHEAD = 32  # steps whose numbers are drawn together, where a team is several threads
NAMES = ("one", "two", "three", "four", "five")  # of the measures in `_advance`
CALL = 0.1  # seconds of a call, about
FIRST = 2  # epochs of the first call
MOST = 4096  # epochs of a call, at most
ROWS = 64  # epochs of a call on a CPU for which there is room, whatever the number of seeds


class Batch(NamedTuple):
    """All that a run carries from one epoch to the next, seeds first."""

    walkers: Any
    state: Any
    records: tuple[Any, ...]

    def plays(self, T: int) -> int:
        """The steps that all seeds have made together, up to T each."""
        return int(np.minimum(self.walkers.time, T).sum())


class Task(NamedTuple):
    """What a driver is to do with seeds: to take them from where they stand to where they stop."""

    learner: Learner
    world: World
    T: int
    H: float
    pad: bool  # play on to the reset after T, without learning
    measures: Sequence[Measure]
    pause: int | None  # stop when every seed has made so many steps
    stopped: Callable[[], bool]  # or when this says so
    tell: Callable[[Sequence[Batch]], None] | None  # where all seeds stand

    @property
    def last(self) -> int:
        """The steps that every seed is to make, at least."""
        return self.T if self.pause is None else min(self.T, self.pause)


def path_length(n: int, H: float, resets: bool) -> int:
    """Steps that a path has room for: most epochs that end at resets; a longer epoch comes in stretches."""
    return min(max(64, ceil(H * (logarithm(n) + 7))) if resets and isfinite(H) else 1000, max(64, 2**22 // n))


@compiled
def no_record(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """The `record` of a measure that there is not: it does nothing."""


plan, walk = nothing, nothing  # `run_function` puts those of a run here
one = two = three = four = five = no_record


def _advance(  # type: ignore[no-untyped-def]
    epochs, mark, row, T, padded, reset_ends, world, policy, by_stage, walkers, path, over, deadline, visits, ages,
    ahead, written, own, kept,
):  # fmt: skip
    """Take every seed through up to `epochs` more epochs, while it has made fewer than `mark` and T steps; their rows
    are written from row[0] on. `over` is 1 between two epochs. There, seeds whose teams are in lockstep wait for each
    other (`enough`), while the others of them go on walking, a path at a time."""
    _, time, _ = walkers
    _, _, _, _, resets, lengths, _, _ = path
    n, last = time.shape[0], min(T, mark)
    for i in seeds(n):
        e, going, opening, beyond = 0, True, True, False
        while some(going, n):
            between = over[i] == 1
            if between:
                going = e < epochs and time[i] < last
            if enough(between and going, going, n):
                end = plan(own, i, time[i] + 1)
                sync()
                if first():
                    over[i], deadline[i] = 0, min(T, end)
                between, opening, beyond = False, True, False
            if not between:
                walk(
                    i, i + 1, world, by_stage, walkers, path, over, reset_ends or beyond, deadline, visits, ages, T,
                    ahead, written, not beyond, own,
                )  # fmt: skip
                one(kept[0], i, row[0] + e, opening, policy, path)
                two(kept[1], i, row[0] + e, opening, policy, path)
                three(kept[2], i, row[0] + e, opening, policy, path)
                four(kept[3], i, row[0] + e, opening, policy, path)
                five(kept[4], i, row[0] + e, opening, policy, path)
                opening = False
                if padded and over[i] == 1 and time[i] >= T and not resets[i, lengths[i] - 1]:
                    beyond = True  # from T on to the reset, without learning
                    sync()
                    if first():
                        over[i], deadline[i] = 0, NEVER
                sync()
                e += over[i] == 1


def why_not(learner: Learner, measures: Sequence[Measure], recorders: Sequence[Recorder | None]) -> str | None:
    """Why such a run is not compiled; None where it is. recorders: of the measures, on a device."""
    if learner.seedwise is None:
        return f"{learner.name} does not run there"
    if not learner.seedwise.joint and learner.compiled is None:
        return f"{learner.name} has another plan, add, until or walk than it was built with, and so does not run there"
    strange = [measure.name for measure, recorder in zip(measures, recorders, strict=True) if recorder is None]
    return f"the measure {strange[0]} does not run there" if strange else None


def on_cpu(measures: Sequence[Measure]) -> list[Recorder | None]:
    """The recorders that give the bits of the measures' own `record` on a CPU."""
    found = [one.recorder and (one.recorder.here or one.recorder) for one in measures]
    return [one if one is not None and one.exact else None for one in found]


def is_compiled(learner: Learner, measures: Sequence[Measure]) -> bool:
    """Whether such a run is compiled on a CPU."""
    here = learner.compiled is not None and len(measures) <= len(NAMES)
    return here and why_not(learner, measures, on_cpu(measures)) is None


def functions(learner: Learner, recorders: Sequence[Recorder]) -> tuple[Any, ...]:
    """The functions that are bound into `_advance` for this learner and these measures."""
    assert learner.seedwise is not None
    return learner.seedwise.plan, learner.seedwise.learn, *[one.record for one in recorders]


def run_function(plan: Any, learn: Any, *records: Any) -> Any:
    """`_advance` with these functions bound: a Python function, to be compiled for its target. Its name is a digest of
    theirs, which together are longer than a file system takes."""
    named = dict(zip(NAMES, [*records, *[no_record] * (len(NAMES) - len(records))], strict=True))
    made = instance(_advance, plan=plan, walk=steps_with(learn), **named)
    name = f"_advance_{sha256(made.__name__.encode()).hexdigest()[:16]}"
    return FunctionType(made.__code__.replace(co_name=name, co_qualname=name), made.__globals__, name)


# The arguments of `_advance` after `epochs` and `mark`.
Arguments: Any = namedtuple("Arguments", [*signature(_advance).parameters][2:])  # type: ignore[misc]


def arguments(
    learner: Learner, world: World, T: int, pad: bool, recorders: Sequence[Recorder], batch: Any, *, teams: int,
    epochs: int, length: int,
) -> Any:  # fmt: skip
    """The arguments of `_advance` after `epochs` (at most so many) and `mark`, with paths of `length` steps: nested
    tuples of numbers, of arrays and views of the batch's arrays, and of `ravi._jit.teams.Buffer`."""
    seedwise = learner.seedwise
    assert seedwise is not None
    n, state = len(batch.walkers.time), batch.state
    staged, A = state.policy.ndim == 4, state.policy.shape[-1]
    kept = [recorder.own(m, teams, epochs) for recorder, m in zip(recorders, batch.records, strict=True)]
    written = 2 if pad or seedwise.joint else max((recorder.reads for recorder in recorders), default=0)
    return Arguments(  # type: ignore[call-arg]
        np.zeros(1, np.int64), T, pad, seedwise.reset, tuple(world), state.policy.reshape(n, -1, A),
        state.policy if staged else state.policy[:, None], tuple(batch.walkers), tuple(empty_path(n, length)),
        np.ones(n, np.uint8), np.zeros(n, np.int64), NO_VISITS, state.age if staged else NO_AGES,
        Buffer((teams, AHEAD, 4)), written, seedwise.of(state, teams, batch.walkers.key),
        (*kept, *[()] * (len(NAMES) - len(kept))),
    )  # fmt: skip


class Target(Protocol):
    """Seeds that one thread, or a GPU, takes through their epochs; also those of a large world (`ravi.large`)."""

    def run(self, epochs: int) -> None:
        """Take every seed through about this many epochs."""

    def look(self, epochs: int) -> None:
        """Bring the times of the seeds here, and the rows of these epochs to the logs."""

    def finish(self) -> None:
        """Bring all here."""


class OnCpu:
    """Seeds of one thread of a CPU."""

    def __init__(self, task: Task, batch: Batch) -> None:
        n, learner, self.task, self.batch = len(batch.walkers.time), task.learner, task, batch
        self.most = min(task.T, max(ROWS, MOST // n))
        length = min(task.T, path_length(n, task.H, True))
        recorders = [one for one in on_cpu(task.measures) if one is not None]
        given = arguments(
            learner, task.world, task.T, task.pad, recorders, batch, teams=1, epochs=self.most, length=length
        )
        self.arguments = teams.allocate(given)
        self.function = function_of(*functions(learner, recorders))

    def run(self, epochs: int) -> None:
        self.function(epochs, self.task.last, *self.arguments)

    def look(self, epochs: int) -> None:
        def brought(row: Array) -> Array:
            made = row[:epochs].copy()
            row[:epochs] = 0
            return made

        log(self.task.measures, self.batch.records, self.arguments.kept, brought)

    def finish(self) -> None:
        """All is here."""
        check_played(self.task, self.batch)


@cache
def function_of(*functions: Any) -> Any:
    """What `run_function` makes of these functions, for a CPU; other threads run meanwhile. It allocates nothing, so it
    counts no references."""
    return uncounted(run_function(*functions), nogil=True)


def log(
    measures: Sequence[Measure], records: Sequence[Any], kept: Sequence[Any], brought: Callable[[Array], Array]
) -> None:
    """Append the rows of the epochs that were made, where a measure has some. brought: rows -> a copy of them here,
    which leaves zeros behind."""
    for measure, m, own in zip(measures, records, kept, strict=False):
        recorder = measure.recorder
        assert recorder is not None
        rows = recorder.rows(own)
        if rows and recorder.log is not None:
            parts = [brought(row) for row in rows]
            made = int((parts[0] > 0).any(1).sum())
            recorder.log(m, tuple(part[:made] for part in parts))


def run(tasks: Sequence[Task], batches: Sequence[Batch]) -> None:
    """Take the seeds of each of these batches through their epochs on a CPU, each by a thread of its own; in place."""
    targets = [OnCpu(task, batch) for task, batch in zip(tasks, batches, strict=True)]
    with ThreadPoolExecutor(len(targets)) as pool:
        together = False

        def each(epochs: int) -> None:
            """One after the other until the function is compiled, then all at once."""
            nonlocal together
            if together:
                list(pool.map(lambda target: target.run(epochs), targets))
                return
            together = effort.allowance <= 0  # else Python may run it
            for target in targets:
                target.run(epochs)

        advance(targets, each, tasks[0], batches, min(target.most for target in targets))


def advance(
    targets: Sequence[Target], each: Callable[[int], None], task: Task, batches: Sequence[Batch], most: int,
    call: float = CALL,
) -> None:  # fmt: skip
    """Run until all seeds have made T steps, or as many as the pause asks for, or until the run is stopped. each: takes
    all targets through so many epochs, at most `most`; call: seconds that this takes, about."""
    times, epochs, reported = [batch.walkers.time for batch in batches], min(FIRST, most), 0.0
    while min(int(part.min()) for part in times) < task.last and not task.stopped():
        began = time.perf_counter()
        each(epochs)
        for target in targets:
            target.look(epochs)
        now = time.perf_counter()
        epochs = int(min(max(epochs * min(call / max(now - began, 1e-3), 4.0), 1), most))
        if effort.allowance > 0:
            effort.done = float(np.mean([part.mean() for part in times])) / task.T
        if task.tell is not None and now > reported:
            reported = now + CALL
            task.tell(batches)
    for target in targets:
        target.finish()
    if task.tell is not None:
        task.tell(batches)


def check_played(task: Task, batch: Batch) -> None:
    """An error where the policies of these seeds are none."""
    keys = batch.walkers.key
    check_policies(task.learner.name, batch.state.policy, keys, np.zeros(len(keys), np.bool_))
