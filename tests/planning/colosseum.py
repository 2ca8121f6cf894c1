"""Families of Colosseum (Conserva and Rauber, NeurIPS 2022) as far as their parameters determine them, as arrays.

Moves are deterministic; with probability `lazy` nothing moves, and else with `random` an action drawn uniformly moves.
States are those that are reached from a start. What a step earns depends on where it leads, and on the action that was
asked for.

Left out of the cache of that library: FrozenLake and Taxi, whose maps and places a seed draws; value norms of MiniGrid,
whose goal a seed draws; and the episodic forms, whose diameters are those of states and stages together.
"""

from itertools import product

import numpy as np
from scipy.sparse import csr_array


def arrays(start, moves, actions, lazy, random, earned=lambda x, a, y: 0.0):
    """P (X, A, X), r (X, A) and the states that are reached from `start` by moves(x, a)."""
    number, found = {start: 0}, [start]
    for x in found:
        for a in range(actions):
            y = moves(x, a)
            if y not in number:
                number[y] = len(found)
                found.append(y)
    P, r = np.zeros((len(found), actions, len(found))), np.zeros((len(found), actions))
    for (i, x), a in product(enumerate(found), range(actions)):
        outcomes = [(lazy, x)]
        outcomes += [((1 - lazy) * ((1 - random) * (b == a) + random / actions), moves(x, b)) for b in range(actions)]
        for chance, y in outcomes:
            P[i, a, number[y]] += chance
            r[i, a] += chance * earned(x, a, y)
    return P, r, found


def river_swim(size, lazy, random, stochastic):
    best, least, other = (0.9, 0.2, 0.02) if stochastic else (1.0, 0.005, 0.0)

    def earned(x, a, y):
        return best if (x, a) == (size - 1, 1) else least if (x, a) == (0, 0) else other

    return arrays(0, lambda x, a: min(x + 1, size - 1) if a else max(x - 1, 0), 2, lazy, random, earned)


def deep_sea(size, lazy, random, stochastic):
    """Beta(s - 1, 1), Beta(1, 2 s - 1) and Beta(1, 10 (2 s - 1)) where rewards are random."""
    best, left, right = 1.0, 1 / size**2, 0.0
    if stochastic:
        best, left, right = (size - 1) / size, 1 / (2 * size), 1 / (1 + 10 * (2 * size - 1))

    def moves(at, a):
        x, y = at
        return (0, size - 1) if y == 0 else (min(x + 1, size - 1) if a else max(x - 1, 0), y - 1)

    def earned(at, a, to):
        return best if (at, a) == ((size - 1, 0), 1) else right if a else left

    return arrays((0, size - 1), moves, 2, lazy, random, earned)


def simple_grid(size, lazy, random, stochastic):
    """Up, right, down, left, nothing; two opposite corners pay for staying there, the others cost (XOR). `stochastic`
    may be the three means."""
    best, least, other = (stochastic or (1.0, 0.0, 0.5)) if stochastic is not True else (0.9, 0.02, 0.2)
    steps = ((0, 1), (1, 0), (0, -1), (-1, 0), (0, 0))

    def moves(at, a):
        return tuple(min(max(z + d, 0), size - 1) for z, d in zip(at, steps[a], strict=True))

    def earned(at, a, to):
        if at != to or not set(at) <= {0, size - 1}:
            return other
        return best if at[0] != at[1] else least

    return arrays((0, 0), moves, 5, lazy, random, earned)


def walker(allowed, lazy, random):
    """One that goes forward, or turns to either side, on the cells that are allowed."""
    steps = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def moves(at, a):
        (x, y), d = at
        if a:
            return (x, y), (d + (1 if a == 1 else -1)) % 4
        to = x + steps[d][0], y + steps[d][1]
        return (to if to in allowed else (x, y)), d

    return arrays(((0, 0), 0), moves, 3, lazy, random)


def empty(size, lazy, random, stochastic):
    return walker(set(product(range(size), repeat=2)), lazy, random)


