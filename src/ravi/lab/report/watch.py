"""The live view of a folder of results: frames on a terminal, or lines as runs arrive.

ravi.lab.report.watch.watch("results")              # until all is done, or Ctrl-C
ravi.lab.report.watch.watch("results", once=True)   # one frame, as plain text
"""

from __future__ import annotations

import io
import os
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ravi.display.numbers import DECIMALS, estimate_and_interval
from ravi.display.printable import counted, duration, printable, room, titled
from ravi.lab.report.summary import Row, summary
from ravi.validation import positive

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ravi.lab.experiments.results import Counts, Results

EVERY = 1.0  # seconds between two looks, at least
SHARE = 10  # between two looks there are so many times the seconds that a look takes
TROUBLES, FAILURES = 5, 5  # that are shown
WIDTH = 140  # of a frame that goes to no terminal
WIDE = 100  # columns from which on intervals are shown
REACTION = 0.1  # seconds until Ctrl-C is heard
OTHER_LINES = 16  # of a frame, besides those of learners
MEMORY, ENOUGH = 120.0, 5.0  # seconds over which the speed is measured, at most and at least


class View:
    """What a folder holds at the last look, read while others write into it; nothing is written.

    Attributes
    ----------
    results, counts
        The folder as it was opened last, and how many runs it asks for and has; None before it can be opened.
    waiting
        What is waited for; empty once the folder says what is to be run.
    rows
        The summary: what is known of a mean may still move, since seeds that take long come last.
    alive, checkpoints
        The launches at work, and the checkpoints of runs under way by setting.
    tuning, trials
        How many learners tuning has chosen for, of how many; and how many runs it made, of at most how many.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: Results | None = None
        self.counts: Counts | None = None
        self.waiting = ""
        self.rows: list[Row] = []
        self.alive: list[str] = []
        self.checkpoints: list[str] = []
        self.tuning = self.trials = (0, 0)
        self._state: list[tuple[str, int, int]] = []
        self._marks: deque[tuple[float, float, int]] = deque()  # time, seconds of computing, runs

    def look(self, now: float) -> bool:
        """Read the folder if it has changed since the last look; whether it has."""
        from ravi.lab.experiments.store import Store

        if not (self.folder / "specification.json").exists():
            self.waiting = "it is not there yet" if not self.folder.exists() else "it has no specification.json yet"
            return False
        self.waiting = ""
        self.alive = Store(self.folder).others("")
        self.checkpoints = [path.name.split("-")[0] for path in sorted((self.folder / "checkpoints").glob("*.run"))]
        before, self._state = self._state, _state(self.folder)
        if self._state != before:
            self._read()
        assert self.results is not None
        runs = self.results.runs
        self._marks.append((now, float(np.nansum(runs["seconds"].to_numpy())), runs.num_rows))
        while self._marks[-1][0] - self._marks[0][0] > MEMORY:
            self._marks.popleft()
        return self._state != before

    def _read(self) -> None:
        from ravi.lab.experiments.results import results
        from ravi.lab.experiments.tuning import lacking

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is shown
            found = results(self.folder)
        self.results, self.counts, self.rows = found, found.counts, summary(found)
        final = [record for record in found.tuning.values() if not record.get("missing")]
        begun = {(row.line.mdp, row.line.steps, row.line.learner) for row in self.rows if row.why == lacking(None)}
        tuning = found.suite.tuning
        self.tuning = len(final), len(found.tuning) + len(begun)
        self.trials = self.counts.others, self.tuning[1] * tuning.budget * len(tuning.seeds)

    def left(self, row: Row) -> int:
        """The runs of an entry that are to come; none where tuning has tried everything, and all of it failed."""
        return 0 if row.why == "tuning failed" else row.line.asked - row.done - row.line.failed

    @property
    def finished(self) -> bool:
        """Whether nothing is left that the suite asks for."""
        return bool(self.rows) and not any(map(self.left, self.rows))

    def _speed(self, of: int) -> float | None:
        """How much more there is of a mark a second, over the last minutes; None as long as nothing has arrived."""
        first, last = self._marks[0], self._marks[-1]
        spent, more = last[0] - first[0], last[of] - first[of]
        return more / spent if spent >= ENOUGH and more > 0 else None

    @property
    def rate(self) -> float | None:
        """Runs a second."""
        return self._speed(2)

    @property
    def work_left(self) -> float | None:
        """Seconds of computing, by the mean of each entry's runs, and by the step where there are none."""
        if self.results is None:
            return None
        seconds = self.results.runs["seconds"].to_numpy()
        spent = [seconds[np.concatenate([row.line.rows, row.line.unrecorded])] for row in self.rows]
        steps = np.array([row.line.steps for row in self.rows])
        made = steps @ [len(each) for each in spent]
        if not made:
            return None
        per_step = sum(map(np.sum, spent)) / made
        means = [each.mean() if len(each) else per_step * T for each, T in zip(spent, steps, strict=True)]
        trials = max(0, self.trials[1] - self.trials[0]) if self.tuning[0] < self.tuning[1] else 0
        return float(np.dot(means, [*map(self.left, self.rows)]) + trials * per_step * steps.mean())

    @property
    def time_left(self) -> float | None:
        """Seconds, if it goes on as over the last minutes."""
        work, speed = self.work_left, self._speed(1)
        return None if work is None or speed is None else work / speed


