"""What is the terrain grid? A walk on a square whose ground is of a few types, each with its own unknown slip.

A linear mixture with few parameters and small support. Cells (i, j) of a W x W square (number i W + j), actions up,
right, down, left. On ground of type tau a move goes where it is meant to with probability 1 - s_tau, and to either side
with s_tau / 2; a move off the square stays where it is. The walk starts at (0, 0); every action in the goal cell
(W - 1, W - 1) earns 1, which is a cell like any other: a walker that slips has to come back. The seed draws the slips,
s_tau uniform on [(tau - 1) / (2 q), tau / (2 q)], so that types differ and none slips more often than not, and then
the type of each cell.

theta = (s_1, ..., s_q, 1), d = q + 1, and with I the intended cell and L, R those to the sides

    psi(x, a, .) = e_tau(x) ((1_L + 1_R) / 2 - 1_I) + e_{q+1} 1_I.

||theta||^2 = 1 + sum s^2. phi_V = e_tau ((V(L) + V(R)) / 2 - V(I)) + e_{q+1} V(I), so B_phi = sqrt(2).
"""

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.draws import uniforms
from ravi.mdps.names import named
from ravi.mdps.tables import mixture_of
from ravi.validation import require_table

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left: the sides of a are a - 1 and a + 1


def terrain(width: int = 5, types: int = 2, discount: float = 0.95, seed: int = 0) -> MDP:
    """Moves in a W x W grid slip aside, with an unknown probability for each of q types of ground."""
    W, q = validation.whole(width, "width", 2), validation.whole(types, "types", 1)
    X, A = W * W, len(MOVES)
    seed = validation.whole(seed, "seed", 0)
    draw, name = uniforms(seed), named("terrain", W, q, seed=(seed, 0))
    require_table(name, "width or types", X, A, 3, q + 1)
    slip = (np.arange(q) + draw(q)) / (2 * q)
    ground = (q * draw(X)).astype(np.int64)  # tau(x)
    e = np.eye(q + 1)
    i, j = np.divmod(np.arange(X), W)
    towards = [np.clip(i + di, 0, W - 1) * W + np.clip(j + dj, 0, W - 1) for di, dj in MOVES]  # A times (X,)
    entries = []
    for a in range(A):
        entries.append((np.arange(X), a, towards[a], e[q] - e[ground]))
        for side in (a - 1, a + 1):
            entries.append((np.arange(X), a, towards[side % A], e[ground] / 2))
    r = np.zeros((X, A))
    r[-1] = 1
    return mixture_of(entries, [*slip, 1.0], r, discount, 0, name=name)
