"""Which number has an observation, or an action? States and actions of a stream are 0, 1, ..., size - 1.

A space of Gymnasium that is finite has a numbering of its own: a Discrete space counts from its start, and a space of
several parts counts them like digits, the last part fastest. A Box has none; a `Grid` says how to cut it into cells.
A numbering is plain data (`plain`, `space_from`), so that checkpoints and policy files carry it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from operator import index
from typing import Any, Protocol

import numpy as np

from ravi import checks, memory
from ravi.checks import InputError

OUTSIDE = ("error", "clip")
MOST_CELLS = 2**31 - 1  # of a coordinate: more than there are numbers of states
LEVELS = {1: 5, 2: 3}  # of each coordinate of actions that are a Box, by how many it has
INSIDE = 1 - 1e-6  # of a margin: what rounds stays inside the Box
BLOCK = 2**16  # cells that are looked at together


class Space(Protocol):
    """Observations, or actions, by number."""

    @property
    def size(self) -> int: ...
    def number(self, observation: Any) -> int:
        """The number of an observation; an error if it is none of this space."""
        ...

    def observation(self, number: int) -> Any:
        """The observation of a number in 0, ..., size - 1."""
        ...

    def plain(self) -> dict[str, Any]:
        """What makes this space, as JSON."""
        ...


class Discrete:
    """start, start + 1, ..., start + size - 1."""

    __slots__ = ("size", "start")

    def __init__(self, size: int, start: int = 0) -> None:
        self.size, self.start = checks.whole(size, "size"), checks.whole(start, "start", -(2**62))

    def number(self, observation: Any) -> int:
        try:
            number = index(observation) - self.start
        except TypeError:
            raise _alien(observation, self) from None
        if not 0 <= number < self.size:
            raise _alien(observation, self)
        return number

    def observation(self, number: int) -> int:
        return self.start + number

    def plain(self) -> dict[str, Any]:
        return {"kind": "discrete", "size": self.size, "start": self.start}

    def __repr__(self) -> str:
        return f"whole numbers from {self.start} to {self.start + self.size - 1}"


class Digits:
    """Arrays of whole numbers: entry i is one of start[i], ..., start[i] + sizes[i] - 1."""

    __slots__ = ("dtype", "shape", "size", "sizes", "starts")

    def __init__(self, sizes: Any, starts: Any, shape: Iterable[int], dtype: str) -> None:
        self.sizes = [checks.whole(n, checks.at("sizes", [i])) for i, n in enumerate(sizes)]
        self.starts = [checks.whole(n, checks.at("starts", [i]), -(2**62)) for i, n in enumerate(starts)]
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        if not len(self.sizes) == len(self.starts) == math.prod(self.shape):
            raise InputError(f"{len(self.sizes)} sizes and {len(self.starts)} starts do not fill shape {self.shape}")
        self.size = math.prod(self.sizes)

    def number(self, observation: Any) -> int:
        array = _array(observation)
        if array is None or array.shape != self.shape or array.dtype.kind not in "iub":
            raise _alien(observation, self)
        number = 0
        for entry, start, size in zip(array.ravel().tolist(), self.starts, self.sizes, strict=True):
            if not start <= entry < start + size:
                raise _alien(observation, self)
            number = number * size + entry - start
        return number

    def observation(self, number: int) -> np.ndarray:
        digits = [start + digit for start, digit in zip(self.starts, _digits(number, self.sizes), strict=True)]
        return np.array(digits, self.dtype).reshape(self.shape)

    def plain(self) -> dict[str, Any]:
        return {"kind": "digits", "sizes": self.sizes, "starts": self.starts, "shape": list(self.shape),
                "dtype": self.dtype.name}  # fmt: skip

    def __repr__(self) -> str:
        ends = [start + size - 1 for start, size in zip(self.starts, self.sizes, strict=True)]
        return f"arrays of shape {self.shape} of whole numbers from {_short(self.starts)} to {_short(ends)}"


class Parts:
    """Several spaces at once: by key (a Dict), or in order (a Tuple, keys None)."""

    __slots__ = ("keys", "size", "spaces")

    def __init__(self, spaces: Iterable[Space], keys: Iterable[str] | None = None) -> None:
        self.spaces = list(spaces)
        self.keys = None if keys is None else list(keys)
        if not self.spaces:
            raise InputError("a space without parts has no observations")
        self.size = math.prod(space.size for space in self.spaces)

    def number(self, observation: Any) -> int:
        number = 0
        for part, space in zip(self._parts(observation), self.spaces, strict=True):
            number = number * space.size + space.number(part)
        return number

    def _parts(self, observation: Any) -> Iterable[Any]:
        if self.keys is None:
            if not isinstance(observation, (tuple, list)) or len(observation) != len(self.spaces):
                raise _alien(observation, self)
            return observation
        if not isinstance(observation, Mapping) or set(observation) != set(self.keys):
            raise _alien(observation, self)
        return [observation[key] for key in self.keys]

    def observation(self, number: int) -> Any:
        digits = _digits(number, [space.size for space in self.spaces])
        parts = tuple(space.observation(digit) for space, digit in zip(self.spaces, digits, strict=True))
        return parts if self.keys is None else dict(zip(self.keys, parts, strict=True))

    def plain(self) -> dict[str, Any]:
        return {"kind": "parts", "keys": self.keys, "spaces": [space.plain() for space in self.spaces]}

    def __repr__(self) -> str:
        if self.keys is None:
            return f"({', '.join(map(repr, self.spaces))})"
        return f"{{{', '.join(f'{key}: {space!r}' for key, space in zip(self.keys, self.spaces, strict=True))}}}"


class Grid:
    """A box divided into equal cells, `bins[i]` of them from low[i] to high[i]. A state is a cell.

    Numbers for `low`, `high` and `bins` hold for every coordinate. A cell contains its lower edge; the last one its
    upper edge too. An observation outside is an error, or (`clip`) belongs to the nearest cell; nan is an error.
    `observation` gives the centre of a cell. angles: the observation, of one axis, begins with the cosine and the sine
    of so many angles; the grid is over the angles themselves, from -pi to pi, and what comes after them.

    Examples
    --------
    >>> import ravi
    >>> grid = ravi.Grid(low=[0, -1], high=[1, 1], bins=[4, 2])
    >>> grid.size, grid.number([0.3, 0.5])
    (8, 3)
    >>> pendulum = ravi.Grid(low=[-np.pi, -8], high=[np.pi, 8], bins=[4, 2], angles=1)
    >>> pendulum.number([0, 1, 3])  # an angle of pi / 2, and a speed of 3
    7
    """

    __slots__ = ("angles", "bins", "dtype", "high", "low", "outside", "shape", "size")

    def __init__(
        self,
        low: Any,
        high: Any,
        bins: Any,
        outside: str = "error",
        *,
        shape: Any = None,
        dtype: str = "float64",
        angles: int = 0,
    ) -> None:
        ends = checks.finite(low, "low"), checks.finite(high, "high")
        counts = checks.array(bins, "bins")
        if counts.dtype.kind not in "iu":
            raise InputError(f"bins is {checks.shown(bins)}, not whole numbers")
        self.angles = checks.whole(angles, "angles", 0)
        asked = None if shape is None else _shape(shape)
        if self.angles and asked is not None:
            if len(asked) != 1 or asked[0] < 2 * self.angles:
                raise InputError(f"a box of shape {asked} has no cosines and sines of {self.angles} angles")
            asked = (asked[0] - self.angles,)
        try:
            known = np.broadcast_shapes(ends[0].shape, ends[1].shape, counts.shape) if asked is None else asked
            memory.needed(200 * math.prod(known), f"a grid over {math.prod(known)} coordinates", "their number")
            lows, highs, numbers = (np.broadcast_to(array, known).ravel() for array in (*ends, counts))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            shapes = f"{ends[0].shape}, {ends[1].shape} and {counts.shape}"
            raise InputError(
                f"low, high and bins have shapes {shapes}, which do not go together"
                + (f" in a box of shape {asked}" if asked is not None else "")
            ) from None
        self.low, self.high = lows.tolist(), highs.tolist()
        self.bins = [checks.whole(n, checks.at("bins", [i])) for i, n in enumerate(numbers.tolist())]
        if self.angles and (len(known) != 1 or known[0] < self.angles):
            raise InputError(f"a grid of shape {known} is not over {self.angles} angles")
        if any(abs(end) != math.pi for end in (*self.low[: self.angles], *self.high[: self.angles])):
            raise InputError("an angle is cut from low = -pi to high = pi")
        self.shape, self.dtype = (known[0] + self.angles,) if self.angles else known, _real(dtype)
        self.outside = checks.one_of(outside, OUTSIDE, "outside")
        self.size = math.prod(self.bins)
        for i, (a, b, n) in enumerate(zip(self.low, self.high, self.bins, strict=True)):
            if not a < b:
                raise InputError(f"{checks.at('low', [i])} is {a:g}, not below {checks.at('high', [i])} = {b:g}")
            if not math.isfinite(b - a):
                raise InputError(f"{checks.at('high', [i])} - {checks.at('low', [i])} is not a finite number")
            if not _told_apart(a, b, n, self.dtype):
                raise InputError(f"{checks.at('bins', [i])} is {n}: cells are narrower than {self.dtype} can tell")

    def over(self, shape: Iterable[int], dtype: Any) -> Grid:
        """The same cells for a Box of this shape and `dtype`."""
        asked = tuple(shape)
        cells = self.shape if not self.angles else (len(self.bins),)
        low, high, bins = (np.array(each).reshape(cells) for each in (self.low, self.high, self.bins))
        return Grid(low, high, bins, self.outside, shape=asked, dtype=np.dtype(dtype).name, angles=self.angles)

    def coordinates(self, observation: Any) -> list[float]:
        """What is cut into cells, a number for each entry of `bins`: the entries of an `observation`, an array of the
        shape of the box, with angles for cosines and sines.

        >>> import ravi
        >>> ravi.Grid(low=-np.pi, high=np.pi, bins=[8], angles=1).coordinates([1, 0])
        [0.0]
        """
        array = _array(observation)
        if array is None or array.shape != self.shape or array.dtype.kind not in "iubf":
            raise _alien(observation, self)
        entries = array.ravel().tolist()
        turns = range(0, 2 * self.angles, 2)
        return [math.atan2(entries[i + 1], entries[i]) for i in turns] + entries[2 * self.angles :]

    def number(self, observation: Any) -> int:
        """The number of the cell that an `observation`, an array of the shape of the box, is in: from 0 to `size` - 1,
        the last coordinate changing fastest.

        >>> import ravi
        >>> ravi.Grid(low=0, high=1, bins=[4]).number([0.3])
        1
        """
        number = 0
        for x, low, high, n in zip(self.coordinates(observation), self.low, self.high, self.bins, strict=True):
            if not low <= x <= high:
                if x != x or self.outside == "error":
                    raise _alien(observation, self)
                x = min(max(x, low), high)
            number = number * n + _cell(x, low, high, n)
        return number

    def observation(self, number: int) -> np.ndarray:
        """The centre of the cell of this `number`, an array of the shape and type of the box.

        >>> import ravi
        >>> ravi.Grid(low=0, high=1, bins=[4]).observation(1).tolist()
        [0.375]
        """
        cells = zip(self.low, self.high, self.bins, _digits(number, self.bins), strict=True)
        centre = [_centre(*cell) for cell in cells]
        turns = [end for angle in centre[: self.angles] for end in (math.cos(angle), math.sin(angle))]
        return np.array(turns + centre[self.angles :], self.dtype).reshape(self.shape)

    def plain(self) -> dict[str, Any]:
        """The grid as plain numbers and texts, for a file: its bounds, bins, shape and type.

        >>> import ravi
        >>> ravi.Grid(low=0, high=1, bins=[4]).plain()["bins"]
        [4]
        """
        turns = {"angles": self.angles} if self.angles else {}
        return {"kind": "grid", "low": self.low, "high": self.high, "bins": self.bins, "outside": self.outside,
                "shape": list(self.shape), "dtype": self.dtype.name, **turns}  # fmt: skip

    def __repr__(self) -> str:
        return f"arrays of shape {self.shape} of numbers from {_short(self.low)} to {_short(self.high)}"


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
        memory.needed(100 * entries, f"the numbering of {space}", "its size")
        return Digits([2] * entries, [0] * entries, space.shape, np.dtype(space.dtype).name)
    raise InputError(
        f"{space} has no numbering here: Discrete, MultiDiscrete, MultiBinary, Tuple and Dict of them have one, and a "
        "Box with a grid"
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


def kind_of(space: Any) -> str | None:
    """The name of the Gymnasium space that this is, or is a subclass of."""
    known = ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Tuple", "Dict")
    for base in type(space).__mro__:
        if base.__name__ in known and base.__module__.startswith("gymnasium."):
            return base.__name__
    return None


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


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array, which has 64 axes at most."""
    axes = islice(checks.several(value, "shape", "a list of whole numbers"), 65)
    found = tuple(checks.whole(n, checks.at("shape", [i]), 0) for i, n in enumerate(axes))
    if len(found) > 64:
        raise InputError("shape has more axes than an array can have, 64")
    return found


