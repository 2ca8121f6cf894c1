"""A kernel from its posterior, drawn as far as its optimal policy needs it, and that policy.

A row ~ Dirichlet over atoms y_1, ..., y_K with shapes c_1, ..., c_K, and over all X states with theta / X each, which
is, with b = c_1 + ... + c_K (T. Ferguson, "A Bayesian analysis of some nonparametric problems", Annals of Statistics 1,
1973; J. Sethuraman, "A constructive definition of Dirichlet priors", Statistica Sinica 4, 1994)

    w_0 ~ Beta(theta, b),        (w_1, ..., w_K) / (1 - w_0) ~ Dirichlet(c_1, ..., c_K)
    P(. | x, a) = w_1 delta(y_1) + ... + w_K delta(y_K) + w_0 {s_1 delta(z_1) + s_2 delta(z_2) + ...}
    s_j = b_j (1 - b_1) ... (1 - b_{j-1}),             b_j ~ Beta(1, theta),      z_j uniform on all X states.

    a prior on all states       theta = alpha_0 X; the atoms are the successors that were met, c = N'
    a prior on the support      theta = 0, so w_0 = 0; the atoms are the support, c = alpha_0 + N'

After j sticks s about e^(-j / theta) of w_0 is left: with the usual prior, theta = 1, some twenty sticks tell all that
matters of a row of any length. Then w_0 = 1 - U^(1 / b). A stick takes one uniform number U: the whole part of X U is
z_j, its fraction gives b_j, to 53 - log2 X bits. The shares of atoms are gamma variates in parts of their sum, taken
from their logarithms: with a tiny alpha_0 all of a row without visits may be below all that a number holds.

The numbers of pair p at step t are the blocks (p + 1) 2^32, (p + 1) 2^32 + 1, ... of that step (`ravi.random`): a row
is the same however far it is drawn, and whichever rows are. So the plan draws as it goes. With u >= 0, and `left` of a
row not drawn yet,

    r + gamma <drawn, u>  <=  Q(x, a)  <=  r + gamma <drawn, u> + gamma left max u,

and an action is drawn on only while the two are more than `tail` apart and the upper one exceeds the best lower one of
its state by more than `tail`. The last backup has tail = goal / 4 and ends at a span of 3 goal / 4, so that span(T u -
u) <= goal holds for the whole of P. Between backups the change c of u is swept on with the greedy policy, c <- gamma P
c, by the first entries of its rows, with all but (1 - gamma) / 2 of their mass. What is left out adds at most gamma / 2
of the span: sweeps that bring a change to 0.2 of it leave at most 0.7 to the next backup.

In the average reward the plan of step t has the discount gamma_t = 1 - 1 / (t + 1). Its policy has, from every start, a
gain within (1 - gamma_t) span(h) + goal of the best under P, h a bias of that: with T u - u in [l, l + goal], gains are
at least l + (1 - gamma_t) min u, and g* - (1 - gamma_t) span(h) <= (1 - gamma_t) min V <= (1 - gamma_t) min u + l +
goal for the fixed point V >= g* / (1 - gamma_t) + h - max h. Sweeps mix a change with the one before, against
periods.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import Buffer, each, sync, team, team_max, team_min
from ravi.core import Array, Problem
from ravi.random import block


@compiled
def gamma_above_one(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of shape > 1, and the first block that was not used."""
    d = shape - 1.0 / 3.0
    while True:
        u, w, accept, _ = block(key, t, part)
        part += 1
        z = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w)
        v = 1.0 + 1.0 / math.sqrt(9.0 * d) * z
        if v > 0.0:
            v = v * v * v
            if accept < 1.0 - 0.0331 * z**4 or math.log(accept) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return d * v, part


