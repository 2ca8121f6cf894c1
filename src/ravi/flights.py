"""When does each seed go through its epochs by itself, and how is such a run watched? By calls of many epochs each.

In `ravi.epochs` Python calls compiled functions of all seeds, about ten in an epoch: some 12 us, which for one seed on
a small MDP is most of the time. `ravi.whole` makes one compiled function of the whole run. It gives the same bits, so a
run changes over to it wherever that pays: where the calls of the epochs to come, and of those that runs of this process
have made without it, take longer than it takes to load the function, or to compile it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from ravi import teams, together, whole
from ravi.compiled import Ready, compiled, effort, ready
from ravi.core import Array, Learner, Measure
from ravi.walk import World

LOOK, OFTEN = 0.5, 0.1  # seconds that a call takes, about: on a GPU, and on a CPU
FEW, MOST = 8, 4096  # epochs of a call: at first, and at most
SEEDS = 16  # up to which they go by themselves on a CPU; more of them go faster epoch by epoch
CALLS = 12e-6  # seconds that the calls of an epoch take
COSTS = {Ready.LOADED: 0.1, Ready.COMPILED: 5.0}  # seconds before the function can be called
_made = defaultdict[Any, int](int)  # epochs that were made call by call, by the function that was not there


class Flight(Protocol):
    """A run whose seeds go by themselves."""

    def go(self, epochs: int) -> None:
        """Run about this many epochs."""

    def look(self, epochs: int) -> None:
        """Bring the times of the seeds here, and the rows of these epochs to the logs."""

    def land(self) -> None:
        """Bring all here."""


def advance(
    flight: Flight, times: Array, T: int, looked: Callable[[], bool], between: float = LOOK, *, asked: bool = False
) -> None:
    """Run until all seeds have made T steps, or `looked`, which is called every `between` seconds, says to stop.
    asked: it was called just before, and is not called first: called twice, one that limits the time would stop every
    run at once."""
    epochs = FEW
    while int(times.min()) < T and (asked or not looked()):
        asked = False
        began = time.perf_counter()
        flight.go(epochs)
        flight.look(epochs)
        spent = time.perf_counter() - began
        epochs = int(min(max(epochs * min(between / max(spent, 1e-3), 4.0), 1), MOST))
    flight.land()


def log(
    measures: Sequence[Measure], records: Sequence[Any], kept: Sequence[Any], brought: Callable[[Array], Array]
) -> None:
    """Append the rows of the epochs that were made, where a measure has some. brought: rows -> a copy of them here,
    which leaves zeros behind."""
    for measure, m, own in zip(measures, records, kept, strict=False):
        recorder = measure.recorder
        assert recorder is not None
        rows = recorder.rows(own)
        if rows and recorder.log is not None:
            parts = [brought(row) for row in rows]
            made = int((parts[0] > 0).any(1).sum())
            recorder.log(m, tuple(part[:made] for part in parts))


@cache
def function_of(*functions: Any) -> Any:
    """What `whole.framed` makes of these functions, for a CPU. Nothing is allocated in it, so nothing is counted."""
    return compiled(whole.framed(*functions), _nrt=False)


class Here:
    """On a CPU, by one thread."""

    def __init__(
        self, learner: Learner, world: World, T: int, pad: bool, measures: Sequence[Measure], batch: Any, length: int
    ) -> None:
        self.T, self.measures, self.batch = T, measures, batch
        recorders = whole.recorders(measures, here=True)
        given = whole.arguments(learner, world, T, pad, recorders, batch, teams=1, epochs=MOST, length=length)
        self.arguments = teams.made(given)
        self.function = function_of(*whole.functions(learner, recorders))

    def go(self, epochs: int) -> None:
        self.function(epochs, self.T, *self.arguments)

    def look(self, epochs: int) -> None:
        def brought(row: Array) -> Array:
            made = row[:epochs].copy()
            row[:epochs] = 0
            return made

        log(self.measures, self.batch.records, self.arguments.kept, brought)

    def land(self) -> None:
        """All is here."""


class Change:
    """Whether a run on a CPU changes over to `Here`."""

    def __init__(self, learner: Learner, measures: Sequence[Measure], times: Array, T: int) -> None:
        self.T, self.begun, self.function, self.epochs = T, int(times.min()), None, 0
        by_seed, recorders = learner.seedwise, whole.recorders(measures, here=True)
        built = by_seed is not None and not by_seed.together and together.alike([learner])  # no part was changed since
        if built and len(recorders) == len(measures) and len(times) <= SEEDS:
            self.function = function_of(*whole.functions(learner, recorders))

    def pays(self, epochs: int, times: Array) -> bool:
        """Whether to change over, after this many epochs, when seeds have come to these times."""
        if self.function is None:
            return False
        _made[self.function] += epochs - self.epochs
        self.epochs, at, when = epochs, int(times.min()), ready(self.function)
        if when is Ready.COMPILED and effort.allowance > 0:  # Python runs what is new
            return False
        left = epochs * (self.T - at) / max(at - self.begun, 1)
        return when is Ready.NOW or (_made[self.function] + left) * CALLS > COSTS[when]