def _real(value: Any) -> np.dtype[Any]:
    """A type of real numbers."""
    try:
        found = np.dtype(value) if isinstance(value, (str, type, np.dtype)) else None
    except (TypeError, ValueError):
        found = None
    if found is None or found.kind not in "biuf":
        raise InputError(f"dtype is {checks.shown(value)}, not a type of real numbers such as 'float32'")
    return found


def _digits(number: int, sizes: list[int]) -> list[int]:
    """The digits of a number, the last fastest."""
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return digits[::-1]


def _cell(x: Any, low: float, high: float, n: int) -> Any:
    cell = (x - low) / (high - low) * n
    return min(int(cell), n - 1) if isinstance(cell, float) else np.minimum(cell.astype(np.int64), n - 1)


def _centre(low: float, high: float, n: int, k: Any) -> Any:
    return low + (high - low) * ((k + 0.5) / n)


def _told_apart(low: float, high: float, n: int, dtype: np.dtype[Any]) -> bool:
    """Whether the centre of every cell is, as this type has it, in its cell."""
    if dtype.kind == "f":  # rounding moves it by half a spacing, and by a few units in the last place of a float64
        return (high - low) / n > 4 * float(np.spacing(dtype.type(max(abs(low), abs(high)))))
    if n > min(high - low + 1, MOST_CELLS):
        return False
    blocks = (np.arange(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK))
    return all((_cell(np.trunc(_centre(low, high, n, k)), low, high, n) == k).all() for k in blocks)


def _array(observation: Any) -> np.ndarray | None:
    try:
        return np.asarray(observation)
    except (TypeError, ValueError):
        return None


def _alien(observation: Any, space: Any) -> InputError:
    return InputError(f"{observation!r} is not among {space!r}")


def _short(values: list[Any]) -> str:
    same = len(set(values)) == 1
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in values[: 1 if same else 6]]
    return shown[0] if same else f"[{', '.join(shown)}{', ...' if len(values) > 6 else ''}]"
