"""How does a seed go through its epochs by itself? Plan, play, record, again: one compiled function, on either target.

`engine` takes all seeds through epoch k together, by functions of all seeds. Here a seed waits for no other: a team
(`ravi.teams`) takes it through many epochs, by the same compiled loops, over one seed each. That is what a GPU needs,
where a call from Python costs more than an epoch does; on a CPU it gives the bits of the engine, which is a test.

A learner takes part by its `Seedwise`, a measure by its `Recorder` (`ravi.core`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ravi.compiled import compiled, instance
from ravi.core import Array, Learner, Measure, Recorder, Seedwise
from ravi.teams import NEVER, Room, enough, first, seeds, some, sync
from ravi.walk import NO_AGES, NO_VISITS, World, room, steps_with
from ravi.walk import learn as nothing

AHEAD = 32  # steps whose numbers are drawn together, where a team is several threads
NAMES = ("one", "two", "three", "four", "five")  # of the measures in `_advance`


@compiled
def no_record(own, i, row, opening, policy, firsts, lengths, xs, actions, ys, resets):  # type: ignore[no-untyped-def]
    """The `record` of a measure that there is not: it does nothing."""


@compiled
def no_plan(own, i, t):  # type: ignore[no-untyped-def]
    """The plan of one seed where all seeds plan together: nothing."""
    return NEVER


TOGETHER = Seedwise(no_plan, nothing, lambda state, teams: (), together=True)
plan, walk = nothing, nothing  # `framed` puts those of a run here
one = two = three = four = five = no_record


def _advance(  # type: ignore[no-untyped-def]
    epochs,
    mark,
    row,
    T,
    padded,
    reset_ends,
    world,
    policy,
    by_stage,
    walkers,
    path,
    over,
    deadline,
    visits,
    ages,
    ahead,
    written,
    own,
    kept,
):
    """Take every seed through up to `epochs` more epochs, while it has made fewer than `mark` and T steps; their rows
    are written from row[0] on. `over` is 1 between two epochs. There, seeds whose teams are in lockstep wait for each
    other (`enough`), while the others of them go on walking, a path at a time."""
    successors, cumulative, initial, restart = world
    state, time, key = walkers
    xs, actions, ys, slots, resets, lengths, firsts, after = path
    n, last = state.shape[0], min(T, mark)
    for i in seeds(n):
        e, going, opening, beyond = 0, True, True, False
        while some(going, n):
            between = over[i] == 1
            if between:
                going = e < epochs and time[i] < last
            if enough(between and going, going, n):
                end = plan(own, i, time[i] + 1)
                sync()
                if first():
                    over[i], deadline[i] = 0, min(T, end)
                between, opening, beyond = False, True, False
            if not between:
                walk(
                    i, i + 1, successors, cumulative, initial, restart, by_stage, state, time, key, xs, actions, ys,
                    slots, resets, lengths, firsts, after, over, reset_ends or beyond, deadline, visits, ages, T, ahead,
                    written, not beyond, own,
                )  # fmt: skip
                one(kept[0], i, row[0] + e, opening, policy, firsts, lengths, xs, actions, ys, resets)
                two(kept[1], i, row[0] + e, opening, policy, firsts, lengths, xs, actions, ys, resets)
                three(kept[2], i, row[0] + e, opening, policy, firsts, lengths, xs, actions, ys, resets)
                four(kept[3], i, row[0] + e, opening, policy, firsts, lengths, xs, actions, ys, resets)
                five(kept[4], i, row[0] + e, opening, policy, firsts, lengths, xs, actions, ys, resets)
                opening = False
                if padded and over[i] == 1 and time[i] >= T and not resets[i, lengths[i] - 1]:
                    beyond = True  # from T on to the reset, without learning
                    sync()
                    if first():
                        over[i], deadline[i] = 0, NEVER
                sync()
                e += over[i] == 1


def refused(learner: Learner, measures: Sequence[Measure]) -> str | None:
    """Why seeds of such a run cannot go through epochs by themselves; None where they can."""
    if learner.seedwise is None:
        return f"{learner.name} does not run there"
    strange = [measure.name for measure in measures if measure.recorder is None]
    return f"the measure {strange[0]} does not run there" if strange else None


def recorders(measures: Sequence[Measure], *, here: bool = False) -> list[Recorder]:
    """Those of a GPU; or, where each measure has one, those that give the bits of a CPU."""
    found = [measure.recorder for measure in measures if measure.recorder is not None]
    return [one.here or one for one in found if one.exact or one.here] if here else found


def functions(learner: Learner, recorders: Sequence[Recorder]) -> tuple[Any, ...]:
    """The functions that are bound into `_advance` for this learner and these measures."""
    assert learner.seedwise is not None
    return learner.seedwise.plan, learner.seedwise.learn, *[one.record for one in recorders]


def framed(plan: Any, learn: Any, *records: Any) -> Any:
    """`_advance` with these functions bound: a Python function, to be compiled for its target."""
    named = dict(zip(NAMES, [*records, *[no_record] * (len(NAMES) - len(records))], strict=True))
    return instance(_advance, plan=plan, walk=steps_with(learn), **named)


class Arguments(NamedTuple):
    """The arguments of `_advance` after `epochs` and `mark`."""

    row: Array
    T: int
    padded: bool
    reset_ends: bool
    world: Any
    policy: Array
    by_stage: Array
    walkers: Any
    path: Any
    over: Array
    deadline: Array
    visits: Array
    ages: Array
    ahead: Any
    written: int  # of the path
    own: Any
    kept: Any


def arguments(
    learner: Learner, world: World, T: int, pad: bool, recorders: Sequence[Recorder], batch: Any, *, teams: int,
    epochs: int, length: int,
) -> Arguments:  # fmt: skip
    """The arguments of `_advance` after `epochs` (at most so many) and `mark`, with paths of `length` steps: nested
    tuples of numbers, of arrays and views of the batch's arrays, and of `ravi.teams.Room`."""
    seedwise = learner.seedwise
    assert seedwise is not None
    n, state = len(batch.walkers.time), batch.state
    keys = (batch.walkers.key,) if seedwise.keyed else ()
    kept = [recorder.own(m, teams, epochs) for recorder, m in zip(recorders, batch.records, strict=True)]
    written = 2 if pad or seedwise.together else max((recorder.reads for recorder in recorders), default=0)
    return Arguments(
        np.zeros(1, np.int64), T, pad, seedwise.reset, tuple(world), state.policy, state.policy[:, None],
        tuple(batch.walkers), tuple(room(n, length)), np.ones(n, np.uint8), np.zeros(n, np.int64), NO_VISITS, NO_AGES,
        Room((teams, AHEAD, 4)), written, seedwise.own(state, teams, *keys), (*kept, *[()] * (len(NAMES) - len(kept))),
    )  # fmt: skip
