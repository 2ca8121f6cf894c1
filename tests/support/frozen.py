"""Frozen bits: digests of runs, resumed runs and streams of every learner, in `tests/frozen.json`.

The last digits of some products and functions are the processor's. So the file has the digests of one machine, and for
every other machine those that differ there. `python -m tests.support.frozen` writes those of the machine that it runs
on, and prints what changed. A commit that changes them says why, with the values before and after; digests of machines
that are not at hand are then those of one of them, where they were equal, or are removed.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

import ravi
from ravi import ids
from ravi.learners import knows_the_kernel
from ravi.runtime import tree
from tests.support.learners import CONTINUING, OPTIONS

FILE = Path(__file__).parent.parent / "frozen.json"
MDPS = (
    "riverswim/6,discount=0.9", "garnet/20,2,3,discount=0.8", "ensemble/3,6,2,2,discount=0.8",
    "riverswim/mixture/5,discount=0.9", "linear/5,2,3,discount=0.9", "riverswim/5,criterion=average",
    "garnet/5,3,2,criterion=episodic,episode=4",
)  # fmt: skip
STEPS, SEEDS, PAUSE = 240, (5, 3), 70
GIVEN = {"record": ["stream"], "points": 7, "progress": False}


def texts(name):
    """A learner as it comes, and with the first options under which it moves in few steps."""
    given = [*OPTIONS.get(name, [])[:1], *([CONTINUING[name]] if name in CONTINUING else [])]
    return [name, *(f"{name},{options}" for options in given)]


def worlds(text):
    """The MDPs that a learner takes."""
    found = []
    for world in MDPS:
        try:
            ids.learner(text, ids.mdp(world), STEPS)
        except ValueError:
            continue  # of another kind of problem
        found.append(world)
    return found


def digest(arrays):
    """A digest of named arrays, and of their types."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        found.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


def digests(text, world):
    """Of a run, and of the state of a learner that is fed its first seed's stream. A run that pauses gives the same."""
    whole = ravi.run(text, world, STEPS, SEEDS, **GIVEN)
    half = ravi.run(text, world, STEPS, SEEDS, pause=PAUSE, **GIVEN)
    resumed = ravi.resume(half, text, world, progress=False)
    assert digest(resumed.results) == digest(whole.results), f"{text} on {world} goes on otherwise after a pause"
    return f"{digest(whole.results)} {digest(fed(text, world, whole))}"


def fed(text, world, whole):
    mdp = ids.mdp(world)
    agent = ravi.agent(text, mdp if knows_the_kernel(text) else mdp.problem, STEPS, seed=SEEDS[0])
    parts = [whole.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor")]
    for x, a, y in zip(*parts, strict=True):
        agent.act(x)
        agent.observe(x, a, y, mdp.in_units(mdp.rewards[x, a]))
    agent.end(int(whole.batch.walkers.state[0]))
    return {name: leaf for name, leaf in tree.leaves(agent.state) if isinstance(leaf, np.ndarray)}


def machine():
    """A digest of what differs between machines: functions and products of NumPy, whose last digits are the
    processor's."""
    x = np.linspace(0.01, 3.0, 4096)
    made = {f.__name__: f(x) for f in (np.exp, np.log, np.sin, np.sqrt)}
    square = x.reshape(64, 64)
    return digest(made | {"product": square @ square.T, "solve": np.linalg.inv(square + 70 * np.eye(64))})


def frozen():
    """The digests of this machine; None where it has none."""
    held = json.loads(FILE.read_text())
    others = held["machines"].get(machine())
    return None if others is None else held["digests"] | others


def every():
    """Every frozen run: learner and MDP."""
    return [(text, world) for name in ids.LEARNERS for text in texts(name) for world in worlds(text)]


def renew():
    """Write the digests of this machine, and print what changed."""
    held = json.loads(FILE.read_text())
    old = held["digests"] | held["machines"].get(machine(), {})
    new = {f"{text} {world}": digests(text, world) for text, world in every()}
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            sys.stdout.write(f"{name}: {old.get(name)} -> {new.get(name)}\n")
    if held["machines"].get(machine()) == {}:  # the machine of the first digests
        held["digests"] = new
    else:
        held["machines"][machine()] = {name: value for name, value in new.items() if held["digests"].get(name) != value}
    FILE.write_text(json.dumps(held, indent=0) + "\n")


if __name__ == "__main__":
    renew()
