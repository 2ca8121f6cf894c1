"""One step of mirror descent on the policy: V_k and pi_k from pi_{k-1} and Q_k (Algorithm 1, Lemma C.1).

    V(x)       = (1/eta) log sum_a pi(a|x) exp(eta Q(x, a))
    pi'(a|x)   = pi(a|x) exp(eta (Q(x, a) - V(x)))

V and pi' are the value and the maximiser of <p, Q(x, .)> - KL(p || pi(.|x)) / eta.

With the theory's eta (1e-3 to 1e-5) the printed form of V loses digits like machine epsilon / eta; with
m = max_a Q(x, a),

    V = m + log1p(s) / eta,   s = sum_a pi(a) expm1(eta (Q(a) - m))

does not. There are two ways to it.

Where eta (Q(a) - m) > -ln 2 for every action that is played, s > -1/2, and short polynomials give expm1 and log1p to
less than two units in the last place: no call, so that a compiler works on several rows at once, and the same bits on
every machine. The terms of s give the new policy as well, pi' = (pi + pi expm1(z)) / sum: it takes one polynomial an
action and one a row.

A probability that underflows would never come back. So one below 1e-304 is carried on by its logarithm, and is 0 itself
(the action sleeps), until that is above -699 again. The logarithms of all others are taken anew when they move.

Rows in which an action falls by more, falls asleep or wakes go by the functions of the machine (`far_step`). Where the
policy has almost no mass on the best actions, s is close to -1 and log1p(s) would lose what expm1 won; below -1/2 the
sum is taken of logarithms.

Steps go row by row (`step_in_place`), or with all rows of one seed side by side (`step_in_columns`): arrays then have
actions first, so that loops over states have no branch and neighbours in memory, and LLVM vectorises them: the same
operations, and the same bits. An action has one number there: pi, or log pi < 0 where it sleeps.
"""

import math
from functools import lru_cache

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, like, over_seeds
from ravi.core import Array

STEEP = -0.69  # the least argument of expm1. More than -ln 2: a mean of expm1 is more than -1/2

# expm1(z) = z + z^2 sum_i E_i z^i for STEEP <= z <= 0, and log1p(s) = 2 u + u^3 sum_i L_i u^2i for -1/2 <= s <= 0 with
# u = s / (2 + s): interpolation at Chebyshev's nodes, whose error is below 1e-17 of the result.
E0, E1, E2, E3 = 0.5, 0.16666666666666632, 0.041666666666646555, 0.008333333332877804
E4, E5, E6 = 0.0013888888835912152, 0.00019841266242192937, 2.480143457004929e-05
E7, E8, E9, E10 = 2.7553143985942928e-06, 2.748360505769863e-07, 2.4235379994127273e-08, 1.5627905722427964e-09
L0, L1, L2, L3 = 0.6666666666666666, 0.40000000000014585, 0.2857142856710876, 0.22222222717427864
L4, L5, L6 = 0.18181789436132859, 0.15385570064958623, 0.13314144209654935
L7, L8, L9 = 0.12001072809590713, 0.08800738486144674, 0.1616404561194353


@compiled
def near_expm1(z):  # type: ignore[no-untyped-def]
    """expm1 for STEEP <= z <= 0."""
    z = float(z)  # Python is slow with numbers of NumPy
    y = z * z
    even = (((E10 * y + E8) * y + E6) * y + E4) * y + E2
    odd = (((E9 * y + E7) * y + E5) * y + E3) * y + E1
    return z + y * (E0 + (z * odd + y * even))


@compiled
def near_log1p(s):  # type: ignore[no-untyped-def]
    """log1p for -1/2 <= s <= 0. With h = s^2 / 2, 2 u = s - h + u h, of which the first term has all its digits."""
    s = float(s)
    u, h = s / (2 + s), s * s / 2
    w = u * u
    y = w * w
    even = (((L8 * y + L6) * y + L4) * y + L2) * y + L0
    odd = (((L9 * y + L7) * y + L5) * y + L3) * y + L1
    return s - (h - u * (h + w * (even + w * odd)))


