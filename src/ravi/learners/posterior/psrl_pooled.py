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
    r_k(x, a)     ~ Normal(r_hat + <P_k - N' / n, rho>, s^2 / n), cut to [0, 1]
    Q(x, a)       = r_k + gamma {(1 - u) <P_k, V> + u W}     where n > 0,      V(x) = max_a Q(x, a)
    Q(x, a)       = W + M - 1                                where n = 0
    W             = 1 + gamma max_x V_0(x),                  V_0 is V with 0 in place of W
    M             = largest^z, z ~ U[-1, 1]

Of all pairs with k successors a share q(k) is noisy: successors did not always pay the same. v(k) is the variance of
their rewards about rho. For one of them s^2 is drawn too, from its own variance with v(k) for one play more: as the sum
of squares about rho, and v(k), over a chi^2 variate of as many degrees of freedom as there are terms. So r_k has
Student's distribution, and a pair that lost eleven of its first twelve bets comes again. Any other may be noisy too: n
plays of a noisy pair pay the same with a chance of some (1 - 2 v)^(n - 1), so that with probability q (1 - 2 v)^(n - 1)
/ (1 - q + q (1 - 2 v)^(n - 1)) s^2 is v(k), else 0.

What is new pays at most 1, and then leads at most to the best that is known. Where [0, 1] is only the range of the
rewards that were observed, `largest` is above 1: a pair that was never played pays M, by a prior that prefers no scale,
and as likely less than all that was observed as more. So up to half of the draws lead to such pairs whatever the way to
them costs, as long as there are any that can be reached, and the others earn. a_k is greedy for Q (ties: the first
action), until a reset, or until the plays of a pair within the epoch reach max(1, n); then it is drawn anew, if a pair
was played for the first time, or if plays have grown since the last draw by 0.05 %, and by what a pair has on average,
and any was new or `largest` is above 1; then draws also wait for a step for every 32 pairs, times the share of plays of
pairs that were new to them. Where no play was ever new, every pair is taken to do what it did the first time: a world
without chance is learned by one play of every pair; a plan is made when plays have doubled. If all of them then earned
the same, no policy is known to be better than another, and the uniform one is played: it finds out whether chance had
kept the learner from what pays.

Posterior sampling maximises what is earned while learning, so it seldom plays an action that is probably worse. To
find the best policy, its actions must be compared with their rivals, which takes plays of both (D. Russo, "Simple
Bayesian algorithms for best arm identification", COLT 2016). After t plays, of which e led to the end, an action is a
rival in x if a draw since t / 2 chose it there, or if it was played less than sqrt(N(x)) times (as in the forced
exploration of A. Garivier and E. Kaufmann, "Optimal best arm identification with fixed confidence", COLT 2016):

    pi_k(a | x) = 1 - epsilon for a_k(x), and epsilon in equal parts for its rivals, if it has any,
    epsilon     = min {1/2, max {1 - gamma, e / t}}

so that about one step of an episode is a rival's, and every other step where an episode has one or two. Where no play
was ever new, rivals are actions played less than log2 N(x) times, and epsilon is 1 - gamma: they show whether the world
only looked as if it had no chance.

In a world of chance u says how many plays it takes until a pair has shown what it can do: where all pairs have three
successors, a pair that has shown three has shown all; and c how much its chances are those of the others: where all
slip to each side with probability 1/3, a pair that has shown three is known; and where others sometimes win, a pair
that lost its first three bets is not known to lose them all. Where pairs differ, c is small and counts alone decide, as
they do at last with any c. That is what is assumed: a pair is like the others. How far that is known is what u and c
are drawn by, so that a pair whose first plays were bad luck comes again.

Constants: none. `tolerance` is that of pi_k under P_k, in parts of the span of V; that of V_0 is 100 times as much.
`end` is a state known to be an end: every action stays there and earns the least that one of them was seen to earn.
`largest` is the largest reward that a pair may pay that was never played.
Guarantee: no bound on its regret is known. In every state that is met without end all actions are played without end,
and as counts grow c and u come to matter no more.
Composition: a prior of all pairs x posterior draws, and pooled missing mass x modified policy iteration x rivals x at
resets and doublings.
Cost: O(B) per step; per plan a gamma variate per successor met of a pair that has several, and two per pair in a world
of chance; X A (B + 1) per sweep of all actions; at most 2000 (1 + ln T) + X A plans.
Deviations: a pair with more than 14 successors has c = 0. Where rewards are learned (`ravi.learn`, with
reward_scale=0), they are read from the table of their means: what plays that are added together earned is known as a
sum, of which successors that were known take what they paid and those that were not the rest; else rho moves as a
running mean does, and s^2 is of sums less what rho says, each counted once. The planned policy of a stream is that of
the means of P_k and r_k, u left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import Counts, tallies
from ravi.learners.posterior.pooled import ALIKE, BINS, KINDS, WEIGHTS, Earned, Novelty, Usual, count, draw, expect
from ravi.learners.posterior.sparse import scratch, solve
from ravi.planning.sweeps import highest
from ravi.random import block
from ravi.runtime.ranges import Count, Fixed, Policy, Value
from ravi.schedules import reset_or_doubling

TOLERANCE = 1e-3  # of the value of pi_k under P_k, in parts of the span of V
ROUGH = 100.0  # times that, of V_0
RARELY = 0.0005  # growth of plays between two plans, at least
PAIRS = 32  # to a step between two draws, times the share of plays that were new, where M is drawn
SCALE = 2**32  # the part of the numbers of a draw that M is of
SINCE = 0.5  # of the plays: a draw since then makes a rival


class State(NamedTuple):
    data: Counts
    novelty: Novelty
    usual: Usual
    earned: Earned
    key: Fixed  # of the draws   (n,)
    known: Value  # V_0 of the last sample, and 0, less the least    (n, X + 1)
    u: Value  # V of the last sample, and W, less the least          (n, X + 1)
    pairs: Count  # that had been played at the last plan            (n,)
    plays: Count  # likewise                                         (n,)
    chosen: Count  # plays at the last draw that chose an action     (n, X, A)
    policy: Policy  # (n, X, A)

    def expected(self, moves: Array, rewards: Array) -> tuple[Array, Array]:
        """Of seed 0: n times the mean of P_k, given the counts (X, A, B), and that of r_k, given the means (X, A)."""
        r, P = rewards.astype(np.float64), moves.astype(np.float64)
        expect(moves, self.usual.share[0], self.usual.likely[0], self.earned.paid[0], r, P)
        return P, r

    def rescale(self, scale: float, shift: float) -> None:
        """A reward that was z in [0, 1] is scale z + shift from now on; values are kept as differences."""
        for means, counts in ((self.earned.paid, self.data.moves), (self.earned.mean, self.data.visits)):
            means[:] = np.where(counts > 0, np.minimum(means * scale + shift, 1.0), means)
        self.earned.squares[:] *= scale**2
        self.known[:] *= scale
        self.u[:] *= scale


def psrl_pooled(
    problem: Problem, steps: int, *, tolerance: float = TOLERANCE, end: int | None = None, largest: float = 1.0
) -> Learner:
    """PSRL with bootstrap draws and pooled missing mass; `end` is the number of a state that is never left, `largest`
    what a pair may pay that was never played."""
    validation.steps(steps)
    last = -1 if end is None else validation.whole(end, "end", 0, problem.states - 1)
    X, A, B = problem.successors.shape
    validation.positive(largest, "largest")
    gamma, goal = problem.discount, validation.positive(tolerance, "tolerance") / (problem.discount * problem.horizon)
    goal = min(goal, 1.0)  # a goal that is infinite times a span of 0 is not a number
    by_pair = problem.rewards.reshape(X * A)

    def init(keys: Array) -> State:
        n = len(keys)
        novelty = Novelty(np.zeros((n, BINS, KINDS), np.int64), np.zeros((n, BINS, KINDS), np.int64))
        usual = Usual(np.zeros((n, BINS, KINDS, KINDS)), np.zeros((n, BINS, KINDS, len(WEIGHTS))))
        earned = Earned(np.zeros((n, X, A, B)), np.zeros((n, X, A)), np.zeros((n, X, A)), np.zeros((n, X, A), np.int64))
        values = (np.zeros((n, X + 1)), np.zeros((n, X + 1)), np.zeros(n, np.int64), np.zeros(n, np.int64))
        policies = (np.zeros((n, X, A), np.int64), np.full((n, X, A), 1 / A))
        return State(tallies(problem, n), novelty, usual, earned, np.array(keys, np.uint64), *values, *policies)

    def plan(s: State) -> State:
        due = np.empty(len(s.key), np.bool_)
        if _due(by_pair, s.data.visits, *s.novelty, s.earned.mean, largest, s.pairs, s.plays, due):
            (paid, _, squares, terms), values = s.earned, (s.known, s.u, s.plays, s.chosen, s.policy)
            of = (*s.data, *s.novelty, *s.usual, paid, squares, terms, s.key)
            _plan(due, problem.rewards, problem.successors, gamma, goal, last, largest, *of, *scratch(X, A, B), *values)
        return s

    def add(s: State, path: Path) -> State:
        count(problem.rewards, *s.data, *s.novelty, *s.usual, *s.earned, *path[:2], path.slot, path.length)
        return s

    return Learner(
        "psrl/pooled", init, plan, add, reset_or_doubling(), {"tolerance": tolerance, "end": end, "largest": largest}
    )


@compiled
def _due(rewards, visits, tries, new, mean, largest, pairs, plays, due):  # type: ignore[no-untyped-def]
    """Which seeds are to draw anew, and of how many pairs and plays, in place; whether any is."""
    found = False
    for i in range(visits.shape[0]):
        N, means = visits[i].reshape(-1), mean[i].reshape(-1)
        n, t, differ = 0, 0, 0
        for p in range(N.shape[0]):  # in loops of their own, several pairs go at once
            n += N[p] > 0
            t += N[p]
        chance = new[i].sum() > 0
        wait = n * new[i].sum() // (PAIRS * tries[i].sum()) if chance and largest > 1.0 else 0
        due[i] = t == 0 or (n != pairs[i] and t - plays[i] >= wait)
        if not due[i] and t - plays[i] >= max(max(RARELY, 1.0 / n) * plays[i], wait):
            due[i] = largest > 1.0 or chance or t >= 2 * plays[i]
            if not due[i]:
                for p in range(N.shape[0]):
                    differ += (N[p] > 0) & (abs(rewards[p] - means[p]) > ALIKE)
                due[i] = differ > 0
        if due[i]:
            pairs[i], plays[i], found = n, t, True
    return found


@compiled
def _plan(  # type: ignore[no-untyped-def]
    due, rewards, successors, gamma, goal, end, largest, visits, moves, tries, new, share, likely, paid, squares, terms,
    key, r, rows, greedy, chain, known, u, plays, chosen, policy,
):  # fmt: skip
    """pi_k of every seed, with its values, where it is due."""
    seeds, X, A = policy.shape
    for i in range(seeds):
        if not due[i]:
            continue
        pooled, earned = (tries[i], new[i], share[i], likely[i]), (paid[i], squares[i], terms[i])
        draw(rewards, successors, visits[i], moves[i], *pooled, *earned, key[i], end, r, rows)
        solve(rows, gamma, ROUGH * goal, 0.0, r, known[i], greedy, chain)
        W = min(1.0 / (1.0 - gamma), 1.0 + gamma * (highest(known[i]) - known[i, X]))
        M = largest ** (2.0 * block(key[i], plays[i], SCALE)[0] - 1.0)
        for x in range(X):
            for a in range(A):
                if visits[i, x, a] == 0 and x != end:
                    r[x, a] = (1.0 - gamma) * W + (M - 1.0)
        solve(rows, gamma, goal, (1.0 - gamma) * W, r, u[i], greedy, chain)
        ended, chance = 0.0, new[i].sum() > 0
        if chance:
            ended = _arrivals(moves[i], successors, end) / plays[i]
        _mix(visits[i], greedy, plays[i], chance, min(0.5, max(1.0 - gamma, ended)), chosen[i], policy[i])
        if not chance and _indifferent(visits[i], rewards, end):
            policy[i] = 1.0 / A


@compiled
def _arrivals(moves, successors, end):  # type: ignore[no-untyped-def]
    """e: how many plays led to the end."""
    X, A, B = moves.shape
    found = 0
    for x in range(X):
        for a in range(A):
            for j in range(B):
                found += moves[x, a, j] * (x != end == successors[x, a, j])
    return found


@compiled
def _mix(visits, greedy, t, chance, epsilon, chosen, policy):  # type: ignore[no-untyped-def]
    """pi_k, from a_k, which is written down as chosen."""
    X, A = visits.shape
    for x in range(X):
        chosen[x, greedy[x]] = t
        N, rivals = 0, 0
        for a in range(A):
            N += visits[x, a]
        N = max(N, 1)
        for a in range(A):
            n = visits[x, a]
            few = n * n < N if chance else 1 << min(n, 62) < N  # n < sqrt(N), or log2 N
            rival = a != greedy[x] and (few or (chance and chosen[x, a] > SINCE * t))
            policy[x, a] = 1.0 if rival else 0.0
            rivals += rival
        if rivals > 0:
            for a in range(A):
                policy[x, a] *= epsilon / rivals
        policy[x, greedy[x]] = 1.0 - epsilon if rivals > 0 else 1.0


@compiled
def _indifferent(visits, rewards, end):  # type: ignore[no-untyped-def]
    """Whether in the states that were met, but the end, every action was played and all earned the same."""
    X, A = visits.shape
    first, found = 0.0, False
    for x in range(X):
        if visits[x].sum() > 0 and x != end:
            for a in range(A):
                if visits[x, a] == 0 or (found and rewards[x, a] != first):
                    return False
                first, found = rewards[x, a], True
    return found
