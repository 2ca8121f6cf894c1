"""How far is a run off what Algorithms 1 to 3 say? The mirror step, and the data, as the largest error of each seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ravi.core import MDP, Array
from ravi.verify.preliminaries import worst


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


def counts(data: Any, moves: Array, mdp: MDP) -> Array:
    """N and N', against what was played: `moves` (n, X, A, X)."""
    there = np.broadcast_to(mdp.successors.astype(np.int64), data.moves.shape)
    right = np.take_along_axis(moves, there, axis=-1)
    return worst(np.abs(data.visits - 1 - moves.sum(-1)), np.abs(data.moves - right))


def regression(data: Any, covariance: Array, response: Array) -> Array:
    """Lambda and b, against these, in parts of their largest entry."""
    pairs = ((data.covariance, covariance), (data.response, response))
    flat = [(found.reshape(len(found), -1), right.reshape(len(right), -1)) for found, right in pairs]
    off = [np.abs(found - right).max(-1) / np.maximum(np.abs(right).max(-1), 1) for found, right in flat]
    return np.maximum(*off)
