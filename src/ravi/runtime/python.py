"""The Python driver: the two loops of Algorithm 1, epochs k (plan), and in them steps t (play, add).

It runs learners and measures that are written in Python; `ravi.runtime.compiled` runs the others. All seeds go through
epoch k together, each at its own time; a seed that has made its T steps is set aside, so that what it ends with does
not depend on its batch.
"""

import time
from typing import Any

import numpy as np

from ravi._jit.functions import effort
from ravi._jit.teams import NEVER
from ravi.core import Array, Until
from ravi.runtime import tree
from ravi.runtime.compiled import Batch, Task, path_length
from ravi.runtime.walk import check_policies, empty_path, walk

OFTEN = 0.1  # seconds between two times that progress is told
BRIEF = 64  # steps of a path where Python may run the loop over them: it soon looks how long that takes


def run(task: Task, batch: Batch) -> Batch:
    """Take the seeds of a batch, which is written to, through their epochs."""
    learner, world, T, H, pad, measures, _, stopped, tell = task
    walkers, state, records = batch
    n = len(walkers.time)
    stretch = learner.walk or walk
    path, asked, until = None, None, Until(reset=False)
    last = np.full(n, T, np.int64)
    recording = [measure.record for measure in measures]
    finished = walkers.time >= T
    aside = tree.copy(batch) if finished.any() else None  # the seeds that have ended, as they ended
    over = np.empty(n, np.uint8)
    look, done = 0.0, int(finished.sum())
    while done < n and int(walkers.time.min()) < task.last and not stopped():  # for k = 1, 2, ...
        now = time.perf_counter()
        if now > look:
            if tell is not None and look > 0.0:
                tell([Batch(walkers, state, records)])
            look = now + OFTEN
        state = learner.plan(state)
        check_policies(learner.name, state.policy, walkers.key, finished)
        wanted = learner.until(state, walkers.time)
        if wanted is not asked:
            asked, deadline = wanted, last if wanted.deadline is None else np.minimum(last, wanted.deadline)
            until = Until(wanted.reset, deadline, wanted.visits)
        path = path or empty_path(n, min(T, BRIEF if effort.allowance > 0 else path_length(n, H, until.reset)))
        over[:] = finished
        opening, left = True, n
        while left:  # repeat
            left, ended = stretch(world, state, walkers, path, over, until, T)  # play, observe
            records = tuple([record(m, state, path, opening) for record, m in zip(recording, records, strict=True)])
            state = learner.add(state, path)  # ADD
            opening = False
            if ended:
                if pad:
                    records = _pad(task, Batch(walkers, state, records), path, finished)
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
    batch = Batch(walkers, state, records)
    if aside is not None:
        tree.put(batch, aside, finished)
    if tell is not None:
        tell([batch])
    return batch


def _pad(task: Task, batch: Batch, path: Any, finished: Array) -> tuple[Any, ...]:
    """Play the epoch in which T fell until its reset, without learning: steps T + 1, ..., T+. The records."""
    walkers, state, records = batch
    rows = np.arange(len(walkers.time))
    ended_by_reset = path.reset[rows, np.maximum(path.length - 1, 0)]
    over = (finished | (walkers.time < task.T) | ended_by_reset).astype(np.uint8)
    until = Until(reset=True, deadline=np.full(len(over), NEVER))
    while not over.all():
        walk(task.world, state, walkers, path, over, until, task.T)
        records = tuple(
            measure.record(m, state, path, False) for measure, m in zip(task.measures, records, strict=True)
        )
    return records
