"""A claim is data: an id, one line, its place in the paper, its kind, and the function that measures it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Measured = TypeVar("Measured", bound=Callable[..., Any])

# Kinds. D: holds on every run. P: holds with probability 1 - delta on each run. E: holds in expectation.
# Phases: when it is measured. All but the last are of the audit, (Seen) -> measured, bound for each seed.
#   backup  every backup, as it is made            step    every backup, with what its mirror step made
#   prefix  sums, after every number of backups    begin   the first mirror step, where Q_1 = E V_0
#   data    D, when an epoch opens and at the end  plan    the plan of every epoch
#   epoch   the policy that an epoch plays         pair    the policies of two epochs, one after the other
#   run     once, at the end: (Evidence) -> measured, bound, arrays for D and P; for E the value of each seed, the bound
#           of its mean and, where chance is known, the interval that the mean keeps to (`chance.Interval`). An E claim
#           may be about several means at once: values are then (n, means).


class Claim(NamedTuple):
    id: str
    statement: str
    where: str
    kind: str  # "D", "P" or "E"
    phase: str  # when it is measured, as above
    setting: str  # "any", "tabular", "mixture", or "parts": of a variant whose parts are known
    conditional: bool  # on valid bonuses (S4) up to the epoch
    equality: bool  # of an E claim: the mean equals the bound
    measure: Callable[..., Any]
    events: int = 1  # of probability 1 - delta each, that a P claim rests on


class Registry:
    """Claims in the order of the paper, all of one setting where it is given."""

    def __init__(self, setting: str = "any") -> None:
        self.claims: list[Claim] = []
        self.setting = setting

    def claim(
        self, id: str, statement: str, where: str, kind: str = "D", phase: str = "", setting: str = "",
        conditional: bool = False, equality: bool = False,
    ) -> Callable[[Measured], Measured]:  # fmt: skip
        """Above the function that measures it; `phase` is by default run for E, and else epoch."""
        when, about = phase or ("run" if kind == "E" else "epoch"), setting or self.setting

        def add(measure: Measured) -> Measured:
            self.claims.append(Claim(id, statement, where, kind, when, about, conditional, equality, measure))
            return measure

        return add
