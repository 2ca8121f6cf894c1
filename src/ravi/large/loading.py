"""How is a run of a large world read? Every array is held against what is declared of it; what is looked up is found.

Arrays have room to spare, and only what is in use says anything: ranges are those of arrays cut to that.
"""

from __future__ import annotations

import os
from math import inf
from typing import Any

import numpy as np

from ravi import checks, files, headers, tree
from ravi.core import MDP, Array
from ravi.curve import grid
from ravi.large.memory import KINDS, TABLES, rehash
from ravi.large.runs import KIND, UNVISITED, Batch, Large, begun, in_world, settings_of
from ravi.large.worlds import World
from ravi.ranges import Facts, check

HEADER: dict[str, Any] = {
    "world": dict[str, Any], "digest": str, "learner": str, "settings": dict[str, Any], "steps": int, "seed": int,
    "options": dict[str, Any], "seconds": float, "versions": dict[str, str], "answers": str,
}  # fmt: skip
WORLD: dict[str, Any] = {"name": str, "states": int, "actions": int, "discount": float}
FIXED = ("memory.used", "output.epoch", "output.mirror_steps")  # arrays whose length is the same in all runs


def load(path: files.Place, world: World | MDP | str | None) -> Large:
    """The run of a file, in its world if that is given."""
    header, arrays = files.read(path, KIND)
    where = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the file"
    wanted = [name for name in HEADER if name not in ("world", "digest")]
    try:
        headers.checked(header, HEADER)
        headers.checked(header["world"], WORLD, within="world")
        checks.probability(header["world"]["discount"], "discount")
        stored = World(**header["world"], source=None, stored_digest=header["digest"])
        T, points = checks.steps(header["steps"]), checks.whole(header["options"]["points"], "points")
        checks.whole(header["seed"], "seed", 0, 2**63 - 1)
        checks.one_of(header["options"]["unvisited"], UNVISITED, "unvisited")
        checks.nonnegative(header["seconds"], "seconds")
        batch = _filled(begun(stored, grid(T, points)), arrays)
        run = Large(world=stored, batch=batch, **{name: header[name] for name in wanted})
        now = settings_of(run.rule)
        if now != run.settings:
            raise checks.InputError(f"the stopped run was made with settings {run.settings}, not {now}")
        _sound(run)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = error if isinstance(error, checks.InputError) else f"its header is not that of a run ({error})"
        raise checks.InputError(f"{where} is damaged: {why}") from None
    return run if world is None else in_world(run, world)


def _filled(template: Batch, arrays: dict[str, Array]) -> Batch:
    """The arrays of a file in their places; compiled code trusts their lengths, so that these are looked at here."""
    strange = arrays.keys() - {name for name, _ in tree.leaves(template)}
    if strange:
        raise checks.InputError(f"there is no place for {min(strange)}")
    for name, like in tree.leaves(template):
        array = arrays.get(name)
        if array is None:
            raise checks.InputError(f"it has no array {name}")
        free = name.startswith(("memory.", "output.")) and name not in FIXED  # these grow
        right = like.shape[1:] if free else like.shape
        if array.dtype != like.dtype or (array.shape[1:] if free else array.shape) != right or array.ndim != like.ndim:
            raise checks.InputError(f"{name} is {array.dtype} {array.shape}")
    order = iter([arrays[name].copy() for name, _ in tree.leaves(template)])
    batch: Batch = tree.mapped(lambda _: next(order), template)
    memory = batch.memory
    for kind, names in KINDS.items():
        rooms = {len(getattr(memory, name)) for name in names}
        table = len(getattr(memory, TABLES[kind][0])) if kind in TABLES else inf
        if len(rooms) > 1 or not 0 <= memory.used[kind] <= min(rooms) < table:
            raise checks.InputError(f"the rooms of {names[0]} do not agree")
    return batch


def _sound(run: Large) -> None:
    """Places that compiled code goes to are there, and what it looks up is found."""
    batch, world, T = run.batch, run.world, run.steps
    m, now = batch.memory, batch.clock
    used = {name: getattr(m, name)[: m.used[kind]] for kind, names in KINDS.items() for name in names}
    cut = batch._replace(memory=m._replace(**used))
    check(cut, cut, Facts(world.states, world.actions, run.rule.H, T, now.time, now.time, T))
    if not all(_found(getattr(m, place), used[keys]) for place, keys in TABLES.values()):
        raise checks.InputError("states and moves cannot be found in it")
    if now.steps[0] > run.rule.inner * now.epoch[0]:
        raise checks.InputError(f"clock.steps[0] is {now.steps[0]}, more than {now.epoch[0]} epochs make")
    if bool(batch.output.epoch[0]) != (now.time[0] >= run.output_index):
        raise checks.InputError(f"the output policy is that of play {run.output_index}, and {now.time[0]} were made")


def _found(place: Array, keys: Array) -> bool:
    """Whether the hash table is the one of these keys."""
    if len(place) & (len(place) - 1):
        return False
    table = np.zeros_like(place)
    rehash(table, keys, len(keys))
    return np.array_equal(table, place)
