"""PSRL whose prior is learned: what a pair may do that it never did, and how often it does what it did, is learned from
all pairs together.

Paper: none; draws as those of D. Rubin, "The Bayesian bootstrap", Annals of Statistics 9, 1981, missing mass as that of
I. J. Good, "The population frequencies of species and the estimation of population parameters", Biometrika 40, 1953,
and a prior from the data as in H. Robbins, "An empirical Bayes approach to statistics", Berkeley Symposium 3, 1956.
Setting: discounted with resets, tabular; for streams whose rewards and successors are not known.
Trust: DERIVED: the definition is the algorithm; its plans are compared with a transcription of the equations below.

A play is new to its pair if it leads to a successor that the pair had not led to, or earns the first reward that
differs from what that successor paid before. Of all plays so far of pairs that had been played before, n times (in bins
1, 2, 3-4, 5-8, ..., 65 and more) and with k different successors, t(n, k) were tried and f(n, k) were new, f at most t;
a dot is a sum:

    m(n)    = max {1 / t(., .), max_{l >= n} f(l, .) / t(l, .)}, or 0 while nothing was new
    u(n, k) ~ Beta(f(n, k) + m(n), t(n, k) - f(n, k) + 1), or 0 where m is

Of those that led to a successor that was known, s(n, k, i) led to the i-th of the k, from the one that the pair had led
to most often; successors of equal counts N' share their ranks. With b(y) the mean of (s(n, k, i) + 1) / (s(n, k, .) +
k) over the ranks of y,

    c(n, k) ~ prod (N'(y) + c b(y)) / (n + c) over these plays, each as it was then; c is 0, 1, 4, 16, ..., or 1024
    c(n, k) = 0 until one of them led to the first of the k

In epoch k, with n and N' the counts of a pair, and rho(y) the mean of what it earned on the way to y:

    P_k(. | x, a) ~ Dirichlet(N'(x, a, .) + c b), on the successors that were met
    r_k(x, a)     ~ Beta of mean r_hat + <P_k - N' / n, rho>, cut to [0, 1], and variance s^2 / n
    Q(x, a)       = r_k + gamma {(1 - u) <P_k, V> + u W}     where n > 0,      V(x) = max_a Q(x, a)
    Q(x, a)       = W                                        where n = 0
    W             = 1 + gamma max_x V_0(x),                  V_0 is V with 0 in place of W

Of all pairs with k successors a share q(k) is noisy: successors did not always pay the same. v(k) is the variance of
their rewards about rho. For one of them s^2 is drawn too, from its own variance with v(k) for one play more: as the sum
of squares about rho, and v(k), over a chi^2 variate of as many degrees of freedom as there are terms. Any other may be
noisy too: n plays of a noisy pair pay the same with a chance of some (1 - 2 v)^(n - 1), so that with probability
q (1 - 2 v)^(n - 1) / (1 - q + q (1 - 2 v)^(n - 1)) s^2 is v(k), else 0. A mean below 2 s^2 / n counts as that, and a
variance that is too large for a Beta distribution as that of one whose two shapes sum to 1. With its long tail a pair
that lost eleven of its first twelve bets comes again.

What is new pays at most 1, and then leads at most to the best that is known. pi_k is greedy for Q (ties: the first
action), until a reset, or until the plays of a pair within the epoch reach max(1, n); then it is drawn anew, if a pair
was played for the first time, or if plays have grown by 0.05 % since the last draw and any was new. Where no play was
ever new, every pair is taken to do what it did the first time: a world without chance is learned by one play of every
pair. In a world of chance u says how many plays it takes until a pair has shown what it can do: where all pairs have
three successors, a pair that has shown three has shown all; and c how much its chances are those of the others: where
all slip to each side with probability 1/3, a pair that has shown three is known; and where others sometimes win, a pair
that lost its first three bets is not known to lose them all. Where pairs differ, c is small and counts alone decide, as
they do at last with any c. That is what is assumed: a pair is like the others. How far that is
known is what u and c are drawn by, so that a pair whose first plays were bad luck comes again.

Constants: none. `tolerance` is that of pi_k under P_k, in parts of the span of V; that of V_0 is 100 times as much.
`end` is a state known to be an end: every action stays there and earns the least that one of them was seen to earn.
Guarantee: none.
Composition: a prior of all pairs x posterior draws, and pooled missing mass x modified policy iteration x at resets and
doublings.
Cost: O(B) per step; per plan a gamma variate per successor met of a pair that has several, and two per pair in a world
of chance; X A (B + 1) per sweep of all actions; at most 2000 (1 + ln T) + X A plans.
Deviations: a pair with more than 14 successors has c = 0. Where rewards are learned (`ravi.learn`, with
reward_scale=0), they are read from the table of their means: what plays that are added together earned is known as a
sum, of which successors that were known take what they paid and those that were not the rest; else rho moves as a
running mean does, and s^2 is of sums less what rho says, each counted once. The planned policy of a stream is that of
the means of P_k and r_k, u left out.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ravi import checks
from ravi.compiled import compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import EVERY_PLAY, Counts, tallies
from ravi.learners.posterior.dirichlet import gamma_above_one
from ravi.learners.posterior.sparse import scratch, solve
from ravi.random import block
from ravi.ranges import Count, Facts, Fixed, LogPolicy, Policy, Positive, Probability, Value
from ravi.schedules import reset_or_doubling

TOLERANCE = 1e-3  # of the value of pi_k under P_k, in parts of the span of V
ROUGH = 100.0  # times that, of V_0
RARELY = 0.0005  # growth of plays between two plans
BINS = 8  # of n: 1, 2, 3-4, ..., 65 and more
KINDS = 16  # of successors met; 15 and more are one
WEIGHTS = (0.0, *(4.0**g for g in range(6)))  # c
ALIKE = 1e-9  # means of rewards that differ by less are the same, but for rounding


class Novelty(NamedTuple):
    """What was new to a pair, by the plays and the successors of it before, of all pairs together."""

    tries: Count  # plays                       (n, BINS, KINDS)
    new: Count  # of which something was new    (n, BINS, KINDS)

    def agrees(self, facts: Facts) -> dict[str, Array]:
        return {"no more was new than was tried": self.new.sum((1, 2)) <= 2 * self.tries.sum((1, 2))}


class Usual(NamedTuple):
    """How often a pair leads to each rank of its successors, by its plays and successors before, of all together."""

    share: Positive  # plays that were not new, by rank              (n, BINS, KINDS, KINDS)
    likely: LogPolicy  # the logarithm of their likelihood, by c     (n, BINS, KINDS, len(WEIGHTS))


class Earned(NamedTuple):
    """What is known of the rewards of a pair."""

    paid: Probability  # mean by successor              (n, X, A, B)
    mean: Probability  # of the plays that were added   (n, X, A)
    squares: Positive  # of plays that were added together, less what their successors pay: their sum   (n, X, A)
    terms: Count  # of the sum                          (n, X, A)


class State(NamedTuple):
    data: Annotated[Counts, EVERY_PLAY]
    novelty: Novelty
    usual: Usual
    earned: Earned
    key: Fixed  # of the draws   (n,)
    known: Value  # V_0 of the last sample, and 0, less the least    (n, X + 1)
    u: Value  # V of the last sample, and W, less the least          (n, X + 1)
    pairs: Count  # that had been played at the last plan            (n,)
    plays: Count  # likewise                                         (n,)
    policy: Policy  # (n, X, A)

    def expected(self, moves: Array, rewards: Array) -> tuple[Array, Array]:
        """Of seed 0: n times the mean of P_k, given the counts (X, A, B), and that of r_k, given the means (X, A)."""
        r, P = rewards.astype(np.float64), moves.astype(np.float64)
        _expect(moves, self.usual.share[0], self.usual.likely[0], self.earned.paid[0], r, P)
        return P, r

    def rescale(self, scale: float, shift: float) -> None:
        """A reward that was z in [0, 1] is scale z + shift from now on; values are kept as differences."""
        for means, counts in ((self.earned.paid, self.data.moves), (self.earned.mean, self.data.visits)):
            means[:] = np.where(counts > 0, np.minimum(means * scale + shift, 1.0), means)
        self.earned.squares[:] *= scale**2
        self.known[:] *= scale
        self.u[:] *= scale


def psrl_pooled(problem: Problem, steps: int, *, tolerance: float = TOLERANCE, end: int | None = None) -> Learner:
    """PSRL with bootstrap draws and pooled missing mass; `end` is the number of a state that is never left."""
    checks.steps(steps)
    last = -1 if end is None else checks.whole(end, "end", 0, problem.states - 1)
    X, A, B = problem.successors.shape
    gamma, goal = problem.discount, checks.positive(tolerance, "tolerance") / (problem.discount * problem.horizon)
    by_pair = problem.rewards.reshape(X * A)

    def init(keys: Array) -> State:
        n = len(keys)
        novelty = Novelty(np.zeros((n, BINS, KINDS), np.int64), np.zeros((n, BINS, KINDS), np.int64))
        usual = Usual(np.zeros((n, BINS, KINDS, KINDS)), np.zeros((n, BINS, KINDS, len(WEIGHTS))))
        earned = Earned(np.zeros((n, X, A, B)), np.zeros((n, X, A)), np.zeros((n, X, A)), np.zeros((n, X, A), np.int64))
        values = (np.zeros((n, X + 1)), np.zeros((n, X + 1)), np.zeros(n, np.int64), np.zeros(n, np.int64))
        policy = np.full((n, X, A), 1 / A)
        return State(tallies(problem, n), novelty, usual, earned, np.array(keys, np.uint64), *values, policy)

    def plan(s: State) -> State:
        due = np.empty(len(s.key), np.bool_)
        if _due(by_pair, s.data.visits, s.novelty.new, s.earned.mean, s.pairs, s.plays, due):
            (paid, _, squares, terms), values = s.earned, (s.known, s.u, s.policy)
            of = (*s.data, *s.novelty, *s.usual, paid, squares, terms, s.key)
            _plan(due, problem.rewards, problem.successors, gamma, goal, last, *of, *scratch(X, A, B), *values)
        return s

    def add(s: State, path: Path) -> State:
        _add(problem.rewards, *s.data, *s.novelty, *s.usual, *s.earned, *path[:2], path.slot, path.length)
        return s

    return Learner("psrl/pooled", init, plan, add, reset_or_doubling(), {"tolerance": tolerance, "end": end})


@compiled
def _add(  # type: ignore[no-untyped-def]
    rewards, visits, moves, tries, new, share, likely, paid, mean, squares, terms, state, action, slot, length
):
    """Count the plays of a path, and what was new in them."""
    for i in range(state.shape[0]):
        for l in range(length[i]):
            x, a, j = state[i, l], action[i, l], slot[i, l]
            n = visits[i, x, a]
            if n > 0:
                b, k = _bin(n), _kinds(moves[i, x, a])
                tries[i, b, k] += 1
                new[i, b, k] += moves[i, x, a, j] == 0
                if moves[i, x, a, j] > 0:
                    _score(moves[i, x, a], n, k, j, share[i, b, k], likely[i, b, k])
            if moves[i, x, a, j] == 0:
                paid[i, x, a, j] = -1.0  # until the rewards are read
            visits[i, x, a] += 1
            moves[i, x, a, j] += 1
        for l in range(length[i]):  # a pair that comes twice has nothing left the second time
            x, a = state[i, l], action[i, l]
            n, m, fresh, off = visits[i, x, a], 0, 0, 0.0
            if terms[i, x, a] < 0:
                continue
            for k in range(l, length[i]):
                if state[i, k] == x and action[i, k] == a:
                    m += 1
                    fresh += paid[i, x, a, slot[i, k]] < 0.0
                    off -= max(paid[i, x, a, slot[i, k]], 0.0)
            off += n * rewards[x, a] - (n - m) * mean[i, x, a]  # earned, less what the successors pay
            noisy = fresh == 0 and abs(off) > ALIKE * n
            if noisy:
                if squares[i, x, a] == 0.0:
                    new[i, _bin(n - m), _kinds(moves[i, x, a])] += 1
                squares[i, x, a] += off * off / m * (n - m) / n
            terms[i, x, a] += fresh == 0
            for k in range(l, length[i]):
                if state[i, k] == x and action[i, k] == a:
                    j = slot[i, k]
                    if paid[i, x, a, j] < 0.0:
                        paid[i, x, a, j] = min(1.0, max(0.0, off / fresh))
                    elif noisy:
                        paid[i, x, a, j] = min(1.0, max(0.0, paid[i, x, a, j] + off / (m * moves[i, x, a, j])))
            mean[i, x, a] = rewards[x, a]
            terms[i, x, a] = -1 - terms[i, x, a]
        for l in range(length[i]):
            x, a = state[i, l], action[i, l]
            if terms[i, x, a] < 0:
                terms[i, x, a] = -1 - terms[i, x, a]


@compiled
def _score(row, n, k, j, share, likely):  # type: ignore[no-untyped-def]
    """A play of a pair with k successors, which were met `row` times of n, led to the j-th of them."""
    if 1 < k < KINDS - 1:
        first, after = _rank(row, j)
        base = _base(share, k, first, after)
        for g in range(len(WEIGHTS)):
            likely[g] += math.log((row[j] + WEIGHTS[g] * base) / (n + WEIGHTS[g]))
        for rank in range(first, after):
            share[rank] += 1.0 / (after - first)


@compiled
def _rank(row, j):  # type: ignore[no-untyped-def]
    """How many successors were met more often than j, and how many as often or more."""
    first = after = 0
    for l in range(row.shape[0]):
        first += row[l] > row[j]
        after += row[l] >= row[j]
    return first, after


@compiled
def _base(share, k, first, after):  # type: ignore[no-untyped-def]
    """b of a successor whose rank is one of first, ..., after - 1."""
    here = total = 0.0
    for rank in range(k):
        total += share[rank] + 1.0
        if first <= rank < after:
            here += share[rank] + 1.0
    return here / (total * (after - first))


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
def _due(rewards, visits, new, mean, pairs, plays, due):  # type: ignore[no-untyped-def]
    """Which seeds are to draw anew, and of how many pairs and plays, in place; whether any is."""
    found = False
    for i in range(visits.shape[0]):
        N, means = visits[i].reshape(-1), mean[i].reshape(-1)
        n, t, differ = 0, 0, 0
        for p in range(N.shape[0]):  # in loops of their own, several pairs go at once
            n += N[p] > 0
            t += N[p]
        due[i] = t == 0 or n != pairs[i]
        if not due[i] and t - plays[i] >= RARELY * t:
            due[i] = new[i].sum() > 0
            if not due[i]:
                for p in range(N.shape[0]):
                    differ += (N[p] > 0) & (abs(rewards[p] - means[p]) > ALIKE)
                due[i] = differ > 0
        if due[i]:
            pairs[i], plays[i], found = n, t, True
    return found


@compiled
def _plan(  # type: ignore[no-untyped-def]
    due, rewards, successors, gamma, goal, end, visits, moves, tries, new, share, likely, paid, squares, terms, key,
    r, rows, greedy, chain, known, u, policy,
):  # fmt: skip
    """pi_k of every seed, with its values, where it is due."""
    seeds, X, A = policy.shape
    for i in range(seeds):
        if not due[i]:
            continue
        pooled, earned = (tries[i], new[i], share[i], likely[i]), (paid[i], squares[i], terms[i])
        _draw(rewards, successors, visits[i], moves[i], *pooled, *earned, key[i], end, r, rows)
        solve(rows, gamma, ROUGH * goal, 0.0, r, known[i], greedy, chain)
        W = min(1.0 / (1.0 - gamma), 1.0 + gamma * (known[i].max() - known[i, X]))
        for x in range(X):
            for a in range(A):
                if visits[i, x, a] == 0 and x != end:
                    r[x, a] = (1.0 - gamma) * W
        solve(rows, gamma, goal, (1.0 - gamma) * W, r, u[i], greedy, chain)
        policy[i] = 0.0
        for x in range(X):
            policy[i, x, greedy[x]] = 1.0


@compiled
def _draw(  # type: ignore[no-untyped-def]
    rewards, successors, visits, moves, tries, new, share, likely, paid, squares, terms, key, end, r, rows
):
    """r_k (X, A), 0 where n = 0, and P_k of one seed: u as a mass of state X, before those of the successors that were
    met; the end leads to itself."""
    X, A, B = moves.shape
    least, (noisy, spread) = _rates(tries, new), _noise(moves, squares, terms)
    if least[0] == 0.0 and noisy[1] == 0.0 and _repeat(rewards, successors, moves, end, r, rows):
        return
    t, part, c = 1 + visits.sum(), 1, np.zeros((BINS, KINDS))
    for b in range(BINS):
        for k in range(2, KINDS - 1):
            if share[b, k, 0] > 0.0:
                c[b, k], part = _weight(likely[b, k], key, t, part)
    first, to, mass = rows
    size = np.uint32(0)
    for x in range(X):
        for a in range(A):
            n, begun = visits[x, a], size
            if x == end or n == 0:
                r[x, a] = rewards[x].min() if x == end else 0.0
                to[size], mass[size] = x if x == end else X, 1.0
                first[x * A + a + 1] = size = size + np.uint32(1)
                continue
            k = _kinds(moves[x, a])
            b, total, tilt = _bin(n), 0.0, 0.0
            size += np.uint32(least[b] > 0.0)
            for j in range(B):
                if moves[x, a, j] > 0:
                    drawn = 1.0
                    if moves[x, a, j] < n:
                        shape = float(moves[x, a, j])
                        if c[b, k] > 0.0:
                            above, after = _rank(moves[x, a], j)
                            shape += c[b, k] * _base(share[b, k], k, above, after)
                        drawn, part = _gamma(shape, key, t, part)
                    to[size], mass[size] = successors[x, a, j], drawn
                    total += drawn
                    size += np.uint32(1)
            r[x, a] = rewards[x, a]
            if k > 1:
                at = begun + np.uint32(least[b] > 0.0)
                for j in range(B):
                    if moves[x, a, j] > 0:
                        tilt += (mass[at] / total - moves[x, a, j] / n) * paid[x, a, j]
                        at += np.uint32(1)
                r[x, a] = min(1.0, max(0.0, rewards[x, a] + tilt))
            known = 1.0
            if least[b] > 0.0:
                to[begun] = X
                mass[begun], part = _missing(least[b], tries[b, k], new[b, k], key, t, part)
                known -= mass[begun]
                begun += np.uint32(1)
            for e in range(begun, size):
                mass[e] *= known / total
            if noisy[k] > 0.0:
                v, _, _, _ = block(key, t, part)
                part += 1
                chance, variance = 1.0, spread[k]
                if squares[x, a] > 0.0:
                    half, part = gamma_above_one((terms[x, a] + 1.0) / 2.0, key, t, part)
                    variance = (squares[x, a] + spread[k]) / (2.0 * half)
                else:
                    alike = noisy[k] * max(0.0, 1.0 - 2.0 * spread[k]) ** terms[x, a]
                    chance = alike / (1.0 - noisy[k] + alike) if alike > 0.0 else 0.0
                if v < chance:
                    r[x, a], part = _bounded(r[x, a], variance / n, key, t, part)
            first[x * A + a + 1] = size


@compiled
def _repeat(rewards, successors, moves, end, r, rows):  # type: ignore[no-untyped-def]
    """`_draw` where every pair does what it did the first time; whether each was seen to do one thing at most."""
    X, A, B = moves.shape
    first, to, mass = rows
    for x in range(X):
        for a in range(A):
            p, kinds, slot = x * A + a, 0, 0
            for j in range(B):
                kinds += moves[x, a, j] > 0
                slot += j * (moves[x, a, j] > 0)
            if kinds > 1:
                return False
            r[x, a], to[p] = (rewards[x, a], successors[x, a, slot]) if kinds == 1 else (0.0, X)
            mass[p], first[p + 1] = 1.0, p + 1
    if end >= 0:
        r[end], to[end * A : (end + 1) * A] = rewards[end].min(), end
    return True


@compiled
def _noise(moves, squares, terms):  # type: ignore[no-untyped-def]
    """Of pairs with k successors, how many have noisy rewards, as a share, and the variance of these, by k."""
    X, A, _ = moves.shape
    share, variance, pairs, plays = np.zeros(KINDS), np.zeros(KINDS), np.zeros(KINDS), np.zeros(KINDS)
    some, by_pair = False, squares.reshape(-1)
    for p in range(by_pair.shape[0]):  # several pairs go at once
        some |= by_pair[p] > 0.0
    if not some:
        return share, variance
    for x in range(X):
        for a in range(A):
            if terms[x, a] > 0:
                k = _kinds(moves[x, a])
                pairs[k] += 1.0
                if squares[x, a] > 0.0:
                    share[k] += 1.0
                    variance[k] += squares[x, a]
                    plays[k] += terms[x, a]
    for k in range(KINDS):
        share[k] /= max(pairs[k], 1.0)
        variance[k] /= max(plays[k], 1.0)
    return share, variance


@compiled
def _weight(likely, key, t, part):  # type: ignore[no-untyped-def]
    """c, drawn by how likely each is, and the next part of the block of random numbers."""
    odds = np.exp(likely - likely.max())
    u, g = block(key, t, part)[0] * odds.sum(), 0
    while g < len(WEIGHTS) - 1 and u >= odds[g]:
        u -= odds[g]
        g += 1
    return WEIGHTS[g], part + 1


@compiled
def _expect(moves, share, likely, paid, r, P):  # type: ignore[no-untyped-def]
    """r (X, A) and P (X, A, B), the means and the counts, as they are expected to be; in place."""
    X, A, B = moves.shape
    for x in range(X):
        for a in range(A):
            n, k, tilt = moves[x, a].sum(), _kinds(moves[x, a]), 0.0
            b, own = _bin(n), 0.0
            if not 1 < k < KINDS - 1 or share[b, k, 0] == 0.0:  # c is 0, as in `_draw`
                continue
            odds = np.exp(likely[b, k] - likely[b, k].max())
            for g in range(len(WEIGHTS)):  # the mean of n / (n + c)
                own += odds[g] / odds.sum() * n / (n + WEIGHTS[g])
            for j in range(B):
                if moves[x, a, j] > 0:
                    first, after = _rank(moves[x, a], j)
                    P[x, a, j] = own * moves[x, a, j] + (1.0 - own) * n * _base(share[b, k], k, first, after)
                    tilt += (P[x, a, j] - moves[x, a, j]) / n * paid[x, a, j]
            r[x, a] = min(1.0, max(0.0, r[x, a] + tilt))


@compiled
def _rates(tries, new):  # type: ignore[no-untyped-def]
    """m(n), by the bin of n."""
    most, found = min(new.sum(), 1) / max(tries.sum(), 1), np.empty(BINS)
    for b in range(BINS - 1, -1, -1):
        most = max(most, new[b].sum() / max(tries[b].sum(), 1))
        found[b] = most
    return found


@compiled
def _missing(least, tries, new, key, t, part):  # type: ignore[no-untyped-def]
    """u(n, k), with m(n) = `least` > 0, and the next part of the block of random numbers."""
    some, part = _gamma(new + least, key, t, part)
    rest, part = gamma_above_one(max(tries - new, 0) + 1.0, key, t, part)
    return some / (some + rest), part


@compiled
def _bounded(mean, variance, key, t, part):  # type: ignore[no-untyped-def]
    """A Beta variate with this variance and mean, or a mean of twice the variance if that is more, and the next part of
    the block of random numbers."""
    mean = min(max(mean, min(2.0 * variance, 0.5)), 1.0 - 1e-9)  # both shapes are above 0
    size = max(mean * (1.0 - mean) / variance - 1.0, 1.0)
    some, part = _gamma(size * mean, key, t, part)
    rest, part = _gamma(size * (1.0 - mean), key, t, part)
    return (some / (some + rest) if some + rest > 0.0 else mean), part


@compiled
def _gamma(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of any shape above 0, from one of a shape that is one more, and the next part."""
    drawn, part = gamma_above_one(shape + 1.0, key, t, part)
    u, _, _, _ = block(key, t, part)
    return drawn * (1.0 - u) ** (1.0 / shape), part + 1
