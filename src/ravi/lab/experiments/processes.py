"""Worker processes of this machine, which last, each with its next task at hand.

A worker is a program of its own (`ravi.lab.experiments.worker`), so drivers may be scripts without a main guard,
notebooks or `python -`. It leads a session of its own, so the terminal's Ctrl-C reaches the driver only; it computes
with one thread; what it prints is kept for error messages (its last few kB), and shown nowhere. A worker that dies is
replaced: the task that it had begun is lost, the next one comes back as not started, and all others go on. One that
ends with an error of its own before it has started ends the driver too, if others do so after it; one that somebody
kills then does not, as long as that does not go on for minutes. When the driver dies, workers die at once.
"""

import itertools
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ravi import validation
from ravi.lab.experiments import worker as program
from ravi.lab.experiments.pools import AHEAD, ONE_THREAD, Closing, Lost, search_path
from ravi.lab.experiments.work import Outcome, Task, undone
from ravi.lab.experiments.worker import BEGUN, CHUNK, DONE, MARK, READY, Messages, framed
from ravi.validation import InputError

STARTS = 3  # workers that fail to start, one after another, before that is an error
KILLS = 40  # workers that are killed as they start, one after another, before that is
PAUSE, PAUSE_MOST = 0.1, 5.0  # seconds before the next start after a failed one: twice as long each time, but so much
OWN = {  # signals of a program's own mistakes
    signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP,
}  # fmt: skip
WORDS = 4096  # bytes that are kept of what a worker writes
TICK = 0.5  # seconds between looks at workers that may have died without a sign
MOST = 4096  # workers


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    line: socket.socket  # for messages
    life: int  # a pipe's end: the worker dies when it is closed
    unsent: bytearray = field(default_factory=bytearray)
    messages: Messages = field(default_factory=Messages)
    tasks: dict[int, tuple[int, Task]] = field(default_factory=dict)  # key -> number and task, as it does them
    begun: int | None = None  # which of them it does now
    ready: bool = False
    hung_up: bool = False
    words: bytes = b""  # what it printed last, in its last task

    @property
    def spare(self) -> list[int]:
        """The tasks that another worker may take over: those not begun, and not about to be."""
        waiting = [key for key in self.tasks if key != self.begun]
        return waiting[1:] if self.ready and self.begun is None else waiting

    def kill(self) -> None:
        """End it, and all that a learner may have started in it."""
        for end in (self.process.kill, lambda: os.killpg(self.process.pid, signal.SIGKILL)):
            with suppress(ProcessLookupError, PermissionError):  # gone already
                end()

    def listen(self) -> bytes | None:
        """A piece of what it has printed; None when there is no more yet."""
        assert self.process.stdout is not None
        try:
            piece = os.read(self.process.stdout.fileno(), CHUNK)
        except BlockingIOError:
            return None
        self.words = (self.words + piece).rpartition(MARK)[2][-WORDS:]
        return piece

    def release(self) -> None:
        """Close what belongs to it, when it is dead."""
        assert self.process.stdout is not None
        self.process.wait()
        self.process.stdout.close()
        self.line.close()
        os.close(self.life)


