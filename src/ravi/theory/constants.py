"""Which constants does the theory set? Step size and confidence radii, each by the statement that derives it."""

from __future__ import annotations

from math import log, sqrt


def eta(horizon: float, actions: int, steps: int) -> float:
    """Theorem 4.1: eta = sqrt(2 log A / (H^2 T)). With one action every policy is the same and any eta > 0 serves."""
    H, A, T = horizon, actions, steps
    return sqrt(2 * log(A) / (H**2 * T)) if A > 1 else sqrt(2 / (H**2 * T))


def beta_tabular(horizon: float, states: int, actions: int, steps: int, delta: float) -> float:
    """Lemma 5.1: beta = 8 H sqrt(X log(X A T / delta))."""
    H, X, A, T = horizon, states, actions, steps
    return 8 * H * sqrt(X * log(X * A * T / delta))


def beta_mixture(
    horizon: float,
    dimension: int,
    steps: int,
    delta: float,
    *,
    parameter_bound: float,
    feature_bound: float,
    regularization: float = 1.0,
) -> float:
    """Lemma 5.4: beta = H sqrt(2 ((d/2) log(1 + T B^2 H^2 / (lambda d)) + log(1/delta))) + sqrt(lambda) B.

    The first B bounds ||phi_V|| / H, the second ||theta||; the paper takes one B for both.
    """
    H, d, T, lam = horizon, dimension, steps, regularization
    spread = d / 2 * log(1 + T * feature_bound**2 * H**2 / (lam * d)) + log(1 / delta)
    return H * sqrt(2 * spread) + sqrt(lam) * parameter_bound
