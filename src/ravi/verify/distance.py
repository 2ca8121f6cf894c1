"""The distance of a run from Algorithms 1 to 3: the largest error of each seed; norms, solutions of regressions."""

from __future__ import annotations

import numpy as np

from ravi.core import Array
from ravi.verify.books import Seen


def worst(*arrays: Array) -> Array:
    """The largest entry of each seed, over all arrays."""
    return np.max([array.reshape(len(array), -1).max(-1) for array in arrays], axis=0)


def nil(s: Seen) -> Array:
    """The bound of an identity's error: zero (a tolerance is granted by the table)."""
    return np.zeros(len(s.at.V))


def relative(found: Array, right: Array) -> Array:
    """The largest difference, in parts of the largest entry of each seed (or of 1)   (n,)."""
    flat, apart = np.abs(right).reshape(len(right), -1), np.abs(found - right).reshape(len(right), -1)
    return apart.max(-1) / np.maximum(flat.max(-1), 1)


def mirror_step(Q: Array, policy: Array, eta: float, V: Array, following: Array, improper: Array) -> Array:
    """V and the policy that follows, against the mirror step from `policy` by Q."""
    top = Q.max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        tilted = np.log(policy) + eta * (Q - top)
    far = tilted.max(-1, keepdims=True)
    weights = np.exp(tilted - far)
    total = weights.sum(-1, keepdims=True)
    right = top[..., 0] + (far + np.log(total))[..., 0] / eta
    rounding = 1e-15 * policy.shape[-1] / eta  # of a logarithm, over eta
    off = np.maximum(np.abs(V - right) - rounding, 0)
    return worst(off, np.abs(following - weights / total), improper[:, None])


# ---- regressions


def solved(covariance: Array, response: Array) -> Array:
    """Lambda^-1 b."""
    return np.linalg.solve(covariance, response[..., None])[..., 0]


def in_norm(covariance: Array, vectors: Array) -> Array:
    """||v||_{Lambda^{-1}}, of vectors (n, ..., d)."""
    flat = vectors.reshape(len(vectors), -1, vectors.shape[-1])
    half = np.linalg.solve(np.linalg.cholesky(covariance), np.swapaxes(flat, 1, 2))
    return np.sqrt((half**2).sum(1)).reshape(vectors.shape[:-1])


def growth(covariance: Array, regularization: float) -> Array:
    """log det Lambda - d log lambda."""
    return np.linalg.slogdet(covariance)[1] - covariance.shape[-1] * np.log(regularization)
