"""Grids: DeepSea, the terrain and the winds."""

from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.building import instance_name, uniforms
from ravi.mdps.tables import mixture_of
from ravi.validation import require_table

LEFT, RIGHT = 0, 1


def deep_sea(n: int = 10, discount: float = 0.95) -> MDP:
    """Only one sequence of n actions crosses the n^2 cells of a grid and reaches the reward.

    Exploration has to be deep.

    Osband, Van Roy and Wen (2016), Generalization and exploration via randomized value functions, here without an end:
    states (i, j) for i, j < n (number i n + j), start (0, 0). Right leads to (i + 1, j + 1), left to (i + 1, j - 1),
    the column kept inside; the last row leads back to (0, 0). r = .01 / n for left, 0 for right, and 1 for right at (n
    - 1, n - 1).

    A pass either collects the treasure, after n rights, or nothing but crumbs, so with c = .01 / n

        rho* = max((1 - gamma) gamma^(n - 1) / (1 - gamma^n), c),      always left: c.

    The uniform policy finds the treasure with probability 2^-n per pass.
    """
    n = validation.whole(n, "n", 1)
    name = instance_name("deep-sea", n)
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


MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left: the sides of a are a - 1 and a + 1


def terrain(width: int = 5, types: int = 2, discount: float = 0.95, seed: int = 0) -> MDP:
    """Moves in a W x W grid slip aside, with an unknown probability for each of q types of ground.

    A linear mixture with few parameters and small support. Cells (i, j) of a W x W square (number i W + j), actions up,
    right, down, left. On ground of type tau a move goes where it is meant to with probability 1 - s_tau, and to either
    side with s_tau / 2; a move off the square stays where it is. The walk starts at (0, 0); every action in the goal
    cell (W - 1, W - 1) earns 1, which is a cell like any other: a walker that slips has to come back. The seed draws
    the slips, s_tau uniform on [(tau - 1) / (2 q), tau / (2 q)], so that types differ and none slips more often than
    not, and then the type of each cell.

    theta = (s_1, ..., s_q, 1), d = q + 1, and with I the intended cell and L, R those to the sides

        psi(x, a, .) = e_tau(x) ((1_L + 1_R) / 2 - 1_I) + e_{q+1} 1_I.

    ||theta||^2 = 1 + sum s^2. phi_V = e_tau ((V(L) + V(R)) / 2 - V(I)) + e_{q+1} V(I), so B_phi = sqrt(2).
    """
    W, q = validation.whole(width, "width", 2), validation.whole(types, "types", 1)
    X, A = W * W, len(MOVES)
    seed = validation.whole(seed, "seed", 0)
    draw, name = uniforms(seed), instance_name("terrain", W, q, seed=(seed, 0))
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


THETA = (0.15, 0.2, 0.35, 0.3)
PAY = (1.0, 0.9, 0.8, 0.7)
WIND = 0.6


def winds(width: int = 5, discount: float = 0.95) -> MDP:
    """A wind takes most moves in a W x W grid to a corner; four simulators disagree on which.

    Cells (i, j) of a W x W square (number i W + j), from its centre; actions up, right, down, left. With .4 a move goes
    where it is meant to (off the square it stays), with .6 the wind takes it: in simulator k one cell towards corner k,
    along the column first, then along the row. The corners (0, 0), (0, W - 1), (W - 1, W - 1), (W - 1, 0) pay 1, .9,
    .8, .7, and theta = (.15, .2, .35, .3): at the defaults the best way from the centre is with the strongest wind, to
    .8.

    >>> from ravi.mdps import winds
    >>> mdp = winds()
    >>> (
    ...     mdp.successors[12, 1].tolist(),
    ...     mdp.transitions[12, 1].round(2).tolist(),
    ... )  # right, from the centre
    ([0, 7, 13, 17], [0.0, 0.21, 0.4, 0.39])
    """
    W = validation.whole(width, "width", 2)
    name = instance_name("winds", W)
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
