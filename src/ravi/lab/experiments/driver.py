"""The driver hands tasks of an agenda to a pool of workers, and keeps what comes back in a store."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import ceil
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ravi.lab.experiments.manifest import differing
from ravi.lab.experiments.pools import Lost, Pool
from ravi.lab.experiments.rows import LOST, failed_rows, unpacked
from ravi.lab.experiments.schedule import jobs
from ravi.lab.experiments.schedule.agenda import COLUMNS, Agenda
from ravi.lab.experiments.schedule.jobs import MOST, MOST_THERE, Job
from ravi.lab.experiments.store import Checkpoint, Store
from ravi.lab.experiments.work import SECOND, Outcome, Task
from ravi.runtime.archive import Unwritable
from ravi.runtime.result import versions
from ravi.validation import InputError

LOG = logging.getLogger("ravi")
WAIT = 0.2  # seconds that a driver waits for its workers before it looks around
FLUSH, FLUSH_MOST = 2.0, 60.0  # seconds between two parts: a hundredth of the time that the driver has run, but so much
BUFFER = 32 * 2**20  # bytes of rows that wait for their part, at most
LOOK = 1.0  # seconds between two looks at what other drivers have stored
TELL = 0.1  # seconds between two tellings of progress
FEW, RATE = 4, 1e7  # a slice is a quarter of the time spent before, but a second, or what so many bytes a second ask
TRIES = 3  # how often a task may lose its worker, or meet a fault of the machine


class Status(NamedTuple):
    """How far a driver is."""

    done: int  # runs in the store, failed ones among them
    failed: int
    running: int  # runs that workers have
    total: int
    rate: float  # runs a second that this driver has stored
    left: float | None  # seconds, as far as can be told
    stopping: bool


class Work(NamedTuple):
    """A batch of a job's runs, as it was handed out."""

    job: Job
    seeds: list[int]
    checkpoint: bytes | None = None
    losses: int = 0  # workers that died of it, and faults of machines
    spent: float = 0.0  # seconds of computing, so far
    plays: float = 0.0  # that were made in them

    def divided(self, size: int) -> tuple[Work, Work]:
        """The task split into its first `size` seeds and the others; both continue from the one checkpoint."""
        share = size / len(self.seeds)
        first = self._replace(seeds=self.seeds[:size], plays=share * self.plays)
        return first, self._replace(seeds=self.seeds[size:], plays=(1 - share) * self.plays)


