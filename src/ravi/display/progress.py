"""A progress bar on a terminal or in a notebook, removed when the work is done.

`progress` of `ravi.run`, `ravi.learn`, `ravi.run_suite` and others is None for that, True for a bar anywhere, False for
none, or a function of one's own. What takes less than `PATIENCE` seconds has no bar.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from ravi.display.printable import printable
from ravi.validation import InputError, shown

Progress: TypeAlias = Callable[[int, int], None]  # how much is done, how much there is
Draw: TypeAlias = Callable[[int, int | None, str], None]  # done, in all (None while that is not known), in words

PATIENCE = 1.0  # seconds before a bar is shown
PACE = 0.1  # seconds between two pictures of it


def wanted(progress: Any) -> Any:
    """The argument `progress`, checked: None, True, False or a function."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise InputError(f"progress is {shown(progress)}, not a function, True or False")
    return progress


def watched() -> bool:
    """Whether someone looks."""
    return _in_notebook() or sys.stderr.isatty()


@contextmanager
def telling(progress: Any, label: str, patience: float = PATIENCE) -> Iterator[Progress | None]:
    """How progress is reported: by the caller's function, by a bar, or not at all."""
    if callable(progress):
        yield progress
        return
    with bar(progress, label, patience) as draw:
        yield None if draw is None else lambda done, total: draw(done, total, "")


@contextmanager
def bar(progress: bool | None, label: str, patience: float = PATIENCE) -> Iterator[Draw | None]:
    """A function that draws a bar once `patience` seconds have passed, or None for no bar. The bar says when functions
    are being compiled."""
    if progress is False or (progress is None and not watched()):
        yield None
        return
    from ravi._jit.functions import effort

    began, drawn, draw = time.monotonic(), 0.0, None
    far: tuple[int, int | None] = 0, None
    with ExitStack() as stack:

        def show(done: int, total: int | None, words: str) -> None:
            nonlocal draw, drawn, far
            now, far = time.monotonic(), (done, total)
            if now - began < patience or (now - drawn < PACE and done != total):
                return
            drawn = now
            draw = draw or stack.enter_context(_notebook(label) if _in_notebook() else _terminal(label))
            draw(done, total, words)

        if patience == 0:
            show(0, None, "")
        stack.callback(setattr, effort, "tell", effort.tell)
        effort.tell = lambda: show(*far, "compiling, once")
        yield show


def _in_notebook() -> bool:
    """Whether this is the kernel of one; a shell in a terminal is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _terminal(label: str) -> Iterator[Draw]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    words, told = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[told]}"))
    columns = (words, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), told)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(printable(label), total=None, told="")
        yield lambda done, total, told: bars.update(task, completed=done, total=total, told=printable(told))


@contextmanager
def _notebook(label: str) -> Iterator[Draw]:
    import IPython.display

    from ravi.display.html import text

    page: Any = IPython.display
    held = page.display(page.HTML(""), display_id=True)

    def draw(done: int, total: int | None, told: str) -> None:
        part = "" if total is None else f"value='{done}' max='{total}'"
        words = "" if total is None else f"{done / max(total, 1):.0%} "
        held.update(page.HTML(f"<div>{text(label)} <progress {part}></progress> {words}{text(told)}</div>"))

    try:
        yield draw
    finally:
        held.update(page.HTML(""))
