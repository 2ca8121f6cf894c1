"""The kernels near p_hat in relative entropy, on known successors, and the most that they promise.

    C(x, a) = {q on S(x, a) : n KL(p_hat || q) <= rho},      all distributions on S(x, a) where n = 0

S(x, a) is the support of the pair, or all states where supports are not to be used; n its visits, p_hat
the frequencies of their successors. Two radii, each valid for all n at once (docs/explanation/kl.md, Lemmas 1 and 2):

    one value    rho = ln(X / delta) + kappa(n)                 max_C <q, V*> >= (P V*)(x, pi*(x)) for all x
    all values   rho = ln(X A / delta) + ln p_hat(y^n)/KT(y^n)  P(. | x, a) in C(x, a) for all pairs

with kappa(n) = ln(sqrt(pi) Gamma(n + 1) / Gamma(n + 1/2)), the worst redundancy of the KT mixture over two symbols,
and KT(y^n) the probability of the successors seen under the Dirichlet(1/2, ..., 1/2) mixture over S. The second is at
most ln(X A / delta) + C_B(n) (`ravi.theory.kl.worst_redundancy`). By Pinsker's inequality, max_C <q, V> - <p_hat, V>
is at most sp(V) sqrt(rho / 2n).
"""

import math

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Array
from ravi.estimators.counts import Counts
from ravi.optimism.kl_dual import CERTAIN, shortfall
from ravi.optimism.sets import best_in_ball

LOG_PI = math.log(math.pi)
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
ENDS, COIN = np.array([0, 1], np.int32), np.array([0.0, 1.0])  # of a coin: its outcomes, and what they earn
SERIES = 24  # counts from which Gamma functions are taken by Stirling's series, here accurate to 1e-13
FIRST_KAPPAS = np.array([0.5 * LOG_PI + math.lgamma(n + 1.0) - math.lgamma(n + 0.5) for n in range(SERIES)])


def highest_rewards(plays: Array, total: Array, log_inverse_level: Array, scale: float) -> Array:
    """max {m : n kl(r_hat, m) <= rho}, kl of two coins, rho = scale (ln(1 / level) + kappa(n)); 1 where n = 0.

    For rewards in [0, 1] of mean r_hat = total / n: at least their expectation for all n at once, with probability
    1 - level (docs/explanation/kl.md, Lemma 1).   (n, X, A)
    """
    most, room = np.empty(plays.shape), np.empty((2, plays.shape[1], 2))
    for i, level in enumerate(log_inverse_level):
        most_of_coins(plays[i], total[i], level, scale, room, most[i])
    return most


def ends(successors: Array, D: Counts, rho: Array, support: bool, V: Array) -> tuple[Array, Array]:
    """min_C <q, V> and max_C <q, V> of every pair   (n, X, A) each."""
    return -largest(successors, D, rho, support, -V), largest(successors, D, rho, support, V)


@compiled
def kappa(n):  # type: ignore[no-untyped-def]
    """ln(sqrt(pi) Gamma(n + 1) / Gamma(n + 1/2))."""
    if n < SERIES:
        return FIRST_KAPPAS[n]
    k = 1.0 / n
    return 0.5 * (LOG_PI + math.log(n)) + k * (0.125 - k * k * (1.0 / 192.0 - k * k / 640.0))


@compiled
def _redundancy(m):  # type: ignore[no-untyped-def]
    """m ln m - ln Gamma(m + 1/2)."""
    if m == 0:
        return -0.5 * LOG_PI
    if m < SERIES:
        return m * math.log(m) - math.lgamma(m + 0.5)
    k = 1.0 / m
    return m - HALF_LOG_TWO_PI + k * (1.0 / 24.0 - k * k * (7.0 / 2880.0 - k * k * 31.0 / 40320.0))


@compiled
def redundancy(moves, n, symbols):  # type: ignore[no-untyped-def]
    """ln p_hat(y^n) / KT(y^n) of one pair: moves are its counts on stored successors, of `symbols` in all."""
    if n == 0:
        return 0.0
    total = math.lgamma(n + 0.5 * symbols) - math.lgamma(0.5 * symbols) - n * math.log(n)
    for j in range(moves.shape[0]):
        total += _redundancy(moves[j]) + 0.5 * LOG_PI
    return total


@compiled
def of_all_values(D, log_inverse_level, symbols):  # type: ignore[no-untyped-def]
    """rho = ln(1 / level) + ln p_hat(y^n) / KT(y^n) over `symbols` states, for level = delta / (X A)   (n, X, A)."""
    visits, moves = D
    rho = np.empty(visits.shape)
    n, X, A = visits.shape
    for i in range(n):
        for x in range(X):
            for a in range(A):
                rho[i, x, a] = log_inverse_level + redundancy(moves[i, x, a], visits[i, x, a], symbols)
    return rho


@compiled
def seen(successors, moves, n, rho, to, p):  # type: ignore[no-untyped-def]
    """The successors of one pair that were seen, into `to`, and their p_hat, into `p`; how many: 0 where every
    distribution on the support is plausible."""
    if n == 0 or rho >= CERTAIN * n:
        return 0
    k = 0
    for j in range(moves.shape[0]):
        if moves[j] > 0:
            to[k], p[k] = successors[j], moves[j] / n
            k += 1
    return k


@compiled
def largest(successors, D, rho, support, V):  # type: ignore[no-untyped-def]
    """max_C <q, V> of every pair   (n, X, A)."""
    visits, moves = D
    n, X, A, B = moves.shape
    best, to, p, y = np.empty((n, X, A)), np.empty(B, np.int32), np.empty(B), np.empty(B)
    for i in range(n):
        highest = V[i].max()
        for x in range(X):
            for a in range(A):
                N = visits[i, x, a]
                k = seen(successors[x, a], moves[i, x, a], N, rho[i, x, a], to, p)
                radius = rho[i, x, a] / max(N, 1)
                best[i, x, a], _ = best_in_ball(successors[x, a], support, k, to, p, radius, V[i], highest, np.nan, y)
    return best


@compiled
def most_of_coins(plays, total, log_inverse_level, scale, room, most):  # type: ignore[no-untyped-def]
    """`highest_rewards` of one seed (X, A); `room` (2, X, 2) is scratch. A team's."""
    X, A = plays.shape
    for x in each(X):
        p, y = room[0, x], room[1, x]
        for a in range(A):
            m = plays[x, a]
            most[x, a] = 1.0
            if m == 0:
                continue
            p[1] = min(total[x, a] / m, 1.0)
            p[0] = 1.0 - p[1]
            d = scale * (log_inverse_level + kappa(m)) / m
            if d < CERTAIN and p[0] > 0.0:
                K = 2 if p[1] > 0.0 else 1
                most[x, a] -= shortfall(K, ENDS, p, d, COIN, 1.0, np.nan, y)[0]