class Driver:
    """Between an agenda, a pool and a store."""

    def __init__(
        self, store: Store, launch: str, pool: Pool, agenda: Agenda, retry: bool = False, mix_versions: bool = False,
        slice: float = 30.0, device: str = "cpu",
    ) -> None:  # fmt: skip
        self.store, self.launch, self.pool, self.agenda = store, launch, pool, agenda
        self.mix_versions, self.slice, self.versions = mix_versions, slice, versions()
        self.device, self.rows = device, MOST if device == "cpu" else MOST_THERE
        self.given: dict[int, list[Work]] = {}  # what the pool has: those of several settings go as one batch
        self.undone: deque[Work] = deque()  # what came back and must go out again
        self.buffer: list[tuple[Job, pa.Table]] = []  # what waits for its part
        self.waiting = 0  # its bytes
        self.checkpoints: list[Checkpoint] = []  # runs under way, of jobs that are not on the agenda yet
        self.kept: dict[str, set[tuple[int, ...]]] = {}  # setting -> the seeds of its checkpoints in the store
        self.numbers = 0
        self.began = self.flushed = self.looked = time.monotonic()
        self._open(retry)

    def _open(self, retry: bool) -> None:
        """Begin with what the folder holds. What was lost is run again."""
        for table in settled(self.store, retry):
            self.agenda.settle(table)
        self.agenda.advance()
        alive = self.store.others(self.launch)
        if alive:  # other drivers are at work here: begin elsewhere, and leave them what they have under way
            self.agenda.begin_elsewhere(int(self.launch, 16), len(alive))
        self.checkpoints = [left for left in self.store.checkpoints() if left.launch not in alive]
        self._take_up()
        self.before = self.agenda.done

    def _take_up(self) -> None:
        """Go on with runs that left a checkpoint, as far as they are on the agenda."""
        later = []
        for checkpoint in self.checkpoints:
            job = self.agenda.jobs.get(checkpoint.setting)
            if job is None or (job.places(checkpoint.seeds) < 0).any():
                later.append(checkpoint)
                continue
            self.kept.setdefault(checkpoint.setting, set()).add(checkpoint.seeds)
            if seeds := job.give(checkpoint.seeds):  # those that are neither stored nor under way
                self.undone.append(Work(job, seeds, checkpoint.content, plays=len(seeds) * checkpoint.plays))
        self.checkpoints = later
        self._drop()

    def drive(self, interrupted: Callable[[], bool], progress: Callable[[Status], None] | None = None) -> None:
        """Until nothing is left to do, or Ctrl-C."""
        try:
            self._loop(interrupted, progress)
        except Unwritable as error:  # a part, a checkpoint or a result of tuning
            raise InputError(f"{error}. What is stored is kept: with room to write, the same command goes on") from None
        finally:  # whatever happened, what has come is kept, if it can be
            with suppress(InputError):
                self._keep(at_once=True)

    def _loop(self, interrupted: Callable[[], bool], progress: Callable[[Status], None] | None) -> None:
        stopping, told = False, 0.0
        while True:
            if interrupted() and not stopping:
                stopping = True
                self.pool.interrupt()
            starved = stopping or self._hand_out()  # nothing more to hand out, unless what has come calls for it
            if self._keep(at_once=starved) and not stopping:
                continue
            if not self.given and starved:  # else workers are being started
                break
            for number, back in self.pool.collect(WAIT):
                self._take_back(self.given.pop(number), back, stopping)
            self._look()
            if progress is not None and time.monotonic() - told >= TELL:
                progress(self._status(stopping))
                told = time.monotonic()
        self.agenda.leave()
        if progress is not None:
            progress(self._status(stopping))

    def _hand_out(self) -> bool:
        """Give the pool as much as it takes; whether it would take more than there is."""
        while self.pool.free() > 0:
            works = self._next()
            if not works:
                return True
            first, *others = [self._task(work) for work in works]
            seconds = min(self.slice, sum(task.slice for task in (first, *others)))
            self.pool.submit(self.numbers, first._replace(slice=seconds, others=tuple(others)))
            self.given[self.numbers] = works
            self.numbers += 1
        return False

    def _task(self, work: Work) -> Task:
        job, seconds = work.job, max(SECOND, work.spent / FEW, len(work.checkpoint or b"") / RATE)
        seconds = min(self.slice, seconds)
        return Task(job.setting, tuple(work.seeds), self.launch, job.mdp, work.checkpoint, seconds, self.device)

    def _next(self) -> list[Work]:
        """The next tasks to hand out: those that were returned come first, and are divided among idle workers at the
        end. Tasks of few seeds are joined by those of settings that can run in the same batch."""
        while self.undone:
            work = self.undone.popleft()
            seeds = work.job.unsettled(work.seeds)
            if not seeds:  # another driver was faster
                continue
            work = work._replace(seeds=seeds)
            idle = self.pool.workers - len(self.given) - len(self.undone) - 1
            if idle > 0 and len(seeds) > 1 and self.agenda.idle:
                work, rest = work.divided(ceil(len(seeds) / (1 + idle)))
                self.undone.appendleft(rest)
            return [work, *self._along(work)]
        workers = self.pool.workers
        taken = self.agenda.take(workers, self.rows)
        if taken is None:
            return []
        job, seeds = taken
        return [Work(one, list(seeds)) for one in (job, *self.agenda.along(job, seeds, workers, self.rows))]

    def _along(self, work: Work) -> list[Work]:
        """Other returned tasks that can join this one in a batch; a task whose worker died runs alone."""

        def fits(other: Work) -> bool:
            begun = (other.checkpoint is None) == (work.checkpoint is None)
            same = begun and not other.losses and other.job.setting.kind == work.job.setting.kind
            return same and other.seeds == work.seeds == other.job.unsettled(other.seeds)

        if work.losses or len(work.seeds) > self.rows // jobs.FEW:
            return []
        others = [other for other in self.undone if fits(other)]
        most = min(ceil((1 + len(others)) / self.pool.workers), self.rows // len(work.seeds)) - 1
        for other in others[:most]:
            self.undone.remove(other)
        return others[:most]

    def _take_back(self, works: list[Work], back: Outcome | Lost, stopping: bool) -> None:
        if isinstance(back, Lost):
            for work in works:
                self._lost(work, back)
            return
        for work, outcome in zip(works, (back, *back.others), strict=True):
            self._came(work, outcome, stopping)

    def _came(self, work: Work, back: Outcome, stopping: bool) -> None:
        job = work.job
        if back.versions != self.versions and not self.mix_versions:
            lines = "; ".join(differing({"versions": self.versions}, {"versions": back.versions}))
            raise InputError(f"the worker on {back.host} has other versions than the driver: {lines}")
        if back.plays:
            job.timed(back.plays, back.seconds)
        begun = {seed for batch in back.left for seed in batch.seeds}
        if back.rows is not None:
            rows = unpacked(back.rows)
            begun |= {*rows["seed"].to_pylist()}
            self._await(job, rows)
        self.agenda.put_back(job, [seed for seed in work.seeds if seed not in begun])
        plays = work.plays + back.plays if len(back.left) == 1 and back.rows is None else 0.0
        for batch in back.left:
            rest = Work(job, list(batch.seeds), batch.checkpoint, work.losses, work.spent + back.seconds, plays)
            if batch.checkpoint is not None and batch.checkpoint != work.checkpoint:
                self.store.keep_checkpoint(job.setting.digest, batch.seeds, batch.checkpoint)
                self.kept.setdefault(job.setting.digest, set()).add(batch.seeds)
            if back.fault is not None and batch is back.left[0]:
                self._lost(rest, Lost(True, back.fault, "the machine failed it"))
            elif not stopping:
                self.undone.append(rest)

    def _lost(self, work: Work, lost: Lost) -> None:
        """Hand a lost task out again; after TRIES losses halve it, drop its checkpoint, at last record it as lost."""
        losses = work.losses + lost.started
        LOG.info("%s: %s, with %d seeds", work.job.setting.learner, lost.what, len(work.seeds))
        if losses < TRIES:
            self.undone.append(work._replace(losses=losses))
        elif len(work.seeds) > 1:  # which of them is it?
            self.undone.extend(work._replace(losses=TRIES - 1).divided(len(work.seeds) // 2))
        elif work.checkpoint is not None:  # or is it that?
            self.undone.append(work._replace(losses=TRIES - 1, checkpoint=None, plays=0.0))
        else:
            why, _, last = lost.why.partition("\n")
            error = f"{lost.what} {losses} times; at last {why}"
            rows = failed_rows(work.job.setting, work.seeds, self.launch, LOST, error, last)
            self._await(work.job, pa.Table.from_batches([rows]))

    def _await(self, job: Job, rows: pa.Table) -> None:
        """Buffer rows for the next part."""
        self.buffer.append((job, rows))
        self.waiting += rows.nbytes

    def _keep(self, at_once: bool) -> bool:
        """Write what has come as one part, when it is time to: then, and not before, it is done."""
        now = time.monotonic()
        due = now - self.flushed >= min(max(FLUSH, (now - self.began) / 100), FLUSH_MOST)
        if not self.buffer or not (at_once or due or self.waiting > BUFFER):
            return False
        self.store.write([table for _, table in self.buffer])
        LOG.info("%d runs are stored in %s", sum(table.num_rows for _, table in self.buffer), self.store.folder)
        for _, table in self.buffer:
            self.agenda.settle(table)
        self.buffer.clear()
        self.waiting, self.flushed = 0, now
        self._go_on()
        return True

    def _look(self) -> None:
        """Read what other drivers have stored since the last look."""
        now = time.monotonic()
        if now - self.looked >= LOOK:
            self.looked = now
            for table in self.store.read(COLUMNS):
                self.agenda.settle(table)
            self._go_on()

    def _drop(self) -> None:
        """Remove the checkpoints all of whose runs are stored."""
        for setting, kept in self.kept.items():
            for seeds in [seeds for seeds in kept if self.agenda.jobs[setting].settled(seeds)]:
                self.store.drop_checkpoint(setting, seeds)
                kept.remove(seeds)

    def _go_on(self) -> None:
        self.agenda.advance()
        self._take_up()

    def _status(self, stopping: bool) -> Status:
        agenda, spent = self.agenda, time.monotonic() - self.began
        given = [work for works in self.given.values() for work in works]
        running = sum(len(work.seeds) for work in given)
        made = [(work.job, work.plays) for work in (*given, *self.undone)]
        made += [(job, float(table.num_rows * job.setting.steps)) for job, table in self.buffer]
        over = sum(plays * job.pace for job, plays in made if job.pace is not None)
        timed = any(job.pace is not None for job in agenda.jobs.values())
        left = max(0.0, agenda.seconds_left - over) / max(1, self.pool.workers) if timed else None
        rate = (agenda.done - self.before) / max(spent, 1e-9)
        return Status(agenda.done, agenda.failed, running, agenda.total, rate, left, stopping)


def settled(store: Store, retry: bool = False) -> Iterator[pa.Table]:
    """The runs that need not be made: those in the store, but for what is to be tried again."""
    for table in store.read(COLUMNS):
        again = pc.is_valid(table["failure"]) if retry else pc.equal(table["failure"], LOST)
        yield table.filter(pc.invert(pc.fill_null(again, False)))
