"""How far apart are two policies? Relative entropies, in nats.

    KL(p || q)   = sum_a p(a) log(p(a) / q(a))                           `relative_entropy`
    H(pi || pi') = <nu^pi, KL(pi(. | x) || pi'(. | x))>                  `conditional_relative_entropy`

Neighbouring policies differ by as little as eta = 1e-5, and their entropy by the square of that. So the sum is taken of
p log(p / q) - p + q = p (t - log(1 + t)), t = q / p - 1: no term is negative, nothing cancels between actions, and for
small t the term is summed as t^2 / 2 - t^3 / 3 + ...
"""

import numpy as np

from ravi import validation
from ravi.core import MDP, Array
from ravi.planning.occupancies import occupancy
from ravi.validation import policy_table


def relative_entropy(p: Array, q: Array) -> Array:
    """KL(p || q) along the last axis; infinite where p has mass and q has none."""
    p, q = validation.finite(p, "p"), validation.finite(q, "q")
    validation.sums_to_one(p, "p")
    validation.sums_to_one(q, "q")
    return divergence(p, q)


def divergence(p: Array, q: Array) -> Array:
    """`relative_entropy` of arrays that are known to be distributions."""
    some = p > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.where(some, (q - p) / p, 0.0)  # >= -1
        ratio = np.where(np.abs(t) < 0.5, np.log1p(t), np.log(q) - np.log(p))  # log(q / p); -inf where q = 0
        terms = np.where(np.abs(t) < 0.01, p * _series(t), q - p - p * ratio)
    return np.where(some, terms, q).sum(-1)


def _series(t: np.ndarray) -> np.ndarray:
    """t - log(1 + t) for |t| < 0.01, and anything elsewhere."""
    s = np.clip(t, -0.01, 0.01)
    return s**2 * (1 / 2 - s * (1 / 3 - s * (1 / 4 - s * (1 / 5 - s * (1 / 6 - s * (1 / 7 - s * (1 / 8 - s / 9)))))))


def conditional_relative_entropy(mdp: MDP, policy: Array, other: Array) -> Array:
    """H(pi || pi'), of two policies or of two batches. States that pi never visits do not count."""
    pi, pi_other = policy_table(policy, mdp), policy_table(other, mdp, "other")
    if pi.shape != pi_other.shape:
        raise validation.InputError(f"policy has shape {pi.shape}, but other has {pi_other.shape}")
    nu = occupancy(mdp, pi).nu  # (..., X)
    apart = relative_entropy(pi, pi_other)
    return np.multiply(nu, apart, out=np.zeros(nu.shape), where=nu > 0).sum(-1)
