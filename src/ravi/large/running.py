"""How is a run made where X is large? `run_large`: the stream of `ravi.run`, and what it costs is what was met.

Under the same key and the same id, `run_large` plays the plays of `ravi.run`: the same numbers, the same policies (bit
for bit, unless unvisited states are filled in by the closed form), the same rewards. It does not score every epoch;
it keeps two policies, the last one and the output policy of a uniform time, whose exact returns can be asked for.

Between epochs a run can be stopped, by Ctrl-C or a pause, and `resume` goes on with the bits of one that never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from ravi import checks, engine, ids, tree
from ravi.core import MDP
from ravi.curve import grid
from ravi.interrupts import interrupts
from ravi.large.memory import grown
from ravi.large.playing import AT_GOAL, BAD_REWARD, BAD_START, BAD_SUCCESSOR, NO_ROOM, Clock, advance
from ravi.large.rules import rule_of
from ravi.large.runs import UNVISITED, Batch, Large, begun, in_world, kept, settings_of, world_named
from ravi.large.worlds import World
from ravi.runs import versions

SLICE = 2**14  # plays between which Ctrl-C is heard


class Stopped(engine.Stopped):
    """Ctrl-C during a run: `run` holds what was played, and can be resumed."""

    run: Large  # type: ignore[assignment]

    def __init__(self, run: Large) -> None:
        KeyboardInterrupt.__init__(self, "stopped; the run so far is in .run")
        self.run = run


def run_large(
    world: World | MDP | str,
    steps: int,
    seed: int = 0,
    *,
    learner: str = "ravi-ucb",
    unvisited: str = "iterated",
    points: int = 500,
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: engine.Progress | None = None,
) -> Large:
    """Play `steps` plays of a learner in a world, an MDP or the id of one.

    learner: an id of ravi-ucb, or of ravi-ucb+ with centre=off,span=off,clip=off. unvisited: how states that are met
    late are filled in, "iterated" (the bits of `ravi.run`; O(k A) for each distinct row of rewards) or "closed" (O(A),
    and the policy to rounding). points: at how many times what was earned is kept. pause: stop after the epoch in which
    this many plays are made; `resume` goes on. stop: asked between epochs, once in a slice of plays; when it says yes
    the run ends there, as at a pause, and Ctrl-C is the caller's.
    """
    world = world_named(world)
    T, key = checks.steps(steps), checks.whole(seed, "seed", 0, 2**63 - 1)
    checks.one_of(unvisited, UNVISITED, "unvisited")
    options = {"unvisited": unvisited, "points": checks.whole(points, "points")}
    rule = rule_of(learner, world, T, unvisited == "closed")
    run = Large(
        world=world,
        learner=ids.canonical(learner),
        settings=settings_of(rule),
        steps=T,
        seed=key,
        options=options,
        seconds=0.0,
        versions=versions(),
        batch=begun(world, grid(T, points)),
    )
    return _go_on(run, pause, stop, progress)


def resume(
    stopped: Large,
    world: World | MDP | str | None = None,
    *,
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: engine.Progress | None = None,
) -> Large:
    """Take up a stopped run; `world` must be the one that it was made in. It is needed where the run is from a file."""
    if not isinstance(stopped, Large):
        raise checks.InputError(f"a {type(stopped).__name__} is not a run of run_large, which this takes up")
    if world is not None:
        stopped = in_world(stopped, world)
    if stopped.world.source is None:
        raise checks.InputError(f"the run is from a file: to go on it needs its world, {stopped.world.name}, again")
    return _go_on(replace(stopped, batch=tree.copy(stopped.batch)), pause, stop, progress)


def _go_on(run: Large, pause: int | None, stop: Callable[[], bool] | None, progress: engine.Progress | None) -> Large:
    """Play on; what `run` stands on is written to."""
    began = time.perf_counter()
    T, rule, key, world = run.steps, run.rule, np.uint64(run.seed), run.world
    index, times = run.output_index, run.times
    pause = T if pause is None else checks.whole(pause, "pause", 0)
    now, memory, curve, output = run.batch
    with interrupts() if stop is None else nullcontext(stop) as stopped:
        while now.time[0] < T:
            if not now.inside[0] and (now.time[0] >= pause or stopped()):
                break
            goal = min(int(now.time[0]) + SLICE, pause, T if output.epoch[0] else index)
            why = advance(world.source, rule, key, now, memory, goal, times, curve)
            if why == NO_ROOM:
                memory = grown(memory)
            elif why != AT_GOAL:
                raise checks.InputError(_mistake(world, why, now))
            elif not output.epoch[0] and now.time[0] >= index:
                output = kept(now, memory)
            if progress is not None:
                progress(int(now.time[0]), T)
    seconds = run.seconds + time.perf_counter() - began
    done = replace(run, batch=Batch(now, memory, curve, output), seconds=seconds, versions=versions())
    if stop is None and stopped():
        raise Stopped(done)
    return done


def _mistake(world: World, why: int, now: Clock) -> str:
    x, a, value = (float(part) for part in now.bad)
    if why == BAD_START:
        return f"{world.name}: initial gives {x:.0f}, but states are 0 to {world.states - 1}"
    if why == BAD_SUCCESSOR:
        return f"{world.name}: successor({x:.0f}, {a:.0f}, u) gives {value:.0f}; states are 0 to {world.states - 1}"
    assert why == BAD_REWARD
    return f"{world.name}: reward({x:.0f}, {a:.0f}) is {value:g}, not in [0, 1]"
