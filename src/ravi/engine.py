"""How does a run go? The two loops of Algorithm 1: epochs k (plan), and within them steps t (play, observe, reset).

A run is a pure function of its keys. All seeds go through epoch k together, each at its own time; a seed that has
made its T plays is set aside, so that what it ends with does not depend on its batch. Between epochs a run can be
stopped and taken up again, with the same bits as if it had never stopped.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import ceil, inf, isnan, log
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ravi import checks, ids, memory, tree, whole
from ravi import device as devices
from ravi.core import MDP, Array, Learner, Measure, Until
from ravi.measures.output import output
from ravi.measures.regret import regret
from ravi.measures.rewards import rewards
from ravi.measures.stream import padding, stream
from ravi.measures.trajectory import trajectory
from ravi.planning.solver import Solution, solve
from ravi.played import refuse
from ravi.ranges import Facts, check
from ravi.runs import Options, Run, versions
from ravi.together import alike, learner_of
from ravi.walk import World, misplaced, room, start, walk, world_of

Progress = Callable[[int, int], None]  # steps done, steps in all
CACHE = 2**20  # bytes of state that are worked on together: about a core's second-level cache
COPIES = 3  # of the seeds: as they begin, as each group of them ends, and together again
TOLERANCE = 1e-12  # of V*, where rounding allows
NO_DEADLINE = np.iinfo(np.int64).max
OPTIONAL = ("trajectory", "stream")  # what `record` may name


class Batch(NamedTuple):
    """All that a run carries from one epoch to the next, seeds first."""

    walkers: Any
    state: Any
    records: tuple[Any, ...]


class Part(NamedTuple):
    """Settings that go as one batch, the seeds of each after those of the one before."""

    learners: list[Learner]
    T: int
    n: int  # seeds of each
    options: Options
    begin: Callable[[Sequence[Measure]], Batch]  # the measures -> where it goes on
    spent: list[float]  # seconds of each, before


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a run: `run` holds what was computed, and can be resumed; of several settings, `runs`."""

    def __init__(self, *runs: Run) -> None:
        super().__init__("stopped; the run so far is in .run")
        self.run, self.runs = runs[0], list(runs)


def run(
    learner: Learner | str,
    mdp: MDP | str,
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
    progress: Progress | None = None,
    measured: bool = True,
    device: str = "cpu",
) -> Run:
    """Run `learner` on `mdp` (themselves or their ids) for exactly `steps` plays under each seed; score it exactly.

    seeds: how many (0, 1, ...) or which. record: "trajectory" (the regret of the earlier literature), "stream"
    (every step). measures: more of your own. points: at how many times curves are kept. pad: play the last epoch on
    until its reset, without learning (the T+ of Section 3). keep_epochs: keep T_k and gap_k of every epoch. pause: stop
    after the epoch in which every seed has made this many plays; `resume` goes on. stop: asked before every epoch; when
    it says yes the run ends there, as at a pause, and Ctrl-C is the caller's. measured=False: play and learn only.
    device: "cpu", or "gpu" (docs/gpu.md), where pauses and stops come after some epochs more.
    """
    return run_settings(
        [learner], mdp, steps, seeds, record=record, measures=measures, points=points, pad=pad, keep_epochs=keep_epochs,
        pause=pause, stop=stop, progress=progress, measured=measured, device=device,
    )[0]  # fmt: skip


