"""Which number has an observation, or an action? States and actions of a stream are 0, 1, ..., size - 1.

A whole number counts from its start, and several parts count like digits, the last part fastest. A numbering is plain
data (`plain`; `ravi.live.spaces.space_from` reads it), so that checkpoints and policy files carry it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Protocol

import numpy as np

from ravi import validation
from ravi.validation import InputError


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
        self.size, self.start = validation.whole(size, "size"), validation.whole(start, "start", -(2**62))

    def number(self, observation: Any) -> int:
        try:
            number = index(observation) - self.start
        except TypeError:
            raise alien(observation, self) from None
        if not 0 <= number < self.size:
            raise alien(observation, self)
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
        self.sizes = [validation.whole(n, validation.at("sizes", [i])) for i, n in enumerate(sizes)]
        self.starts = [validation.whole(n, validation.at("starts", [i]), -(2**62)) for i, n in enumerate(starts)]
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        if not len(self.sizes) == len(self.starts) == math.prod(self.shape):
            raise InputError(f"{len(self.sizes)} sizes and {len(self.starts)} starts do not fill shape {self.shape}")
        self.size = math.prod(self.sizes)

    def number(self, observation: Any) -> int:
        array = array_of(observation)
        if array is None or array.shape != self.shape or array.dtype.kind not in "iub":
            raise alien(observation, self)
        number = 0
        for entry, start, size in zip(array.ravel().tolist(), self.starts, self.sizes, strict=True):
            if not start <= entry < start + size:
                raise alien(observation, self)
            number = number * size + entry - start
        return number

    def observation(self, number: int) -> np.ndarray:
        digits = [start + digit for start, digit in zip(self.starts, digits_of(number, self.sizes), strict=True)]
        return np.array(digits, self.dtype).reshape(self.shape)

    def plain(self) -> dict[str, Any]:
        return {"kind": "digits", "sizes": self.sizes, "starts": self.starts, "shape": list(self.shape),
                "dtype": self.dtype.name}  # fmt: skip

    def __repr__(self) -> str:
        ends = [start + size - 1 for start, size in zip(self.starts, self.sizes, strict=True)]
        return f"arrays of shape {self.shape} of whole numbers from {short(self.starts)} to {short(ends)}"


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
        for part, space in zip(self.parts(observation), self.spaces, strict=True):
            number = number * space.size + space.number(part)
        return number

    def parts(self, observation: Any) -> Iterable[Any]:
        """The parts of an observation, in order; an error if it has others."""
        if self.keys is None:
            if not isinstance(observation, (tuple, list)) or len(observation) != len(self.spaces):
                raise alien(observation, self)
            return observation
        if not isinstance(observation, Mapping) or set(observation) != set(self.keys):
            raise alien(observation, self)
        return [observation[key] for key in self.keys]

    def observation(self, number: int) -> Any:
        digits = digits_of(number, [space.size for space in self.spaces])
        return self.whole(tuple(space.observation(digit) for space, digit in zip(self.spaces, digits, strict=True)))

    def whole(self, parts: tuple[Any, ...]) -> Any:
        """The observation that has these parts."""
        return parts if self.keys is None else dict(zip(self.keys, parts, strict=True))

    def plain(self) -> dict[str, Any]:
        return {"kind": "parts", "keys": self.keys, "spaces": [space.plain() for space in self.spaces]}

    def __repr__(self) -> str:
        if self.keys is None:
            return f"({', '.join(map(repr, self.spaces))})"
        return f"{{{', '.join(f'{key}: {space!r}' for key, space in zip(self.keys, self.spaces, strict=True))}}}"


def digits_of(number: int, sizes: list[int]) -> list[int]:
    """The digits of a number, the last fastest."""
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return digits[::-1]


def array_of(observation: Any) -> np.ndarray | None:
    try:
        return np.asarray(observation)
    except (TypeError, ValueError):
        return None


def alien(observation: Any, space: Any) -> InputError:
    return InputError(f"{observation!r} is not among {space!r}")


def short(values: list[Any]) -> str:
    same = len(set(values)) == 1
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in values[: 1 if same else 6]]
    return shown[0] if same else f"[{', '.join(shown)}{', ...' if len(values) > 6 else ''}]"
