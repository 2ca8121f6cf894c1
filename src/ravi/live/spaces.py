"""The numbering of a space of Gymnasium.

A finite space has a numbering of its own (`ravi.live.numberings`); a Box needs a `Grid` that cuts it into cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ravi.live.grid import Grid
from ravi.live.numberings import Digits, Discrete, Parts, Space
from ravi.validation import InputError, require_memory

LEVELS = {1: 5, 2: 3}  # of each coordinate of actions that are a Box, by how many it has
LONG = 1000  # whole numbers: an array of more is an image, of which none is met twice
INSIDE = 1 - 1e-6  # of a margin: what rounds stays inside the Box


def space_of(space: Any, grid: Grid | Mapping[Any, Grid] | None = None) -> Space:
    """The numbering of a space of Gymnasium.

    A Box needs a grid. In a Dict or a Tuple, `grid` gives the grid of each part that is a Box, by its key or place.
    """
    kind = kind_of(space)
    if kind in ("Tuple", "Dict"):
        return _parts_of(space, kind, grid)
    if kind == "Box":
        if not isinstance(grid, Grid):
            raise InputError(
                f"{space} has no numbering of its own: give a Grid(low, high, bins) that cuts it into cells"
            )
        return grid.over(space.shape, space.dtype)
    if grid is not None:
        raise InputError(f"a grid is given, but {space} is no Box")
    if kind == "Discrete":
        return Discrete(int(space.n), int(space.start))
    if kind == "MultiDiscrete":
        starts = space.start.ravel().tolist()
        return Digits(space.nvec.ravel().tolist(), starts, space.nvec.shape, np.dtype(space.dtype).name)
    if kind == "MultiBinary":
        entries = math.prod(space.shape)
        require_memory(100 * entries, f"the numbering of {space}", "its size")
        return Digits([2] * entries, [0] * entries, space.shape, np.dtype(space.dtype).name)
    raise InputError(
        f"{space} has no numbering here: Discrete, MultiDiscrete, MultiBinary, Tuple and Dict of them have one, and a "
        "Box with a grid; observations get numbers as they occur with discover=True (--discover)"
    )


def levels_of(space: Any) -> Grid | None:
    """Of actions that are a Box of one or two coordinates, LEVELS of each, the ends among them; None of others."""
    if kind_of(space) != "Box":
        return None
    low, high, size = np.asarray(space.low, float), np.asarray(space.high, float), math.prod(space.shape)
    if size not in LEVELS or not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
        raise InputError(
            f"{space} is continuous, and learners here choose among finitely many: a wrapper says which "
            "(gymnasium.wrappers.TransformAction, to a Discrete space). Bounds and one or two coordinates are enough "
            f"for {' or '.join(map(str, LEVELS.values()))} levels of each"
        )
    bins = LEVELS[size]
    more = (high - low) / (2 * bins - 2) * INSIDE  # so that the first and the last centre are the ends
    return Grid(low - more, high + more, np.full(space.shape, bins), shape=space.shape)


def levels_in_words(plain: Mapping[str, Any]) -> str | None:
    """The levels of actions that are a Box, as `levels_of` chose them; None of other actions."""
    if plain["kind"] != "grid":
        return None
    grid = space_from(plain)
    ends = ("[" + ", ".join(f"{x:.3g}" for x in grid.observation(i).ravel()) + "]" for i in (0, grid.size - 1))
    return f"{' x '.join(map(str, plain['bins']))} levels from {' to '.join(ends)} of a Box; a wrapper says others"


def kind_of(space: Any) -> str | None:
    """The name of the Gymnasium space that this is, or is a subclass of."""
    known = ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Tuple", "Dict")
    for base in type(space).__mro__:
        if base.__name__ in known and base.__module__.startswith("gymnasium."):
            return base.__name__
    return None


def count_of(space: Any) -> float:
    """How many observations a space has: inf where they cannot be listed, nan where a part is continuous."""
    kind = kind_of(space)
    if kind in ("Tuple", "Dict"):
        return math.prod(map(count_of, space.spaces.values() if kind == "Dict" else space.spaces))
    if kind == "Discrete":
        return float(space.n)
    if kind == "MultiDiscrete":
        return math.prod(space.nvec.ravel().astype(float).tolist())
    if kind == "MultiBinary":
        return 2.0 ** min(math.prod(space.shape), 1000)
    if kind == "Box" and (np.dtype(space.dtype).kind == "f" or math.prod(space.shape) > LONG):
        return math.nan
    return math.inf


def _parts_of(space: Any, kind: str, grid: Any) -> Space:
    parts = dict(space.spaces.items() if kind == "Dict" else enumerate(space.spaces))
    if isinstance(grid, Grid):
        raise InputError(f"{space} has parts: give the grids of its boxes by {'key' if kind == 'Dict' else 'place'}")
    grids = {} if grid is None else dict(grid)
    for key in grids:
        if key not in parts:
            raise InputError(f"grid names {key!r}, but the parts of {space} are {', '.join(map(repr, parts))}")
    if kind == "Dict" and not all(isinstance(key, str) for key in parts):
        raise InputError(f"{space} has keys that are not texts")
    spaces = [space_of(part, grids.get(key)) for key, part in parts.items()]
    return Parts(spaces, list(parts) if kind == "Dict" else None)


def space_from(plain: Mapping[str, Any]) -> Space:
    """The space that `plain` describes."""
    makers = {"discrete": Discrete, "digits": Digits, "parts": Parts, "grid": Grid}
    try:
        given = dict(plain)
        make = makers[given.pop("kind")]
        if make is Parts:
            given["spaces"] = [space_from(part) for part in given["spaces"]]
        elif make is Grid:
            shape = tuple(given["shape"]) if not given.get("angles") else (-1,)
            given |= {name: np.array(given[name]).reshape(shape) for name in ("low", "high", "bins")}
        return make(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{plain!r} describes no space ({error})") from None