@compiled
def gamma(shape, key, t, part):  # type: ignore[no-untyped-def]
    """Gamma variates, of which rows of a Dirichlet distribution are made.

        shape > 1    Marsaglia and Tsang (2000): d (1 + c Z)^3, Z normal by Box and Muller, accepted in 95 % and more
        shape = 1    -ln(1 - U)
        shape < 1    G U^(1 / shape), G of shape + 1

    All are exact. They take the blocks of step t under the learner's key (`ravi.random`) one after another, from `part`
    on.

    A gamma variate of any shape above 0, and the first block that was not used.
    """
    if shape > 1.0:
        return gamma_above_one(shape, key, t, part)
    u, _, _, _ = block(key, t, part)
    if shape == 1.0:
        return -math.log(1.0 - u), part + 1
    drawn, part = gamma_above_one(shape + 1.0, key, t, part + 1)
    return drawn * (1.0 - u) ** (1.0 / shape), part


@compiled
def log_gamma(shape, key, t, part):  # type: ignore[no-untyped-def]
    """The logarithm of one, which may be below all that a number holds, and the first block that was not used."""
    if shape >= 1.0:
        drawn, part = gamma(shape, key, t, part)
        return math.log(drawn), part
    u, _, _, _ = block(key, t, part)
    drawn, part = gamma_above_one(shape + 1.0, key, t, part + 1)
    return math.log(drawn) + math.log(1.0 - u) / shape, part


SHRINK = 0.2  # of the span, by sweeps between backups
COARSE = 0.01  # of the span before: `tail`, until that is goal / 4
BRIEF = 0.5  # of 1 - gamma: the mass that sweeps leave out
OWN = 1 << 32  # blocks of a pair
MIXING = 0.9  # of a change with the one before, in the average reward
DIGITS = 2.0**53  # of a mass: more sticks are below what a number holds
MOST_STICKS = 10_000  # of a row
TOLERANCE = 1e-4  # of the value of a policy, under the kernel that it is optimal for


class Posterior(NamedTuple):
    """What a draw is made of, and scratch by team. A pair is p = x A + a; entry j of its row is at p E + j, E being how
    many it may have."""

    successors: Array  # (X, A, B)
    gamma: float
    prior: float  # of an atom that was not met: alpha_0 on the support, or 0
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


def usual_prior(problem: Problem, knows_support: bool) -> float:
    """alpha_0 unless given: 1 / X over all states, 1 over the support."""
    return 1.0 if knows_support else 1 / problem.states


def goal_of(problem: Problem, tolerance: float = TOLERANCE) -> float:
    """span(T u - u) at which a policy is within `tolerance` of optimal, where rounding lets it be reached; in the
    average reward, sqrt(t) times that at step t."""
    if problem.criterion == "average":
        return tolerance
    return max(tolerance / (problem.discount * problem.horizon), 2.0**-44 * problem.horizon)


def posterior(problem: Problem, knows_support: bool, prior: float, goal: float, teams: int) -> Posterior:
    """Draws under Dirichlet(`prior`) on the support, where it is told, or else on all states; plans to `goal`."""
    X, A, B = problem.successors.shape
    theta = (
        0.0 if knows_support else 1.0 if prior == usual_prior(problem, False) else prior * X
    )  # 1, whatever rounding makes
    pairs, states, entries = (teams, X * A), (teams, X), (teams, X * A * (B + sticks_of(problem, theta, goal)))
    return Posterior(
        problem.successors, problem.discount, prior if knows_support else 0.0, theta, goal, Buffer(entries, np.int32),
        Buffer(entries), Buffer(pairs, np.int32), Buffer(pairs), Buffer(pairs, np.int64), Buffer(pairs),
        Buffer(states, np.int32), Buffer(states, np.int32), Buffer(states), Buffer(states), Buffer(states),
    )  # fmt: skip


