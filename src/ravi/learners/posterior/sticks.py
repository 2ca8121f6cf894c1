"""How is a kernel drawn of which most entries are next to nothing? By sticks, as far as its optimal policy needs it.

A row ~ Dirichlet(alpha_0 + N') over X states, with theta = alpha_0 X, has the law of (T. Ferguson, "A Bayesian analysis
of some nonparametric problems", Annals of Statistics 1, 1973; J. Sethuraman, "A constructive definition of Dirichlet
priors", Statistica Sinica 4, 1994)

    w ~ Dirichlet(theta, N'(y_1), ..., N'(y_K)),       y_1, ..., y_K the successors that were met
    P(. | x, a) = w_1 delta(y_1) + ... + w_K delta(y_K) + w_0 {s_1 delta(z_1) + s_2 delta(z_2) + ...}
    s_j = b_j (1 - b_1) ... (1 - b_{j-1}),             b_j ~ Beta(1, theta),      z_j uniform on all X states,

because a Dirichlet process over a uniform base on X states is Dirichlet(theta / X, ..., theta / X) there. After j
sticks about e^(-j / theta) of w_0 is left: with the usual prior, theta = 1, some twenty sticks tell all that matters of
a row of any length.

The numbers of pair p at step t are the blocks (p + 1) 2^32, (p + 1) 2^32 + 1, ... of that step (`ravi.random`): a row
is the same however far it is drawn, and whichever rows are. So the plan draws as it goes. With u >= 0, and `left` of a
row not drawn yet,

    r + gamma <drawn, u>  <=  Q(x, a)  <=  r + gamma <drawn, u> + gamma left max u,

and an action is drawn on only while the two are more than `tail` apart and the upper one exceeds the best lower one of
its state by more than `tail`. The last backup has tail = goal / 4 and ends at a span of 3 goal / 4, so that span(T u -
u) <= goal holds for the whole of P. Between backups the change c of u is swept on with the greedy policy, c <- gamma P
c, by the first entries of its rows, with all but (1 - gamma) / 2 of their mass. What is left out adds at most gamma / 2
of the span: sweeps that bring a change to 0.2 of it leave at most 0.7 to the next backup.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array, Problem
from ravi.learners.posterior.dirichlet import gamma
from ravi.random import block
from ravi.teams import Room, each, sync, team, team_max, team_min

SHRINK = 0.2  # of the span, by sweeps between backups
COARSE = 0.01  # of the span before: `tail`, until that is goal / 4
BRIEF = 0.5  # of 1 - gamma: the mass that sweeps leave out
OWN = 1 << 32  # blocks of a pair


class Sticks(NamedTuple):
    """What a draw is made of, and scratch by team. A pair is p = x A + a; entry j of its row is at p E + j, E being how
    many it may have."""

    successors: Array  # (X, A, B)
    gamma: float
    theta: float
    goal: float
    to: Any  # states of rows, in the order of drawing    (teams, X A E)
    mass: Any  # their probabilities                      (teams, X A E)
    size: Any  # how many were drawn                      (teams, X A)
    left: Any  # and the mass that was not                (teams, X A)
    part: Any  # the next block                           (teams, X A)
    most: Any  # at least Q of this u                     (teams, X A)
    brief: Any  # entries that sweeps take                (teams, X)
    greedy: Any  # the pairs of the greedy policy         (teams, X)
    change: Any  # of u, by the last sweep                (teams, X)
    next: Any  # by the one after it                      (teams, X)
    before: Any  # u at the last backup                   (teams, X)


def sticks_of(problem: Problem, theta: float, goal: float) -> int:
    """So many sticks of a row tell it to the goal, but for a chance of about 1e-14: their number is Poisson's."""
    mean = theta * math.log(4 * problem.discount * problem.horizon / goal)
    return 2 * math.ceil((mean + 10 * math.sqrt(mean) + 10) / 2)


def sticks(problem: Problem, theta: float, goal: float, teams: int) -> Sticks:
    X, A, B = problem.successors.shape
    pairs, states = (teams, X * A), (teams, X)
    entries = (teams, X * A * (B + sticks_of(problem, theta, goal)))
    return Sticks(
        problem.successors, problem.discount, theta, goal, Room(entries, np.int32), Room(entries),
        Room(pairs, np.int32), Room(pairs), Room(pairs, np.int64), Room(pairs), Room(states, np.int32),
        Room(states, np.int32), Room(states), Room(states), Room(states),
    )  # fmt: skip


@compiled
def plan_by_sticks(low, high, of, rewards, moves, key, t, u, policy):  # type: ignore[no-untyped-def]
    """P_k of seeds low, ..., high - 1, as far as it matters, and the policy that is optimal for it; a team's."""
    _, X, A = policy.shape
    k = team()
    to, mass, size, left, part, greedy = of.to[k], of.mass[k], of.size[k], of.left[k], of.part[k], of.greedy[k]
    successors, E = of.successors, to.shape[0] // (X * A)
    for i in range(low, high):
        for x in each(X):
            greedy[x] = x * A
            for a in range(A):
                p = x * A + a
                if policy[i, x, a] == 1.0:
                    greedy[x] = p
                size[p], left[p], part[p] = _met(of.theta, i, x, a, successors, moves, key[i], t[i], p * E, to, mass)
        _optimal(rewards[i if rewards.shape[0] > 1 else 0], of, key[i], t[i], u[i])
        for x in each(X):
            for a in range(A):
                policy[i, x, a] = 1.0 if x * A + a == greedy[x] else 0.0
        sync()


