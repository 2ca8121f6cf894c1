"""How often can features be new? The elliptical potential under geometric epochs: Lemmas A.2 to A.4.

The sums of these lemmas run over the steps up to T+, the end of the epoch of step T; the paper prints T. `plays` is the
number of steps that are summed: T+ of a run, T + gamma H for a mean (the logarithm is concave), T for the print.
"""

from math import log, log1p

from ravi.theory import constants, inputs


def log_determinant(
    horizon: float, dimension: int, plays: float, *, bound: float, regularization: float = 1.0
) -> float:
    """The elliptical potential under epochs, Lemma A.2.

        sum_{k <= K} 1/L_k sum_{t in epoch k} log(1 + L_k ||phi_{k,t}||^2_{Lambda_k^{-1}})
            <= log det Lambda_{K+1} - d log lambda <= d log(1 + B^2 H^2 T+ / (lambda d)),

    L_k the length of epoch k. The paper has Lambda_K and T.
    """
    d, n = inputs.whole(dimension, "dimension"), inputs.positive(plays, "plays")
    return d * log1p(_rate(horizon, d, bound, regularization) * n)


def bad_epochs(horizon: float, dimension: int, plays: float, *, bound: float, regularization: float = 1.0) -> float:
    """Lemma A.3: at most (d / log 2) log(1 + B^2 H^2 T+ / (lambda d)) epochs have a t with ||phi_{k,t}|| >= 1."""
    return log_determinant(horizon, dimension, plays, bound=bound, regularization=regularization) / log(2)


def padded_log(horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0) -> float:
    """E[T+ log(1 + c T+)] <= (T + gamma H) log(1 + c T) + gamma H + gamma (1 + gamma) H^2 / T, for Lemma 5.5.

    c = B^2 H^2 / (lambda d). T+ = T + G with E G = gamma H and E G^2 = gamma (1 + gamma) H^2, and log(1 + c T+) is at
    most log(1 + c T) + G/T. Jensen does not help: x log(1 + c x) is convex.
    """
    H, d, T = inputs.horizon(horizon), inputs.whole(dimension, "dimension"), inputs.whole(steps, "steps")
    gamma, c = 1 - 1 / H, _rate(H, d, bound, regularization)
    return (T + gamma * H) * log1p(c * T) + gamma * H + gamma * (1 + gamma) * H**2 / T


def longest_epoch(horizon: float, steps: int) -> float:
    """Lemma A.4, its proof: E[max_{k <= K(T)} L_k] <= (2 + log T) H."""
    H, T = inputs.horizon(horizon), inputs.whole(steps, "steps")
    return (2 + log(T)) * H


def largest_factor(horizon: float, steps: int) -> float:
    """Lemma A.4: E[max_{k <= K(T)} C_k] <= (4 + 2 log T) H, C_k = L_k / log(1 + L_k)."""
    return 2 * longest_epoch(horizon, steps)


def largest_factor_sharp(horizon: float, steps: int) -> float:
    """E[max_{k <= K(T)} C_k] <= f((2 + log T) H), f(x) = x / log(1 + x), which is increasing and concave (Jensen)."""
    return constants.epoch_factor(longest_epoch(horizon, steps))


def _rate(horizon: float, d: int, bound: float, regularization: float) -> float:
    """c = B^2 H^2 / (lambda d)."""
    H, B, lam = (
        inputs.horizon(horizon),
        inputs.positive(bound, "bound"),
        inputs.positive(regularization, "regularization"),
    )
    return B**2 * H**2 / (lam * d)
