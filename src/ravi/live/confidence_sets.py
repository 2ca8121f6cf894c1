"""Confidence sets of the outcomes of pairs, which hold together at all times.

A play of a pair shows an outcome z = (y, r): its successor, and its reward in [0, 1], which may depend on it.
Of n plays, n_y led to y, and K successors were met. Where the rewards of a triple (x, a, y) were all equal, it is one
outcome of weight w = n_y; else it is two, (y, 0) and (y, 1), with weights that have the mean reward. Plausible for a
pair are the laws q of its outcomes with

    best    sum_z w(z) ln(w(z) / n q(z)) <= ln(2 (X + 1) / delta) + kappa(n)
    low     sum_z w'(z) ln(1 / q(z))     <= ln(2 (X A + 1) / delta) + ln 1 / Q,        w' = w (n_y - 1) / n_y
            ln 1 / Q = 2 K ln 2 - ln K! - ln KT(n_y) - sum_y ln KT(w(y, 0), w(y, 1))   (y: rewards not all alike)

where the rest of the mass of q may go to any outcome; KT is the Dirichlet(1/2, ..., 1/2) mixture of so many symbols,
kappa as in docs/explanation/kl.md. The start has a set of each kind too, of the states that resets led to. With
probability 1 - delta, at all times at once, the backup of V* over `best` is at least V*, and all true laws are in
`low`: docs/explanation/guarantee.md has the proof.

That is what assume="nothing" gives: it rests on the Markov property and on the range of rewards alone.

assume="seen" assumes more: pairs are alike in how soon they show what they can do. A pair that was played more than
twice as often as any pair had been when it last showed something new (a successor, or the first reward of a triple that
differs from those before) has shown all: it leads only where it led, and a triple whose rewards were all equal always
earns that. A triple whose rewards differed may earn anything in the range. That needs 20 plays of pairs that had been
played before, of which three of a pair count: if one in seven shows something new, they hide it with probability 0.05.
With less, a pair must be played more than 20 / R times, where R pairs were played again. Then w' = w, Q has no 2 K ln 2
- ln K!, and q no mass for the rest; likewise where resets lead, after three of them. All others are as above. Rare
events break this assumption, so it is never made unless it is asked for, and `ConfidenceSets.assumes` states it whole.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.optimism.kl_dual import CERTAIN, shortfall
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.live.agent import Agent

ASSUMED = ("nothing", "seen")
CLOSE = 1e-6  # e at which an iteration stops: of a reward per play, in parts of its range
SWEEPS = 5000  # at most
TWICE = 2
AGAIN, OF_A_PAIR = 20, 3  # plays of pairs that had been played before: (1 - 1/7)^20 < 0.05


class Outcomes(NamedTuple):
    """The outcomes observed in each row (a pair, or the start), and the radius of what is plausible around them."""

    to: Array  # y                                                      (rows, 2 B)
    reward: Array  # r                                                  (rows, 2 B)
    weight: Array  # w, or w'                                           (rows, 2 B)
    radius: Array  # the most that sum_z w ln(w / (sum w) q) may be     (rows,)
    other: Array  # the reward of other outcomes                        (rows,)
    closed: Array  # whether none of those is plausible                 (rows,)


class ConfidenceSets(NamedTuple):
    """Sets of outcomes of pairs, and of the start; see above."""

    best: tuple[Outcomes, Outcomes]
    low: tuple[Outcomes, Outcomes]
    high: Outcomes  # of pairs: `low`, with the most in place of the least where rewards are not known
    shape: tuple[int, int]  # X, A
    discount: float
    end: int | None
    ended: float  # the reward of the end, in [0, 1]
    assumes: str  # all that the sets rest on, as a clause


def confidence_sets(
    agent: Agent, delta: float, assume: str = "nothing", end: int | None = None, scale: float = 1.0
) -> ConfidenceSets:
    """What is plausible for an agent, with probability 1 - delta; `scale` multiplies every radius."""
    assumed = validation.one_of(assume, ASSUMED, "assume") == "seen"
    if agent.rewards.mode == "changing":
        raise InputError("rewards change: no interval speaks of them")
    table, _ = agent._counted()
    (X, A, B), known = table.sizes, agent.rewards.mode == "known"
    least, most = (np.where(known, table.rewards[..., None], ends) for ends in (table.least, table.most))
    varied, plays = least < most, table.moves.sum(-1).ravel()
    enough = max(TWICE * int(table.late.max()), _plays_enough(plays))
    closed = assumed & (plays > enough)
    closed_start = assumed & (agent.starts.sum(keepdims=True) > TWICE * np.maximum(agent.late_start, 1))

    def sets(level: float, best: bool) -> tuple[Outcomes, Outcomes]:
        upper = np.where(varied, table.earned, 0)  # the weight of (y, 1)
        rewards = np.where(varied, 0.0, least), np.ones(varied.shape)
        weights = (table.moves - upper).clip(0), upper
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
    high = low[0]._replace(other=best[0].other)
    (bottom, top), gamma = table.problem.units, table.problem.discount
    earns = "rewards are those of the table" if known else f"rewards lie between {bottom:g} and {top:g}"
    assumes = ["the environment is Markov in its states", earns]
    if closed.any():
        assumes.append(f"pairs that were played more than {enough:.6g} times lead only where they led")
        if not known:
            assumes.append("moves of such pairs whose rewards were all equal always earn that")
    if closed_start.any() and not agent.start_known:
        assumes.append("resets lead only where they led")
    ended = float(np.clip(-bottom / (top - bottom), 0, 1))
    return ConfidenceSets(best, low, high, (X, A), gamma, end, ended, f"{', '.join(assumes[:-1])} and {assumes[-1]}")


def _plays_enough(plays: Array) -> float:
    """After more plays than this, as far as plays (pairs,) that came again tell, a pair has shown all (`seen`)."""
    again = np.clip(plays - 1, 0, OF_A_PAIR)
    return 0.0 if again.sum() >= AGAIN else AGAIN / max(int((again > 0).sum()), 1)


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


def fixed_points(of: ConfidenceSets, which: Outcomes, policy: Array | None, sign: float) -> tuple[Array, Array]:
    """V and Q that are at least (sign is 1) or at most (-1) those of any law of a set, for a policy, or for the best.

    They are fixed points of monotone maps T: where T V >= V - e at every state, V - e H is below that of the minimum,
    and where T V <= V + e, V + e H is above that of the maximum. So they are bounds wherever the iteration stops. Where
    changes are in proportion, it goes on to where they lead.
    """
    gamma, (X, A) = of.discount, of.shape
    H, near = 1 / (1 - gamma), np.full(X * A, np.nan)
    V, old = np.full(X, H if sign > 0 else 0.0), None
    for _ in range(SWEEPS):
        Q = sign * largest(*which, gamma, sign, V, near).reshape(X, A)
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
def largest(to, reward, weight, radius, other, closed, gamma, sign, V, near):  # type: ignore[no-untyped-def]
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
