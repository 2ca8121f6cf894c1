"""What happened in each epoch? Rows of one number per seed, appended as epochs come."""

from __future__ import annotations

import numpy as np

from ravi.core import Array

BLOCK = 1024  # rows that are allocated at a time


class Log:
    """A growing table (K, n). Rows are copied in; the table is never moved."""

    def __init__(self, n: int, dtype: type) -> None:
        self.n, self.dtype = n, dtype
        self.blocks: list[Array] = []
        self.rows = 0

    def append(self, row: Array) -> None:
        place = self.rows % BLOCK
        if place == 0:
            self.blocks.append(np.empty((BLOCK, self.n), self.dtype))
        self.blocks[-1][place] = row
        self.rows += 1

    @property
    def table(self) -> Array:
        """All rows as one array (K, n)."""
        if not self.blocks:
            return np.empty((0, self.n), self.dtype)
        return np.concatenate(self.blocks)[: self.rows]

    @classmethod
    def of(cls, table: Array) -> Log:
        """A log that begins with the rows of a table."""
        log = cls(table.shape[1], table.dtype.type)
        for row in table:
            log.append(row)
        return log
