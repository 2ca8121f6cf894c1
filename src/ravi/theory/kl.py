"""The theorems of docs/explanation/kl.md: bounds on the regret of RAVI-KL, and a lower bound for every learner.

Notation: B successors stored per pair, C_B(n) the worst redundancy of the KT mixture over B symbols,
rho the largest radius of a run, rho_G = ln(X A T) + C_B(T) that of the event on which P is near p_hat.
"""

from math import inf, lgamma, log, log2, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi.theory import generic, inputs, tabular
from ravi.theory.generic import Bound

TOLERANCE = 0.1  # plans end at a span of this / sqrt(t)


def worst_redundancy(plays: float, symbols: int) -> float:
    """C_B(n) = ln(Gamma(1/2) Gamma(n + B/2) / (Gamma(B/2) Gamma(n + 1/2))): of KT over B symbols, at most."""
    return lgamma(0.5) + lgamma(plays + symbols / 2) - lgamma(symbols / 2) - lgamma(plays + 0.5)


def kappa(plays: float) -> float:
    """C_2(n) = ln(sqrt(pi) Gamma(n + 1) / Gamma(n + 1/2))."""
    return worst_redundancy(plays, 2)


def stage(time: Any) -> Any:
    """The least k with t <= 2^k; of a number or an array."""
    return np.ceil(np.log2(time)).astype(np.int64)


def levels(horizon: float, states: int, actions: int, stage: Any) -> Any:
    """delta_t = min{1, sqrt(H X A / 2^k)}: t is rounded up to a power of two."""
    return np.minimum(1.0, np.sqrt(horizon * states * actions / 2.0**stage))


# ---- Algorithm 1 with sets: plan=mirror


def beta_mirror(horizon: float, states: int, actions: int, symbols: int, steps: int, delta: float) -> float:
    """beta with CB <= gamma beta / sqrt(n + 1): H sqrt(rho), rho = ln(X A / delta) + C_B(T).

    Pinsker: U - p_hat V and p_hat V - L are at most H sqrt(rho / 2n), so (U - L) / 2 is, and 1 / 2n <= 1 / (n + 1) for
    n >= 1. Where n = 0, (U - L) / 2 <= H / 2.
    """
    H, X, A, T = inputs.horizon(horizon), inputs.whole(states, "states"), inputs.whole(actions, "actions"), steps
    rho = log(X * A / inputs.delta(delta, T)) + worst_redundancy(T, inputs.whole(symbols, "symbols"))
    return H * sqrt(max(rho, 0.25))


def mirror(
    horizon: float, states: int, actions: int, symbols: int, steps: int, *, delta: float | None = None,
    eta: float | None = None, inner_steps: int = 1,
) -> Bound:  # fmt: skip
    """Theorem 4.1 for plan=mirror: `generic.sharp` with the sum of the bonuses gamma beta / sqrt(N), and H / M more for
    a Q that is fresh."""
    H, delta, gamma = inputs.horizon(horizon), inputs.delta(delta, steps), 1 - 1 / inputs.horizon(horizon)
    S = tabular.clipped_bonus_sum(
        H, states, actions, steps, gamma * beta_mirror(H, states, actions, symbols, steps, delta)
    )
    known = generic.sharp(H, actions, steps, S, delta=delta, eta=eta, inner_steps=inner_steps)
    return known.plus(H / inner_steps)


# ---- plan=greedy, plan=slack


class Optimism(NamedTuple):
    """Theorems 1, 2, 6 and 7 of docs/explanation/kl.md, by what each part pays for."""

    total: float
    deviations: float  # of the kernels planned with from P
    first: float  # visits of pairs that had none before
    invalid: float  # plans that are not optimistic
    slack: float  # policies that are less optimistic than the most optimistic one
    tolerance: float  # plans that end before they have converged
    phases: float  # ends of phases that are no resets
    failure: float  # of the event on which P is near p_hat
    rewards: float  # of rewards that are not known

    def __float__(self) -> float:
        return self.total


def doublings(states: int, actions: int, steps: int) -> float:
    """D, the most phases that end as the visits of a pair in them reach those before: X A (1 + log2(T / X A)) for
    T >= X A, and never more than T."""
    pairs = states * actions
    return min(float(steps), pairs * (1 + max(0.0, log2(steps / pairs))))


