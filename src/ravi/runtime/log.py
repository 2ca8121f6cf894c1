"""What happened in each epoch? Rows of one number per seed, appended as epochs come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ravi.core import Array
from ravi.runtime import memory

BLOCK = 1024  # rows that are allocated at a time


class Log:
    """A growing table (K, n) whose rows never move. among: the seeds of all logs that grow side by side and are joined,
    for which memory is reckoned."""

    def __init__(self, n: int, dtype: type, among: int | None = None) -> None:
        self.n, self.dtype, self.among = n, dtype, among or n
        self.blocks: list[Array] = []
        self.rows = 0

    def row(self) -> Array:
        """A new row, to be written into."""
        place = self.rows % BLOCK
        if place == 0:
            self._grow()
        self.rows += 1
        return self.blocks[-1][place]

    def _grow(self) -> None:
        taken = (len(self.blocks) + 1) * BLOCK * self.among * np.dtype(self.dtype).itemsize  # and so much to read it
        memory.needed(taken, f"a log of {self.rows:,} epochs of {self.among:,} seeds", "seeds, or keep no epochs")
        self.blocks.append(np.empty((BLOCK, self.n), self.dtype))

    @property
    def table(self) -> Array:
        """All rows as one array (K, n)."""
        if not self.blocks:
            return np.empty((0, self.n), self.dtype)
        return np.concatenate(self.blocks)[: self.rows]

    @classmethod
    def of(cls, table: Array, among: int | None = None) -> Log:
        """A log that begins with the rows of a table."""
        log = cls(table.shape[1], table.dtype.type, among)
        for first in range(0, len(table), BLOCK):
            some = table[first : first + BLOCK]
            log._grow()
            log.blocks[-1][: len(some)] = some
            log.rows += len(some)
        return log

    @classmethod
    def join(cls, logs: Sequence[Log]) -> Log:
        """Logs of different seeds side by side; zeros where one has fewer rows than another."""
        rows = max(log.rows for log in logs)
        return cls.of(np.hstack([np.pad(log.table, ((0, rows - log.rows), (0, 0))) for log in logs]))
