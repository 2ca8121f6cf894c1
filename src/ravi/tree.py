"""How are nested tuples of arrays handled as one? States and records are NamedTuples of arrays, seeds first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ravi.checks import InputError
from ravi.core import Array
from ravi.log import Log


def copy(tree: Any) -> Any:
    """The same structure with arrays of its own; a log goes on to be shared."""
    return mapped(lambda leaf: leaf if isinstance(leaf, Log) else leaf.copy(), tree)


def take(tree: Any, rows: Array) -> Any:
    """The seeds `rows` of every array and log, as a copy."""
    return mapped(lambda leaf: Log.of(leaf.table[:, rows]) if isinstance(leaf, Log) else leaf[rows], tree)


def join(trees: Sequence[Any]) -> Any:
    """The seeds of all trees, one after the other."""
    if isinstance(trees[0], tuple):
        return _rebuilt(trees[0], [join(parts) for parts in zip(*trees, strict=True)])
    return Log.join(trees) if isinstance(trees[0], Log) else np.concatenate(trees)


def apart(tree: Any, n: int) -> list[Any]:
    """Trees of n seeds each, whose logs end with the last epoch that any of those seeds had."""
    size = len(next(leaf for _, leaf in leaves(tree) if isinstance(leaf, np.ndarray)))
    return [tree] if size == n else [_ended(take(tree, np.arange(i, i + n))) for i in range(0, size, n)]


def _ended(tree: Any) -> Any:
    """Logs that stand side by side are of the same epochs; in one that a seed did not have, all are 0 there."""
    if not isinstance(tree, tuple):
        return tree
    used = [np.flatnonzero(part.table.any(1)) for part in tree if isinstance(part, Log)]
    rows = max((row[-1] + 1 for row in used if len(row)), default=0)
    return _rebuilt(tree, [Log.of(part.table[:rows]) if isinstance(part, Log) else _ended(part) for part in tree])


def fill(template: Any, arrays: Mapping[str, Array]) -> Any:
    """The structure of `template` with the arrays that `leaves` named, each of its shape and dtype, and no others."""
    strange = arrays.keys() - {name for name, _ in leaves(template)}
    if strange:
        raise InputError(
            f"there is no place for {min(strange)}: the stored state is of another learner or of other measures"
        )
    return _filled(template, arrays, "")


def _filled(template: Any, arrays: Mapping[str, Array], name: str) -> Any:
    if isinstance(template, tuple):
        return _rebuilt(
            template, [_filled(part, arrays, f"{name}.{label}" if name else label) for label, part in _parts(template)]
        )
    if name not in arrays:
        raise InputError(f"there is no array {name}: the stored state is of another learner or another version")
    array = arrays[name]
    if isinstance(template, Log):
        if array.ndim != 2 or array.shape[1] != template.n or array.dtype != template.dtype:
            raise InputError(
                f"{name} is {array.dtype} {array.shape}, not rows of {template.n} {template.dtype.__name__}"
            )
        return Log.of(array)
    if array.shape != template.shape or array.dtype != template.dtype:
        raise InputError(
            f"{name} is {array.dtype} {array.shape}, not {template.dtype} {template.shape}: "
            "the stored state is of another learner or another MDP"
        )
    return array.copy()


def size(tree: Any) -> int:
    """Bytes of all arrays."""
    return sum(leaf.nbytes for _, leaf in leaves(tree) if isinstance(leaf, np.ndarray))


def mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure, every array and log changed."""
    return _rebuilt(tree, [mapped(change, part) for part in tree]) if isinstance(tree, tuple) else change(tree)


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
