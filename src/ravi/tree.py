"""How are nested tuples of arrays handled as one? States and records are NamedTuples of arrays, seeds first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ravi.checks import InputError
from ravi.core import Array
from ravi.measures.log import Log


def copy(tree: Any, *, logs: bool = False) -> Any:
    """The same structure with arrays of its own, and on request with logs of its own."""
    if isinstance(tree, tuple):
        return _rebuilt(tree, [copy(part, logs=logs) for part in tree])
    if isinstance(tree, Log):
        return Log.of(tree.table) if logs else tree
    return tree.copy()


def fill(template: Any, arrays: dict[str, Array], name: str = "") -> Any:
    """The structure of `template` with the arrays that `leaves` named."""
    if isinstance(template, tuple):
        return _rebuilt(template, [fill(part, arrays, f"{name}.{label}" if name else label) for label, part in _parts(template)])
    if name not in arrays:
        raise InputError(f"there is no array {name}: the stored state is of another learner or another version")
    array = arrays[name]
    if isinstance(template, Log):
        return Log.of(array)
    if array.shape != template.shape or array.dtype != template.dtype:
        raise InputError(
            f"{name} is {array.dtype} {array.shape}, not {template.dtype} {template.shape}: "
            "the stored state is of another learner or another MDP"
        )
    return array.copy()


def put(target: Any, source: Any, rows: Array) -> None:
    """target[rows] = source[rows] in every array."""
    for (_, to), (_, what) in zip(leaves(target), leaves(source), strict=True):
        if not isinstance(to, Log):
            to[rows] = what[rows]


def leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every array or log with its dotted name."""
    if not isinstance(tree, tuple):
        yield name, tree
        return
    for label, part in _parts(tree):
        yield from leaves(part, f"{name}.{label}" if name else label)


def _parts(tree: Any) -> Iterator[tuple[str, Any]]:
    labels = tree._fields if hasattr(tree, "_fields") else tuple(str(i) for i in range(len(tree)))
    return zip(labels, tree, strict=True)


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
