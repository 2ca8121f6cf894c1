"""What are the winds? A grid on which the wind takes most moves, to a corner that each simulator puts elsewhere.

Cells (i, j) of a W x W square (number i W + j), from its centre; actions up, right, down, left. With .4 a move goes
where it is meant to (off the square it stays), with .6 the wind takes it: in simulator k one cell towards corner k,
along the column first, then along the row. The corners (0, 0), (0, W - 1), (W - 1, W - 1), (W - 1, 0) pay 1, .9, .8,
.7, and theta = (.15, .2, .35, .3): at the defaults the best way from the centre is with the strongest wind, to .8.

>>> from ravi.mdps import winds
>>> mdp = winds()
>>> mdp.successors[12, 1].tolist(), mdp.transitions[12, 1].round(2).tolist()  # right, from the centre; 0 fills the row
([0, 7, 13, 17], [0.0, 0.21, 0.4, 0.39])
"""

from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.mdps.tables import mixture_of
from ravi.mdps.terrain import MOVES
from ravi.validation import require_table

THETA = (0.15, 0.2, 0.35, 0.3)
PAY = (1.0, 0.9, 0.8, 0.7)
WIND = 0.6


def winds(width: int = 5, discount: float = 0.95) -> MDP:
    """A wind takes most moves in a W x W grid to a corner; four simulators disagree on which."""
    W = validation.whole(width, "width", 2)
    name = named("winds", W)
    require_table(name, "width", W * W, 4, 4, 4)
    x, e = np.arange(W * W), np.eye(4)
    i, j = np.divmod(x, W)
    corners = ((0, 0), (0, W - 1), (W - 1, W - 1), (W - 1, 0))
    r = np.zeros((W * W, 4))
    entries: list[tuple[Any, Any, Any, Any]] = []
    for a, (di, dj) in enumerate(MOVES):
        meant = np.clip(i + di, 0, W - 1) * W + np.clip(j + dj, 0, W - 1)
        entries.append((x, a, meant, np.full(4, 1 - WIND)))
    for k, (ci, cj) in enumerate(corners):
        blown = np.where(i != ci, (i + np.sign(ci - i)) * W + j, i * W + j + np.sign(cj - j))
        entries.append((x[:, None], np.arange(4), blown[:, None], WIND * e[k]))
        r[ci * W + cj] = PAY[k]
    centre = (W // 2) * (W + 1)
    return mixture_of(entries, THETA, r, discount, centre, parameter_bound=1.0, feature_bound=2.0, name=name)
