"""What is a Garnet? A random MDP with b successors per pair: the average case.

Archibald, McKinnon and Thomas (1995), On the generation of Markov decision processes; the name is Bhatnagar, Sutton,
Ghavamzadeh and Lee's (2009). For each pair (x, a): b distinct successors, uniformly without replacement; their
probabilities are the spacings of b - 1 uniforms on [0, 1]. r(x, a) = U 1{U' > 1/2}. b = 1 is deterministic, b = X
dense. An instance is its seed's: built from sorts, products and differences of a fixed stream (draws.py), it has the
same bits everywhere.
"""

from collections.abc import Callable

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.draws import uniforms
from ravi.mdps.names import named
from ravi.validation import require_table

STARTS = ("uniform", "first")
COMPARED = 32  # up to this many successors, a draw is compared with those before it; beyond, it is looked up
TABLE = 2**24  # entries of that look-up table at a time


def garnet(
    states: int, actions: int, branching: int, seed: int = 0, discount: float = 0.95, start: str = "uniform"
) -> MDP:
    """Each pair of a random MDP has b random successors; `start` is "uniform" or the "first" state."""
    X, A, b = sizes(states, actions, branching)
    validation.one_of(start, STARTS, "start")
    seed = validation.whole(seed, "seed", 0)
    draw = uniforms(seed)
    name = named("garnet", X, A, b, seed=(seed, 0), start=(start, "uniform"))
    require_table(name, "states, actions or branching", X, A, b, scattered=False)
    successors, P = garnet_kernel(draw, X, A, b)
    return MDP(
        rewards=garnet_rewards(draw, X, A), successors=successors, transitions=P,
        initial=np.full(X, 1 / X) if start == "uniform" else np.eye(1, X)[0], discount=discount, name=name,
    )  # fmt: skip


def sizes(states: int, actions: int, branching: int) -> tuple[int, int, int]:
    """X, A and b <= X, checked."""
    X = validation.whole(states, "states")
    return X, validation.whole(actions, "actions", 1), validation.whole(branching, "branching", 1, X)


def garnet_kernel(draw: Callable[..., np.ndarray], X: int, A: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """Successors, ascending, and their probabilities, both (X, A, b)."""
    successors = np.sort(distinct(draw(X * A, b), X), axis=-1).astype(np.int32)
    cuts = np.zeros((X * A, b + 1))
    cuts[:, 1:b] = np.sort(draw(X * A, b - 1), axis=-1)
    cuts[:, b] = 1
    return successors.reshape(X, A, b), np.diff(cuts).reshape(X, A, b)


def garnet_rewards(draw: Callable[..., np.ndarray], X: int, A: int) -> np.ndarray:
    """U 1{U' > 1/2}, (X, A)."""
    return draw(X, A) * (draw(X, A) > 0.5)


def distinct(u: np.ndarray, X: int) -> np.ndarray:
    """b distinct numbers below X from each row of uniforms (rows, b), every set equally likely: Floyd's method.

    For j = X - b, ..., X - 1 draw t uniformly from 0, ..., j and take it, or j where t is taken already.
    """
    rows, b = u.shape
    chosen = np.empty((rows, b), dtype=np.int64)
    if b <= COMPARED:
        for i, j in enumerate(range(X - b, X)):
            t = (u[:, i] * (j + 1)).astype(np.int64)
            chosen[:, i] = np.where((chosen[:, :i] == t[:, None]).any(axis=1), j, t)
        return chosen
    block = max(1, TABLE // X)
    taken = np.zeros((min(block, rows), X), dtype=bool)
    for begin in range(0, rows, block):
        part = chosen[begin : begin + block]
        row = np.arange(len(part))
        for i, j in enumerate(range(X - b, X)):
            t = (u[begin : begin + block, i] * (j + 1)).astype(np.int64)
            part[:, i] = np.where(taken[row, t], j, t)
            taken[row, part[:, i]] = True
        taken[row[:, None], part] = False
    return chosen