def _state(folder: Path) -> list[tuple[str, int, int]]:
    """What changes when files come or are replaced: names, inodes and times."""
    found = []
    held = [path for name in ("parts", "tuning", "manifests") for path in (folder / name).glob("[!.]*")]
    for path in [folder / "specification.json", *held]:
        with suppress(OSError):  # it was replaced just now
            stat = path.stat()
            found.append((str(path), stat.st_ino, stat.st_mtime_ns))
    return sorted(found)


def watch(
    folder: str | os.PathLike[str], once: bool = False, *, every: float = EVERY, console: Console | None = None
) -> None:
    """Show how far an experiment is until all of it is done; once: print one frame and end.

    A folder that is not there yet is waited for. Where the output is no terminal, a line is printed when runs arrive.
    """
    from rich.console import Console as RichConsole
    from rich.live import Live

    from ravi.runtime.api import interrupts

    every = positive(every, "every")
    view = View(Path(folder))
    if once:
        view.look(time.monotonic())
        print(text(view, min(room(), WIDTH)))
        return
    console = console or RichConsole()
    with suppress(KeyboardInterrupt), interrupts() as stopped:  # an exception may be lost in a library's callback
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, transient=False) as live:

                def draw() -> None:
                    live.update(frame(view, console.height, console.width), refresh=True)

                _follow(view, every, stopped, draw)
        else:
            last = [""]

            def tell() -> None:
                line = headline(view)
                if line.split(";")[0] != last[0]:
                    last[0] = line.split(";")[0]
                    print(line)
                    sys.stdout.flush()

            _follow(view, every, stopped, tell)


def _follow(view: View, every: float, stopped: Callable[[], bool], show: Callable[[], None]) -> None:
    """Look and show until all is done."""
    while not stopped():
        began = time.monotonic()
        view.look(began)
        show()
        if view.finished:
            return
        until = time.monotonic() + max(every, SHARE * (time.monotonic() - began))
        while not stopped() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, REACTION))


