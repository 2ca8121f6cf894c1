"""How good is a policy that was learned, by what was seen alone? Bounds that hold together, whenever one looks.

Of a pair with n plays, p_hat the frequencies of their successors and r_hat their mean reward, what is plausible:

    kernels   n KL(p_hat || q) <= ln(2 (X A + 1) / delta) + ln p_hat(y^n) / Q(y^n)
    rewards   n kl(r_hat, m)   <= ln(4 X A / delta) + kappa(n),    kl of two coins (docs/explanation/kl.md, Lemma 1)

with Q(y^n) = sum_K 2^-K binom(X, K)^-1 sum_{|S| = K} KT_S(y^n), KT_S the Dirichlet(1/2, ..., 1/2) mixture on S; where K
successors were met, ln 1 / Q(y^n) <= K ln 2 + ln binom(X, K) - ln KT(y^n) on those K. The start has a set of the first
kind too, of the states that resets led to.

Lemma. With probability 1 - delta, for all plays at once, the kernel, the start and the mean rewards are plausible.
Proof. Given its plays, the successors of a pair are independent, so Q(y^n) / P(y^n) is a non-negative martingale from 1
and stays below 2 (X A + 1) / delta, but for a probability delta / (2 (X A + 1)) (Ville); and ln p_hat(y^n) / P(y^n) = n
KL(p_hat || P). Rewards in [0, 1] are below each of 2 X A bounds likewise, by Lemma 1, each but for delta / (4 X A). The
sum is delta.

So with low(x) = r_low + gamma min_q <q, low> under the policy, and best(x) = max_a {r_high + gamma max_q <q, best>},
both over what is plausible, at whatever time and for whatever policy that was chosen by the data,

    low <= V^pi,      V^pi <= V* <= best:      the policy is at most best - low below the best.

They are fixed points of monotone maps T: where T V >= V - e at every state, V - e H is below that of `low`, and where T
V <= V + e, V + e H is above that of `best`. So both are bounds wherever their iteration stops.

assume="seen": instead, a pair leads only to the successors that it was seen to lead to (at least once), with KT on
those alone, and a pair whose rewards were all alike earns that. Then the level is that of the rest.
"""

from __future__ import annotations

from math import lgamma, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import checks
from ravi.checks import InputError
from ravi.core import Array
from ravi.estimators.counts import Counts
from ravi.learners.posterior.psrl_pooled import Earned
from ravi.optimism.relative_entropy import highest_rewards, largest, redundancy

if TYPE_CHECKING:
    from ravi.live.agent import Agent

CONFIDENCE = 0.95
ASSUMED = ("nothing", "seen")
CLOSE = 1e-6  # e at which the iteration stops: of a reward per play, in parts of its range
SWEEPS = 5000  # at most


class Interval(NamedTuple):
    """What a policy is worth: discounted returns from the start, in the user's units."""

    low: float  # the policy is worth at least this
    best: float  # and no policy more than this
    confidence: float
    assume: str

    @property
    def gap(self) -> float:
        """How much less than the best policy it is worth, at most."""
        return self.best - self.low

    def __str__(self) -> str:
        given = "" if self.assume == "nothing" else ", if pairs do only what they were seen to do"
        return (
            f"at least {self.low:.6g} and at most {round(self.gap, 6):.6g} below the best, with probability "
            f"{self.confidence:g}{given}"
        )


class Plausible(NamedTuple):
    """What is plausible, in parts of [0, 1]; see above."""

    successors: Array
    data: Counts  # of one seed, (1, X, A) and (1, X, A, B)
    radius: Array  # (1, X, A)
    low: Array  # rewards, (X, A)
    high: Array
    start: tuple[Array, Counts, Array]  # successors, counts and radius of one more row
    discount: float
    support: bool
    end: int | None


def interval(
    agent: Agent, policy: Array, *, confidence: float = CONFIDENCE, assume: str = "nothing", end: int | None = None
) -> Interval:
    """Bounds on the return of a policy (X, A), and on that of the best. end: a state that is never left; it earns 0."""
    found = plausible(agent, 1 - checks.probability(confidence, "confidence"), assume, end)
    if policy.ndim != 2:
        raise InputError("intervals are for policies that do not depend on age")
    low, best = lowest(found, policy), highest(found)
    told = agent.table.told
    return Interval(told.horizon * told.in_units(low), told.horizon * told.in_units(best), confidence, assume)