LEAST = 1e-304  # a probability below falls asleep
AWAKE = -699.0  # and wakes where its logarithm is above; exp of it is more than LEAST


def mirror_step(
    log_policy: Array, policy: Array, Q: Array, eta: float | Array, *, in_place: bool = False
) -> tuple[Array, Array, Array]:
    """V_k (n, X), log pi_k and pi_k (n, X, A) from log pi_{k-1}, pi_{k-1} and Q_k (n, X, A).
    eta: one number, or one of each seed (n,).

    in_place: the policies may be overwritten (fresh memory for each epoch would cost more than the step itself).
    """
    if not in_place:
        log_policy, policy = log_policy.copy(), policy.copy()
    V = like(Q, Q.shape[:-1])
    steps = eta if isinstance(eta, np.ndarray) else _of_all(float(eta))
    over_seeds(step_in_place, Q, log_policy, policy, Q, steps, V)
    return V, log_policy, policy


@lru_cache(1024)
def _of_all(eta: float) -> Array:
    """The step size of all seeds (1,); the same array for the same number, which a GPU then has already."""
    return np.array([eta])


@compiled
def is_far(log_pi, pi, z):  # type: ignore[no-untyped-def]
    """Whether an action falls by more than the polynomials are for, falls asleep, or wakes."""
    return z < STEEP if pi >= LEAST else (pi != 0) | (log_pi > AWAKE)


@compiled
def step_in_place(low, high, log_policy, policy, Q, eta, V):  # type: ignore[no-untyped-def]
    """V_k (n, X) of seeds low, ..., high - 1; log pi and pi go from k - 1 to k in place. eta: of each seed (n,), or of
    all (1,). A team's."""
    _, X, A = Q.shape
    for i in range(low, high):
        step = eta[i if eta.shape[0] > 1 else 0]
        for x in each(X):
            m, least = Q[i, x, 0], Q[i, x, 0]
            for a in range(1, A):
                m, least = max(m, Q[i, x, a]), min(least, Q[i, x, a])
            V[i, x] = m
            if least == m:  # a constant row: V = m and pi' = pi, exactly
                continue
            log_pi, pi, q = log_policy[i, x], policy[i, x], Q[i, x]
            far = False
            for a in range(A):
                if pi[a] < LEAST or step * (least - m) < STEEP:
                    far |= is_far(log_pi[a], pi[a], step * (q[a] - m))
            if far:
                V[i, x] = far_step(log_pi, pi, q, m, step)
                continue
            s, total = 0.0, 0.0
            for a in range(A):
                if pi[a] != 0.0 and q[a] != m:
                    gain = pi[a] * near_expm1(step * (q[a] - m))
                    s += gain
                    pi[a] += gain
                total += pi[a]
            share = 1.0 / total if s != 0.0 else 1.0
            log_mean = near_log1p(s) if s < -1e-16 else s  # the same, to the last bit
            for a in range(A):
                if pi[a] == 0.0:
                    log_pi[a] = log_pi[a] + step * (q[a] - m) - log_mean
                elif share != 1.0 or q[a] != m:
                    pi[a] *= share
                    log_pi[a] = math.log(pi[a])
            V[i, x] = m + log_mean / step


