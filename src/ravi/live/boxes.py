"""How is a Box learned, where nothing is said? By how it moves: local linear regression, and a plan on a grid.

A cell of a grid is no state: where a step leads depends on the place within it. So what is learned is the move s' - s
of an observation s under an action, from the steps themselves: a linear function of s for all steps of the action, and
of what that leaves, another for the steps nearest to the centre of each cell. The centre, moved, lies between the
centres of other cells, and counts as those around it, with the weights of multilinear interpolation. That is an MDP
over the cells, whose optimum is near that of the Box where cells are small and moves smooth.

Where steps ended, in a coordinate, beyond all that went on, whatever lies there ends, by as few such sides as explain
most ends; any other move ends if the step that arrived nearest did. A move beyond all that was ever met, in a
coordinate, is not trusted: its pair stays where it is and earns the least (`Smooth.model`). To explore, that is left
out, and a pair without a step within CLOSE widths of a cell leads to a state that always earns the most. A plan is the
optimum of that MDP, made when steps have grown by GROWTH.

What is assumed: moves are smooth in s, but for a few places, and nearly without chance, since only their mean is
planned with; and cells are as wide as differences that matter. No guarantee speaks of the Box.

Atkeson, Moore and Schaal, "Locally Weighted Learning for Control", 1997 (the regression); Munos and Moore, "Variable
Resolution Discretization in Optimal Control", 2002 (interpolation on a grid).
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from ravi.core import MDP, Array, Floats, Ints, Learner, Path, Problem, Until
from ravi.live.rewards import Range
from ravi.live.spaces import Grid
from ravi.ranges import Policy, Whole

FIRST = 200  # steps of uniform actions, before there is a plan
GROWTH = 1.3  # of steps between two plans
MOST = 100_000  # steps that are remembered, the last ones
CLOSE = 3.0  # widths of cells, from a step to a centre that is known by it
RIDGE = 0.1  # for local slopes, in squares of widths of cells
TOL = 1e-3  # of values of a plan, in parts of H
ROOM = 2**21  # successors of an action, at most


class State(NamedTuple):
    """The steps: from where, by how much they moved, what they earned and whether they ended, and their actions."""

    before: Array  # coordinates, in widths of cells   (1, M, d)
    move: Array  # likewise                            (1, M, d)
    earned: Array  # in [0, 1]                         (1, M)
    ended: Array  # 0 or 1                             (1, M)
    action: Array  #                                   (1, M)
    seen: Whole  # steps                               (1,)
    policy: Policy  #                                  (1, X, A)


class Smooth:
    """Builds the learner of the cells of a grid; one more state, the last, is the end."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.low, self.bins = np.array(grid.low), np.array(grid.bins)
        self.width = (np.array(grid.high) - self.low) / self.bins
        self.turns = np.arange(len(self.bins)) < grid.angles
        cells = np.stack(np.unravel_index(np.arange(grid.size), grid.bins), -1)
        self.centres = cells.astype(np.float64) + 0.5  # (X, d), in widths
        self.nearest = 2 * (len(self.bins) + 1)  # steps, of a local regression

    @staticmethod
    def fits(grid: Grid) -> bool:
        """Whether there is room for the centres around every centre."""
        return grid.size * 2 ** len(grid.bins) <= ROOM

    def __call__(self, problem: Problem, steps: int) -> Learner:
        d, M = len(self.bins), min(steps, MOST)
        X, A = problem.rewards.shape

        def init(keys: Array) -> State:
            n = len(keys)
            before, move, earned, ended = (np.zeros((n, M, *more)) for more in ((d,), (d,), (), ()))
            action, seen = (np.zeros(shape, np.int64) for shape in ((n, M), n))
            return State(before, move, earned, ended, action, seen, np.full((n, X, A), 1 / A))

        def plan(s: State) -> State:
            if s.seen[0] < FIRST:
                return s
            from ravi.planning.solver import solve

            s.policy[0] = solve(self.model(s, problem, hope=True), tol=TOL * problem.horizon).policy[:X]
            return s

        def add(s: State, path: Path) -> State:  # steps are told by `tell`, as they are observed
            return s

        def until(s: State, time: Array) -> Until:
            return Until(False, np.maximum(FIRST, (GROWTH * time).astype(np.int64)))

        return Learner("smooth", init, plan, add, until, {"bins": self.grid.bins, "nearest": self.nearest})

    def tell(self, s: State, before: Any, action: int, after: Any, earned: float, ended: bool) -> None:
        """A step, by the observations before and after."""
        i = int(s.seen[0]) % s.action.shape[1]
        at, then = (
            np.clip((np.array(self.grid.coordinates(each)) - self.low) / self.width, -self.bins, 2 * self.bins)
            for each in (before, after)
        )
        s.before[0, i], s.move[0, i] = at, self._wrapped(then - at)
        s.earned[0, i], s.ended[0, i], s.action[0, i] = earned, ended, action
        s.seen[0] += 1

    def model(self, s: State, problem: Problem, *, hope: bool = False) -> MDP:
        """The MDP over the cells and the end. hope: and a best state, the last, to which unknown pairs lead."""
        X, A, d = self.grid.size, problem.actions, len(self.bins)
        many = min(int(s.seen[0]), s.action.shape[1])
        before, move, earned, ended, action = (each[0, :many] for each in s[:5])
        targets, rewards, known = np.tile(self.centres[:, None], (1, A, 1)), np.zeros((X, A)), np.zeros((X, A), bool)
        for a in range(A):
            if (own := action == a).any():
                told_of = np.column_stack([move[own], earned[own]])
                found, known[:, a] = self._regressed(before[own], told_of)
                targets[:, a] += found[:, :d]
                rewards[:, a] = found[:, d].clip(told_of[:, d].min(), told_of[:, d].max())
        arrived = before + move
        ends = self._ends(arrived, ended > 0, targets.reshape(X * A, d)).reshape(X, A)
        if not hope and many:
            unseen = ~self.turns & ((targets < arrived.min(0)) | (targets > arrived.max(0)))
            never = unseen.any(-1) & ~ends
            targets, rewards = np.where(never[..., None], self.centres[:, None], targets), np.where(never, 0.0, rewards)
        cells, weights = self._between(targets)
        states, more = X + 1 + hope, np.zeros((X, A, 1 + hope))
        lost = hope & ~known
        more[..., 0] = np.where(lost, 0.0, ends)
        more[..., 1:] = lost[..., None]
        weights *= (1 - more.sum(-1))[..., None]
        corners = cells.shape[-1]
        successors = np.empty((states, A, corners + 1 + hope), np.int32)
        successors[:X, :, :corners], successors[X:, :, :corners] = cells, np.arange(corners)
        successors[..., corners:] = np.arange(X, states)
        transitions = np.zeros(successors.shape)
        transitions[:X] = np.concatenate([weights, more], -1)
        transitions[np.arange(X, states), :, np.arange(corners, corners + 1 + hope)] = 1.0
        after_end = Range(*problem.units).part(0.0)
        earns = [np.where(lost, 1.0, rewards), np.full((1, A), after_end), np.ones((int(hope), A))]
        return MDP(
            rewards=np.concatenate(earns), successors=successors, transitions=transitions, discount=problem.discount,
            initial=np.concatenate([problem.initial, np.zeros(int(hope))]), units=problem.units,
            name=f"{problem.name}, as seen",
        )  # fmt: skip

    def _regressed(self, before: Floats, moved: Floats) -> tuple[Floats, Array]:
        """What steps did, at every centre (X, m), and whether one of them was near."""
        flat, centres = self._flat(before), self._flat(self.centres)
        ones, at = np.column_stack([np.ones(len(flat)), flat]), np.column_stack([np.ones(len(centres)), centres])
        ridge = 1e-6 * len(flat) * np.eye(ones.shape[1])
        line = np.linalg.solve(ones.T @ ones + ridge, ones.T @ moved)
        distance, near = cKDTree(flat).query(centres, k=np.arange(1, min(self.nearest, len(flat)) + 1))
        left = (moved - ones @ line)[near]  # (X, k, m)
        off = self._wrapped(before[near] - self.centres[:, None])  # (X, k, d)
        square = distance**2
        weight = 1e-3 + 1 - square / (square[:, -1:] + 1e-12)
        local = np.concatenate([np.ones((*off.shape[:2], 1)), off], -1)
        weighted = (local * weight[..., None]).swapaxes(1, 2)
        steady = (RIDGE + near.shape[1] * square[:, 0])[:, None, None]  # far from all steps, there are no slopes
        slopes = steady * np.diag(np.arange(local.shape[-1]) > 0)
        return at @ line + np.linalg.solve(weighted @ local + slopes, weighted @ left)[:, 0], distance[:, 0] <= CLOSE

    def _ends(self, arrived: Floats, ended: Array, targets: Floats) -> Array:
        """Whether a step that arrives at a target ends."""
        went_on = arrived[~ended]
        if not len(went_on) or not ended.any():
            return np.full(len(targets), ended.any())
        ends = np.where(np.tile(self.turns, 2), np.inf, np.concatenate([went_on.max(0), -went_on.min(0)]))
        beyond, unexplained = np.hstack([arrived, -arrived]) > ends, ended.copy()  # of steps that went on, none is
        outside = np.zeros(len(targets), bool)
        while (most := (beyond & unexplained[:, None]).sum(0)).any():
            side = int(most.argmax())
            unexplained &= ~beyond[:, side]
            outside |= np.hstack([targets, -targets])[:, side] > ends[side]
        inside = ~ended | unexplained
        _, nearest = cKDTree(self._flat(arrived[inside])).query(self._flat(targets))
        return outside | ended[inside][nearest]

    def _between(self, targets: Floats) -> tuple[Ints, Floats]:
        """The cells around points, ascending, and their weights   (X, A, C)."""
        free = self.bins > 1
        place = targets - 0.5
        place = np.where(self.turns, place, place.clip(0, self.bins - 1))
        base = np.where(self.turns, np.floor(place), np.minimum(np.floor(place), np.maximum(self.bins - 2, 0))).astype(
            int
        )
        part = np.where(free, place - base, 0.0)
        sides = [range(2) if each else range(1) for each in free]
        corners = np.array(list(product(*sides)))  # (C, d)
        cells = np.ravel_multi_index(tuple(np.moveaxis((base[..., None, :] + corners) % self.bins, -1, 0)), self.bins)
        weights = np.where(corners == 1, part[..., None, :], 1 - part[..., None, :]).prod(-1)
        order = np.argsort(cells, -1)
        return np.take_along_axis(cells, order, -1), np.take_along_axis(weights, order, -1)

    def _wrapped(self, difference: Floats) -> Floats:
        """Of two coordinates: of angles, the shorter way."""
        return np.where(self.turns, difference - self.bins * np.round(difference / self.bins), difference)

    def _flat(self, at: Floats) -> Floats:
        """Coordinates in which distances are lengths: an angle is a point of a circle."""
        radius = self.bins / (2 * np.pi)
        circles = [f(at / radius)[..., self.turns] * radius[self.turns] for f in (np.cos, np.sin)]
        return np.concatenate([*circles, at[..., ~self.turns]], -1)