def plausible(
    agent: Agent, delta: float, assume: str = "nothing", end: int | None = None, scale: float = 1.0
) -> Plausible:
    """What is plausible for an agent, with probability 1 - delta; `scale` multiplies every radius."""
    support = checks.one_of(assume, ASSUMED, "assume") == "seen"
    if agent.rewards.mode == "changing":
        raise InputError("rewards change: no interval speaks of them")
    table, rewards = agent._counted()
    X, A, _ = table.sizes
    told, moves = table.told, table.moves
    n = moves.sum(-1)
    level = log(2 * (X * A + 1) / delta)
    data = Counts(n[None], moves[None])
    radius = scale * _radii(moves.reshape(X * A, -1), X, level, support).reshape(1, X, A)
    low, high = _rewards(agent, rewards, log(4 * X * A / delta), support, scale)
    if end is not None:
        low[end] = high[end] = np.clip((0 - told.units[0]) / (told.units[1] - told.units[0]), 0, 1)
    states = np.flatnonzero(agent.starts) if support and not agent.start_known else np.arange(X)
    states, starts = states.astype(np.int32), agent.starts[states]
    beginning = Counts(starts.sum()[None, None, None], starts[None, None, None])
    start = states[None, None], beginning, scale * _radii(starts[None], X, level, support)[None, None]
    if agent.start_known:
        start = states[None, None], Counts(np.ones((1, 1, 1)), table.initial[None, None, None]), np.zeros((1, 1, 1))
    successors = table.successors
    if support:  # what was not met is what was met
        first = np.take_along_axis(successors, moves.argmax(-1)[..., None], -1)
        successors = np.where((moves > 0) | (n == 0)[..., None], successors, first)
    return Plausible(successors, data, radius, low, high, start, told.discount, support, end)


def lowest(of: Plausible, policy: Array) -> float:
    """(1 - gamma) times the least plausible return of a policy."""
    return _value(of, of.low, lambda Q: (policy * Q).sum(-1), -1.0)


def highest(of: Plausible) -> float:
    """(1 - gamma) times the largest plausible return of any."""
    return _value(of, of.high, lambda Q: Q.max(-1), 1.0)


def _value(of: Plausible, r: Array, chosen: Any, sign: float) -> float:
    """`sign` is 1 for the largest and -1 for the least. Where changes are in proportion, on to where they lead."""
    gamma, unplayed = of.discount, of.data.visits[0] == 0
    H = 1 / (1 - gamma)
    V, old = np.full(len(r), H if sign > 0 else 0.0), None
    for _ in range(SWEEPS):
        mean = sign * largest(of.successors, of.data, of.radius, of.support, sign * V[None])[0]
        mean = np.where(unplayed, V.max() if sign > 0 else V.min(), mean)
        if of.end is not None:
            mean[of.end] = V[of.end]
        change = chosen(r + gamma * mean) - V
        moved, rate = np.abs(change).max(), 0.0
        if moved <= CLOSE:
            break
        if old is not None and (rate := min(float(change @ old) / float(old @ old), gamma)) > 0:
            near = np.abs(change - rate * old).max() <= 0.3 * (1 - rate) * moved
            rate = rate if near else 0.0
        V, old = np.clip(V + change / (1 - max(rate, 0.0)), 0, H), change if rate <= 0 else None
    outside = max(0.0, float((sign * change).max()))  # e
    states, starts, radius = of.start
    value = (1 - gamma) * sign * largest(states, starts, radius, of.support, sign * V[None])[0, 0, 0]
    return float(np.clip(value + sign * outside, 0, 1))


def _radii(moves: Array, X: int, level: float, support: bool) -> Array:
    """rho of every row of counts (rows, B)."""
    rho = np.empty(len(moves))
    for i, row in enumerate(moves):
        K, n = int((row > 0).sum()), int(row.sum())
        rho[i] = level + redundancy(row, n, max(K, 1))
        if not support:
            rho[i] += K * log(2) + lgamma(X + 1) - lgamma(K + 1) - lgamma(X - K + 1)
    return rho


def _rewards(agent: Agent, rewards: Any, level: float, support: bool, scale: float) -> tuple[Array, Array]:
    """The least and the largest plausible mean reward of every pair."""
    if rewards.mode == "known":
        return rewards.table.copy(), rewards.table.copy()
    n, total, levels = rewards.weight[None], rewards.total[None], np.array([level])
    high, low = highest_rewards(n, total, levels, scale)[0], 1 - highest_rewards(n, n - total, levels, scale)[0]
    if support and isinstance(getattr(agent.state, "earned", None), Earned):
        alike = (agent.state.earned.squares[0] == 0) & (n[0] > 0)
        low, high = (np.where(alike, rewards.mean(), bound) for bound in (low, high))
    return low, high
