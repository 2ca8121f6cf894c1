"""How is the file of a large run read that an earlier version wrote? As a run of one seed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ravi import checks, headers
from ravi.core import Array
from ravi.tree import LENGTHS

HEADER: dict[str, Any] = {
    "world": dict[str, Any], "digest": str, "learner": str, "settings": dict[str, Any], "steps": int, "seed": int,
    "options": dict[str, Any], "seconds": float, "versions": dict[str, str], "answers": str,
}  # fmt: skip
WORLD: dict[str, Any] = {"name": str, "states": int, "actions": int, "discount": float}
PLACES = {
    "clock.state": "walkers.state", "clock.time": "walkers.time", "clock.epoch": "state.epoch",
    "clock.earned": "records.0.earned", "clock.point": "records.0.point", "output.epoch": "records.0.output.epoch",
    "output.mirror_steps": "records.0.output.mirror_steps",
}  # fmt: skip


def as_run(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of the same run, as files hold them now."""
    held = headers.checked(header, HEADER)
    world = headers.checked(held["world"], WORLD, within="world")
    options = headers.checked(held["options"], {"unvisited": str, "points": int}, within="options")
    unvisited = checks.one_of(options["unvisited"], ("iterated", "closed"), "options.unvisited")
    told = {name: held[name] for name in ("learner", "steps", "seconds", "versions")} | {
        "mdp": world["name"], "discount": world["discount"], "seeds": [held["seed"]], "world": "large",
        "mdp_digest": held["digest"] or f"X={world['states']}, A={world['actions']}",
        "settings": held["settings"] | ({"unvisited": unvisited} if unvisited == "closed" else {}),
        "optimum": None, "optimum_error": None, "units": [0.0, 1.0],
        "options": {"record": [], "points": options["points"], "pad": False, "keep_epochs": True, "measured": True},
    }  # fmt: skip
    checks.whole(held["seed"], "seed", 0, 2**63 - 1)
    try:
        return told, _moved(arrays, held["seed"], int(held["answers"] or "0", 16))
    except (KeyError, IndexError, ValueError, OverflowError) as error:
        raise checks.InputError(f"its arrays are not those of a run in a large world ({error})") from None


def _moved(arrays: Mapping[str, Array], seed: int, answers: int) -> dict[str, Array]:
    now: dict[str, Array] = {
        "walkers.key": np.array([seed], np.uint64),
        "state.answers": np.array([answers], np.uint64),
    }
    now |= {place: arrays[name] for name, place in PLACES.items()}
    now |= {"state.steps": arrays["clock.steps"][None], "records.0.curve": arrays["curve"][None]}
    for name, array in arrays.items():
        if name.startswith(("memory.", "output.")) and name not in PLACES:
            place = f"state.{name}" if name.startswith("memory.") else f"records.0.{name}"
            now |= {place: array, f"{place}{LENGTHS}": np.array([len(array)], np.int64)}
    met, unsettled = (int(arrays["memory.used"][kind]) for kind in (0, 1))
    visits = arrays["memory.visits"][:met]
    visited = (visits.sum(-1) > visits.shape[1]).sum()
    known = {"epochs": arrays["clock.epoch"][0], "met": met, "visited": visited, "unsettled": unsettled}
    shown = {name: np.array([count], np.int64) for name, count in known.items()}
    results = shown | {"reward": now["records.0.curve"], "reward_total": now["records.0.earned"]}
    batch = now | {f"records.0.{name}": count for name, count in shown.items()}
    return {f"batch.{name}": a for name, a in batch.items()} | {f"results.{name}": a for name, a in results.items()}
