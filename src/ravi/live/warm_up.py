"""Which cells and which rewards has a Box of which nothing is known? Those that a warm-up of random steps suggests.

A random action is held for 1, 2, 4, ..., or HELD steps, each as likely, so that the steps get about; a reset follows
each with probability 1 - gamma. Of each coordinate the box is where 98 % of the steps began, and a quarter of that more
on either side, within the bounds of the space. Pairs of coordinates at the front that are always the cosine and the
sine of an angle are that angle. There are some 15,000 to 40,000 cells, fewer in one or two dimensions (`BINS`), as many
of each coordinate that varied. The rewards are those that were met, and 0, which is earned after an end.

All that is provisional: the box follows what is met later (`ravi.live.boxes`), and so does the range of rewards. The
warm-up counts: the learner is told its steps, and makes so many fewer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Floats
from ravi.live.environment import Environment
from ravi.live.grid import Grid
from ravi.live.spaces import space_from
from ravi.runtime import archive
from ravi.validation import InputError, StreamError

if TYPE_CHECKING:
    from ravi.live.agent import Agent
    from ravi.live.boxes import Smooth

STEPS = 500  # of the warm-up, and at most a quarter of all
RESET = 0.02  # the probability of a reset after a step
HELD = 32  # steps of an action, at most
BINS = {1: 200, 2: 60, 3: 25, 4: 14, 5: 7, 6: 5}  # of a coordinate, by how many vary
MARGIN = 0.25  # of what was met, on either side
SAMPLE = 4096  # points that are looked at
MOST = 64  # coordinates of an observation, whether they vary or not
UNIT = 1e-5  # how far from 1 the squares of a cosine and a sine may add up to


class Met(NamedTuple):
    """A step of the warm-up."""

    before: Any
    action: int
    after: Any
    reward: float
    ended: bool


class Found(NamedTuple):
    """What the warm-up observed, and the grid chosen by it."""

    grid: Grid
    bounds: tuple[Floats, Floats]  # of its coordinates, by the space: the grid stays within
    rewards: tuple[float, float]
    met: list[Met]

    def tell(self, smooth: Smooth, live: Agent) -> None:
        """Tell a learner that begins what was met."""
        for i, (before, action, after, reward, ended) in enumerate(self.met):
            try:
                part = live.range.part(reward)
            except InputError as error:
                raise StreamError(f"{live.table.told.name}, step {i + 1}: the reward {error}") from None
            smooth.tell(live.state, before, action, after, part, ended)


def chosen_by(stream: Environment, steps: int, checkpoint: str | PathLike[str] | None) -> Found:
    """The grid and the rewards of a stream whose Box is one cell (`whole`): by a warm-up, or, where it exists, by the
    checkpoint of the same call."""
    if stream.terminal is None:
        raise InputError("termination='restart' takes cells for states: give grid=ravi.Grid(low, high, bins)")
    if checkpoint is not None and (path := validation.path(checkpoint, "checkpoint")).exists():
        header, _ = archive.read(path, "agent")
        try:
            at = header["extra"]["environment"]
            grid, rewards = space_from(at["observations"]), validation.units(header["problem"]["units"])
            stream.looked = validation.whole(at["looked"], "looked", 0)
        except (KeyError, TypeError) as error:
            raise InputError(f"cannot go on from {path}: its grid was not chosen (it has no {error})") from None
        if not isinstance(grid, Grid):
            raise InputError(f"cannot go on from {path}: its observations are no grid")
        found = Found(grid, _bounds(stream.env.observation_space, grid.angles), rewards, [])
    else:
        found = warm_up(stream, steps)
        stream.looked = stream.steps
    stream.cut(found.grid)
    return found


def words_of(grid: Mapping[str, Any]) -> str:
    """The grid of a stream in words, with how to say another."""
    ends = ("[" + ", ".join(f"{end:.3g}" for end in grid[name]) + "]" for name in ("low", "high"))
    cells = " x ".join(map(str, grid["bins"]))
    return f"{cells} cells from {' to '.join(ends)}, by what was met; grid= or --bins, --low and --high say others"


def whole(space: Any) -> Grid:
    """A Box as one cell, to begin with."""
    if np.dtype(space.dtype).kind != "f":
        raise InputError(f"{space} has whole numbers: discover=True takes those that are met for states")
    if math.prod(space.shape) > MOST:
        raise _too_many(space, math.prod(space.shape))
    return Grid(np.full(space.shape, -1.0), np.full(space.shape, 1.0), np.ones(space.shape, np.int64), "clip")


def warm_up(stream: Environment, steps: int) -> Found:
    """Random steps in an environment, before `steps` of a learner; its Box is one cell (`whole`)."""
    rng, met = np.random.default_rng([stream.seed, 1]), list[Met]()
    reset, action, held = True, 0, 0
    for _ in range(min(STEPS, steps // 4)):
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
        met.append(Met(stream.before, action, stream.after, reward, ended))
        held -= 1
        reset = ended or cut or bool(rng.random() < RESET)
    if not met:
        stream.reset()
    at = np.array([each.before for each in met] or [stream.after], np.float64)
    at = at.reshape(len(at), -1)
    if not np.isfinite(at).all():
        raise StreamError(f"{stream.name}: an observation of its first {len(met)} steps is not finite")
    return Found(*_cells(stream.env.observation_space, at), _range([each.reward for each in met]), met)


def middle(at: Floats) -> tuple[Floats, Floats]:
    """Between which ends 98 % of points (n, d) lie, by coordinate."""
    first, last = np.quantile(at[:: 1 + len(at) // SAMPLE], [0.01, 0.99], axis=0)
    return first, last


def around(first: Floats, last: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """A box with a margin about these ends, within `low` and `high`."""
    more = np.where(last > first, MARGIN * (last - first), np.maximum(1.0, np.abs(first)))
    return np.maximum(first - more, low), np.minimum(last + more, high)


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
