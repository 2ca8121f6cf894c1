"""From where can a state be reached? For every state, the pairs that store it among their successors."""

from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array


class Predecessors(NamedTuple):
    """Entries start[y] to start[y + 1] are those of state y."""

    start: Array  # (X + 1,)
    pair: Array  # x A + a                                   (X A B,)
    slot: Array  # the place of y among its successors       (X A B,)


def predecessors(successors: Array) -> Predecessors:
    """The pairs that lead to each state, in ascending order."""
    start, entries = entries_of(successors)
    pair, slot = np.empty((2, successors.size), np.int32)
    _part(entries, successors.shape[2], pair, slot)
    return Predecessors(start, pair, slot)


def entries_of(successors: Array) -> tuple[Array, Array]:
    """Which entries of the successors (X, A, B), one after the other, are each state: start (X + 1,), and the entries,
    those of state y from start[y] to start[y + 1], in ascending order."""
    kind = np.int32 if successors.size < 2**31 else np.int64
    start, entries = np.zeros(len(successors) + 1, kind), np.empty(successors.size, kind)
    _sort(successors.reshape(-1), start, entries)
    return start, entries


@compiled
def _sort(successors, start, entries):  # type: ignore[no-untyped-def]
    """Sort the entries by counting; `start` is 0 before."""
    X, size = start.shape[0] - 1, successors.shape[0]
    for e in range(size):
        start[np.uint32(successors[e]) + np.uint32(1)] += 1
    for y in range(X):
        start[y + 1] += start[y]
    for e in range(size - 1, -1, -1):  # from the last on, so that start[y + 1] becomes the start of y
        after = np.uint32(successors[np.uint64(e)]) + np.uint32(1)
        k = np.uint64(start[after]) - np.uint64(1)
        start[after], entries[k] = k, e
    for y in range(X):
        start[y] = start[y + 1]
    start[X] = size


@compiled
def _part(entries, B, pair, slot):  # type: ignore[no-untyped-def]
    for k in range(entries.shape[0]):
        pair[k], slot[k] = entries[k] // B, entries[k] % B
