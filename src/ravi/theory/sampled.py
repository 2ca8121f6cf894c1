"""How large can the regret be if features are integrated by sampling? Theorem 5.6, and what the error adds.

Algorithm 3 runs on features phi~ with ||phi - phi~|| <= eps at every V_k and every pair, ||phi~|| <= B H, ||theta|| <=
B_theta, and with the bonus (`ravi.estimators.sampled` proves it valid with probability 1 - delta)

    CB_k = (beta + B_theta sqrt(sum_{t < T_k} eps_t^2)) ||phi~_k||_{Lambda^{-1}} + B_theta eps_k,

beta of Lemma 5.4 for B. Only plays up to T are learned from, so the root is at most eps sqrt(T), and what Lemma 5.5
sums, the norms of features that are known when an epoch starts, may be those of phi~ as well. So with N its bound on
E[sum_{t <= T+} ||phi~_t||_{Lambda^{-1}}], and E T+ = T + gamma H,

    E[sum_{t <= T+} CB_t] <= (beta + B_theta eps sqrt(T)) N + B_theta eps (T + gamma H),

and Theorem 4.1 adds the rest. N is of order sqrt(d H T): the error costs B_theta eps sqrt(d H) T, up to logarithms.
"""

from math import sqrt

from ravi.theory import constants, generic, inputs, mixture
from ravi.theory.parts import Bound


def bonus_sum(
    horizon: float, dimension: int, steps: int, *, bound: float, parameter_bound: float, error: float,
    regularization: float = 1.0, delta: float | None = None,
) -> float:  # fmt: skip
    """E[sum_{t <= T+} CB_t(X_t, A_t)] <= (beta + B_theta eps sqrt(T)) N + B_theta eps (T + gamma H).

    `bound` is B, for ||theta|| and ||phi~|| / H; `parameter_bound` is B_theta; `error` is eps.
    """
    H, T = inputs.horizon(horizon), inputs.whole(steps, "steps")
    B, given = inputs.positive(bound, "bound"), {"regularization": regularization}
    B_theta, eps = inputs.positive(parameter_bound, "parameter_bound"), inputs.nonnegative(error, "error")
    beta = constants.beta_mixture(
        H, dimension, T, inputs.delta(delta, T), parameter_bound=B, feature_bound=B, **given
    )  # fmt: skip
    norms = mixture.norm_sum(H, dimension, T, bound=B, **given)
    return (beta + B_theta * eps * sqrt(T)) * norms + B_theta * eps * (T + constants.expected_padding(H))


def corrected(
    horizon: float, dimension: int, actions: int, steps: int, *, bound: float, parameter_bound: float, error: float,
    regularization: float = 1.0, delta: float | None = None,
) -> Bound:  # fmt: skip
    """R_T <= 2 E[sum CB] + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T; at eps = 0 it is
    `mixture.corrected`."""
    S = bonus_sum(
        horizon, dimension, steps, bound=bound, parameter_bound=parameter_bound, error=error,
        regularization=regularization, delta=delta,
    )  # fmt: skip
    return generic.corrected(horizon, actions, steps, S, delta=delta)
