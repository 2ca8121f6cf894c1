"""How do seeds go through their epochs? The two loops of Algorithm 1: epochs k (plan), and in them steps t (play, add).

All seeds go through epoch k together, each at its own time; a seed that has made its T steps is set aside, so that what
it ends with does not depend on its batch.
"""

import time
from collections.abc import Callable, Sequence
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from ravi import flights, tree
from ravi.compiled import effort
from ravi.core import Array, Learner, Measure, Until
from ravi.played import refuse
from ravi.teams import NEVER
from ravi.walk import World, room, walk

BRIEF = 64  # steps of a path where Python may run the loop over them: it soon looks how long that takes


class Batch(NamedTuple):
    """All that a run carries from one epoch to the next, seeds first."""

    walkers: Any
    state: Any
    records: tuple[Any, ...]

    def plays(self, T: int) -> int:
        """The steps that all seeds have made together, up to T each."""
        return int(np.minimum(self.walkers.time, T).sum())


class Leg(NamedTuple):
    """What takes seeds from where they stand to where they stop."""

    learner: Learner
    world: World
    T: int
    H: float
    pad: bool  # play on to the reset after T, without learning
    measures: Sequence[Measure]
    pause: int | None  # stop when every seed has made so many steps
    stopped: Callable[[], bool]  # or when this says so
    tell: Callable[[Batch], None] | None  # where seeds stand
    each: bool = True  # `stopped` is to be asked before every epoch


def together(leg: Leg, batch: Batch, change: flights.Change | None) -> tuple[Batch, bool]:
    """Go on from `batch`, which is written to; and whether it stopped because each seed is to go by itself."""
    learner, world, T, H, pad, measures, pause, stopped, tell, _ = leg
    walkers, state, records = batch
    n = len(walkers.time)
    stretch = learner.walk or walk
    path, asked, until = None, None, Until(reset=False)
    last = np.full(n, T, np.int64)
    recording = [measure.record for measure in measures]
    finished = walkers.time >= T
    aside = tree.copy(batch) if finished.any() else None  # the seeds that have ended, as they ended
    over = np.empty(n, np.uint8)
    look, k, alone = 0.0, 0, False
    done = int(finished.sum())
    while done < n:  # for k = 1, 2, ...
        if stopped() or (pause is not None and walkers.time.min() >= pause):
            break
        now = time.perf_counter()
        if now > look:
            look = now + flights.OFTEN
            if tell is not None and k > 0:
                tell(Batch(walkers, state, records))
            alone = change is not None and change.pays(k, walkers.time)
            if alone:
                break
        k += 1
        state = learner.plan(state)
        refuse(learner.name, state.policy, walkers.key, finished)
        wanted = learner.until(state, walkers.time)
        if wanted is not asked:
            asked, deadline = wanted, last if wanted.deadline is None else np.minimum(last, wanted.deadline)
            until = Until(wanted.reset, deadline, wanted.visits)
        path = path or room(n, min(T, BRIEF if effort.allowance > 0 else stretch_of(n, H, until.reset)))
        over[:] = finished
        opening, left = True, n
        while left:  # repeat
            left, ended = stretch(world, state, walkers, path, over, until, T)  # play, observe
            records = tuple([record(m, state, path, opening) for record, m in zip(recording, records, strict=True)])
            state = learner.add(state, path)  # ADD
            opening = False
            if ended:
                if pad:
                    records = _pad(leg, Batch(walkers, state, records), path, finished)
                now = (walkers.time >= T) & ~finished
                finished |= now
                done = int(finished.sum())
                batch = Batch(walkers, state, records)
                if aside is None:
                    aside = tree.copy(batch)
                else:
                    tree.put(aside, batch, now)
        if effort.allowance > 0:
            effort.done = float(walkers.time.mean()) / T
    if change is not None and not alone:
        change.pays(k, walkers.time)  # for runs to come
    batch = Batch(walkers, state, records)
    if aside is not None:
        tree.put(batch, aside, finished)
    if tell is not None:
        tell(batch)
    return batch, alone


def stretch_of(n: int, H: float, resets: bool) -> int:
    """Steps that a path has room for: most epochs that end at resets; a longer epoch comes in stretches."""
    return min(max(64, ceil(H * (log(n) + 7))) if resets else 1000, max(64, 2**22 // n))


def _pad(leg: Leg, batch: Batch, path: Any, finished: Array) -> tuple[Any, ...]:
    """Play the epoch in which T fell until its reset, without learning: steps T + 1, ..., T+. The records."""
    walkers, state, records = batch
    rows = np.arange(len(walkers.time))
    ended_by_reset = path.reset[rows, np.maximum(path.length - 1, 0)]
    over = (finished | (walkers.time < leg.T) | ended_by_reset).astype(np.uint8)
    until = Until(reset=True, deadline=np.full(len(over), NEVER))
    while not over.all():
        walk(leg.world, state, walkers, path, over, until, leg.T)
        records = tuple(measure.record(m, state, path, False) for measure, m in zip(leg.measures, records, strict=True))
    return records
