"""What is hard for a linear mixture? The hypercube: 2^(d-1) actions, told apart by a small inner product.

After the lower bound of Zhou, He and Gu (2021), Provably efficient reinforcement learning for discounted MDPs with
feature mapping. States x0 (r = 0, the start) and x1 (r = 1), actions a in {-1, 1}^(d-1), a hidden theta in
{-Delta / (d-1), Delta / (d-1)}^(d-1), delta = 1 - gamma:

    P(x1 | x0, a) = delta + <a, theta>,      P(x0 | x1, a) = delta.

With alpha = sqrt(Delta / ((d-1) (1 + Delta))) and beta = sqrt(1 / (1 + Delta)) the features are

    psi(x0, a, x0) = (-alpha a, beta (1 - delta)),   psi(x0, a, x1) = (alpha a, beta delta),
    psi(x1, a, x0) = (0, beta delta),                psi(x1, a, x1) = (0, beta (1 - delta)),

and the parameter is (theta / alpha, 1 / beta), of norm 1 + Delta exactly: B_theta = 1 + Delta, B_phi = 1. (The largest
||phi_V|| / H is beta, at V = H.) A policy with <E a, theta> = m at x0 has, with p = delta + m and
c = 1 - gamma + gamma (delta + p),

    rho = gamma p / c,   V(x0) = gamma p / ((1 - gamma) c),   V(x1) = (1 - gamma + gamma p) / ((1 - gamma) c);

the best action is sign(theta), with m = Delta.
"""

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.draws import uniforms
from ravi.mdps.names import named
from ravi.mdps.tables import ROUNDING, from_features
from ravi.validation import require_table

LARGEST = 20  # 2^19 actions


def hypercube(dimension: int = 5, discount: float = 0.9, margin: float | None = None, seed: int = 0) -> MDP:
    """One of 2^(d - 1) actions is best by a small `margin`: a lower-bound instance for linear mixtures.

    `margin` is Delta, by default (1 - gamma) / 2; the seed draws the signs of theta. Action number a has +1 at
    coordinate i where bit i of a is set.
    """
    d = validation.whole(dimension, "dimension", 2, LARGEST)
    gamma = validation.probability(discount, "discount")
    delta = 1 - gamma
    Delta = delta / 2 if margin is None else validation.positive(margin, "margin")
    most = min(delta, gamma)  # probabilities delta - Delta >= 0 and delta + Delta <= 1
    if Delta > most + ROUNDING:
        raise validation.InputError(
            f"margin is {Delta:g}; with discount {gamma:g} it must be at most min(1 - gamma, gamma) = {most:g}"
        )
    seed = validation.whole(seed, "seed", 0)
    sign = np.where(uniforms(seed)(d - 1) < 0.5, 1.0, -1.0)
    A = 2 ** (d - 1)
    name = named("hypercube", d, margin=(margin, None), seed=(seed, 0))
    require_table(name, "dimension", 2, A, 2, d, scattered=False)
    a = np.where(np.arange(A)[:, None] >> np.arange(d - 1) & 1, 1.0, -1.0)  # (A, d-1)
    alpha, beta = np.sqrt(Delta / ((d - 1) * (1 + Delta))), np.sqrt(1 / (1 + Delta))
    psi = np.zeros((2, A, 2, d))
    psi[0, :, 0, :-1], psi[0, :, 1, :-1] = -alpha * a, alpha * a
    psi[0, :, :, -1] = beta * (1 - delta), beta * delta
    psi[1, :, :, -1] = beta * delta, beta * (1 - delta)
    r = np.zeros((2, A))
    r[1] = 1
    return from_features(
        psi, [*(sign * (Delta / (d - 1) / alpha)), 1 / beta], np.broadcast_to(np.arange(2), (2, A, 2)), r, gamma, 0,
        parameter_bound=1 + Delta, feature_bound=1.0, name=name,
    )  # fmt: skip
