"""The Markov chain of a policy, and the solution of its equations.

    V = r_pi + gamma P_pi V,   nu = (1 - gamma) nu_0 + gamma P_pi^T nu

Both read x = source + gamma K x with a sparse K >= 0, and both are solved exactly by elimination where there are few
states, and by sweeps, helped by a Krylov method where they are slow, where there are many.
"""

import math
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, first, sync
from ravi.core import Array
from ravi.planning.certificates import centre, sweep_limit
from ravi.planning.sweeps import chain_sweep

ELIMINATED = 150  # states; at 150, it is three times faster than sweeps on a grid, three times slower where chains mix
STRETCH = 64  # sweeps between two looks at how fast they converge
KRYLOV_COST = 12  # one iteration of BiCGSTAB takes the time of about so many sweeps
KRYLOV_MOST = 300  # iterations
KRYLOV_TRIALS = 3


class Chain(NamedTuple):
    """x = source + gamma K x, K in rows: K(x, state[j]) = weight[j] for start[x] <= j < start[x + 1]."""

    start: Array  # (X + 1,)
    state: Array
    weight: Array
    source: Array  # (X,)


@compiled
def policy_chain(tables, policy):  # type: ignore[no-untyped-def]
    """K = P_pi and source = r_pi."""
    r, successors, P = tables.rewards, tables.successors, tables.transitions
    X, A, B = P.shape
    entries = 0
    for x in range(X):
        for a in range(A):
            if policy[x, a] > 0.0:
                entries += B
    start = np.zeros(X + 1, np.uint32)
    state = np.empty(entries, np.uint32)
    weight = np.empty(entries)
    source = np.zeros(X)
    place = np.zeros(X, np.int64)  # where y stands in the row, if it does
    end = 0
    for x in range(X):
        begin = end
        for a in range(A):
            if policy[x, a] > 0.0:
                source[x] += policy[x, a] * r[x, a]
                for j in range(B):
                    if P[x, a, j] > 0.0:
                        y = successors[x, a, j]
                        k = place[y]
                        if not (begin <= k < end and state[k] == y):
                            k = end
                            place[y] = k
                            state[k] = y
                            weight[k] = 0.0
                            end += 1
                        weight[k] += policy[x, a] * P[x, a, j]
        start[x + 1] = end
    return Chain(start, state[:end], weight[:end], source)


@compiled
def transpose(chain, source):  # type: ignore[no-untyped-def]
    """K^T, with another source."""
    X = chain.source.shape[0]
    start = np.zeros(X + 1, np.uint32)
    for y in chain.state:
        start[y + 1] += 1
    for x in range(X):
        start[x + 1] += start[x]
    state = np.empty(chain.state.shape[0], np.uint32)
    weight = np.empty(chain.state.shape[0])
    place = start.copy()
    for x in range(X):
        for j in range(chain.start[x], chain.start[x + 1]):
            k = place[chain.state[j]]
            place[chain.state[j]] += 1
            state[k] = x
            weight[k] = chain.weight[j]
    return Chain(start, state, weight, source)


@compiled
def eliminate(G, gamma, leak, leave):  # type: ignore[no-untyped-def]
    """Take the states of gamma K = G out of the chain, one by one, last first, by sums of nonnegative numbers only.

    This is the elimination of Grassmann, Taksar and Heyman (1985) for the chain that ends with probability 1 - gamma at
    every step. `leak` is the probability to end and `leave` the probability not to return, both among the states that
    are left; no digits cancel, however close gamma is to one. In place; a team's.
    """
    X = G.shape[0]
    for x in each(X):
        leak[x] = 1.0 - gamma
    sync()
    for k in range(X - 1, -1, -1):
        total = leak[k]
        for j in range(k):
            total += G[k, j]
        if first():
            leave[k] = total
        for i in each(k):
            if G[i, k] != 0.0:
                factor = G[i, k] / total
                G[i, k] = factor
                leak[i] += factor * leak[k]
                for j in range(k):
                    G[i, j] += factor * G[k, j]
        sync()


