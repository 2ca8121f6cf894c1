"""How large can the regret of tabular RAVI-UCB be? Lemmas 5.1 and 5.2 in Theorem 4.1.

The paper gives Lemma 5.2 as an order and refers to works whose epochs end when a count doubles. Here epochs have
geometric lengths and counts stand still in them, so a pair may be visited often at an old count. The proof:

Let a pair have count N (1 included) when an epoch starts, and let its visits in that epoch be j = 0, 1, ... If j < N,
then 1/sqrt(N) <= sqrt(2)/sqrt(N + j); all such visits of a run with n visits add up to at most 2 sqrt(2) sqrt(n), and
over pairs to 2 sqrt(2) sqrt(X A T+). A visit with j >= N is late. From the first late visit on, an epoch lasts another
H steps on average, since its length is memoryless. An epoch with a late visit takes N to 2 N + 1 at least, so the i-th
such epoch of a pair (i = 0, 1, ...) starts with N >= 2^{i+1} - 1 >= 2^i, and late visits add up to no more than
H sum_i 2^{-i/2} = (2 + sqrt(2)) H per pair.
"""

from math import sqrt

from ravi.theory import constants, generic, inputs
from ravi.theory.parts import Bound


def bonus_sum(horizon: float, states: int, actions: int, steps: int, beta: float) -> float:
    """Lemma 5.2: E[sum_{t <= T+} CB_t(X_t, A_t)] <= beta (2 sqrt(2) sqrt(X A (T + gamma H)) + (2 + sqrt(2)) H X A)."""
    H, X, A, T = inputs.table(horizon, states, actions, steps)
    beta = inputs.nonnegative(beta, "beta")
    plays = T + constants.expected_padding(H)
    return beta * (2 * sqrt(2) * sqrt(X * A * plays) + (2 + sqrt(2)) * H * X * A)


def clipped_bonus_sum(horizon: float, states: int, actions: int, steps: int, beta: float) -> float:
    """E[sum_{t <= T+} min(2 CB_t(X_t, A_t), H)] <= 2 beta 2 sqrt(2) sqrt(X A (T + gamma H))
                                                  + X A H sum_{i >= 0} min(H, 2 beta / sqrt(2^{i+1} - 1)).

    The i-th epoch with late visits has 2^{i+1} - 1 <= T; the sum goes on to the largest T there is, which adds next to
    nothing and keeps the ratio to T free of jumps.
    """
    H, X, A, T = inputs.table(horizon, states, actions, steps)
    beta = inputs.nonnegative(beta, "beta")
    plays = T + constants.expected_padding(H)
    late = sum(min(H, 2 * beta / sqrt(2 ** (i + 1) - 1)) for i in range(inputs.MOST.bit_length()))
    return 4 * sqrt(2) * beta * sqrt(X * A * plays) + X * A * H * late


def printed(horizon: float, states: int, actions: int, steps: int, *, delta: float | None = None) -> Bound:
    """Theorem 4.1 as printed, with beta of Lemma 5.1 and the bonus sum of Lemma 5.2.

        R_T <= 2 beta (2 sqrt(2) sqrt(X A (T + gamma H)) + (2 + sqrt(2)) H X A) + sqrt(2 H^4 log A T) + 2 H^2

    The paper prints the order X H sqrt(A T), which leaves out the second part, H^2 sqrt(T log A): it is the larger one
    as soon as H exceeds about X sqrt(A / log A).
    """
    H, X, A, T = inputs.table(horizon, states, actions, steps)
    beta = constants.beta_tabular(H, X, A, T, inputs.delta(delta, T))
    return generic.printed(H, A, T, bonus_sum(H, X, A, T, beta))


def corrected(
    horizon: float, states: int, actions: int, steps: int, *, delta: float | None = None, inner_steps: int = 1
) -> Bound:
    """`printed` by `generic.corrected`: gamma H^3 sqrt(log A / (2 T)) + delta T more, for M = 1."""
    H, X, A, T = inputs.table(horizon, states, actions, steps)
    delta = inputs.delta(delta, T)
    S = bonus_sum(H, X, A, T, constants.beta_tabular(H, X, A, T, delta))
    return generic.corrected(H, A, T, S, delta=delta, inner_steps=inner_steps)


def sharp(
    horizon: float, states: int, actions: int, steps: int, *, delta: float | None = None, inner_steps: int = 1
) -> Bound:
    """`generic.sharp` for the bonus gamma beta' / sqrt(N), beta' of `constants.beta_tabular_l1`, and eta_sharp.

        R_T <= 4 sqrt(2) gamma beta' sqrt(X A (T + gamma H)) + X A H sum_i min(H, 2 gamma beta' / sqrt(2^{i+1} - 1))
               + 2 H sqrt(kappa log A E K / M) + H^2 / M + delta T

    Validity asks for gamma |(P - P_hat) V| <= CB, so the factor gamma is free.
    """
    H, X, A, T = inputs.table(horizon, states, actions, steps)
    delta, gamma = inputs.delta(delta, T), 1 - 1 / H
    S = clipped_bonus_sum(H, X, A, T, gamma * constants.beta_tabular_l1(H, X, A, T, delta))
    return generic.sharp(H, A, T, S, delta=delta, inner_steps=inner_steps)
