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
from typing import TYPE_CHECKING, Any

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
        state = _state(self.folder)
        changed = state != self._state
        if changed:
            self._read()
            self._state = state
        assert self.results is not None
        runs = self.results.runs
        self._marks.append((now, float(np.nansum(runs["seconds"].to_numpy())), runs.num_rows))
        while self._marks[-1][0] - self._marks[0][0] > MEMORY:
            self._marks.popleft()
        return changed

    def _read(self) -> None:
        from ravi.lab.experiments.results import results
        from ravi.lab.experiments.schedule.tuning import lacking

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
        line = row.line
        if line.setting is None:
            return 0 if row.why == "tuning failed" else line.asked
        return line.asked - row.done - line.failed

    @property
    def finished(self) -> bool:
        """Whether nothing is left that the suite asks for."""
        return bool(self.rows) and not any(map(self.left, self.rows))

    @property
    def rate(self) -> float | None:
        """Runs a second over the last minutes; None as long as none has arrived since the first look."""
        (first, _, before), (last, _, after) = self._marks[0], self._marks[-1]
        return (after - before) / (last - first) if last - first >= ENOUGH and after > before else None

    @property
    def work_left(self) -> float | None:
        """Seconds of computing, by the mean of each entry's runs, and by the step where there are none."""
        if self.results is None:
            return None
        seconds = self.results.runs["seconds"].to_numpy()
        spent = [seconds[np.concatenate([row.line.rows, row.line.unrecorded])] for row in self.rows]
        steps = sum(len(each) * row.line.steps for each, row in zip(spent, self.rows, strict=True))
        if not steps:
            return None
        per_step = sum(map(np.sum, spent)) / steps
        left = 0.0
        for each, row in zip(spent, self.rows, strict=True):
            left += self.left(row) * (each.mean() if len(each) else per_step * row.line.steps)
        if self.tuning[0] < self.tuning[1]:
            mean = sum(row.line.steps for row in self.rows) / len(self.rows)
            left += max(0, self.trials[1] - self.trials[0]) * per_step * mean
        return float(left)

    @property
    def time_left(self) -> float | None:
        """Seconds, if it goes on as over the last minutes."""
        work = self.work_left
        (first, before, _), (last, after, _) = self._marks[0], self._marks[-1]
        if work is None or last - first < ENOUGH or after <= before:
            return None
        return work * (last - first) / (after - before)


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
        _wait(max(every, SHARE * (time.monotonic() - began)), stopped)


def _wait(seconds: float, stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
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
    parts += [_words(""), _learners(view, height, width)]
    parts += [_words(""), *map(_words, _launches(view, found))]
    if view.checkpoints:
        parts += [_words(f"checkpoints: {len(view.checkpoints)} under way ({_named(view)})")]
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
        line, mean, ends = row.line, "-", ""
        if line.setting is None:
            mean = row.why
        elif row.mean is not None:
            estimate, low, high, _ = row.mean
            mean, ends = estimate_and_interval(estimate, low, high, DECIMALS["regret"])
            ends = "one seed" if len(line.seeds) == 1 else ends
        names = (line.section, titled(line.mdp), line.label, line.column)
        cells = (*names, f"{line.steps:,}", f"{row.done} of {line.asked}", str(line.failed), mean, ends)
        table.add_row(*map(_words, cells[: len(table.columns)]), style="dim" if not view.left(row) else "")
    if len(shown) < len(view.rows):
        whole = sum(not view.left(row) for row in view.rows) - sum(not view.left(row) for row in shown)
        table.add_row(_words(f"... and {len(view.rows) - len(shown)} more, {whole} of them done"))
    return table


def fitting(view: View, most: int) -> Sequence[Row]:
    """The rows that fit, in their order: those under way go before those not begun, and these before those done."""
    if len(view.rows) <= most:
        return view.rows

    def urgency(place: int) -> tuple[int, int]:
        row = view.rows[place]
        return (2 if not view.left(row) else 0 if row.done or row.line.failed else 1, place)

    chosen = sorted(sorted(range(len(view.rows)), key=urgency)[: max(1, most - 1)])
    return [view.rows[place] for place in chosen]


def _launches(view: View, found: Results) -> list[str]:
    if not view.alive:
        sentence = "no launch is alive" + ("" if view.finished else ": the command that began this goes on with it")
        return [f"{sentence} ({len(found.manifests)} before)" if found.manifests else sentence]
    lines = []
    stored = found.runs["launch"].to_pylist()
    for name in view.alive:
        manifest: dict[str, Any] = found.manifests.get(name, {})
        command = " ".join(map(str, manifest.get("command", ())))
        lines.append(
            f"launch {name} is alive, {counted(stored.count(name), 'run')} stored, "
            f"since {manifest.get('started', '?')}: {command}"
        )
    return lines


def _words(text: str, style: str = "") -> RenderableType:
    """Text of others among ours: nothing in it is taken for markup, or obeyed by a terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)


def _named(view: View) -> str:
    """The runs that the checkpoints belong to."""
    labels = {row.line.setting: f"{row.line.label} on {row.line.mdp}" for row in view.rows}
    names = dict.fromkeys(labels.get(setting, "tuning") for setting in view.checkpoints)
    return ", ".join(list(names)[:3]) + (", ..." if len(names) > 3 else "")
