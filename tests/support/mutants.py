"""Files of runs, agents and large runs with one array changed and the checksum renewed, and the outcome of each.

As a program it prints a line for every attempt, the first half before it, so that one which ends the process is known
by its name. With NUMBA_BOUNDSCHECK=1 compiled code raises an IndexError where it would touch other memory:

    NUMBA_BOUNDSCHECK=1 RAVI_CACHE_DIR=FOLDER python -m tests.support.mutants KIND [few] LEARNER ...

In place of KIND, `unchecked` gives the outcome of each of INDICES when no range is checked.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

import ravi
from ravi import ids
from ravi.large import snapshot
from ravi.large import worlds as large_worlds
from ravi.live.agent import Agent
from ravi.runtime import archive
from ravi.runtime import world as worlds
from ravi.validation import InputError

MIXTURE, LINEAR = "riverswim/mixture/5,discount=0.9", "linear/5,2,3,discount=0.9"
LARGE = "ravi-ucb+,inner=3,centre=off,span=off,clip=off"
STEPS, PAUSE, SEEDS = 300, 120, 2
REFUSED, SAME, OTHER = "refused", "same", "other"


def world_of(learner: str) -> str:
    """A small MDP that a learner can be built for."""
    try:
        ids.learner(learner, ids.mdp(MIXTURE), STEPS)
    except InputError:
        return LINEAR
    return MIXTURE


class File:
    """What is kept in a file, and how it goes on from there: `go_on` gives what is to be the same."""

    def __init__(self, kind: str, thing: Any, go_on: Callable[[io.BytesIO], bytes]) -> None:
        content = io.BytesIO()
        thing.save(content)
        content.seek(0)
        header, self.arrays = archive.read(content, kind)
        self.header = {key: value for key, value in header.items() if key not in archive.RESERVED}
        self.kind, self.go_on = kind, go_on

    @cached_property
    def whole(self) -> bytes:
        return self.go_on(self.written(self.arrays))

    def written(self, arrays: dict[str, np.ndarray], header: dict[str, Any] | None = None) -> io.BytesIO:
        content = io.BytesIO()
        archive.write(content, self.kind, self.header if header is None else header, arrays)
        content.seek(0)
        return content

    def outcome(self, arrays: dict[str, np.ndarray], header: dict[str, Any] | None = None) -> tuple[str, Any]:
        try:
            found = self.go_on(self.written(arrays, header))
        except InputError as error:
            return REFUSED, str(error)
        return (SAME if found == self.whole else OTHER), found


def run_file(learner: str, **options: Any) -> File:
    """A run that was paused, and its results when it goes on."""
    mdp = ids.mdp(world_of(learner))

    def go_on(content: io.BytesIO) -> bytes:
        stopped = ravi.Run.load(content)
        repr(stopped)
        done = ravi.resume(stopped, ids.learner(learner, mdp, STEPS), mdp)
        return b"".join(np.asarray(done.results[name]).tobytes() for name in sorted(done.results))

    stopped = ravi.run(ids.learner(learner, mdp, STEPS), mdp, STEPS, [3, 5], pause=PAUSE, **options)
    return File("run", stopped, go_on)


def agent_file(learner: str) -> File:
    """An agent in the middle of its stream, and its actions from there on."""
    mdp = ids.mdp(world_of(learner))
    known = ids.LEARNERS[learner.split(",")[0]]

    def play(agent: Agent, plays: int) -> bytes:
        rng, x, seen = np.random.default_rng(agent.time), int(agent._pending[2]) if agent._pending else 0, []
        for _ in range(min(plays, agent.steps - agent.plays)):
            a = agent.act(x)
            y = int(mdp.successors[x, a, rng.choice(mdp.branching, p=mdp.transitions[x, a])])
            reset = agent.observe(x, a, y, float(mdp.rewards[x, a]))
            seen += [x, a, y]
            x = 0 if reset else y
        return bytes(seen)

    live = ravi.agent(learner, mdp if known.oracle else mdp.problem, STEPS, seed=3)
    play(live, PAUSE)

    def go_on(content: io.BytesIO) -> bytes:
        agent = Agent.load(content)
        return repr(agent.earned).encode() + play(agent, STEPS) + agent.policy.tobytes()

    return File("agent", live, go_on)


def large_file(learner: str) -> File:
    """A large run that was paused, and what it earns when it goes on."""
    world = "large/riverswim/5,discount=0.9"

    def go_on(content: io.BytesIO) -> bytes:
        stopped = ravi.Run.load(content)
        repr(stopped)
        done = ravi.resume(stopped, learner, world)
        policies = [snapshot(done, world, row, output=output).table() for row in (0, 1) for output in (False, True)]
        return b"".join(array.tobytes() for array in [*done.results.values(), *policies])

    return File("run", ravi.run(learner, world, STEPS, [3, 5], pause=PAUSE), go_on)


def values_of(array: np.ndarray, few: bool) -> list[Any]:
    """What hardly any array of this dtype should hold."""
    if array.dtype == np.bool_:
        return []
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        wanted = [-5, limits.max] if few else [-5, limits.max, -1, 10**8, limits.min]
        return [value for value in dict.fromkeys(wanted) if limits.min <= value <= limits.max]
    return [np.nan, 1e300] if few else [np.nan, 1e300, np.inf, -np.inf, -1e300]


def changed(array: np.ndarray, few: bool) -> Iterator[tuple[str, np.ndarray]]:
    """The array with one entry, or all, changed; of another shape; of another dtype."""
    for value in values_of(array, few):
        for where in {0} if few else {0, array.size // 2, array.size - 1}:
            if not array.size:
                continue
            other = array.copy()
            other.flat[where] = value
            yield f"[{where}] = {value}", other
        if not few:
            yield f"[:] = {value}", np.full_like(array, value)
    if array.dtype.kind in "iu":
        yield "plus 1", array + array.dtype.type(1)
        yield "minus 1", array - array.dtype.type(1)
    if len(array):
        yield "one row less", array[1:]
    if few:
        return
    yield "one row more", np.concatenate([array, array[:1]]) if array.ndim else array[None]
    yield "one axis more", array[..., None]
    yield "no axes", np.zeros((), array.dtype)
    yield "other dtype", array.astype(np.float32 if array.dtype.kind != "f" else np.int64)
    yield "words", np.full(array.shape, "x")


def mutants(file: File, few: bool) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Every array changed, left out, or one too many."""
    for name, array in file.arrays.items():
        if not name.startswith(("results.", "problem.")):
            for how, other in changed(array, few):
                if other.tobytes() != array.tobytes() or other.shape != array.shape:
                    yield f"{name} {how}", file.arrays | {name: other}
        if not few or not name.startswith("results."):
            yield f"{name} absent", {key: value for key, value in file.arrays.items() if key != name}
    yield "one array more", file.arrays | {"batch.records.9.more": np.zeros(2)}


