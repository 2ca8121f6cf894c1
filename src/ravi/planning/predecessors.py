"""From where can a state be reached? For every state, the pairs that store it among their successors."""

from typing import NamedTuple

import numpy as np

from ravi.core import Array


class Predecessors(NamedTuple):
    """Entries start[y] to start[y + 1] are those of state y."""

    start: Array  # (X + 1,)
    pair: Array  # x A + a                                   (X A B,)
    slot: Array  # the place of y among its successors       (X A B,)


def predecessors(successors: Array) -> Predecessors:
    """The pairs that lead to each state, in ascending order."""
    X, A, B = successors.shape
    order = np.argsort(successors.ravel(), kind="stable")
    start = np.zeros(X + 1, np.int64)
    np.cumsum(np.bincount(successors.ravel(), minlength=X), out=start[1:])
    return Predecessors(start, (order // B).astype(np.int32), (order % B).astype(np.int32))
