"""What happens at a step? Play a_t, observe y_t, reset with probability 1 - gamma: one compiled loop for all learners.

Step t uses the four numbers of block t: whether a reset follows, the action, the successor, and the state after a
reset. Reset flags are thus the same for every learner under the same key: comparisons are paired.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import MDP, Array, Path, Walkers
from ravi.random import INITIAL, block, uniform

SHORT = 8  # successors up to this many are searched one by one


class World(NamedTuple):
    """The MDP as the walk reads it: cumulative probabilities."""

    successors: Array  # (X, A, B)
    cumulative: Array  # P(first j successors | x, a)    (X, A, B)
    initial: Array  # nu_0(first x states)               (X,)
    restart: float  # 1 - gamma


def world_of(mdp: MDP) -> World:
    return World(mdp.successors, _cumulative(mdp.transitions), _cumulative(mdp.initial), 1 - mdp.discount)


def _cumulative(probabilities: Array) -> Array:
    """Partial sums that reach 1 exactly at the last entry of positive probability, so that u < 1 finds an entry and
    never one of probability 0."""
    sums = np.cumsum(probabilities, axis=-1)
    positive = probabilities > 0
    after = np.cumsum(positive[..., ::-1], axis=-1)[..., ::-1] - positive  # positive entries beyond this one
    sums[after == 0] = 1.0
    return sums


def start(world: World, keys: Array) -> Walkers:
    """Every seed at its first state x_1 ~ nu_0, before any play."""
    state = np.array([np.searchsorted(world.initial, uniform(key, 0, INITIAL), side="right") for key in keys])
    return Walkers(state.astype(np.int32), np.zeros(len(keys), np.int64), np.asarray(keys, np.uint64))


def room(n: int, length: int) -> Path:
    """An empty path with room for `length` steps of each seed."""
    state, action, successor, slot = (np.zeros((n, length), np.int32) for _ in range(4))
    reset = np.zeros((n, length), np.bool_)
    return Path(state, action, successor, slot, reset, np.zeros(n, np.int64), np.ones(n, np.int64))


def walk(
    world: World,
    policy: Array,
    walkers: Walkers,
    path: Path,
    over: Array,
    stop_at_reset: bool,
    deadline: Array,
    steps: int,
) -> tuple[int, int]:
    """Walk every seed that is not `over` until it is, or until its path is full; all in place.

    How many are not over then, and how many came to their last step T.
    """
    return _walk(*world, policy, *walkers, *path, over, stop_at_reset, deadline, steps)


@compiled
def _find(cumulative, u):  # type: ignore[no-untyped-def]
    """The first j with u < cumulative[j]."""
    low, high = 0, cumulative.shape[0] - 1
    if high < SHORT:
        while u >= cumulative[low]:
            low += 1
        return low
    while low < high:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _walk(  # type: ignore[no-untyped-def]
    successors, cumulative, initial, restart, policy, state, time, key,
    xs, actions, ys, slots, resets, lengths, firsts, over, stop_at_reset, deadline, steps,
):  # fmt: skip
    n, room = xs.shape
    A = policy.shape[2]
    unfinished, ended = 0, 0
    for i in range(n):
        firsts[i] = time[i] + 1
        length = 0
        x, t = state[i], time[i]
        while over[i] == 0 and length < room:
            t += 1
            u_reset, u_action, u_successor, u_initial = block(key[i], t, 0)
            a, mass = 0, 0.0
            for b in range(A):
                if policy[i, x, b] > 0.0:  # what rounding leaves goes to the last action of positive probability
                    a = b
                    mass += policy[i, x, b]
                    if u_action < mass:
                        break
            slot = _find(cumulative[x, a], u_successor)
            y = successors[x, a, slot]
            reset = u_reset < restart
            xs[i, length], actions[i, length], ys[i, length], slots[i, length] = x, a, y, slot
            resets[i, length] = reset
            length += 1
            x = np.int32(_find(initial, u_initial)) if reset else y
            if (reset and stop_at_reset) or t >= deadline[i]:
                over[i] = 1
        state[i], time[i] = x, t
        lengths[i] = length
        unfinished += over[i] == 0
        ended += length > 0 and t >= steps
    return unfinished, ended
