"""Pools of workers: processes of this machine (`processes`) or a Ray cluster (`cluster`), used alike."""

import os
import sys
from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol, Self

from ravi.lab.experiments.work import Outcome, Task

AHEAD = 2  # tasks that a worker has at a time: the one that it does, and the next, so that it never waits for it

# A bit may depend on the number of threads of a matrix product, and workers would be in each other's way.
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "BLIS")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _THREADS} | {"VECLIB_MAXIMUM_THREADS": "1"}


class Lost(NamedTuple):
    """The outcome of a task whose worker died, or that failed because of the machine."""

    started: bool  # whether the task had been begun: only then may it be to blame
    why: str  # one line, such as "worker 12345 was killed by SIGKILL"; below it what it printed last, if anything
    what: str = "its worker died"


class Pool(Protocol):
    """Some workers. Every task that is submitted comes back once: done, as a checkpoint, undone or lost."""

    @property
    def workers(self) -> int:
        """How many tasks are done at a time."""

    def free(self) -> int:
        """How many more tasks it takes now."""

    def submit(self, number: int, task: Task) -> None:
        """Have a task done, under a number of the caller's."""

    def collect(self, seconds: float) -> list[tuple[int, Outcome | Lost]]:
        """The outcomes that have arrived; if there is none, wait for one at most this many seconds."""

    def interrupt(self) -> None:
        """Have everything back soon: checkpoints of what is under way, the rest undone. No more tasks are taken."""

    def close(self) -> None:
        """Give up what is under way. Nothing is left afterwards."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *raised: object) -> None: ...


class Closing(ABC):
    """A context manager that closes itself."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is under way."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def search_path() -> list[str]:
    """Where the driver finds modules: workers look in the same places, so that a user's own learners are found."""
    return [os.path.abspath(place) for place in sys.path if isinstance(place, str)]
