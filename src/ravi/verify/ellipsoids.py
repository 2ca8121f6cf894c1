"""What does a regression say? Its solution, norms by its covariance, and how far its determinant has grown."""

from __future__ import annotations

import numpy as np

from ravi.core import Array


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
