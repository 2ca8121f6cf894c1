"""Encoders number the observations and the actions of an environment: 0, 1, ..., size - 1.

A whole number counts from its start, and several parts count like digits, the last part fastest. A Box needs a
`ravi.live.grid.Grid` that cuts it into cells. `Labels` number what cannot be listed beforehand, in the order in which
it is met. An encoder is plain data (`plain`, read by `encoder_from`), so that checkpoints and policy files carry it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import index
from typing import Any, Protocol

import numpy as np

from ravi import validation
from ravi.live.grid import Grid, array_of, digits_of, not_of_space, short_list
from ravi.runtime import archive
from ravi.validation import InputError, StreamError, require_memory

LEVELS = {1: 5, 2: 3}  # of each coordinate of actions that are a Box, by how many it has
LONG = 1000  # whole numbers: an array of more is an image, of which none is met twice
INSIDE = 1 - 1e-6  # of a margin: what rounds stays inside the Box
KINDS = ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Tuple", "Dict")


class Encoder(Protocol):
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
        """What makes this encoder, as JSON."""
        ...


class Discrete:
    """start, start + 1, ..., start + size - 1."""

    def __init__(self, size: int, start: int = 0) -> None:
        self.size, self.start = validation.whole(size, "size"), validation.whole(start, "start", -(2**62))

    def number(self, observation: Any) -> int:
        try:
            number = index(observation) - self.start
        except TypeError:
            raise not_of_space(observation, self) from None
        if not 0 <= number < self.size:
            raise not_of_space(observation, self)
        return number

    def observation(self, number: int) -> int:
        return self.start + number

    def plain(self) -> dict[str, Any]:
        return {"kind": "discrete", "size": self.size, "start": self.start}

    def __repr__(self) -> str:
        return f"whole numbers from {self.start} to {self.start + self.size - 1}"


class Digits:
    """Arrays of whole numbers: entry i is one of start[i], ..., start[i] + sizes[i] - 1."""

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
            raise not_of_space(observation, self)
        number = 0
        for entry, start, size in zip(array.ravel().tolist(), self.starts, self.sizes, strict=True):
            if not start <= entry < start + size:
                raise not_of_space(observation, self)
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
        return f"arrays of shape {self.shape} of whole numbers from {short_list(self.starts)} to {short_list(ends)}"


class Composite:
    """Several encoders at once: by key (a Dict), or in order (a Tuple, keys None)."""

    def __init__(self, spaces: Iterable[Encoder], keys: Iterable[str] | None = None) -> None:
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
                raise not_of_space(observation, self)
            return observation
        if not isinstance(observation, Mapping) or set(observation) != set(self.keys):
            raise not_of_space(observation, self)
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


class Labels:
    """Numbers 0, 1, ... in the order in which labels are met: an encoder that grows.

    A label is a whole number, a text, a truth value, None, or a tuple of labels: what a file can hold. A mapping is the
    tuple of its pairs (key, label), by key.
    """

    def __init__(self, labels: Sequence[Any] = ()) -> None:
        self.labels: list[Any] = []
        self._numbers: dict[str, int] = {}  # by how a label is written: 1 and True are two
        for label in labels:
            self.number(label)

    @property
    def size(self) -> int:
        return len(self.labels)

    def number(self, observation: Any) -> int:
        label = label_of(observation)
        found = self._numbers.setdefault(repr(label), len(self.labels))
        if found == len(self.labels):
            self.labels.append(label)
        return found

    def __contains__(self, observation: Any) -> bool:
        return repr(label_of(observation)) in self._numbers

    def observation(self, number: int) -> Any:
        return self.labels[number]

    def plain(self) -> dict[str, Any]:
        return {"kind": "labels", "labels": [json_of(label) for label in self.labels]}

    @staticmethod
    def of(plain: dict[str, Any]) -> Labels:
        """The labels of `plain`."""
        return Labels(archive.typed(plain, {"labels": list[Any]})["labels"])

    def __repr__(self) -> str:
        return f"{len(self.labels)} labels"


def label_of(observation: Any) -> Hashable:
    """The label of an observation: arrays and lists as tuples, numbers as Python's."""
    if observation is None or isinstance(observation, bool):
        return observation
    if isinstance(observation, int):
        return int(observation)
    if isinstance(observation, str):
        return str.__str__(observation)  # NumPy's, or that of an enumeration, as a file gives it back
    if hasattr(observation, "tolist"):
        plain = observation.tolist()
        return _tuples(plain) if np.dtype(observation.dtype).kind in "iub" else label_of(plain)
    if isinstance(observation, (tuple, list)):
        return tuple(label_of(part) for part in observation)
    if isinstance(observation, Mapping) and all(isinstance(key, str) for key in observation):
        return tuple((label_of(key), label_of(observation[key])) for key in sorted(observation))
    raise StreamError(
        f"{observation!r} cannot be a label: a whole number, a text, a truth value, None, or a tuple of labels can"
    )


