"""A job is a setting and its seeds, handed out in batches."""

from collections.abc import Iterable

import numpy as np

from ravi.core import Array
from ravi.lab.experiments.schedule.settings import Setting

MOST = 1024  # seeds that go out together
MOST_THERE = 2**16  # on a GPU
FEW = 16  # a batch of so many times fewer seeds takes in other settings of its learner
GUESS = 1e-6  # seconds a step, of a learner that has not been timed
# Where a run stands: the last three are in the store, each above those before.
LEFT, GIVEN, LOST, FAILED, STORED = range(5)


class Job:
    """The runs of one setting: 17 bytes for each."""

    def __init__(self, setting: Setting, mdp: bytes | None = None) -> None:
        self.setting = setting
        self.mdp = mdp  # the content of the MDP's file, where it has no id
        self.seeds = np.empty(0, np.int64)  # ascending
        self.state = np.empty(0, np.uint8)
        self.regrets = np.empty(0)  # of stored runs; inf where they failed, nan where they were lost
        self.pace: float | None = None  # seconds a step, as last seen
        self.left = 0  # runs that are to be handed out
        self.under_way = 0  # runs that are handed out
        self.queued = False  # whether an agenda has it among those to take from
        self.backwards = False  # whether the last seeds go first

    def add(self, seeds: Iterable[int]) -> None:
        """More seeds, where they are not there already."""
        new = np.setdiff1d(np.array(list(seeds), np.int64), self.seeds)
        places = np.searchsorted(self.seeds, new)
        self.seeds = np.insert(self.seeds, places, new)
        self.state = np.insert(self.state, places, LEFT)
        self.regrets = np.insert(self.regrets, places, np.nan)
        self.left += len(new)

    def batch(self, most: int = MOST, rows: int = MOST) -> list[int]:
        """The next seeds to run: as many as are left, but no more than these."""
        left = np.flatnonzero(self.state == LEFT)
        most = min(most, rows)
        return self._give(left[-most:] if self.backwards else left[:most])

    def give(self, seeds: Iterable[int]) -> list[int]:
        """Hand out those of these that are to be run."""
        places = self.places(seeds)
        places = places[places >= 0]
        return self._give(places[self.state[places] == LEFT])

    def offers(self, seeds: Iterable[int]) -> bool:
        """Whether all of these are to be run."""
        places = self.places(seeds)
        return bool((places >= 0).all() and (self.state[places] == LEFT).all())

    def put_back(self, seeds: Iterable[int]) -> None:
        """These were handed out, and not begun."""
        places = self.places(seeds)
        places = places[self.state[places] == GIVEN]
        self.state[places] = LEFT
        self.left += len(places)
        self.under_way -= len(places)

    def _give(self, places: Array) -> list[int]:
        self.state[places] = GIVEN
        self.left -= len(places)
        self.under_way += len(places)
        return [int(seed) for seed in self.seeds[places]]

    def timed(self, plays: int, seconds: float) -> None:
        """Record that `plays` steps, of all seeds together, took `seconds`."""
        self.pace = seconds / plays

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
        self.left = int((self.state == LEFT).sum())
        self.under_way = int((self.state == GIVEN).sum())
        after = self._settled()
        return after[0] - before[0], after[1] - before[1]

    def _settled(self) -> tuple[int, int]:
        done, good = int((self.state >= LOST).sum()), int((self.state == STORED).sum())
        return done, done - good

    def settled(self, seeds: Iterable[int]) -> bool:
        return bool((self.state[self.places(seeds)] >= LOST).all())

    def unsettled(self, seeds: Iterable[int]) -> list[int]:
        """The seeds among these that are not in the store."""
        places = self.places(seeds)
        return [int(seed) for seed in self.seeds[places[self.state[places] < LOST]]]

    def known(self, seeds: Iterable[int]) -> int:
        """How many of these have ended, well or not: those that are lost have not."""
        return int((self.state[self.places(seeds)] > LOST).sum())

    def lost(self, seeds: Iterable[int]) -> int:
        return int((self.state[self.places(seeds)] == LOST).sum())

    def places(self, seeds: Iterable[int]) -> Array:
        """The indices of these seeds among those of the job; -1 for a seed that is not among them."""
        wanted = np.asarray(seeds if isinstance(seeds, np.ndarray) else list(seeds), np.int64)
        if not len(self.seeds):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self.seeds, wanted), len(self.seeds) - 1)
        return np.where(self.seeds[places] == wanted, places, -1)
