"""What is DeepSea? A grid that only one sequence of n actions crosses: exploration has to be deep.

Osband, Van Roy and Wen (2016), Generalization and exploration via randomized value functions, here without an end:
states (i, j) for i, j < n (number i n + j), start (0, 0). Right leads to (i + 1, j + 1), left to (i + 1, j - 1), the
column kept inside; the last row leads back to (0, 0). r = .01 / n for left, 0 for right, and 1 for right at
(n - 1, n - 1).

A pass either collects the treasure, after n rights, or nothing but crumbs, so with c = .01 / n

    rho* = max((1 - gamma) gamma^(n - 1) / (1 - gamma^n), c),      always left: c.

The uniform policy finds the treasure with probability 2^-n per pass.
"""

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.validation import require_table

LEFT, RIGHT = 0, 1


def deep_sea(n: int = 10, discount: float = 0.95) -> MDP:
    """Only one sequence of n actions crosses the n^2 cells of a grid and reaches the reward."""
    n = validation.whole(n, "n", 1)
    name = named("deep-sea", n)
    require_table(name, "n", n * n, 2, 1, scattered=False)
    i, j = np.divmod(np.arange(n * n), n)
    column = np.stack([np.maximum(j - 1, 0), np.minimum(j + 1, n - 1)], axis=1)  # (X, A)
    following = np.where(i[:, None] < n - 1, (i[:, None] + 1) * n + column, 0)
    r = np.zeros((n * n, 2))
    r[:, LEFT] = 0.01 / n
    r[-1, RIGHT] = 1
    return MDP(
        rewards=r,
        successors=following[:, :, None],  # deterministic: B = 1
        transitions=np.ones((n * n, 2, 1)),
        initial=np.eye(1, n * n)[0],
        discount=discount,
        name=name,
    )