def sticks_of(problem: Problem, theta: float, goal: float) -> int:
    """So many sticks of a row tell it to the goal, but for a chance of about 1e-14: their number is Poisson's."""
    if theta == 0.0:
        return 0
    values = problem.discount * problem.horizon if problem.criterion == "discounted" else DIGITS
    mean = theta * max(math.log(4 * values / goal), 0.0)
    needed = mean + 10 * math.sqrt(mean) + 10
    if needed > MOST_STICKS:
        raise validation.InputError(
            f"a row of {problem.states} states takes {needed:.3g} draws with prior={theta / problem.states:g}, and "
            f"{MOST_STICKS} are the most: lower the prior, raise the tolerance, or give the support (support=on)"
        )
    return 4 * math.ceil(needed / 4)


@compiled
def draw_and_plan(i, of, rewards, moves, key, t, u, policy):  # type: ignore[no-untyped-def]
    """P_k of seed i, as far as it matters, and the policy that is optimal for it; a team's."""
    _, X, A = policy.shape
    k = team()
    to, mass, size, left, part, greedy = of.to[k], of.mass[k], of.size[k], of.left[k], of.part[k], of.greedy[k]
    E = to.shape[0] // (X * A)
    for x in each(X):
        greedy[x] = x * A
        for a in range(A):
            p, row = x * A + a, moves[i, x, a]
            if policy[i, x, a] == 1.0:
                greedy[x] = p
            size[p], left[p], part[p] = atoms(
                of.prior, of.theta, of.successors[x, a], row, key[i], t, (p + 1) * OWN, p * E, to, mass
            )
    gamma, goal, mixing = of.gamma, of.goal, 1.0
    if gamma == 1.0:
        gamma, goal, mixing = t / (t + 1.0), max(goal / math.sqrt(t), 2.0**-44 * (t + 1.0)), MIXING
    _optimal(rewards[i if rewards.shape[0] > 1 else 0], of, gamma, goal, mixing, key[i], t, u[i])
    for x in each(X):
        for a in range(A):
            policy[i, x, a] = 1.0 if x * A + a == greedy[x] else 0.0
    sync()


@compiled
def draw_and_plan_backward(i, of, rewards, moves, key, t, values, policy):  # type: ignore[no-untyped-def]
    """P_k of seed i but for `of.goal` of each row, and the policy by stage that is optimal for it; a team's.

    values: scratch, (teams, 2, X).
    """
    _, S, X, A = policy.shape
    k = team()
    to, mass, size, V = of.to[k], of.mass[k], of.size[k], values[k]
    E = to.shape[0] // (X * A)
    for x in each(X):
        V[S % 2, x] = 0.0
        for a in range(A):
            p = x * A + a
            begin = p * E
            many, left, part = atoms(
                of.prior, of.theta, of.successors[x, a], moves[i, x, a], key[i], t, (p + 1) * OWN, begin, to, mass
            )
            end = begin + many
            while left > of.goal:
                left = _four_sticks(of.theta, X, key[i], t, part, left, end, begin + E, to, mass)
                part += 1
                end += 4
            mass[end - 1] += left
            size[p] = end - begin
    sync()
    for h in range(S - 1, -1, -1):
        for x in each(X):
            best, choice = -np.inf, 0
            for a in range(A):
                begin = (x * A + a) * E
                value = rewards[x, a] + _mean(begin, begin + size[x * A + a], to, mass, V[(h + 1) % 2])
                if value > best:
                    best, choice = value, a
            V[h % 2, x] = best
            for a in range(A):
                policy[i, h, x, a] = 1.0 if a == choice else 0.0
        sync()