def run_settings(
    learners: Sequence[Learner | str],
    mdp: MDP | str,
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
    progress: Progress | None = None,
    measured: bool = True,
    device: str = "cpu",
) -> list[Run]:
    """`run` of each of these learners: with the same bits, as one batch where they are one learner that differs in
    `scale`, `step_scale`, `eta` and `beta` only and can (`ravi.together`), else one after the other."""
    T, on = checks.steps(steps), checks.one_of(device, devices.DEVICES, "device")
    mdp, several = ids.mdp(mdp), []
    for learner in _one_or_more(learners, "learners", "a list of learners, each itself or its id"):
        several.append(resolved(mdp, learner, T)[1])
    keys = np.array(checks.seeds(seeds), np.uint64)
    wanted = _wanted(record)
    options: Options = {
        "record": wanted,
        "points": checks.whole(points, "points"),
        "pad": checks.flag(pad, "pad"),
        "keep_epochs": checks.flag(keep_epochs, "keep_epochs"),
        "measured": checks.flag(measured, "measured"),
    }
    if wanted and not options["measured"]:
        raise checks.InputError(f"record names {wanted[0]!r}, but measured=False records nothing")

    def part(group: list[Learner]) -> Part:
        every = np.tile(keys, len(group))
        begin = lambda chosen: _begin(learner_of(group, len(keys)), mdp, every, chosen)  # noqa: E731
        return Part(group, T, len(keys), options, begin, [0.0] * len(group))

    parts = [part(group) for group in ([several] if alike(several) else [[one] for one in several])]
    return _all(parts, mdp, _own(measures), pause, stop, progress, on)


def resume(
    stopped: Run,
    learner: Learner | str,
    mdp: MDP | str,
    *,
    measures: Sequence[Measure] = (),
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
    device: str = "cpu",
) -> Run:
    """Take up a stopped run; `learner`, `mdp` and `measures` must be those that it was made with. It may go on on
    another device."""
    return resume_settings(
        [stopped], [learner], mdp, measures=measures, pause=pause, stop=stop, progress=progress, device=device
    )[0]


def resume_settings(
    stopped: Sequence[Run],
    learners: Sequence[Learner | str],
    mdp: MDP | str,
    *,
    measures: Sequence[Measure] = (),
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
    device: str = "cpu",
) -> list[Run]:
    """`resume` of each of these runs: as one batch where their learners can be one and all else is the same."""
    on = checks.one_of(device, devices.DEVICES, "device")
    runs = _one_or_more(stopped, "stopped", "a list of runs")
    given = _one_or_more(learners, "learners", "a list of learners, one of each run")
    mdp, several = ids.mdp(mdp), list[Learner]()
    if len(given) != len(runs):
        raise checks.InputError(f"learners are {len(given)}, and there are {len(runs)} stopped runs")
    for one, learner in zip(runs, given, strict=True):
        checks.instance(one, Run, "stopped", "a run: that of ravi.Stopped, or of ravi.Run.load")
        made = resolved(mdp, learner, one.steps)[1]
        _same(one, made, mdp)
        several.append(made)

    def part(places: Sequence[int]) -> Part:
        group, first = [several[place] for place in places], runs[places[0]]
        begin = lambda chosen: tree.join([_stands(runs[i], several[i], mdp, chosen) for i in places])  # noqa: E731
        spent = [runs[place].seconds for place in places]
        return Part(group, first.steps, len(first.seeds), first.options, begin, spent)

    same = all((one.steps, one.seeds, one.options) == (runs[0].steps, runs[0].seeds, runs[0].options) for one in runs)
    every = range(len(runs))
    parts = [part(every)] if same and alike(several) else [part([place]) for place in every]
    return _all(parts, mdp, _own(measures), pause, stop, progress, on)


def _stands(stopped: Run, learner: Learner, mdp: MDP, chosen: Sequence[Measure]) -> Batch:
    """Where a stopped run goes on. `_go_on` works on copies, group by group."""
    if isinstance(stopped.batch, dict):  # from a file
        return _taken_up(stopped, learner, mdp, np.asarray(stopped.seeds, np.uint64), chosen)
    batch: Batch = stopped.batch
    if len(chosen) != len(batch.records):
        raise checks.InputError("the stopped run was made with other measures than these")
    return batch


_solutions: WeakKeyDictionary[MDP, Solution] = WeakKeyDictionary()


def _solved(mdp: MDP) -> Solution:
    """The optimum that a run is scored against, found once for an MDP that is used again: as by those who resume."""
    if mdp not in _solutions:
        _solutions[mdp] = solve(mdp, tol=TOLERANCE)
    return _solutions[mdp]


