"""`Grid`: the cells of a box of Gymnasium, by number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from ravi import validation
from ravi.validation import InputError, require_memory

OUTSIDE = ("error", "clip")
MOST_CELLS = 2**31 - 1  # of a coordinate: more than there are numbers of states
BLOCK = 2**16  # cells that are checked together


class Grid:
    """A box divided into equal cells, `bins[i]` of them from low[i] to high[i]. A state is a cell.

    Numbers for `low`, `high` and `bins` hold for every coordinate. A cell contains its lower edge; the last one its
    upper edge too. An observation outside is an error, or (`clip`) belongs to the nearest cell; nan is an error.
    `observation` gives the centre of a cell. angles: the observation, of one axis, begins with the cosine and the sine
    of so many angles; the grid is over the angles themselves, from -pi to pi, and what comes after them.

    Attributes
    ----------
    low, high
        The edges of the box, by coordinate.
    shape
        The shape of an observation.
    bins
        The number of cells along every coordinate.
    size
        The number of cells in all.
    outside
        "clip" or "error": what is done with an observation outside of the box.
    angles
        The number of angles.
    dtype
        The type of the numbers of an observation.

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
        ends = validation.finite(low, "low"), validation.finite(high, "high")
        counts = validation.array(bins, "bins")
        if counts.dtype.kind not in "iu":
            raise InputError(f"bins is {validation.shown(bins)}, not whole numbers")
        self.angles = validation.whole(angles, "angles", 0)
        asked = None if shape is None else _shape(shape)
        if self.angles and asked is not None:
            if len(asked) != 1 or asked[0] < 2 * self.angles:
                raise InputError(f"a box of shape {asked} has no cosines and sines of {self.angles} angles")
            asked = (asked[0] - self.angles,)
        try:
            known = np.broadcast_shapes(ends[0].shape, ends[1].shape, counts.shape) if asked is None else asked
            require_memory(200 * math.prod(known), f"a grid over {math.prod(known)} coordinates", "their number")
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
        self.bins = [validation.whole(n, validation.at("bins", [i])) for i, n in enumerate(numbers.tolist())]
        if self.angles and (len(known) != 1 or known[0] < self.angles):
            raise InputError(f"a grid of shape {known} is not over {self.angles} angles")
        if any(abs(end) != math.pi for end in (*self.low[: self.angles], *self.high[: self.angles])):
            raise InputError("an angle is cut from low = -pi to high = pi")
        self.shape, self.dtype = (known[0] + self.angles,) if self.angles else known, _real(dtype)
        self.outside = validation.one_of(outside, OUTSIDE, "outside")
        self.size = math.prod(self.bins)
        for i, (a, b, n) in enumerate(zip(self.low, self.high, self.bins, strict=True)):
            if not a < b:
                raise InputError(
                    f"{validation.at('low', [i])} is {a:g}, not below {validation.at('high', [i])} = {b:g}"
                )
            if not math.isfinite(b - a):
                raise InputError(f"{validation.at('high', [i])} - {validation.at('low', [i])} is not a finite number")
            if not _told_apart(a, b, n, self.dtype):
                raise InputError(f"{validation.at('bins', [i])} is {n}: cells are narrower than {self.dtype} can tell")

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
        array = array_of(observation)
        if array is None or array.shape != self.shape or array.dtype.kind not in "iubf":
            raise not_of_space(observation, self)
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
                    raise not_of_space(observation, self)
                x = min(max(x, low), high)
            number = number * n + _cell(x, low, high, n)
        return number

    def observation(self, number: int) -> np.ndarray:
        """The centre of the cell of this `number`, an array of the shape and type of the box.

        >>> import ravi
        >>> ravi.Grid(low=0, high=1, bins=[4]).observation(1).tolist()
        [0.375]
        """
        cells = zip(self.low, self.high, self.bins, digits_of(number, self.bins), strict=True)
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
        return f"arrays of shape {self.shape} of numbers from {short_list(self.low)} to {short_list(self.high)}"


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array, which has 64 axes at most."""
    axes = islice(validation.several(value, "shape", "a list of whole numbers"), 65)
    found = tuple(validation.whole(n, validation.at("shape", [i]), 0) for i, n in enumerate(axes))
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
        raise InputError(f"dtype is {validation.shown(value)}, not a type of real numbers such as 'float32'")
    return found


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


# What all encoders share.


def digits_of(number: int, sizes: list[int]) -> list[int]:
    """The digits of a number, the last fastest."""
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return digits[::-1]


def array_of(observation: Any) -> np.ndarray | None:
    """An observation as an array, if it is one."""
    try:
        return np.asarray(observation)
    except (TypeError, ValueError):
        return None


def not_of_space(observation: Any, space: Any) -> InputError:
    """The error where an observation is none of a space."""
    return InputError(f"{observation!r} is not among {space!r}")


def short_list(values: list[Any]) -> str:
    """Numbers as a text: one if they are the same, else the first six."""
    same = len(set(values)) == 1
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in values[: 1 if same else 6]]
    return shown[0] if same else f"[{', '.join(shown)}{', ...' if len(values) > 6 else ''}]"
