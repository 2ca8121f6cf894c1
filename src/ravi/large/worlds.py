"""What is a large world? Something that answers to draws: a reward, a successor, a state after a reset.

An MDP stored on its support is one. So are three functions, compiled here, of which nothing but their values is asked:

    reward(x, a) -> r in [0, 1]      successor(x, a, u) -> y      initial(u) -> x,      u uniform on [0, 1)

No array has a row for every state: X may be 10^12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
from numba.extending import overload

from ravi import checks
from ravi.core import MDP, Array
from ravi.walk import find, world_of

MOST_STATES = 2**62


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
    source: Table | Procedure | None  # None: of a run from a file, where the world was not given again
    mdp: MDP | None = None  # whose world this is
    stored_digest: str = ""  # of such a run

    @property
    def horizon(self) -> float:
        return 1 / (1 - self.discount)  # H

    @property
    def digest(self) -> str:
        """Of its MDP; nothing where it is given by functions."""
        return self.stored_digest if self.mdp is None else self.mdp.digest

    def __repr__(self) -> str:
        return f"<World {self.name}: X={self.states:,}, A={self.actions}, gamma={self.discount:g}>"


def of_mdp(mdp: MDP) -> World:
    """The world of an MDP: the draws of `ravi.run`, number for number."""
    world = world_of(mdp)
    source = Table(mdp.rewards, world.successors, world.cumulative, world.initial)
    return World(mdp.name, mdp.states, mdp.actions, mdp.discount, source, mdp)


def procedural(
    reward: Callable[[int, int], float],
    successor: Callable[[int, int, float], int],
    initial: Callable[[float], int],
    *,
    states: int,
    actions: int,
    discount: float,
    name: str = "world",
) -> World:
    """A world of three functions that Numba can compile: of whole numbers and u, using constants and nothing else."""
    source = Procedure(
        numba.cfunc("float64(int64, int64)")(reward),
        numba.cfunc("int64(int64, int64, float64)")(successor),
        numba.cfunc("int64(float64)")(initial),
    )
    return World(
        name,
        checks.whole(states, "states", 1, MOST_STATES),
        checks.whole(actions, "actions"),
        checks.probability(discount, "discount"),
        source,
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