class Processes(Closing):
    """A pool (`ravi.lab.experiments.pools.Pool`) of worker processes, for one thread of the driver at a time."""

    def __init__(self, workers: int) -> None:
        self.workers = validation.whole(workers, "workers", 1, MOST)
        self._team: list[_Worker] = []
        self._back: list[tuple[int, Outcome | Lost]] = []
        self._keys = itertools.count()  # of tasks as they are given to a worker: numbers may come again
        self._events = selectors.DefaultSelector()
        self._failed = self._killed = 0  # starts, one after another
        self._due: list[float] = []  # when workers are to be started in the place of dead ones
        self._interrupted = False
        try:
            for _ in range(self.workers):
                self._start()
        except BaseException:
            self.close()
            raise

    def free(self) -> int:
        return 0 if self._interrupted else sum(AHEAD - len(worker.tasks) for worker in self._team)

    def submit(self, number: int, task: Task) -> None:
        if self.free() <= 0:
            raise InputError("no worker is free for another task")
        worker = min(self._team, key=lambda worker: len(worker.tasks))
        self._give(worker, number, task)

    def collect(self, seconds: float) -> list[tuple[int, Outcome | Lost]]:
        until = time.monotonic() + seconds
        self._turn(0)
        while not self._back and (left := until - time.monotonic()) > 0:
            self._share()
            self._turn(min(left, TICK))
        back, self._back = self._back, []
        return back

    def interrupt(self) -> None:
        self._interrupted = True
        self._due.clear()
        for worker in self._team:
            for key in [key for key in worker.tasks if key != worker.begun]:
                self._send(worker, (key, None))
                number, task = worker.tasks.pop(key)
                self._back.append((number, undone(task)))
            if worker.begun is not None:
                worker.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        for worker in self._team:
            worker.kill()
        while self._team:
            self._team.pop().release()
        self._events.close()

    def _start(self) -> None:
        ours, its = socket.socketpair()
        its_life, life = os.pipe()
        words = [sys.executable, "-P", program.__file__, str(its.fileno()), str(its_life), str(os.getpid())]
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
                pass_fds=(its.fileno(), its_life), start_new_session=True, env=os.environ | ONE_THREAD,
            )  # fmt: skip
        except OSError as error:
            ours.close()
            os.close(life)
            raise InputError(f"cannot start a worker: {sys.executable}: {error.strerror}") from None
        finally:
            its.close()
            os.close(its_life)
        assert process.stdout is not None
        worker = _Worker(process, ours, life)
        self._team.append(worker)
        ours.setblocking(False)  # both sides may have much to say at once: this one never waits
        os.set_blocking(process.stdout.fileno(), False)
        self._events.register(ours, selectors.EVENT_READ, worker)
        self._events.register(process.stdout, selectors.EVENT_READ, worker)
        self._send(worker, search_path())

    def _give(self, worker: _Worker, number: int, task: Task) -> None:
        key = next(self._keys)
        worker.tasks[key] = number, task
        self._send(worker, (key, task))

    def _share(self) -> None:
        """Let workers that have nothing to do take over what waits behind long tasks."""
        for idle in self._team:
            busy = max(self._team, key=lambda worker: len(worker.spare))
            if idle.ready and not idle.tasks and busy.spare:
                key = busy.spare[-1]
                self._send(busy, (key, None))
                self._give(idle, *busy.tasks.pop(key))

    def _turn(self, seconds: float) -> None:
        """Read and write what can be read and written, waiting at most this long; replace dead workers."""
        for key, events in self._events.select(seconds):
            worker: _Worker = key.data
            if key.fileobj is not worker.line:
                if worker.listen() == b"":  # it has closed it
                    self._events.unregister(key.fileobj)
                continue
            if events & selectors.EVENT_WRITE:
                self._flush(worker)
            if events & selectors.EVENT_READ:
                self._read(worker)
        for worker in list(self._team):
            if worker.hung_up or worker.process.poll() is not None:
                self._bury(worker)
        while self._due and self._due[0] <= time.monotonic():
            self._due.pop(0)
            self._replace()

    def _send(self, worker: _Worker, message: Any) -> None:
        worker.unsent += framed(message)
        self._flush(worker)

    def _flush(self, worker: _Worker) -> None:
        """Send as much as the line takes; the rest follows when it takes more."""
        try:
            while worker.unsent:
                with memoryview(worker.unsent) as unsent:
                    sent = worker.line.send(unsent[:CHUNK])
                del worker.unsent[:sent]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):  # it is dead, as will be seen when its last words are read
            worker.unsent.clear()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.unsent else 0)
        if self._events.get_key(worker.line).events != wanted:
            self._events.modify(worker.line, wanted, worker)

    def _read(self, worker: _Worker) -> None:
        try:
            while piece := worker.line.recv(CHUNK):
                for message in worker.messages.within(piece):
                    self._heard(worker, *message)
            worker.hung_up = True
        except BlockingIOError:
            pass
        except ConnectionResetError:
            worker.hung_up = True

    def _heard(self, worker: _Worker, what: str, key: int = 0, outcome: Outcome | None = None) -> None:
        if what == READY:
            worker.ready, self._failed, self._killed = True, 0, 0
        elif what == BEGUN:
            worker.begun = key
        elif what == DONE and outcome is not None:
            worker.begun = None
            if key in worker.tasks:  # else it was withdrawn too late: another's will count
                self._back.append((worker.tasks.pop(key)[0], outcome))

    def _bury(self, worker: _Worker) -> None:
        """Release a dead worker, report its tasks as lost, and plan the start of another."""
        self._read(worker)  # what it still said
        with suppress(subprocess.TimeoutExpired):  # it has hung up, and does not end
            worker.process.wait(2.0)
        worker.kill()
        worker.process.wait()
        while worker.listen():
            pass
        for place in (worker.line, worker.process.stdout):
            with suppress(KeyError):
                self._events.unregister(place)  # type: ignore[arg-type]
        self._team.remove(worker)
        worker.release()
        last = worker.words.decode(errors="replace").strip()
        why = f"worker {worker.process.pid} {_end(worker.process.returncode)}"
        for key, (number, _) in worker.tasks.items():
            self._back.append((number, Lost(key == worker.begun, f"{why}\n{last}".strip())))
        if not worker.ready:
            self._stillborn(worker.process.returncode, why, last)
        if not self._interrupted:
            self._expect()

    def _expect(self) -> None:
        """Plan the start of another worker: at once, or after a pause where the last ones did not come up."""
        tries = self._failed + self._killed
        wait = min(PAUSE * 2 ** (tries - 1), PAUSE_MOST) if tries else 0.0
        self._due = sorted([*self._due, time.monotonic() + wait])

    def _replace(self) -> None:
        """Start a worker in the place of a dead one; a machine that cannot just now may be able to later."""
        try:
            self._start()
        except InputError:
            self._killed += 1
            if self._killed >= KILLS:
                raise
            self._expect()

    def _stillborn(self, status: int, why: str, last: str) -> None:
        """A worker ended before it had started: an error if this happens repeatedly."""
        killed = status < 0 and -status not in OWN
        self._killed, self._failed = self._killed + killed, self._failed + (not killed)
        if self._failed >= STARTS or self._killed >= KILLS:
            raise InputError(f"workers do not start: the last {why}; it said:\n{last or 'nothing'}")


def _end(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was killed by {known.get(-status, f'signal {-status}')}"
