"""The fixed point of a truncated, optimistic policy evaluation, found exactly where X is small.

    Q = Pi_H[q + gamma P_hat V],    V = Pi_H[<pi, Q> - penalty]

with q = r + CB and any P_hat whose rows sum to one at most: a gamma-contraction, so there is one fixed point, and after
a sweep that changed V by at most d, Q and V are within gamma H d of it. Without a penalty the outer truncation is idle.

Which entries are truncated is mostly the same as for the policy before. Given which, the equations are linear: one
elimination solves them, a sweep says whether the guess was right, and if not, from where to guess again (Newton's
method for piecewise linear equations). With many states, or should the guesses go round in circles, sweeps do it. What
is slowest to go in sweeps is a constant: where rows sum to one it shrinks by gamma only. So V is first moved by the
constant that takes the sum of the changes to zero (Bertsekas and Castanon 1989, with one aggregate), as long as that
does not do worse than sweeps alone.
"""

from math import ceil, log

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array

ACCURACY = 1e-9  # of Q and V, in units of H
ELIMINATED = 32  # states up to which equations are solved by elimination
GUESSES = 20  # eliminations; sweeps after that
TRIALS = 3  # constants that may do harm


def settle(
    q: Array, successors: Array, P_hat: Array, gamma: float, policy: Array, penalty: Array, V: Array
) -> tuple[Array, Array]:
    """V (n, X) and Q (n, X, A) at the fixed point of every seed's policy (n, X, A), searched from V, in its memory.

    q: (n, X, A); P_hat: on the successors, (n or 1, X, A, B); penalty: (n, X).
    """
    Q = np.empty(q.shape)
    most = GUESSES + ceil(log(ACCURACY * (1 - gamma)) / log(gamma))  # of sweeps, from anywhere in [0, H]
    _settle(q, successors, P_hat, gamma, policy, penalty, ACCURACY, most, V, Q)
    return V, Q


def mean(policy: Array, Q: Array, penalty: Array, H: float) -> Array:
    """V = Pi_H[<pi, Q> - penalty]   (n, X): one sweep of evaluation, given its Q."""
    V = np.empty(penalty.shape)
    _mean(policy, Q, penalty, H, V)
    return V


@compiled
def _mean(policy, Q, penalty, H, V):  # type: ignore[no-untyped-def]
    n, X, A = Q.shape
    for i in range(n):
        for x in range(X):
            total = 0.0
            for a in range(A):
                total += policy[i, x, a] * Q[i, x, a]
            V[i, x] = max(min(total - penalty[i, x], H), 0.0)


@compiled
def _settle(q, successors, P_hat, gamma, policy, penalty, accuracy, most, V, Q):  # type: ignore[no-untyped-def]
    n, X, A = q.shape
    few = X <= ELIMINATED
    G, b, TV = np.empty((X, X) if few else (0, 0)), np.empty(X), np.empty(X)
    H = 1 / (1 - gamma)
    goal = accuracy / gamma  # gamma H d <= accuracy H
    for i in range(n):
        P, v, Q_i, pi, cost = P_hat[i if P_hat.shape[0] > 1 else 0], V[i], Q[i], policy[i], penalty[i]
        before, trials = np.inf, TRIALS
        for sweep in range((TRIALS + 1) * most):
            change, moved, leak = _sweep(q[i], successors, P, gamma, H, pi, cost, v, Q_i, TV)
            v[:] = TV
            if change <= goal:
                break
            if few and sweep < GUESSES:
                _solve(q[i], successors, P, gamma, H, pi, cost, TV, Q_i, G, b)
                v[:] = b
                continue
            if change > gamma * before:  # the last constant did harm
                trials -= 1
            before = change
            if trials > 0:
                shift = gamma * moved / leak
                for x in range(X):
                    v[x] = max(min(v[x] + shift, H), 0.0)


@compiled
def _sweep(q, successors, P, gamma, H, pi, cost, v, Q, TV):  # type: ignore[no-untyped-def]
    """Q and TV from v; the largest |TV - v|; the sum of TV - v, and by how much a constant 1 in v would change it."""
    X, A, B = P.shape
    change, moved, leak = 0.0, 0.0, 0.0
    for x in range(X):
        total, held = 0.0, 0.0
        for a in range(A):
            row, to = P[x, a], successors[x, a]
            value, mass = 0.0, 0.0
            for j in range(B):
                value += row[j] * v[np.uint32(to[j])]
                mass += row[j]
            value = q[x, a] + gamma * value
            if 0.0 < value < H:
                held += pi[x, a] * mass
            value = max(min(value, H), 0.0)
            Q[x, a] = value
            total += pi[x, a] * value
        TV[x] = max(min(total - cost[x], H), 0.0)
        change = max(change, abs(TV[x] - v[x]))
        moved += TV[x] - v[x]
        leak += 1.0 - gamma * held
    return change, moved, leak


@compiled
def _solve(q, successors, P, gamma, H, pi, cost, TV, Q, G, b):  # type: ignore[no-untyped-def]
    """b <- the V of the linear equations in which that is truncated which is so in Q and TV.

    The matrix is I - gamma times a substochastic one: no pivots are needed.
    """
    X, A, B = P.shape
    G[:] = 0.0
    for x in range(X):
        G[x, x] = 1.0
        if TV[x] <= 0.0 or TV[x] >= H:
            b[x] = TV[x]
            continue
        total = -cost[x]
        for a in range(A):
            p = pi[x, a]
            if Q[x, a] <= 0.0 or Q[x, a] >= H:
                total += p * Q[x, a]
                continue
            total += p * q[x, a]
            for j in range(B):
                G[x, successors[x, a, j]] -= gamma * p * P[x, a, j]
        b[x] = total
    for k in range(X):
        for i in range(k + 1, X):
            if G[i, k] != 0.0:
                factor = G[i, k] / G[k, k]
                for j in range(k + 1, X):
                    G[i, j] -= factor * G[k, j]
                b[i] -= factor * b[k]
    for k in range(X - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, X):
            total -= G[k, j] * b[j]
        b[k] = total / G[k, k]
