"""Ctrl-C, and other signals to stop, as a flag that a loop reads where it can stop."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


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
