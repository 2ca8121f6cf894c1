"""What the tests share."""

import numpy as np

from ravi.contract import bits, spy

__all__ = ["assert_same_bits", "bits", "dense", "spy"]


def dense(mdp):
    """P[x, a, x'] as one array."""
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    return P


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name
