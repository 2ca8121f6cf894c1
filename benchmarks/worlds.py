"""Environments of benchmarks/environments.md whose rewards nobody knows beforehand, with the exact value of a policy.

Rules are a function of a state and an action: [(probability, successor, reward, whether it is an end)]. Rules of
several are those of environments elsewhere, written anew (look-alikes): deep sea of bsuite; deep-sea-treasure and
resource-gathering of MO-Gymnasium, with the weights below; Dynamic-Obstacles of MiniGrid, seen from above and without
the discount that its rewards have.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from scipy.sparse import csc_matrix, csr_matrix, identity
from scipy.sparse.linalg import spsolve

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class Ruled(gymnasium.Env):
    """An environment by its rules. States are tuples, which are the observations too."""

    def __init__(self, starts, rules, observation_space, actions):
        self.starts, self.rules = starts, lru_cache(None)(rules)
        self.observation_space, self.action_space = observation_space, Discrete(actions)
        self.shown = {}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.starts[self.np_random.integers(len(self.starts))]
        return self._show(self.x), {}

    def step(self, action):
        rows, u = self.rules(self.x, int(action)), self.np_random.random()
        last = np.searchsorted(np.cumsum([row[0] for row in rows]), u, side="right")
        _, y, reward, end = rows[min(last, len(rows) - 1)]
        self.x = y
        return self._show(y), reward, end, False, {}

    def _show(self, x):
        if x not in self.shown:
            space = self.observation_space
            self.shown[x] = x[0] if isinstance(space, Discrete) else np.array(x, space.dtype)
        return self.shown[x]


class Table:
    """All that an environment by rules can do, for exact values of its policies."""

    def __init__(self, env, discount):
        self.env, self.discount, self.starts, self.states = env, discount, len(env.starts), list(env.starts)
        place, rows, columns, chances, A = {x: i for i, x in enumerate(env.starts)}, [], [], [], env.action_space.n
        rewards = []
        for i, x in enumerate(self.states):  # it grows
            for a in range(A):
                rewards.append(sum(p * reward for p, _, reward, _ in env.rules(x, a)))
                for p, y, _, end in env.rules(x, a):
                    if end:
                        continue
                    if y not in place:
                        place[y] = len(self.states)
                        self.states.append(y)
                    rows.append(i * A + a)
                    columns.append(place[y])
                    chances.append(p)
        X = len(self.states)
        self.P, self.r = csr_matrix((chances, (rows, columns)), (X * A, X)), np.array(rewards)
        V, before = np.zeros(X), np.full(X, np.inf)
        while abs(V - before).max() > 1e-9:
            V, before = (self.r + discount * (self.P @ V)).reshape(X, A).max(1), V
        self.optimum = V[: self.starts].mean()

    def value(self, action):
        """The discounted return where `action` gives the action of a state, as it is shown."""
        chosen = [action(self.env._show(x)) for x in self.states]
        rows = np.arange(len(chosen)) * self.env.action_space.n + chosen
        V = spsolve(csc_matrix(identity(len(chosen)) - self.discount * self.P[rows]), self.r[rows])
        return V[: self.starts].mean()


def grid(rows, columns):
    return Box(0, max(rows, columns), (2,), np.int32)


def deep_sea(n):
    """Which action is right differs from cell to cell; it costs .01 / n, and n times right earns 1 besides."""
    flipped = np.random.default_rng(n).integers(2, size=(n, n))

    def rules(x, a):
        row, column = divmod(x[0], n)
        right = a != flipped[row, column]
        reward = (-0.01 / n + (row == column == n - 1)) if right else 0.0
        column = min(column + 1, n - 1) if right else max(column - 1, 0)
        return [(1.0, (min(row + 1, n - 1) * n + column,), reward, row == n - 1)]

    return Ruled([(0,)], rules, Discrete(n * n), 2)


TREASURES = (
    (1, 0.7),
    (2, 8.2),
    (3, 11.5),
    (4, 14.0),
    (4, 15.1),
    (4, 16.1),
    (7, 19.6),
    (7, 20.3),
    (9, 22.4),
    (10, 23.7),
)


def deep_sea_treasure():
    """Half of a treasure, less half a step."""

    def rules(x, a):
        (row, column), (down, right) = x, MOVES[a]
        y = (row + down, column + right)
        if not (0 <= y[0] <= 10 and 0 <= y[1] <= 10) or (y[1] < 10 and y[0] > TREASURES[y[1]][0]):
            y = x
        found = y[1] < 10 and y[0] == TREASURES[y[1]][0]
        return [(1.0, y, (TREASURES[y[1]][1] if found else 0.0) / 2 - 0.5, found)]

    return Ruled([(0, 0)], rules, grid(11, 11), 4)


def resource_gathering():
    """Gold and a gem are each worth 1 at home; two enemies each end it with probability .1, which costs 1."""
    home, gold, gem, enemies = (4, 2), (0, 2), (1, 4), ((0, 3), (1, 2))

    def rules(x, a):
        (row, column, one, other), (down, right) = x, MOVES[a]
        row, column = min(max(row + down, 0), 4), min(max(column + right, 0), 4)
        one, other = int(one or (row, column) == gold), int(other or (row, column) == gem)
        y = (row, column, one, other)
        if (row, column) in enemies:
            return [(0.1, y, -1.0, True), (0.9, y, 0.0, False)]
        return [(1.0, y, float(one + other), True)] if (row, column) == home else [(1.0, y, 0.0, False)]

    return Ruled([(*home, 0, 0)], rules, Box(0, 4, (4,), np.int32), 4)


def dynamic_obstacles():
    """A room of 3 x 3 with two obstacles that move each step; turn, or go on: into one costs 1, the corner earns 1."""
    cells = list(itertools.product(range(3), range(3)))
    ways = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def moved(balls, free):
        """Obstacles move one after the other, each to a free cell beside it."""
        found = {balls: 1.0}
        for i in range(2):
            then = {}
            for before, p in found.items():
                b = before[i]
                near = [c for c in free if c not in before and max(abs(c[0] - b[0]), abs(c[1] - b[1])) == 1] or [b]
                for c in near:
                    after = (*before[:i], c, *before[i + 1 :])
                    then[after] = then.get(after, 0.0) + p / len(near)
            found = then
        return found

    def rules(x, a):
        at, way, balls = x[:2], x[2], (x[3:5], x[5:])
        front = (at[0] + ways[way][0], at[1] + ways[way][1])
        if a == 2 and (front in balls or front not in cells):
            return [(1.0, x, -1.0, True)]
        y, turned = (front, way) if a == 2 else (at, (way + (1 if a else 3)) % 4)
        if y == (2, 2):
            return [(1.0, x, 1.0, True)]
        free, rows = [c for c in cells if c not in (y, (2, 2))], {}
        for after, p in moved(balls, free).items():
            key = tuple(sorted(after))  # they look alike
            rows[key] = rows.get(key, 0.0) + p
        return [(p, (*y, turned, *one, *other), 0.0, False) for (one, other), p in rows.items()]

    starts = [(0, 0, 0, *one, *other) for one, other in itertools.combinations(cells[1:-1], 2)]
    return Ruled(starts, rules, Box(0, 3, (7,), np.uint8), 3)


LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def tic_tac_toe():
    """Against a player who plays at random. A win earns 1, a loss or a square that is taken -1."""

    def has_won(x, player):
        return any(all(x[i] == player for i in line) for line in LINES)

    def rules(x, a):
        if x[a]:
            return [(1.0, x, -1.0, True)]
        y = (*x[:a], 1, *x[a + 1 :])
        free = [i for i in range(9) if not y[i]]
        if has_won(y, 1) or not free:
            return [(1.0, y, float(has_won(y, 1)), True)]
        answers = [(*y[:i], 2, *y[i + 1 :]) for i in free]
        return [(1 / len(free), z, -float(has_won(z, 2)), has_won(z, 2) or all(z)) for z in answers]

    return Ruled([(0,) * 9], rules, MultiDiscrete([3] * 9), 9)


def inventory():
    """Stock from 0 to 41 and orders up to 10; Poisson demand with mean 4 that is lost if it is not met."""
    demand = [math.exp(-4) * 4**k / math.factorial(k) for k in range(60)]

    def rules(x, a):
        stock, rows = min(x[0] + a, 41), []
        cost = 1.0 * a + (2.0 if a else 0.0) + 0.1 * x[0]
        for sold in range(stock + 1):
            p = demand[sold] if sold < stock else 1.0 - sum(demand[:stock])
            rows.append((p, (stock - sold,), 3.0 * sold - cost, False))
        return [row for row in rows if row[0] > 1e-12]

    return Ruled([(0,)], rules, Discrete(42), 11)


def queue():
    """Up to 30 wait, each for 1 a step; a quicker server costs more."""

    def rules(x, a):
        length, served, cost = x[0], (0.2, 0.4, 0.6, 0.8)[a], (0.0, 1.0, 3.0, 6.0)[a]
        rows = {}
        for arrives, leaves in itertools.product((0, 1), repeat=2):
            p = (0.45 if arrives else 0.55) * (served if leaves else 1 - served)
            y = min(max(length - leaves, 0) + arrives, 30)
            rows[y] = rows.get(y, 0.0) + p
        return [(p, (y,), -float(length) - cost, False) for y, p in rows.items()]

    return Ruled([(0,)], rules, Discrete(31), 4)
