"""Curves are read from the parts, for some lines at a time: they are by far the largest part of a folder.

A line is some runs, given by where they are: part and row. Lines are read in the order in which they are stored, as
many at a time as fit in a little memory, so that a part is read once, or not much more often.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ravi.validation import InputError

BLOCK = 2**21  # numbers that are held at a time, or those of one line


def curves_of(
    parts: Sequence[Path], lines: Sequence[np.ndarray], points: Sequence[int], column: str
) -> Iterator[tuple[int, np.ndarray]]:
    """The curves (n, P) of lines, each given as (part, row) of its runs (n, 2): the line's number, and its curves.

    points: about how many each curve of a line has. A run whose curve was not recorded is an error.
    """
    there = [number for number, line in enumerate(lines) if len(line)]
    some: list[int] = []
    size = 0
    for number in sorted(there, key=lambda number: lines[number].min(axis=0).tolist()):
        more = len(lines[number]) * points[number]
        if some and size + more > BLOCK:
            yield from _read(parts, {k: lines[k] for k in some}, column)
            some, size = [], 0
        some.append(number)
        size += more
    yield from _read(parts, {k: lines[k] for k in some}, column)
    pa.default_memory_pool().release_unused()  # what decoding took


def _read(parts: Sequence[Path], lines: dict[int, np.ndarray], column: str) -> Iterator[tuple[int, np.ndarray]]:
    made: dict[int, np.ndarray] = {}
    wanted: dict[int, list[int]] = {}  # which lines have runs in a part
    for number, line in lines.items():
        for part in np.unique(line[:, 0]).tolist():
            wanted.setdefault(part, []).append(number)
    for part, numbers in sorted(wanted.items()):
        lists = pq.ParquetFile(parts[part]).read([column], use_threads=False)[column].combine_chunks()
        for number in numbers:
            mine = lines[number][:, 0] == part
            some = lists.take(pa.array(lines[number][mine, 1]))
            lengths = np.diff(some.offsets.to_numpy())
            P = made[number].shape[1] if number in made else int(lengths[0])
            if some.null_count or (lengths != P).any():
                raise InputError(f"{parts[part]}: {column} was not recorded for all runs of a line alike")
            if number not in made:
                made[number] = np.empty((len(lines[number]), P))
            made[number][mine] = some.values.to_numpy().reshape(-1, P)
    for number in list(made):
        yield number, made.pop(number)