@compiled
def back_substitute(G, leak, leave, W):  # type: ignore[no-untyped-def]
    """W <- V - V(0), from the sources W and states taken out; one thread's."""
    X = W.shape[0]
    for k in range(X - 1, 0, -1):
        for i in range(k):
            W[i] += G[i, k] * W[k]
    V0 = W[0] / leave[0]
    W[0] = 0.0
    for k in range(1, X):
        total = W[k] - leak[k] * V0
        for j in range(1, k):
            total += G[k, j] * W[j]
        W[k] = total / leave[k]


@compiled
def values_of_small(tables, policy, G, leak, leave, W):  # type: ignore[no-untyped-def]
    """W <- V^pi - V^pi(0), a team's; G (X, X), leak and leave (X,) are scratch.

    Relative values are computed as such, so that they keep their digits where V is large.
    """
    fill_kernel(tables, policy, G, W)
    eliminate(G, tables.discount, leak, leave)
    if first():
        back_substitute(G, leak, leave, W)
    sync()


@compiled
def fill_kernel(tables, policy, G, source):  # type: ignore[no-untyped-def]
    """G = gamma P_pi (X, X) and source = r_pi; a team's."""
    r, successors, P, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = P.shape
    for x in each(X):
        for y in range(X):
            G[x, y] = 0.0
        total = 0.0
        for a in range(A):
            if policy[x, a] > 0.0:
                total += policy[x, a] * r[x, a]
                for j in range(B):
                    if P[x, a, j] > 0.0:
                        G[x, successors[x, a, j]] += policy[x, a] * P[x, a, j]
        for y in range(X):
            G[x, y] *= gamma
        source[x] = total


@compiled
def eliminated_values(tables, policy):  # type: ignore[no-untyped-def]
    """V^pi - V^pi(0)."""
    X = policy.shape[0]
    W = np.empty(X)
    values_of_small(tables, policy, np.empty((X, X)), np.empty(X), np.empty(X), W)
    return W


@compiled
def eliminated_occupancy(tables, policy, source):  # type: ignore[no-untyped-def]
    """nu = source + gamma P_pi^T nu."""
    X = policy.shape[0]
    G, leak, leave = np.empty((X, X)), np.empty(X), np.empty(X)
    fill_kernel(tables, policy, G, leak)
    eliminate(G, tables.discount, leak, leave)
    nu = source.copy()
    for k in range(X - 1, 0, -1):
        for j in range(k):
            nu[j] += nu[k] / leave[k] * G[k, j]
    for k in range(X):  # G[i, k] is divided by leave[k] already
        nu[k] /= leave[k]
        for i in range(k):
            nu[k] += nu[i] * G[i, k]
    return nu


@compiled
def approach(chain, gamma, W, goal, limit):  # type: ignore[no-untyped-def]
    """Bring W to the values of the chain, up to a constant, until span(T W - W) <= goal, or rounding stops it, or
    `limit` sweeps are made.

    Sweeps are relative: the gain that makes T W - gain - W centred is subtracted, so that W does not drift. A sweep
    shrinks the span by gamma at least, and by far more on chains that mix. Where it does not, one solve for the
    correction takes the place of many sweeps, if it helps. Gives W and the number of sweeps.
    """
    TW = np.empty(W.shape[0])
    gain = 0.0
    before = np.inf
    trials = KRYLOV_TRIALS
    sweeps = 0
    while sweeps < limit:
        low, high = chain_sweep(0, W.shape[0], chain, gamma, gain, W, TW)
        sweeps += 1
        gain += (low + high) / 2
        if high - low <= goal:
            return TW, sweeps
        if sweeps % STRETCH == 0:
            if high - low > before * gamma ** (STRETCH / 2):  # less than is certain, but for rounding
                return TW, sweeps
            iterations = krylov_iterations(before, high - low, goal) if trials > 0 else 0.0
            before = high - low
            if iterations > 0:
                trials -= 1
                for x in range(W.shape[0]):
                    TW[x] -= W[x] + (low + high) / 2  # the residual, centred
                correction = bicgstab(chain, gamma, TW, goal / 4, iterations)
                for x in range(W.shape[0]):
                    correction[x] += W[x]
                centre(correction)
                low, high = chain_sweep(0, W.shape[0], chain, gamma, gain, correction, TW)
                sweeps += 1
                if high - low < before and dot(correction, correction) < np.inf:
                    W = correction
                    before = high - low
                    gain += (low + high) / 2
                else:
                    chain_sweep(0, W.shape[0], chain, gamma, gain, W, TW)
        W, TW = TW, W
    return W, sweeps


