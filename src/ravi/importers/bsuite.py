"""bsuite's environments, and others of dm_env: a table by copies, where steps are a function of the observation.

Every state that is found is copied, once for each action, and stepped: breadth first, from the states of resets.
That is exact where an environment is deterministic and its observation is its state, as Deep Sea, Catch and the
discounting chain have it. Where it is not, episodes that are played against the table show it.
"""

from copy import deepcopy
from typing import Any

import numpy as np

from ravi import validation
from ravi.importers.imported import Imported, mdp_of_entries
from ravi.validation import InputError

PLAYED = 20  # episodes that are held against the table
LONGEST = 10_000  # steps of one


def bsuite(
    environment: Any, discount: float, *, resets: int = 1, most: int = 100_000, name: str | None = None
) -> Imported:
    """The MDP of a deterministic environment of dm_env; terminated steps lead to one more state, the last, an end.

    nu_0 is where `resets` resets lead to, each as often as it came: one is enough where it is always the same. States
    are numbered as they are found; `most`: how many there may be. Steps have discount 1, and last ones 0: others, such
    as those of an episode that is cut, are no part of a table.
    """
    if isinstance(environment, type):
        raise InputError(f"{environment.__name__} is a class, not an environment: {environment.__name__}() is one")
    needs = [need for need in ("reset", "step", "action_spec") if not hasattr(environment, need)]
    if needs:
        raise InputError(
            f"{validation.shown(environment)} is not an environment of dm_env: it has no {', '.join(needs)}"
        )
    world, called = deepcopy(environment), name or type(environment).__name__
    A = _actions(world, called)
    found: dict[bytes, int] = {}
    waiting: list[tuple[Any, bytes]] = []
    firsts = []
    for _ in range(validation.whole(resets, "resets")):
        observation = _known(world.reset().observation, called)
        firsts.append(found.setdefault(observation, len(found)))
        if firsts[-1] == len(waiting):
            waiting.append((deepcopy(world), observation))
    rows, next_ = [], 0
    while next_ < len(waiting):
        held, observation = waiting[next_]
        waiting[next_] = (None, observation)
        for a in range(A):
            copy = deepcopy(held)
            to, earned = _stepped(copy, a, called)
            if to is not None and to not in found:
                found[to] = len(found)
                if len(found) > most:
                    raise InputError(f"{called} has more than {most:,} states: most= allows more")
                waiting.append((copy, to))
            rows.append((next_, a, -1 if to is None else found[to], 1.0, earned))
        next_ += 1
    moves = {(x, a): (y, r) for x, a, y, _, r in rows}
    _held_against(world, found, moves, A, called)
    X = len(found) + any(y < 0 for y, _ in moves.values())
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    columns[2] = np.where(columns[2] < 0, X - 1, columns[2])
    nu0 = np.bincount(firsts, minlength=X) / len(firsts)
    return mdp_of_entries(columns, X, A, discount, nu0, name=called)


def _actions(world: Any, called: str) -> int:
    spec = world.action_spec()
    if not hasattr(spec, "num_values"):
        raise InputError(
            f"the actions of {called} are {validation.shown(spec)}, without num_values; they must be 0 to A - 1"
        )
    return validation.whole(spec.num_values, "num_values of the actions")


def _stepped(world: Any, a: int, called: str) -> tuple[bytes | None, float]:
    """What a step leads to, None where it is the last, and what it earns."""
    step = world.step(a)
    own, last = getattr(step, "discount", None), bool(step.last())
    if own is not None and validation.number(own, f"the discount of a step of {called}") != (0 if last else 1):
        read = (
            "it cuts the episode. A last step of discount 0 is read, as an end: take the environment without its limit"
            if last
            else "a step of discount 1 is read, and the discount of the MDP is that of this call"
        )
        raise InputError(f"{called} has a {'last ' if last else ''}step of discount {float(own):g}: {read}")
    return None if last else _known(step.observation, called), float(step.reward or 0.0)


def _known(observation: Any, called: str) -> bytes:
    array = validation.array(observation, f"the observation of {called}")
    return repr((array.shape, array.dtype.str)).encode() + array.tobytes()


def _held_against(world: Any, found: dict[bytes, int], moves: dict[tuple[int, int], Any], A: int, called: str) -> None:
    """An error where episodes of uniform actions do not go as the table says."""
    rng = np.random.default_rng(0)
    for _ in range(PLAYED):
        x, steps = found.get(_known(world.reset().observation, called)), 0
        while steps < LONGEST:
            if x is None:
                raise InputError(f"{called} begins in states that its first resets did not show: take more resets=")
            a = int(rng.integers(A))
            to, earned = _stepped(world, a, called)
            y = -1 if to is None else found.get(to)
            if (y, earned) != moves[x, a]:
                raise InputError(
                    f"{called} is not a function of its observation: action {a} in state {x} led elsewhere, or earned "
                    "another reward, than before. Learn from it by playing: ravi.agent"
                )
            if to is None:
                break
            x, steps = y, steps + 1
