"""PSRL without a prior: how likely a pair leads to what it never led to is learned from all pairs together.

Paper: none; draws as those of D. Rubin, "The Bayesian bootstrap", Annals of Statistics 9, 1981, missing mass as that of
I. J. Good, "The population frequencies of species and the estimation of population parameters", Biometrika 40, 1953.
Setting: discounted with resets, tabular; for streams whose rewards and successors are not known.
Trust: DERIVED: the definition is the algorithm; its plans are compared with a transcription of the equations below.

A play is new to its pair if it leads to a successor that the pair had not led to, or earns the first reward that
differs from those before. Of all plays so far of pairs that had been played before, n times (in bins 1, 2, 3-4, 5-8,
..., 65 and more) and with k different successors, t(n, k) were tried and f(n, k) were new, f at most t; a dot is a sum:

    m(n)    = max {1 / t(., .), max_{l >= n} f(l, .) / t(l, .)}, or 0 while nothing was new
    u(n, k) ~ Beta(f(n, k) + m(n), t(n, k) - f(n, k) + 1), or 0 where m is

In epoch k, with n and N' the counts of a pair:

    P_k(. | x, a) ~ Dirichlet(N'(x, a, .)), on the successors that were met
    r_k(x, a)     ~ Normal(r_hat, s^2 / n), cut to [0, 1]; s^2 is the variance of rewards, 0 while all were alike
    Q(x, a)       = r_k + gamma {(1 - u) <P_k, V> + u W}     where n > 0,      V(x) = max_a Q(x, a)
    Q(x, a)       = W                                        where n = 0
    W             = 1 + gamma max_x V_0(x),                  V_0 is V with 0 in place of W

What is new pays at most 1, and then leads at most to the best that is known. pi_k is greedy for Q (ties: the first
action), until a reset, or until the plays of a pair within the epoch reach max(1, n); then it is drawn anew, if a pair
was played for the first time, or if plays have grown by 0.05 % since the last draw and any was new. Where no play was
ever new, every pair is taken to do what it did the first time: a world without chance is learned by one play of every
pair. In a world of chance u says how many plays it takes until a pair has shown what it can do: where all pairs have
three successors, a pair that has shown three has shown all. That is what is assumed: a pair is like the others. How far
that is known is what u is drawn by, so that a pair whose first plays were bad luck comes again.

Constants: none. `tolerance` is that of pi_k under P_k, in parts of the span of V; that of V_0 is 100 times as much.
`end` is a state known to be an end: every action stays there and earns the least that one of them was seen to earn.
Guarantee: none.
Composition: counts from 0 x bootstrap draws, and pooled missing mass x modified policy iteration x at resets and
doublings.
Cost: O(1) per step; per plan a gamma variate per successor met of a pair that has several, and two per pair in a world
of chance; X A (B + 1) per sweep of all actions; at most 2000 (1 + ln T) + X A plans.
Deviations: a first reward that differs is counted beside its play's successor, by the successors met then. Where
rewards are learned (`ravi.learn`, with reward_scale=0), they are read from the table of their means, and the variance
is that of means of the plays that are added together, each counted once.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np

from ravi import checks
from ravi.compiled import compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import EVERY_PLAY, Counts, tallies
from ravi.learners.posterior.dirichlet import gamma_above_one
from ravi.learners.posterior.psrl import SHRINK
from ravi.random import block
from ravi.ranges import Count, Facts, Fixed, Policy, Positive, Probability, Value
from ravi.schedules import reset_or_doubling

TOLERANCE = 1e-3  # of the value of pi_k under P_k, in parts of the span of V
ROUGH = 100.0  # times that, of V_0
ROUNDING = 2.0**-40  # of H: a span of T u - u that can be reached
RARELY = 0.0005  # growth of plays between two plans
BINS = 8  # of n: 1, 2, 3-4, ..., 65 and more
KINDS = 16  # of successors met; 15 and more are one
ALIKE = 1e-9  # means of rewards that differ by less are the same, but for rounding


class Novelty(NamedTuple):
    """What was new to a pair, by the plays and the successors of it before, of all pairs together."""

    tries: Count  # plays                       (n, BINS, KINDS)
    new: Count  # of which something was new    (n, BINS, KINDS)

    def agrees(self, facts: Facts) -> dict[str, Array]:
        return {"no more was new than was tried": self.new.sum((1, 2)) <= 2 * self.tries.sum((1, 2))}


class Earned(NamedTuple):
    """What is known of the rewards of a pair."""

    mean: Probability  # of the plays that were added   (n, X, A)
    squares: Positive  # of means of plays that were added together, less the mean: their sum   (n, X, A)
    terms: Count  # of the sum                          (n, X, A)


class State(NamedTuple):
    data: Annotated[Counts, EVERY_PLAY]
    novelty: Novelty
    earned: Earned
    key: Fixed  # of the draws   (n,)
    known: Value  # V_0 of the last sample, and 0, less the least    (n, X + 1)
    u: Value  # V of the last sample, and W, less the least          (n, X + 1)
    pairs: Count  # that had been played at the last plan            (n,)
    plays: Count  # likewise                                         (n,)
    policy: Policy  # (n, X, A)


def psrl_pooled(problem: Problem, steps: int, *, tolerance: float = TOLERANCE, end: int | None = None) -> Learner:
    """PSRL with bootstrap draws and pooled missing mass; `end` is the number of a state that is never left."""
    checks.steps(steps)
    last = -1 if end is None else checks.whole(end, "end", 0, problem.states - 1)
    X, A, B = problem.successors.shape
    gamma, goal = problem.discount, checks.positive(tolerance, "tolerance") / (problem.discount * problem.horizon)

    def init(keys: Array) -> State:
        n = len(keys)
        novelty = Novelty(np.zeros((n, BINS, KINDS), np.int64), np.zeros((n, BINS, KINDS), np.int64))
        earned = Earned(np.zeros((n, X, A)), np.zeros((n, X, A)), np.zeros((n, X, A), np.int64))
        values = (np.zeros((n, X + 1)), np.zeros((n, X + 1)), np.zeros(n, np.int64), np.zeros(n, np.int64))
        policy = np.full((n, X, A), 1 / A)
        return State(tallies(problem, n), novelty, earned, np.array(keys, np.uint64), *values, policy)

    scratch = cache(lambda: (np.empty((X, A)), np.empty((X, A, B + 1)), np.empty(X + 1), np.empty(X, np.int64)))

    def plan(s: State) -> State:
        of, values = (*s.data, *s.novelty, *s.earned, s.key), (s.known, s.u, s.pairs, s.plays, s.policy)
        _plan(problem.rewards, problem.successors, gamma, goal, last, *of, *scratch(), *values)
        return s

    def add(s: State, path: Path) -> State:
        _add(problem.rewards, *s.data, *s.novelty, *s.earned, *path[:2], path.slot, path.length)
        return s

    return Learner("psrl/pooled", init, plan, add, reset_or_doubling(), {"tolerance": tolerance, "end": end})


@compiled
def _add(rewards, visits, moves, tries, new, mean, squares, terms, state, action, slot, length):  # type: ignore[no-untyped-def]
    """Count the plays of a path, and what was new in them."""
    for i in range(state.shape[0]):
        for l in range(length[i]):
            x, a, j = state[i, l], action[i, l], slot[i, l]
            n = visits[i, x, a]
            if n > 0:
                b, k = _bin(n), _kinds(moves[i, x, a])
                tries[i, b, k] += 1
                new[i, b, k] += moves[i, x, a, j] == 0
            visits[i, x, a] += 1
            moves[i, x, a, j] += 1
        for l in range(length[i]):  # a pair that comes twice has nothing left the second time
            x, a = state[i, l], action[i, l]
            n, m, off = visits[i, x, a], 0, rewards[x, a] - mean[i, x, a]
            if terms[i, x, a] < 0:
                continue
            for k in range(l, length[i]):
                m += state[i, k] == x and action[i, k] == a
            if n > m:
                if abs(off) > ALIKE:
                    if squares[i, x, a] == 0.0:
                        new[i, _bin(n - m), _kinds(moves[i, x, a])] += 1
                    squares[i, x, a] += off * off * n * (n - m) / m
                terms[i, x, a] += 1
            mean[i, x, a] = rewards[x, a]
            terms[i, x, a] = -1 - terms[i, x, a]
        for l in range(length[i]):
            x, a = state[i, l], action[i, l]
            if terms[i, x, a] < 0:
                terms[i, x, a] = -1 - terms[i, x, a]


@compiled
def _bin(n):  # type: ignore[no-untyped-def]
    """Of n = 1, 2, 3-4, 5-8, ...: 0, 1, 2, 3, ..."""
    b = 0
    while n > 1 and b < BINS - 1:
        n = (n + 1) // 2
        b += 1
    return b


@compiled
def _kinds(row):  # type: ignore[no-untyped-def]
    """How many successors were met."""
    k = 0
    for j in range(row.shape[0]):
        k += row[j] > 0
    return min(k, KINDS - 1)


@compiled
def _plan(  # type: ignore[no-untyped-def]
    rewards, successors, gamma, goal, end, visits, moves, tries, new, mean, squares, terms, key, r, P, next, greedy,
    known, u, pairs, plays, policy,
):  # fmt: skip
    """pi_k of every seed, with its values, where it is due."""
    seeds, X, A = policy.shape
    for i in range(seeds):
        n, t, drawn = 0, visits[i].sum(), new[i].sum() > 0
        for x in range(X):
            for a in range(A):
                if visits[i, x, a] > 0:
                    n += 1
                    drawn |= abs(rewards[x, a] - mean[i, x, a]) > ALIKE
        if t > 0 and n == pairs[i] and (not drawn or t - plays[i] < RARELY * t):
            continue
        pairs[i], plays[i] = n, t
        _draw(rewards, visits[i], moves[i], tries[i], new[i], mean[i], squares[i], terms[i], key[i], end, r, P)
        _solve(successors, gamma, ROUGH * goal, end, 0.0, r, P, known[i], next, greedy)
        W = min(1.0 / (1.0 - gamma), 1.0 + gamma * (known[i].max() - known[i, X]))
        for x in range(X):
            for a in range(A):
                if visits[i, x, a] == 0 and x != end:
                    r[x, a] = (1.0 - gamma) * W
        _solve(successors, gamma, goal, end, (1.0 - gamma) * W, r, P, u[i], next, greedy)
        policy[i] = 0.0
        for x in range(X):
            policy[i, x, greedy[x]] = 1.0


@compiled
def _draw(rewards, visits, moves, tries, new, mean, squares, terms, key, end, r, P):  # type: ignore[no-untyped-def]
    """r_k (X, A), 0 where n = 0, and P_k (X, A, B + 1) with u in its last column, of one seed."""
    X, A, B = moves.shape
    t, part = 1 + visits.sum(), 1
    for x in range(X):
        for a in range(A):
            n, row = visits[x, a], P[x, a]
            row[:] = 0.0
            if x == end:
                r[x, a] = rewards[x].min()
                continue
            if n == 0:
                r[x, a], row[B] = 0.0, 1.0
                continue
            total = 0.0
            for j in range(B):
                if moves[x, a, j] == n:
                    row[j] = 1.0
                elif moves[x, a, j] > 0:
                    row[j], part = gamma_above_one(moves[x, a, j] + 1.0, key, t, part)
                    u, _, _, _ = block(key, t, part)
                    row[j] *= (1.0 - u) ** (1.0 / moves[x, a, j])  # of shape m, from one of shape m + 1
                    part += 1
                total += row[j]
            row[B], part = _missing(tries, new, _bin(n), _kinds(moves[x, a]), key, t, part)
            for j in range(B):
                row[j] *= (1.0 - row[B]) / total
            r[x, a] = rewards[x, a]
            if squares[x, a] > 0.0:
                u, w, _, _ = block(key, t, part)
                part += 1
                z = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w)
                r[x, a] = min(1.0, max(0.0, mean[x, a] + z * math.sqrt(squares[x, a] / (terms[x, a] * n))))


@compiled
def _missing(tries, new, b, k, key, t, part):  # type: ignore[no-untyped-def]
    """u(n, k), n in bin b, and the next part of the block of random numbers."""
    most = min(new.sum(), 1) / max(tries.sum(), 1)
    for c in range(b, BINS):
        most = max(most, new[c].sum() / max(tries[c].sum(), 1))
    if most == 0.0:
        return 0.0, part
    f = new[b, k] + most
    some, part = gamma_above_one(f + 1.0, key, t, part)
    u, _, _, _ = block(key, t, part)
    some *= (1.0 - u) ** (1.0 / f)  # of shape f, from one of shape f + 1
    rest, part = gamma_above_one(max(tries[b, k] - new[b, k], 0) + 1.0, key, t, part + 1)
    return some / (some + rest), part


@compiled
def _solve(successors, gamma, goal, end, novel, r, P, u, next, greedy):  # type: ignore[no-untyped-def]
    """Modified policy iteration from u, in place, until span(T u - u) <= goal times that of u; `greedy` is that of the
    last T. What is new earns `novel` for ever."""
    while True:
        span = _sweep(successors, gamma, end, novel, r, P, u, next, greedy, True)
        enough = max(goal * u.max(), ROUNDING / (1.0 - gamma))
        if span <= enough:
            return
        enough = max(SHRINK * span, enough / 2)
        while span > enough:
            span = _sweep(successors, gamma, end, novel, r, P, u, next, greedy, False)


@compiled
def _sweep(successors, gamma, end, novel, r, P, u, next, greedy, improve):  # type: ignore[no-untyped-def]
    """u <- its backup by the best actions, which are written, or by those of before; less its least. The span of what
    it moved by. The last entry is of a state that earns `novel` for ever."""
    X, A, B = successors.shape
    top = u[X]
    next[X] = novel + gamma * top
    low = high = next[X] - top
    least = next[X]
    for x in range(X):
        best = -np.inf
        for a in range(A if improve else 1):
            b = a if improve else greedy[x]
            row, to = P[x, b], successors[x, b]
            value = row[B] * top if x != end else u[x]
            for j in range(B):
                value += row[j] * u[np.uint32(to[j])]
            value = r[x, b] + gamma * value
            if value > best:
                best = value
                greedy[x] = b
        next[x] = best
        low, high, least = min(low, best - u[x]), max(high, best - u[x]), min(least, best)
    for x in range(X + 1):
        u[x] = next[x] - least
    return high - low
