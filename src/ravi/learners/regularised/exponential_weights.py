"""POLITEX and MDP-E in the average reward: exponential weights on the relative values of the policies that were played.

A round takes J steps. In round k, x' is the state in which it ends, pi_k is played, and q_k, v_k estimate its relative
values, v_k(x') = 0, and g_k its gain:

    q_k(x, a)       = r(x, a) - g_k + (P_hat_k v_k)(x, a)
    pi_{k+1}(a | x) = exp(eta sum_{j <= k} (q_j - v_j)(x, a)) / sum_b exp(eta sum_{j <= k} (q_j - v_j)(x, b))

Weights do not see v_j, which depends on x only. Every state that was met leads to x' under P_hat: so v_k(x), the
expected sum of r - g_k until x' is reached, is found by an elimination of all states but x'.

    politex  P_hat_k, and the frequencies of actions in a state, are those of round k alone, and g_k is the mean of its
             rewards: least squares for one-hot features. q_k - v_k is cut to [-sp, sp], and is 0 where (x, a) was not
             played in the round.
    mdp-e    P_hat_k is that of all steps so far, and g_k, v_k are exact for pi_k under it. A pair that was never played
             stays where it is, with reward 1.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import Buffer, each, first, sync, team
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.estimators.counts import Counts, tallies
from ravi.runtime.ranges import NextPlay, Number, PlaceOrNone, Policy
from ravi.runtime.seedwise import compiled_learner


class State(NamedTuple):
    data: Counts  # of the round (politex), or of all steps (mdp-e)
    total: Number  # sum_j (q_j - v_j)    (n, X, A)
    last: PlaceOrNone  # x'               (n,)
    time: NextPlay  # of the next step    (n,)
    policy: Policy  # (n, X, A)


class Own(NamedTuple):
    """What a plan is given."""

    visits: Array
    moves: Array
    total: Array
    last: Array
    time: Array
    policy: Array
    rewards: Array
    successors: Array
    eta: float
    span: float  # sp
    round: int  # J
    chain: Any  # scratch by team: of a policy   (teams, X, X)
    sums: Any  # of rewards, and of steps, until x'   (teams, 2, X)


def exponential_weights(
    name: str, problem: Problem, plan: Callable[..., Any], eta: float, span: float, steps: int, settings: dict[str, Any]
) -> Learner:
    """The learner whose rounds of so many `steps` begin with `plan`."""
    X, A = problem.states, problem.actions

    def init(keys: Array) -> State:
        n = len(keys)
        none, now = np.full(n, -1, np.int32), np.ones(n, np.int64)
        return State(tallies(problem, n), np.zeros((n, X, A)), none, now, np.full((n, X, A), 1 / A))

    def own(s: State, teams: int) -> Own:
        read = problem.rewards, problem.successors, eta, span, steps
        return Own._make((*s.data, *s[1:], *read, Buffer((teams, X, X)), Buffer((teams, 2, X))))

    form = Seedwise(plan, seed_learn, own, reset=False, time=lambda s: s.time)
    return compiled_learner(name, init, form, {"eta": eta, "span": span} | settings)


@compiled
def plan_politex(own, i, t):  # type: ignore[no-untyped-def]
    """The next round; a team's."""
    _, _, total, last, _, policy, r, successors, eta, span, steps, chain, sums = own
    k, visits, moves, x_end = team(), own.visits[i], own.moves[i], last[i]
    X, A, B = moves.shape
    if first() and x_end >= 0:
        G, earned, played, plays, gain = chain[k], sums[k, 0], sums[k, 1], 0.0, 0.0
        G[:] = 0.0
        for x in range(X):
            earned[x], played[x] = 0.0, 0.0
            for a in range(A):
                played[x] += visits[x, a]
                earned[x] += visits[x, a] * r[x, a]
            plays += played[x]
            gain += earned[x]
            for a in range(A):
                for j in range(B):
                    if moves[x, a, j] > 0:
                        G[x, successors[x, a, j]] += moves[x, a, j] / played[x]
        gain /= plays
        for x in range(X):
            earned[x] = earned[x] / played[x] - gain if played[x] > 0.0 else 0.0
        sum_until(G, x_end, sums[k, :1])
        earned[x_end] = 0.0
        for x in range(X):
            for a in range(A):
                if visits[x, a] > 0:
                    ahead = 0.0
                    for j in range(B):
                        ahead += moves[x, a, j] * earned[successors[x, a, j]]
                        moves[x, a, j] = 0
                    q = r[x, a] - gain + ahead / visits[x, a]
                    total[i, x, a] += min(max(q - earned[x], -span), span)
                    visits[x, a] = 0
    sync()
    weigh(total[i], eta, policy[i])
    return t + steps - 1


