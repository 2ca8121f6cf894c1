"""What the tests share."""

from typing import NamedTuple

import numpy as np

from ravi import tree
from ravi.core import Measure


class Nothing(NamedTuple):
    pass


def dense(mdp):
    """P[x, a, x'] as one array."""
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    return P


def spy(seen):
    """A measure that appends (state, path) copies to `seen` as every epoch opens."""

    def record(m, state, path, opening):
        if opening:
            seen.append((tree.copy(state), tree.copy(path)))
        return m

    return Measure("spy", lambda keys: Nothing(), record, lambda m: {})
