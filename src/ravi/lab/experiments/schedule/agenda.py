"""The jobs that a suite still asks for, in its order; those of tuned entries as soon as tuning has chosen.

An agenda is told what is in the store (`settle`), and says what to run next (`take`). It decides nothing by time or
chance, so that any driver, at any moment, comes to the same conclusions from the same store.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ravi.core import Array
from ravi.lab.experiments.rows import LOST
from ravi.lab.experiments.schedule import plan
from ravi.lab.experiments.schedule.jobs import FEW, GUESS, MOST, Job
from ravi.lab.experiments.schedule.settings import Setting
from ravi.lab.experiments.schedule.tuning import Trials
from ravi.lab.experiments.suite_file.specification import Entry, Suite

BLOCKS = (64, 32, 16)  # seeds that a shard takes together: the first of these that gives every shard some
ENOUGH = 4  # blocks for every shard
COLUMNS = ("setting", "seed", "failure", "regret")  # what an agenda must know of a stored run

Keep = Callable[[str, dict[str, Any]], None]  # subject, tuning record -> kept


class Shard(NamedTuple):
    """Which part of the work is this driver's: the `number`-th of `parts`."""

    number: int = 1
    parts: int = 1

    def mine(self, unit: Any) -> Any:
        """Whether a unit of work, or which of an array of units, belongs to it."""
        return unit % self.parts == self.number - 1