def rooms(size, many, lazy, random, stochastic):
    """Square rooms of this size, with a door in the middle of every wall between two."""
    row = round(many**0.5)
    middle = [j * (size + 1) + size // 2 for j in range(row)]
    wall = [j * (size + 1) - 1 for j in range(1, row)]
    inside = {z for j in range(row) for z in range(j * (size + 1), j * (size + 1) + size)}
    return walker(set(product(inside, inside)) | set(product(wall, middle)) | set(product(middle, wall)), lazy, random)


def diameter(P, states):
    """The largest least expected time to a state, by value iteration from below. Of a walker's cells those of a quarter
    are enough: every other one is one of them on the square turned around."""
    middle = max(max(x[0]) for x in states) / 2 if isinstance(states[0], tuple) and np.ndim(states[0][0]) else np.inf
    targets = np.array([i for i, x in enumerate(states) if middle == np.inf or max(x[0]) <= middle])
    X, A, _ = P.shape
    kernels, tau = [csr_array(P[:, a]) for a in range(A)], np.zeros((X, len(targets)))
    while True:
        new = 1 + np.minimum.reduce([kernel @ tau for kernel in kernels])
        new[targets, np.arange(len(targets))] = 0
        if np.abs(new - tau).max() < 1e-6:
            return new.max()
        tau = new


def their_value_norm(P, V):
    """What Colosseum computes and calls the environmental value norm, with V* at gamma = .99:

        max_{x, a} sqrt(sum_y P(y | x, a) (V(y) - (P V)(y, a))^2)

    It takes P V at y where the definition, the standard deviation of V under P(. | x, a), has it at x. Where all is
    deterministic, it has 0."""
    ahead = P @ V
    return np.sqrt(np.einsum("xay,ya->xa", P, (V[:, None] - ahead) ** 2)).max()


WIDE = (2 / 2.11, 0.3 / 49.3, 0.3 / 4.3)  # means of Beta(2, .11), Beta(.3, 49) and Beta(.3, 4)

# Family and its sizes, lazy, random, whether rewards are random: the diameter and the value norm of its cache, computed
# in single precision to 1e-3; none where the cache has none, or several by the seed.
PUBLISHED = [
    (river_swim, (80,), 0.001, 0.2, True, 98.6923, 0.780969),
    (river_swim, (80,), 0.1, 0.01, False, 88.6587, 0.992613),
    (river_swim, (30,), 0.1, 0.2, False, 40.1037, 0.896672),
    (river_swim, (25,), 0.1, 0, True, 26.6666, 0.878058),
    (river_swim, (10,), 0, 0.09, True, 9.83568, None),
    (river_swim, (10,), 0, 0.17, True, 10.7199, None),
    (river_swim, (10,), 0, 0.26, True, 11.9241, None),
    (river_swim, (10,), 0, 0.51, True, 17.3036, None),
    (river_swim, (10,), 0, 0.6, True, 20.6228, None),
    (river_swim, (10,), 0, 0, True, 9, None),
    (river_swim, (50,), 0.1, 0.1, True, 60.425, 0.830388),
    (river_swim, (90,), 0.03, 0, True, 91.7527, 0.87946),
    (deep_sea, (40,), 0, 0, False, 78, 0.0),
    (deep_sea, (35,), 0, 0, True, 68, 0.946766),
    (deep_sea, (40,), 0, 0, True, 78, 0.953879),
    (deep_sea, (20,), 0, 0.1, False, 70.9627, 0.957925),
    (simple_grid, (20,), 0.1, 0.1, False, 46.4996, 0.476409),
    (simple_grid, (25,), 0.3, 0, False, 68.5702, 0.49575),
    (simple_grid, (15,), 0.4, 0.4, True, 75.0722, 0.634391),
    (simple_grid, (8,), 0, 0.09, True, 15.2483, None),
    (simple_grid, (8,), 0, 0.17, True, 16.5872, None),
    (simple_grid, (8,), 0, 0.34, True, 20.4993, None),
    (simple_grid, (5,), 0, 0.51, True, 15.2512, None),
    (simple_grid, (8,), 0, 0.6, True, 32.6665, None),
    (simple_grid, (25,), 0.1, 0, WIDE, 53.3327, 0.87616),
    (simple_grid, (5,), 0, 0.09, True, 8.7094, None),
    (simple_grid, (5,), 0, 0.17, True, 9.46364, None),
    (simple_grid, (5,), 0, 0.26, True, 10.4984, None),
    (simple_grid, (8,), 0, 0.26, True, 18.4377, None),
    (simple_grid, (5,), 0, 0.34, True, 11.6444, None),
    (simple_grid, (8,), 0, 0.51, True, 27.0212, None),
    (simple_grid, (5,), 0, 0, True, 8, None),
    (simple_grid, (8,), 0, 0, True, 14, None),
    (simple_grid, (10,), 0.2, 0.01, False, 22.7043, 0.529683),
    (simple_grid, (15,), 0.2, 0, WIDE, 34.9997, 0.873735),
    (simple_grid, (16,), 0.065, 0, False, 32.0854, 0.499311),
    (simple_grid, (5,), 0, 0.43, True, 13.2988, None),
    (simple_grid, (8,), 0, 0.43, True, 23.4778, None),
    (empty, (12,), 0.05, 0.495, True, 55.4838, None),
    (empty, (12,), 0.1, 0.395, True, 48.5555, None),
    (empty, (14,), 0.1, 0.6, True, 86.7276, None),
    (empty, (12,), 0.25, 0, True, 34.6657, None),
    (empty, (8,), 0.7, 0, True, 59.996, None),
    (empty, (14,), 0.02, 0.4, True, 52.0243, None),
    (empty, (14,), 0.05, 0.31, True, 46.393, None),
    (empty, (10,), 0.1, 0.21, True, 31.0117, None),
    (empty, (12,), 0.3, 0, False, 37.1419, None),
    (empty, (8,), 0.3, 0, False, 25.7137, None),
    (empty, (12,), 0.7, 0, True, 86.662, None),
    (empty, (10,), 0.02, 0.7, False, 79.2357, None),
    (empty, (14,), 0.02, 0.6, True, 79.6475, None),
    (rooms, (3, 16), 0.4, 0.1, True, 64.1765, None),
    (rooms, (5, 9), 0.4, 0.3, False, 98.7664, None),
    (rooms, (3, 9), 0.5, 0, True, 51.9982, None),
    (rooms, (5, 9), 0.3, 0, True, 54.2847, None),
    (rooms, (5, 9), 0.5, 0, True, 75.9973, None),
]  # fmt: skip