def radii(
    horizon: float, states: int, actions: int, branching: int, steps: int, *, unknown_rewards: bool = False
) -> tuple[float, float]:
    """rho, the largest radius of the sets, and rho_G, that of the event; for pairs with B successors."""
    H, X, A, T, m = inputs.horizon(horizon), states, actions, steps, 2 if unknown_rewards else 1
    rho = log(m * X / float(levels(H, X, A, stage(T)))) + kappa(T)
    return rho, log(m * X * A * T) + worst_redundancy(T, branching)


def optimism(
    horizon: float, states: int, actions: int, branching: int, steps: int, *, slack: float = 0.0,
    tolerance: float = 0.1, unknown_rewards: bool = False,
) -> Optimism:  # fmt: skip
    """Theorem 1, expected regret O~(H sqrt(B X A T)) for T >= X A. It holds for every T; for T < X A it exceeds T.

    (1 + sqrt 2) H sqrt(X A T / 2) (sqrt(rho) + sqrt(rho_G))                 deviations
    + H X A                                                                  first visits
    + 2 sqrt 2 sqrt(H X A T) + 2 sqrt 2 tolerance sqrt(T)                    invalid plans, tolerance
    + 2 H (2 doublings + 1) + H + 1                                          phases, the event

    and with slack < 1, by the Corollary, 2 slack / (1 - slack) times what is not of invalid plans, less 1. There is no
    bound with slack >= 1.
    """
    H, X, A, T = inputs.horizon(horizon), states, actions, inputs.whole(steps, "steps")
    rho, rho_G = radii(H, X, A, branching, T, unknown_rewards=unknown_rewards)
    return _added(H, X, A, T, _by_radii(H, X * A, T, rho, rho_G), slack, tolerance, unknown_rewards)


def variance(
    horizon: float, states: int, actions: int, branching: int, steps: int, *, slack: float = 0.0,
    tolerance: float = 0.1, unknown_rewards: bool = False,
) -> Optimism:  # fmt: skip
    """Theorem 2, expected regret O~(sqrt(H B X A T) + H B X A) for T >= X A: the same with deviations by the variance
    of the values.

        deviations <= 2 (alpha sqrt(2 H T + H^2 K) + b H rho L) + 2 H alpha^2 + H X A + H

    alpha = a sqrt(gamma rho L), a = sqrt 2 + sqrt 6, b = 2/3 + sqrt(32/3), rho the larger of the two radii,
    L = 2 X A ln(1 + T / X A), at least sum_t 1 / n over visits of pairs that had some before, and K = 2 doublings + 1
    phases whose ends are no resets.
    """
    H, X, A, T = inputs.horizon(horizon), states, actions, inputs.whole(steps, "steps")
    gamma, rho = 1 - 1 / H, max(radii(H, X, A, branching, T, unknown_rewards=unknown_rewards))
    deviations = _by_variance(H, gamma, X * A, T, rho, 2 * H, 2 * doublings(X, A, T) + 1)
    return _added(H, X, A, T, deviations, slack, tolerance, unknown_rewards)


def _by_radii(span: float, pairs: int, T: int, rho: float, rho_G: float) -> float:
    """Deviations of values of this span, by Pinsker's inequality."""
    return (1 + sqrt(2)) * span * sqrt(pairs * T / 2) * (sqrt(rho) + sqrt(rho_G))


def _by_variance(span: float, gamma: float, pairs: int, T: int, rho: float, rate: float, phases: float) -> float:
    """Deviations of values of this span, the sum of whose variances is at most `rate` T + span^2 `phases` and what the
    deviations themselves add."""
    L, a, b = 2 * pairs * log(1 + T / pairs), sqrt(2) + sqrt(6), 2 / 3 + sqrt(32 / 3)
    alpha = a * sqrt(gamma * rho * L)
    known = alpha * sqrt(rate * T + span**2 * phases) + b * span * rho * L
    return 2 * known + 2 * span * alpha**2 + span * pairs + span


