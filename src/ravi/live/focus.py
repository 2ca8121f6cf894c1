"""On which grid is the last plan made, where the grid was chosen? The one whose policy does best in simulation.

To explore, a grid is as wide as what may be met; a plan needs small cells where its policy goes, since interpolation
between wide ones blurs what a step does. So at last the policy is simulated by the regression of moves itself
(`ravi.live.boxes`), without cells, from places where the environment began; beyond all that was ever met nothing is
earned. A grid around where it went, with a margin, gives the next policy, ROUNDS times; one that is better in
simulation, by SLACK at least, is taken. What leaves such a grid is not trusted, or a plan would take its edge for a
wall. Cells are at least PART of a step wide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from ravi.core import Array, Floats, Ints, Problem
from ravi.live.boxes import EDGE, TOL, Smooth, State, told
from ravi.live.rewards import Range
from ravi.live.warm_up import around, middle
from ravi.planning.solver import solve

if TYPE_CHECKING:
    from ravi.live.agent import Agent

PART = 0.25  # of a step, the width of a cell at least
SLACK = 0.01  # of the horizon: by what another grid is better at least, since starts may be met that were not
STARTS, STEPS = 50, 500  # that are simulated, at most
ROUNDS = 3

Box = tuple[Floats, Floats]


def focus(smooth: Smooth, live: Agent, lay: Callable[[Box], None]) -> None:
    """Lay the grid of an agent where its plan does best; `lay` does so, with all that depends on it."""
    best = np.array(smooth.grid.low), np.array(smooth.grid.high)
    most, goes = _planned(smooth, live.state, live.problem)
    for _ in range(ROUNDS):
        here = _narrow(smooth, live.state, *goes)
        lay(here)
        value, goes = _planned(smooth, live.state, live.problem)
        if value > most + SLACK * live.problem.horizon:
            best, most = here, value
    lay(best)


def _narrow(smooth: Smooth, s: State, first: Floats, last: Floats) -> Box:
    """A box about these ends, in widths, with cells that are not too small, within the bounds of the space."""
    assert smooth.bounds is not None
    centre, half = (first + last) / 2, (last - first) / 2
    half = np.maximum(half, PART / 2 * smooth.bins * np.quantile(np.abs(told(s).move), 0.9, axis=0))
    low, high = smooth.low + (centre - half) * smooth.width, smooth.low + (centre + half) * smooth.width
    return around(low, high, *smooth.bounds)


def _planned(smooth: Smooth, s: State, problem: Problem) -> tuple[float, Box]:
    """The simulated value of the best policy of the model over cells, and where it goes, in widths of a cell."""
    policy = solve(smooth.model(s, problem), tol=TOL * problem.horizon).policy
    value, places = _simulated(smooth, s, problem, policy.argmax(-1))
    return value, middle(places)


def _simulated(smooth: Smooth, s: State, problem: Problem, policy: Ints) -> tuple[float, Floats]:
    """The discounted rewards of a policy (X,), in parts of [0, 1], by the regression of moves, and where it goes."""
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
    many, total, weight, places = len(at), 0.0, 1.0, list[Floats]()
    for _ in range(STEPS):
        places.append(at)
        chosen, target, reward = policy[smooth.cell(at)], np.empty(at.shape), np.empty(len(at))
        for a, step in enumerate(steps):
            if (own := chosen == a).any():
                target[own], reward[own] = step(at[own])
        ends = ender(target)
        if of_ends is not None and ends.any():
            reward[ends] = earned[last][of_ends.query(smooth.flat(target[ends]))[1]] + problem.discount * after
        goes = ~ends & (target >= least - EDGE).all(-1) & (target <= most + EDGE).all(-1)
        total += weight * float(reward[ends | goes].sum())
        at, weight = target[goes], weight * problem.discount
        if not len(at):
            break
    return total / many, np.concatenate(places)


def _steps(
    smooth: Smooth, before: Floats, move: Floats, earned: Floats, last: Array, own: Array
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """The successors of points under an action, and the rewards of steps that do not end."""
    if not own.any():
        return lambda at: (at, np.zeros(len(at)))
    paid = smooth.paid(before[own], earned[own], last[own])
    found = smooth.regression(before[own], np.column_stack([move[own], paid]))

    def step(at: Floats) -> tuple[Floats, Floats]:
        there = found(at)[0]
        return smooth.within(at + there[:, :-1]), there[:, -1].clip(paid.min(), paid.max())

    return step
