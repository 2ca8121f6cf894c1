"""How much does it cost not to know the rewards? The sum of their bonuses, twice, and delta T.

The bonus of a pair with n visits is b(n) = min{s / sqrt(n), 1}, and b(0) = 1; s = sqrt(ln(2 X A T / delta) / 2) times
its scale. As in Lemma 5.2 (`ravi.theory.tabular`), let a pair have n visits when an epoch starts, and let its visits in
that epoch be j = 0, 1, ... If j < n, then s / sqrt(n) <= sqrt(2) s / sqrt(n + j), where n + j >= 1 counts the plays of
the pair before: all such visits add up to at most 2 sqrt(2) s sqrt(n_end), and over pairs to 2 sqrt(2) s sqrt(X A T+).
A visit with j >= n is late; where n = 0 all are. From the first late visit on, an epoch lasts another H steps on
average. An epoch with a late visit takes n to 2 n + 1 at least, so the i-th such epoch of a pair (i = 0, 1, ...) starts
with n >= 2^i - 1, and late visits add up to no more than H sum_i b(2^i - 1) per pair.

On both events, of probability 1 - 2 delta, the bonus CB + h with h <= b is valid
(`ravi.learners.ravi_ucb.unknown_rewards`). Theorem 4.1 then has min(2 (CB + h), H) <= min(2 CB, H) + 2 b in place of
min(2 CB, H), and 2 delta T for failures.
"""

from math import log, sqrt

from ravi.theory import constants, inputs, tabular
from ravi.theory.parts import Bound, bound


def spread(states: int, actions: int, steps: int, delta: float) -> float:
    """s = b sqrt(n) = sqrt(ln(2 X A T / delta) / 2): Hoeffding, for X A pairs, T numbers of visits and both signs."""
    X, A, T = inputs.whole(states, "states"), inputs.whole(actions, "actions"), inputs.whole(steps, "steps")
    return sqrt(log(2 * X * A * T / inputs.delta(delta, T)) / 2)


def bonus_sum(horizon: float, states: int, actions: int, steps: int, width: float) -> float:
    """E[sum_{t <= T+} b_t(X_t, A_t)] <= 2 sqrt(2) s sqrt(X A (T + gamma H))
                                       + X A H (1 + sum_{i >= 1} min{1, s / sqrt(2^i - 1)}),   s = `width`.

    As in `tabular.clipped_bonus_sum`, the sum over i goes on to the largest T there is.
    """
    H, T = inputs.horizon(horizon), inputs.whole(steps, "steps")
    X, A = inputs.whole(states, "states"), inputs.whole(actions, "actions")
    s = inputs.nonnegative(width, "width")
    plays = T + constants.expected_padding(H)
    late = 1 + sum(min(1.0, s / sqrt(2**i - 1)) for i in range(1, inputs.MOST.bit_length() + 1))
    return 2 * sqrt(2) * s * sqrt(X * A * plays) + X * A * H * late


def added(known: Bound, reward_bonus: float, failure: float) -> Bound:
    """A bound for known rewards, with 2 E[sum b] and delta T more; `reward_bonus` is the E[sum], `failure` delta T."""
    S = inputs.nonnegative(reward_bonus, "reward_bonus")
    return bound(
        bonus=known.bonus + 2 * S,
        optimisation=known.optimisation,
        boundary=known.boundary,
        failure=known.failure + inputs.nonnegative(failure, "failure"),
    )


def corrected(
    horizon: float, states: int, actions: int, steps: int, *, delta: float | None = None, inner_steps: int = 1
) -> Bound:
    """`tabular.corrected`, with the paper's constants, where rewards are learned."""
    known = tabular.corrected(horizon, states, actions, steps, delta=delta, inner_steps=inner_steps)
    return _added(known, horizon, states, actions, steps, delta)


def sharp(
    horizon: float, states: int, actions: int, steps: int, *, delta: float | None = None, inner_steps: int = 1
) -> Bound:
    """`tabular.sharp`, with the constants that it asks for, where rewards are learned."""
    known = tabular.sharp(horizon, states, actions, steps, delta=delta, inner_steps=inner_steps)
    return _added(known, horizon, states, actions, steps, delta)


def _added(known: Bound, horizon: float, states: int, actions: int, steps: int, delta: float | None) -> Bound:
    s = spread(states, actions, steps, inputs.delta(delta, steps))
    return added(known, bonus_sum(horizon, states, actions, steps, s), known.failure)
