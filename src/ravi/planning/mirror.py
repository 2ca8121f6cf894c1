"""What is one step of mirror descent on the policy? V_k and pi_k from pi_{k-1} and Q_k (Algorithm 1, Lemma C.1).

    V(x)       = (1/eta) log sum_a pi(a|x) exp(eta Q(x, a))
    pi'(a|x)   = pi(a|x) exp(eta (Q(x, a) - V(x)))

V and pi' are the value and the maximiser of <p, Q(x, .)> - KL(p || pi(.|x)) / eta.

With the theory's eta (1e-3 to 1e-5) the printed form of V loses digits like machine epsilon / eta; with
m = max_a Q(x, a),

    V = m + log1p(s) / eta,   s = sum_a pi(a) expm1(eta (Q(a) - m))

does not. Where the policy has almost no mass on the best actions, s is close to -1 and log1p(s) would lose what
expm1 won; below -1/2 the sum is taken of logarithms. log pi is kept, because a probability that underflows would
never come back; its drift (1e-16 an epoch) is taken out by normalising every step. Actions whose probability has
underflowed, most of them after many steps, cost no exponential: the terms that are left out are zeros.
"""

import math
from functools import lru_cache

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array
from ravi.teams import each, like, over_seeds

UNDERFLOW = -750.0  # exp of what is below is 0


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
def _expm1(z):  # type: ignore[no-untyped-def]
    """expm1 for z <= 0 at the price of exp where nothing cancels."""
    if z < -0.7:
        return math.exp(z) - 1.0
    return math.expm1(z)


@compiled
def _exp(z):  # type: ignore[no-untyped-def]
    """exp, without a call where it is 0."""
    return math.exp(z) if z > UNDERFLOW else 0.0


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
            if least == m:  # a constant row: V = m and pi' = pi, exactly
                V[i, x] = m
                continue
            log_pi, pi, q = log_policy[i, x], policy[i, x], Q[i, x]
            s = 0.0
            for a in range(A):
                z = step * (q[a] - m)
                if z != 0.0 and pi[a] != 0.0:
                    s += pi[a] * _expm1(z)
            if s > -0.5:
                log_mean = math.log1p(s) if s != 0.0 else 0.0
            else:
                top = -np.inf
                for a in range(A):
                    top = max(top, log_pi[a] + step * (q[a] - m))
                weight = 0.0
                for a in range(A):
                    weight += _exp(log_pi[a] + step * (q[a] - m) - top)
                log_mean = top + math.log(weight)
            V[i, x] = m + log_mean / step
            total = 0.0
            for a in range(A):
                log_pi[a] += step * (q[a] - m) - log_mean
                pi[a] = _exp(log_pi[a])
                total += pi[a]
            if total != 1.0:
                drift, share = math.log(total), 1.0 / total
                for a in range(A):
                    log_pi[a] -= drift
                    pi[a] *= share