def regret(
    horizon: float, states: int, actions: int, branching: int, steps: int, *, slack: float = 0.0,
    tolerance: float = 0.1, unknown_rewards: bool = False,
) -> Optimism:  # fmt: skip
    """The smaller of `optimism` and `variance`."""
    made = [
        form(
            horizon, states, actions, branching, steps, slack=slack, tolerance=tolerance,
            unknown_rewards=unknown_rewards,
        )
        for form in (optimism, variance)
    ]  # fmt: skip
    return min(made, key=float)


def _added(
    H: float, X: int, A: int, T: int, deviations: float, slack: float, tolerance: float, unknown_rewards: bool
) -> Optimism:
    of_coins = radii(H, X, A, 2, T, unknown_rewards=True)
    rewards = _by_radii(1.0, X * A, T, *of_coins) + X * A if unknown_rewards else 0.0
    parts = {
        "deviations": deviations, "first": H * X * A, "tolerance": 2 * sqrt(2) * tolerance * sqrt(T),
        "phases": 2 * H * (2 * doublings(X, A, T) + 1), "failure": 1.0 + H, "rewards": rewards,
    }  # fmt: skip
    return _with_slack(parts, slack, 1.0, 2 * sqrt(2) * sqrt(H * X * A * T))


def _with_slack(parts: dict[str, float], slack: float, once: float, invalid: float) -> Optimism:
    """What is said of slack: 2 slack / (1 - slack) times the parts, less what counts `once`."""
    times = 2 * slack / (1 - slack) if slack < 1 else inf
    parts = {**parts, "slack": times * (sum(parts.values()) - once) if slack > 0 else 0.0, "invalid": invalid}
    return Optimism(sum(parts.values()), **parts)


# ---- the average reward


def average_radii(
    states: int, actions: int, branching: int, steps: int, *, unknown_rewards: bool = False
) -> tuple[float, float]:
    """rho, the largest radius of the sets, and rho_G, that of the event; for pairs with B successors."""
    X, A, T, m = states, actions, steps, 2 if unknown_rewards else 1
    rho = log(X * (X + m) / float(levels(1.0, X, A, stage(T)))) + kappa(T)
    return rho, log(m * X * A * T) + worst_redundancy(T, branching)


def average(
    diameter: float, states: int, actions: int, branching: int, steps: int, *, slack: float = 0.0,
    tolerance: float = 0.1, unknown_rewards: bool = False,
) -> Optimism:  # fmt: skip
    """Theorems 6 and 7, the smaller of the two bounds on the expected T g* - sum of rewards.

    They are O~(D sqrt(B X A T)) and O~(sqrt(D B X A T) + D B X A) for T >= X A. The sum of Bellman gaps is at most D
    more. With S = 1.1 D,

    (1 + sqrt 2) S sqrt(X A T / 2) (sqrt(rho) + sqrt(rho_G))                 deviations
    + S X A                                                                  first visits
    + 2 sqrt 2 sqrt(X A T) + 2 sqrt 2 tolerance sqrt(T)                      invalid plans, tolerance
    + S (doublings + 1) + S                                                  phases, the event

    and with slack < 1, S = 2.5 D and 2 slack / (1 - slack) times what is not of invalid plans.
    """
    D, X, A, T = inputs.horizon(diameter), states, actions, inputs.whole(steps, "steps")
    S, K = (2.5 if slack > 0 else 1.1) * D, doublings(X, A, T) + 1
    rho, rho_G = average_radii(X, A, branching, T, unknown_rewards=unknown_rewards)
    plain, of_coins = _by_radii(S, X * A, T, rho, rho_G), average_radii(X, A, 2, T, unknown_rewards=True)
    parts = {
        "deviations": min(plain, _by_variance(S, 1.0, X * A, T, max(rho, rho_G), 2.2 * S, K)), "first": S * X * A,
        "tolerance": 2 * sqrt(2) * tolerance * sqrt(T), "phases": S * K, "failure": S,
        "rewards": _by_radii(1.0, X * A, T, *of_coins) + X * A if unknown_rewards else 0.0,
    }  # fmt: skip
    return _with_slack(parts, slack, 0.0, 2 * sqrt(2) * sqrt(X * A * T))


# ---- linear mixtures

GUARD = 0.1  # weight of the second ellipsoid
GAP = 1e-4  # F(theta_hat) is at most that far from the minimum


def mixture_level(horizon: float, dimension: int, time: float) -> float:
    """delta_t = min{1, d sqrt(H / t)}."""
    return min(1.0, dimension * sqrt(horizon / time))