def _tuples(plain: Any) -> Any:
    """Lists of whole numbers as tuples."""
    return tuple(map(_tuples, plain)) if isinstance(plain, list) else plain


def json_of(label: Any) -> Any:
    """A label as JSON."""
    return [json_of(part) for part in label] if isinstance(label, tuple) else label


# The spaces of Gymnasium.


def encoder_of(space: Any, grid: Grid | Mapping[Any, Grid] | None = None) -> Encoder:
    """The encoder of a space of Gymnasium.

    A Box needs a grid. In a Dict or a Tuple, `grid` gives the grid of each part that is a Box, by its key or place.
    """
    kind = kind_of(space)
    if kind in ("Tuple", "Dict"):
        return _parts_of(space, kind, grid)
    if kind == "Box":
        if not isinstance(grid, Grid):
            raise InputError(
                f"{space} is continuous: say into how many cells to cut each coordinate, by grid=ravi.Grid(low, high, "
                "bins) or --bins 10,10,..."
            )
        return grid.over(space.shape, space.dtype)
    if grid is not None:
        raise InputError(f"a grid is given, but {space} is no Box")
    if kind == "Discrete":
        return Discrete(int(space.n), int(space.start))
    dtype = np.dtype(space.dtype).name if kind else ""
    if kind == "MultiDiscrete":
        return Digits(space.nvec.ravel().tolist(), space.start.ravel().tolist(), space.nvec.shape, dtype)
    if kind == "MultiBinary":
        entries = math.prod(space.shape)
        require_memory(100 * entries, f"the numbering of {space}", "its size")
        return Digits([2] * entries, [0] * entries, space.shape, dtype)
    raise InputError(
        f"{space} has no numbering here: Discrete, MultiDiscrete, MultiBinary, Tuple and Dict of them have one, and a "
        "Box with a grid; observations get numbers as they occur with discover=True (--discover)"
    )


def _parts_of(space: Any, kind: str, grid: Any) -> Encoder:
    parts = dict(space.spaces.items() if kind == "Dict" else enumerate(space.spaces))
    if isinstance(grid, Grid):
        raise InputError(f"{space} has parts: give the grids of its boxes by {'key' if kind == 'Dict' else 'place'}")
    grids = {} if grid is None else dict(grid)
    for key in grids:
        if key not in parts:
            raise InputError(f"grid names {key!r}, but the parts of {space} are {', '.join(map(repr, parts))}")
    if kind == "Dict" and not all(isinstance(key, str) for key in parts):
        raise InputError(f"{space} has keys that are not texts")
    encoders = [encoder_of(part, grids.get(key)) for key, part in parts.items()]
    return Composite(encoders, list(parts) if kind == "Dict" else None)


def encoder_from(plain: Mapping[str, Any]) -> Encoder:
    """The encoder that `plain` describes."""
    makers: dict[str, Any] = {
        "discrete": Discrete,
        "digits": Digits,
        "parts": Composite,
        "grid": Grid,
        "labels": Labels,
    }
    try:
        given = dict(plain)
        make = makers[given.pop("kind")]
        if make is Composite:
            given["spaces"] = [encoder_from(part) for part in given["spaces"]]
        elif make is Labels:
            return Labels.of(given)
        elif make is Grid:
            shape = tuple(given["shape"]) if not given.get("angles") else (-1,)
            given |= {name: np.array(given[name]).reshape(shape) for name in ("low", "high", "bins")}
        encoder: Encoder = make(**given)
        return encoder
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{plain!r} describes no space ({error})") from None


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
    return next((base.__name__ for base in type(space).__mro__
                 if base.__name__ in KINDS and base.__module__.startswith("gymnasium.")), None)  # fmt: skip


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
