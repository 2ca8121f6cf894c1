"""Large worlds, which answer to draws: a reward, a successor, a state after a reset.

An MDP stored on its support is one. So are three functions, compiled here, of which only the values are used:

    reward(x, a) -> r in [0, 1]      successor(x, a, u) -> y      initial(u) -> x,      u uniform on [0, 1)

No array has a row for every state: X may be 10^12.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import overload

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import MDP, Array
from ravi.large.memory import hash_word
from ravi.runtime.walk import find, world_of

MOST_STATES = 2**62
STARTS, MOVES_EACH = 1000, 8  # draws at which functions are compared: of starts, and of successors of each pair
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill [0, 1) evenly
UNVISITED = ("iterated", "closed")  # the bits of a table, O(k A) for each distinct row of rewards; or O(A), to rounding


class Table(NamedTuple):
    """An MDP as the walk reads it."""

    rewards: Array  # r(x, a)                        (X, A)
    successors: Array  #                             (X, A, B)
    cumulative: Array  # of P(. | x, a)              (X, A, B)
    initial: Array  # nu_0(first x states)           (X,)


class Procedure(NamedTuple):
    """The same, by compiled functions."""

    reward: Any
    successor: Any
    start: Any


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """X, A, gamma and where answers come from."""

    name: str
    states: int
    actions: int
    discount: float
    source: Table | Procedure
    mdp: MDP | None = None  # whose world this is
    unvisited: str = "iterated"  # how states that are met late are filled in: see `UNVISITED`

    def __post_init__(self) -> None:
        validation.one_of(self.unvisited, UNVISITED, "unvisited")

    @property
    def horizon(self) -> float:
        return 1 / (1 - self.discount)  # H

    @property
    def digest(self) -> str:
        """The digest of its MDP; empty if it is given by functions."""
        return "" if self.mdp is None else self.mdp.digest

    def __repr__(self) -> str:
        return f"<World {self.name}: X={self.states:,}, A={self.actions}, gamma={self.discount:g}>"


def of_mdp(mdp: MDP, *, unvisited: str = "iterated") -> World:
    """The world of an MDP: the draws of `ravi.run`, number for number. As an id: `large/` and that of the MDP."""
    if mdp.discount == 1:
        raise validation.InputError(f"{mdp.name} is of the average reward, and a large world has a discount")
    world = world_of(mdp)
    source = Table(mdp.rewards, world.successors, world.cumulative, world.initial)
    return World(mdp.name, mdp.states, mdp.actions, mdp.discount, source, mdp, unvisited)


def procedural(
    reward: Callable[[int, int], float], successor: Callable[[int, int, float], int], initial: Callable[[float], int],
    *, states: int, actions: int, discount: float, name: str = "world", unvisited: str = "iterated",
) -> World:  # fmt: skip
    """A world of three functions that Numba can compile: of whole numbers and u, using constants and nothing else."""
    source = Procedure(
        numba.cfunc("float64(int64, int64)")(reward),
        numba.cfunc("int64(int64, int64, float64)")(successor),
        numba.cfunc("int64(float64)")(initial),
    )
    return World(
        name, validation.whole(states, "states", 1, MOST_STATES), validation.whole(actions, "actions"),
        validation.probability(discount, "discount"), source, unvisited=unvisited,
    )  # fmt: skip


def grid(width: int = 1000, discount: float = 0.9, *, unvisited: str = "iterated") -> World:
    """Moves in a square of W^2 cells slip aside with probability .2; only visited cells are stored.

    The goal is four cells from the start.
    """
    W = validation.whole(width, "width", 9, 2**30)
    start = W // 2 * W + W // 2

    def reward(x: int, a: int) -> float:
        return 1.0 if x == start + 4 else 0.0

    def successor(x: int, a: int, u: float) -> int:
        move = (a + 1) % 4 if u < 0.1 else (a + 3) % 4 if u < 0.2 else a
        i, j = x // W, x % W
        if move == 0:
            i = max(i - 1, 0)
        elif move == 1:
            j = min(j + 1, W - 1)
        elif move == 2:
            i = min(i + 1, W - 1)
        else:
            j = max(j - 1, 0)
        return i * W + j

    def initial(u: float) -> int:
        return start

    return procedural(
        reward, successor, initial, states=W * W, actions=4, discount=discount, name=f"grid/{W}", unvisited=unvisited
    )


# What compiled code calls: Numba takes the overloads below, by the type of the source. Python itself never gets here.


def reward_of(source: Any, x: Any, a: Any) -> Any:
    """r(x, a), in compiled code."""
    raise NotImplementedError


def successor_of(source: Any, x: Any, a: Any, u: Any) -> Any:
    """y of (x, a) and u, in compiled code."""
    raise NotImplementedError


def start_of(source: Any, u: Any) -> Any:
    """x ~ nu_0 of u, in compiled code."""
    raise NotImplementedError


@overload(reward_of)
def _reward_of(source, x, a):  # type: ignore[no-untyped-def]
    if "cumulative" in source.fields:
        return lambda source, x, a: source.rewards[x, a]
    return lambda source, x, a: source.reward(x, a)


@overload(successor_of)
def _successor_of(source, x, a, u):  # type: ignore[no-untyped-def]
    if "cumulative" in source.fields:
        return lambda source, x, a, u: source.successors[x, a, find(source.cumulative[x, a], u)]
    return lambda source, x, a, u: source.successor(x, a, u)


@overload(start_of)
def _start_of(source, u):  # type: ignore[no-untyped-def]
    if "cumulative" in source.fields:
        return lambda source, u: find(source.initial, u)
    return lambda source, u: source.start(u)


# Answers in states that were met, by which a resumed run knows its world again.


def hash_of(world: World, states: Array) -> int:
    """A hash of the starts and the successors that functions give for these states; 0 for an MDP (it has a digest)."""
    return 0 if world.mdp is not None else int(_probed(world.source, states, world.actions))


@compiled
def rewards_of(source, states, actions):  # type: ignore[no-untyped-def]
    """r of these states   (n, A)."""
    r = np.empty((states.shape[0], actions))
    for i in range(states.shape[0]):
        for a in range(actions):
            r[i, a] = reward_of(source, states[i], np.int64(a))
    return r


@compiled
def _probed(source, states, actions):  # type: ignore[no-untyped-def]
    """A hash of starts, and of successors of every pair, at draws that no two pairs share."""
    word, n = np.uint64(0), 0
    for k in range(STARTS):
        word = hash_word(word ^ np.uint64(start_of(source, (k + 1) * GOLDEN % 1.0)))
    for i in range(states.shape[0]):
        for a in range(actions):
            for _ in range(MOVES_EACH):
                n += 1
                word = hash_word(word ^ np.uint64(successor_of(source, states[i], np.int64(a), n * GOLDEN % 1.0)))
    return word
