"""What is proven of RAVI-UCB in a linear MDP with X states? Its bonus, where it allows for every V at once.

V_k is made of the samples that it is the target of, so that the self-normalised bound (Theorem C.2) does not speak of
it. It speaks of each V that is fixed in advance: with P(x' | x, a) = <phi(x, a), m(x')> and the noise V(y_t) - P V,
H/2-sub-Gaussian for V in [0, H]^X, with probability 1 - delta'

    ||sum_t phi_t (V(y_t) - P V(x_t, a_t))||_{Lambda^-1} <= (H/2) sqrt(log det Lambda - d log lambda + 2 log(1/delta')).

The left side is convex in V, and so largest at one of the 2^X corners of [0, H]^X. With delta' = 2^-X delta it holds
for all of them, and for every V at once, V_k too. Hence, with w_V = Lambda^-1 sum_t phi_t V(y_t) and P V = <phi, m V>,

    |(P - P_hat) V| <= beta_X ||phi||_{Lambda^-1},
    beta_X = (H/2) sqrt(log det Lambda - d log lambda + 2 log(1/delta) + 2 X log 2) + sqrt(lambda) sup_V ||m V||.

That is what a covering number would have to improve on: X where the paper would have d. Where a learner's beta is at
least the closed form of beta_X, log det Lambda <= d log(lambda + T b^2 / d) for ||phi|| <= b, its bonuses are valid
with probability 1 - delta, and Theorem 4.1 with Lemma 5.5 (its features do not depend on V, and b is in place of B H)
is a bound.
"""

from math import log, sqrt

from ravi.theory import generic, inputs, mixture
from ravi.theory.parts import Bound


def radius(
    horizon: float, states: int, dimension: int, steps: int, *, feature_bound: float, weight_bound: float,
    regularization: float = 1.0, delta: float | None = None,
) -> float:  # fmt: skip
    """beta_X before the run: (H/2) sqrt(d log(1 + T b^2 / (lambda d)) + 2 log(1/delta) + 2 X log 2) + sqrt(lambda) W.

    `feature_bound` is b >= ||phi||, `weight_bound` W >= ||m V|| for V in [0, H]^X.
    """
    H, X, d = inputs.horizon(horizon), inputs.whole(states, "states"), inputs.whole(dimension, "dimension")
    T, b = inputs.whole(steps, "steps"), inputs.positive(feature_bound, "feature_bound")
    lam, delta = inputs.positive(regularization, "regularization"), inputs.delta(delta, T)
    grown = d * log(1 + T * b**2 / (lam * d))
    spread = sqrt(grown + 2 * log(1 / delta) + 2 * X * log(2))
    return H / 2 * spread + sqrt(lam) * inputs.nonnegative(weight_bound, "weight_bound")


def bonus_sum(
    horizon: float, dimension: int, steps: int, beta: float, *, feature_bound: float, regularization: float = 1.0
) -> float:
    """E[sum_{t <= T+} beta ||phi(X_t, A_t)||_{Lambda^-1}], by Lemma 5.5 with b in place of B H."""
    H, b = inputs.horizon(horizon), inputs.positive(feature_bound, "feature_bound")
    norms = mixture.norm_sum(H, dimension, steps, bound=b / H, regularization=regularization)
    return inputs.nonnegative(beta, "beta") * norms


def corrected(
    horizon: float, dimension: int, actions: int, steps: int, beta: float, *, feature_bound: float,
    regularization: float = 1.0, delta: float | None = None,
) -> Bound:  # fmt: skip
    """R_T <= 2 E[sum CB] + the rest of `generic.corrected`, for a beta of at least `radius`."""
    S = bonus_sum(horizon, dimension, steps, beta, feature_bound=feature_bound, regularization=regularization)
    return generic.corrected(horizon, actions, steps, S, delta=delta)
