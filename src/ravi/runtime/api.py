"""Runs: their start, stop and resumption.

A run is a pure function of its keys. Between epochs it can be stopped and resumed, with the same bits as if it had
never stopped. What it runs in is a world (`ravi.runtime.world`), and drivers take its seeds from epoch to epoch
(`ravi.runtime.compiled`, `ravi.runtime.python`).
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from ravi import ids, validation
from ravi._jit.functions import effort, sparing
from ravi.core import MDP, Array, Floats, Ints, Learner, Measure
from ravi.display.progress import Progress, telling, wanted
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import tree
from ravi.runtime.compiled import Batch, Task
from ravi.runtime.result import Options, Run, versions
from ravi.runtime.seedwise import alike, learner_of
from ravi.runtime.world import Named, Scores, World, find_world, stored_batch


class Look(NamedTuple):
    """The current results of the seeds of a run.

    Examples
    --------
    >>> import ravi
    >>> looks = []
    >>> made = ravi.run("psrl", "riverswim/3", 100, seeds=2, callback=looks.append)
    >>> looks[-1].time
    array([100, 100])
    >>> bool((looks[-1].numbers["regret_total"] == made.regret).all())
    True
    """

    seeds: Ints  # which seeds                                     (n,)
    time: Ints  # how many steps each has made                     (n,)
    numbers: dict[str, Floats]  # of each, by what they are: `regret_total`, `gap`, `reward_total`, ...   (n,)


Callback = Callable[[Look], None]


CACHE = 2**20  # bytes of state that are worked on together: about a core's second-level cache


SEEDS = 16  # unless given; the command's too
OPTIONAL = ("trajectory", "gain", "stream")  # what `record` may name
LOG = logging.getLogger("ravi")


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a run: `run` holds what was computed, and can be resumed (`runs`, for several settings).

    Attributes
    ----------
    run
        The run so far; the first of them, for several settings.
    runs
        All runs, one of each setting.

    Examples
    --------
    >>> import ravi
    >>> try:
    ...     made = ravi.run("psrl", "riverswim/3", 100)
    ... except ravi.Stopped as stopped:
    ...     made = ravi.resume(stopped.run, "psrl", "riverswim/3")
    """

    def __init__(self, *runs: Run) -> None:
        super().__init__("stopped; the run so far is in .run")
        self.run, self.runs = runs[0], list(runs)


def run(
    learner: Learner | str,
    mdp: Named,
    steps: int,
    seeds: int | Iterable[int] = SEEDS,
    *,
    record: Sequence[str] = (),
    measures: Sequence[Measure] = (),
    points: int = 500,
    pad: bool = False,
    keep_epochs: bool = True,
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Progress | bool | None = None,
    callback: Callback | None = None,
    measured: bool = True,
    device: str = "cpu",
    threads: int | None = None,
) -> Run:
    """Run `learner` on `mdp` (themselves or their ids) for exactly `steps` steps under each seed, and score it exactly.

    Parameters
    ----------
    learner
        The learner, its id with options: "ravi-ucb,scale=0.1", or a function that makes it of problem and steps.
    mdp
        An MDP or its id; one whose rewards change (`tides/6,block=50`; docs/explanation/beyond.md), a large one of
        which only visited states are stored (`large/grid,1000`; docs/guides/large.md), or a continuous one
        (docs/guides/continuous.md).
    steps
        T, the number of steps.
    seeds
        How many (0, 1, ...), or a list of them.
    record
        "trajectory" (the regret of the earlier literature; with a discount), "gain" (the regret by gains; in the
        average reward), "stream" (every step).
    measures
        Further ones, each a `Measure`.
    points
        At how many times curves are kept.
    pad
        Go on after T until the last epoch ends, without learning (the T+ of Section 3).
    keep_epochs
        Keep T_k and gap_k of every epoch.
    pause
        Stop after the epochs in which all seeds have made this many steps; `resume` goes on.
    stop
        Called several times a second, between epochs; if it returns True the run ends there, as at a pause; Ctrl-C is
        then not handled.
    progress
        Called with the number of steps made so far, and in all; None for a bar on a terminal or in a notebook, False
        for none.
    callback
        Called with a `ravi.runtime.api.Look` ten times a second at most, and at the end: the current regret, gap and
        rewards of the seeds that are running (on a GPU at the end only).
    measured
        False to learn without recording anything.
    device
        "cpu" or "gpu" (docs/guides/gpu.md).
    threads
        The number of threads that share the seeds, where learner and measures are compiled; None for as many as the
        process has cores. The results are the same.

    Returns
    -------
    Run
        Its `results`, by name, with seeds first: regret at the kept times, rewards, the output policy, ...

    Examples
    --------
    >>> import ravi
    >>> made = ravi.run("psrl", "riverswim/3", 1000, seeds=4)
    >>> made.results["regret"].shape == (4, len(made.times))
    True
    >>> bool((made.results["regret_error"] < 1e-6).all())  # certified
    True
    """
    return run_settings(
        [learner], mdp, steps, seeds, record=record, measures=measures, points=points, pad=pad, keep_epochs=keep_epochs,
        pause=pause, stop=stop, progress=progress, callback=callback, measured=measured, device=device,
        threads=threads,
    )[0]  # fmt: skip


