"""Runs are started, stopped and resumed here; `ravi.runtime.batches` carries them out, in a world of
`ravi.runtime.world`.

A run is a pure function of its keys. Between epochs it can be stopped and resumed, with the same bits as if it had
never stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ravi import ids, validation
from ravi._jit.functions import sparing
from ravi.core import MDP, Learner, Measure
from ravi.display.progress import Progress, telling
from ravi.runtime import tree
from ravi.runtime.batches import OPTIONAL, Callback, Going, Part, can_run, go_on, plain_settings
from ravi.runtime.interrupts import interrupts
from ravi.runtime.python import Batch
from ravi.runtime.result import Options, Run
from ravi.runtime.settings import alike, learner_of
from ravi.runtime.world import Named, Scores, World, taken_up, world_named

LOG = logging.getLogger("ravi")


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a run: `run` holds what was computed, and can be resumed (`runs`, for several settings).

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
    seeds: int | Iterable[int] = 1,
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
    learner : itself, or its id with options: "ravi-ucb,scale=0.1"
    mdp : an MDP or its id; one whose rewards change (`tides/6,block=50`; docs/explanation/beyond.md), a large one of
        which only visited states are stored (`large/grid,1000`; docs/guides/large.md), or a continuous one
        (docs/guides/continuous.md)
    steps : T
    seeds : how many (0, 1, ...), or a list of them
    record : "trajectory" (the regret of the earlier literature), "stream" (every step)
    measures : further ones, each a `Measure`
    points : at how many times curves are kept
    pad : go on after T until the last epoch ends, without learning (the T+ of Section 3)
    keep_epochs : keep T_k and gap_k of every epoch
    pause : stop after the epochs in which all seeds have made this many steps; `resume` goes on
    stop : called several times a second, between epochs; if it returns True the run ends there, as at a pause; Ctrl-C
        is then not handled
    progress : called with the number of steps made so far, and in all; None for a bar on a terminal or in a notebook,
        False for none
    callback : called with a `ravi.runtime.writers.Look` ten times a second at most, and at the end: the current regret,
        gap and rewards of the seeds that are running (on a GPU at the end only)
    measured : False to learn without recording anything
    device : "cpu" or "gpu" (docs/guides/gpu.md)
    threads : among which the seeds are shared out, where learner and measures are compiled; None for as many as this
        process has cores. The results are the same

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
    learners: Sequence[Learner | str], mdp: Named, steps: int, seeds: int | Iterable[int] = 1, *,
    record: Sequence[str] = (), measures: Sequence[Measure] = (), points: int = 500, pad: bool = False,
    keep_epochs: bool = True, pause: int | None = None, stop: Callable[[], bool] | None = None,
    progress: Progress | bool | None = None, callback: Callback | None = None, measured: bool = True,
    device: str = "cpu",
    threads: int | None = None,
) -> list[Run]:  # fmt: skip
    """`run` of each of these learners, with the same bits: as one batch if they differ only in `scale`, `step_scale`,
    `eta` and `beta` and their learner supports it (`ravi.runtime.settings`), else one after the other.

    Parameters
    ----------
    learners : each itself, or its id
    mdp, steps, seeds : as for `run`
    record, measures, points, pad, keep_epochs, pause, stop, progress, callback, measured, device, threads : as for
        `run`

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
    T, going = validation.steps(steps), Going.checked(pause, stop, progress, callback, device, threads)
    world = world_named(mdp)
    given = _one_or_more(learners, "learners", "a list of learners, each itself or its id")
    several = [world.learner(one, T) for one in given]
    keys = np.array(validation.seeds(seeds), np.uint64)
    recorded = _wanted(record)
    options: Options = {
        "record": recorded, "points": validation.whole(points, "points"), "pad": validation.flag(pad, "pad"),
        "keep_epochs": validation.flag(keep_epochs, "keep_epochs"), "measured": validation.flag(measured, "measured"),
    }  # fmt: skip
    if recorded and not options["measured"]:
        raise validation.InputError(f"record names {recorded[0]!r}, but measured=False records nothing")

    def part(group: list[Learner]) -> Part:
        every = np.tile(keys, len(group))
        begin = lambda chosen: world.begin(learner_of(group, len(keys)), every, chosen)  # noqa: E731
        return Part(group, T, len(keys), options, begin, [0.0] * len(group))

    parts = [part(group) for group in ([several] if alike(several) else [[one] for one in several])]
    return _all(parts, world, _own(measures), going)


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
    stopped : the run of a `ravi.Stopped`, of a pause, or of `ravi.Run.load`
    learner, mdp, measures : those of the run
    pause, stop, progress, callback, device, threads : as for `run`

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
    stopped : runs, of one MDP
    learners : those of the runs, one of each
    mdp, measures : those of the runs
    pause, stop, progress, callback, device, threads : as for `run`

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
    going = Going.checked(pause, stop, progress, callback, device, threads)
    runs = _one_or_more(stopped, "stopped", "a list of runs")
    given = _one_or_more(learners, "learners", "a list of learners, one of each run")
    world, several = world_named(mdp), list[Learner]()
    if len(given) != len(runs):
        raise validation.InputError(f"learners are {len(given)}, and there are {len(runs)} stopped runs")
    for one, learner in zip(runs, given, strict=True):
        validation.instance(one, Run, "stopped", "a run: that of ravi.Stopped, or of ravi.Run.load")
        made = world.learner(learner, one.steps)
        _same(one, made, world)
        several.append(made)

    def part(places: Sequence[int]) -> Part:
        group, first = [several[place] for place in places], runs[places[0]]
        begin = lambda chosen: tree.join([_stands(runs[i], several[i], world, chosen) for i in places])  # noqa: E731
        spent = [runs[place].seconds for place in places]
        return Part(group, first.steps, len(first.seeds), first.options, begin, spent)

    same = all((one.steps, one.seeds, one.options) == (runs[0].steps, runs[0].seeds, runs[0].options) for one in runs)
    every = range(len(runs))
    parts = [part(every)] if same and alike(several) else [part([place]) for place in every]
    return _all(parts, world, _own(measures), going)