def mixture_radius(dimension: int, time: float, rho: float) -> float:
    """beta^2 with ||theta - theta_hat||^2_G <= beta^2 on the set of likelihoods; `rho` is its radius and the gap of
    theta_hat, with the level in it (the second event has the same)."""
    n = max(time, 1.0)
    hellinger = rho / 2 + 2 * (dimension - 1) * log(n) + log(n * (n + 1)) + rho + 2
    return 8 + 32 * hellinger


def mixture_doublings(dimension: int, states: int, actions: int, steps: int) -> float:
    """Phases that end without a reset: by a pair's visits, or by det G, which is at most (1 + T)^d; or T."""
    return min(float(steps), doublings(states, actions, steps) + dimension * log2(1 + steps))


def mixture(
    horizon: float, dimension: int, states: int, actions: int, steps: int, *, slack: float = 0.0,
    tolerance: float = 0.1,
) -> Optimism:  # fmt: skip
    """Theorem 4, expected regret O~(d H sqrt(T) + H X A) for T >= X A. It holds for every T; for T < X A it exceeds T.

    2 gamma H beta sqrt((1 + e) / e) sqrt(d T ln(1 + T))                    deviations, e = 1/10
    + 2 sqrt 2 (1 + c) d sqrt(H T) + 2 sqrt 2 tolerance H sqrt(T)           invalid plans, slack, tolerance
    + 2 H (2 D + 1), D = doublings + d log2(1 + T)                          phases
    """
    H, d, T = inputs.horizon(horizon), inputs.whole(dimension, "dimension"), inputs.whole(steps, "steps")
    rho = log(2 / mixture_level(H, d, T)) + worst_redundancy(T, d)
    beta = sqrt((1 + GUARD) / GUARD * mixture_radius(d, T, rho + GAP))
    root = 2 * sqrt(2) * d * sqrt(H * T)
    parts = {
        "deviations": 2 * (H - 1) * beta * sqrt(d * T * log(1 + T)), "first": 0.0, "invalid": root,
        "slack": slack * root, "tolerance": 2 * sqrt(2) * tolerance * H * sqrt(T),
        "phases": 2 * H * (2 * mixture_doublings(d, states, actions, T) + 1), "failure": 0.0, "rewards": 0.0,
    }  # fmt: skip
    return Optimism(sum(parts.values()), **parts)


# ---- the lower bound


class Lower(NamedTuple):
    """A family of MDPs, and what every learner loses on one of them."""

    gap: float  # eps of the rings
    total: float  # the expected regret, averaged over which action is best in each gadget, is at least this

    def __float__(self) -> float:
        return self.total


def ring(horizon: float, gadgets: int, actions: int, steps: int) -> Lower:
    """Theorem 5: eps = sqrt(S A / (H (T + H))) / 4, and regret at least (H / 210) T sqrt(S A / (H (T + H))).

    With X = 2 S states this is at least sqrt(H X A T) / 420 for T >= H.

    Parameters
    ----------
    horizon
        H = 1 / (1 - gamma), at least 3.
    gadgets
        S; a ring has X = 2 S states.
    actions
        A, at least 2.
    steps
        T, at least H, and so many that eps <= 1 / 2H: T + H >= H S A / 4.

    Returns
    -------
    Lower : the gap to build `ravi.mdps.small` with, and the bound.

    Examples
    --------
    >>> from ravi.theory import lower
    >>> made = lower.ring(horizon=20, gadgets=4, actions=2, steps=20_000)
    >>> f"{made.gap:.5f} {float(made):.2f}"
    '0.00112 8.51'
    """
    (H, A, T), S = inputs.choices(horizon, actions, steps), inputs.whole(gadgets, "gadgets")
    if H < 3 or A < 2:
        inputs.refuse(f"horizon is {H:g} and actions is {A}; the lower bound needs H >= 3 and two actions")
    if T < H or T + H < H * S * A / 4:
        inputs.refuse(
            f"steps is {T:,}; the lower bound needs T >= H = {H:g} and T + H >= H S A / 4 = {H * S * A / 4:g}"
        )
    gap = sqrt(S * A / (H * (T + H))) / 4
    return Lower(gap, 2 * H * T * gap / 105)