INDICES = (  # an array of a file that compiled code takes indices from, and a value that is none
    ("run", "ravi-ucb", "walkers.state", 10**6), ("run", "ravi-ucb", "walkers.time", -(10**6)),
    ("run", "ravi-ucb", "records.0.regret.cursor", -(10**6)), ("run", "ravi-ucb", "records.1.curve.cursor", 10**6),
    ("run", "ravi-ucb", "records.1.curve.cursor", 0), ("run", "ravi-ucb", "records.3.age", -(10**6)),
    ("run", "ravi-ucb", "records.3.regret.cursor", 10**6), ("run", "oppo", "state.age", -(10**6)),
    ("run", "ravi-kl", "state.best.choice", 10**6), ("run", "q-learning", "state.greedy", 10**6),
    ("run", "q-learning", "state.stale", 10**6), ("large", LARGE, "state.memory.row", 10**6),
    ("large", LARGE, "state.memory.first", 10**6), ("large", LARGE, "state.memory.owner", 10**6),
    ("large", LARGE, "state.memory.to", 10**6), ("large", LARGE, "state.memory.after", 10**6),
    ("large", LARGE, "records.0.point", -(10**6)),
)  # fmt: skip
MAKERS = {"run": run_file, "agent": agent_file, "large": large_file}


def unchecked() -> None:
    """Print what becomes of each of INDICES when no range is checked."""
    worlds.check = large_worlds.check = lambda *_: None
    for kind, learner, name, value in INDICES:
        file = MAKERS[kind](learner, **({} if kind == "large" else {"record": ["trajectory", "stream"]}))
        array = np.full_like(file.arrays[f"batch.{name}"], value)
        print(f"{kind} {learner} {name} = {value} ...", end=" ", flush=True)
        try:
            print(*file.outcome(file.arrays | {f"batch.{name}": array}))
        except Exception as error:
            print(type(error).__name__, flush=True)


def main(kind: str, *learners: str) -> None:
    if kind == "unchecked":
        unchecked()
        return
    make = MAKERS[kind]
    few = learners[0] == "few"
    for learner in learners[few:]:
        file = make(learner)
        for name, arrays in mutants(file, few):
            print(f"{kind} {learner} {name} ...", end=" ", flush=True)
            try:
                what, why = file.outcome(arrays)
            except Exception:
                what, why = "raised", traceback.format_exc()
            print(what, "" if what in (SAME, OTHER) else str(why).replace("\n", " | "), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
