"""Executors do tasks on workers: processes of this machine (`Processes`), or a Ray cluster (`cluster`).

A worker process lasts, computes with one thread, and leads a process group of its own, so the terminal's Ctrl-C reaches
the driver only. What it prints goes to a file, whose end is quoted if it dies. Each worker is an executor of the
standard library with one process: one that dies takes along its own task alone, and is replaced. When the driver dies,
its workers end, and with them all that a learner has started in them.
"""

import faulthandler
import itertools
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Self

from ravi import validation
from ravi.lab.experiments.work import Outcome, Task, work
from ravi.validation import InputError

MOST = 4096  # workers
STARTS = 5  # workers that fail to start, one after another, before that is an error
PAUSE = 0.1  # seconds before the next start after a failed one, twice as long each time
WORDS = 8192  # bytes that are quoted of what a dead worker has printed
FILES = 16  # that a worker takes of those that the driver may have open

# A bit may depend on the number of threads of a matrix product, and workers would be in each other's way.
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "BLIS")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _THREADS} | {"VECLIB_MAXIMUM_THREADS": "1"}


class Lost(NamedTuple):
    """The outcome of a task whose worker died, or that failed because of the machine."""

    started: bool  # whether the task had been begun: only then may it be to blame
    why: str  # one line, such as "worker 12345 was killed by SIGKILL"; below it what it printed last, if anything
    what: str = "its worker died"


class Executor(ABC):
    """Some workers. Every task that is submitted comes back once: done, as a checkpoint, undone or lost."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many tasks are done at a time."""

    @abstractmethod
    def free(self) -> int:
        """How many more tasks it takes now."""

    @abstractmethod
    def submit(self, number: int, task: Task) -> None:
        """Have a task done, under a number of the caller's."""

    @abstractmethod
    def collect(self, seconds: float) -> list[tuple[int, Outcome | Lost]]:
        """The outcomes that have arrived; if there is none, wait for one at most this many seconds."""

    @abstractmethod
    def interrupt(self) -> None:
        """Have everything back soon: checkpoints of what is under way, the rest undone. No more tasks are taken."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is under way. Nothing is left afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class _Worker:
    """A process, and the task that it has."""

    def __init__(self, folder: Path, number: int) -> None:
        self.task: tuple[int, Future[Outcome]] | None = None
        self.printed = folder / f"printed-{number}"
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, context, _begin, (str(self.printed), str(folder / "stop")))
        before = {*multiprocessing.active_children()}
        with _bare():
            self.pid = self.pool.submit(os.getpid)
        self.children = {*multiprocessing.active_children()} - before  # its process, and those of other threads

    def ready(self) -> bool:
        """Whether the process has started."""
        return self.pid.done() and self.pid.exception() is None

    def why(self) -> str:
        """How it ended, and what it printed last."""
        self.pool.shutdown()
        words = b""
        with suppress(OSError):
            words = self.printed.read_bytes()[-WORDS:]
        ends = [one for one in self.children if not self.ready() or one.pid == self.pid.result()]
        end = " ".join(f"{one.pid} {_end(one.exitcode or 0)}" for one in ends)
        return f"worker {end}\n{words.decode(errors='replace').strip()}".strip()

    def kill(self) -> None:
        """End it, and all that a learner may have started in it."""
        if self.ready():
            with suppress(ProcessLookupError, PermissionError):  # gone already
                os.killpg(self.pid.result(), signal.SIGKILL)


class Processes(Executor):
    """An executor of worker processes, for one thread of the driver at a time."""

    def __init__(self, workers: int) -> None:
        self._most = validation.whole(workers, "workers", 1, MOST)
        self._folder = tempfile.TemporaryDirectory(prefix="ravi-workers-", ignore_cleanup_errors=True)
        self._stop = Path(self._folder.name) / "stop"
        self._numbers = itertools.count()
        self._failed = 0  # starts, one after another
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 256 + FILES * self._most
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == -1 else min(wanted, hard), hard))
        self._team: list[_Worker] = []
        try:
            self._team += [self._start() for _ in range(self._most)]
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        return self._most

    def _start(self) -> _Worker:
        try:
            return _Worker(Path(self._folder.name), next(self._numbers))
        except OSError as error:
            raise InputError(f"cannot start a worker: {error.filename or sys.executable}: {error.strerror}") from None

    def free(self) -> int:
        return 0 if self._stop.exists() else sum(worker.task is None for worker in self._team)

    def submit(self, number: int, task: Task) -> None:
        if self.free() <= 0:
            raise InputError("no worker is free for another task")
        place = next(place for place, worker in enumerate(self._team) if worker.task is None)
        while self._team[place].task is None:
            worker = self._team[place]
            try:
                worker.task = number, worker.pool.submit(_do, task)
            except BrokenProcessPool:  # it died meanwhile
                self._replace(place)

    def collect(self, seconds: float) -> list[tuple[int, Outcome | Lost]]:
        waited = [worker.task[1] for worker in self._team if worker.task is not None]
        if waited:
            wait(waited, seconds, FIRST_COMPLETED)
        else:
            time.sleep(seconds)
        back: list[tuple[int, Outcome | Lost]] = []
        for place, worker in enumerate(self._team):
            if worker.task is None or not worker.task[1].done():
                continue
            (number, future), worker.task = worker.task, None
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                back.append((number, self._replace(place)))
            elif error is not None:
                raise error
            else:
                self._failed = 0
                back.append((number, future.result()))
        return back

    def _replace(self, place: int) -> Lost:
        """Start a worker in the place of a dead one; what became of its task."""
        worker = self._team[place]
        started, why = worker.ready(), worker.why()
        worker.kill()  # what a learner has started in it
        self._failed = 0 if started else self._failed + 1
        if self._failed >= STARTS:
            raise InputError(f"workers do not start: the last {why}")
        if not started:
            time.sleep(PAUSE * 2**self._failed)
        self._team[place] = self._start()
        return Lost(started, why)

    def interrupt(self) -> None:
        self._stop.touch()

    def close(self) -> None:
        with suppress(OSError):
            self._stop.touch()  # for what has not started yet
        for worker in self._team:
            worker.kill()
        while self._team:
            self._team.pop().pool.shutdown(cancel_futures=True)
        self._folder.cleanup()


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Variables of the environment that hold for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ |= {} if value is None else {name: value}


@contextmanager
def _bare() -> Iterator[None]:
    """Let processes that are started here compute with one thread, import nothing of the program that starts them (so
    that it may be a script without a main guard, or come from a pipe), and not hear its Ctrl-C."""
    main = sys.modules["__main__"]
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with environment(**ONE_THREAD, PYTHONSAFEPATH="1"):
            yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


_stop_file = ""  # of this worker


def _begin(printed: str, stop: str) -> None:
    """The beginning of a worker process: it is alone with its group, prints into a file, and ends with its driver."""
    global _stop_file
    _stop_file = stop
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    file = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    faulthandler.enable(all_threads=False)
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    assert driver is not None
    while driver.is_alive() and os.getppid() == driver.pid:
        driver.join(1.0)
    os.killpg(0, signal.SIGKILL)


def _do(task: Task) -> Outcome:
    """A task, as a worker process does it."""
    with suppress(OSError, ValueError):  # a learner may have closed them
        sys.stdout.flush()
        os.truncate(1, 0)
    try:
        return work(task, lambda: os.path.exists(_stop_file))
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()


def search_path() -> list[str]:
    """Where the driver finds modules: workers look in the same places, so that a user's own learners are found."""
    return [os.path.abspath(place) for place in sys.path if isinstance(place, str)]


def _end(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was killed by {known.get(-status, f'signal {-status}')}"
