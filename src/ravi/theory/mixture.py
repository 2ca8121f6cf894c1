"""How large can the regret of RAVI-UCB be in linear mixture MDPs? Lemmas 5.4 and 5.5, Theorem 5.6.

`bound` is B of Assumption 5.3, for ||theta|| and for ||phi_V|| / H; it is at least 1, since <theta, phi_V> = H where V
is H in every state. Write L = log(1 + c T), L+ = log(1 + c (T + gamma H)), c = B^2 H^2 / (lambda d), and S+ for
`elliptical.padded_log`.

Three steps of the proof of Lemma 5.5 do not hold as printed.

1. Wald's identity does not give H E|bad epochs| for the steps in bad epochs: a long epoch is more often bad. Split a
   bad epoch at its first bad step. What is before has norm below 1 and joins the good sum; from there on the epoch
   lasts another H steps on average, since its length is memoryless. The constants stay.
2. The sums run to T+: it is T+ under the root and in the logarithms.
3. T+ and max_k C_k are both random: E sqrt(U W) <= sqrt(E U E W) with U = T+ log(1 + c T+), W = max_k C_k.

The paper's last line, C_1 + C_2 = O(B H^{3/2} d log^{3/2} T), holds for C_2 only: C_1 is of order B d^{3/2} H^3
log^{3/2} T. It does not grow with sqrt(T), and the order of Theorem 5.6 stands.
"""

from math import sqrt

from ravi.theory import constants, generic, inputs
from ravi.theory.elliptical import bad_epochs, largest_factor, largest_factor_sharp, log_determinant, padded_log
from ravi.theory.parts import Bound


def C_1(
    horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0, delta: float | None = None
) -> float:
    """Lemma 5.5: C_1(T) = beta d B H^2 / (sqrt(lambda) log 2) L, for the steps in bad epochs."""
    H, d, T, B, lam, delta = _numbers(horizon, dimension, steps, bound, regularization, delta)
    beta = _beta(H, d, T, B, lam, delta)
    return beta * B * H**2 / sqrt(lam) * bad_epochs(H, d, T, bound=B, regularization=lam)


def C_2(
    horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0, delta: float | None = None
) -> float:
    """Lemma 5.5: C_2(T) = beta sqrt(H (4 + 2 log T)) sqrt(d L), for all other steps."""
    H, d, T, B, lam, delta = _numbers(horizon, dimension, steps, bound, regularization, delta)
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
    H, d, T, B, lam, _ = _numbers(horizon, dimension, steps, bound, regularization, None)
    plays = T + constants.expected_padding(H)
    rare = B * H**2 / sqrt(lam) * bad_epochs(H, d, plays, bound=B, regularization=lam)
    usual = sqrt(d * padded_log(H, d, T, bound=B, regularization=lam) * largest_factor(H, T))
    return rare + usual


def bonus_sum_corrected(
    horizon: float, dimension: int, steps: int, *, bound: float, regularization: float = 1.0, delta: float | None = None
) -> float:
    """E[sum_{t <= T+} CB_t(X_t, A_t)] <= beta (d B H^2 / (sqrt(lambda) log 2) L+ + sqrt(d S+ H (4 + 2 log T)))."""
    H, d, T, B, lam, delta = _numbers(horizon, dimension, steps, bound, regularization, delta)
    return _beta(H, d, T, B, lam, delta) * norm_sum(H, d, T, bound=B, regularization=lam)


def clipped_bonus_sum(
    horizon: float, dimension: int, steps: int, beta: float, *, bound: float, regularization: float = 1.0
) -> float:
    """E[sum_{t <= T+} min(2 CB_t(X_t, A_t), H)] <= (d / log 2) H^2 L+ + 2 beta sqrt(d S+ f((2 + log T) H)).

    A step in a bad epoch costs H at most, whatever the norm of its features.
    """
    H, d, T, B, lam, _ = _numbers(horizon, dimension, steps, bound, regularization, None)
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
    H, d, T, B, lam, delta = _numbers(horizon, dimension, steps, bound, regularization, delta)
    beta = constants.beta_mixture_half(H, d, T, delta, parameter_bound=B, feature_bound=B, regularization=lam)
    S = clipped_bonus_sum(H, d, T, (1 - 1 / H) * beta, bound=B, regularization=lam)
    return generic.sharp(H, actions, T, S, delta=delta, inner_steps=inner_steps)


def _beta(H: float, d: int, T: int, B: float, lam: float, delta: float) -> float:
    """Lemma 5.4, with one B for ||theta|| and ||phi|| / H."""
    return constants.beta_mixture(H, d, T, delta, parameter_bound=B, feature_bound=B, regularization=lam)


def _numbers(
    horizon: float, dimension: int, steps: int, bound: float, regularization: float, delta: float | None
) -> tuple[float, int, int, float, float, float]:
    """H, d, T, B, lambda and delta, checked."""
    T = inputs.whole(steps, "steps")
    B, lam = inputs.positive(bound, "bound"), inputs.positive(regularization, "regularization")
    return inputs.horizon(horizon), inputs.whole(dimension, "dimension"), T, B, lam, inputs.delta(delta, T)
