"""What does an agent say of itself? What it hopes for, what it earned, and the world as it was seen."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array
from ravi.live.table import Table

CONFIDENCE = 0.95  # of intervals


class Estimate(NamedTuple):
    """A number of which a sample speaks."""

    value: float
    low: float
    high: float
    sample: int  # cycles from reset to reset

    def __str__(self) -> str:
        return f"{self.value:.6g} (95 % interval {self.low:.6g} to {self.high:.6g}, from {self.sample} cycles)"


def of_cycles(cycles: Sequence[float], discount: float) -> Estimate | None:
    """(1 - gamma) times the mean of what cycles from reset to reset earned, with its t-interval.

    A cycle has a geometric length, so what it earns has the mean <nu_0, V^pi>: the estimate is unbiased, its interval
    asymptotic.
    """
    earned = np.array(cycles) * (1 - discount)
    if len(earned) < 2:
        return None
    from ravi.statistics.intervals import student

    mean, error = float(earned.mean()), float(earned.std(ddof=1)) / sqrt(len(earned))
    low, high = student(mean, error, CONFIDENCE, len(earned) - 1)
    return Estimate(mean, float(low), float(high), len(earned))


def optimistic_value(state: Any, initial: Array, discount: float) -> float | None:
    """(1 - gamma) <nu_0, V_k> of a learner's state, by what it keeps: V (by age, that of age 0), its gain, or max Q."""
    if hasattr(state, "gain"):
        return float(state.gain[0])
    for name in ("V", "V_up", "values", "Q", "Q_hat"):
        table = getattr(state, name, None)
        if table is None:
            continue
        V = table[0].max(-1) if name.startswith("Q") else table[0]
        V = V[0] if V.ndim == 2 else V
        return float((1 - discount) * (initial @ V))
    return None


def seen(table: Table, rewards: Array, initial: Array) -> MDP:
    """The MDP of the frequencies in a table. A pair that was never played stays where it is, and earns the least."""
    X, _, B = table.sizes
    plays = table.moves.sum(-1)[..., None]
    rows, P, own = table.successors, table.moves / np.maximum(plays, 1), np.arange(X)[:, None]
    if B < X:  # one more successor: the state itself, or any other where it is there
        there = (rows == own[..., None]).any(-1)
        more = np.where(there, _absent(rows), own).astype(np.int32)
        rows, P = np.concatenate([rows, more[..., None]], -1), np.concatenate([P, np.zeros((*more.shape, 1))], -1)
        order = np.argsort(rows, -1, kind="stable")
        rows, P = np.take_along_axis(rows, order, -1), np.take_along_axis(P, order, -1)
    P = np.where(plays > 0, P, rows == own[..., None])
    told = table.told
    return MDP(
        rewards=np.where(plays[..., 0] > 0, rewards, 0.0),
        successors=rows.astype(np.int32, copy=False),
        transitions=P,
        initial=initial,
        discount=told.discount,
        units=told.units,
        name=f"{told.name}, as seen",
    )


def _absent(successors: Array) -> Array:
    """A state that is not among the successors of each pair: (X, A)."""
    B = successors.shape[-1]
    there = (successors[..., None] == np.arange(B + 1)).any(-2)
    return there.argmin(-1)