def _taken_up(stopped: Run, learner: Learner, mdp: MDP, keys: Array, measures: Sequence[Measure]) -> Batch:
    """Where the run of a file stands, held against all that is declared of its arrays: compiled loops believe them."""
    held: dict[str, Array] = stopped.batch
    if not np.array_equal(held.get("walkers.key", ()), keys):  # asked first: there is one of each array per seed
        raise checks.InputError("batch.walkers.key are not the seeds of the run")
    begun = _begin(learner, mdp, keys, measures)
    batch: Batch = tree.fill(begun, held)
    T, walkers, world = stopped.steps, batch.walkers, world_of(mdp)
    most = T + (padding(mdp.horizon) if stopped.options["pad"] else 0)
    facts = Facts(mdp.states, mdp.actions, mdp.horizon, T, np.minimum(walkers.time, T), walkers.time, most)
    check(batch, begun, facts, "batch")
    astray = misplaced(world.initial, world.restart, *walkers)
    if astray >= 0:
        raise checks.InputError(
            f"batch.walkers.state[{astray}] is {walkers.state[astray]}, but the reset after play "
            f"{walkers.time[astray]} led elsewhere"
        )
    return batch


def _begin(learner: Learner, mdp: MDP, keys: Array, measures: Sequence[Measure]) -> Batch:
    """All seeds as they begin; one of them first, which says how much they need together."""
    n, (what, lower) = len(keys), _asked(learner, mdp, len(keys))
    with memory.told(what, lower):
        state, records = learner.init(keys[:1]), tuple(measure.init(keys[:1]) for measure in measures)
        told, wanted = tuple(state.policy.shape[-2:]), (mdp.states, mdp.actions)
        if told != wanted:
            raise checks.InputError(
                f"{learner.name} was built for {told[0]} states and {told[1]} actions, "
                f"but {mdp.name} has {wanted[0]} and {wanted[1]}"
            )
        memory.needed(COPIES * n * tree.size((state, records)), what, lower)
        if n > 1:
            state, records = learner.init(keys), tuple(measure.init(keys) for measure in measures)
    return Batch(start(world_of(mdp), keys), state, records)


def _room(learner: Learner, mdp: MDP, T: int, options: Options, n: int) -> None:
    """An error where so many seeds are too large for what every run keeps: policies, curves and, if asked, streams."""
    what, lower = _asked(learner, mdp, n)
    points = min(options["points"], T)
    policy = 8 * max(learner.stages, 1) * mdp.states * mdp.actions
    stream = 13 * T if "stream" in options["record"] else 0
    memory.needed(n * (3 * policy + 16 * points + stream) + 40 * points, what, lower)


def _asked(learner: Learner, mdp: MDP, n: int) -> tuple[str, str]:
    """What needs memory, and which numbers would need less of it."""
    others = "points, the length of a stream or the size of the MDP"
    what = f"{learner.name} on {mdp.name}"
    return (f"{what} under {n:,} seeds", f"seeds, {others}") if n > 1 else (what, others)


def _all(
    parts: Sequence[Part],
    mdp: MDP,
    own: Sequence[Measure],
    pause: int | None,
    stop: Callable[[], bool] | None,
    progress: Progress | None,
    device: str,
) -> list[Run]:
    """The runs of all parts, one part after the other; what cannot be is told before any of them starts."""
    pause = None if pause is None else checks.whole(pause, "pause", 0)
    checks.function(stop, "stop")
    checks.function(progress, "progress")
    ready = []
    for part in parts:
        learner = part.learners[0]
        _room(learner, mdp, part.T, part.options, len(part.learners) * part.n)
        _can_run(device, learner, own)
        solution = _solved(mdp) if part.options["measured"] else None
        chosen = [*_measures(mdp, part.T, solution, part.options, learner.stages), *own]
        _can_run(device, learner, chosen)
        ready.append((part, solution, chosen))
    total, made = sum(len(part.learners) * part.n * part.T for part in parts), list[Run]()
    with interrupts() if stop is None else nullcontext(stop) as stopped:
        for part, solution, chosen in ready:
            before = sum(int(one.plays.sum()) for one in made)
            tell = None if progress is None else (lambda done, before=before: progress(before + done, total))
            made += _go_on(part, mdp, solution, chosen, pause, stopped, tell, device)
    if stop is None and stopped():
        raise Stopped(*made)
    return made


