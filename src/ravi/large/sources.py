"""Where the answers of a large world come from: an MDP as the walk reads it, or three compiled functions."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.large.memory import hash_word
from ravi.runtime.walk import find

STARTS, MOVES_EACH = 1000, 8  # draws at which functions are compared: of starts, and of successors of each pair
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill [0, 1) evenly


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


@compiled
def rewards_of(source, states, actions):  # type: ignore[no-untyped-def]
    """r of these states   (n, A)."""
    r = np.empty((states.shape[0], actions))
    for i in range(states.shape[0]):
        for a in range(actions):
            r[i, a] = reward_of(source, states[i], np.int64(a))
    return r


@compiled
def hash_answers(source, states, actions):  # type: ignore[no-untyped-def]
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