def _stands(stopped: Run, learner: Learner, world: World, chosen: Sequence[Measure]) -> Batch:
    """The batch of a stopped run, which `go_on` copies group by group."""
    if isinstance(stopped.batch, dict):  # from a file
        return taken_up(world, stopped, learner, chosen)
    batch: Batch = stopped.batch
    if len(chosen) != len(batch.records):
        raise validation.InputError("the stopped run was made with other measures than these")
    return batch


def _all(parts: Sequence[Part], world: World, own: Sequence[Measure], going: Going) -> list[Run]:
    """The runs of all parts, one part after the other; an error about any of them comes before the first starts."""
    stop, ready = going.stop, list[tuple[Part, Scores]]()
    for part in parts:
        learner = part.learners[0]
        world.room(learner, part.T, part.options, len(part.learners) * part.n)
        can_run(going.device, learner, own)
        with sparing():
            scores = world.scores(learner, part.T, part.options)
        scores = scores._replace(measures=[*scores.measures, *own])
        can_run(going.device, learner, scores.measures)
        ready.append((part, scores))
    total, made = sum(len(part.learners) * part.n * part.T for part in parts), list[Run]()
    label = f"{parts[0].learners[0].name} on {world.name}"
    with interrupts() if stop is None else nullcontext(stop) as stopped, telling(going.progress, label) as progress:
        for part, scores in ready:
            before = sum(int(one.plays.sum()) for one in made)
            tell = None if progress is None else (lambda done, before=before: progress(before + done, total))
            made += go_on(part, world, scores, going._replace(stop=stopped, progress=tell))
    for run in made:
        LOG.info("%s, in %.2f s", run.title, run.seconds)
    if stop is None and stopped():
        raise Stopped(*made)
    return made


def resolved(mdp: MDP | str, learner: Learner | str, T: int) -> tuple[MDP, Learner]:
    """The MDP and the learner, each itself or by its id."""
    mdp = ids.mdp(mdp)
    return mdp, learner if isinstance(learner, Learner) else ids.learner(learner, mdp, T)


def _one_or_more(given: Any, name: str, wanted: str) -> list[Any]:
    held = list(validation.several(given, name, wanted))
    if not held:
        raise validation.InputError(f"{name} is empty, not {wanted}")
    return held


def _own(measures: Sequence[Measure]) -> list[Measure]:
    """The caller's own measures, checked."""
    given = validation.several(
        None if isinstance(measures, Measure) else measures, "measures", "a list of ravi.Measure"
    )
    wanted = "a ravi.Measure"
    return [validation.instance(one, Measure, validation.at("measures", [i]), wanted) for i, one in enumerate(given)]


def _wanted(record: Sequence[str]) -> list[str]:
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


def _same(stopped: Run, learner: Learner, world: World) -> None:
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
