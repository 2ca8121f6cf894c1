"""How good is a policy that was learned, by what was seen alone? Bounds that hold together, whenever one looks.

What a play of a pair shows is an outcome z = (y, r): its successor, and its reward in [0, 1], which may depend on it.
Of n plays, n_y led to y, and K successors were met. Where the rewards of a triple (x, a, y) were all alike, it is one
outcome of weight w = n_y; else it is two, (y, 0) and (y, 1), with weights that have the mean reward (for `best`, the
least and the most that was seen in place of 0 and 1). Plausible for a pair are the laws q of its outcomes with

    best    sum_z w(z) ln(w(z) / n q(z)) <= ln(2 (X + 1) / delta) + kappa(n)
    low     sum_z w'(z) ln(1 / q(z))     <= ln(2 (X A + 1) / delta) + ln 1 / Q,        w' = w (n_y - 1) / n_y
            ln 1 / Q = 2 K ln 2 - ln K! - ln KT(n_y) - sum_y ln KT(w(y, 0), w(y, 1))   (y: rewards not all alike)

where the rest of the mass of q may go to any outcome; KT is the Dirichlet(1/2, ..., 1/2) mixture of so many symbols,
kappa as in docs/explanation/kl.md. The start has a set of each kind too, of the states that resets led to.

Lemma. With probability 1 - delta, at all times at once and for every policy, chosen by the data or not,

    low <= V^pi,      V* <= best,      V* - V^pi <= D,

    low(x)  = min_q <q, r + gamma low> under the policy,       best(x) = max_a max_q <q, r + gamma best>
    D(x)   <- max_a {pi(a|x) gamma max_q <q, D> + sum_{b != a} pi(b|x) (Q_best(x, a) - Q_low(x, b))}, from best - low

with q of the set of `low` in the last. So a policy is known to be the best once all other actions are known to be
worse, whatever it is worth.
Proof. `best`: V* is one function, and so is r + gamma V* of outcomes. Lemma 1 of docs/explanation/kl.md holds of it at
(x, pi*(x)) with probability 1 - delta / (2 (X + 1)); outcomes that are spread to two only lower the martingale of its
proof, whose logarithm is concave in the outcome's worth. So the backup of V* is at least V*, and backups are monotone.
`low`: the true q is plausible. Outcomes are told one after the other, a successor that was not met before as "new", so
that the alphabet need not be known. Given the past, let Q be the KT mixture of K symbols without names, with
probability 2^-K: the ratio Q / P has mean 1, "new" taken as a whole. Given the successor, let rewards be all that of
its first play, or coins under KT (by Jensen's inequality, with the weights 1 - r and r), with probability 1/2 each. The
product is a non-negative martingale from 1, and by Ville's inequality below 2 (X A + 1) / delta but for a probability
of the inverse of that. It is at least Q / prod q(z)^w'(z), since what is new has a probability of at most 1.
`D`: V*(x) - V^pi(x) = max_a sum_b pi(b|x) (Q*(x, a) - Q^pi(x, b)), and Q* - Q^pi = gamma <q, V* - V^pi> at one pair.

The first two are fixed points of monotone maps T: where T V >= V - e at every state, V - e H is below that of `low`,
and where T V <= V + e, V + e H is above that of `best`; D only falls. So all are bounds wherever their iteration stops.

assume="seen": pairs are alike in how soon they show what they can do. A pair that was played more than twice as often
as any pair had been when it last showed something new (a successor, or the first reward of a triple that differs from
those before) has shown all: it leads only where it led, and a triple whose rewards were all alike always earns that.
Then w' = w, Q has no 2 K ln 2 - ln K!, and q no mass for the rest; likewise where resets lead. All others are as above.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ravi import checks
from ravi.checks import InputError
from ravi.compiled import compiled
from ravi.core import Array
from ravi.optimism.sets import CERTAIN, shortfall

if TYPE_CHECKING:
    from ravi.live.agent import Agent

CONFIDENCE = 0.95
ASSUMED = ("nothing", "seen")
CLOSE = 1e-6  # e at which the iteration stops: of a reward per play, in parts of its range
SWEEPS = 5000  # at most
TWICE = 2


class Interval(NamedTuple):
    """What a policy is worth: discounted returns from the start, in the user's units."""

    low: float  # the policy is worth at least this
    best: float  # and no policy more than this
    gap: float  # how much less than the best it is worth, at most
    confidence: float
    assume: str
    width: float  # of the range of all returns, H (r_max - r_min)

    @property
    def informative(self) -> bool:
        """Whether the bound on the gap is at most half of the range of returns. Without data it is always larger."""
        return self.gap <= self.width / 2

    def __str__(self) -> str:
        given = "" if self.assume == "nothing" else ", if pairs do only what they were seen to do"
        gap = f"{round(self.gap, 6):.6g} below the best, with probability {self.confidence:g}{given}"
        if self.informative:
            return f"at least {self.low:.6g} and at most {gap}"
        return f"at least {self.low:.6g}; the data do not bound its loss yet: it may be up to {gap}"


