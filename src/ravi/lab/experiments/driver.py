"""The driver claims jobs of an agenda, hands them to an executor, and keeps what comes back in a store."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ravi.lab.experiments.agenda import COLUMNS, Agenda, Job
from ravi.lab.experiments.executors import Executor, Lost
from ravi.lab.experiments.manifest import differing
from ravi.lab.experiments.rows import LOST, failed_rows
from ravi.lab.experiments.store import Store
from ravi.lab.experiments.work import Outcome, Task
from ravi.runtime.archive import Unwritable
from ravi.runtime.result import versions
from ravi.validation import InputError

LOG = logging.getLogger("ravi")
WAIT = 0.2  # seconds that a driver waits for its workers before it looks around
LOOK = 1.0  # seconds between two looks at what other drivers have stored
FLUSH, FLUSH_MOST = 2.0, 60.0  # seconds between two parts: a hundredth of the time that the driver has run, but so much
TELL = 0.1  # seconds between two tellings of progress
TRIES = 3  # how often a job may lose its worker, or meet a fault of the machine


class Status(NamedTuple):
    """How far a driver is."""

    done: int  # runs in the store, failed ones among them
    failed: int
    running: int  # runs that workers have
    total: int
    rate: float  # runs a second that this driver has stored
    left: float | None  # seconds, as far as can be told
    stopping: bool


@dataclass
class Work:
    """A job that this driver has claimed."""

    job: Job
    checkpoints: Mapping[str, bytes]  # by the settings whose runs are under way
    apart: bool = False  # its runs are done one by one
    losses: int = 0  # workers that died of it, and faults of machines
    plays: float = 0.0  # of runs under way
    given: int = 0  # runs that a worker has


class Driver:
    """Between an agenda, an executor and a store."""

    def __init__(
        self, store: Store, launch: str, executor: Executor, agenda: Agenda, contents: dict[str, bytes] | None = None,
        retry: bool = False, mix_versions: bool = False, slice: float = 30.0, leave: bool = False,
    ) -> None:  # fmt: skip
        """leave: to end when all that is left is being done by other drivers, and nothing is tuned by it."""
        self.store, self.launch, self.executor, self.agenda = store, launch, executor, agenda
        self.contents, self.mix_versions, self.slice, self.versions = contents or {}, mix_versions, slice, versions()
        self.leave = leave
        self.given: dict[int, Work] = {}  # what the executor has
        self.again: deque[Work] = deque()  # what came back and must go out again
        self.elsewhere: list[Job] = []  # jobs that other drivers have claimed
        self.rows: list[pa.Table] = []  # what waits for its part
        self.ended: list[Work] = []  # jobs that are done when it is written
        self.numbers = 0
        self.began = self.looked = self.flushed = time.monotonic()
        for table in settled(store, retry):
            agenda.settle(table)
        agenda.advance()
        store.release_dead()
        self.before, self.stored = agenda.done, (agenda.done, agenda.failed)

    def drive(self, interrupted: Callable[[], bool], progress: Callable[[Status], None] | None = None) -> None:
        """Until nothing is left to do, or Ctrl-C."""
        try:
            self._loop(interrupted, progress)
        except Unwritable as error:  # a part, a checkpoint or a result of tuning
            raise InputError(f"{error}. What is stored is kept: with room to write, the same command goes on") from None
        finally:  # whatever happened, what has come is kept, if it can be
            with suppress(InputError):
                self._flush()
            for work in (*self.given.values(), *self.again, *self.ended):
                self.store.release(work.job.key)

    def _loop(self, interrupted: Callable[[], bool], progress: Callable[[Status], None] | None) -> None:
        stopping, told = False, 0.0
        while True:
            if interrupted() and not stopping:
                stopping = True
                self.executor.interrupt()
            if not stopping:
                self._hand_out()
            idle = stopping or self.executor.free() > 0  # there is no more to do, unless what has come calls for it
            now = time.monotonic()
            due = now - self.flushed >= min(max(FLUSH, (now - self.began) / 100), FLUSH_MOST)
            if self.rows and (idle or due):
                self._flush()
                continue
            if not self.given and (stopping or self._over()):
                break
            for number, back in self.executor.collect(WAIT):
                self._take_back(self.given.pop(number), back, stopping)
            self._look()
            if progress is not None and time.monotonic() - told >= TELL:
                progress(self._status(stopping))
                told = time.monotonic()
        self.agenda.leave()
        if progress is not None:
            progress(self._status(stopping))

    def _over(self) -> bool:
        """Whether nothing is left to do, or to wait for."""
        waits = self.elsewhere and (self.agenda.tuning or not self.leave)
        return not (self.again or self.agenda.waiting or waits)

    def _hand_out(self) -> None:
        """Give the executor as much as it takes."""
        while self.executor.free() > 0 and (work := self._next()) is not None:
            self.executor.submit(self.numbers, self._task(work))
            self.given[self.numbers] = work
            self.numbers += 1

    def _next(self) -> Work | None:
        """The next work: what came back unfinished, else the first job that is left and that nobody has claimed."""
        while self.again or self.agenda.waiting:
            if self.again:
                work = self.again.popleft()
            else:
                job = self.agenda.waiting.popleft()
                if not self.agenda.left(job):
                    continue
                if not self.store.claim(job.key):
                    self.elsewhere.append(job)
                    continue
                self._read()  # another driver may have done it
                held = {setting.digest: self.store.checkpoint(setting.digest, job.key) for setting in job.variants}
                work = Work(job, {name: content for name, content in held.items() if content is not None})
            if self.agenda.left(work.job):
                return work
            self.ended.append(work)
        return None

    def _task(self, work: Work) -> Task:
        """What a worker is to do of a job: all that is left, or the first run where they are done one by one."""
        left = self.agenda.left(work.job)
        if work.apart:
            left = [(left[0][0], left[0][1][:1])]
        work.given, mdp = sum(len(seeds) for _, seeds in left), self.contents.get(left[0][0].mdp)
        return Task(tuple(left), self.launch, mdp, work.checkpoints, self.slice, self.agenda.device)

    def _take_back(self, work: Work, back: Outcome | Lost, stopping: bool) -> None:
        if isinstance(back, Lost):
            self._lost(work, back)
        else:
            self._came(work, back)
        if not self.agenda.left(work.job):
            self.ended.append(work)
        elif stopping:
            self.store.release(work.job.key)
        else:
            self.again.append(work)

    def _came(self, work: Work, back: Outcome) -> None:
        if back.versions != self.versions and not self.mix_versions:
            lines = "; ".join(differing({"versions": self.versions}, {"versions": back.versions}))
            raise InputError(f"the worker on {back.host} has other versions than the driver: {lines}")
        if back.plays:
            for setting in work.job.variants:
                self.agenda.runs[setting.digest].pace = back.seconds / back.plays
        if back.rows is not None:
            self._keep(back.rows)
        work.plays = 0.0 if back.rows is not None else work.plays + back.plays
        work.apart |= back.apart
        for name, content in back.checkpoints.items():
            if content != work.checkpoints.get(name):
                self.store.keep_checkpoint(name, work.job.key, content)
        work.checkpoints = back.checkpoints
        if back.fault is not None:
            self._lost(work, Lost(True, back.fault, "the machine failed it"))

    def _lost(self, work: Work, lost: Lost) -> None:
        """Count a loss; after TRIES of them, a job's runs go one by one, and a single run is recorded as lost."""
        left = self.agenda.left(work.job)
        if not left:
            return
        (setting, seeds), single = left[0], work.given == 1
        work.losses += lost.started
        LOG.info("%s: %s, with %d seeds", setting.learner, lost.what, len(seeds))
        if work.losses < TRIES:
            return
        if work.checkpoints:  # it may be to blame
            work.checkpoints = {}
        elif single:
            why, _, last = lost.why.partition("\n")
            error = f"{lost.what} {work.losses} times; at last {why}"
            rows = failed_rows(setting, seeds[:1], self.launch, LOST, error, last)
            self._keep(rows)
        else:
            work.apart = True
        work.losses = TRIES - 1

    def _keep(self, rows: pa.Table) -> None:
        """Have rows written with the next part: their runs are not done before that, but need no worker any more."""
        self.rows.append(rows)
        self.agenda.settle(rows)

    def _flush(self) -> None:
        """Write what has come as one part, and release the jobs that are done by it."""
        if self.rows:
            self.store.write(self.rows)
            LOG.info("%d runs are stored in %s", sum(table.num_rows for table in self.rows), self.store.folder)
        self.rows.clear()
        self.flushed = time.monotonic()
        for work in self.ended:
            for setting in work.job.variants:
                self.store.drop_checkpoint(setting.digest, work.job.key)
            self.store.release(work.job.key)
        self.ended.clear()
        self._advance()

    def _advance(self) -> None:
        if not self.rows:
            self.agenda.advance()
            self.stored = self.agenda.done, self.agenda.failed

    def _read(self) -> None:
        for table in self.store.read(COLUMNS).values():
            self.agenda.settle(table)
        self._advance()

    def _look(self) -> None:
        """Read what other drivers have stored since the last look, and try again to claim what they had claimed."""
        now = time.monotonic()
        if now - self.looked >= LOOK:
            self.looked = now
            self._read()
            if self.elsewhere:
                self.store.release_dead()
                self.agenda.waiting += self.elsewhere
                self.elsewhere.clear()

    def _status(self, stopping: bool) -> Status:
        agenda, spent = self.agenda, time.monotonic() - self.began
        works = [*self.given.values(), *self.again]
        paces = [(work.plays, agenda.runs[work.job.variants[0].digest].pace) for work in works]
        over = sum(plays * pace for plays, pace in paces if pace is not None)
        timed = any(runs.pace is not None for runs in agenda.runs.values())
        left = max(0.0, agenda.seconds_left - over) / max(1, self.executor.workers) if timed else None
        running = sum(work.given for work in self.given.values())
        done, failed = self.stored
        rate = (done - self.before) / max(spent, 1e-9)
        return Status(done, failed, running, agenda.total, rate, left, stopping)


def settled(store: Store, retry: bool = False) -> Iterator[pa.Table]:
    """The runs that need not be made: those in the store, but for what is to be tried again."""
    for table in store.read(COLUMNS).values():
        again = pc.is_valid(table["failure"]) if retry else pc.equal(table["failure"], LOST)
        yield table.filter(pc.invert(pc.fill_null(again, False)))
