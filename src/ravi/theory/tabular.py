"""Bounds on the regret of tabular RAVI-UCB, Lemmas 5.1 and 5.2 in Theorem 4.1; also where rewards are learned.

The paper gives Lemma 5.2 as an order and refers to works whose epochs end when a count doubles. Here epochs have
geometric lengths and counts stand still in them, so a pair may be visited often at an old count. The proof:

Let a pair have count N (1 included) when an epoch starts, and let its visits in that epoch be j = 0, 1, ... If j < N,
then 1/sqrt(N) <= sqrt(2)/sqrt(N + j); all such visits of a run with n visits add up to at most 2 sqrt(2) sqrt(n), and
over pairs to 2 sqrt(2) sqrt(X A T+). A visit with j >= N is late. From the first late visit on, an epoch lasts another
H steps on average, since its length is memoryless. An epoch with a late visit takes N to 2 N + 1 at least, so the i-th
such epoch of a pair (i = 0, 1, ...) starts with N >= 2^{i+1} - 1 >= 2^i, and late visits add up to no more than
H sum_i 2^{-i/2} = (2 + sqrt(2)) H per pair.

Unknown rewards (`unknown_rewards`) cost the sum of their bonuses, twice, and delta T. The bonus of a pair with n visits
is b(n) = min{s / sqrt(n), 1}, and b(0) = 1; s = sqrt(ln(2 X A T / delta) / 2) times its scale. As above, let a pair
have n visits when an epoch starts, and let its visits in that epoch be j = 0, 1, ... If j < n, then s / sqrt(n) <=
sqrt(2) s / sqrt(n + j), where n + j >= 1 counts the plays of the pair before: all such visits add up to at most 2
sqrt(2) s sqrt(n_end), and over pairs to 2 sqrt(2) s sqrt(X A T+). A visit with j >= n is late; where n = 0 all are.
From the first late visit on, an epoch lasts another H steps on average. An epoch with a late visit takes n to 2 n + 1
at least, so the i-th such epoch of a pair (i = 0, 1, ...) starts with n >= 2^i - 1, and late visits add up to no more
than H sum_i b(2^i - 1) per pair.

On both events, of probability 1 - 2 delta, the bonus CB + h with h <= b is valid
(`ravi.learners.ravi_ucb.unknown_rewards`). Theorem 4.1 then has min(2 (CB + h), H) <= min(2 CB, H) + 2 b in place of
min(2 CB, H), and 2 delta T for failures.
"""

from collections.abc import Callable
from math import sqrt

from ravi.theory import constants, generic, inputs
from ravi.theory.generic import Bound, Statement


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


def _reward_bonus_sum(horizon: float, states: int, actions: int, steps: int, width: float) -> float:
    """E[sum_{t <= T+} b_t(X_t, A_t)] <= 2 sqrt(2) s sqrt(X A (T + gamma H))
                                       + X A H (1 + sum_{i >= 1} min{1, s / sqrt(2^i - 1)}),   s = `width`.

    As in `clipped_bonus_sum`, the sum over i goes on to the largest T there is.
    """
    H, X, A, T = inputs.table(horizon, states, actions, steps)
    s = inputs.nonnegative(width, "width")
    plays = T + constants.expected_padding(H)
    late = 1 + sum(min(1.0, s / sqrt(2**i - 1)) for i in range(1, inputs.MOST.bit_length() + 1))
    return 2 * sqrt(2) * s * sqrt(X * A * plays) + X * A * H * late


def learned_rewards(known: Bound, reward_bonus: float, failure: float) -> Bound:
    """A bound for known rewards, with 2 E[sum b] and delta T more; `reward_bonus` is the E[sum], `failure` delta T."""
    S = inputs.nonnegative(reward_bonus, "reward_bonus")
    return generic.bound(
        bonus=known.bonus + 2 * S, optimisation=known.optimisation, boundary=known.boundary,
        failure=known.failure + inputs.nonnegative(failure, "failure"),
    )  # fmt: skip


def _with_learned_rewards(form: Callable[..., Bound]) -> Callable[..., Bound]:
    def learned(
        horizon: float, states: int, actions: int, steps: int, *, delta: float | None = None, inner_steps: int = 1
    ) -> Bound:
        known = form(horizon, states, actions, steps, delta=delta, inner_steps=inner_steps)
        s = constants.reward_spread(states, actions, steps, inputs.delta(delta, steps))
        return learned_rewards(known, _reward_bonus_sum(horizon, states, actions, steps, s), known.failure)

    return learned


unknown_rewards = Statement(
    corrected=_with_learned_rewards(corrected), sharp=_with_learned_rewards(sharp), bonus_sum=_reward_bonus_sum
)
