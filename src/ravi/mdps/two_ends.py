"""What are the two ends? A chain whose better end depends on where one action leads, on which simulators disagree.

States 0, ..., n - 1 in a line, from the middle. The left end pays `left`, the right one 1. Action 0 goes left with .9,
else it stays. Action 1 goes right, stays or goes left: with .9 the one that the simulator says (the first right, the
second stay, the third left), with .05 each of the others; a step over an end stays there. theta = (.35, .4, .25), so
that action 1 goes right with .3475 and left with .2625: from the middle the left end is better, at the defaults. In the
first simulator the right one is.

>>> from ravi.mdps import two_ends
>>> mdp = two_ends()
>>> mdp.transitions[4, 1].round(4).tolist()  # to 3, 4, 5, by action 1
[0.2625, 0.39, 0.3475]
"""

import math

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.mdps.tables import mixture_of
from ravi.validation import require_table

THETA = (0.35, 0.4, 0.25)
SAID, OTHER = 0.9, 0.05  # where the simulator says that action 1 leads, and to each other place


def two_ends(n: int = 9, discount: float = 0.95, left: float = 0.55) -> MDP:
    """Which end of a chain is better depends on where action 1 leads; the left end pays `left`, the right 1."""
    n = validation.whole(n, "n", 2)
    left = validation.chance(left, "left")
    name = named("two-ends", n, left=(left, 0.55))
    require_table(name, "n", n, 2, 3, 3)
    x, one = np.arange(n), np.ones(3)
    down, up = np.maximum(x - 1, 0), np.minimum(x + 1, n - 1)
    entries = [(x, 0, down, 0.9 * one), (x, 0, x, 0.1 * one)]
    entries += [(x, 1, y, np.where(np.arange(3) == i, SAID, OTHER)) for i, y in enumerate((up, x, down))]
    r = np.zeros((n, 2))
    r[0], r[-1] = left, 1
    bounds = {"parameter_bound": 1.0, "feature_bound": math.sqrt(3)}
    return mixture_of(entries, THETA, r, discount, n // 2, **bounds, name=name)
