"""The mixtures that the moves make likely: a set of likelihoods, and an ellipsoid around it.

psi_1, ..., psi_d >= 0 are kernels, theta their weights, on the simplex (`simulators`). For counts N_c of moves
c = (x, a, y), m of them where the kernels differ,

    F(theta) = -sum_c N_c ln <theta, psi_c>,   theta_hat its minimum,
    Theta = {theta on the simplex: F(theta) <= F(theta_hat) + rho},   rho = ln(1 / delta) + C_d(m)

holds the truth for all m at once with probability 1 - delta (docs/explanation/kl.md, Lemma 5). With
r_c = <theta - theta_hat, psi_c> / p_c, p_c = <theta_hat, psi_c>, and h(r) = r - ln(1 + r) >= r^2 / (2 max(1, 1 + r)),

    F(theta) - F(theta_hat) >= sum_c N_c h(r_c) - gap,   gap = max_i sum_c N_c psi_ci / p_c - m >= 0,

so that ||theta - theta_hat||^2_Lambda <= 2 (rho + gap) on Theta, for Lambda = sum_c N_c psi_c psi_c^T / (p_c m_c) and
any m_c >= max_Theta <theta, psi_c>: first max_i psi_ci, then, three times, the maximum over the ellipsoid that was
found, p_c + ||psi_c|| in the inverse of its Lambda, along the simplex.
"""

from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Problem
from ravi.optimism.ellipsoids import kernel_offence, unit_mass
from ravi.optimism.simplex import quadratic
from ravi.theory.kl import GAP, worst_redundancy

RIDGE = 1e-2  # Lambda may be singular: ||theta - theta_hat||^2 <= 2 on the simplex pays for this times the identity
REFINED = 3  # times that m_c is made anew
SAME = 1e-12  # entries of psi_c that differ by no more are equal
ROUNDS = 60  # of Newton's method, at most
MOST_VERTICES = 64  # of a polytope of kernels


class Rows(NamedTuple):
    """The psi_c of all moves, each once, where kernels differ: F does not tell apart moves of the same psi_c."""

    psi: Array  # (k, d)
    of: Array  # the row of every move; k for those at which kernels do not differ   (X A B,)


class Likelihood(NamedTuple):
    """The likelihood of the moves of one seed, and its maximiser."""

    rows: Array  # psi_c of the moves that were seen, each once              (rows, d)
    counts: Array  # N_c                                                     (rows,)
    theta: Array  # theta_hat                                                (d,)
    gap: float
    rho: float


def simulators(problem: Problem) -> Array:
    """psi (X, A, B, d), not negative, with the truth on the simplex: the features where these are d kernels, else the
    kernels at the vertices of the polytope {theta: <theta, psi> is a kernel}."""
    psi = np.asarray(problem.features)
    if not kernel_offence(problem):
        return psi
    from scipy.optimize import linprog
    from scipy.spatial import HalfspaceIntersection, QhullError

    space = unit_mass(problem)
    rows = np.unique(np.round(psi.reshape(-1, psi.shape[3]), 12), axis=0)
    A, b = -(rows @ space.basis), rows @ space.origin  # A z <= b
    kept = np.abs(A).max(1, initial=0.0) > 1e-9
    A, b = A[kept], b[kept]
    d = A.shape[1]
    if d == 0:
        theta = space.origin[None]
    elif d == 1:
        ends = b / A[:, 0]
        theta = space.origin + np.array([[ends[A[:, 0] < 0].max()], [ends[A[:, 0] > 0].min()]]) @ space.basis.T
    else:
        norms = np.linalg.norm(A, axis=1)
        inside = linprog(
            np.append(np.zeros(d), -1.0), A_ub=np.c_[A, norms], b_ub=b, bounds=[(None, None)] * d + [(0, 1)]
        )
        if not inside.success or inside.x[-1] <= 1e-9:
            raise validation.InputError(f"{problem.name}: the parameters that make kernels have no inner point")
        try:
            z = HalfspaceIntersection(np.c_[A, -b], inside.x[:-1]).intersections
        except QhullError:
            raise validation.InputError(f"{problem.name}: the parameters that make kernels are not bounded") from None
        theta = space.origin + np.unique(np.round(z, 9), axis=0) @ space.basis.T
    if len(theta) > MOST_VERTICES:
        raise validation.InputError(
            f"{problem.name}: the polytope of kernels has {len(theta)} vertices; at most {MOST_VERTICES} are taken"
        )
    return np.maximum(psi @ theta.T, 0.0)