@compiled
def atoms(prior, theta, successors, moves, key, t, part, begin, to, mass):  # type: ignore[no-untyped-def]
    """y_1, ..., y_K of a row and w_1, ..., w_K, from entry `begin` on, by the blocks from `part` on; K, w_0 and the
    next block. Successors that are told repeat a state where their row is padded (`ravi.optimism.known_support`)."""
    end, plays = begin, 0
    for j in range(moves.shape[0]):
        if end > begin and successors[j] == to[end - 1]:
            mass[end - 1] += moves[j]
        elif prior + moves[j] > 0.0:
            to[end], mass[end] = successors[j], prior + moves[j]
            end += 1
        plays += moves[j]
    K, left = end - begin, 0.0
    if K == 0:
        return K, 1.0, part
    if theta == 1.0:
        left, part = 1.0 - block(key, t, part)[0] ** (1.0 / plays), part + 1
    elif theta > 0.0:
        left, part = gamma(theta, key, t, part)
        others, part = gamma(float(plays), key, t, part)
        left /= left + others
    if K == 1:
        mass[begin] = 1.0 - left
        return K, left, part
    most, total = -np.inf, 0.0
    for e in range(begin, end):
        mass[e], part = log_gamma(mass[e], key, t, part)
        most = max(most, mass[e])
    for e in range(begin, end):
        mass[e] = math.exp(mass[e] - most)
        total += mass[e]
    for e in range(begin, end):
        mass[e] *= (1.0 - left) / total
    return K, left, part


@partial(compiled, forceinline=True)  # a call takes as long as the rest
def _four_sticks(theta, X, key, t, part, left, at, stop, to, mass):  # type: ignore[no-untyped-def]
    """Four sticks more, from entry `at` on, by one number each: X times it is the state, and a fraction that is 1 - b.
    The mass that is left; where there is no room for four more before `stop`, the last one takes all."""
    for number in block(key, t, part):
        y = int(number * X)
        rest = number * X - y
        if theta != 1.0:
            rest **= 1.0 / theta
        to[np.uint32(at)], mass[np.uint32(at)] = y, left - left * rest
        left *= rest
        at += 1
    if at + 4 > stop:
        mass[at - 1] += left
        return 0.0
    return left


@compiled
def _optimal(rewards, of, gamma, goal, mixing, key, t, u):  # type: ignore[no-untyped-def]
    """Modified policy iteration from u >= 0, in place, until span(T u - u) <= goal; rows are drawn on where the choice
    of an action, or its value, depends on it. `mixing`: the share of a sweep in a change. A team's."""
    X, A = rewards.shape
    k = team()
    to, mass, size, left, part, most = of.to[k], of.mass[k], of.size[k], of.left[k], of.part[k], of.most[k]
    brief, greedy, change, next, before = of.brief[k], of.greedy[k], of.change[k], of.next[k], of.before[k]
    theta, E = of.theta, to.shape[0] // (X * A)
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
                pair = np.uint32(was if j < 0 else x * A + j)
                if (j >= 0 and pair == was) or most[pair] <= best + tail:
                    continue
                begin, end, rest = pair * E, pair * E + size[pair], left[pair]
                value = rewards[x, pair - x * A] + gamma * _mean(begin, end, to, mass, u)
                while gamma * rest * top > tail and value + gamma * rest * top > best + tail:
                    rest = _four_sticks(theta, X, key, t, part[pair], rest, end, begin + E, to, mass)
                    value += gamma * _mean(end, end + 4, to, mass, u)
                    part[pair] += 1
                    end += 4
                size[pair], left[pair], most[pair] = end - begin, rest, value + gamma * rest * top
                if value > best or (value == best and pair < b):
                    best, b = value, np.int64(pair)
            greedy[x], change[x], before[x] = b, best - u[x], u[x]
            low, high = min(low, change[x]), max(high, change[x])
        low, high = team_min(low), team_max(high)
        span = high - low
        if span <= 0.75 * goal and tail <= goal / 4:
            return
        for x in each(X):
            brief[x] = _first(greedy[x] * E, size[greedy[x]], mass, 1.0 - BRIEF * (1.0 - gamma))
        tail, enough = max(COARSE * span, goal / 4), max(SHRINK * span, goal / 4)
        if mixing < 1.0:
            low, high = mixing * low, mixing * high
            for x in each(X):
                change[x] *= mixing
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
                if mixing < 1.0:
                    next[x] = mixing * next[x] + (1.0 - mixing) * change[x]
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
