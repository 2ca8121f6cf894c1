"""How are the weights of d kernels drawn from their posterior? By hit-and-run, with slices, on the simplex.

With a uniform prior on the simplex and counts N_c of moves with features psi_c, the posterior density of theta is
proportional to exp(-F(theta)), F(theta) = -sum_c N_c ln <theta, psi_c> (`ravi.optimism.likelihood`), and log-concave. A
move of the chain (R. L. Smith 1984; R. M. Neal 2003, "Slice sampling")

    u ~ N(0, C), C = (sum_c N_c psi_c psi_c^T / p_c^2 + d^2 I)^{-1} on the plane sum u = 0,  p_c = <theta_hat, psi_c>
    F <= F(theta) + e is the slice, e exponential;  an interval of `WIDTH` around 0, where it falls by chance
    s uniform on the interval, which is cut at s while theta + s u is not in the slice;  theta <- theta + s u

leaves the posterior as it is, whatever C, which is of the data alone. In units of C the posterior is about as wide in
all directions, so that 4 d moves from one draw to the next are many: their correlation was 0 to .2 on ensembles of 10
kernels, up to .8 on ensembles of 30 with few steps. Where no move tells kernels apart, draws are independent.

The uniforms are the blocks 1, 2, ... of step t under the learner's key (`ravi.random`), in the order of use.
"""

import math

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.optimism.likelihood import Likelihood
from ravi.random import block

MOVES = 4  # times d, from one draw to the next
WIDTH = 8.0  # of the interval, in standard deviations
CUTS = 100  # of an interval, at most: it is a point by then


def draw_weights(at: Likelihood, theta: Array, key: int, t: int) -> None:
    """The next draw (d,) from the last one, in place."""
    d = len(theta)
    if len(at.rows) == 0:
        _flat(theta, key, t)
        return
    rows = at.rows / (at.rows @ at.theta)[:, None]
    covariance = np.linalg.inv((rows * at.counts[:, None]).T @ rows + d**2 * np.eye(d))
    one = covariance.sum(0)
    covariance -= np.outer(one, one) / one.sum()
    size, axes = np.linalg.eigh(covariance)
    _wander(theta, at.rows, at.counts, axes * np.sqrt(np.maximum(size, 0.0)), key, t)


@compiled
def _flat(theta, key, t):  # type: ignore[no-untyped-def]
    """theta ~ Dirichlet(1, ..., 1)."""
    d = theta.shape[0]
    for j in range(d):
        theta[j] = -math.log(1.0 - block(key, t, 1 + j)[0])
    theta /= theta.sum()


@compiled
def _wander(theta, rows, counts, root, key, t):  # type: ignore[no-untyped-def]
    """MOVES d moves, in place. root root^T = C."""
    d, m = theta.shape[0], rows.shape[0]
    u, z, p, q = np.empty(d), np.empty(d + 3), np.empty(m), np.empty(m)
    part = 1
    for c in range(m):
        p[c] = 0.0
        for j in range(d):
            p[c] += rows[c, j] * theta[j]
    for _ in range(MOVES * d):
        for j in range(0, d, 4):  # normals, by Box and Muller
            a, b, e, f = block(key, t, part)
            part += 1
            r, s = math.sqrt(-2.0 * math.log(1.0 - a)), math.sqrt(-2.0 * math.log(1.0 - e))
            z[j], z[j + 1] = r * math.cos(2.0 * math.pi * b), r * math.sin(2.0 * math.pi * b)
            z[j + 2], z[j + 3] = s * math.cos(2.0 * math.pi * f), s * math.sin(2.0 * math.pi * f)
        mean = 0.0
        for j in range(d):
            u[j] = 0.0
            for k in range(d):
                u[j] += root[j, k] * z[k]
            mean += u[j] / d
        placed, level, first, _ = block(key, t, part)
        part += 1
        low, high = -WIDTH * placed, WIDTH * (1.0 - placed)
        for j in range(d):  # where it leaves the simplex
            u[j] -= mean
            if u[j] > 0.0:
                low = max(low, -theta[j] / u[j])
            elif u[j] < 0.0:
                high = min(high, -theta[j] / u[j])
        for c in range(m):
            q[c] = 0.0
            for j in range(d):
                q[c] += rows[c, j] * u[j]
            q[c] /= p[c]
        least = math.log(1.0 - level)  # of -F(theta + s u) + F(theta)
        s = low + (high - low) * first
        for cut in range(CUTS):
            gain = 0.0
            for c in range(m):
                ratio = 1.0 + s * q[c]
                gain += counts[c] * math.log(ratio) if ratio > 0.0 else -np.inf
            if gain >= least:
                break
            if s < 0.0:
                low = s
            else:
                high = s
            s = low + (high - low) * block(key, t, part)[cut % 4]
            part += cut % 4 == 3
            if cut == CUTS - 1:
                s = 0.0
        part += 1
        total = 0.0
        for j in range(d):
            theta[j] = max(theta[j] + s * u[j], 0.0)
            total += theta[j]
        for j in range(d):
            theta[j] /= total
        for c in range(m):
            p[c] *= 1.0 + s * q[c]
