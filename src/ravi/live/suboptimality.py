"""A bound on how far a policy is below the best, by its advantages: V* and V^pi are of one and the same kernel.

P_hat are the frequencies, V_hat and Q_hat what pi is worth by them, M = (I - gamma P_hat_pi)^-1. What an estimate of a
backup is wrong by, u(x, a) = <P - P_hat, r + gamma V^pi>(x, a), and u_pi = sum_b pi(b|.) u(., b), give all the rest:

    e = V^pi - V_hat = M u_pi,      u = <P - P_hat, r + gamma (V_hat + e)>
    Q^pi(x, a) - V^pi(x) = Q_hat(x, a) - V_hat(x) + u(x, a) - u_pi(x) + <m_xa, u_pi>
    m_xa = gamma (P_hat(. | x, a) - P_hat_pi(. | x)) M

so that what moves the values of all successors alike cancels in m. Over the laws that are plausible (`low` of
`ravi.live.confidence_sets`) u is bounded by the extremes of <P, r + gamma V_hat> and by how far e may be off, these by
the bounds on u, again and again; advantages are bounded with the e of the u that is worst for each. V* - V^pi <= D for
the D that falls from best - low by

    D(x) <- max_a max_P {Q^pi(x, a) - V^pi(x) + gamma <P, D>}

with these bounds, or those of Q* - V^pi where they are less. docs/explanation/guarantee.md has the proof; numbers such
as (6) are of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.live.confidence_sets import CLOSE, SWEEPS, ConfidenceSets, fixed_points, largest
from ravi.optimism.kl_dual import CERTAIN

DENSE = 1000  # states, up to which M is made
FEW = 100  # states, up to which all of u_pi is bounded together
TIGHTER = 50  # bounds on u, at most


class Frequencies(NamedTuple):
    """The frequencies. Pairs that tell nothing stay where they are, and earn 0."""

    P: Array  # P_hat                                       (X, A, X)
    r: Array  # mean rewards                                (X, A)
    to: Array  # successors of outcomes                     (X A, 2 B)
    p: Array  # and their frequencies                       (X A, 2 B)
    radius: Array  # d: KL(P_hat || P) <= d                 (X, A)
    informative: Array  # whether d says anything           (X, A)
    closed: Array  # and no other outcomes are plausible    (X, A)


class Errors(NamedTuple):
    """below <= u <= above, and u <= most + slack."""

    above: Array  # (X, A)
    below: Array  # (X, A)
    most: Array  # max_q <q - P_hat, r + gamma V_hat>           (X, A)
    slack: Array  # what gamma <P - P_hat, e> is at most        (X, A)


class Advantages(NamedTuple):
    """Q^pi(x, a) - V^pi(x) <= sure + share <P, reward + gamma V_hat> for every plausible P."""

    sure: Array  # (X, A)
    share: Array  # in [0, 1]                               (X, A)
    reward: Array  # of outcomes: r, and gamma e            (X A, 2 B)
    V: Array  # V_hat                                       (X,)
    P: Array  # P_hat                                       (X, A, X)
    u: Errors
    m: Array  # m_xa, without the entry of x                (X, A, X)
    own: Array  # what u(x, b) counts in the advantage of (x, a)    (X, A, A)


class Gap(NamedTuple):
    """V* - V^pi <= D, by the advantages of rivals."""

    D: Array  # (X,)
    rivals: Array  # the actions of the maximum     (X,)
    by: Advantages | None  # None where there are too many states for M


def gap(of: ConfidenceSets, policy: Array, best: tuple[Array, Array], low: tuple[Array, Array]) -> Gap:
    """The largest plausible V* - V^pi. best, low: V and Q that are at least those of the best, at most the policy's."""
    (V, Q), (V_low, Q_low), (X, A) = best, low, of.shape
    by = advantage_bounds(of, policy, low) if X <= DENSE else None
    others = Q * (1 - policy) - ((policy * Q_low).sum(-1, keepdims=True) - policy * Q_low)  # sum over b != a
    nothing = of.low[0]._replace(reward=0 * of.low[0].reward, other=0 * of.low[0].other)
    nears = np.full((2, X * A), np.nan)
    D, moved, found = np.maximum(V - V_low, 0), np.inf, others
    for _ in range(SWEEPS):
        if moved <= CLOSE:
            break
        ahead = largest(*nothing, of.discount, 1.0, D, nears[0]).reshape(X, A)
        found = policy * ahead + others
        if by is not None:
            both = largest(*of.high._replace(reward=by.reward), of.discount, 1.0, by.V + D, nears[1]).reshape(X, A)
            found = np.minimum(found, by.sure + by.share * both + (1 - by.share) * ahead)
        new = np.minimum(D, found.max(-1).clip(0))
        if of.end is not None:
            new[of.end] = 0
        D, moved = new, (D - new).max()
    return Gap(D, found.argmax(-1), by)