@compiled
def plan_mdp_e(own, i, t):  # type: ignore[no-untyped-def]
    """The next round; a team's."""
    _, _, total, last, _, policy, r, successors, eta, _, steps, chain, sums = own
    k, visits, moves, x_end = team(), own.visits[i], own.moves[i], last[i]
    X, A, B = moves.shape
    if first() and x_end >= 0:
        G, v, times = chain[k], sums[k, 0], sums[k, 1]
        G[:] = 0.0
        for x in range(X):
            v[x], times[x] = 0.0, 1.0
            for a in range(A):
                n, p = visits[x, a], policy[i, x, a]
                v[x] += p * (r[x, a] if n > 0 else 1.0)
                for j in range(B):
                    if moves[x, a, j] > 0:
                        G[x, successors[x, a, j]] += p * moves[x, a, j] / n
        sum_until(G, x_end, sums[k])
        gain = v[x_end] / times[x_end]
        for x in range(X):
            v[x] -= gain * times[x]
        v[x_end] = 0.0
        for x in range(X):
            for a in range(A):
                n, ahead = visits[x, a], 0.0
                for j in range(B):
                    ahead += moves[x, a, j] * v[successors[x, a, j]]
                total[i, x, a] += r[x, a] - gain + ahead / n - v[x] if n > 0 else 1.0 - gain
    sync()
    weigh(total[i], eta, policy[i])
    return t + steps - 1


@compiled
def sum_until(G, s, sums):  # type: ignore[no-untyped-def]
    """Each row of `sums` (m, X), of what a state earns, becomes the expected sum until the chain G (X, X) is in s, of s
    until it is there again; 0 of a state that leads nowhere. States are taken out of the chain one by one, in place, by
    sums of numbers that are not negative (Grassmann, Taksar and Heyman 1985)."""
    X = G.shape[0]
    for k in range(X):  # G[k, k] becomes the probability to leave k, among the states that are left
        out = 0.0
        for y in range(X):
            if y != k and (y > k or y == s):
                out += G[k, y]
        G[k, k] = out
        if k == s:
            continue
        for x in range(X):
            if x != k and (x > k or x == s) and out > 0.0 and G[x, k] > 0.0:
                share = G[x, k] / out
                for row in range(sums.shape[0]):
                    sums[row, x] += share * sums[row, k]
                for y in range(X):
                    if y != k and (y > k or y == s):
                        G[x, y] += share * G[k, y]
    for k in range(X - 1, -1, -1):
        if k != s:
            for row in range(sums.shape[0]):
                total = sums[row, k]
                for y in range(k + 1, X):
                    if y != s:
                        total += G[k, y] * sums[row, y]
                sums[row, k] = total / G[k, k] if G[k, k] > 0.0 else 0.0


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step; one thread's."""
    own.visits[i, x, a] += 1
    own.moves[i, x, a, slot] += 1
    own.last[i], own.time[i] = after, t + 1
    return False


@compiled
def weigh(total, eta, policy):  # type: ignore[no-untyped-def]
    """policy(a | x) = exp(eta total(x, a)), normalised, in place; a team's."""
    X, A = total.shape
    for x in each(X):
        top = total[x, 0]
        for a in range(1, A):
            top = max(top, total[x, a])
        mass = 0.0
        for a in range(A):
            policy[x, a] = exp(eta * (total[x, a] - top))
            mass += policy[x, a]
        for a in range(A):
            policy[x, a] /= mass
