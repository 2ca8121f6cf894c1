"""What is one step of mirror descent on the policy? V_k and pi_k from pi_{k-1} and Q_k (Algorithm 1, Lemma C.1).

    V(x)       = (1/eta) log sum_a pi(a|x) exp(eta Q(x, a))
    pi'(a|x)   = pi(a|x) exp(eta (Q(x, a) - V(x)))

V and pi' are the value and the maximiser of <p, Q(x, .)> - KL(p || pi(.|x)) / eta.

With the theory's eta (1e-3 to 1e-5) the printed form of V loses digits like machine epsilon / eta; with
m = max_a Q(x, a),

    V = m + log1p(s) / eta,   s = sum_a pi(a) expm1(eta (Q(a) - m))

does not. It is found in one of two ways.

Where eta (Q(a) - m) > -ln 2 for every action that is played, s > -1/2, and short polynomials give expm1 and log1p to
less than two units in the last place: no call, so that a compiler works on several rows at once, and the same bits on
every machine. The terms of s give the new policy as well, pi' = (pi + pi expm1(z)) / sum: it takes one polynomial an
action and one a row.

A probability that underflows would never come back. So one below 1e-304 is carried on by its logarithm, and is 0 itself
(the action sleeps), until that is above -699 again. The logarithms of all others are taken anew when they move.

Rows in which an action falls by more, falls asleep or wakes go by the functions of the machine (`far_step`). Where the
policy has almost no mass on the best actions, s is close to -1 and log1p(s) would lose what expm1 won; below -1/2 the
sum is taken of logarithms.

Steps go row by row here, and side by side in `ravi.planning.mirror_columns`.
"""

import math
from functools import lru_cache

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, like, over_seeds
from ravi.core import Array
from ravi.planning.near_zero import STEEP, near_expm1, near_log1p

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
