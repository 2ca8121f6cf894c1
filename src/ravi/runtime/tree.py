"""Nested tuples of arrays: states and records are NamedTuples of arrays, of logs and of ragged arrays, seeds first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ravi._jit.teams import map_leaves as map_leaves
from ravi.core import Array
from ravi.validation import InputError, require_memory


class Log:
    """A growing table (K, n). among: the seeds of all logs that grow side by side and are joined, for which memory is
    reckoned."""

    def __init__(self, n: int, dtype: Any, among: int | None = None) -> None:
        self.rows, self.among = 0, among or n
        self._allocated: Array = np.empty((0, n), dtype)

    @property
    def table(self) -> Array:
        """All rows as one array (K, n); a view."""
        return self._allocated[: self.rows]

    def append(self, rows: Array) -> None:
        """Append rows (k, n), or one row (n,)."""
        added = rows.reshape(-1, self._allocated.shape[1])
        end = self.rows + len(added)
        if end > len(self._allocated):
            before, what = self.table, f"a log of {self.rows:,} epochs of {self.among:,} seeds"
            require_memory(2 * end * self.among * before.itemsize, what, "seeds, or keep no epochs")
            self._allocated = np.empty((2 * end, before.shape[1]), before.dtype)
            self._allocated[: self.rows] = before
        self._allocated[self.rows : end] = added
        self.rows = end

    @classmethod
    def of(cls, table: Array, among: int | None = None) -> Log:
        """A log that begins with the rows of a table."""
        log = cls(table.shape[1], table.dtype, among)
        log.append(table)
        return log

    @classmethod
    def join(cls, logs: Sequence[Log]) -> Log:
        """Logs of different seeds side by side; zeros where one has fewer rows than another."""
        rows = max(log.rows for log in logs)
        return cls.of(np.hstack([np.pad(log.table, ((0, rows - log.rows), (0, 0))) for log in logs]))


LENGTHS = ".lengths"  # after the name of a ragged leaf, in a file: how long the array of each seed is


class Ragged:
    """An array of each seed, which need not be as long as those of others; it may be put another in its place."""

    def __init__(self, parts: Sequence[Array]) -> None:
        self.parts = list(parts)

    @property
    def end_to_end(self) -> Array:
        return np.concatenate(self.parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def copy(self) -> Ragged:
        return Ragged([part.copy() for part in self.parts])


def copy(tree: Any) -> Any:
    """The same structure with arrays of its own; a log goes on to be shared."""
    return map_leaves(lambda leaf: leaf if isinstance(leaf, Log) else leaf.copy(), tree)


def take(tree: Any, rows: Array, *, among: int | None = None) -> Any:
    """The seeds `rows` of every array and log, as a copy. among: of so many, all of which go on side by side."""

    def taken(leaf: Any) -> Any:
        if isinstance(leaf, Ragged):
            return Ragged([leaf.parts[row].copy() for row in rows])
        return Log.of(leaf.table[:, rows], among) if isinstance(leaf, Log) else leaf[rows]

    return map_leaves(taken, tree)


def seed(tree: Any, i: int) -> Any:
    """The arrays of seed i themselves: those that all seeds have in one are still of one seed, (1, ...)."""
    return map_leaves(lambda leaf: leaf.parts[i] if isinstance(leaf, Ragged) else leaf[i : i + 1], tree)


def join(trees: Sequence[Any]) -> Any:
    """The seeds of all trees, one after the other; of one tree, that tree itself."""
    if len(trees) == 1:
        return trees[0]
    if isinstance(trees[0], tuple):
        return _rebuilt(trees[0], [join(parts) for parts in zip(*trees, strict=True)])
    if isinstance(trees[0], Ragged):
        return Ragged([part for leaf in trees for part in leaf.parts])
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
    strange = arrays.keys() - stored(template).keys()
    if strange:
        raise InputError(
            f"there is no place for {min(strange)}: the stored state is of another learner or of other measures"
        )
    names = iter([name for name, _ in leaves(template)])
    return map_leaves(lambda leaf: _stored_leaf(leaf, arrays, next(names)), template)


def _stored_leaf(leaf: Any, arrays: Mapping[str, Array], name: str) -> Any:
    if name not in arrays:
        raise InputError(f"there is no array {name}: the stored state is of another learner or another version")
    array = arrays[name]
    if isinstance(leaf, Log):
        n, dtype = leaf.table.shape[1], leaf.table.dtype
        if array.ndim != 2 or array.shape[1] != n or array.dtype != dtype:
            raise InputError(f"{name} is {array.dtype} {array.shape}, not rows of {n} {dtype}")
        return Log.of(array)
    if isinstance(leaf, Ragged):
        return _cut(leaf, array, arrays.get(f"{name}{LENGTHS}"), name)
    if array.shape != leaf.shape or array.dtype != leaf.dtype:
        raise InputError(
            f"{name} is {array.dtype} {array.shape}, not {leaf.dtype} {leaf.shape}: "
            "the stored state is of another learner or another MDP"
        )
    return array.copy()


def _cut(template: Ragged, array: Array, lengths: Array | None, name: str) -> Ragged:
    """The array of every seed, of one that has them end to end."""
    n, like = len(template.parts), template.parts[0]
    right = array.dtype == like.dtype and array.ndim == like.ndim and array.shape[1:] == like.shape[1:]
    if not right or lengths is None or lengths.dtype != np.int64 or lengths.shape != (n,):
        said = "no lengths" if lengths is None else f"lengths {lengths.dtype} {lengths.shape}"
        raise InputError(
            f"{name} is {array.dtype} {array.shape} with {said}, not {like.dtype} of {n} seeds, end to end"
        )
    ends = np.cumsum(lengths)
    if (lengths < 0).any() or (lengths > len(array)).any() or ends[-1] != len(array):
        raise InputError(f"{name} has {len(array)} rows, and its lengths are {lengths.tolist()[:9]}")
    return Ragged([part.copy() for part in np.split(array, ends[:-1])])


def stored(tree: Any) -> dict[str, Array]:
    """Every array by its dotted name, as a file holds it."""
    found: dict[str, Array] = {}
    for name, leaf in leaves(tree):
        if isinstance(leaf, Ragged):
            found |= {name: leaf.end_to_end, f"{name}{LENGTHS}": np.array([*map(len, leaf.parts)], np.int64)}
        else:
            found[name] = leaf.table if isinstance(leaf, Log) else leaf
    return found


def size(tree: Any) -> int:
    """Bytes of all arrays."""
    return sum(leaf.nbytes for _, leaf in leaves(tree) if not isinstance(leaf, Log))


def put(target: Any, source: Any, rows: Array) -> None:
    """target[rows] = source[rows] in every array."""
    if isinstance(target, tuple):
        for to, what in zip(target, source, strict=True):
            put(to, what, rows)
    elif isinstance(target, Ragged):
        for row in np.arange(len(target.parts))[rows]:
            target.parts[row] = source.parts[row].copy()
    elif not isinstance(target, Log):
        target[rows] = source[rows]


def leaves(tree: Any, name: str = "") -> list[tuple[str, Any]]:
    """Every array or log with its dotted name."""
    if not isinstance(tree, tuple):
        return [(name, tree)]
    found: list[tuple[str, Any]] = []
    for label, part in zip(getattr(tree, "_fields", map(str, range(len(tree)))), tree, strict=True):
        found += leaves(part, f"{name}.{label}" if name else label)
    return found


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
