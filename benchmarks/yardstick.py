"""The practical limit of tabular RAVI-UCB: the whole run of one seed in one compiled function: the practical limit.

No parts, no batches, no measures, no Python between epochs: the same equations with the same numerics (log1p and
expm1, a constant row left alone, unvisited rows skipped), in one function over plain arrays. `benchmarks/speed.py`
compares the library with it.
"""

from __future__ import annotations

import math

import numba
import numpy as np


@numba.njit(error_model="numpy")
def whole_run(successors, cumulative, initial, r, gamma, T, eta, beta, seed):
    """Play T steps; the number of epochs, the last policy and the visits."""
    np.random.seed(seed)
    X, A, B = successors.shape
    H = 1 / (1 - gamma)
    visits = np.ones((X, A), np.int32)
    moves = np.zeros((X, A, B), np.int32)
    Q = np.zeros((X, A))
    V = np.zeros(X)
    log_policy = np.full((X, A), -math.log(A))
    policy = np.full((X, A), 1.0 / A)
    z = np.empty(A)
    x = np.searchsorted(initial, np.random.random(), side="right")
    t, k = 0, 0
    while t < T:
        k += 1
        for s in range(X):
            m, least = Q[s, 0], Q[s, 0]
            for a in range(1, A):
                m, least = max(m, Q[s, a]), min(least, Q[s, a])
            if m == least:
                V[s] = m
                continue
            total = 0.0
            for a in range(A):
                z[a] = eta * (Q[s, a] - m)
                if z[a] != 0.0:
                    total += policy[s, a] * math.expm1(z[a])
            log_mean = math.log1p(total)
            V[s] = m + log_mean / eta
            mass = 0.0
            for a in range(A):
                log_policy[s, a] += z[a] - log_mean
                policy[s, a] = math.exp(log_policy[s, a])
                mass += policy[s, a]
            drift = math.log(mass)
            for a in range(A):
                log_policy[s, a] -= drift
                policy[s, a] /= mass
        for s in range(X):
            for a in range(A):
                mean = 0.0
                if visits[s, a] > 1:
                    for j in range(B):
                        mean += moves[s, a, j] * V[successors[s, a, j]]
                    mean /= visits[s, a]
                Q[s, a] = max(min(r[s, a] + beta / math.sqrt(visits[s, a]) + gamma * mean, H), 0.0)
        while t < T:
            t += 1
            u = np.random.random()
            a, mass = 0, policy[x, 0]
            while u >= mass and a < A - 1:
                a += 1
                mass += policy[x, a]
            u, j = np.random.random(), 0
            while u >= cumulative[x, a, j]:
                j += 1
            visits[x, a] += 1
            moves[x, a, j] += 1
            x = successors[x, a, j]
            if np.random.random() < 1 - gamma:
                x = np.searchsorted(initial, np.random.random(), side="right")
                break
    return k, policy, visits