def text(view: View, width: int = WIDTH) -> str:
    """A frame as plain text, of any length."""
    from rich.console import Console as RichConsole

    sink = io.StringIO()
    RichConsole(file=sink, width=width, color_system=None, force_terminal=False).print(frame(view, width=width))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def headline(view: View) -> str:
    """How far it is, in one line."""
    if view.waiting or view.counts is None:
        return printable(f"waiting for {view.folder}: {view.waiting}")
    counts = view.counts
    parts = [f"{counts.done:,} of {counted(counts.planned, 'run')} done, {counts.failed:,} failed"]
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

    if view.waiting or view.results is None or view.counts is None:
        return _words(headline(view))
    found, failed = view.results, view.counts.failed
    parts: list[RenderableType] = [_words(f"{found.suite.name} in {view.folder}", "bold"), _words(headline(view))]
    parts += [_words(""), _learners(view, height, width), _words(""), *map(_words, _launches(view, found))]
    if view.checkpoints:
        labels = {row.line.setting: f"{row.line.label} on {row.line.mdp}" for row in view.rows}
        names = list(dict.fromkeys(labels.get(setting, "tuning") for setting in view.checkpoints))
        named = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        parts.append(_words(f"checkpoints: {len(view.checkpoints)} under way ({named})"))
    failures = found.runs.filter(found.runs["failure"].is_valid())
    if failures.num_rows:
        last = failures.select(["mdp", "learner", "seed", "error", "failure"]).to_pylist()[-FAILURES:]
        parts.append(_words(f"failures (the last {len(last)}; {failed:,} among those asked for)", "red"))
        parts += [
            _words(f"  {run['learner']} on {run['mdp']}, seed {run['seed']}: {run['error'] or run['failure']}")
            for run in last
        ]
    if found.troubles:
        parts.append(_words(f"troubles ({counted(len(found.troubles), 'file')} left out)", "red"))
        parts += [_words(f"  {trouble}") for trouble in found.troubles[:TROUBLES]]
    if view.finished:
        parts.append(_words("all is done" if not failed else "all is done, but for what failed", "bold"))
    return Group(*parts)


def _learners(view: View, height: int | None, width: int) -> RenderableType:
    from rich.table import Table

    shown = fitting(view, len(view.rows) if height is None else max(3, height - OTHER_LINES))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("section", "MDP", "learner", "column"):
        table.add_column(name, overflow="fold")
    for name in ("T", "done", "failed", "mean regret", "interval")[: 5 if width >= WIDE else 4]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in shown:
        line, mean, ends = row.line, row.why if row.line.setting is None else "-", ""
        if row.mean is not None:
            mean, ends = estimate_and_interval(*row.mean[:3], DECIMALS["regret"])
            ends = "one seed" if len(line.seeds) == 1 else ends
        names = (line.section, titled(line.mdp), line.label, line.column)
        cells = (*names, f"{line.steps:,}", f"{row.done} of {line.asked}", str(line.failed), mean, ends)
        table.add_row(*map(_words, cells[: len(table.columns)]), style="" if view.left(row) else "dim")
    if len(shown) < len(view.rows):
        done = sum(not view.left(row) for row in view.rows) - sum(not view.left(row) for row in shown)
        table.add_row(_words(f"... and {len(view.rows) - len(shown)} more, {done} of them done"))
    return table


def fitting(view: View, most: int) -> Sequence[Row]:
    """The rows that fit, in their order: those under way go before those not begun, and these before those done."""
    if len(view.rows) <= most:
        return view.rows

    def urgency(place: int) -> int:
        row = view.rows[place]
        return 2 if not view.left(row) else 0 if row.done or row.line.failed else 1

    return [view.rows[place] for place in sorted(sorted(range(len(view.rows)), key=urgency)[: max(1, most - 1)])]


def _launches(view: View, found: Results) -> list[str]:
    if not view.alive:
        sentence = "no launch is alive" + ("" if view.finished else ": the command that began this goes on with it")
        return [f"{sentence} ({len(found.manifests)} before)" if found.manifests else sentence]
    stored, lines = found.runs["launch"].to_pylist(), []
    for name in view.alive:
        manifest = found.manifests.get(name, {})
        runs, since = counted(stored.count(name), "run"), manifest.get("started", "?")
        command = " ".join(map(str, manifest.get("command", ())))
        lines.append(f"launch {name} is alive, {runs} stored, since {since}: {command}")
    return lines


def _words(text: str, style: str = "") -> RenderableType:
    """Text of others among ours: nothing in it is taken for markup, or obeyed by a terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)
