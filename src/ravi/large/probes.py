"""What does a large world answer in states that were met? All rewards, and a hash of moves and starts at draws."""

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.large.memory import mixed
from ravi.large.worlds import World, reward_of, start_of, successor_of

STARTS, MOVES_EACH = 1000, 8  # draws at which functions are compared: of starts, and of successors of each pair
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill [0, 1) evenly


def rewards_of(world: World, states: Array) -> Array:
    """r of these states   (n, A)."""
    return _rewards(world.source, states, world.actions)


def hash_of(world: World, states: Array) -> int:
    """A hash of the starts and the successors that functions give for these states; 0 for an MDP (it has a digest)."""
    return 0 if world.mdp is not None else int(_probed(world.source, states, world.actions))


@compiled
def _rewards(source, states, actions):  # type: ignore[no-untyped-def]
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
        word = mixed(word ^ np.uint64(start_of(source, (k + 1) * GOLDEN % 1.0)))
    for i in range(states.shape[0]):
        for a in range(actions):
            for _ in range(MOVES_EACH):
                n += 1
                word = mixed(word ^ np.uint64(successor_of(source, states[i], np.int64(a), n * GOLDEN % 1.0)))
    return word
