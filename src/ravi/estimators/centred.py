"""An estimator of V less its middle, in parts of its span.

    c = (max V + min V) / 2,   sigma = max(sp(V) / 2, least),   U = (V - c) / sigma,  in [-1, 1]^X
    P V = c + sigma P U

P_hat V is c + sigma P_hat U, and the samples of an epoch are added with U in place of V: a constant V is backed up
exactly, whatever is known. For counts that is `centre`: P_hat V = c + sum N'/N (V - c), the missing mass at c. For a
regression it is `centre` and `span` at once: features phi_U = phi_{V - c} / sigma and targets (V(y) - c) / sigma are
samples weighted by 1 / sigma^2, whose noise, in an interval of length sp(V) / sigma <= 2, is 1-sub-Gaussian. Without
`span`, sigma = 1: U = V - c, and the noise is H/2-sub-Gaussian, as it is for V.

`clip`: P_hat V is cut to [min V, max V], where P V is.
"""

from typing import NamedTuple

import numpy as np

from ravi.core import Array, Data, Embedding, Estimator, Path

LEAST = 1e-6  # of sigma, where V is constant: any positive number serves, since U is then 0


class Standard(NamedTuple):
    """V as it is estimated."""

    inner: Embedding  # of U
    middle: Array  # c            (n, 1, 1)
    sigma: Array  #               (n, 1, 1)
    low: Array  # min V           (n, 1, 1)
    high: Array  # max V          (n, 1, 1)


def standard(
    estimator: Estimator, *, centre: bool = True, span: bool = True, clip: bool = True, least: bool = False
) -> Estimator:
    """`estimator` on (V - c) / sigma. What is False is left out: c = 0, sigma = 1, nothing is cut; `least`: c is
    min V."""

    def parts(V: Array) -> tuple[Array, Array, Array, Array]:
        low, high = V.min(-1), V.max(-1)
        middle = low if least else (high + low) / 2 if centre else np.zeros_like(low)
        sigma = np.maximum((high - low) / 2, LEAST) if span else np.ones_like(low)
        return low, high, middle, sigma

    def embed(V: Array) -> Standard:
        low, high, middle, sigma = parts(V)
        inner = estimator.embed(_standardised(V, middle, sigma))
        return Standard(inner, *(part[:, None, None] for part in (middle, sigma, low, high)))

    def expect(D: Data, phi: Standard) -> Array:
        PV = phi.middle + phi.sigma * estimator.expect(D, phi.inner)
        return np.clip(PV, phi.low, phi.high) if clip else PV

    def width(D: Data, phi: Standard) -> Array:
        return phi.sigma * estimator.width(D, phi.inner)

    def add(D: Data, V: Array, path: Path) -> Data:
        _, _, middle, sigma = parts(V)
        return estimator.add(D, _standardised(V, middle, sigma), path)

    return Estimator(estimator.init, embed, expect, width, add)


def _standardised(V: Array, middle: Array, sigma: Array) -> Array:
    return (V - middle[:, None]) / sigma[:, None]
