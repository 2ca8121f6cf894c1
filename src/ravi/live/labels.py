"""How do things that are met on the way get numbers? In the order in which they are met.

A label is a whole number, a text, a truth value, None, or a tuple of labels: what a file can hold. A mapping is the
tuple of its pairs (key, label), by key.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ravi.runtime import archive
from ravi.validation import StreamError


class Labels:
    """Numbers 0, 1, ... in the order in which labels are met. A `ravi.live.numberings.Space` that grows."""

    def __init__(self, labels: Sequence[Any] = ()) -> None:
        self.labels: list[Any] = []
        self._numbers: dict[str, int] = {}  # by how a label is written: 1 and True are two
        for label in labels:
            self.number(label)

    @property
    def size(self) -> int:
        return len(self.labels)

    def number(self, observation: Any) -> int:
        label = named(observation)
        found = self._numbers.setdefault(repr(label), len(self.labels))
        if found == len(self.labels):
            self.labels.append(label)
        return found

    def __contains__(self, observation: Any) -> bool:
        return repr(named(observation)) in self._numbers

    def observation(self, number: int) -> Any:
        return self.labels[number]

    def plain(self) -> dict[str, Any]:
        return {"kind": "labels", "labels": [spelled(label) for label in self.labels]}

    @staticmethod
    def of(plain: dict[str, Any]) -> Labels:
        """The labels of `plain`."""
        held = archive.typed(plain, {"labels": list[Any]})
        return Labels([named(label) for label in held["labels"]])

    def __repr__(self) -> str:
        return f"{len(self.labels)} labels"


def named(observation: Any) -> Hashable:
    """The label of an observation: arrays and lists as tuples, numbers as Python's."""
    if observation is None or isinstance(observation, bool):
        return observation
    if isinstance(observation, int):
        return int(observation)
    if isinstance(observation, str):
        return str.__str__(observation)  # NumPy's, or that of an enumeration, as a file gives it back
    if hasattr(observation, "tolist"):
        plain = observation.tolist()
        return _tuples(plain) if np.dtype(observation.dtype).kind in "iub" else named(plain)
    if isinstance(observation, (tuple, list)):
        return tuple(named(part) for part in observation)
    if isinstance(observation, Mapping) and all(isinstance(key, str) for key in observation):
        return tuple((named(key), named(observation[key])) for key in sorted(observation))
    raise StreamError(
        f"{observation!r} cannot be a label: a whole number, a text, a truth value, None, or a tuple of labels can"
    )


def _tuples(plain: Any) -> Any:
    """Lists of whole numbers as tuples."""
    return tuple(map(_tuples, plain)) if isinstance(plain, list) else plain


def spelled(label: Any) -> Any:
    """A label as JSON."""
    return [spelled(part) for part in label] if isinstance(label, tuple) else label
