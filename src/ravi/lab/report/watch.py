"""How far is it? A live view of a folder of results while others write into it; it only reads.

    ravi.lab.report.watch.watch("results")              # until all is done, or Ctrl-C
    ravi.lab.report.watch.watch("results", once=True)   # one frame, as plain text

Parts are read once, as they arrive. What is shown of a learner is the mean regret of the runs that are there, which may
still move: seeds that take long come last.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.checks import InputError, positive
from ravi.printable import counted, printable, room, titled

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType

    from ravi.lab.experiments.schedule.plan import Facts
    from ravi.lab.experiments.schedule.settings import Setting
    from ravi.lab.experiments.store import Store
    from ravi.lab.experiments.suite_file.specification import Entry, Suite
    from ravi.statistics import Interval

COLUMNS = ("setting", "seed", "failure", "error", "regret", "seconds", "mdp", "learner", "launch")
EVERY = 1.0  # seconds between two looks
MEMORY, ENOUGH = 120.0, 5.0  # seconds over which the speed is measured, at most and at least
FAILURES = 5  # that are told, the last ones
TROUBLES = 5
WIDTH = 140  # of a frame that goes to no terminal
WIDE = 100  # columns from which on intervals are shown
REACTION = 0.1  # seconds until Ctrl-C is heard
OTHER_LINES = 16  # of a frame, besides those of learners


def watch(
    folder: str | os.PathLike[str], once: bool = False, *, every: float = EVERY, console: Console | None = None
) -> None:
    """Show how far an experiment is until all of it is done; once: print one frame and end.

    A folder that is not there yet is waited for. Where the output is no terminal, a line is printed when runs arrive.
    """
    from rich.console import Console as RichConsole

    from ravi.interrupts import interrupts

    every = positive(every, "every")
    view = View(Path(folder))
    console = console or RichConsole()
    if once:
        view.look(time.monotonic())
        print(text(view, min(room(), WIDTH)))
        return
    with suppress(KeyboardInterrupt), interrupts() as stopped:  # an exception may be lost in a library's callback
        if console.is_terminal:
            _live(view, console, every, stopped)
        else:
            _lines(view, every, stopped)


def _live(view: View, console: Console, every: float, stopped: Callable[[], bool]) -> None:
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=False) as live:
        while not stopped():
            view.look(time.monotonic())
            live.update(frame(view, console.height, console.width), refresh=True)
            if view.finished:
                return
            _wait(every, stopped)


def _lines(view: View, every: float, stopped: Callable[[], bool]) -> None:
    said = ""
    while not stopped():
        view.look(time.monotonic())
        line = headline(view)
        if line.split(";")[0] != said:
            said = line.split(";")[0]
            print(line)
            sys.stdout.flush()
        if view.finished:
            return
        _wait(every, stopped)


def _wait(seconds: float, stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, REACTION))


class Failure(NamedTuple):
    mdp: str
    learner: str
    seed: int
    error: str


class Runs:
    """The runs of one setting that are there: 17 bytes for each."""

    def __init__(self) -> None:
        self.seeds = np.empty(0, np.int64)  # ascending
        self.failed = np.empty(0, bool)
        self.regrets = np.empty(0)
        self.seconds = 0.0  # of computing, of all rows
        self.rows = 0

    def add(self, seeds: np.ndarray, failed: np.ndarray, regrets: np.ndarray, seconds: np.ndarray) -> None:
        """More rows. A run that is there twice counts once, and as a success if either is."""
        held = (self.seeds, self.failed, self.regrets)
        new = zip(held, (seeds, failed, regrets), strict=True)
        every = [np.concatenate(pair) for pair in new]
        order = np.lexsort((every[1], every[0]))
        _, first = np.unique(every[0][order], return_index=True)
        self.seeds, self.failed, self.regrets = (array[order][first] for array in every)
        self.seconds += float(np.nansum(seconds))
        self.rows += int((~failed).sum())

    def of(self, seeds: np.ndarray) -> tuple[np.ndarray, int]:
        """The regrets of these seeds that succeeded, and how many of them failed."""
        mine = np.isin(self.seeds, seeds)
        return self.regrets[mine & ~self.failed], int((mine & self.failed).sum())


class Line(NamedTuple):
    """How far one entry of the suite is."""

    entry: Entry
    setting: Setting | None  # None: tuning has not chosen
    untuned: str  # why tuning has not chosen, where it has not
    hopeless: bool  # it has tried everything, and all of it failed
    done: int
    failed: int
    mean: Interval | None

    @property
    def planned(self) -> int:
        return len(self.entry.seeds)

    @property
    def left(self) -> int:
        return 0 if self.hopeless else self.planned - self.done - self.failed


class View:
    """What a folder has held so far. `look` reads what is new."""

    def __init__(self, folder: Path) -> None:
        from ravi.lab.experiments.store import Store

        self.folder = folder
        self.store: Store = Store(folder)
        self.suite: Suite | None = None
        self.waiting = ""  # what for
        self.lines: list[Line] = []
        self.runs: dict[str, Runs] = {}  # by setting
        self.parts = 0
        self.failures: deque[Failure] = deque(maxlen=FAILURES)
        self.alive: list[str] = []
        self.launches: dict[str, dict[str, Any]] = {}
        self.made: dict[str, int] = {}  # launch -> rows
        self.checkpoints: list[tuple[str, str]] = []  # setting, name
        self.troubles: list[str] = []
        self.tuning = (0, 0)  # subjects that have chosen, of so many
        self.trials = (0, 0)  # runs for tuning, of at most so many
        self._facts: Facts | None = None
        self._frozen = b""
        self._records: dict[str, dict[str, Any]] = {}  # of tuning
        self._names: dict[str, set[tuple[str, int, int]]] = {}  # of files that were read
        self._means: dict[tuple[str, int, int], Interval] = {}  # setting, runs there, entry -> mean
        self._marks: deque[tuple[float, float, int]] = deque()  # time, seconds of computing, runs

    # Reading.

    def look(self, now: float) -> bool:
        """Read what has come since the last look; whether runs have."""
        if not self._specified():
            return False
        before = self.parts
        for table in self.store.read(COLUMNS):
            self.parts += 1
            self._take(table)
        chosen = self._new("tuning")
        if chosen:
            self._records = self.store.tuning()
        self._others()
        if chosen or self.parts > before or not self.lines:
            self._plan()
        self._marks.append((now, sum(runs.seconds for runs in self.runs.values()), self.arrived))
        while self._marks[-1][0] - self._marks[0][0] > MEMORY:
            self._marks.popleft()
        return self.parts > before

    def _specified(self) -> bool:
        """Whether the folder says what is to be run; a suite that was extended is read again."""
        from ravi.lab.experiments.schedule.plan import facts_from
        from ravi.lab.experiments.suite_file.specify import specify

        path = self.folder / "specification.json"
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            self.waiting = "it is not there yet" if not self.folder.exists() else "it has no specification.json yet"
            return False
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        if content != self._frozen:
            held = self.store.specification()
            if held is None:
                return False
            self.suite, self._facts, self._frozen = specify(held["suite"], build=False), facts_from(held), content
            self.lines = []
        self.waiting = ""
        return True

    def _take(self, table: pa.Table) -> None:
        names = table["setting"].combine_chunks().dictionary_encode()
        which = names.indices.to_numpy()
        columns = {name: table[name].to_numpy() for name in ("seed", "regret", "seconds")}
        failed = table["failure"].is_valid().to_numpy()
        for code, name in enumerate(names.dictionary.to_pylist()):
            mine = which == code
            rows = (columns["seed"][mine], failed[mine], columns["regret"][mine], columns["seconds"][mine])
            self.runs.setdefault(name, Runs()).add(*(np.asarray(array) for array in rows))
        for launch in table["launch"].to_pylist():
            self.made[launch] = self.made.get(launch, 0) + 1
        for row in table.filter(table["failure"].is_valid()).to_pylist() if failed.any() else ():
            self.failures.append(Failure(row["mdp"], row["learner"], row["seed"], row["error"] or row["failure"]))

    def _others(self) -> None:
        """What is small is read anew: manifests, names of checkpoints, troubles."""
        self.alive = self.store.others("")
        if self._new("manifests"):
            self.launches = self.store.manifests()
        paths = sorted((self.folder / "checkpoints").glob("*.run"))
        self.checkpoints = [(path.name.split("-")[0], path.name) for path in paths]
        self.troubles = list(dict.fromkeys(map(str, self.store.troubles)))

    def _new(self, name: str) -> bool:
        """Whether JSON files have come into this folder, or have been replaced by others."""
        found = {_state(path) for path in (self.folder / name).glob("*.json")}
        before, self._names[name] = self._names.get(name, set()), found
        return found != before

    def _plan(self) -> None:
        """Which setting scores every entry, as tuning has chosen by now, and how far it is."""
        from ravi.lab.experiments.schedule import plan

        assert self.suite is not None
        assert self._facts is not None
        records = self._records
        found = plan.settings(self.suite, self._facts, records)
        subjects = {}
        self.lines = []
        for place, (entry, setting) in enumerate(zip(self.suite.entries, found, strict=True)):
            subject = plan.subject_of(entry, self._facts, self.suite.tuning)
            if subject is not None:
                subjects[subject.digest] = subject
            record = None if subject is None else records.get(subject.digest)
            self.lines.append(self._line(place, entry, setting, record))
        tuning = self.suite.tuning
        final = [digest for digest in subjects if digest in records and not records[digest].get("missing")]
        self.tuning = (len(final), len(subjects))
        scored = {setting.digest for setting in found if setting is not None}
        trials = sum(len(runs.seeds) for name, runs in self.runs.items() if name not in scored)
        self.trials = (trials, len(subjects) * tuning.budget * len(tuning.seeds))

    def _line(self, place: int, entry: Entry, setting: Setting | None, record: dict[str, Any] | None) -> Line:
        from ravi.lab.experiments.schedule.tuning import lacking
        from ravi.statistics import interval

        untuned = "" if setting is not None else "being tuned" if record is None else lacking(record)
        hopeless = setting is None and record is not None and not record.get("missing")
        runs = None if setting is None else self.runs.get(setting.digest)
        if setting is None or runs is None:
            return Line(entry, setting, untuned, hopeless, 0, 0, None)
        regrets, failed = runs.of(np.array(entry.seeds, np.int64))
        key = (setting.digest, len(regrets), place)
        if len(regrets) and key not in self._means and np.isfinite(regrets).all():  # a large world has none
            self._means[key] = interval(regrets)
        return Line(entry, setting, untuned, hopeless, len(regrets), failed, self._means.get(key))

    # What it comes to.

    @property
    def arrived(self) -> int:
        return sum(len(runs.seeds) for runs in self.runs.values())

    @property
    def finished(self) -> bool:
        """Whether nothing is left that the suite asks for."""
        return bool(self.lines) and not any(line.left for line in self.lines)

    @property
    def totals(self) -> tuple[int, int, int]:
        """Runs done, failed and planned; a run that several entries ask for counts once."""
        asked: dict[Any, set[int]] = {}
        for line in self.lines:
            entry = line.entry
            alike = (entry.mdp, entry.learner, entry.steps, entry.points, entry.record)
            asked.setdefault(alike if line.setting is None else line.setting.digest, set()).update(entry.seeds)
        done = failed = 0
        for name, seeds in asked.items():
            if name in self.runs:
                regrets, bad = self.runs[name].of(np.array(sorted(seeds), np.int64))
                done, failed = done + len(regrets), failed + bad
        return done, failed, sum(map(len, asked.values()))

    @property
    def rate(self) -> float | None:
        """Runs a second over the last minutes; None as long as none has arrived under these eyes."""
        (first, _, before), (last, _, after) = self._marks[0], self._marks[-1]
        return (after - before) / (last - first) if last - first >= ENOUGH and after > before else None

    @property
    def work_left(self) -> float | None:
        """Seconds of computing, by the times seen of each setting, and by the step where there are none."""
        timed = [(runs, line) for line in self.lines if (runs := self._timed(line)) is not None]
        steps = sum(runs.rows * line.entry.steps for runs, line in timed)
        if not steps:
            return None
        each = sum(runs.seconds for runs, _ in timed) / steps
        left = 0.0
        for line in self.lines:
            runs = self._timed(line)
            left += line.left * (each * line.entry.steps if runs is None else runs.seconds / runs.rows)
        if self.suite is not None and self.tuning[0] < self.tuning[1]:
            trials = max(0, self.trials[1] - self.trials[0])
            left += trials * each * sum(line.entry.steps for line in self.lines) / len(self.lines)
        return left

    def _timed(self, line: Line) -> Runs | None:
        runs = None if line.setting is None else self.runs.get(line.setting.digest)
        return runs if runs is not None and runs.rows else None

    @property
    def time_left(self) -> float | None:
        """Seconds, if it goes on as over the last minutes."""
        work = self.work_left
        (first, before, _), (last, after, _) = self._marks[0], self._marks[-1]
        if work is None or last - first < ENOUGH or after <= before:
            return None
        return work * (last - first) / (after - before)


# What is shown.


def text(view: View, width: int = WIDTH) -> str:
    """A frame as plain text, of any length."""
    from rich.console import Console as RichConsole

    sink = io.StringIO()
    RichConsole(file=sink, width=width, color_system=None, force_terminal=False).print(frame(view, width=width))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def headline(view: View) -> str:
    if view.waiting:
        return printable(f"waiting for {view.folder}: {view.waiting}")
    done, failed, planned = view.totals
    parts = [f"{done:,} of {counted(planned, 'run')} done, {failed:,} failed"]
    if view.tuning[1]:
        chosen, subjects = view.tuning
        parts.append(f"tuning has chosen for {chosen} of {subjects}, after {counted(view.trials[0], 'run')}")
    if not view.finished:
        if view.rate is not None:
            parts.append(f"{view.rate:,.2g} runs a second")
        if view.time_left is not None:
            parts.append(f"about {duration(view.time_left)} left")
        elif view.work_left is not None:
            parts.append(f"about {duration(view.work_left)} of computing left")
    return "; ".join(parts)


def frame(view: View, height: int | None = None, width: int = WIDTH) -> RenderableType:
    """All that is shown; with a height, the learners that fit: first those that are under way, then those to come."""
    from rich.console import Group

    if view.suite is None or view.waiting:
        return _words(headline(view))
    parts: list[RenderableType] = [_words(f"{view.suite.name} in {view.folder}", style="bold"), _words(headline(view))]
    parts += [_words(""), _learners(view, height, width)]
    launches = _launches(view)
    parts += [_words(""), *(_words(line) for line in launches)]
    if view.checkpoints:
        parts += [_words(f"checkpoints: {len(view.checkpoints)} under way ({_named(view)})")]
    if view.failures:
        total = view.totals[1]
        parts.append(_words(f"failures (the last {len(view.failures)}; {total:,} among those asked for)", style="red"))
        parts += [_words(f"  {one.learner} on {one.mdp}, seed {one.seed}: {one.error}") for one in view.failures]
    if view.troubles:
        parts.append(_words(f"troubles ({counted(len(view.troubles), 'file')} left out)", style="red"))
        parts += [_words(f"  {trouble}") for trouble in view.troubles[:TROUBLES]]
    if view.finished:
        parts.append(_words("all is done" if not view.totals[1] else "all is done, but for what failed", style="bold"))
    return Group(*parts)


def _learners(view: View, height: int | None, width: int) -> RenderableType:
    from rich.table import Table

    from ravi.lab.report.rendering import estimate_and_interval

    room = len(view.lines) if height is None else max(3, height - OTHER_LINES)
    shown = fitting(view.lines, room)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("section", "MDP", "learner", "column"):
        table.add_column(name, overflow="fold")
    for name in ("T", "done", "failed", "mean regret", "interval")[: 5 if width >= WIDE else 4]:
        table.add_column(name, justify="right", no_wrap=True)
    for line in shown:
        entry = line.entry
        mean, ends = "-", ""
        if line.setting is None:
            mean = line.untuned
        elif line.mean is not None:
            mean, ends = estimate_and_interval(*line.mean[:3])
            ends = "one seed" if line.done == 1 else ends
        done = f"{line.done} of {line.planned}"
        names = (entry.section, titled(entry.mdp), entry.label, entry.column)
        cells = (*names, f"{entry.steps:,}", done, str(line.failed), mean, ends)
        table.add_row(*map(_words, cells[: len(table.columns)]), style="dim" if not line.left else "")
    if len(shown) < len(view.lines):
        whole = sum(1 for line in view.lines if not line.left) - sum(1 for line in shown if not line.left)
        table.add_row(_words(f"... and {len(view.lines) - len(shown)} more, {whole} of them done"))
    return table


def fitting(lines: list[Line], room: int) -> list[Line]:
    """The lines that fit, in their order: those under way go before those not begun, and these before those done."""
    if len(lines) <= room:
        return lines

    def urgency(place: int) -> tuple[int, int]:
        line = lines[place]
        return (2 if not line.left else 0 if line.done or line.failed else 1, place)

    chosen = sorted(sorted(range(len(lines)), key=urgency)[: max(1, room - 1)])
    return [lines[place] for place in chosen]


def _launches(view: View) -> list[str]:
    if not view.alive:
        told = "no launch is alive" + ("" if view.finished else ": the command that began this goes on with it")
        return [f"{told} ({len(view.launches)} before)" if view.launches else told]
    found = []
    for name in view.alive:
        manifest = view.launches.get(name, {})
        command = " ".join(map(str, manifest.get("command", ())))
        found.append(
            f"launch {name} is alive, {counted(view.made.get(name, 0), 'run')} stored, "
            f"since {manifest.get('started', '?')}: {command}"
        )
    return found


def _words(text: str, style: str = "") -> RenderableType:
    """Text of others among ours: nothing in it is taken for markup, or obeyed by a terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)


def _state(path: Path) -> tuple[str, int, int]:
    """What is another when a file is."""
    with suppress(OSError):  # it was replaced just now
        found = path.stat()
        return path.name, found.st_ino, found.st_mtime_ns
    return path.name, 0, 0


def _named(view: View) -> str:
    """Whose checkpoints they are."""
    labels = {line.setting.digest: f"{line.entry.label} on {line.entry.mdp}" for line in view.lines if line.setting}
    names = dict.fromkeys(labels.get(setting, "tuning") for setting, _ in view.checkpoints)
    return ", ".join(list(names)[:3]) + (", ..." if len(names) > 3 else "")


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
