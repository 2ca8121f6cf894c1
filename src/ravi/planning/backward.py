"""Backward plans of a linear mixture, from stage S - 1 to stage 0, with an estimate of theta and its ellipsoid.

    V_S = 0,   phi_h(x, a) = sum_x' psi(x, a, x') V_{h+1}(x')
    Q_h = Pi_H[r + gamma (<theta_hat, phi_h> + beta ||phi_h||_{Lambda^{-1}})]
    V_h(x) = max_a Q_h(x, a)              `greedy_pass`, which writes the greedy policy too (ties: the first action)
    V_h(x) = sum_a pi_h(a | x) Q_h(x, a)  `policy_pass`
                                                           or by a mirror step, `mirror_pass`

where Pi_H truncates to [0, H]. Stage S - 1 has phi = 0 and Q = r. In episodes S is their length and gamma = 1. With S =
ceil(ln(H / eps) / ln(1 / gamma)) what lies beyond the stages is worth at most gamma^S H <= eps
(`ravi.planning.evaluation.effective_horizon`).

psi is read by its non-zeros. A pair has few coordinates that are not zero, m say, so a stage costs m^2 / 2 products for
a pair, and the entries of psi; the parts of theta_hat and Lambda^{-1} that it needs are gathered once for all stages.
Pairs are kept by falling m, and inner loops run over pairs: that is what processors do fast. Once two values in a row
are equal to the bit, so are all earlier ones, and a greedy pass copies them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Problem
from ravi.planning.mirror import step_in_place


class Lists(NamedTuple):
    """psi by its non-zeros. Pair number q in order of falling m is `pair[q]`; its j-th coordinate is coordinate[j, q],
    with the entries start[j, q] to start[j, q + 1] of (successor, value)."""

    pair: Array  # x A + a of rank q                     (X A,)
    rank: Array  # q of pair x A + a                     (X A,)
    count: Any  # how many pairs have more than j coordinates   (m,)
    coordinate: Array  #                                 (m, X A)
    start: Array  #                                      (m, X A + 1)
    successor: Array  # x' of an entry
    value: Array  # psi(x, a, x') at the coordinate


def lists(problem: Problem) -> Lists:
    """The non-zeros of the features of a linear mixture."""
    if problem.features is None:
        raise validation.InputError(f"{problem.name} has no features: this learner needs a linear mixture MDP")
    X, A, B, d = problem.features.shape
    psi, successors = problem.features.reshape(X * A, B, d), problem.successors.reshape(X * A, B)
    used = (psi != 0).any(1)  # (X A, d)
    sizes = used.sum(1)
    pair = np.argsort(-sizes, kind="stable")
    rank, m = np.argsort(pair), max(1, int(sizes.max()))
    number = used.cumsum(1) - 1  # j of a coordinate of a pair
    coordinate, many = np.zeros((m, X * A), np.int32), np.zeros((m, X * A), np.int64)
    p, c = np.nonzero(used)
    coordinate[number[p, c], rank[p]] = c
    many[number[p, c], rank[p]] = np.count_nonzero(psi, 1)[p, c]
    ends = many.cumsum().reshape(m, X * A)
    start = np.concatenate([(ends - many)[:, :1], ends], 1)
    p, b, c = np.nonzero(psi)
    order = np.lexsort((b, rank[p], number[p, c]))
    p, b, c = p[order], b[order], c[order]
    count = (sizes[:, None] > np.arange(m)).sum(0)
    return Lists(pair, rank, count, coordinate, start, successors[p, b], psi[p, b, c])


@compiled
def _gather(psi, theta, inverse, t, G):  # type: ignore[no-untyped-def]
    """What pairs need of theta_hat, t (m, X A), and of Lambda^{-1}, G (m (m + 1) / 2, X A), twice off the diagonal."""
    k = 0
    for j in range(psi.count.shape[0]):
        for q in range(psi.count[j]):
            t[j, q] = theta[psi.coordinate[j, q]]
        for c in range(j + 1):
            twice = 1.0 if c == j else 2.0
            for q in range(psi.count[j]):
                G[k, q] = twice * inverse[psi.coordinate[j, q], psi.coordinate[c, q]]
            k += 1


@compiled
def _stage(psi, r, gamma, H, t, G, beta, v, phi, row, mean, square, Q):  # type: ignore[no-untyped-def]
    """Q (X A,) of a stage from v, the values of the next; phi, row, mean and square are scratch."""
    pair, count, start, successor, value = psi.pair, psi.count, psi.start, psi.successor, psi.value
    pairs = r.shape[0]
    for q in range(pairs):
        mean[q], square[q] = 0.0, 0.0
    k, e = 0, 0
    for j in range(count.shape[0]):
        many = count[j]
        for q in range(many):
            total, end = 0.0, start[j, q + 1]
            while e < end:  # entries come in this order
                total += value[e] * v[np.uint32(successor[e])]
                e += 1
            phi[j, q] = total
            row[q] = 0.0
        for c in range(j + 1):
            for q in range(many):
                row[q] += G[k, q] * phi[c, q]
            k += 1
        for q in range(many):
            square[q] += row[q] * phi[j, q]
            mean[q] += t[j, q] * phi[j, q]
    for q in range(pairs):
        p = pair[q]
        future = mean[q] + beta * math.sqrt(max(square[q], 0.0))
        Q[p] = min(max(r[p] + gamma * future, 0.0), H)


@compiled
def greedy_pass(psi, r, gamma, H, theta, inverse, beta, due, V, policy):  # type: ignore[no-untyped-def]
    """V (n, S + 1, X) and the greedy policy (n, S, X, A) of the seeds that are `due` (n,), in place.

    r: (X, A). H: the largest Q. theta: (n, d). inverse: Lambda^{-1} (n, d, d). beta: (n,).
    """
    n, S, X, A = policy.shape
    m, pairs = psi.coordinate.shape
    t, G, phi = np.empty((m, pairs)), np.empty((m * (m + 1) // 2, pairs)), np.zeros((m, pairs))
    row, mean, square, Q = np.empty(pairs), np.empty(pairs), np.empty(pairs), np.empty(pairs)
    rewards = r.ravel()
    for i in range(n):
        if not due[i]:
            continue
        _gather(psi, theta[i], inverse[i], t, G)
        V[i, S] = 0.0
        still = False  # V_{h+1} = V_{h+2}, so Q_h = Q_{h+1}
        for h in range(S - 1, -1, -1):
            if not still:
                _stage(psi, rewards, gamma, H, t, G, beta[i], V[i, h + 1], phi, row, mean, square, Q)
            still = True
            for x in range(X):
                best = 0
                for a in range(1, A):
                    if Q[x * A + a] > Q[x * A + best]:
                        best = a
                V[i, h, x] = Q[x * A + best]
                still = still and V[i, h, x] == V[i, h + 1, x]
                if policy[i, h, x, best] != 1.0:
                    policy[i, h, x] = 0.0
                    policy[i, h, x, best] = 1.0


@compiled
def mirror_pass(psi, r, H, theta, inverse, beta, eta, log_policy, policy, V, Q):  # type: ignore[no-untyped-def]
    """V (n, S + 1, X), Q, log pi and pi (n, S, X, A), in place: the policy of a stage makes a mirror step on its own Q,
    and V is the value of that step. H: (S,), the largest Q of a stage. eta: (1,)."""
    n, S, X, A = policy.shape
    m, pairs = psi.coordinate.shape
    t, G, phi = np.empty((m, pairs)), np.empty((m * (m + 1) // 2, pairs)), np.zeros((m, pairs))
    row, mean, square = np.empty(pairs), np.empty(pairs), np.empty(pairs)
    rewards = r.ravel()
    for i in range(n):
        _gather(psi, theta[i], inverse[i], t, G)
        V[i, S] = 0.0
        for h in range(S - 1, -1, -1):
            _stage(psi, rewards, 1.0, H[h], t, G, beta[i], V[i, h + 1], phi, row, mean, square, Q[i, h].ravel())
            step_in_place(h, h + 1, log_policy[i], policy[i], Q[i], eta, V[i])


@compiled
def policy_pass(psi, r, gamma, H, theta, inverse, beta, policy, V, Q):  # type: ignore[no-untyped-def]
    """V (n, S + 1, X) and Q (n, S, X, A) under a policy (n, S, X, A), in place. H: (S,), the largest Q of a stage."""
    n, S, X, A = policy.shape
    m, pairs = psi.coordinate.shape
    t, G, phi = np.empty((m, pairs)), np.empty((m * (m + 1) // 2, pairs)), np.zeros((m, pairs))
    row, mean, square = np.empty(pairs), np.empty(pairs), np.empty(pairs)
    rewards = r.ravel()
    for i in range(n):
        _gather(psi, theta[i], inverse[i], t, G)
        V[i, S] = 0.0
        for h in range(S - 1, -1, -1):
            q = Q[i, h].ravel()
            _stage(psi, rewards, gamma, H[h], t, G, beta[i], V[i, h + 1], phi, row, mean, square, q)
            for x in range(X):
                total = 0.0
                for a in range(A):
                    total += policy[i, h, x, a] * Q[i, h, x, a]
                V[i, h, x] = total
