"""What do commands share? The option `--json`, a bar on the terminal, and what is said after Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ravi.engine import Progress

JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def stopped_early(kept: Path | None) -> typer.Exit:
    """Say that Ctrl-C came before the end, and from which file the same command goes on; how to leave."""
    where = f"; the same command goes on from {kept}" if kept is not None else ""
    print(f"ravi: stopped before the end{where}", file=sys.stderr)
    return typer.Exit(130)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress | None]:
    """A bar on the terminal while the work lasts; nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)  # no total yet: functions are loaded or compiled
        yield lambda done, total: bar.update(task, completed=done, total=total)
