"""A claim is data: an id, one line, its place in the paper, its kind, and the function that measures it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

Measured: TypeAlias = tuple[Any, ...]  # what is measured, its bound and, of an E claim, what is known of chance
Measure = TypeVar("Measure", bound=Callable[..., Any])

# Kinds. D: holds on every run. P: holds with probability 1 - delta on each run. E: holds in expectation.
# A claim is measured on each seed by a function of a record (`ravi.verify.record`), which gives what is measured and
# its bound, in rows or as one number each. `per` says of which record, and what its rows are:
#   backup  Backups: V_i and Q_{i+1}                 step    Backups: with what its mirror step makes, V_{i+1}
#   prefix  Backups: sums up to i                    plan    Backups: the plan of each epoch
#   epoch   Played: what epoch k plays               pair    Played: the policies of epochs k and k + 1
#   run     Played: the run of a seed as a whole     once    the RunSetting alone, not a run
# An E claim gives the value of the seed, or of several means at once, the bound of its mean and, where chance is known,
# a `chance.Martingale` or a `chance.Law`.


class Claim(NamedTuple):
    id: str
    statement: str
    where: str
    kind: str  # "D", "P" or "E"
    per: str  # as above
    about: str  # "any", "tabular", "mixture", or "parts": of a variant whose parts are known
    conditional: bool  # on valid bonuses (S4) up to the row
    equality: bool  # of an E claim: the mean equals the bound
    measure: Callable[..., Any]
    events: int = 1  # of probability 1 - delta each, that a P claim rests on


class Registry:
    """Claims in the order of the paper, all about the same learners where it is given."""

    def __init__(self, about: str = "any") -> None:
        self.claims: list[Claim] = []
        self.about = about

    def claim(
        self, id: str, statement: str, where: str, kind: str = "D", per: str = "", about: str = "",
        conditional: bool = False, equality: bool = False,
    ) -> Callable[[Measure], Measure]:  # fmt: skip
        """Above the function that measures it; `per` is by default run for E, and else epoch."""

        def add(measure: Measure) -> Measure:
            rows = per or ("run" if kind == "E" else "epoch")
            self.claims.append(
                Claim(id, statement, where, kind, rows, about or self.about, conditional, equality, measure)
            )
            return measure

        return add