@compiled
def krylov_iterations(before, now, goal):  # type: ignore[no-untyped-def]
    """How many iterations cost as much as the sweeps that are still to come; none where those are few."""
    speed = math.log(before / now) / STRETCH
    ahead = math.log(now / goal) / max(speed, 1e-300)
    return 0.0 if ahead < 3 * STRETCH else min(ahead / KRYLOV_COST, KRYLOV_MOST)


@compiled
def bicgstab(chain, gamma, b, goal, most):  # type: ignore[no-untyped-def]
    """x with |b - (I - gamma K) x| <= goal, if `most` iterations suffice (van der Vorst 1992).

    Preconditioned, from the right, by one in-place sweep upwards and one downwards: what flows along the numbering of
    the states, as on grids and cycles, is solved at once.
    """
    X = b.shape[0]
    x = np.zeros(X)
    residual = b.copy()
    shadow = b.copy()
    p = b.copy()
    p_hat, v, s_hat, t = np.empty(X), np.empty(X), np.empty(X), np.empty(X)
    rho = dot(shadow, residual)
    n = 0
    while n < most:
        n += 1
        precondition(chain, gamma, p, p_hat)
        apply(chain, gamma, p_hat, v)
        projection = dot(shadow, v)
        alpha = rho / projection if projection != 0.0 else 0.0
        if alpha == 0.0 or not abs(alpha) < np.inf:  # breakdown: what is reached must do
            break
        for i in range(X):
            residual[i] -= alpha * v[i]
        precondition(chain, gamma, residual, s_hat)
        apply(chain, gamma, s_hat, t)
        norm = dot(t, t)
        omega = dot(t, residual) / norm if norm > 0.0 else 0.0
        if not abs(omega) < np.inf:
            break
        worst = 0.0
        for i in range(X):
            x[i] += alpha * p_hat[i] + omega * s_hat[i]
            residual[i] -= omega * t[i]
            worst = max(worst, abs(residual[i]))
        if worst <= goal or omega == 0.0:
            break
        following = dot(shadow, residual)
        beta = following / rho * (alpha / omega)
        rho = following
        for i in range(X):
            p[i] = residual[i] + beta * (p[i] - omega * v[i])
    return x


@compiled
def apply(chain, gamma, x, y):  # type: ignore[no-untyped-def]
    """y = (I - gamma K) x."""
    start, state, weight = chain.start, chain.state, chain.weight
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(start[i], start[i + 1]):
            total += weight[j] * x[state[j]]
        y[i] = x[i] - gamma * total


@compiled
def precondition(chain, gamma, b, z):  # type: ignore[no-untyped-def]
    """z from zero by z(i) = b(i) + gamma (K z)(i), in place, upwards and then downwards."""
    start, state, weight = chain.start, chain.state, chain.weight
    X = b.shape[0]
    for i in range(X):
        z[i] = 0.0
    for i in range(2 * X):
        k = i if i < X else 2 * X - 1 - i
        total = 0.0
        for j in range(start[k], start[k + 1]):
            total += weight[j] * z[state[j]]
        z[k] = b[k] + gamma * total


@compiled
def dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@compiled
def relative_values(tables, policy, W, goal):  # type: ignore[no-untyped-def]
    """V^pi up to a constant, centred, and the number of sweeps; swept from W until span(T_pi W - W) <= goal."""
    gamma, sweeps = tables.discount, 0
    if policy.shape[0] <= ELIMINATED:
        W = eliminated_values(tables, policy)
    else:
        W, sweeps = approach(policy_chain(tables, policy), gamma, W, goal, sweep_limit(gamma, tables.grain))
    centre(W)
    return W, sweeps
