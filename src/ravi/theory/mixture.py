"""Bounds on the regret of RAVI-UCB in linear mixture MDPs: Lemmas A.2 to A.4, 5.4 and 5.5, Theorem 5.6, and relatives.

`bound` is B of Assumption 5.3, for ||theta|| and for ||phi_V|| / H; it is at least 1, since <theta, phi_V> = H where V
is H in every state. Write L = log(1 + c T), L+ = log(1 + c (T + gamma H)), c = B^2 H^2 / (lambda d), and S+ for
`padded_log`.

Three steps of the proof of Lemma 5.5 do not hold as printed.

1. Wald's identity does not give H E|bad epochs| for the steps in bad epochs: a long epoch is more often bad. Split a
   bad epoch at its first bad step. What is before has norm below 1 and joins the good sum; from there on the epoch
   lasts another H steps on average, since its length is memoryless. The constants stay.
2. The sums run to T+: it is T+ under the root and in the logarithms.
3. T+ and max_k C_k are both random: E sqrt(U W) <= sqrt(E U E W) with U = T+ log(1 + c T+), W = max_k C_k.

The paper's last line, C_1 + C_2 = O(B H^{3/2} d log^{3/2} T), holds for C_2 only: C_1 is of order B d^{3/2} H^3
log^{3/2} T. It does not grow with sqrt(T), and the order of Theorem 5.6 stands.

The elliptical potential under geometric epochs, Lemmas A.2 to A.4, says how often features can be new. The sums of
these lemmas run over the steps up to T+, the end of the epoch of step T; the paper prints T. `plays` is the number of
steps that are summed: T+ of a run, T + gamma H for a mean (the logarithm is concave), T for the print.

Sampled features (`sampled`). Algorithm 3 runs on features phi~ with ||phi - phi~|| <= eps at every V_k and every pair,
||phi~|| <= B H, ||theta|| <= B_theta, and with the bonus (`ravi.estimators.sampled` proves it valid with probability 1
- delta)

    CB_k = (beta + B_theta sqrt(sum_{t < T_k} eps_t^2)) ||phi~_k||_{Lambda^{-1}} + B_theta eps_k,

beta of Lemma 5.4 for B. Only plays up to T are learned from, so the root is at most eps sqrt(T), and what Lemma 5.5
sums, the norms of features that are known when an epoch starts, may be those of phi~ as well. So with N its bound on
E[sum_{t <= T+} ||phi~_t||_{Lambda^{-1}}], and E T+ = T + gamma H,

    E[sum_{t <= T+} CB_t] <= (beta + B_theta eps sqrt(T)) N + B_theta eps (T + gamma H),

and Theorem 4.1 adds the rest. N is of order sqrt(d H T): the error costs B_theta eps sqrt(d H) T, up to logarithms.

Linear MDPs with X states (`linear`). V_k is made of the samples that it is the target of, so that the self-normalised
bound (Theorem C.2) does not speak of it. It speaks of each V that is fixed in advance: with P(x' | x, a) = <phi(x, a),
m(x')> and the noise V(y_t) - P V, H/2-sub-Gaussian for V in [0, H]^X, with probability 1 - delta'

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

from math import log, log1p, sqrt

from ravi.theory import constants, generic, inputs
from ravi.theory.generic import Bound, Statement


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
    H, _, _, B, lam, _ = inputs.regression(horizon, d, 1, bound, regularization)
    return B**2 * H**2 / (lam * d)


def C_1(
    horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0, delta: float | None = None
) -> float:
    """Lemma 5.5: C_1(T) = beta d B H^2 / (sqrt(lambda) log 2) L, for the steps in bad epochs."""
    H, d, T, B, lam, delta = inputs.regression(horizon, dimension, steps, bound, regularization, delta)
    beta = _beta(H, d, T, B, lam, delta)
    return beta * B * H**2 / sqrt(lam) * bad_epochs(H, d, T, bound=B, regularization=lam)


def C_2(
    horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0, delta: float | None = None
) -> float:
    """Lemma 5.5: C_2(T) = beta sqrt(H (4 + 2 log T)) sqrt(d L), for all other steps."""
    H, d, T, B, lam, delta = inputs.regression(horizon, dimension, steps, bound, regularization, delta)
    beta = _beta(H, d, T, B, lam, delta)
    return beta * sqrt(largest_factor(H, T)) * sqrt(log_determinant(H, d, T, bound=B, regularization=lam))


def bonus_sum_printed(
    horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0, delta: float | None = None
) -> float:
    """Lemma 5.5: E[sum_{t <= T+} CB_t(X_t, A_t)] <= C_1(T) + sqrt(T) C_2(T)."""
    rare = C_1(horizon, dimension, steps, bound=bound, regularization=regularization, delta=delta)
    usual = C_2(horizon, dimension, steps, bound=bound, regularization=regularization, delta=delta)
    return rare + sqrt(steps) * usual


def norm_sum(horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0) -> float:
    """E[sum_{t <= T+} ||phi_t||_{Lambda^-1}] <= d B H^2 / (sqrt(lambda) log 2) L+ + sqrt(d S+ H (4 + 2 log T))."""
    H, d, T, B, lam, _ = inputs.regression(horizon, dimension, steps, bound, regularization)
    plays = T + constants.expected_padding(H)
    rare = B * H**2 / sqrt(lam) * bad_epochs(H, d, plays, bound=B, regularization=lam)
    usual = sqrt(d * padded_log(H, d, T, bound=B, regularization=lam) * largest_factor(H, T))
    return rare + usual


def bonus_sum_corrected(
    horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0, delta: float | None = None
) -> float:
    """E[sum_{t <= T+} CB_t(X_t, A_t)] <= beta (d B H^2 / (sqrt(lambda) log 2) L+ + sqrt(d S+ H (4 + 2 log T)))."""
    H, d, T, B, lam, delta = inputs.regression(horizon, dimension, steps, bound, regularization, delta)
    return _beta(H, d, T, B, lam, delta) * norm_sum(H, d, T, bound=B, regularization=lam)


def clipped_bonus_sum(
    horizon: float, dimension: int, steps: int, beta: float, *, bound: float, regularization: float = 1.0
) -> float:
    """E[sum_{t <= T+} min(2 CB_t(X_t, A_t), H)] <= (d / log 2) H^2 L+ + 2 beta sqrt(d S+ f((2 + log T) H)).

    A step in a bad epoch costs H at most, whatever the norm of its features.
    """
    H, d, T, B, lam, _ = inputs.regression(horizon, dimension, steps, bound, regularization)
    beta, plays = inputs.nonnegative(beta, "beta"), T + constants.expected_padding(H)
    rare = H**2 * bad_epochs(H, d, plays, bound=B, regularization=lam)
    usual = sqrt(d * padded_log(H, d, T, bound=B, regularization=lam) * largest_factor_sharp(H, T))
    return rare + 2 * beta * usual


def printed(
    horizon: float, dimension: int, actions: int, steps: int, *, bound: float, regularization: float = 1.0,
    delta: float | None = None,
) -> Bound:  # fmt: skip
    """Theorem 5.6, explicitly: R_T <= 2 (C_1(T) + sqrt(T) C_2(T)) + sqrt(2 H^4 log A T) + 2 H^2.

    The paper has lambda = 1 and delta = 1/T, and states the order sqrt((d^2 H^3 + B^2 d H + H^4 log A) T).
    """
    S = bonus_sum_printed(horizon, dimension, steps, bound=bound, regularization=regularization, delta=delta)
    return generic.printed(horizon, actions, steps, S)


def corrected(
    horizon: float, dimension: int, actions: int, steps: int, *, bound: float, regularization: float = 1.0,
    delta: float | None = None, inner_steps: int = 1,
) -> Bound:  # fmt: skip
    """Theorem 5.6 with the paper's constants and a proof without gaps, by `generic.corrected`.

    For M = 1:

    R_T <= 2 beta (d B H^2 / (sqrt(lambda) log 2) L+ + sqrt(d S+ H (4 + 2 log T)))
           + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T
    """
    S = bonus_sum_corrected(horizon, dimension, steps, bound=bound, regularization=regularization, delta=delta)
    return generic.corrected(horizon, actions, steps, S, delta=delta, inner_steps=inner_steps)


def sharp(
    horizon: float, dimension: int, actions: int, steps: int, *, bound: float, regularization: float = 1.0,
    delta: float | None = None, inner_steps: int = 1,
) -> Bound:  # fmt: skip
    """`generic.sharp` for the bonus gamma beta ||phi||, beta of `constants.beta_mixture_half`, and eta_sharp.

    R_T <= (d / log 2) H^2 L+ + 2 gamma beta sqrt(d S+ f((2 + log T) H))
           + 2 H sqrt(kappa log A E K / M) + H^2 / M + delta T
    """
    H, d, T, B, lam, delta = inputs.regression(horizon, dimension, steps, bound, regularization, delta)
    beta = constants.beta_mixture_half(H, d, T, delta, parameter_bound=B, feature_bound=B, regularization=lam)
    S = clipped_bonus_sum(H, d, T, (1 - 1 / H) * beta, bound=B, regularization=lam)
    return generic.sharp(H, actions, T, S, delta=delta, inner_steps=inner_steps)


def _beta(H: float, d: int, T: int, B: float, lam: float, delta: float) -> float:
    """Lemma 5.4, with one B for ||theta|| and ||phi|| / H."""
    return constants.beta_mixture(H, d, T, delta, parameter_bound=B, feature_bound=B, regularization=lam)


def _sampled_bonus_sum(
    horizon: float, dimension: int, steps: int, *, bound: float, parameter_bound: float, error: float,
    regularization: float = 1.0, delta: float | None = None,
) -> float:  # fmt: skip
    """E[sum_{t <= T+} CB_t(X_t, A_t)] <= (beta + B_theta eps sqrt(T)) N + B_theta eps (T + gamma H).

    `bound` is B, for ||theta|| and ||phi~|| / H; `parameter_bound` is B_theta; `error` is eps.
    """
    H, d, T, B, lam, delta = inputs.regression(horizon, dimension, steps, bound, regularization, delta)
    B_theta, eps = inputs.positive(parameter_bound, "parameter_bound"), inputs.nonnegative(error, "error")
    width = _beta(H, d, T, B, lam, delta) + B_theta * eps * sqrt(T)
    plays = T + constants.expected_padding(H)
    return width * norm_sum(H, d, T, bound=B, regularization=lam) + B_theta * eps * plays


def _corrected_sampled(
    horizon: float, dimension: int, actions: int, steps: int, *, bound: float, parameter_bound: float, error: float,
    regularization: float = 1.0, delta: float | None = None,
) -> Bound:  # fmt: skip
    """R_T <= 2 E[sum CB] + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T; at eps = 0 it is
    `corrected`."""
    S = _sampled_bonus_sum(
        horizon, dimension, steps, bound=bound, parameter_bound=parameter_bound, error=error,
        regularization=regularization, delta=delta,
    )  # fmt: skip
    return generic.corrected(horizon, actions, steps, S, delta=delta)


sampled = Statement(corrected=_corrected_sampled, bonus_sum=_sampled_bonus_sum)


def _linear_bonus_sum(
    horizon: float, dimension: int, steps: int, beta: float, *, feature_bound: float, regularization: float = 1.0
) -> float:
    """E[sum_{t <= T+} beta ||phi(X_t, A_t)||_{Lambda^-1}], by Lemma 5.5 with b in place of B H."""
    H, b = inputs.horizon(horizon), inputs.positive(feature_bound, "feature_bound")
    norms = norm_sum(H, dimension, steps, bound=b / H, regularization=regularization)
    return inputs.nonnegative(beta, "beta") * norms


def _corrected_linear(
    horizon: float, dimension: int, actions: int, steps: int, beta: float, *, feature_bound: float,
    regularization: float = 1.0, delta: float | None = None,
) -> Bound:  # fmt: skip
    """R_T <= 2 E[sum CB] + the rest of `generic.corrected`, for a beta of at least `constants.beta_linear`."""
    S = _linear_bonus_sum(horizon, dimension, steps, beta, feature_bound=feature_bound, regularization=regularization)
    return generic.corrected(horizon, actions, steps, S, delta=delta)


linear = Statement(corrected=_corrected_linear, bonus_sum=_linear_bonus_sum)