def advantage_bounds(of: ConfidenceSets, policy: Array, low: tuple[Array, Array]) -> Advantages:
    gamma, (X, A), states = of.discount, of.shape, np.arange(of.shape[0])
    counts = _frequencies(of)
    M = np.linalg.inv(np.eye(X) - gamma * np.einsum("xay,xa->xy", counts.P, policy))
    V = M @ (policy * counts.r).sum(-1)
    Q, PM = counts.r + gamma * counts.P @ V, counts.P @ M
    u = _error_bounds(of, policy, low, counts, M, PM, V, Q)

    m = gamma * PM - M[:, None]
    own = (m[states, :, states][..., None] * policy[:, None]) + np.eye(A)  # m_xa(x) - 1, times pi, and u(x, a) itself
    m[states, :, states] = 0
    share = np.einsum("xaa->xa", own).clip(0, 1)
    rest = own - share[..., None] * np.eye(A)
    sure = Q - V[:, None] - share * Q + _largest_sum(rest, u.above[:, None], u.below[:, None])
    sure += _largest_sum(m, (policy * u.above).sum(-1), (policy * u.below).sum(-1))

    turns, tells = (
        _largest_turns(counts.to, counts.p, counts.radius.ravel(), gamma, M, PM),
        counts.informative & counts.closed,
    )
    worst, more = _aligned(counts.to, counts.p, turns, share, M, PM, m, rest, policy, u.above, u.below)
    if X <= FEW and (policy.max(-1) == 1).all():
        at = states * A + policy.argmax(-1)
        sides = [part[at] for which in (of.high, of.low[0]) for part in which]
        of_pi = [part.ravel()[at] for part in (tells, u.above, u.below, Q)]
        more = _together(*sides, at, turns, gamma, M, PM, m, rest, V, *of_pi, more)
    mean, reward = gamma * (counts.p * worst).sum(-1).reshape(X, A), of.high.reward + gamma * worst
    extreme = largest(*of.high._replace(reward=reward), gamma, 1.0, V, np.full(X * A, np.nan)).reshape(X, A)
    less = tells & (extreme - mean - Q + more < u.most + u.slack)
    sure += share * np.where(less, more - mean, u.slack)
    return Advantages(sure, share, np.where(less.reshape(-1, 1), reward, of.high.reward), V, counts.P, u, m, own)


def _error_bounds(
    of: ConfidenceSets,
    policy: Array,
    low: tuple[Array, Array],
    counts: Frequencies,
    M: Array,
    PM: Array,
    V: Array,
    Q: Array,
) -> Errors:
    gamma, (X, A) = of.discount, of.shape
    most, least = (
        sign * largest(*which, gamma, sign, V, np.full(X * A, np.nan)).reshape(X, A) - Q
        for which, sign in ((of.high, 1.0), (of.low[0], -1.0))
    )
    (V_high, Q_high), (V_low, Q_low) = fixed_points(of, of.high, policy, 1.0), low
    above, below = Q_high - counts.r - gamma * counts.P @ V_low, Q_low - counts.r - gamma * counts.P @ V_high
    if of.end is not None:
        above[of.end] = below[of.end] = 0
    off = V_low - V, V_high - V
    slack = np.full((X, A), gamma * (off[1].max() - off[0].min()))
    for _ in range(TIGHTER):
        u_pi = (policy * above).sum(-1), (policy * below).sum(-1)
        moves = gamma * _largest_moves(counts.to, counts.p, counts.radius, counts.closed, M, PM, *u_pi, *off)
        slack = np.where(counts.informative, np.minimum(slack, moves), slack)
        highest, lowest = (
            np.where(counts.informative, most + slack, above),
            np.where(counts.informative, least - slack, below),
        )
        moved = max((above - highest).max(), (lowest - below).max())
        above, below = np.minimum(above, highest), np.maximum(below, lowest)
        if moved <= CLOSE:
            break
    return Errors(above, below, most, slack)


