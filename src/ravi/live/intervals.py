"""How good is a policy that was learned, by what was seen alone? Bounds that hold together, whenever one looks.

Lemma. With probability 1 - delta, at all times at once and for every policy, chosen by the data or not,

    low <= V^pi,      V* <= best,      V* - V^pi <= D,

    low(x)  = min_q <q, r + gamma low> under the policy,       best(x) = max_a max_q <q, r + gamma best>

over the laws that are plausible (`ravi.live.plausible`), with D of `ravi.live.gaps`: a policy is known to be the best
once all other actions are known to be worse, whatever it is worth. docs/explanation/guarantee.md has the proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ravi import checks
from ravi.checks import InputError
from ravi.core import Array
from ravi.live.gaps import Gap, exploring, gap
from ravi.live.plausible import Outcomes, Plausible, fixed_points, largest, plausible

if TYPE_CHECKING:
    from ravi.live.agent import Agent

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """What a policy is worth: discounted returns from the start, in the user's units."""

    low: float  # the policy is worth at least this
    best: float  # and no policy more than this
    gap: float  # how much less than the best it is worth, at most
    confidence: float
    assume: str
    width: float  # of the range of all returns, H (r_max - r_min)
    observed: bool = False  # whether that range of rewards is the observed one

    @property
    def informative(self) -> bool:
        """Whether the bound on the gap is at most half of the range of returns. Without data it is always larger."""
        return self.gap <= self.width / 2

    def __str__(self) -> str:
        held = ["pairs have no successors but those observed"] if self.assume == "seen" else []
        held += ["rewards stay in the range observed"] if self.observed else []
        given = f", if {' and '.join(held)}" if held else ""
        gap = f"{round(self.gap, 6):.6g} below the best, with probability {self.confidence:g}{given}"
        if self.informative:
            return f"at least {self.low:.6g} and at most {gap}"
        return f"at least {self.low:.6g}; the data do not bound its loss yet: it may be up to {gap}"


class Bounds(NamedTuple):
    """(1 - gamma) times the least plausible return of a policy, the largest of any, and how far it is below at most."""

    low: float
    best: float
    gap: float
    optimistic: Array  # the actions of `best`      (X,)
    by: Gap


def interval(
    agent: Agent, policy: Array, *, confidence: float = CONFIDENCE, assume: str = "nothing", end: int | None = None
) -> Interval:
    """Bounds on the return of a policy (X, A), and on that of the best. end: a state that is never left; it earns 0."""
    return _known(agent, policy, confidence, assume, end)[2]


def look(agent: Agent, policy: Array, assume: str, end: int | None) -> tuple[Interval, list[Array]]:
    """`interval`, and actions (X,) to shorten it by: those of `best`, and those that make the gap fall fastest."""
    of, found, known = _known(agent, policy, CONFIDENCE, assume, end)
    actions = [found.optimistic]
    if found.by.by is not None:
        actions.append(exploring(of, policy, found.by, agent.visits))
    return known, actions


def _known(
    agent: Agent, policy: Array, confidence: float, assume: str, end: int | None
) -> tuple[Plausible, Bounds, Interval]:
    of = plausible(agent, 1 - checks.probability(confidence, "confidence"), assume, end)
    if policy.ndim != 2:
        raise InputError("intervals are for policies that do not depend on age")
    told, H, found = agent.table.told, agent.table.told.horizon, bounds(of, policy)
    width = H * (told.units[1] - told.units[0])
    low, best = H * told.in_units(found.low), H * told.in_units(found.best)
    return of, found, Interval(low, best, width * found.gap, confidence, assume, width, agent.follows)


def bounds(of: Plausible, policy: Array) -> Bounds:
    def from_start(which: tuple[Outcomes, Outcomes], V: Array, sign: float) -> float:
        value = sign * largest(*which[1], 1.0, sign, V, np.full(1, np.nan))[0]
        return float(np.clip((1 - of.discount) * value, 0, 1))

    best, low = fixed_points(of, of.best[0], None, 1.0), fixed_points(of, of.low[0], policy, -1.0)
    by = gap(of, policy, best, low)
    least, most = from_start(of.low, low[0], -1.0), from_start(of.best, best[0], 1.0)
    return Bounds(least, most, min(from_start(of.low, by.D, 1.0), max(most - least, 0.0)), best[1].argmax(-1), by)
