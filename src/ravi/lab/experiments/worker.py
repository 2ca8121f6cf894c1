"""A worker process reads a task, does it, and sends what comes of it; it dies when its driver does.

`ravi.lab.experiments.processes` starts this file as a program. Until the driver has told it where modules are found, it
needs Python's own only.
"""

import faulthandler
import io
import os
import pickle
import select
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

READY, BEGUN, DONE = "ready", "begun", "done"  # what a worker says: (READY,), (BEGUN, number), (DONE, number, outcome)
HEADER = struct.Struct("!Q")  # the length of a message, before it
CHUNK = 2**20  # bytes that are read at a time
MARK = b"\0"  # in what a worker prints: here a task begins


def framed(message: Any) -> bytes:
    """How a message travels between a driver and the worker that it started; nothing of this form is ever stored."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(content)) + content


class Messages:
    """The messages of a stream, in whatever pieces it comes."""

    def __init__(self) -> None:
        self._held = bytearray()

    def within(self, piece: bytes) -> Iterator[Any]:
        """The messages that this piece completes, each unpacked when the one before it has been processed."""
        self._held += piece
        while len(self._held) >= HEADER.size:
            end = HEADER.size + HEADER.unpack_from(self._held)[0]
            if len(self._held) < end:
                return
            content = bytes(self._held[HEADER.size : end])
            del self._held[:end]
            yield pickle.loads(content)


def main(line: int, life: int, driver: int) -> None:
    """`line` carries the messages; `life` ends when the driver, whose pid is given, does."""
    interrupted: list[bool] = []
    signal.signal(signal.SIGINT, lambda signum, frame: interrupted.append(True))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    for inherited in (line, life):
        os.set_inheritable(inherited, False)
    _die_with(driver, life)
    faulthandler.enable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what was printed before a crash is not lost
    messages = _messages(line)
    sys.path[:] = next(messages)

    from ravi.lab.experiments.work import work

    _send(line, (READY,))
    waiting: dict[int, Any] = {}
    while True:
        while not waiting or select.select([line], [], [], 0)[0]:
            number, task = next(messages)
            if task is None:  # withdrawn: another worker does it
                waiting.pop(number, None)
            else:
                waiting[number] = task
        number = next(iter(waiting))
        _mark()
        _send(line, (BEGUN, number))
        _send(line, (DONE, number, work(waiting.pop(number), lambda: bool(interrupted))))
        interrupted.clear()  # it was about this task: what comes next is done, whoever sent it


def _messages(line: int) -> Iterator[Any]:
    messages = Messages()
    while piece := os.read(line, CHUNK):
        yield from messages.within(piece)


def _send(line: int, message: Any) -> None:
    content = memoryview(framed(message))
    while content:
        content = content[os.write(line, content) :]


def _mark() -> None:
    with suppress(OSError, ValueError):  # a learner may have closed them
        sys.stdout.flush()
        os.write(2, MARK)


def _die_with(driver: int, life: int) -> None:
    """End this process, and all that it started, as soon as the driver has ended, however that ended.

    A thread waits for it; but compiled code may hold Python's lock for long, so Linux is asked to kill outright. Where
    a child of the driver has inherited the other end of `life`, it is the parent's pid that tells.
    """
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpid())  # the whole group, which this process leads
            fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        while os.getppid() == driver and not select.select([life], [], [], 1.0)[0]:
            pass
        os.killpg(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _status(error: SystemExit) -> int:
    """The status with which Python would exit."""
    if isinstance(error.code, int) or error.code is None:
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    status = 0
    try:
        main(*(int(word) for word in sys.argv[1:]))
    except (StopIteration, BrokenPipeError, ConnectionResetError):  # the driver has hung up
        pass
    except SystemExit as error:  # of a learner
        status = _status(error)
    except BaseException:
        traceback.print_exc()
        status = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)  # threads that a learner left behind would keep the process