def rows_of(psi: Array) -> Rows:
    """The distinct rows of kernels psi (X, A, B, d), and which of them each successor has."""
    flat = psi.reshape(-1, psi.shape[-1])
    telling = np.ptp(flat, axis=1) > SAME
    distinct, which = np.unique(flat[telling], axis=0, return_inverse=True)
    of = np.full(len(flat), len(distinct))
    of[telling] = which.reshape(-1)
    return Rows(distinct, of)


def likelihood(rows: Rows, moves: Array, theta: Array, log_inverse_level: float, scale: float) -> Likelihood:
    """From counts of moves (X, A, B) and a theta to start from."""
    k, d = rows.psi.shape
    N = np.bincount(rows.of, moves.reshape(-1), k + 1)[:k]
    psi, counts = rows.psi[N > 0], N[N > 0]
    theta, gap = likeliest(counts, psi, theta)
    return Likelihood(psi, counts, theta, gap, scale * (log_inverse_level + worst_redundancy(counts.sum(), d)))


def likeliest(N: Array, rows: Array, theta: Array) -> tuple[Array, float]:
    """argmin F on the simplex by sequential quadratic programmes, and `gap`, which bounds how far it is from that."""
    d, n = rows.shape[1], N.sum()
    if n == 0:
        return np.full(d, 1 / d), 0.0
    theta = np.maximum(theta, 1e-9)
    theta = theta / theta.sum()
    pull, L, one, p, order = np.empty(d), np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d, np.int64)
    allowed = np.ones(d, bool)
    mass = rows @ theta
    F = -(N * np.log(mass)).sum()
    for _ in range(ROUNDS):
        slope = rows.T @ (N / mass)  # less the gradient
        if slope.max() - n <= GAP:
            break
        curve = (rows * (N / mass**2)[:, None]).T @ rows + 1e-9 * n * np.eye(d)
        aim = theta.copy()
        quadratic(curve, theta.copy(), slope, 1.0, allowed, aim, pull, L, one, p, order)
        step, moved = 1.0, False
        while step > 1e-6 and not moved:
            there = rows @ (theta + step * (aim - theta))
            lower = -(N * np.log(there)).sum() if (there > 0).all() else np.inf
            moved = bool(lower < F - 1e-12 * abs(F))
            if moved:
                theta, mass, F = theta + step * (aim - theta), there, lower
            step /= 2
        if not moved:  # a step of EM
            theta = theta * slope / n
            theta = theta / theta.sum()
            mass = rows @ theta
            F = -(N * np.log(mass)).sum()
    return theta, max(float((rows.T @ (N / mass)).max() - n), 0.0)


def shape(at: Likelihood, part: float) -> Array:
    """Lambda / 2 (part rho + gap): ||theta - theta_hat||^2 <= 1 in it holds {F <= F(theta_hat) + part rho}   (d, d)."""
    d = len(at.theta)
    p, most = at.rows @ at.theta, at.rows.max(1, initial=0.0)
    size = 2 * (part * at.rho + at.gap + RIDGE)
    for k in range(REFINED + 1):
        Lam = ((at.rows * (at.counts / (p * most))[:, None]).T @ at.rows + RIDGE * np.eye(d)) / size
        if k < REFINED:
            inverse = np.linalg.inv(Lam)
            one = inverse.sum(0)
            inverse -= np.outer(one, one) / one.sum()  # weights sum to 1: only moves along the simplex count
            width = np.sqrt(np.maximum(((at.rows @ inverse) * at.rows).sum(1), 0.0))
            most = np.minimum(most, p + width * (1 + 1e-9))
    return Lam