class Outcomes(NamedTuple):
    """What plays of rows (pairs, or the start) showed, and how far from that is plausible."""

    to: Array  # y                                                      (rows, 2 B)
    reward: Array  # r                                                  (rows, 2 B)
    weight: Array  # w, or w'                                           (rows, 2 B)
    radius: Array  # the most that sum_z w ln(w / (sum w) q) may be     (rows,)
    other: Array  # the reward of other outcomes                        (rows,)
    closed: Array  # whether none of those is plausible                 (rows,)


class Plausible(NamedTuple):
    """Sets of outcomes of pairs, and of the start; see above."""

    best: tuple[Outcomes, Outcomes]
    low: tuple[Outcomes, Outcomes]
    shape: tuple[int, int]  # X, A
    discount: float
    end: int | None
    ended: float  # the reward of the end, in [0, 1]


def interval(
    agent: Agent, policy: Array, *, confidence: float = CONFIDENCE, assume: str = "nothing", end: int | None = None
) -> Interval:
    """Bounds on the return of a policy (X, A), and on that of the best. end: a state that is never left; it earns 0."""
    found = plausible(agent, 1 - checks.probability(confidence, "confidence"), assume, end)
    if policy.ndim != 2:
        raise InputError("intervals are for policies that do not depend on age")
    told, H = agent.table.told, agent.table.told.horizon
    low, best, gap = bounds(found, policy)
    width = H * (told.units[1] - told.units[0])
    return Interval(H * told.in_units(low), H * told.in_units(best), gap * width, confidence, assume, width)


def optimistic(agent: Agent, assume: str, end: int | None = None) -> Array:
    """The actions (X,) of the largest plausible return: those that `best` depends on."""
    found = plausible(agent, 1 - CONFIDENCE, assume, end)
    return _fixed_points(found, found.best, None, 1.0)[1].argmax(-1)


def plausible(
    agent: Agent, delta: float, assume: str = "nothing", end: int | None = None, scale: float = 1.0
) -> Plausible:
    """What is plausible for an agent, with probability 1 - delta; `scale` multiplies every radius."""
    assumed = checks.one_of(assume, ASSUMED, "assume") == "seen"
    if agent.rewards.mode == "changing":
        raise InputError("rewards change: no interval speaks of them")
    table, _ = agent._counted()
    (X, A, B), known = table.sizes, agent.rewards.mode == "known"
    least, most = (np.where(known, table.rewards[..., None], ends) for ends in (table.least, table.most))
    varied, plays = least < most, table.moves.sum(-1).ravel()
    closed = assumed & (plays > TWICE * table.late.max())
    closed_start = assumed & (agent.starts.sum(keepdims=True) > TWICE * agent.late_start)

    def sets(level: float, best: bool) -> tuple[Outcomes, Outcomes]:
        low, high = (least, most) if best else (0 * least, 0 * most + 1)  # where rewards were not all alike
        upper = np.where(varied, (table.earned - table.moves * low) / np.where(varied, high - low, 1), 0).clip(0)
        alike = np.where(least > most, float(best), least)  # of a file from before they may be anything
        rewards, weights = (np.where(varied, low, alike), high), ((table.moves - upper).clip(0), upper)
        other = table.rewards.ravel() if known else np.full(X * A, float(best))
        pairs = _set(
            table.successors.reshape(X * A, B), table.moves, rewards, weights, other, closed, level, best, scale
        )
        nothing, states = np.zeros(X), np.arange(X, dtype=np.int32)[None]
        of_starts = (nothing, nothing), (agent.starts, nothing), np.zeros(1)
        start = _set(states, agent.starts, *of_starts, closed_start, level, best, scale)
        if agent.start_known:
            weight = np.stack([table.initial, nothing], -1).reshape(1, -1)
            start = start._replace(weight=weight, radius=np.zeros(1), closed=np.ones(1, np.bool_))
        return pairs, start

    best, low = sets(log(2 * (X + 1) / delta), True), sets(log(2 * (X * A + 1) / delta), False)
    bottom, top = table.told.units
    return Plausible(best, low, (X, A), table.told.discount, end, float(np.clip(-bottom / (top - bottom), 0, 1)))


