"""bsuite's environments, and others of dm_env: a table by copies, where steps are a function of the observation.

Every state that is found is copied, once for each action, and stepped: breadth first, from the states of resets.
That is exact where an environment is deterministic and its observation is its state, as Deep Sea, Catch and the
discounting chain have it. Where it is not, episodes that are played against the table show it.
"""

from copy import deepcopy
from typing import Any

import numpy as np

from ravi import checks
from ravi.checks import InputError
from ravi.importers.imported import Imported, arrays, imported

PLAYED = 20  # episodes that are held against the table
LONGEST = 10_000  # steps of one


def bsuite(
    environment: Any, discount: float, *, resets: int = 1, most: int = 100_000, name: str | None = None
) -> Imported:
    """The MDP of a deterministic environment of dm_env; terminated steps lead to one more state, the last, an end.

    nu_0 is where `resets` resets lead to, each as often as it came: one is enough where it is always the same. States
    are numbered as they are found; `most`: how many there may be.
    """
    needs = [need for need in ("reset", "step", "action_spec") if not hasattr(environment, need)]
    if needs:
        raise InputError(f"{checks.shown(environment)} is no environment of dm_env: it has no {', '.join(needs)}")
    A = int(environment.action_spec().num_values)
    world, called = deepcopy(environment), name or type(environment).__name__
    found: dict[bytes, int] = {}
    waiting: list[tuple[Any, bytes]] = []
    firsts = []
    for _ in range(checks.whole(resets, "resets")):
        seen = _known(world.reset().observation)
        firsts.append(found.setdefault(seen, len(found)))
        if firsts[-1] == len(waiting):
            waiting.append((deepcopy(world), seen))
    rows, next_ = [], 0
    while next_ < len(waiting):
        held, seen = waiting[next_]
        waiting[next_] = (None, seen)
        for a in range(A):
            copy = deepcopy(held)
            step = copy.step(a)
            to = _known(step.observation)
            if not step.last() and to not in found:
                found[to] = len(found)
                if len(found) > most:
                    raise InputError(f"{called} has more than {most:,} states: most= allows more")
                waiting.append((copy, to))
            rows.append((next_, a, -1 if step.last() else found[to], 1.0, float(step.reward or 0.0)))
        next_ += 1
    moves = {(x, a): (y, r) for x, a, y, _, r in rows}
    _held_against(world, found, moves, A, called)
    X = len(found) + any(y < 0 for y, _ in moves.values())
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    columns[2] = np.where(columns[2] < 0, X - 1, columns[2])
    nu0 = np.bincount(firsts, minlength=X) / len(firsts)
    return imported(arrays(*columns), X, A, discount, nu0, name=called)


def _known(observation: Any) -> bytes:
    array = np.asarray(observation)
    return repr((array.shape, array.dtype.str)).encode() + array.tobytes()


def _held_against(world: Any, found: dict[bytes, int], moves: dict[tuple[int, int], Any], A: int, called: str) -> None:
    """An error where episodes of uniform actions do not go as the table says."""
    rng = np.random.default_rng(0)
    for _ in range(PLAYED):
        x, steps = found.get(_known(world.reset().observation)), 0
        while steps < LONGEST:
            if x is None:
                raise InputError(f"{called} begins in states that its first resets did not show: take more resets=")
            a = int(rng.integers(A))
            step = world.step(a)
            y = -1 if step.last() else found.get(_known(step.observation))
            if (y, float(step.reward or 0.0)) != moves[x, a]:
                raise InputError(
                    f"{called} is not a function of its observation: action {a} in state {x} led elsewhere, or earned "
                    "another reward, than before. Learn from it by playing: ravi.agent"
                )
            if step.last():
                break
            x, steps = y, steps + 1
