"""The grid of a Box of which nothing is known: chosen by a warm-up, and moved at last to where its policy goes.

The warm-up holds a random action for 1, 2, 4, ..., or HELD steps, each as likely, so that the steps get about; a reset
follows each with probability 1 - gamma. Of each coordinate the box is where 98 % of the steps began, and a quarter of
that more on either side, within the bounds of the space. Pairs of coordinates at the front that are always the cosine
and the sine of an angle are that angle. There are some 15,000 to 40,000 cells, fewer in one or two dimensions (`BINS`),
as many of each coordinate that varied. The rewards are those that were met, and 0, which is earned after an end. All
that is provisional: the box follows what is met later (`ravi.live.local_linear`), and so does the range of rewards. The
warm-up counts: the learner is told its steps, and makes so many fewer.

To explore, a grid is as wide as what may be met; a plan needs small cells where its policy goes, since interpolation
between wide ones blurs what a step does. So at last (`focus`) the policy is simulated by the regression of moves
itself, without cells, from places where the environment began; beyond all that was ever met nothing is earned. A grid
around where it went, with a margin, gives the next policy, ROUNDS times; one that is better in simulation, by SLACK at
least, is taken. What leaves such a grid is not trusted, or a plan would take its edge for a wall. Cells are at least
PART of a step wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Floats, Ints, Problem
from ravi.live.encoders import encoder_from
from ravi.live.environment import Environment
from ravi.live.grid import Grid
from ravi.live.local_linear import EDGE, TOL, WARM_UP, LocalLinear, StepMemory, around, middle, observed_steps
from ravi.live.rewards import RewardRange
from ravi.planning.solver import solve
from ravi.runtime import archive
from ravi.validation import InputError, StreamError

if TYPE_CHECKING:
    from ravi.live.agent import Agent

RESET = 0.02  # the probability of a reset after a step
HELD = 32  # steps of an action, at most
BINS = {1: 200, 2: 60, 3: 25, 4: 14, 5: 7, 6: 5}  # of a coordinate, by how many vary
MOST = 64  # coordinates of an observation, whether they vary or not
UNIT = 1e-5  # how far from 1 the squares of a cosine and a sine may add up to
PART = 0.25  # of a step, the width of a cell at least
SLACK = 0.01  # of the horizon: by what another grid is better at least, since starts may be met that were not
STARTS, STEPS = 50, 500  # that are simulated, at most
ROUNDS = 3

Box = tuple[Floats, Floats]


class WarmUpStep(NamedTuple):
    """A step of the warm-up."""

    before: Any
    action: int
    after: Any
    reward: float
    ended: bool


class FoundGrid(NamedTuple):
    """What the warm-up observed, and the grid chosen by it."""

    grid: Grid
    bounds: Box  # of its coordinates, by the space: the grid stays within
    rewards: tuple[float, float]
    steps: list[WarmUpStep]

    def add_to(self, live: Agent) -> None:
        """Add the steps of the warm-up to a learner that begins."""
        assert isinstance(live.source, LocalLinear)
        for i, (before, action, after, reward, ended) in enumerate(self.steps):
            try:
                part = live.range.part(reward)
            except InputError as error:
                raise StreamError(f"{live.table.problem.name}, step {i + 1}: the reward {error}") from None
            live.source.add_step(live.state, before, action, after, part, ended)


def choose_grid(stream: Environment, steps: int, checkpoint: Path | None) -> FoundGrid:
    """The grid and the rewards of a stream whose Box is one cell (`one_cell`): by a warm-up, or, where it exists, by
    the checkpoint of the same call."""
    if stream.terminal is None:
        raise InputError("termination='restart' takes cells for states: give grid=ravi.Grid(low, high, bins)")
    if checkpoint is not None and checkpoint.exists():
        header, _ = archive.read(checkpoint, "agent")
        try:
            at = header["extra"]["environment"]
            grid, rewards = encoder_from(at["observations"]), validation.units(header["problem"]["units"])
            stream.looked = validation.whole(at["looked"], "looked", 0)
        except (KeyError, TypeError) as error:
            raise InputError(f"cannot go on from {checkpoint}: its grid was not chosen (it has no {error})") from None
        if not isinstance(grid, Grid):
            raise InputError(f"cannot go on from {checkpoint}: its observations are no grid")
        found = FoundGrid(grid, _bounds(stream.env.observation_space, grid.angles), rewards, [])
    else:
        found = warm_up(stream, steps)
        stream.looked = stream.steps
    stream.cut(found.grid)
    return found


def one_cell(space: Any) -> Grid:
    """A Box as one cell, to begin with."""
    if np.dtype(space.dtype).kind != "f":
        raise InputError(f"{space} has whole numbers: discover=True takes those that are met for states")
    if math.prod(space.shape) > MOST:
        raise _too_many(space, math.prod(space.shape))
    return Grid(np.full(space.shape, -1.0), np.full(space.shape, 1.0), np.ones(space.shape, np.int64), "clip")


def warm_up(stream: Environment, steps: int) -> FoundGrid:
    """Random steps in an environment, before `steps` of a learner; its Box is one cell (`one_cell`)."""
    rng, met = np.random.default_rng([stream.seed, 1]), list[WarmUpStep]()
    reset, action, held = True, 0, 0
    for _ in range(min(WARM_UP, steps // 4)):
        if reset:
            stream.reset()
        if reset or not held:
            action, held = int(rng.integers(stream.actions)), 2 ** int(rng.integers(HELD.bit_length()))
        try:
            successor, reward, cut = stream.step(action)
        except InputError:
            raise
        except Exception as error:
            raise StreamError(
                f"{stream.name}, step {stream.plays}: it raised {type(error).__name__}: {error}"
            ) from error
        ended = successor == stream.terminal
        met.append(WarmUpStep(stream.before, action, stream.after, reward, ended))
        held -= 1
        reset = ended or cut or bool(rng.random() < RESET)
    if not met:
        stream.reset()
    at = np.array([each.before for each in met] or [stream.after], np.float64)
    at = at.reshape(len(at), -1)
    if not np.isfinite(at).all():
        raise StreamError(f"{stream.name}: an observation of its first {len(met)} steps is not finite")
    return FoundGrid(*_cells(stream.env.observation_space, at), _range([each.reward for each in met]), met)


def _cells(space: Any, seen: Floats) -> tuple[Grid, tuple[Floats, Floats]]:
    turns = _angles(seen) if len(space.shape) == 1 else 0
    pairs, rest = seen[:, : 2 * turns].reshape(len(seen), turns, 2), slice(2 * turns, None)
    at = np.concatenate([np.arctan2(pairs[..., 1], pairs[..., 0]), seen[:, rest]], -1)
    varied = (np.ptp(at, axis=0) > 0) | (np.arange(at.shape[1]) < turns)
    many = max(int(varied.sum()), 1)
    if many > max(BINS):
        raise _too_many(space, many)
    bounds = _bounds(space, turns)
    low, high = around(*middle(at), *bounds)
    low[:turns], high[:turns] = -np.pi, np.pi
    bins = np.where(varied, BINS[many], 1)
    shape = (-1,) if turns else space.shape
    low, high, bins = (each.reshape(shape) for each in (low, high, bins))
    return Grid(low, high, bins, "clip", angles=turns).over(space.shape, space.dtype), bounds


def _bounds(space: Any, turns: int) -> tuple[Floats, Floats]:
    """The bounds of the coordinates of a grid whose first coordinates are angles."""
    low, high = (np.asarray(end, np.float64).ravel()[2 * turns :] for end in (space.low, space.high))
    return np.concatenate([np.full(turns, -np.pi), low]), np.concatenate([np.full(turns, np.pi), high])


def _angles(seen: Floats) -> int:
    """How many pairs at the front are cosines and sines, of angles that vary."""
    turns = 0
    while 2 * turns + 2 <= seen.shape[1]:
        pair = seen[:, 2 * turns : 2 * turns + 2]
        if np.abs((pair**2).sum(-1) - 1).max() > UNIT or not np.ptp(pair, axis=0).all():
            break
        turns += 1
    return turns


def _range(rewards: list[float]) -> tuple[float, float]:
    low, high = min(rewards, default=0.0), max(rewards, default=0.0)
    return (min(low, 0.0), max(high, 0.0)) if low or high else (0.0, 1.0)


def _too_many(space: Any, many: int) -> InputError:
    return InputError(
        f"{space} has {many} coordinates that may vary, and a grid of cells is for {max(BINS)} at most: leave those "
        "that matter (gymnasium.wrappers.TransformObservation), or take a library that learns by neural networks"
    )


# The last grid.


def focus(smooth: LocalLinear, live: Agent, lay: Callable[[Box], None]) -> None:
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


def _narrow(smooth: LocalLinear, s: StepMemory, first: Floats, last: Floats) -> Box:
    """A box about these ends, in widths, with cells that are not too small, within the bounds of the space."""
    assert smooth.bounds is not None
    centre, half = (first + last) / 2, (last - first) / 2
    half = np.maximum(half, PART / 2 * smooth.bins * np.quantile(np.abs(observed_steps(s).move), 0.9, axis=0))
    low, high = smooth.low + (centre - half) * smooth.width, smooth.low + (centre + half) * smooth.width
    return around(low, high, *smooth.bounds)


def _planned(smooth: LocalLinear, s: StepMemory, problem: Problem) -> tuple[float, Box]:
    """The simulated value of the best policy of the model over cells, and where it goes, in widths of a cell."""
    policy = solve(smooth.model(s, problem), tol=TOL * problem.horizon).policy
    value, places = _simulated(smooth, s, problem, policy.argmax(-1))
    return value, middle(places)


def _simulated(smooth: LocalLinear, s: StepMemory, problem: Problem, policy: Ints) -> tuple[float, Floats]:
    """The discounted rewards of a policy (X,), in parts of [0, 1], by the regression of moves, and where it goes."""
    moves = smooth.moves(s, problem.actions)
    before, arrived = moves.before, moves.arrived
    least, most = (np.where(smooth.turns, sign * np.inf, end) for sign, end in
                   ((-1, arrived.min(0)), (1, arrived.max(0))))  # fmt: skip
    after = RewardRange(*problem.units).part(0.0) * problem.horizon  # an end
    jumps = np.abs(smooth.wrapped(before[1:] - arrived[:-1])).max(-1) > 1e-6
    at = (before[1:][jumps] if jumps.any() else before[:1])[-STARTS:]
    many, total, weight, places = len(at), 0.0, 1.0, list[Floats]()
    for _ in range(STEPS):
        places.append(at)
        chosen, target, reward = policy[smooth.cell(at)], np.empty(at.shape), np.empty(len(at))
        for a, step in enumerate(moves.steps):
            if (own := chosen == a).any():
                target[own], reward[own], _ = step(at[own])
        ends = moves.ends(target)
        if ends.any():
            reward[ends] = moves.end_rewards(target[ends]) + problem.discount * after
        goes = ~ends & (target >= least - EDGE).all(-1) & (target <= most + EDGE).all(-1)
        total += weight * float(reward[ends | goes].sum())
        at, weight = target[goes], weight * problem.discount
        if not len(at):
            break
    return total / many, np.concatenate(places)
