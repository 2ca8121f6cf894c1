"""The runs that the parts of a folder hold: the row that counts of each, and their curves.

Of several rows of one run, one of success goes before one of failure; then the part's name decides. Two rows of one run
with different bits are a conflict. Curves are by far the largest part of a folder: they are read for some lines at a
time, in the order in which they are stored, so that a part is read once, or not much more often. A line is some runs,
given by where they are: part and row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ravi.lab.experiments.rows import SCALARS, SCHEMA
from ravi.validation import InputError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

ORDER = ("mdp", "learner", "steps", "setting", "seed")  # of the rows
BLOCK = 2**21  # numbers of curves that are held at a time, or those of one line


class Conflict(NamedTuple):
    """A run that was made more than once, with different results: the promise of bits is broken."""

    run: str
    digests: tuple[str, ...]
    parts: tuple[str, ...]
    launches: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.run} has {len(self.digests)} different results ({', '.join(self.parts)})"


def distinct(tables: Mapping[str, pa.Table]) -> tuple[pa.Table, np.ndarray, list[Conflict]]:
    """One row for every run of the parts; where it is, as (part, row); and the runs with different results."""
    rows = pa.concat_tables([SCHEMA.empty_table().select(SCALARS), *tables.values()])
    rows = rows.add_column(0, "run", pc.binary_join_element_wise(rows["setting"], pc.cast(rows["seed"], "string"), "-"))
    sizes = [table.num_rows for table in tables.values()]
    place = np.stack(
        [np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(0), *map(np.arange, sizes)])], axis=1
    )
    order = np.argsort(rows["failure"].is_valid().to_numpy(), kind="stable")
    keys = rows.select(["run", "digest"]).append_column("at", pa.array(np.arange(len(rows)))).take(order)
    runs = keys.group_by("run", use_threads=False).aggregate([("at", "first"), ("digest", "count_distinct")])
    conflicts = []
    for run in sorted(runs.filter(pc.greater(runs["digest_count_distinct"], 1))["run"].to_pylist()):
        of = keys.filter(pc.and_(pc.equal(keys["run"], run), pc.is_valid(keys["digest"])))
        where = [f"parts/{[*tables][part]}" for part in place[of["at"].to_numpy(), 0]]
        found = (of["digest"].to_pylist(), where, rows["launch"].take(of["at"]).to_pylist())
        conflicts.append(Conflict(run, *(tuple(dict.fromkeys(map(str, one))) for one in found)))
    kept = runs["at_first"].to_numpy()
    kept = kept[pc.sort_indices(rows.select(ORDER).take(kept), [(name, "ascending") for name in ORDER]).to_numpy()]
    return rows.take(kept).combine_chunks(), place[kept], conflicts


def dataset_of(parts: Sequence[Path], place: np.ndarray, sizes: Sequence[int]) -> ds.Dataset:
    """Every distinct run, with its curves, read from the parts only as far as a query needs.

    place: (part, row) of each of them; sizes: how many rows a part has.
    """
    import pyarrow.dataset as ds

    files, tables = [], [SCHEMA.empty_table()]
    for part, path in enumerate(parts):
        kept = np.sort(place[place[:, 0] == part, 1])
        if len(kept) == sizes[part]:
            files.append(str(path))
        elif len(kept):  # it holds rows that others replace
            tables.append(pq.ParquetFile(path).read().take(kept))
    inside = ds.dataset(pa.concat_tables(tables))
    return ds.dataset([ds.dataset(files, schema=SCHEMA, format="parquet"), inside]) if files else inside


def curves_of(
    parts: Sequence[Path], lines: Sequence[np.ndarray], points: Sequence[int], column: str
) -> Iterator[tuple[int, np.ndarray]]:
    """The curves (n, P) of lines, each given as (part, row) of its runs (n, 2): the line's number, and its curves.

    points: about how many each curve of a line has. A run whose curve was not recorded is an error.
    """
    there = sorted((k for k, line in enumerate(lines) if len(line)), key=lambda k: lines[k].min(axis=0).tolist())
    while there:
        size = np.cumsum([len(lines[k]) * points[k] for k in there])
        n = max(1, int((size <= BLOCK).sum()))
        yield from _read(parts, {k: lines[k] for k in there[:n]}, column)
        there = there[n:]
    pa.default_memory_pool().release_unused()  # what decoding took


def _read(parts: Sequence[Path], lines: dict[int, np.ndarray], column: str) -> Iterator[tuple[int, np.ndarray]]:
    found: dict[int, np.ndarray] = {}
    for part in np.unique(np.concatenate([line[:, 0] for line in lines.values()])).tolist():
        lists = pq.ParquetFile(parts[part]).read([column], use_threads=False)[column].combine_chunks()
        for number, line in lines.items():
            mine = line[:, 0] == part
            if not mine.any():
                continue
            some = lists.take(pa.array(line[mine, 1]))
            lengths = np.diff(some.offsets.to_numpy())
            curves = found.setdefault(number, np.empty((len(line), lengths[0])))
            if some.null_count or (lengths != curves.shape[1]).any():
                raise InputError(f"{parts[part]}: {column} was not recorded for all runs of a line alike")
            curves[mine] = some.values.to_numpy().reshape(-1, curves.shape[1])
    for number in list(found):
        yield number, found.pop(number)
