"""The maximum of <theta, phi> over an ellipsoid of mixture weights and what else is known of theta.

    E = {theta: ||theta - theta_hat||_Lambda <= beta}

exact-simplex   E and the simplex: where the features are d kernels, every theta there makes a kernel
null-space      E and the affine space where all rows <theta, psi(x, a, .)> have mass 1; they may be negative
relaxed         E alone: <theta_hat, phi> + beta ||phi||_{Lambda^-1}

Where E does not meet the set, beta is raised to the least radius at which it does: what is left is the point of the set
that is nearest to theta_hat in the norm of Lambda.

The simplex holds the truth only if theta is there, and weights with a negative entry may make a kernel too: where the
kernels have much in common. They cannot if each kernel has a move that no other has (`encloses`).

The first is solved in `ravi.optimism.simplex`; the others have closed forms.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Problem

SIMPLEX, NULL_SPACE, RELAXED = "exact-simplex", "null-space", "relaxed"
INNER = ("auto", SIMPLEX, NULL_SPACE, RELAXED)
BELOW = 1e-9  # weights that are no more negative than this count as on the simplex


class Flat(NamedTuple):
    """max <theta, phi> = <centre, phi> + radius ||phi||_shape."""

    centre: Array  # (n, d)
    shape: Array  # (n, d, d)
    radius: Array  # (n,)
    empty: Array  # whether the radius had to be raised        (n,)


def chosen(inner: str, problem: Problem) -> str:
    """The set by its name; "auto" is the simplex where it holds all theta that make a kernel, else the affine space."""
    validation.one_of(inner, INNER, "inner")
    if problem.features is None:
        raise validation.InputError(
            f"{problem.name} has no features: an ellipsoid of kernels needs a linear mixture MDP"
        )
    if inner == "auto":
        return SIMPLEX if encloses(problem) else NULL_SPACE
    if inner == SIMPLEX:
        kernels(problem)
    return inner


def kernels(problem: Problem) -> None:
    """Refuse features that are not d kernels: then points of the simplex need not make kernels."""
    offence = kernel_offence(problem)
    if offence:
        raise validation.InputError(
            f"{problem.name}: {offence}; the simplex of mixtures needs a kernel at every coordinate"
        )


def encloses(problem: Problem) -> bool:
    """Whether the features are kernels and every theta that makes a kernel of them is on the simplex.

    Theta makes a kernel if it sums to 1 and all <theta, psi(x, a, x')> >= 0. By duality the least theta_i of these is
    the largest mu with e_i = mu 1 + sum c psi(x, a, x'), over all moves, all c >= 0. No psi has a negative entry, so
    mu >= 0 means mu = 0 (for d > 1) and a psi(x, a, x') that is zero but at i: a move that only kernel i has. And such
    a move gives theta_i >= 0.
    """
    if kernel_offence(problem):
        return False
    psi: Any = problem.features
    d = psi.shape[3]
    rows = psi.reshape(-1, d)
    top = rows.max(1)
    alone = rows[(top > 0) & (rows.sum(1) - top <= BELOW / d * top)]
    return len(np.unique(alone.argmax(1))) == d


def kernel_offence(problem: Problem) -> str:
    psi: Any = problem.features  # (X, A, B, d)
    mass = psi.sum(2)
    wrong = (psi < 0).any(2) | (np.abs(mass - 1) > validation.SUM_TOLERANCE)
    if not wrong.any():
        return ""
    x, a, i = validation.first(wrong)
    least = psi[x, a, :, i].min()
    what = f"is negative ({least:g})" if least < 0 else f"sums to {mass[x, a, i]:.10g}, not 1"
    return f"features[{x}, {a}, :, {i}] {what}"


def relaxed(inverse: Array, centre: Array, radius: Array) -> Flat:
    return Flat(centre, inverse, radius, np.zeros(len(radius), np.bool_))


class Affine(NamedTuple):
    """{theta: sum_x' <theta, psi(x, a, x')> = 1 for all (x, a)} = origin + basis z, the basis orthonormal."""

    origin: Array  # (d,)
    basis: Array  # (d, m)


def unit_mass(problem: Problem) -> Affine:
    """Where all rows have mass 1."""
    psi: Any = problem.features
    rows = psi.sum(2).reshape(-1, psi.shape[3])
    _, size, right = np.linalg.svd(rows, full_matrices=True)
    rank = int((size > max(rows.shape) * np.finfo(float).eps * size[0]).sum())
    origin = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    missed = np.abs(rows @ origin - 1)
    if missed.max() > validation.SUM_TOLERANCE:
        x, a = np.unravel_index(int(missed.argmax()), psi.shape[:2])
        raise validation.InputError(
            f"{problem.name}: no theta gives all rows mass 1; features[{x}, {a}] is off by {missed.max():g}"
        )
    return Affine(origin, np.ascontiguousarray(right[rank:].T))


def null_space(space: Affine, covariance: Array, centre: Array, radius: Array) -> Flat:
    """The ellipsoid cut by the affine space: again one, around its point nearest to theta_hat."""
    origin, N = space
    n, d = centre.shape
    middle, shape, left = np.empty((n, d)), np.zeros((n, d, d)), np.empty(n)
    for i in range(n):
        Lam = covariance[i]
        middle[i] = origin
        if N.shape[1]:
            inner = N.T @ Lam @ N
            middle[i] += N @ np.linalg.solve(inner, N.T @ (Lam @ (centre[i] - origin)))
            shape[i] = N @ np.linalg.solve(inner, N.T)
        off = middle[i] - centre[i]
        left[i] = radius[i] ** 2 - off @ Lam @ off
    return Flat(middle, shape, np.sqrt(np.maximum(left, 0.0)), left < 0)