def _go_on(
    part: Part,
    mdp: MDP,
    solution: Solution | None,
    measures: Sequence[Measure],
    pause: int | None,
    stopped: Callable[[], bool],
    progress: Callable[[int], None] | None,
    device: str,
) -> list[Run]:
    batch = part.begin(measures)
    began = time.perf_counter()
    T, pad, world, rows = part.T, part.options["pad"], world_of(mdp), np.arange(len(batch.walkers.key))
    done: list[Batch] = []
    for some in _groups(batch, mdp) if device == "cpu" else [rows]:
        before = sum(_plays(one, T) for one in done)
        tell = None if progress is None else (lambda plays, before=before: progress(before + plays))
        epochs, learner = _epochs if device == "cpu" else _epochs_there, learner_of(part.learners, part.n, some)
        done.append(epochs(learner, world, T, mdp.horizon, pad, measures, tree.take(batch, some), pause, tell, stopped))
    each = tree.apart(tree.join(done), part.n)
    seconds = (time.perf_counter() - began) / len(each)
    made = zip(part.learners, each, part.spent, strict=True)
    return [_made(part, mdp, solution, measures, *one, seconds) for one in made]


def _made(
    part: Part,
    mdp: MDP,
    solution: Solution | None,
    measures: Sequence[Measure],
    learner: Learner,
    batch: Batch,
    spent: float,
    seconds: float,
) -> Run:
    results: dict[str, Array] = {}
    for measure, m in zip(measures, batch.records, strict=True):
        results |= measure.results(m)
    return Run(
        mdp=mdp.name,
        mdp_digest=mdp.digest,
        learner=learner.name,
        settings=_plain(learner),
        discount=mdp.discount,
        steps=part.T,
        seeds=[int(key) for key in batch.walkers.key],
        optimum=None if solution is None else solution.optimum,
        optimum_error=None if solution is None else solution.optimum_error,
        options=part.options,
        seconds=spent + seconds,
        versions=versions(),
        batch=batch,
        results=results,
        units=mdp.units,
    )


def _epochs(
    learner: Learner,
    world: World,
    T: int,
    H: float,
    pad: bool,
    measures: Sequence[Measure],
    batch: Batch,
    pause: int | None,
    tell: Callable[[int], None] | None,
    stopped: Callable[[], bool],
) -> Batch:
    walkers, state, records = batch
    n = len(walkers.time)
    stretch = learner.walk or walk
    path = None
    last = np.full(n, T, np.int64)
    finished = walkers.time >= T
    aside = tree.copy(batch) if finished.any() else None  # the seeds that have ended, as they ended
    over = np.empty(n, np.uint8)
    told = time.perf_counter()
    done = int(finished.sum())
    while done < n:  # for k = 1, 2, ...
        if stopped() or (pause is not None and walkers.time.min() >= pause):
            break
        state = learner.plan(state)
        refuse(learner.name, state.policy, walkers.key, finished)
        until = learner.until(state, walkers.time)
        deadline = last if until.deadline is None else np.minimum(last, until.deadline)
        until = Until(until.reset, deadline, until.visits)
        path = path or room(n, min(T, _stretch(n, H, until.reset)))
        over[:] = finished
        opening, left = True, n
        while left:  # repeat
            left, ended = stretch(world, state, walkers, path, over, until, T)  # play, observe
            records = tuple(
                measure.record(m, state, path, opening) for measure, m in zip(measures, records, strict=True)
            )
            state = learner.add(state, path)  # ADD
            opening = False
            if ended:
                if pad:
                    records = _pad(world, T, measures, records, state, walkers, path, finished)
                now = (walkers.time >= T) & ~finished
                finished |= now
                done = int(finished.sum())
                batch = Batch(walkers, state, records)
                if aside is None:
                    aside = tree.copy(batch)
                else:
                    tree.put(aside, batch, now)
        if tell is not None and time.perf_counter() - told > 0.1:
            tell(_plays(Batch(walkers, state, records), T))
            told = time.perf_counter()
    batch = Batch(walkers, state, records)
    if aside is not None:
        tree.put(batch, aside, finished)
    if tell is not None:
        tell(_plays(batch, T))
    return batch


