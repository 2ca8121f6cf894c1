"""The live view of a folder of results: frames on a terminal, or lines as runs arrive.

ravi.lab.report.watch.watch("results")              # until all is done, or Ctrl-C
ravi.lab.report.watch.watch("results", once=True)   # one frame, as plain text
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ravi.display.printable import counted, printable, room, titled
from ravi.lab.report.view import Line, View
from ravi.validation import positive

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

EVERY = 1.0  # seconds between two looks
TROUBLES = 5  # that are told
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

    from ravi.lab.report.numbers import estimate_and_interval

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


def _named(view: View) -> str:
    """The runs that the checkpoints belong to."""
    labels = {line.setting.digest: f"{line.entry.label} on {line.entry.mdp}" for line in view.lines if line.setting}
    names = dict.fromkeys(labels.get(setting, "tuning") for setting, _ in view.checkpoints)
    return ", ".join(list(names)[:3]) + (", ..." if len(names) > 3 else "")


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
