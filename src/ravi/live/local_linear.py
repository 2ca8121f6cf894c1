"""A Box is learned by how it moves: local linear regression, and a plan on a grid.

A cell of a grid is no state: where a step leads depends on the place within it. So what is learned is the move s' - s
of an observation s under an action, from the steps themselves: a linear function of s for all steps of the action, and
of what that leaves, another for the steps nearest to the centre of each cell. The centre, moved, lies between the
centres of other cells, and counts as those around it, with the weights of multilinear interpolation. That is an MDP
over the cells, whose optimum is near that of the Box where cells are small and moves smooth.

Where steps ended, in a coordinate, beyond all that went on, whatever lies there ends, by as few such sides as explain
most ends; any other move ends if the step that arrived nearest did. A move beyond all that was ever met, in a
coordinate, or out of a grid that was chosen, is not trusted: its pair stays where it is and earns the least
(`LocalLinear.model`). To explore, that is left out, and a pair without a step within CLOSE widths of a cell leads to a
state that always earns the most. A plan is the optimum of that MDP, made when steps have grown by GROWTH.

A grid that was given stays. One that was chosen (`ravi.live.grid_choice`) grows at resets to where steps left it,
within the bounds of the space; where there is none only when the last plan leads to nothing unknown, or it would grow
for ever. A step that leaves it where it may grow, or by more than half of it, is cut off: the environment begins anew,
with the larger grid and a plan for it. Moves out of it, where it may grow, are unknown too, so that exploration finds
the bounds; and it begins coarse: what counts as near is FAR of the grid where the space has bounds, and is halved
whenever nothing is unknown any more. Unknown actions of a cell are played evenly. Moves are drawn back to the bounds of
the space. Rewards are regressed of steps that went on; an end earns what the nearest one did, and lies no farther from
one than a step goes. The last fifth of the steps is played to earn, which shows where the plan is mistaken. At last the
grid moves to where its policy goes (`ravi.live.grid_choice`).

What is assumed: moves are smooth in s, but for a few places, and nearly without chance, since only their mean is
planned with; and cells are as wide as differences that matter. No guarantee speaks of the Box.

Atkeson, Moore and Schaal, "Locally Weighted Learning for Control", 1997 (the regression); Munos and Moore, "Variable
Resolution Discretization in Optimal Control", 2002 (interpolation on a grid).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from ravi.core import MDP, Array, Floats, Ints, Learner, Path, Problem, Until
from ravi.live.grid import Grid
from ravi.live.rewards import RewardRange
from ravi.runtime.ranges import Policy, Whole

FIRST = 200  # steps of uniform actions, before there is a plan
GROWTH = 1.3  # of steps between two plans
MOST = 100_000  # steps that are remembered, the last ones
CLOSE = 3.0  # widths of cells, from a step to a centre that is known by it
FAR = 0.25  # of a grid that was chosen: from where on a step tells nothing of others but by the line of all
RIDGE = 0.1  # for local slopes, in squares of widths of cells
TOL = 1e-3  # of values of a plan, in parts of H
SETTLED = 0.01  # of the discounted time: what a plan may spend in the unknown when nothing is left to explore
AT_LAST = (0.8, 0.85, 0.9, 0.95)  # parts of the steps at which plans are made to earn, of a grid that was chosen
EDGE = 1e-6  # of a width: what is beyond by less is not
ROOM = 2**21  # successors of an action, at most
WARM_UP = 500  # steps, of a grid that is chosen, and at most a quarter of all
MARGIN = 0.25  # of what was met, on either side
SAMPLE = 4096  # points that are looked at


class StepMemory(NamedTuple):
    """The steps: from where, by how much they moved, what they earned and whether they ended, and their actions."""

    before: Array  # coordinates, in widths of cells   (1, M, d)
    move: Array  # likewise                            (1, M, d)
    earned: Array  # in [0, 1]                         (1, M)
    ended: Array  # 0 or 1                             (1, M)
    action: Array  #                                   (1, M)
    seen: Whole  # steps                               (1,)
    policy: Policy  #                                  (1, X, A)

    def rescale(self, scale: float, shift: float) -> None:
        """A reward that was z in [0, 1] is scale z + shift from now on."""
        many = int(self.seen[0])
        self.earned[0, :many] = self.earned[0, :many] * scale + shift


class StepColumns(NamedTuple):
    """The steps that were observed."""

    before: Floats  # (m, d)
    move: Floats  # (m, d)
    earned: Floats  # (m,)
    ended: Floats  # (m,)
    action: Ints  # (m,)


class Moves(NamedTuple):
    """What observed steps say of any point."""

    before: Floats  # where they began      (m, d)
    arrived: Floats  # and where they led   (m, d)
    steps: list[Callable[[Floats], tuple[Floats, Floats, Array]]]  # by action, of points: targets, rewards, if known
    ends: Callable[[Floats], Array]  # of targets: whether a step that arrives there ends
    end_rewards: Callable[[Floats], Floats]  # of targets that end: what the nearest end earned


def observed_steps(s: StepMemory) -> StepColumns:
    many = min(int(s.seen[0]), s.action.shape[1])
    return StepColumns(*(each[0, :many] for each in s[:5]))


class LocalLinear:
    """Builds the learner of the cells of a grid; one more state, the last, is the end."""

    def __init__(self, grid: Grid, bounds: tuple[Floats, Floats] | None = None) -> None:
        """bounds: within which the grid grows with what is met; None: it stays."""
        self.planned = 0  # steps that were seen by the last plan
        self.settled = False  # whether the last plan led to nothing unknown
        self.bounds, self.bins = bounds, np.array(grid.bins)
        self.far = np.inf if bounds is None else FAR * float(self.bins.max())
        self.close = self.far if bounds is not None and np.isfinite(bounds).any() else CLOSE
        self.turns = np.arange(len(self.bins)) < grid.angles
        self._lay(grid)
        cells = np.stack(np.unravel_index(np.arange(grid.size), grid.bins), -1)
        self.centres = cells.astype(np.float64) + 0.5  # (X, d), in widths
        self.nearest = 2 * (len(self.bins) + 1)  # steps, of a local regression

    def _lay(self, grid: Grid) -> None:
        self.grid, self.low = grid, np.array(grid.low)
        self.width = (np.array(grid.high) - self.low) / self.bins
        self._inside: tuple[bool, list[float], list[float]] | None = None  # for observations, by whether all is settled

    @staticmethod
    def fits(grid: Grid) -> bool:
        """Whether there is room for the centres around every centre."""
        return grid.size * 2 ** len(grid.bins) <= ROOM

    def __call__(self, problem: Problem, steps: int) -> Learner:
        d, M = len(self.bins), min(steps + (WARM_UP if self.bounds is not None else 0), MOST)
        X, A = problem.rewards.shape

        def init(keys: Array) -> StepMemory:
            n = len(keys)
            before, move, earned, ended = (np.zeros((n, M, *more)) for more in ((d,), (d,), (), ()))
            action, seen = (np.zeros(shape, np.int64) for shape in ((n, M), n))
            return StepMemory(before, move, earned, ended, action, seen, np.full((n, X, A), 1 / A))

        def plan(s: StepMemory) -> StepMemory:
            if s.seen[0] < FIRST:
                return s
            from ravi.planning.solver import solve

            hope = self.bounds is None or s.seen[0] < AT_LAST[0] * steps
            model = self.model(s, problem, hope=hope)
            policy = solve(model, tol=TOL * problem.horizon).policy
            s.policy[0] = policy[:X]
            if self.bounds is not None and hope:
                from ravi.planning.occupancies import occupancy

                unknown = model.transitions[: X - 1, :, -1]  # 1 where a pair leads to the best state
                there = unknown.any(-1)
                s.policy[0, : X - 1][there] = unknown[there] / unknown[there].sum(-1, keepdims=True)
                self.settled = bool(occupancy(model, policy, tol=TOL).nu[-1] <= SETTLED)
                self.close, self.planned = self.close / (1 + self.settled), int(s.seen[0]) % M
            return s

        def add(s: StepMemory, path: Path) -> StepMemory:  # steps are added by `add_step`, as they are observed
            return s

        def until(s: StepMemory, time: Array) -> Until:
            due = np.maximum(FIRST, (GROWTH * time).astype(np.int64))
            if self.bounds is not None:
                due = np.minimum(due, min((int(p * steps) for p in AT_LAST if p * steps > time[0] + 1), default=steps))
            return Until(False, due)

        return Learner("smooth", init, plan, add, until, {"bins": self.grid.bins, "nearest": self.nearest})

    def add_step(self, s: StepMemory, before: Any, action: int, after: Any, earned: float, ended: bool) -> None:
        """A step, by the observations before and after."""
        i = int(s.seen[0]) % s.action.shape[1]
        at, then = (
            np.clip((np.array(self.grid.coordinates(each)) - self.low) / self.width, -self.bins, 2 * self.bins)
            for each in (before, after)
        )
        s.before[0, i], s.move[0, i] = at, self.wrapped(then - at)
        s.earned[0, i], s.ended[0, i], s.action[0, i] = earned, ended, action
        s.seen[0] += 1

    def leaves(self, observation: Any) -> bool:
        """Whether an observation lies outside a grid that was chosen: where it may grow, or by more than half of it."""
        if self._inside is None or self._inside[0] != self.settled:
            more = np.where(self.turns, np.inf, np.where(self._grows().all(0), 0.0, self.width * self.bins / 2))
            self._inside = self.settled, (self.low - more).tolist(), (np.array(self.grid.high) + more).tolist()
        _, low, high = self._inside
        return any(x < a or x > b for x, a, b in zip(self.grid.coordinates(observation), low, high, strict=True))

    def _grows(self) -> Array:
        """Whether the grid grows with what is met, below and above (2, d): towards a bound, or if all else is known."""
        assert self.bounds is not None
        return self.settled | np.isfinite(np.array(self.bounds))

    def grown(self, s: StepMemory) -> Ints | None:
        """A grid that was chosen grows to where steps since the last plan left it; see `resized`."""
        before, move = (each[self.planned :] for each in observed_steps(s)[:2])
        if self.bounds is None or len(before) < 2:
            return None
        at = self.low + (before + move) * self.width
        first, last = at.min(0), at.max(0)
        low, high = around(first, last, *self.bounds)
        down, up = self._grows()
        ends = np.array(self.grid.low), np.array(self.grid.high)
        low, high = np.where(down & (first < ends[0]), low, ends[0]), np.where(up & (last > ends[1]), high, ends[1])
        return self.resized(s, low, high)

    def resized(self, s: StepMemory, low: Floats, high: Floats) -> Ints | None:
        """The grid from `low` to `high`, but for angles. For each of its cells before, the one that its centre is in
        now; None where nothing changes. Steps and policy are laid out anew."""
        old, start, width = self.grid, self.low, self.width
        low, high = np.where(self.turns, start, low), np.where(self.turns, old.high, high)
        if (low == start).all() and (high == old.high).all():
            return None
        shape = (-1,) if old.angles else old.shape
        low, high, bins = (each.reshape(shape) for each in (low, high, self.bins))
        self._lay(Grid(low, high, bins, "clip", shape=old.shape, dtype=old.dtype.name, angles=old.angles))
        scale, shift = width / self.width, (start - self.low) / self.width
        s.before[0] = s.before[0] * scale + shift
        s.move[0] *= scale
        s.policy[0, :-1] = s.policy[0, self.cell((self.centres - shift) / scale)]
        return self.cell(self.centres * scale + shift)

    def within(self, targets: Floats) -> Floats:
        """The points within the bounds of the space, if the grid was chosen, that are nearest to targets (..., d)."""
        if self.bounds is None:
            return targets
        low, high = ((end - self.low) / self.width for end in self.bounds)
        return np.where(self.turns, targets, targets.clip(low, high))

    def cell(self, at: Floats) -> Ints:
        """The cells of points, in widths."""
        inside = np.clip(at.astype(np.int64), 0, self.bins - 1)
        return np.ravel_multi_index(tuple(inside.T), tuple(self.bins))

    def model(self, s: StepMemory, problem: Problem, *, hope: bool = False) -> MDP:
        """The MDP over the cells and the end. hope: and a best state, the last, to which unknown pairs lead."""
        X, A, d = self.grid.size, problem.actions, len(self.bins)
        moves = self.moves(s, A)
        targets, rewards, known = np.empty((X, A, d)), np.empty((X, A)), np.empty((X, A), bool)
        for a, step in enumerate(moves.steps):
            targets[:, a], rewards[:, a], known[:, a] = step(self.centres)
        ends = moves.ends(targets.reshape(X * A, d)).reshape(X, A)
        if self.bounds is not None and ends.any():
            rewards[ends] = moves.end_rewards(targets[ends])
        if not hope and len(moves.arrived):
            least, most = moves.arrived.min(0), moves.arrived.max(0)
            if self.bounds is not None:
                least, most = np.maximum(least, 0) - EDGE, np.minimum(most, self.bins) + EDGE
            unseen = ~self.turns & ((targets < least) | (targets > most))
            never = unseen.any(-1) & ~ends
            targets, rewards = np.where(never[..., None], self.centres[:, None], targets), np.where(never, 0.0, rewards)
        cells, weights = self._between(targets)
        states, more = X + 1 + hope, np.zeros((X, A, 1 + hope))
        lost = hope & ~known
        if hope and self.bounds is not None:
            down, up = self._grows() & ~self.turns
            beyond = (down & (targets < -EDGE)) | (up & (targets > self.bins + EDGE))
            lost |= beyond.any(-1) & ~ends
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
        after_end = RewardRange(*problem.units).part(0.0)
        earns = [np.where(lost, 1.0, rewards), np.full((1, A), after_end), np.ones((int(hope), A))]
        return MDP(
            rewards=np.concatenate(earns), successors=successors, transitions=transitions, discount=problem.discount,
            initial=np.concatenate([problem.initial, np.zeros(int(hope))]), units=problem.units,
            name=f"{problem.name}, as seen",
        )  # fmt: skip

    def moves(self, s: StepMemory, actions: int) -> Moves:
        """What the observed steps say of any point."""
        before, move, earned, ended, action = observed_steps(s)
        arrived, last = before + move, ended > 0

        def step_of(own: Array) -> Callable[[Floats], tuple[Floats, Floats, Array]]:
            if not own.any():
                return lambda at: (at, np.zeros(len(at)), np.zeros(len(at), bool))
            paid = self.paid(before[own], earned[own], last[own])
            regressed = self.regression(before[own], np.column_stack([move[own], paid]))
            reach = self.close if self.bounds is None else max(self.close, self.stride(move[own]))

            def step(at: Floats) -> tuple[Floats, Floats, Array]:
                found, distance = regressed(at)
                return self.within(at + found[:, :-1]), found[:, -1].clip(paid.min(), paid.max()), distance <= reach

            return step

        ended_at = cKDTree(self.flat(arrived[last]))

        def end_rewards(targets: Floats) -> Floats:
            return earned[last][ended_at.query(self.flat(targets))[1]]

        steps = [step_of(action == a) for a in range(actions)]
        return Moves(before, arrived, steps, self.ender(arrived, last, self.stride(move)), end_rewards)

    def paid(self, before: Floats, earned: Floats, ended: Array) -> Floats:
        """What steps earned, to be regressed: an end, where the grid was chosen, as the nearest step that went on."""
        if self.bounds is None or ended.all() or not ended.any():
            return earned
        paid = earned.copy()
        paid[ended] = earned[~ended][cKDTree(self.flat(before[~ended])).query(self.flat(before[ended]))[1]]
        return paid

    def stride(self, moved: Floats) -> float:
        """How far a step goes, and a width at least, where the grid was chosen; else it has no end."""
        if self.bounds is None or not len(moved):
            return np.inf
        return max(1.0, float(np.median(np.linalg.norm(moved[:, : len(self.bins)], axis=-1))))

    def regression(self, before: Floats, moved: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
        """What steps did, at points (k, d), as a function of them, with the distance of the nearest step."""
        flat = self.flat(before)
        ones = np.column_stack([np.ones(len(flat)), flat])
        ridge = 1e-6 * len(flat) * np.eye(ones.shape[1])
        line = np.linalg.solve(ones.T @ ones + ridge, ones.T @ moved)
        tree, rest, far = cKDTree(flat), moved - ones @ line, max(self.far, self.stride(moved))

        def at(points: Floats) -> tuple[Floats, Floats]:
            there = self.flat(points)
            many = np.arange(1, min(self.nearest, len(flat)) + 1)
            distance, near = tree.query(there, many, distance_upper_bound=far)
            found = np.column_stack([np.ones(len(there)), there]) @ line
            close = np.flatnonzero(np.isfinite(distance[:, 0]))  # to a step
            none = np.isinf(distance[close])
            near, square = np.where(none, 0, near[close]), np.where(none, far, distance[close]) ** 2
            off = self.wrapped(before[near] - points[close, None])  # (X, k, d)
            weight = np.where(none, 0.0, 1e-3 + 1 - square / (square[:, -1:] + 1e-12))
            local = np.concatenate([np.ones((*off.shape[:2], 1)), off], -1)
            weighted = (local * weight[..., None]).swapaxes(1, 2)
            steady = (RIDGE + near.shape[1] * square[:, 0])[:, None, None]  # far from all steps, there are no slopes
            slopes = steady * np.diag(np.arange(local.shape[-1]) > 0)
            found[close] += np.linalg.solve(weighted @ local + slopes, weighted @ rest[near])[:, 0]
            return found, distance[:, 0]

        return at

    def ender(self, arrived: Floats, ended: Array, far: float = np.inf) -> Callable[[Floats], Array]:
        """Whether a step ends, as a function of where it arrives (k, d). far: from where on one that ended tells
        nothing."""
        went_on = arrived[~ended]
        if not len(went_on) or not ended.any():
            return lambda targets: np.full(len(targets), ended.any())
        ends = np.where(np.tile(self.turns, 2), np.inf, np.concatenate([went_on.max(0), -went_on.min(0)]))
        beyond, unexplained = np.hstack([arrived, -arrived]) > ends, ended.copy()  # of steps that went on, none is
        sides = []
        while (most := (beyond & unexplained[:, None]).sum(0)).any():
            sides.append(int(most.argmax()))
            unexplained &= ~beyond[:, sides[-1]]
        inside = ~ended | unexplained
        tree, nearest_ended = cKDTree(self.flat(arrived[inside])), np.append(ended[inside], False)

        def at(targets: Floats) -> Array:
            outside = (np.hstack([targets, -targets]) > ends)[:, sides].any(-1)
            return outside | nearest_ended[tree.query(self.flat(targets), distance_upper_bound=far)[1]]

        return at

    def _between(self, targets: Floats) -> tuple[Ints, Floats]:
        """The cells around points, ascending, and their weights   (X, A, C)."""
        place = targets - 0.5
        place = np.where(self.turns, place, place.clip(0, self.bins - 1))
        base = np.where(self.turns, np.floor(place), np.minimum(np.floor(place), np.maximum(self.bins - 2, 0)))
        cells, weights = np.zeros((*targets.shape[:-1], 1), int), np.ones((*targets.shape[:-1], 1))
        for at, low, many in zip(np.moveaxis(place, -1, 0), np.moveaxis(base, -1, 0), self.bins, strict=True):
            if many == 1:
                continue
            above = at - low
            sides = (low[..., None] + np.arange(2)).astype(int) % many
            cells = (cells[..., None] * many + sides[..., None, :]).reshape(*at.shape, -1)
            weights = (weights[..., None] * np.stack([1 - above, above], -1)[..., None, :]).reshape(*at.shape, -1)
        if not self.turns.any():  # where nothing is beyond the last cell, they ascend
            return cells, weights
        order = np.argsort(cells, -1)
        return np.take_along_axis(cells, order, -1), np.take_along_axis(weights, order, -1)

    def wrapped(self, difference: Floats) -> Floats:
        """The difference of two coordinates; of angles, the shorter way round."""
        return np.where(self.turns, difference - self.bins * np.round(difference / self.bins), difference)

    def flat(self, at: Floats) -> Floats:
        """Coordinates in which distances are lengths: an angle is a point of a circle."""
        radius = self.bins / (2 * np.pi)
        circles = [f(at / radius)[..., self.turns] * radius[self.turns] for f in (np.cos, np.sin)]
        return np.concatenate([*circles, at[..., ~self.turns]], -1)


def middle(at: Floats) -> tuple[Floats, Floats]:
    """Between which ends 98 % of points (n, d) lie, by coordinate."""
    first, last = np.quantile(at[:: 1 + len(at) // SAMPLE], [0.01, 0.99], axis=0)
    return first, last


def around(first: Floats, last: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """A box with a margin about these ends, within `low` and `high`."""
    more = np.where(last > first, MARGIN * (last - first), np.maximum(1.0, np.abs(first)))
    return np.maximum(first - more, low), np.minimum(last + more, high)
