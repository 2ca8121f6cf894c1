"""Worlds whose rewards change: one kernel, and tables of rewards that take turns, given beforehand.

With tables r_1, ..., r_J and blocks of length b, table 1 + ((i - 1) // b) mod J is in force at step i, or in epoch i
(`clock`): an adversary who has chosen everything in advance. A learner sees the table in force after the epoch, whole
(full information), never before.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP, Array, an_mdp
from ravi.mdps.chains import LEFT, RIGHT, riverswim
from ravi.validation import require_memory

CLOCKS = ("plays", "epochs")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Changing:
    """An MDP whose rewards change. Made by `changing`."""

    mdp: MDP  # the kernel; its rewards are the mean of the tables, and nobody reads them
    tables: Array  # r_j(x, a), in [0, 1]    (J, X, A)
    block: int
    clock: str

    def number(self, i: Any) -> Any:
        """Which table, from 0, is in force at step or epoch i, from 1."""
        return (i - 1) // self.block % len(self.tables)

    def expected(self, steps: int) -> Array:
        """How many of T steps each table is in force for, on average   (J,).

        By epochs, step t is in epoch 1 + Bin(t - 1, 1 - gamma), whose law modulo the turns of the tables is, on the
        discrete Fourier transform, lambda^{t-1} with lambda = gamma + (1 - gamma) e^{-i omega}: a geometric sum.
        """
        T, J = steps, len(self.tables)
        turns = min(self.block * J, T)  # T epochs at most
        require_memory(80 * turns, f"how long each table is in force in {T:,} steps", "block or steps")
        if self.clock == "plays":
            rounds, rest = divmod(T, turns)
            times = rounds + (np.arange(turns) < rest).astype(np.float64)
        else:
            gamma = self.mdp.discount
            lam = gamma + (1 - gamma) * np.exp(-2j * np.pi * np.arange(turns) / turns)
            far = np.where(lam == 1, 2.0, lam)
            times = np.maximum(np.fft.ifft(np.where(lam == 1, T, (1 - far**T) / (1 - far))).real, 0.0)
        return np.bincount(self.number(np.arange(1, turns + 1)), times, J)

    def average(self, counts: Array) -> MDP:
        """The MDP whose rewards are the mean of the tables, table j counted counts[j] times; all alike for zeros."""
        given = np.asarray(counts, np.float64)
        weights = given / np.sum(counts) if given.any() else np.full(len(given), 1 / len(given))
        return replace(self.mdp, rewards=np.clip(np.tensordot(weights, self.tables, 1), 0.0, 1.0))

    def __repr__(self) -> str:
        return f"<Changing {self.mdp.name}: {len(self.tables)} tables of rewards, by {self.block} {self.clock}>"


def changing(mdp: MDP, tables: Any, *, block: int = 1, clock: str = "plays") -> Changing:
    """The kernel of `mdp` with the rewards of `tables` (J, X, A), each for `block` steps or epochs, over and over."""
    array = validation.finite(tables, "tables")
    mdp = an_mdp(mdp)
    X, A = mdp.states, mdp.actions
    if array.ndim != 3 or array.shape[1:] != (X, A) or not len(array):
        raise validation.InputError(f"tables has shape {array.shape}, not (J, X, A) with X, A = {X}, {A}")
    require_memory(24 * array.size, f"tables of shape {array.shape}", "their number")
    validation.between(array, 0, 1, "tables")
    made = replace(mdp, rewards=array.mean(0))
    return Changing(
        mdp=made,
        tables=validation.read_only_copy(array),
        block=validation.whole(block, "block"),
        clock=validation.one_of(clock, CLOCKS, "clock"),
    )


def tides(n: int = 6, discount: float = 0.9, *, left: float = 0.1, block: int = 50, clock: str = "plays") -> Changing:
    """RiverSwim pays `left` at the left end, then 1 at the right end, in turns of `block` steps or epochs."""
    river = riverswim(n, discount)
    tables = np.zeros((2, river.states, river.actions))
    tables[0, 0, LEFT] = validation.number(left, "left")
    tables[1, -1, RIGHT] = 1.0
    return changing(river, tables, block=block, clock=clock)