def run_settings(
    learners: Sequence[Learner | str], mdp: Named, steps: int, seeds: int | Iterable[int] = SEEDS, *,
    record: Sequence[str] = (), measures: Sequence[Measure] = (), points: int = 500, pad: bool = False,
    keep_epochs: bool = True, pause: int | None = None, stop: Callable[[], bool] | None = None,
    progress: Progress | bool | None = None, callback: Callback | None = None, measured: bool = True,
    device: str = "cpu",
    threads: int | None = None,
) -> list[Run]:  # fmt: skip
    """`run` of each of these learners, with the same bits: as one batch if they differ only in `scale`, `step_scale`,
    `eta` and `beta` and their learner supports it (`ravi.runtime.seedwise`), else one after the other.

    Parameters
    ----------
    learners
        Each itself, or its id.
    mdp, steps, seeds
        As for `run`.
    record, measures, points, pad, keep_epochs, pause, stop, progress, callback, measured, device, threads
        As for `run`.

    Returns
    -------
    list of Run
        One of each learner.

    Examples
    --------
    >>> import ravi
    >>> made = ravi.run_settings(["ravi-ucb,scale=0.1", "ravi-ucb,scale=0.2"], "riverswim/3", 500, seeds=2)
    >>> [one.settings["scale"] for one in made]
    [0.1, 0.2]
    """
    T, controls = validation.steps(steps), Controls.checked(pause, stop, progress, callback, device, threads)
    world = find_world(mdp)
    given = _one_or_more(learners, "learners", "a list of learners, each itself or its id")
    several = [world.learner(one, T) for one in given]
    keys = np.array(validation.seeds(seeds), np.uint64)
    recorded = _checked_records(record)
    options: Options = {
        "record": recorded, "points": validation.whole(points, "points"), "pad": validation.flag(pad, "pad"),
        "keep_epochs": validation.flag(keep_epochs, "keep_epochs"), "measured": validation.flag(measured, "measured"),
    }  # fmt: skip
    if recorded and not options["measured"]:
        raise validation.InputError(f"record names {recorded[0]!r}, but measured=False records nothing")

    def settings_group(group: list[Learner]) -> Group:
        every = np.tile(keys, len(group))
        begin = lambda chosen: world.begin(learner_of(group, len(keys)), every, chosen)  # noqa: E731
        return Group(group, T, len(keys), options, begin, [0.0] * len(group))

    groups = [settings_group(one) for one in ([several] if alike(several) else [[one] for one in several])]
    return _run_groups(groups, world, _checked_measures(measures), controls)