class Agenda:
    def __init__(
        self, suite: Suite, facts: plan.Facts, contents: Mapping[str, bytes], shard: Shard, keep: Keep
    ) -> None:
        self.suite, self.facts, self.contents, self.shard, self.keep = suite, facts, contents, shard, keep
        self.jobs: dict[str, Job] = {}  # by the setting's id
        self.done = self.failed = 0  # of the jobs' runs: in the store; failed ones among them
        self._ready: deque[Job] = deque()  # jobs with runs to hand out
        self._open: set[str] = set()  # settings of which not all runs are settled
        self._alike: dict[Any, list[Job]] = {}  # by what settings have in common that may go as one batch
        self._waiting: dict[str, list[Entry]] = {}  # subject -> the entries that wait for it
        self._trials: list[Trials] = []  # of subjects that have not chosen yet
        self._shared: dict[str, Array] = {}  # setting -> seeds that some shard runs whatever tuning chooses
        self._early: dict[str, list[pa.Table]] = {}  # stored runs of settings that have no job yet
        self._backwards = False
        self._drivers = 1  # that are known to work on this
        self._plan()

    def _plan(self) -> None:
        settings: dict[str, Setting] = {}
        for entry in self.suite.entries:
            subject = plan.subject_of(entry, self.facts, self.suite.tuning)
            if subject is None:
                setting = plan.setting_of(entry, self.facts)
                settings[setting.digest] = setting
                known = self._shared.get(setting.digest, np.empty(0, np.int64))
                self._shared[setting.digest] = np.union1d(known, np.array(entry.seeds, np.int64))
                continue
            if subject.digest not in self._waiting:
                if self.shard.mine(len(self._waiting)):
                    self._trials.append(Trials(subject, self.suite.tuning))
                self._waiting[subject.digest] = []
            self._waiting[subject.digest].append(entry)
        sizes = [len(self._shared[digest]) for digest in settings]
        counts = {block: sum(-(-size // block) for size in sizes) for block in BLOCKS}
        block = next((block for block in BLOCKS if counts[block] >= ENOUGH * self.shard.parts), BLOCKS[-1])
        number = 0
        for digest, setting in settings.items():
            seeds = self._shared[digest]
            blocks = np.arange(len(seeds)) // block + number
            if self.shard.mine(blocks).any():
                self._want(setting, seeds[self.shard.mine(blocks)])
            number += -(-len(seeds) // block)

    def settle(self, table: pa.Table) -> None:
        """These runs are in the store (COLUMNS)."""
        names = table["setting"].combine_chunks().dictionary_encode()
        which = names.indices.to_numpy()
        for code, name in enumerate(names.dictionary.to_pylist()):
            rows = table.filter(pa.array(which == code)) if len(names.dictionary) > 1 else table
            job = self.jobs.get(name)
            if job is None:
                self._early.setdefault(name, []).append(rows.select(COLUMNS))
            else:
                self._settle(job, rows)

    def _settle(self, job: Job, rows: pa.Table) -> None:
        regrets, failure = rows["regret"].to_numpy(), rows["failure"]  # a null is nan
        lost = pc.fill_null(pc.equal(failure, LOST), False).to_numpy()
        done, failed = job.settle(rows["seed"].to_numpy(), failure.is_valid().to_numpy(), regrets, lost)
        self.done += done
        self.failed += failed
        if not job.left and not job.under_way:
            self._open.discard(job.setting.digest)

    def advance(self) -> None:
        """Go on with the subjects all of whose trials are settled: try more, or choose."""
        for trials in list(self._trials):
            while trials in self._trials and trials.hear():
                asked = trials.search.ask()
                for configuration in asked:
                    given = configuration._asdict()
                    setting = plan.with_multipliers(trials.subject.base, given, points=1, record=())
                    trials.tried.append((configuration, self._want(setting, self.suite.tuning.seeds)))
                if not asked:
                    self._choose(trials)

    def _choose(self, trials: Trials) -> None:
        record = trials.record()
        self.keep(trials.subject.digest, record)
        self._trials.remove(trials)
        for entry in self._waiting.pop(trials.subject.digest) if record["chosen"] is not None else ():
            given = trials.tried[record["chosen"]][0]._asdict()
            setting = plan.with_multipliers(trials.subject.base, given, points=entry.points, record=entry.record)
            self._want(setting, np.setdiff1d(entry.seeds, self._shared.get(setting.digest, ())))

    def leave(self) -> None:
        """Record what was tried, with nothing chosen, for subjects whose trials were lost."""
        for trials in self._trials:
            if trials.lost:
                self.keep(trials.subject.digest, trials.record())

    def _want(self, setting: Setting, seeds: Iterable[int]) -> Job:
        """The job of a setting, with these seeds among its own."""
        job = self.jobs.get(setting.digest)
        if job is None:
            job = self.jobs[setting.digest] = Job(setting, self.contents.get(setting.mdp))
            job.backwards = self._backwards
            self._alike.setdefault(setting.kind, []).append(job)
        job.add(seeds)
        for rows in self._early.pop(setting.digest, []):
            self._settle(job, rows)
        if job.left:
            self._open.add(setting.digest)
        if job.left and not job.queued:
            self._ready.append(job)
            job.queued = True
        return job

    def take(self, workers: int = 1, rows: int = MOST) -> tuple[Job, list[int]] | None:
        """The next batch: as many seeds of the first job as leave work for all workers (side by side is cheap), but no
        more than `rows`."""
        while self._ready and not self._ready[0].left:
            self._ready.popleft().queued = False
        if not self._ready:
            return None
        job = self._ready[0]
        parts = ceil(workers / len(self._open)) * self._drivers
        return job, job.batch(ceil((job.left + job.under_way) / parts), rows)

    def along(self, job: Job, seeds: list[int], workers: int = 1, rows: int = MOST) -> list[Job]:
        """The jobs whose same seeds go out with a batch of few, since their settings differ in multipliers only: as
        many as leave work for all workers, and `rows` allow. They are taken by this."""
        alike = [one for one in self._alike[job.setting.kind] if one.left or one.under_way]
        others = [one for one in alike if one is not job and one.left and one.offers(seeds)]
        if not others or len(seeds) > rows // FEW:
            return []
        kinds = len({self.jobs[digest].setting.kind for digest in self._open})
        parts = ceil(workers / kinds) * self._drivers
        taken = others[: min(ceil(len(alike) / parts), rows // len(seeds)) - 1]
        for one in taken:
            one.give(seeds)
        return taken

    def put_back(self, job: Job, seeds: Iterable[int]) -> None:
        """These were taken, and not begun."""
        job.put_back(seeds)
        if job.left and not job.queued:
            self._ready.appendleft(job)
            job.queued = True

    @property
    def idle(self) -> bool:
        """Whether there is nothing to take."""
        return not any(job.left for job in self._ready)

    def begin_elsewhere(self, place: int, others: int = 1) -> None:
        """Go the other way, from some other place: other drivers are at work, and are to be met late."""
        self._backwards, self._drivers = True, 1 + others
        for job in self.jobs.values():
            job.backwards = True
        self._ready.reverse()
        self._ready.rotate(-(place % max(1, len(self._ready))))

    @property
    def total(self) -> int:
        """How many runs there will be, as far as is known: tuning may choose settings that are counted already."""
        return sum(len(job.seeds) for job in self.jobs.values()) + sum(runs for _, runs in self._to_come())

    @property
    def seconds_left(self) -> float:
        """Seconds of computing for all unsettled runs, by the times seen; the mean of them for a job without any."""
        paces = [job.pace for job in self.jobs.values() if job.pace is not None]
        mean = sum(paces) / len(paces) if paces else GUESS
        known = sum(
            (job.left + job.under_way) * job.setting.steps * (mean if job.pace is None else job.pace)
            for job in self.jobs.values()
        )
        return known + sum(mean * trials.subject.base.steps * runs for trials, runs in self._to_come())

    def _to_come(self) -> list[tuple[Trials, int]]:
        """The subjects that have not chosen, and how many runs they will ask for."""
        found = []
        for trials in self._trials:
            waiting = self._waiting[trials.subject.digest]
            reported = {(entry.points, entry.record, seed) for entry in waiting for seed in entry.seeds}
            tried = (trials.tuning.budget - len(trials.tried)) * len(trials.tuning.seeds)
            found.append((trials, tried + len(reported)))
        return found
