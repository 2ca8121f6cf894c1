"""The jobs into which the runs of a suite are divided, in its order; those of tuned entries once tuning has chosen.

An agenda is told what is in the store (`settle`), and lists the jobs to do (`waiting`). It decides nothing by time or
chance, so that all drivers of a folder come to the same jobs.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ravi.core import Array
from ravi.lab.experiments import plan
from ravi.lab.experiments import rows as kinds
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.suite import Entry, Suite
from ravi.lab.experiments.tuning import Trials

MOST = 1024  # runs of a job
MOST_ON_GPU = 2**16
FEW = 8  # seeds of a job, unless workers would have nothing to do: learners in Python do them side by side
LEAST = 200_000  # steps of a job, likewise: about a tenth of a second
EACH = 32  # jobs for every worker, so that all of them end at about the same time
GUESS = 1e-6  # seconds a step, of a learner that has not been timed
LEFT, LOST, FAILED, STORED = range(4)  # where a run stands: the last three are in the store, each above those before

COLUMNS = ("setting", "seed", "failure", "regret")  # what an agenda must know of a stored run

Keep = Callable[[str, dict[str, Any]], None]  # subject, tuning record -> kept


class Runs:
    """The runs of one setting: 17 bytes for each."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.seeds = np.empty(0, np.int64)  # ascending
        self.state = np.empty(0, np.uint8)
        self.regrets = np.empty(0)  # of stored runs; inf where they failed, nan where they were lost
        self.pace: float | None = None  # seconds a step, as last seen

    def add(self, seeds: Iterable[int]) -> Array:
        """Add seeds; those that were not there already."""
        new = np.setdiff1d(np.array(list(seeds), np.int64), self.seeds)
        places = np.searchsorted(self.seeds, new)
        self.seeds = np.insert(self.seeds, places, new)
        self.state = np.insert(self.state, places, LEFT)
        self.regrets = np.insert(self.regrets, places, np.nan)
        return new

    def settle(self, seeds: Array, failed: Array, regrets: Array, lost: Array | None = None) -> tuple[int, int]:
        """These runs are in the store: how many more are now done, and how many more of those have failed.

        lost: which of the failed are no failures of the learner. The next launch runs them, and this one does not.
        """
        places = self.places(seeds)
        mine, states = places >= 0, np.where(failed, FAILED, STORED)
        if lost is not None:
            states[lost] = LOST
        places, states, regrets = places[mine], states[mine].astype(np.uint8), regrets[mine]
        before = self._settled()
        np.maximum.at(self.state, places, states)
        self.regrets[places[states == STORED]] = regrets[states == STORED]
        self.regrets[self.state == FAILED] = np.inf
        after = self._settled()
        return after[0] - before[0], after[1] - before[1]

    def _settled(self) -> tuple[int, int]:
        done, good = int((self.state >= LOST).sum()), int((self.state == STORED).sum())
        return done, done - good

    @property
    def left(self) -> int:
        """How many are not in the store."""
        return int((self.state == LEFT).sum())

    def unsettled(self, seeds: Iterable[int]) -> tuple[int, ...]:
        """The seeds among these that are not in the store."""
        places = self.places(seeds)
        return tuple(int(seed) for seed in self.seeds[places[self.state[places] == LEFT]])

    def known(self, seeds: Iterable[int]) -> int:
        """How many of these have ended, well or not: those that are lost have not."""
        return int((self.state[self.places(seeds)] > LOST).sum())

    def lost(self, seeds: Iterable[int]) -> int:
        return int((self.state[self.places(seeds)] == LOST).sum())

    def places(self, seeds: Iterable[int]) -> Array:
        """The indices of these seeds among those of the setting; -1 for a seed that is not among them."""
        wanted = np.asarray(seeds if isinstance(seeds, np.ndarray) else list(seeds), np.int64)
        if not len(self.seeds):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self.seeds, wanted), len(self.seeds) - 1)
        return np.where(self.seeds[places] == wanted, places, -1)