def exploring_actions(of: ConfidenceSets, policy: Array, found: Gap, plays: Array) -> Array:
    """The actions (X,) that make D at the start fall fastest: plays of a pair are worth what it adds to D, by plays."""
    by, gamma, X = found.by, of.discount, of.shape[0]
    assert by is not None
    states, a = np.arange(X), found.rivals
    first = of.low[1].weight[0]
    start = np.bincount(of.low[1].to[0], first, X) / max(first.sum(), 1)
    visits = np.linalg.solve(np.eye(X) - gamma * by.P[states, a].T, start) * (found.D > 0)
    adds = policy * (visits @ np.abs(by.m[states, a]))[:, None] + visits[:, None] * np.abs(by.own[states, a])
    worth = adds * (by.u.above - by.u.below) / np.maximum(plays, 1)
    if of.end is not None:
        worth[of.end] = 0
    worth /= max(worth.max(), 1e-300)
    actions = worth.argmax(-1)
    for _ in range(TIGHTER):
        V = np.linalg.solve(np.eye(X) - gamma * by.P[states, actions], worth[states, actions])
        Q = worth + gamma * by.P @ V
        better = Q.max(-1) > Q[states, actions] * (1 + 1e-9)
        if not better.any():
            break
        actions = np.where(better, Q.argmax(-1), actions)
    return actions


