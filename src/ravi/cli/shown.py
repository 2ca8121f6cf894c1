"""What do commands share? The option `--json`, and a bar on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ravi.engine import Progress

JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


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
