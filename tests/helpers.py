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


def bits(made, row=0):
    """Everything of one seed that a run gives, timing aside."""
    arrays = {name: np.asarray(leaf)[row] for name, leaf in tree.leaves(made.batch) if isinstance(leaf, np.ndarray)}
    return arrays | {"T_k": made.T_k[row], "gap_k": made.gap_k[row]}


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name
