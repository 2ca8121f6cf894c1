"""What is RiverSwim? A chain against a current: a crumb at the left end, the reward at the right end.

Strehl and Littman (2008), An analysis of model-based interval estimation for Markov decision processes, with the
numbers of Osband, Russo and Van Roy (2013), (More) efficient reinforcement learning via posterior sampling,
discounted. States 0, ..., n - 1, start 0.

    left    to max(x - 1, 0)
    right   at 0: stay .4, right .6;  inside: left .05, stay .6, right .35;  at n - 1: left .4, stay .6
    r       .005 for left at 0, 1 for right at n - 1, 0 elsewhere

Always left: rho = .005. Right everywhere is optimal from state 0 once gamma exceeds .3498, .5068, .6143, .7403, .8077
for n = 4, 5, 6, 8, 10. For n = 6 and gamma = .9, <nu_0, V*> = 425329947 / 326053817.
"""

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.mdps.tables import mixture_of, table_of
from ravi.validation import require_table

LEFT, RIGHT = 0, 1
CRUMB = 0.005  # r(0, left)


def riverswim(n: int = 6, discount: float = 0.95) -> MDP:
    """A current drives the swimmer left in a chain of n states; the large reward is at the right end."""
    n = validation.whole(n, "n", 2)
    name = named("riverswim", n)
    require_table(name, "n", n, 2, 3)
    x, inside = np.arange(n), np.arange(1, n - 1)
    entries = [
        (x, LEFT, np.maximum(x - 1, 0), 1.0),
        (0, RIGHT, 0, 0.4),
        (0, RIGHT, 1, 0.6),
        (inside, RIGHT, inside - 1, 0.05),
        (inside, RIGHT, inside, 0.6),
        (inside, RIGHT, inside + 1, 0.35),
        (n - 1, RIGHT, n - 2, 0.4),
        (n - 1, RIGHT, n - 1, 0.6),
    ]
    return table_of(entries, _rewards(n), discount, np.eye(1, n)[0], name=name)


def riverswim_mixture(n: int = 6, discount: float = 0.95) -> MDP:
    """RiverSwim as a linear mixture: right, stay and left have the same unknown weights in every state.

    theta = (.35, .6, .05). psi(x, left, max(x - 1, 0)) = (1, 1, 1); for right, e_1 at min(x + 1, n - 1), e_2 at x, e_3
    at max(x - 1, 0), which add up at the borders. d = 3; theta is a distribution, so B_theta = 1; B_phi = sqrt(3),
    attained by left. The ends differ from those of RiverSwim: for n = 6 and gamma = .9, rho* = .201982.
    """
    n = validation.whole(n, "n", 2)
    name = named("riverswim/mixture", n)
    require_table(name, "n", n, 2, 3, 3)
    x = np.arange(n)
    entries = [
        (x, LEFT, np.maximum(x - 1, 0), (1, 1, 1)),
        (x, RIGHT, np.minimum(x + 1, n - 1), (1, 0, 0)),
        (x, RIGHT, x, (0, 1, 0)),
        (x, RIGHT, np.maximum(x - 1, 0), (0, 0, 1)),
    ]
    return mixture_of(entries, (0.35, 0.6, 0.05), _rewards(n), discount, 0, parameter_bound=1.0, name=name)


def _rewards(n: int) -> np.ndarray:
    r = np.zeros((n, 2))
    r[0, LEFT] = CRUMB
    r[n - 1, RIGHT] = 1
    return r