def _epochs_there(
    learner: Learner,
    world: World,
    T: int,
    H: float,
    pad: bool,
    measures: Sequence[Measure],
    batch: Batch,
    pause: int | None,
    tell: Callable[[int], None] | None,
    stopped: Callable[[], bool],
) -> Batch:
    """`_epochs` on a GPU."""

    def looked() -> bool:
        if tell is not None:
            tell(_plays(batch, T))
        return stopped() or (pause is not None and int(batch.walkers.time.min()) >= pause)

    assert learner.seedwise is not None
    length = _stretch(len(batch.walkers.time), H, learner.seedwise.reset)
    if learner.seedwise.together:
        length = padding(H)  # an epoch comes as a whole: one is longer with probability below e^-50
    length = min(T, length)
    devices.advance(learner, world, T, pad, measures, batch, length, looked)
    refuse(learner.name, batch.state.policy, batch.walkers.key, np.zeros(len(batch.walkers.key), np.bool_))
    if tell is not None:
        tell(_plays(batch, T))
    return batch


def _can_run(device: str, learner: Learner, measures: Sequence[Measure]) -> None:
    """An error, before anything starts, where a run cannot be on a device."""
    if device == "gpu":
        why = whole.refused(learner, measures)
        if why is not None:
            raise checks.InputError(f"device=gpu: {why}; docs/gpu.md lists what does")
        devices.target()


