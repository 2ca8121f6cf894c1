"""Bounds on the return of a policy that was learned, which hold together at all times.

Lemma. With probability 1 - delta, at all times at once and for every policy, chosen by the data or not,

    low <= V^pi,      V* <= best,      V* - V^pi <= D,

    low(x)  = min_q <q, r + gamma low> under the policy,       best(x) = max_a max_q <q, r + gamma best>

over the laws that are plausible (`ravi.live.confidence_sets`), with D of `ravi.live.suboptimality`: a policy is known
to be the best once all other actions are known to be worse, whatever it is worth. docs/explanation/guarantee.md has the
proof.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array
from ravi.live.confidence_sets import ConfidenceSets, Outcomes, confidence_sets, fixed_points, largest
from ravi.live.suboptimality import Gap, exploring_actions, gap
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.live.agent import Agent

CONFIDENCE = 0.95
UNBOUNDED = "not bounded by these plays"


class Interval(NamedTuple):
    """Bounds on the discounted return of a policy from the start, in the user's units.

    Attributes
    ----------
    low
        The policy is worth at least this.
    best
        No policy is worth more than this.
    gap
        The policy is worth at most this much less than the best one.
    least
        The least return that rewards allow.
    confidence
        The probability with which all bounds hold, at all times together.
    assumes
        What they rest on, as a clause.

    Examples
    --------
    >>> import ravi
    >>> known = ravi.learn("riverswim/3", steps=500).interval()
    >>> known.low <= known.best, known.assumes
    (True, 'the environment is Markov in its states and rewards lie between 0 and 1')
    """

    low: float
    best: float
    gap: float
    least: float
    confidence: float
    assumes: str

    @property
    def informative(self) -> bool:
        """Whether the bound on the gap is at most half of what any policy may lose. Without data it is not."""
        return self.gap <= (self.best - self.least) / 2

    def __str__(self) -> str:
        sure = f"with probability {self.confidence:g}, if {self.assumes}"
        low, gap = outward(self.low, up=False), outward(self.gap, up=True)
        if self.informative:
            return f"at least {low} and at most {gap} below the best, {sure}"
        if low == outward(self.least, up=False):
            return UNBOUNDED
        return f"at least {low}, {sure}; these plays do not bound how far it is below the best"


class Bounds(NamedTuple):
    """(1 - gamma) times the least plausible return of a policy, the largest of any, and how far it is below at most."""

    low: float
    best: float
    gap: float
    optimistic: Array  # the actions of `best`      (X,)
    by: Gap


def outward(bound: float, *, up: bool) -> str:
    """A bound in six digits, rounded so that it still holds."""
    return f"{float(Context(6, ROUND_CEILING if up else ROUND_FLOOR).create_decimal(bound)):.6g}"


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
        actions.append(exploring_actions(of, policy, found.by, agent.visits))
    return known, actions


def _known(
    agent: Agent, policy: Array, confidence: float, assume: str, end: int | None
) -> tuple[ConfidenceSets, Bounds, Interval]:
    of = confidence_sets(agent, 1 - validation.probability(confidence, "confidence"), assume, end)
    if policy.ndim != 2:
        raise InputError("intervals are for policies that do not depend on age")
    problem, H, found = agent.table.problem, agent.table.problem.horizon, bounds(of, policy)
    least, low, best = (H * problem.in_units(part) for part in (0.0, found.low, found.best))
    width = H * (problem.units[1] - problem.units[0])
    return of, found, Interval(low, best, width * found.gap, least, confidence, of.assumes)


def bounds(of: ConfidenceSets, policy: Array) -> Bounds:
    def from_start(which: tuple[Outcomes, Outcomes], V: Array, sign: float) -> float:
        value = sign * largest(*which[1], 1.0, sign, V, np.full(1, np.nan))[0]
        return float(np.clip((1 - of.discount) * value, 0, 1))

    best, low = fixed_points(of, of.best[0], None, 1.0), fixed_points(of, of.low[0], policy, -1.0)
    by = gap(of, policy, best, low)
    least, most = from_start(of.low, low[0], -1.0), from_start(of.best, best[0], 1.0)
    return Bounds(least, most, min(from_start(of.low, by.D, 1.0), max(most - least, 0.0)), best[1].argmax(-1), by)
