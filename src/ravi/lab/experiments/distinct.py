"""The row of a run that counts, of several: one of success before one of failure; then by the part's name.

Two rows of one run with different bits are a conflict. What is compared and ordered are names and numbers of rows: of
the tables themselves only one copy is made.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ravi.lab.experiments.rows import CURVES, SCHEMA

SCALARS = [name for name in SCHEMA.names if name not in CURVES]
ORDER = ("mdp", "learner", "steps", "setting", "seed")  # of the rows


class Conflict(NamedTuple):
    """A run that was made more than once, with different results: the promise of bits is broken."""

    run: str
    digests: tuple[str, ...]
    parts: tuple[str, ...]
    launches: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.run} has {len(self.digests)} different results ({', '.join(self.parts)})"


def distinct(parts: list[str], tables: list[pa.Table]) -> tuple[pa.Table, np.ndarray, list[Conflict]]:
    """One row for every run; where it is, as (part, row); and the runs of which there are different results."""
    rows = pa.concat_tables([SCHEMA.empty_table().select(SCALARS), *tables])
    sizes = [table.num_rows for table in tables]
    place = np.stack(
        [np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in [0, *sizes]])], axis=1
    )
    run = pc.binary_join_element_wise(rows["setting"], pc.cast(rows["seed"], pa.string()), "-").combine_chunks()
    rows = rows.add_column(0, "run", run)
    fails = rows["failure"].is_valid().to_numpy()
    names = np.asarray(pc.rank(run, tiebreaker="dense")) if len(run) else np.zeros(0, int)
    order = np.lexsort((place[:, 1], place[:, 0], fails, names))
    first = np.ones(len(order), bool)
    first[1:] = names[order][1:] != names[order][:-1]

    leader = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
    digest = rows["digest"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    broken = ~fails[order] & (digest[order] != digest[leader])
    conflicts = []
    for name in np.unique(names[order][broken]):
        made = [i for i in order[names[order] == name] if not fails[i]]
        where = dict.fromkeys(f"parts/{parts[place[i, 0]]}" for i in made)
        launches = dict.fromkeys(str(rows["launch"][i].as_py()) for i in made)
        bits = dict.fromkeys(str(rows["digest"][i].as_py()) for i in made)
        conflicts.append(Conflict(run[int(made[0])].as_py(), tuple(bits), tuple(where), tuple(launches)))

    kept = order[first]
    keys = rows.select(ORDER).take(kept)
    kept = kept[pc.sort_indices(keys, [(name, "ascending") for name in ORDER]).to_numpy()]
    return rows.take(kept).combine_chunks(), place[kept], conflicts