def _stretch(n: int, H: float, resets: bool) -> int:
    """Steps that a path has room for: most epochs that end at resets; a longer epoch comes in stretches."""
    return min(max(64, ceil(H * (log(n) + 7))) if resets else 1000, max(64, 2**22 // n))


def _plays(batch: Batch, T: int) -> int:
    return int(np.minimum(batch.walkers.time, T).sum())


def _groups(batch: Batch, mdp: MDP) -> list[Array]:
    """Seeds that are run side by side: as many as share the cache, since each is the same alone and in a batch."""
    n, size = len(batch.walkers.key), _size(batch, mdp)
    return np.array_split(np.arange(n), ceil(n * size / max(CACHE, size)))


def _size(batch: Batch, mdp: MDP) -> float:
    """Bytes that a seed works on."""
    working = 2 * 8 * mdp.states * mdp.actions * mdp.dimension  # phi_V and R^T phi_V, which a plan makes
    return tree.size(batch) / len(batch.walkers.key) + working


def check_device(device: str, learner: Learner, mdp: MDP, steps: int, record: Sequence[str]) -> None:
    """An error where such a run cannot be on a device."""
    _can_run(device, learner, [])
    _can_run(device, learner, _as_in_suites(learner, mdp, steps, record, 1))


def _as_in_suites(learner: Learner, mdp: MDP, steps: int, record: Sequence[str], points: int) -> list[Measure]:
    options: Options = {
        "record": _wanted([name for name in record if name in OPTIONAL]), "points": points, "pad": False,
        "keep_epochs": False, "measured": True,
    }  # fmt: skip
    return _measures(mdp, steps, _solved(mdp), options, learner.stages)


def side_by_side(learner: Learner, mdp: MDP, steps: int, seed: int, record: Sequence[str], points: int) -> int:
    """How many seeds of such a run go side by side: a wider batch is no faster, and takes more memory."""
    measures = _as_in_suites(learner, mdp, steps, record, points)
    return max(1, int(CACHE / _size(_begin(learner, mdp, np.array([seed], np.uint64), measures), mdp)))


def _pad(
    world: World,
    T: int,
    measures: Sequence[Measure],
    records: tuple[Any, ...],
    state: Any,
    walkers: Any,
    path: Any,
    finished: Array,
) -> tuple[Any, ...]:
    """Play the epoch in which T fell until its reset, without learning: steps T + 1, ..., T+."""
    rows = np.arange(len(walkers.time))
    ended_by_reset = path.reset[rows, np.maximum(path.length - 1, 0)]
    over = (finished | (walkers.time < T) | ended_by_reset).astype(np.uint8)
    until = Until(reset=True, deadline=np.full(len(over), NO_DEADLINE))
    while not over.all():
        walk(world, state, walkers, path, over, until, T)
        records = tuple(measure.record(m, state, path, False) for measure, m in zip(measures, records, strict=True))
    return records


def resolved(mdp: MDP | str, learner: Learner | str, T: int) -> tuple[MDP, Learner]:
    """The MDP and the learner, each itself or by its id."""
    mdp = ids.mdp(mdp)
    return mdp, learner if isinstance(learner, Learner) else ids.learner(learner, mdp, T)


def _one_or_more(given: Any, name: str, wanted: str) -> list[Any]:
    held = list(checks.several(given, name, wanted))
    if not held:
        raise checks.InputError(f"{name} is empty, not {wanted}")
    return held


def _own(measures: Sequence[Measure]) -> list[Measure]:
    """Measures of the caller's."""
    given = checks.several(None if isinstance(measures, Measure) else measures, "measures", "a list of ravi.Measure")
    wanted = "a ravi.Measure"
    return [checks.instance(one, Measure, checks.at("measures", [i]), wanted) for i, one in enumerate(given)]


def _wanted(record: Sequence[str]) -> list[str]:
    names: list[str] = []
    given = [record] if isinstance(record, str) else record
    for name in checks.several(given, "record", f"a list of names among {', '.join(OPTIONAL)}"):
        if not isinstance(name, str) or name not in OPTIONAL or name in names:
            raise checks.InputError(f"record names {checks.shown(name)}, not one of {', '.join(OPTIONAL)}, each once")
        names.append(name)
    return names


def _measures(mdp: MDP, T: int, solution: Solution | None, options: Options, stages: int) -> list[Measure]:
    if solution is None:
        return []
    points = options["points"]
    chosen = [
        regret(mdp, T, points, solution, keep_epochs=options["keep_epochs"], stages=stages),
        rewards(mdp, T, points),
        output(mdp.problem, T, stages),
    ]
    if "trajectory" in options["record"]:
        chosen.append(trajectory(mdp, T, points, solution, stages))
    if "stream" in options["record"]:
        chosen.append(stream(mdp.problem, T, pad=options["pad"]))
    return chosen


def _plain(learner: Learner) -> dict[str, Any]:
    """The learner's settings as JSON holds them: Python's own numbers, and an infinite one as the text inf or -inf."""

    def plain(value: Any, name: str) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            value = value.tolist()
        if isinstance(value, (list, tuple)):
            return [plain(one, name) for one in value]
        if isinstance(value, dict):
            return {str(key): plain(one, f"{name}.{key}") for key, one in value.items()}
        if isinstance(value, float) and isnan(value):
            raise checks.InputError(f"{learner.name} has the setting {name} = nan, which is not a number")
        if isinstance(value, float) and value in (inf, -inf):
            return str(value)
        return value

    return {name: plain(value, name) for name, value in learner.settings.items()}


def _same(stopped: Run, learner: Learner, mdp: MDP) -> None:
    for what, was, now in (
        ("MDP", stopped.mdp, mdp.name),
        ("discount", stopped.discount, mdp.discount),
        ("an MDP of digest", stopped.mdp_digest, mdp.digest),
        ("learner", stopped.learner, learner.name),
        ("settings", stopped.settings, _plain(learner)),
    ):
        if was != now:
            raise checks.InputError(f"the stopped run was made with {what} {was}, not {now}")


@contextmanager
def interrupts(
    *more: signal.Signals, at_once: Callable[[int], bool] = lambda count: count > 1
) -> Iterator[Callable[[], bool]]:
    """Ctrl-C, like these signals, sets a flag that a loop reads where it can stop; a second one interrupts at once,
    or whichever `at_once` says, by its number."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    count = 0

    def handle(signum: int, frame: Any) -> None:
        nonlocal count
        count += 1
        if at_once(count):
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, *more)}
    try:
        yield lambda: count > 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
