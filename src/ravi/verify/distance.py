"""The largest error of each row; norms, solutions of regressions."""

from __future__ import annotations

import numpy as np

from ravi.core import Array


def worst(*arrays: Array) -> Array:
    """The largest entry of each row, over all arrays."""
    return np.max([array.reshape(len(array), -1).max(-1) for array in arrays], axis=0)


def relative(found: Array, right: Array) -> Array:
    """The largest difference, in parts of the largest entry of each row (or of 1)   (rows,)."""
    return worst(np.abs(found - right)) / np.maximum(worst(np.abs(right)), 1)


def solved(covariance: Array, response: Array) -> Array:
    """Lambda^-1 b."""
    return np.linalg.solve(covariance, response[..., None])[..., 0]


def in_norm(covariance: Array, vectors: Array) -> Array:
    """||v||_{Lambda^{-1}}, of vectors (rows, ..., d)."""
    flat = vectors.reshape(len(vectors), -1, vectors.shape[-1])
    half = np.linalg.solve(np.linalg.cholesky(covariance), np.swapaxes(flat, 1, 2))
    return np.sqrt((half**2).sum(1)).reshape(vectors.shape[:-1])


def growth(covariance: Array, regularization: float) -> Array:
    """log det Lambda - d log lambda."""
    return np.linalg.slogdet(covariance)[1] - covariance.shape[-1] * np.log(regularization)
