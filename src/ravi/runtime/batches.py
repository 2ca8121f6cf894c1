"""A batch of seeds, run from its current state to its end or until it is stopped: shared out among threads, which is
possible because a seed is the same alone and in a batch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import effort, sparing
from ravi.core import Array, Learner, Measure
from ravi.display.progress import Progress, wanted
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import gpu as devices
from ravi.runtime import tree
from ravi.runtime.python import Batch, Task
from ravi.runtime.result import Options, Run, versions
from ravi.runtime.settings import learner_of
from ravi.runtime.world import Named, Scores, World, world_named
from ravi.runtime.writers import Look

Callback = Callable[[Look], None]
CACHE = 2**20  # bytes of state that are worked on together: about a core's second-level cache
OPTIONAL = ("trajectory", "stream")  # what `record` may name


class Going(NamedTuple):
    """How runs go on, and when they stop."""

    pause: int | None
    stop: Callable[[], bool] | None
    progress: Progress | bool | None
    callback: Callback | None
    device: str
    threads: int

    @staticmethod
    def checked(pause: int | None, stop: Any, progress: Any, callback: Any, device: str, threads: int | None) -> Going:
        on = validation.one_of(device, devices.DEVICES, "device")
        after = None if pause is None else validation.whole(pause, "pause", 0)
        ask, told = validation.function(stop, "stop"), validation.function(callback, "callback")
        many = len(os.sched_getaffinity(0)) if threads is None else validation.whole(threads, "threads")
        return Going(after, ask, wanted(progress), told, on, many)


class Part(NamedTuple):
    """Settings that go as one batch, the seeds of each after those of the one before."""

    learners: list[Learner]
    T: int
    n: int  # seeds of each
    options: Options
    begin: Callable[[Sequence[Measure]], Batch]  # the measures -> where it goes on
    spent: list[float]  # seconds of each, before


def go_on(part: Part, world: World, scores: Scores, going: Any) -> list[Run]:
    """Run a part to its end, or until it stops. going: its `stop` and `progress` are those of this part."""
    with sparing():
        batch = part.begin(scores.measures)
    began = time.perf_counter() - effort.seconds
    T, n, cpu = part.T, len(batch.walkers.key), going.device == "cpu"

    def tell(batches: Sequence[Batch]) -> None:
        if going.progress is not None:
            going.progress(sum(one.plays(T) for one in batches))
        if going.callback is not None and (cpu or all((one.walkers.time >= T).all() for one in batches)):
            going.callback(_look(tree.join(batches), scores.measures, T))

    told = tell if going.progress is not None or going.callback is not None else None
    many = 1
    if cpu and compiled_driver.is_compiled(part.learners[0], scores.measures):
        many = n if effort.allowance > 0 else min(going.threads, n)  # what Python may run comes seed by seed
    shares = np.array_split(np.arange(n), many)
    tasks = [
        Task(
            learner_of(part.learners, part.n, rows), world.answers, T, 1 / (1 - world.discount), part.options["pad"],
            scores.measures, going.pause, going.stop, told,
        )
        for rows in shares
    ]  # fmt: skip
    done = world.run(tasks, [tree.take(batch, rows, among=n) for rows in shares], going.device)
    apart = tree.apart(tree.join(done), part.n)
    seconds = (time.perf_counter() - effort.seconds - began) / len(apart)  # without compiling
    made = zip(part.learners, apart, part.spent, strict=True)
    return [_made(part, world, scores, learner, stands, spent + seconds) for learner, stands, spent in made]


def _look(batch: Batch, measures: Sequence[Measure], T: int) -> Look:
    """The current results of seeds that are still running (those of others are set aside); at the end, of all."""
    plays = np.minimum(batch.walkers.time, T)
    rows = plays < T if (plays < T).any() else np.ones(len(plays), bool)
    found = [measure.results(m) for measure, m in zip(measures, batch.records, strict=True)]
    numbers = {name: array for one in found for name, array in one.items() if array.shape == plays.shape}
    kept = {name: np.asarray(array[rows], np.float64) for name, array in numbers.items()}
    return Look(batch.walkers.key[rows].astype(np.int64), plays[rows], kept)


def _made(part: Part, world: World, scores: Scores, learner: Learner, batch: Batch, seconds: float) -> Run:
    results: dict[str, Array] = {}
    for measure, m in zip(scores.measures, batch.records, strict=True):
        results |= measure.results(m)
    return Run(
        world=world.kind, mdp=world.name, mdp_digest=world.digest, learner=learner.name,
        settings=plain_settings(learner), discount=world.discount, steps=part.T,
        seeds=[int(key) for key in batch.walkers.key], optimum=scores.optimum, optimum_error=scores.error,
        options=part.options, seconds=seconds, versions=versions(), batch=batch, results=results, units=world.units,
    )  # fmt: skip


def plain_settings(learner: Learner) -> dict[str, Any]:
    """The learner's settings as JSON holds them: Python's own numbers, and an infinite one as the text inf or -inf."""

    def plain(value: Any, name: str) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            value = value.tolist()
        if isinstance(value, (list, tuple)):
            return [plain(one, name) for one in value]
        if isinstance(value, dict):
            return {str(key): plain(one, f"{name}.{key}") for key, one in value.items()}
        if isinstance(value, float) and isnan(value):
            raise validation.InputError(f"{learner.name} has the setting {name} = nan, which is not a number")
        if isinstance(value, float) and value in (inf, -inf):
            return str(value)
        return value

    return {name: plain(value, name) for name, value in learner.settings.items()}


def side_by_side(learner: Learner, mdp: Named, steps: int, seed: int, record: Sequence[str], points: int) -> int:
    """How many seeds of such a run go side by side: a wider batch is no faster, and takes more memory."""
    world, measures = world_named(mdp), _as_in_suites(learner, mdp, steps, record, points)
    return max(1, int(CACHE / world.size(world.begin(learner, np.array([seed], np.uint64), measures))))


def can_run(device: str, learner: Learner, measures: Sequence[Measure]) -> None:
    """An error, before anything starts, where a run cannot be on a device."""
    if device == "gpu":
        why = compiled_driver.why_not(learner, measures, compiled_driver.on_gpu(measures))
        if why is not None:
            raise validation.InputError(f"device=gpu: {why}; docs/guides/gpu.md lists what does")
        devices.target()


def check_device(device: str, learner: Learner, mdp: Named, steps: int, record: Sequence[str]) -> None:
    """An error where such a run cannot be on a device."""
    can_run(device, learner, [])
    can_run(device, learner, _as_in_suites(learner, mdp, steps, record, 1))


def _as_in_suites(learner: Learner, mdp: Named, steps: int, record: Sequence[str], points: int) -> list[Measure]:
    """The measures of such a run in a suite."""
    options: Options = {
        "record": [name for name in record if name in OPTIONAL], "points": points, "pad": False, "keep_epochs": False,
        "measured": True,
    }  # fmt: skip
    return world_named(mdp).scores(learner, steps, options).measures