def resume(
    stopped: Run,
    learner: Learner | str,
    mdp: Named,
    *,
    measures: Sequence[Measure] = (),
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Progress | bool | None = None,
    callback: Callback | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> Run:
    """Continue a stopped run; `learner`, `mdp` and `measures` must be those that it was made with. The device may
    differ.

    Parameters
    ----------
    stopped
        The run of a `ravi.Stopped`, of a pause, or of `ravi.Run.load`.
    learner, mdp, measures
        Those of the run.
    pause, stop, progress, callback, device, threads
        As for `run`.

    Returns
    -------
    Run
        With the bits of an uninterrupted run.

    Examples
    --------
    >>> import ravi
    >>> half = ravi.run("psrl", "riverswim/3", 1000, seeds=2, pause=500)
    >>> whole = ravi.resume(half, "psrl", "riverswim/3")
    >>> bool((whole.regret == ravi.run("psrl", "riverswim/3", 1000, seeds=2).regret).all())
    True
    """
    return resume_settings(
        [stopped], [learner], mdp, measures=measures, pause=pause, stop=stop, progress=progress, callback=callback,
        device=device, threads=threads,
    )[0]  # fmt: skip


def resume_settings(
    stopped: Sequence[Run],
    learners: Sequence[Learner | str],
    mdp: Named,
    *,
    measures: Sequence[Measure] = (),
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Progress | bool | None = None,
    callback: Callback | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> list[Run]:
    """`resume` of each of these runs: as one batch where their learners can be one and all else is the same.

    Parameters
    ----------
    stopped
        Runs, of one MDP.
    learners
        Those of the runs, one of each.
    mdp, measures
        Those of the runs.
    pause, stop, progress, callback, device, threads
        As for `run`.

    Returns
    -------
    list of Run

    Examples
    --------
    >>> import ravi
    >>> learners = ["ravi-ucb,scale=0.1", "ravi-ucb,scale=0.2"]
    >>> halves = ravi.run_settings(learners, "riverswim/3", 500, seeds=2, pause=100)
    >>> [one.complete for one in ravi.resume_settings(halves, learners, "riverswim/3")]
    [True, True]
    """
    controls = Controls.checked(pause, stop, progress, callback, device, threads)
    runs = _one_or_more(stopped, "stopped", "a list of runs")
    given = _one_or_more(learners, "learners", "a list of learners, one of each run")
    world, several = find_world(mdp), list[Learner]()
    if len(given) != len(runs):
        raise validation.InputError(f"learners are {len(given)}, and there are {len(runs)} stopped runs")
    for one, learner in zip(runs, given, strict=True):
        validation.instance(one, Run, "stopped", "a run: that of ravi.Stopped, or of ravi.Run.load")
        made = world.learner(learner, one.steps)
        _check_same(one, made, world)
        several.append(made)

    def settings_group(places: Sequence[int]) -> Group:
        group, first = [several[place] for place in places], runs[places[0]]
        begin = lambda chosen: tree.join([_resumed_batch(runs[i], several[i], world, chosen) for i in places])  # noqa: E731
        spent = [runs[place].seconds for place in places]
        return Group(group, first.steps, len(first.seeds), first.options, begin, spent)

    same = all((one.steps, one.seeds, one.options) == (runs[0].steps, runs[0].seeds, runs[0].options) for one in runs)
    every = range(len(runs))
    groups = [settings_group(every)] if same and alike(several) else [settings_group([place]) for place in every]
    return _run_groups(groups, world, _checked_measures(measures), controls)


def resolved(mdp: MDP | str, learner: Learner | str, T: int) -> tuple[MDP, Learner]:
    """The MDP and the learner, each itself or by its id."""
    mdp = ids.mdp(mdp)
    return mdp, learner if isinstance(learner, Learner) else ids.learner(learner, mdp, T)


def check_device(device: str, learner: Learner, mdp: Named, steps: int, record: Sequence[str]) -> None:
    """An error where such a run cannot be on a device."""
    can_run(device, learner, [])
    can_run(device, learner, _as_in_suites(learner, mdp, steps, record, 1))


def side_by_side(learner: Learner, mdp: Named, steps: int, seed: int, record: Sequence[str], points: int) -> int:
    """How many seeds of such a run go side by side: a wider batch is no faster, and takes more memory."""
    world, measures = find_world(mdp), _as_in_suites(learner, mdp, steps, record, points)
    return max(1, int(CACHE / world.size(world.begin(learner, np.array([seed], np.uint64), measures))))


# Drivers of runs.


@contextmanager
def interrupts(
    *more: signal.Signals, at_once: Callable[[int], bool] = lambda count: count > 1
) -> Iterator[Callable[[], bool]]:
    """Ctrl-C, like these signals, sets a flag that a loop reads where it can stop; a second one interrupts at once,
    or whichever `at_once` says, by its number. A signal that the process ignores (nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    count = 0

    def handle(signum: int, frame: Any) -> None:
        nonlocal count
        count += 1
        if at_once(count):
            raise KeyboardInterrupt

    heard = [number for number in (signal.SIGINT, *more) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield lambda: count > 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Controls(NamedTuple):
    """When runs stop, on what they run, and who watches them."""

    pause: int | None
    stop: Callable[[], bool] | None
    progress: Progress | bool | None
    callback: Callback | None
    device: str
    threads: int

    @staticmethod
    def checked(
        pause: int | None, stop: Any, progress: Any, callback: Any, device: str, threads: int | None
    ) -> Controls:
        return Controls(
            None if pause is None else validation.whole(pause, "pause", 0),
            validation.function(stop, "stop"),
            wanted(progress),
            validation.function(callback, "callback"),
            validation.one_of(device, validation.DEVICES, "device"),
            len(os.sched_getaffinity(0)) if threads is None else validation.whole(threads, "threads"),
        )


class Group(NamedTuple):
    """Settings that run as one batch, the seeds of each after those of the one before."""

    learners: list[Learner]
    T: int
    n: int  # seeds of each
    options: Options
    begin: Callable[[Sequence[Measure]], Batch]  # the measures -> the batch at the start
    spent: list[float]  # seconds of each, before


def _run_groups(groups: Sequence[Group], world: World, own: Sequence[Measure], controls: Controls) -> list[Run]:
    """The runs of all groups, one group after the other; an error about any comes before the first starts."""
    stop, ready = controls.stop, list[tuple[Group, Scores]]()
    for group in groups:
        learner = group.learners[0]
        world.check_memory(learner, group.T, group.options, len(group.learners) * group.n)
        can_run(controls.device, learner, own)
        with sparing():
            scores = world.scores(learner, group.T, group.options)
        scores = scores._replace(measures=[*scores.measures, *own])
        can_run(controls.device, learner, scores.measures)
        ready.append((group, scores))
    total, runs = sum(len(group.learners) * group.n * group.T for group in groups), list[Run]()
    label = f"{groups[0].learners[0].name} on {world.name}"
    with interrupts() if stop is None else nullcontext(stop) as stopped, telling(controls.progress, label) as progress:
        for group, scores in ready:
            before = sum(int(one.plays.sum()) for one in runs)
            tell = None if progress is None else (lambda done, before=before: progress(before + done, total))
            runs += _run_group(group, world, scores, controls._replace(stop=stopped, progress=tell))
    for run in runs:
        LOG.info("%s, in %.2f s", run.title, run.seconds)
    if stop is None and stopped():
        raise Stopped(*runs)
    return runs


def can_run(device: str, learner: Learner, measures: Sequence[Measure]) -> None:
    """An error, before anything starts, where a run cannot be on a device."""
    if device == "gpu":
        why = compiled_driver.why_not(learner, measures, [one.recorder for one in measures])
        if why is not None:
            raise validation.InputError(f"device=gpu: {why}; docs/guides/gpu.md lists what does")
        from ravi.runtime import gpu

        gpu.target()


def _run_group(group: Group, world: World, scores: Scores, controls: Any) -> list[Run]:
    """Run a group to its end, or until it stops. controls: its `stop` and `progress` are those of this group."""
    with sparing():
        batch = group.begin(scores.measures)
    began = time.perf_counter() - effort.seconds
    T, n, cpu = group.T, len(batch.walkers.key), controls.device == "cpu"

    def tell(batches: Sequence[Batch]) -> None:
        if controls.progress is not None:
            controls.progress(sum(one.plays(T) for one in batches))
        if controls.callback is not None and (cpu or all((one.walkers.time >= T).all() for one in batches)):
            controls.callback(_current(tree.join(batches), scores.measures, T))

    watched = controls.progress is not None or controls.callback is not None
    many = 1
    if cpu and compiled_driver.is_compiled(group.learners[0], scores.measures):
        many = n if effort.allowance > 0 else min(controls.threads, n)  # what Python may run comes seed by seed
    shares = np.array_split(np.arange(n), many)
    H = 1 / (1 - world.discount) if world.discount < 1 else inf
    tasks = [
        Task(
            learner_of(group.learners, group.n, rows), world.answers, T, H, group.options["pad"], scores.measures,
            controls.pause, controls.stop, tell if watched else None,
        )
        for rows in shares
    ]  # fmt: skip
    batches = world.run(tasks, [tree.take(batch, rows, among=n) for rows in shares], controls.device)
    settings = tree.apart(tree.join(batches), group.n)
    seconds = (time.perf_counter() - effort.seconds - began) / len(settings)  # without compiling
    each = zip(group.learners, settings, group.spent, strict=True)
    return [_result(group, world, scores, learner, batch, spent + seconds) for learner, batch, spent in each]


def _current(batch: Batch, measures: Sequence[Measure], T: int) -> Look:
    """The current results of seeds that are still running (those of others are set aside); at the end, of all."""
    plays = np.minimum(batch.walkers.time, T)
    rows = plays < T if (plays < T).any() else np.ones(len(plays), bool)
    found = [measure.results(m) for measure, m in zip(measures, batch.records, strict=True)]
    numbers = {name: array for one in found for name, array in one.items() if array.shape == plays.shape}
    kept = {name: np.asarray(array[rows], np.float64) for name, array in numbers.items()}
    return Look(batch.walkers.key[rows].astype(np.int64), plays[rows], kept)


def _result(group: Group, world: World, scores: Scores, learner: Learner, batch: Batch, seconds: float) -> Run:
    results: dict[str, Array] = {}
    for measure, m in zip(scores.measures, batch.records, strict=True):
        results |= measure.results(m)
    return Run(
        world=world.kind, mdp=world.name, mdp_digest=world.digest, learner=learner.name,
        settings=plain_settings(learner), discount=world.discount, steps=group.T,
        seeds=[int(key) for key in batch.walkers.key], optimum=scores.optimum, optimum_error=scores.error,
        options=group.options, seconds=seconds, versions=versions(), batch=batch, results=results, units=world.units,
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


def _resumed_batch(stopped: Run, learner: Learner, world: World, chosen: Sequence[Measure]) -> Batch:
    """The batch of a stopped run."""
    if isinstance(stopped.batch, dict):  # from a file
        return stored_batch(world, stopped, learner, chosen)
    batch: Batch = stopped.batch
    if len(chosen) != len(batch.records):
        raise validation.InputError("the stopped run was made with other measures than these")
    return batch


def _check_same(stopped: Run, learner: Learner, world: World) -> None:
    """An error unless the run was made with this learner, in this world."""
    for what, was, now in (
        ("MDP", stopped.mdp, world.name),
        ("discount", stopped.discount, world.discount),
        ("an MDP of digest", stopped.mdp_digest, world.digest),
        ("learner", stopped.learner, learner.name),
        ("settings", stopped.settings, plain_settings(learner)),
    ):
        if was != now:
            raise validation.InputError(f"the stopped run was made with {what} {was}, not {now}")


def _as_in_suites(learner: Learner, mdp: Named, steps: int, record: Sequence[str], points: int) -> list[Measure]:
    """The measures of such a run in a suite."""
    options: Options = {
        "record": [name for name in record if name in OPTIONAL], "points": points, "pad": False, "keep_epochs": False,
        "measured": True,
    }  # fmt: skip
    return find_world(mdp).scores(learner, steps, options).measures


def _one_or_more(given: Any, name: str, wanted: str) -> list[Any]:
    held = list(validation.several(given, name, wanted))
    if not held:
        raise validation.InputError(f"{name} is empty, not {wanted}")
    return held


def _checked_measures(measures: Sequence[Measure]) -> list[Measure]:
    """The caller's own measures, checked."""
    given = validation.several(
        None if isinstance(measures, Measure) else measures, "measures", "a list of ravi.Measure"
    )
    wanted = "a ravi.Measure"
    return [validation.instance(one, Measure, validation.at("measures", [i]), wanted) for i, one in enumerate(given)]


def _checked_records(record: Sequence[str]) -> list[str]:
    """What `record` names, checked."""
    names: list[str] = []
    given = [record] if isinstance(record, str) else record
    for name in validation.several(given, "record", f"a list of names among {', '.join(OPTIONAL)}"):
        if not isinstance(name, str) or name not in OPTIONAL or name in names:
            raise validation.InputError(
                f"record names {validation.shown(name)}, not one of {', '.join(OPTIONAL)}, each once"
            )
        names.append(name)
    return names
