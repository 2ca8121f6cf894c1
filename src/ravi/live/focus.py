"""On which grid is the last plan made, where the grid was chosen? The one whose policy does best in simulation.

To explore, a grid is as wide as what may be met; a plan needs small cells where its policy goes. So at last two others
are tried: one around the later half of the steps, one around where the best policy goes in the model over cells. Each
policy is simulated by the regression of moves itself (`ravi.live.boxes`), without cells, from places where the
environment began; beyond all that was ever met nothing is earned. The smaller of those that are as good as any of the
three takes the place of the grid, and again, ROUNDS times at most. Cells are at least PART of a step wide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from ravi.core import Array, Floats, Ints, Problem
from ravi.live.boxes import TOL, Smooth, State, told
from ravi.live.rewards import Range
from ravi.live.warm_up import around, middle
from ravi.planning.occupancies import occupancy
from ravi.planning.solver import solve

if TYPE_CHECKING:
    from ravi.live.agent import Agent

PART = 0.25  # of a step, the width of a cell at least
SLACK = 1e-3  # of the horizon: by what a policy on a smaller grid may be worse
STARTS, STEPS = 50, 500  # that are simulated, at most
ROUNDS = 3

Box = tuple[Floats, Floats]


def focus(smooth: Smooth, live: Agent, lay: Callable[[Box], None]) -> None:
    """Lay the grid of an agent where its plan does best; `lay` does so, with all that depends on it."""
    here = np.array(smooth.grid.low), np.array(smooth.grid.high)
    value, goes = _planned(smooth, live.state, live.problem)
    for _ in range(ROUNDS):
        tried = []
        for box in _narrow(smooth, live.state, *middle(_later(live.state))), _narrow(smooth, live.state, *goes):
            lay(box)
            tried.append((*_planned(smooth, live.state, live.problem), box))
            lay(here)
        enough = max(value, *(each[0] for each in tried)) - SLACK * live.problem.horizon
        good = [each for each in tried if each[0] >= enough]
        if not good:
            return
        value, goes, here = min(good, key=lambda each: float(np.prod(each[2][1] - each[2][0])))
        lay(here)


def _later(s: State) -> Floats:
    before = told(s).before
    return before[len(before) // 2 :]


def _narrow(smooth: Smooth, s: State, first: Floats, last: Floats) -> Box:
    """A box about these ends, in widths, with cells that are not too small, within the grid."""
    centre, half = (first + last) / 2, (last - first) / 2
    half = np.maximum(half, PART / 2 * smooth.bins * np.quantile(np.abs(told(s).move), 0.9, axis=0))
    low, high = smooth.low + (centre - half) * smooth.width, smooth.low + (centre + half) * smooth.width
    return around(low, high, np.array(smooth.grid.low), np.array(smooth.grid.high))


def _planned(smooth: Smooth, s: State, problem: Problem) -> tuple[float, Box]:
    """What the best policy of the model over cells is worth in simulation, and where it goes, in widths."""
    model = smooth.model(s, problem)
    policy = solve(model, tol=TOL * problem.horizon).policy
    share, cells = occupancy(model, policy, tol=TOL).nu[:-1], smooth.centres.astype(np.int64)
    parts = [np.bincount(cells[:, i], share, n).cumsum() for i, n in enumerate(smooth.bins)]
    ends = np.array([np.searchsorted(part, [0.01 * part[-1], 0.99 * part[-1]]) for part in parts]).T
    return _simulated(smooth, s, problem, policy.argmax(-1)), (ends[0] + 0.0, np.minimum(ends[1] + 1.0, smooth.bins))


def _simulated(smooth: Smooth, s: State, problem: Problem, policy: Ints) -> float:
    """The discounted rewards of a policy (X,), in parts of [0, 1], by the regression of moves."""
    before, move, earned, ended, action = told(s)
    arrived, last = before + move, ended > 0
    steps = [_steps(smooth, before, move, earned, last, action == a) for a in range(problem.actions)]
    ender, of_ends = (
        smooth.ender(arrived, last, smooth.stride(move)),
        cKDTree(smooth.flat(arrived[last])) if last.any() else None,
    )
    least, most = (np.where(smooth.turns, sign * np.inf, end) for sign, end in
                   ((-1, arrived.min(0)), (1, arrived.max(0))))  # fmt: skip
    after = Range(*problem.units).part(0.0) * problem.horizon  # an end
    jumps = np.abs(smooth.wrapped(before[1:] - arrived[:-1])).max(-1) > 1e-6
    at = (before[1:][jumps] if jumps.any() else before[:1])[-STARTS:]
    many, total, weight = len(at), 0.0, 1.0
    for _ in range(STEPS):
        chosen, target, reward = policy[smooth.cell(at)], np.empty(at.shape), np.empty(len(at))
        for a, step in enumerate(steps):
            if (own := chosen == a).any():
                target[own], reward[own] = step(at[own])
        ends = ender(target)
        if of_ends is not None and ends.any():
            reward[ends] = earned[last][of_ends.query(smooth.flat(target[ends]))[1]] + problem.discount * after
        goes = ~ends & (target >= least).all(-1) & (target <= most).all(-1)
        total += weight * float(reward[ends | goes].sum())
        at, weight = target[goes], weight * problem.discount
        if not len(at):
            break
    return total / many


def _steps(
    smooth: Smooth, before: Floats, move: Floats, earned: Floats, last: Array, own: Array
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Where steps of an action lead from points, and what they earn where they do not end."""
    if not own.any():
        return lambda at: (at, np.zeros(len(at)))
    moves, on = smooth.regression(before[own], move[own]), own & ~last
    paid = smooth.regression(before[on], earned[on, None]) if on.any() else None

    def step(at: Floats) -> tuple[Floats, Floats]:
        reward = np.zeros(len(at)) if paid is None else paid(at)[0][:, 0].clip(earned[on].min(), earned[on].max())
        return at + moves(at)[0], reward

    return step
