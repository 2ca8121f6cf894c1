"""Integrals over the box as sums over fixed nodes: Gauss-Legendre, evenly spaced on a periodic axis.

    phi_V(x, a)_i = sum_j p_ij V(x_j),   p_ij = prod_c w_jc psi_ic(x, a, x_jc) / Z_ic(x, a),   Z_ic = sum_j w_jc psi_ic

Rows are normalised, explicitly: constants are integrated exactly, p_i is a distribution on the nodes, and ||phi_V|| <=
sqrt(d) H. |Z - 1| is what this changes. It is reported, and a grid on which it exceeds a tolerance is refused.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.continuous.core import ContinuousMDP, ContinuousProblem
from ravi.core import Array

TOLERANCE = 1e-3  # of |Z - 1|
PROBES = 64  # random states where it is looked at, beside the nodes


class Grid(NamedTuple):
    points: Array  # of one axis after the other   (m_1 + ... + m_D,)
    weights: Array  # likewise
    start: Array  # where each axis begins         (D + 1,)
    nodes: Array  # x_j, the last axis fastest     (m, D)

    @property
    def size(self) -> int:
        return int(self.nodes.shape[0])  # m

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.diff(self.start).tolist())


def grid(problem: ContinuousProblem, *sizes: int) -> Grid:
    """A tensor grid with this many points on each axis; one number serves for all."""
    counts = [validation.whole(one, "sizes") for one in sizes]
    if len(counts) not in (1, problem.axes):
        raise validation.InputError(f"sizes are {len(counts)}, but {problem.name} has {problem.axes} axes")
    counts = counts * problem.axes if len(counts) == 1 else counts
    points, weights = [], []
    for m, low, high, around in zip(counts, problem.low, problem.high, problem.periodic, strict=True):
        if around:
            at, w = (np.arange(m) + 0.5) / m, np.full(m, 1 / m)
        else:
            z, w = np.polynomial.legendre.leggauss(m)
            at, w = (1 + z) / 2, w / 2
        points.append(low + (high - low) * at)
        weights.append((high - low) * w)
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*points, indexing="ij")], axis=-1)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Grid(np.concatenate(points), np.concatenate(weights), start, np.ascontiguousarray(nodes))


def states(problem: ContinuousProblem, x: Any) -> Array:
    """States as an array (N, D), in the box."""
    at = validation.finite(x, "x").astype(float)
    at = at.reshape(-1, 1) if problem.axes == 1 and at.ndim < 2 else np.atleast_2d(at)
    if at.ndim != 2 or at.shape[1] != problem.axes:
        raise validation.InputError(f"x has shape {at.shape}, not (N, {problem.axes})")
    outside = (at < problem.low) | (at > problem.high)
    if outside.any():
        index = validation.first(outside)
        raise validation.InputError(f"{validation.at('x', index)} is {at[index]:g}, outside the box")
    return np.ascontiguousarray(at)


def rows(problem: ContinuousProblem, on: Grid, x: Any) -> tuple[Array, float]:
    """p_i(x_j | x, a) of every simulator, (N, A d, m), a slowest; and the largest |Z - 1|."""
    at = states(problem, x)
    out = np.empty((len(at), problem.actions * problem.dimension, on.size))
    worst = _rows(problem.functions.factor, problem.constants, at, problem.dimension, on, out)
    return out, float(worst)


def check_grid(problem: ContinuousProblem, on: Grid, tolerance: float = TOLERANCE) -> float:
    """The largest |Z - 1| at the nodes and at PROBES other states; an error where it exceeds the tolerance."""
    tolerance = validation.positive(tolerance, "tolerance")
    u = np.random.Philox(key=0).random_raw(PROBES * problem.axes) * 2.0**-64
    probes = problem.low + (problem.high - problem.low) * u.reshape(PROBES, problem.axes)
    worst = 0.0
    for x in np.array_split(np.concatenate([on.nodes, probes]), 1 + on.size // 256):
        worst = max(worst, rows(problem, on, x)[1])
    return require_resolution(problem, on, worst, tolerance)


def require_resolution(problem: ContinuousProblem, on: Grid, worst: float, tolerance: float) -> float:
    """`worst`, the largest |Z - 1|; an error where it exceeds the tolerance."""
    if not worst <= tolerance:
        raise validation.InputError(
            f"{problem.name}: on {' x '.join(map(str, on.shape))} nodes a density integrates to 1 only within "
            f"{worst:.2g}, not {tolerance:g}: take more nodes"
        )
    return worst


def kernel(mdp: ContinuousMDP, on: Grid, x: Any) -> tuple[Array, float]:
    """P(x_j | x, a) of the truth, (N, A, m); and the largest |Z - 1|."""
    problem, worst = mdp.problem, 0.0
    at = states(problem, x)
    out = np.zeros((len(at), problem.actions, on.size))
    for low in range(0, len(at), PROBES):
        p, off = rows(problem, on, at[low : low + PROBES])
        worst = off if not off <= worst else worst  # nan, too
        for theta, of in zip(
            mdp.parameter, np.moveaxis(p.reshape(len(p), *out.shape[1:2], -1, on.size), 2, 0), strict=True
        ):
            out[low : low + PROBES] += theta * of
    return out, worst


def rewards(problem: ContinuousProblem, x: Any) -> Array:
    """r   (N, A)."""
    at = states(problem, x)
    r = _rewards(problem.functions.reward, problem.constants, at, problem.actions)
    return validation.between(validation.finite(r, "rewards"), 0, 1, "rewards")


def initial(problem: ContinuousProblem, on: Grid) -> tuple[Array, float]:
    """nu_0 on the nodes   (m,), normalised; and the largest |Z - 1|."""
    out = np.empty(on.size)
    worst = _initial(problem.functions.initial, problem.constants, on, out)
    return out, float(worst)


@compiled
def spread(f, w, out, size):  # type: ignore[no-untyped-def]
    """out[: size m] <- out[: size] x (w f / Z); |Z - 1|."""
    m = f.shape[0]
    Z = 0.0
    for j in range(m):
        f[j] *= w[j]
        Z += f[j]
    for s in range(size - 1, -1, -1):  # from the back: what is still read is not yet written
        base = out[s] / Z
        for j in range(m):
            out[s * m + j] = base * f[j]
    return abs(Z - 1.0)


@compiled
def row(factor, constants, i, x, a, on, out):  # type: ignore[no-untyped-def]
    """out[j] <- p_ij; the largest |Z - 1|."""
    points, weights, start, _ = on
    out[0], size, worst = 1.0, 1, 0.0
    for c in range(start.shape[0] - 1):
        f = np.empty(start[c + 1] - start[c])
        factor(constants, i, x, a, c, points[start[c] : start[c + 1]], f)
        off = spread(f, weights[start[c] : start[c + 1]], out, size)
        worst = off if not off <= worst else worst  # nan, too
        size *= f.shape[0]
    return worst


@compiled
def _rows(factor, constants, xs, d, on, out):  # type: ignore[no-untyped-def]
    worst = 0.0
    for n in range(xs.shape[0]):
        for e in range(out.shape[1]):
            off = row(factor, constants, e % d, xs[n], e // d, on, out[n, e])
            worst = off if not off <= worst else worst
    return worst


@compiled
def _rewards(reward, constants, xs, A):  # type: ignore[no-untyped-def]
    r = np.empty((xs.shape[0], A))
    for n in range(xs.shape[0]):
        for a in range(A):
            r[n, a] = reward(constants, xs[n], a)
    return r


@compiled
def _initial(initial, constants, on, out):  # type: ignore[no-untyped-def]
    points, weights, start, _ = on
    out[0], size, worst = 1.0, 1, 0.0
    for c in range(start.shape[0] - 1):
        f = np.empty(start[c + 1] - start[c])
        initial(constants, c, points[start[c] : start[c + 1]], f)
        off = spread(f, weights[start[c] : start[c + 1]], out, size)
        worst = off if not off <= worst else worst
        size *= f.shape[0]
    return worst
