"""The runs of a setting, where each of them stands, and the jobs into which runs are divided."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import ceil

import numpy as np

from ravi.core import Array
from ravi.lab.experiments.schedule.settings import Setting

MOST = 1024  # runs of a job
MOST_ON_GPU = 2**16
FEW = 8  # seeds of a job, unless workers would have nothing to do: learners in Python do them side by side
LEAST = 200_000  # steps of a job, likewise: about a tenth of a second
EACH = 32  # jobs for every worker, so that all of them end at about the same time
GUESS = 1e-6  # seconds a step, of a learner that has not been timed
LEFT, LOST, FAILED, STORED = range(4)  # where a run stands: the last three are in the store, each above those before


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
