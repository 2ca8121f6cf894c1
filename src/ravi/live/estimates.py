"""Estimates by an agent: its optimistic value, what it earned, what its policy earns, and the MDP of frequencies.

A policy is played for some episodes that it was not learned from. Each gives a discounted return: the sum of its first
L rewards, and of what follows, which weighs gamma^L, only the range of rewards is known (nothing follows an end). If
rewards lie in [low, high], returns are independent and lie in H [low, high], and Lemma 1 of docs/explanation/kl.md
holds of each of the two ends by itself: with probability 1 - delta, whenever one stops,

    the mean is in {<q, return> : n KL(p_hat || q) <= ln(2 / delta) + kappa(n)}, the rest of q at an end of the range.

That is a betting interval, with the mixture of bets of a universal portfolio (I. Waudby-Smith, A. Ramdas, "Estimating
means of bounded random variables by betting", JRSS B 86, 2024). Its lower end depends on the least reward alone.
Without a range no interval for a mean is valid for all distributions (R. Bahadur, L. Savage, Annals of Mathematical
Statistics 27, 1956): Student's t interval is given, and called approximate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import sparing
from ravi.core import MDP, Array
from ravi.display.printable import counted
from ravi.live.table import StreamTable
from ravi.mdps.tables import table_of
from ravi.runtime import archive

CONFIDENCE = 0.95  # of intervals
FIELDS = {"value": float, "low": float | None, "high": float | None, "sample": int, "assumes": str, "unit": str}


class Estimate(NamedTuple):
    """The mean of a sample, and an interval for what it estimates.

    Attributes
    ----------
    value
        The mean. What follows the end of an episode that was cut is taken to earn as much as what came before.
    low, high
        The ends of the interval; infinite where the sample gives none.
    sample
        The size of the sample.
    assumes
        What the interval rests on, as a clause; empty where it is approximate.
    unit
        What the sample consists of.
    """

    value: float
    low: float
    high: float
    sample: int
    assumes: str = ""
    unit: str = "cycle"

    @property
    def approximate(self) -> bool:
        """Whether the interval is Student's, which holds as the sample grows."""
        return not self.assumes

    def times(self, factor: float) -> Estimate:
        """The same in other units."""
        return self._replace(value=factor * self.value, low=factor * self.low, high=factor * self.high)

    def json(self) -> dict[str, Any]:
        """The fields by name; an end that is infinite is None."""
        ends = {name: end if isfinite(end) else None for name, end in (("low", self.low), ("high", self.high))}
        return self._asdict() | ends

    @staticmethod
    def load(fields: Any) -> Estimate:
        """The estimate of which `json` gave the fields."""
        held = archive.typed(validation.instance(fields, dict, "estimate", "its fields"), FIELDS, within="estimate")
        low, high = -inf if held["low"] is None else held["low"], inf if held["high"] is None else held["high"]
        return Estimate(**held | {"low": low, "high": high})

    def __str__(self) -> str:
        size = counted(self.sample, self.unit)
        if not (isfinite(self.low) and isfinite(self.high)):
            return f"{self.value:.6g} (no interval: {size} without spread)"
        ends = f"{100 * CONFIDENCE:g} % interval {self.low:.6g} to {self.high:.6g}, from {size}"
        return f"{self.value:.6g} ({'approximate ' if self.approximate else ''}{ends})"


def of_cycles(cycles: Sequence[float], share: float) -> Estimate | None:
    """`share` times the mean of what cycles from reset to reset earned, with Student's interval: 1 - gamma, or of
    episodes 1 by their length.

    A cycle has a geometric length, or that of an episode, so what it earns has the mean <nu_0, V^pi>: the estimate is
    unbiased.
    """
    return student_estimate(np.array(cycles) * share, "cycle") if len(cycles) > 1 else None


def of_episodes(
    returns: Sequence[float], rest: Sequence[float], discount: float, limits: tuple[float, float] | None
) -> Estimate | None:
    """The mean of discounted returns. rest: the weight of what follows an episode, gamma^L, or 0 after an end. limits:
    the range of rewards, where it is known."""
    earned, left, H = np.array(returns), np.array(rest), 1 / (1 - discount)
    if not len(earned):
        return None
    found = student_estimate(earned / (1 - left), "episode")
    if limits is None:
        return found
    low, high = (
        sign * _largest_mean(sign * (earned + left * H * end), sign * H * end) + 0.0  # never -0
        for sign, end in ((-1.0, limits[0]), (1.0, limits[1]))
    )
    assumes = f"episodes are independent and rewards lie between {limits[0]:g} and {limits[1]:g}"
    return found._replace(low=low, high=high, assumes=assumes)


def student_estimate(values: Array, unit: str, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of values, with Student's interval; without ends where they have no spread."""
    from ravi.statistics.intervals import student

    n, mean, ends = len(values), float(values.mean()), (-inf, inf)
    if values.min() < values.max():
        ends = student(mean, float(values.std(ddof=1)) / sqrt(n), confidence, n - 1)
    return Estimate(mean, float(ends[0]), float(ends[1]), n, unit=unit)


def _largest_mean(values: Array, top: float) -> float:
    """The largest mean that is plausible for a law on values up to `top`, from a sample."""
    from ravi.live.confidence_sets import largest
    from ravi.theory.kl import kappa

    n, none = len(values), np.zeros(1)
    radius = log(2 / (1 - CONFIDENCE)) + kappa(n)
    row = np.zeros((1, n), np.int32), values[None], np.ones((1, n)), np.array([radius]), np.array([top])
    with sparing():  # asked for once
        return float(largest(*row, np.zeros(1, np.bool_), 1.0, 1.0, none, np.full(1, np.nan))[0])


def optimistic_value(state: Any, initial: Array, share: float) -> float | None:
    """`share` times <nu_0, V_k> of a learner's state, by what it keeps: V (by age, that of age 0), a gain, or max Q."""
    if hasattr(state, "gain"):
        return float(state.gain[0])
    for name in ("V", "V_up", "values", "Q", "Q_hat"):
        table = getattr(state, name, None)
        if table is None:
            continue
        V = table[0].max(-1) if name.startswith("Q") else table[0]
        V = V[0] if V.ndim == 2 else V
        return float(share * (initial @ V))
    return None


def empirical_mdp(table: StreamTable, rewards: Array, initial: Array) -> MDP:
    """The MDP of the frequencies in a table. A pair that was never played stays where it is, and earns the least."""
    plays, problem = table.moves.sum(-1), table.problem
    x, a, j = np.nonzero(table.moves)
    frequencies = table.moves[x, a, j] / np.maximum(plays, 1)[x, a]
    new, b = np.nonzero(plays == 0)
    return table_of(
        [(x, a, table.successors[x, a, j], frequencies), (new, b, new, 1.0)], np.where(plays > 0, rewards, 0.0),
        problem.discount, initial, units=problem.units, name=f"{problem.name}, as seen",
    )  # fmt: skip
