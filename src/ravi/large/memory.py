"""The memory of a large world: states that were met, rows of those that are not settled, moves that were seen.

A state is *met* when it is visited or seen as a successor; a hash table gives it a slot. It is *settled* while its row
of Q is constant whatever happens elsewhere (see `ravi.large.learner`): then V is that constant and its policy pi_0, and
it needs no row. Moves of a pair are a list, ascending by successor, so that sums over them are those of a table.

Arrays have room to spare; a step takes at most so much of it (`SPARE`), and where less is left they are doubled.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.runtime.ranges import (
    Count,
    Facts,
    LogPolicy,
    Next,
    Number,
    Place,
    Policy,
    Probability,
    Range,
    Value,
    Whole,
    index_of,
)

NONE = -1
SLOTS, ROWS, MOVES, SHADOWS = 0, 1, 2, 3  # what is counted in `used`
SPARE = (2, 2, 1, 2)  # of each, that one step may take
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def _ascends(after: Array, facts: Facts, begun: Array, held: Any) -> Array:
    """Where the list of a pair's moves ascends by successor, or ends: no such list is a circle."""
    state = held.ids[held.to]
    return (after == NONE) | (state[after] > state)


VISITED = Range(lambda N, *_: N > 0, "a count of plays, from one")
ASCENDING = Range(_ascends, "a move to a later successor")


class Memory(NamedTuple):
    """The arrays, of which a file is checked as far as they are in use."""

    used: Whole  # slots, rows, moves and shadows in use   (4,)
    place: Whole  # hash table: slot + 1, or 0           (2^p,)
    ids: Place  # the state of a slot                    (S,)
    rewards: Probability  # r                            (S, A)
    visits: Annotated[Next, VISITED]  # N, from one      (S, A)
    first: Annotated[Array, index_of("to", "a move, or -1 for none", NONE)]  # the first move of a pair   (S, A)
    V: Value  # of the last backup                       (S,)
    row: Annotated[Array, index_of("owner", "a row, or -1 for none", NONE)]  # NONE where settled   (S,)
    owner: Annotated[Array, index_of("ids", "a slot")]  # of a row   (R,)
    base: Number  # r + CB                               (R, A)
    Q: Value  #                                          (R, A)
    log_policy: LogPolicy  # log pi of the last step     (R, A)
    last: Policy  # pi of the last step                  (R, A)
    policy: Policy  # pi that is played                  (R, A)
    to: Annotated[Array, index_of("ids", "a slot")]  # of the successor of a move   (L,)
    moves: Count  # N'                                   (L,)
    after: Annotated[Array, index_of("to", "a move, or -1 for none", NONE), ASCENDING]  # the pair's next move   (L,)
    shadow_place: Whole  # hash table: shadow + 1, or 0  (2^q,)
    shadow_Q: Value  # q of unvisited states             (G, A)
    shadow_log_policy: LogPolicy  #                      (G, A)
    shadow_last: Policy  #                               (G, A)
    shadow_policy: Policy  #                             (G, A)
    shadow_V: Value  #                                   (G,)
    shadow_steps: Whole  # mirror steps made             (G,)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


KINDS = {
    SLOTS: ("ids", "rewards", "visits", "first", "V", "row"),
    ROWS: ("owner", "base", "Q", "log_policy", "last", "policy"),
    MOVES: ("to", "moves", "after"),
    SHADOWS: ("shadow_Q", "shadow_log_policy", "shadow_last", "shadow_policy", "shadow_V", "shadow_steps"),
}
TABLES = {SLOTS: ("place", "ids"), SHADOWS: ("shadow_place", "shadow_Q")}


def empty_memory(actions: int, room: int = 1024) -> Memory:
    A = actions

    def whole(*shape: int) -> Array:
        return np.zeros(shape, np.int32)

    def real(*shape: int) -> Array:
        return np.zeros(shape)

    few = 16
    return Memory(
        np.zeros(4, np.int64), whole(2 * room), np.zeros(room, np.int64), real(room, A), whole(room, A), whole(room, A),
        real(room), whole(room),
        whole(room), real(room, A), real(room, A), real(room, A), real(room, A), real(room, A),
        whole(room), whole(room), whole(room),
        whole(2 * few), real(few, A), real(few, A), real(few, A), real(few, A), real(few), np.zeros(few, np.int64),
    )  # fmt: skip


def with_room(memory: Memory) -> Memory:
    """With room for another step: what is short of it doubles."""
    for kind, names in KINDS.items():
        room = len(getattr(memory, names[0]))
        if memory.used[kind] + SPARE[kind] <= room:
            continue
        memory = memory._replace(**{name: _double(getattr(memory, name)) for name in names})
        if kind in TABLES:
            place, keys = TABLES[kind]
            table = np.zeros(4 * room, np.int32)
            rehash(table, getattr(memory, keys), memory.used[kind])
            memory = memory._replace(**{place: table})
    return memory


def _double(array: Array) -> Array:
    more = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    more[: len(array)] = array
    return more


@compiled
def is_short(memory):  # type: ignore[no-untyped-def]
    """Whether a step may need more room than there is."""
    used = memory.used
    return (
        used[SLOTS] + SPARE[SLOTS] > memory.ids.shape[0]
        or used[ROWS] + SPARE[ROWS] > memory.owner.shape[0]
        or used[MOVES] + SPARE[MOVES] > memory.to.shape[0]
        or used[SHADOWS] + SPARE[SHADOWS] > memory.shadow_V.shape[0]
    )


@compiled
def hash_word(word):  # type: ignore[no-untyped-def]
    word = np.uint64(word) * _MIX
    return (word ^ (word >> _HALF)) * _MIX


@compiled
def bucket_of(place, ids, x):  # type: ignore[no-untyped-def]
    """The bucket of state x in the hash table, or the one where it belongs."""
    mask = np.uint64(place.shape[0] - 1)
    i = (hash_word(x) >> _HALF) & mask
    while place[i] != 0 and ids[place[i] - 1] != x:
        i = (i + np.uint64(1)) & mask
    return i


@compiled
def bucket_of_row(place, rows, row):  # type: ignore[no-untyped-def]
    """The same for a row of numbers."""
    mask = np.uint64(place.shape[0] - 1)
    word = np.uint64(0)
    for bits in row.view(np.uint64):
        word = hash_word(word ^ bits)
    i = (word >> _HALF) & mask
    while place[i] != 0 and (rows[place[i] - 1] != row).any():
        i = (i + np.uint64(1)) & mask
    return i


def rehash(place: Array, keys: Array, used: int) -> None:
    """Put the first `used` keys into an empty hash table, as they were met."""
    if keys.ndim == 1:
        _rehash_ids(place, keys, used)
    else:
        _rehash_rows(place, keys, used)


@compiled
def _rehash_ids(place, ids, used):  # type: ignore[no-untyped-def]
    for s in range(used):
        place[bucket_of(place, ids, ids[s])] = s + 1


@compiled
def _rehash_rows(place, rows, used):  # type: ignore[no-untyped-def]
    for g in range(used):
        place[bucket_of_row(place, rows, rows[g])] = g + 1