@compiled
def far_step(log_pi, pi, q, m, step):  # type: ignore[no-untyped-def]
    """V of a row whose largest Q is m, by functions of the machine; log pi and pi become those after the step."""
    s = 0.0
    for a in range(len(q)):
        if pi[a] == 0.0:
            pi[a] = _exp(log_pi[a])
        else:
            log_pi[a] = math.log(pi[a])
        z = step * (q[a] - m)
        if z != 0.0 and pi[a] != 0.0:
            s += pi[a] * _expm1(z)
    if s > -0.5:
        log_mean = math.log1p(s) if s != 0.0 else 0.0
    else:
        top = -np.inf
        for a in range(len(q)):
            top = max(top, log_pi[a] + step * (q[a] - m))
        weight = 0.0
        for a in range(len(q)):
            weight += _exp(log_pi[a] + step * (q[a] - m) - top)
        log_mean = top + math.log(weight)
    total = 0.0
    for a in range(len(q)):
        log_pi[a] += step * (q[a] - m) - log_mean
        pi[a] = _exp(log_pi[a])
        total += pi[a]
    for a in range(len(q)):
        if pi[a] != 0.0:
            pi[a] *= 1.0 / total
            log_pi[a] = math.log(pi[a])
    return m + log_mean / step


@compiled
def _expm1(z):  # type: ignore[no-untyped-def]
    """expm1 for z <= 0 at the price of exp where nothing cancels."""
    if z < -0.7:
        return math.exp(z) - 1.0
    return math.expm1(z)


@compiled
def _exp(z):  # type: ignore[no-untyped-def]
    """exp, or 0 of what sleeps."""
    return math.exp(z) if z > AWAKE else 0.0


@compiled
def step_in_columns(rows, policy, Q, top, step, V, tilted, s, share, far):  # type: ignore[no-untyped-def]
    """`step_in_place` of so many rows of one seed, whose arrays have actions first: (A W,), for pairs a W + x. top: the
    largest Q of each row (W,). The last four are scratch: what pi is to be in proportion to, of pairs, and three
    numbers of each row. A team's."""
    W = V.shape[0]
    for x in each(rows):
        s[x], share[x], far[x] = 0.0, 0.0, 0.0
    for c in range(0, Q.shape[0], W):
        pi, q, w = policy[c : c + rows], Q[c : c + rows], tilted[c : c + rows]
        for x in each(rows):
            z, awake = step * (q[x] - top[x]), max(pi[x], 0.0)
            gain = awake * near_expm1(max(z, STEEP))
            now = awake + gain
            s[x], share[x] = s[x] + gain, share[x] + now
            w[x] = now if pi[x] > 0.0 else pi[x] + z
            far[x] = 1.0 if (z < STEEP if pi[x] >= LEAST else pi[x] > AWAKE) else far[x]  # as `is_far`
    for x in each(rows):
        share[x] = 1.0 / share[x] if s[x] != 0.0 else 1.0
        s[x] = near_log1p(max(s[x], -0.5))
        V[x] = top[x] + s[x] / step
    for x in each(rows):
        if far[x] != 0.0:
            V[x], s[x], share[x] = _far_column(policy[x::W], Q[x::W], top[x], step, tilted[x::W]), 0.0, 1.0
    for c in range(0, Q.shape[0], W):
        pi, w = policy[c : c + rows], tilted[c : c + rows]
        for x in each(rows):
            pi[x] = w[x] * share[x] if w[x] > 0.0 else w[x] - s[x]


@compiled
def _far_column(policy, q, m, step, tilted):  # type: ignore[no-untyped-def]
    """V of a row by `far_step`; `tilted` becomes what the policy is to be."""
    for a in range(len(q)):
        tilted[a], policy[a] = policy[a], max(policy[a], 0.0)
    V = far_step(tilted, policy, q, m, step)
    for a in range(len(q)):
        tilted[a] = in_columns(tilted[a], policy[a])
    return V


@compiled
def in_columns(log_pi, pi):  # type: ignore[no-untyped-def]
    """The one number of an action."""
    return pi if pi > 0.0 else log_pi


@compiled
def in_rows(log_before, before, number):  # type: ignore[no-untyped-def]
    """log pi and pi of an action by its number; log_before and before: log pi and pi before steps in columns."""
    if number <= 0.0:
        return number, 0.0
    return math.log(number) if number != before else log_before, number
