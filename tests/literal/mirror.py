"""One step of mirror descent, as arrays."""

import numpy as np


def mirror_step(log_policy, policy, Q, eta):
    """V, log pi' and pi', of all rows at once."""
    m = Q.max(-1, keepdims=True)
    z = eta * (Q - m)
    s = (policy * np.expm1(z)).sum(-1, keepdims=True)
    tilted = log_policy + z
    top = tilted.max(-1, keepdims=True)
    far = top + np.log(np.exp(tilted - top).sum(-1, keepdims=True))
    log_mean = np.where(s > -0.5, np.log1p(np.where(s > -0.5, s, 0.0)), far)
    fresh = tilted - log_mean
    weight = np.exp(fresh)
    total = weight.sum(-1, keepdims=True)
    return (m + log_mean / eta)[..., 0], fresh - np.log(total), weight / total