def _set(
    to: Array, moves: Array, rewards: tuple[Array, Array], weights: tuple[Array, Array], other: Array,
    closed: Array, level: float, best: bool, scale: float,
) -> Outcomes:  # fmt: skip
    """The sets of rows: successors (rows, B), how often each was met, and what its two outcomes earn and weigh."""
    from scipy.special import gammaln, xlogy

    def code(counts: Array, K: Array | int) -> Array:
        """ln 1 / KT of K symbols, beside which none was met."""
        return gammaln(counts.sum(-1) + K / 2) - gammaln(K / 2) - (gammaln(counts + 0.5) - gammaln(0.5)).sum(-1)

    n, (reward, weight) = (
        moves.reshape(to.shape),
        (np.stack(two, -1).reshape(*to.shape, 2) for two in (rewards, weights)),
    )
    K = (n > 0).sum(-1)
    if best:
        radius = level + code(n.sum(-1, keepdims=True), 2)  # kappa
    else:
        radius = level + code(n, np.maximum(K, 1)) + np.where(weight[..., 1] > 0, code(weight, 2), 0).sum(-1)
        radius += np.where(closed, 0, 2 * K * log(2) - gammaln(K + 1))
        weight = weight * np.where(closed[:, None], 1, np.maximum(n - 1, 0) / np.maximum(n, 1))[..., None]
        radius += xlogy(weight, weight).sum((1, 2)) - xlogy(total := weight.sum((1, 2)), total)
    rows = (len(to), -1)
    outcomes = np.repeat(to, 2, -1), reward.reshape(rows), weight.reshape(rows)
    return Outcomes(*outcomes, scale * np.maximum(radius, 0), other, closed)


def bounds(of: Plausible, policy: Array) -> tuple[float, float, float]:
    """(1 - gamma) times the least plausible return of a policy, the largest of any, and how far it is below at most."""

    def from_start(which: tuple[Outcomes, Outcomes], V: Array, sign: float) -> float:
        value = sign * _most(*which[1], 1.0, sign, V, np.full(1, np.nan))[0]
        return float(np.clip((1 - of.discount) * value, 0, 1))

    (V, Q), (V_low, Q_low) = _fixed_points(of, of.best, None, 1.0), _fixed_points(of, of.low, policy, -1.0)
    played, ahead = policy > 0, np.zeros(policy.shape)
    rows, near = Outcomes(*(part[played.ravel()] for part in of.low[0])), np.full(played.sum(), np.nan)
    rows = rows._replace(reward=0 * rows.reward, other=0 * rows.other)
    others = Q * (1 - policy) - ((policy * Q_low).sum(-1, keepdims=True) - policy * Q_low)  # sum over b != a
    D, moved = np.maximum(V - V_low, 0), np.inf
    for _ in range(SWEEPS):
        if moved <= CLOSE:
            break
        ahead[played] = _most(*rows, of.discount, 1.0, D, near)
        new = np.minimum(D, (policy * ahead + others).max(-1).clip(0))
        if of.end is not None:
            new[of.end] = 0
        D, moved = new, (D - new).max()
    return from_start(of.low, V_low, -1.0), from_start(of.best, V, 1.0), from_start(of.low, D, 1.0)


def _fixed_points(
    of: Plausible, which: tuple[Outcomes, Outcomes], policy: Array | None, sign: float
) -> tuple[Array, Array]:
    """V and Q of `best` (sign is 1) or of `low` (-1). Where changes are in proportion, on to where they lead."""
    gamma, (X, A) = of.discount, of.shape
    H, near = 1 / (1 - gamma), np.full(X * A, np.nan)
    V, old = np.full(X, H if sign > 0 else 0.0), None
    for _ in range(SWEEPS):
        Q = sign * _most(*which[0], gamma, sign, V, near).reshape(X, A)
        if of.end is not None:
            Q[of.end] = of.ended + gamma * V[of.end]
        change = (Q.max(-1) if policy is None else (policy * Q).sum(-1)) - V
        moved, rate = np.abs(change).max(), 0.0
        if moved <= CLOSE:
            break
        if old is not None and (rate := min(float(change @ old) / float(old @ old), gamma)) > 0:
            close = np.abs(change - rate * old).max() <= 0.3 * (1 - rate) * moved
            rate = rate if close else 0.0
        V, old = np.clip(V + change / (1 - max(rate, 0.0)), 0, H), change if rate <= 0 else None
    outside = sign * H * max(0.0, float((sign * change).max()))  # e H
    return V + outside, Q + gamma * outside


@compiled
def _most(to, reward, weight, radius, other, closed, gamma, sign, V, near):  # type: ignore[no-untyped-def]
    """max <q, sign (r + gamma V)> over the set of each row; `near` is where each search ended, and starts next time."""
    rows, many = to.shape
    found, value, p, scratch = np.empty(rows), np.empty(many), np.empty(many), np.empty(many)
    order, top = np.arange(many), gamma * (sign * V).max()
    for i in range(rows):
        k, total, best = 0, 0.0, -np.inf
        for j in range(many):
            if weight[i, j] > 0.0:
                value[k], p[k] = sign * (reward[i, j] + gamma * V[to[i, j]]), weight[i, j]
                best, total = max(best, value[k]), total + p[k]
                k += 1
        found[i] = best if closed[i] else sign * other[i] + top
        if total > 0.0 and radius[i] < CERTAIN * total:
            for j in range(k):
                p[j] /= total
            below, near[i] = shortfall(k, order, p, radius[i] / total, value, found[i], near[i], scratch)
            found[i] -= below
    return found