@dataclass(frozen=True)
class Job:
    """What one worker does, and one driver claims: some seeds of settings of one kind."""

    variants: tuple[Setting, ...]
    seeds: tuple[int, ...]

    @cached_property
    def key(self) -> str:
        """The name by which a job is claimed, the same for every driver."""
        content = [setting.digest for setting in self.variants], self.seeds
        return sha256(repr(content).encode()).hexdigest()[:20]


def jobs_of(settings: Sequence[Setting], seeds: Array, workers: float, device: str = "cpu") -> Iterator[Job]:
    """The runs of settings of one kind, divided into jobs. workers: how many of them are to have work by these."""
    n, jobs, most = len(seeds), ceil(EACH * workers), MOST
    if not n or not settings:
        return
    if device == "gpu":
        jobs, most = 1, MOST_ON_GPU
    steps = n * settings[0].steps
    several = min(len(settings), max(1, most // n), max(1, len(settings) // jobs, ceil(LEAST / steps)))
    share = workers * several / len(settings)
    parts = ceil(n / most)
    if device == "cpu":
        parts = max(parts, ceil(share), min(ceil(EACH * share), ceil(n / FEW), several * steps // LEAST))
    for first in range(0, len(settings), several):
        for some in np.array_split(seeds, min(parts, n)):
            yield Job(tuple(settings[first : first + several]), tuple(some.tolist()))


class Shard(NamedTuple):
    """Which part of the work is this driver's: the `number`-th of `parts`."""

    number: int = 1
    parts: int = 1

    def mine(self, unit: int) -> bool:
        """Whether a unit of work belongs to it."""
        return unit % self.parts == self.number - 1


class Agenda:
    """The runs of a suite. workers: for how many of them, those of all drivers, runs are divided into jobs."""

    def __init__(
        self, suite: Suite, facts: plan.Facts, shard: Shard, keep: Keep, workers: int = 1, device: str = "cpu"
    ) -> None:
        self.suite, self.facts, self.shard, self.keep = suite, facts, shard, keep
        self.workers, self.device = workers, device
        self.runs: dict[str, Runs] = {}  # by the setting's id
        self.waiting: deque[Job] = deque()  # jobs that nobody was given
        self.done = self.failed = 0  # of the runs: in the store; failed ones among them
        self._subjects: dict[str, list[Entry]] = {}  # the entries that wait for what is tuned
        self._trials: list[Trials] = []  # of subjects that have not chosen yet
        self._shared: dict[str, Array] = {}  # setting -> seeds that some shard runs whatever tuning chooses
        self._early: dict[str, list[pa.Table]] = {}  # what was stored of settings before they were asked for
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
            if subject.digest not in self._subjects:
                if self.shard.mine(len(self._subjects)):
                    self._trials.append(Trials(subject, self.suite.tuning))
                self._subjects[subject.digest] = []
            self._subjects[subject.digest].append(entry)
        groups: dict[Any, list[Setting]] = {}
        for digest, setting in settings.items():
            alike = setting.kind if self.device == "gpu" else digest
            groups.setdefault((alike, self._shared[digest].tobytes()), []).append(setting)
        number = 0
        for group in groups.values():
            seeds, share = self._shared[group[0].digest], self.workers / len(groups)
            for job in jobs_of(group, seeds, share, self.device):
                if self.shard.mine(number):
                    self._want(job)
                number += 1

    def settle(self, table: pa.Table) -> None:
        """These runs are in the store (COLUMNS)."""
        names = table["setting"].combine_chunks().dictionary_encode()
        which = names.indices.to_numpy()
        for code, name in enumerate(names.dictionary.to_pylist()):
            rows = table.filter(pa.array(which == code)) if len(names.dictionary) > 1 else table
            if name in self.runs:
                self._settle(self.runs[name], rows)
            else:
                self._early.setdefault(name, []).append(rows.select(COLUMNS))

    def _settle(self, runs: Runs, rows: pa.Table) -> None:
        regrets, failure = rows["regret"].to_numpy(), rows["failure"]  # a null is nan
        lost = pc.fill_null(pc.equal(failure, kinds.LOST), False).to_numpy()
        done, failed = runs.settle(rows["seed"].to_numpy(), failure.is_valid().to_numpy(), regrets, lost)
        self.done += done
        self.failed += failed

    def advance(self) -> None:
        """Go on with the subjects all of whose trials are settled: try more, or choose."""
        for trials in list(self._trials):
            while asked := trials.ask():
                settings = [
                    plan.with_multipliers(trials.subject.base, one._asdict(), points=1, record=()) for one in asked
                ]
                seeds = np.array(self.suite.tuning.seeds, np.int64)
                for job in jobs_of(settings, np.sort(seeds), self.workers / len(self._trials), self.device):
                    self._want(job)
                trials.tried += [(one, self.runs[s.digest]) for one, s in zip(asked, settings, strict=True)]
            if asked is not None:
                self._choose(trials)

    def _choose(self, trials: Trials) -> None:
        record = trials.record()
        self.keep(trials.subject.digest, record)
        self._trials.remove(trials)
        for entry in self._subjects.pop(trials.subject.digest) if record["chosen"] is not None else ():
            given = trials.tried[record["chosen"]][0]._asdict()
            setting = plan.with_multipliers(trials.subject.base, given, points=entry.points, record=entry.record)
            seeds = np.setdiff1d(entry.seeds, self._shared.get(setting.digest, ()))
            for job in jobs_of([setting], seeds, self.workers / max(1, len(self._subjects)), self.device):
                self._want(job)

    @property
    def tuning(self) -> bool:
        """Whether there are subjects that have not chosen."""
        return bool(self._trials)

    def leave(self) -> None:
        """Record what was tried, with nothing chosen, for subjects whose trials were lost."""
        for trials in self._trials:
            if trials.lost:
                self.keep(trials.subject.digest, trials.record())

    def _want(self, job: Job) -> None:
        for setting in job.variants:
            runs = self.runs.setdefault(setting.digest, Runs(setting))
            runs.add(job.seeds)
            for rows in self._early.get(setting.digest, []):
                self._settle(runs, rows)
        self.waiting.append(job)

    def left(self, job: Job) -> list[tuple[Setting, tuple[int, ...]]]:
        """The settings of a job that have runs which are not in the store, each with their seeds."""
        found = [(setting, self.runs[setting.digest].unsettled(job.seeds)) for setting in job.variants]
        return [(setting, seeds) for setting, seeds in found if seeds]

    @property
    def total(self) -> int:
        """How many runs there will be, as far as is known: tuning may choose settings that are counted already."""
        return sum(len(runs.seeds) for runs in self.runs.values()) + sum(runs for _, runs in self._to_come())

    @property
    def seconds_left(self) -> float:
        """Seconds of computing for all unsettled runs, by the times seen; by their mean for a setting without any."""
        paces = [runs.pace for runs in self.runs.values() if runs.pace is not None]
        mean = sum(paces) / len(paces) if paces else GUESS
        known = sum(
            runs.left * runs.setting.steps * (mean if runs.pace is None else runs.pace) for runs in self.runs.values()
        )
        return known + sum(mean * trials.subject.base.steps * runs for trials, runs in self._to_come())

    def _to_come(self) -> list[tuple[Trials, int]]:
        """The subjects that have not chosen, and how many runs they will ask for."""
        found = []
        for trials in self._trials:
            waiting = self._subjects[trials.subject.digest]
            reported = {(entry.points, entry.record, seed) for entry in waiting for seed in entry.seeds}
            tried = (trials.tuning.budget - len(trials.tried)) * len(trials.tuning.seeds)
            found.append((trials, tried + len(reported)))
        return found