@compiled
def _met(theta, i, x, a, successors, moves, key, t, begin, to, mass):  # type: ignore[no-untyped-def]
    """w_1, ..., w_K of the row of (x, a), whose first entry is `begin`; K, w_0 and the next block."""
    K, total, part = 0, 0.0, (x * moves.shape[2] + a + 1) * OWN
    for j in range(moves.shape[3]):
        if moves[i, x, a, j] > 0:
            to[begin + K] = successors[x, a, j]
            mass[begin + K], part = gamma(float(moves[i, x, a, j]), key, t, part)
            total += mass[begin + K]
            K += 1
    if K == 0:
        return K, 1.0, part
    left, part = gamma(theta, key, t, part)
    total += left
    for j in range(K):
        mass[begin + j] /= total
    return K, left / total, part


@compiled
def _two_sticks(theta, X, key, t, part, left, at, last, to, mass):  # type: ignore[no-untyped-def]
    """Two sticks more, at entries `at` and the next one; the mass that is left. The `last` that there is room for takes
    all."""
    u, y, v, z = block(key, t, part)
    if theta != 1.0:
        u, v = u ** (1.0 / theta), v ** (1.0 / theta)
    mass[at], mass[at + 1] = left - left * u, left * u - left * u * v  # u, v are 1 - b
    to[at], to[at + 1] = int(y * X), int(z * X)
    if at + 1 == last:
        mass[last] += left * u * v
        return 0.0
    return left * u * v


@compiled
def _optimal(rewards, of, key, t, u):  # type: ignore[no-untyped-def]
    """Modified policy iteration from u >= 0, in place, until span(T u - u) <= goal; rows are drawn on where the choice
    of an action, or its value, depends on it. A team's."""
    X, A = rewards.shape
    k = team()
    to, mass, size, left, part, most = of.to[k], of.mass[k], of.size[k], of.left[k], of.part[k], of.most[k]
    brief, greedy, change, next, before = of.brief[k], of.greedy[k], of.change[k], of.next[k], of.before[k]
    gamma, theta, goal, E = of.gamma, of.theta, of.goal, to.shape[0] // (X * A)
    top = 0.0
    for x in each(X):
        top = max(top, u[x])
        for p in range(x * A, (x + 1) * A):
            most[p] = np.inf
    top = team_max(top)
    tail = max(COARSE * top, goal / 4)
    while True:
        low, high = np.inf, -np.inf
        for x in each(X):
            was, best, b = greedy[x], -np.inf, greedy[x]
            for j in range(-1, A):
                p = was if j < 0 else x * A + j
                if (j >= 0 and p == was) or most[p] <= best + tail:
                    continue
                begin, end, rest = p * E, p * E + size[p], left[p]
                value = rewards[x, p - x * A] + gamma * _mean(begin, end, to, mass, u)
                while gamma * rest * top > tail and value + gamma * rest * top > best + tail:
                    rest = _two_sticks(theta, X, key, t, part[p], rest, end, begin + E - 1, to, mass)
                    value += gamma * _mean(end, end + 2, to, mass, u)
                    part[p] += 1
                    end += 2
                size[p], left[p], most[p] = end - begin, rest, value + gamma * rest * top
                if value > best or (value == best and p < b):
                    best, b = value, p
            greedy[x], change[x], before[x] = b, best - u[x], u[x]
            low, high = min(low, change[x]), max(high, change[x])
        low, high = team_min(low), team_max(high)
        span = high - low
        if span <= 0.75 * goal and tail <= goal / 4:
            return
        for x in each(X):
            brief[x] = _first(greedy[x] * E, size[greedy[x]], mass, 1.0 - BRIEF * (1.0 - gamma))
        tail, enough = max(COARSE * span, goal / 4), max(SHRINK * span, goal / 4)
        sync()  # all have read u
        while True:
            for x in each(X):
                change[x] -= (low + high) / 2
                u[x] += change[x]
            sync()
            if high - low <= enough:
                break
            low, high = np.inf, -np.inf
            for x in each(X):
                next[x] = gamma * _mean(greedy[x] * E, greedy[x] * E + brief[x], to, mass, change)
                low, high = min(low, next[x]), max(high, next[x])
            low, high = team_min(low), team_max(high)
            sync()  # all have read the change
            for x in each(X):
                change[x] = next[x]
        least = np.inf
        for x in each(X):
            least = min(least, u[x])
        least = team_min(least)
        top, rise = 0.0, -np.inf
        for x in each(X):
            u[x] -= least
            top, rise = max(top, u[x]), max(rise, u[x] - before[x])
        top, rise = team_max(top), team_max(rise)
        for x in each(X):
            for p in range(x * A, (x + 1) * A):
                most[p] += gamma * rise
        sync()


@compiled
def _mean(begin, end, to, mass, v):  # type: ignore[no-untyped-def]
    """The sum of mass times v over these entries."""
    total = 0.0
    for e in range(begin, end):
        total += mass[np.uint32(e)] * v[np.uint32(to[np.uint32(e)])]
    return total


@compiled
def _first(begin, many, mass, enough):  # type: ignore[no-untyped-def]
    """How many entries of a row have that mass together, or all."""
    j, total = 0, 0.0
    while j < many and total < enough:
        total += mass[begin + j]
        j += 1
    return j