def _frequencies(of: ConfidenceSets) -> Frequencies:
    (X, A), rows = of.shape, of.low[0]
    total, each = rows.weight.sum(-1), np.arange(X * A)
    at_end = each // A == (-1 if of.end is None else of.end)
    stay, n = (total == 0) | at_end, np.where(total > 0, total, 1)
    to, p, r = rows.to.copy(), rows.weight / n[:, None], (rows.weight * rows.reward).sum(-1) / n
    p[stay], p[stay, 0], to[stay, 0], r[at_end] = 0, 1, (each // A)[stay], of.ended
    P = np.zeros((X * A, X))
    np.add.at(P, (each[:, None], to), p)
    informative = ~stay & (rows.radius < CERTAIN * total)
    parts = [part.reshape(X, A) for part in (r, rows.radius / n, informative, rows.closed)]
    return Frequencies(P.reshape(X, A, X), parts[0], to, p, *parts[1:])


def _largest_sum(coefficients: Array, above: Array, below: Array) -> Array:
    """The largest sum of these multiples of numbers between `below` and `above`."""
    return (np.maximum(coefficients, 0) * above + np.minimum(coefficients, 0) * below).sum(-1)


@compiled
def _largest_moves(to, p, radius, closed, M, PM, above, below, least, most):  # type: ignore[no-untyped-def]
    """What <P - P_hat, V^pi - V_hat> is at most: by its range or its variance over the successors of each pair (by its
    range over all states, if it may lead to others), and by the bounds on u_pi, or by those on V^pi - V_hat itself."""
    X, A, _ = PM.shape
    found = np.empty((X, A))
    for i in range(X * A):
        x, a = i // A, i % A
        d, apart, row = radius[x, a], min(1.0, math.sqrt(radius[x, a] / 2)), PM[x, a]
        if not closed[x, a]:
            found[x, a] = apart * (most.max() - least.min())
            continue
        high, low, top, bottom, square, largest = -np.inf, np.inf, -np.inf, np.inf, 0.0, 0.0
        for j in range(to.shape[1]):
            if p[i, j] > 0.0:
                y, up, down = to[i, j], 0.0, 0.0
                for z in range(X):
                    c = M[y, z] - row[z]
                    if c > 0.0:
                        up += c * above[z]
                        down += c * below[z]
                    else:
                        up += c * below[z]
                        down += c * above[z]
                off = max(up, -down)
                square, largest = square + p[i, j] * off * off, max(largest, off)
                high, low = max(high, up), min(low, down)
                top, bottom = max(top, most[y]), min(bottom, least[y])
        found[x, a] = min(apart * min(high - low, top - bottom), math.sqrt(2 * d * square) + d * largest)
    return found


@compiled
def _largest_turns(to, p, radius, gamma, M, PM):  # type: ignore[no-untyped-def]
    """What gamma |<P - P_hat, M(., z)>| is at most, for every pair and z: (X A, X)."""
    X, A, _ = PM.shape
    found = np.empty((X * A, X))
    for i in range(X * A):
        d = radius[i]
        apart = min(1.0, math.sqrt(d / 2))
        for z in range(X):
            square, top, bottom = 0.0, -np.inf, np.inf
            for j in range(to.shape[1]):
                if p[i, j] > 0.0:
                    c = M[to[i, j], z] - PM[i // A, i % A, z]
                    square, top, bottom = square + p[i, j] * c * c, max(top, c), min(bottom, c)
            found[i, z] = gamma * min(math.sqrt(2 * d * square) + d * max(top, -bottom), apart * (top - bottom))
    return found


@compiled
def _aligned(to, p, turns, share, M, PM, m, rest, policy, above, below):  # type: ignore[no-untyped-def]
    """e = M u_pi at the outcomes of each pair, for the u that is worst in its advantage at P_hat; and by how much more
    that may be where P turns the sign of what some u counts."""
    X, A, _ = PM.shape
    worst, more, u = np.zeros(to.shape), np.zeros((X, A)), np.empty(X)
    for i in range(X * A):
        x, a = i // A, i % A
        if share[x, a] == 0.0:
            continue
        for z in range(X):
            u[z] = 0.0
            for b in range(A):
                if policy[z, b] > 0.0:
                    counts = (rest[x, a, b] if z == x else m[x, a, z] * policy[z, b]) / share[x, a]
                    u[z] += policy[z, b] * (above[z, b] if counts > 0.0 else below[z, b])
                    more[x, a] += max(0.0, turns[i, z] * policy[z, b] - abs(counts)) * (above[z, b] - below[z, b])
        for j in range(to.shape[1]):
            if p[i, j] > 0.0:
                for z in range(X):
                    worst[i, j] += M[to[i, j], z] * u[z]
    return worst, more


@compiled
def _together(  # type: ignore[no-untyped-def]
    to, reward, weight, radius, other, closed, to_, reward_, weight_, radius_, other_, closed_,
    at, turns, gamma, M, PM, m, rest, V, tells, above, below, Q, more,
):  # fmt: skip
    """`more` of `_aligned` for a policy that tosses no coins, less what u_pi cannot be all at once: with the e that is
    worst for a pair, u_pi(z) is at most `most`, but for what that changes by where others fall short. See (6)."""
    X, A, _ = PM.shape
    found, f, u, counts = more.copy(), np.empty(X), np.empty(X), np.empty(X)
    short, price, new = np.empty(X), np.empty(X), np.empty(X)
    nears = np.full((2, X), np.nan)
    for i in range(X * A):
        x, a = i // A, i % A
        if i == at[x]:
            continue
        for z in range(X):
            counts[z] = m[x, a, z] if z != x else rest[x, a, at[x] % A]
            u[z] = above[z] if counts[z] > 0.0 else below[z]
        for y in range(X):
            f[y] = V[y]
            for z in range(X):
                f[y] += M[y, z] * u[z]
        highest = largest(to, reward, weight, radius, other, closed, gamma, 1.0, f, nears[0])
        lowest = largest(to_, reward_, weight_, radius_, other_, closed_, gamma, -1.0, f, nears[1])
        for z in range(X):
            mean = Q[z]
            for y in range(X):
                mean += gamma * PM[at[z] // A, at[z] % A, y] * u[y]
            most = highest[z] - mean if counts[z] > 0.0 else lowest[z] + mean
            short[z] = max(0.0, abs(u[z]) - most) if tells[z] and u[z] * counts[z] >= 0.0 else 0.0
            price[z] = max(0.0, abs(counts[z]) - turns[i, z]) if tells[z] else 0.0
        for _ in range(3):
            total = 0.0
            for z in range(X):
                left = turns[i, z] - abs(counts[z]) + price[z]
                for y in range(X):
                    left += price[y] * turns[at[y], z]
                total += max(0.0, left) * (above[z] - below[z]) - price[z] * short[z]
                new[z] = max(0.0, price[z] - max(0.0, left)) if tells[z] else 0.0
            found[x, a] = min(found[x, a], total)
            price[:] = new
    return found
