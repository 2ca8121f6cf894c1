"""Bounds on the regret in episodes of S steps: those of UCBVI's paper, and those of RAVI-UCB and RAVI-KL.

The last two are proven in `ravi.learners.ravi_ucb.in_episodes` and `ravi.learners.ravi_kl.in_episodes`.
"""

from __future__ import annotations

from math import ceil, inf, log, sqrt

from ravi.theory.kl import kappa, worst_redundancy


def level(stages: int, states: int, actions: int, time: float) -> float:
    """delta_t = min{1, sqrt(S X A / t)}, of the sets of RAVI-KL."""
    return min(1.0, sqrt(stages * states * actions / time))


def widths(stages: int, states: int, actions: int, steps: int) -> float:
    """The sum over plays with n >= 1 of 1 / sqrt(n), n the plays of the pair before the episode, is at most
    2 sqrt(2 X A T) + 2 S X A.

    Of a pair, episodes with m <= n plays cost m / sqrt(n) <= 2 sqrt(2) (sqrt(n + m) - sqrt(n)); in the others n < S
    more than doubles, so they have at most 2 S plays together.
    """
    pairs = states * actions
    return 2 * sqrt(2 * pairs * steps) + 2 * stages * pairs


def ucbvi(stages: int, states: int, actions: int, steps: int, delta: float, bonus: str) -> float:
    """Theorems 1 and 2 of Azar, Osband and Munos (2017), with probability 1 - delta, L = ln(5 S X A T / delta)."""
    S, X, A, K = stages, states, actions, ceil(steps / stages)
    L = log(5 * S * X * A * steps / delta)
    if bonus == "hoeffding":
        return 20 * S**1.5 * L * sqrt(X * A * K) + 250 * S**2 * X**2 * A * L**2
    return 30 * S * L * sqrt(X * A * K) + 2500 * S**2 * X**2 * A * L**2 + 4 * S**1.5 * sqrt(K * L)


def ravi_ucb(stages: int, states: int, actions: int, steps: int, beta: float, eta: float, delta: float) -> float:
    """S ln A / eta + delta T + 2 beta (2 sqrt(2 X A (T + X A)) + 2 S X A), of the expected regret; beta of Lemma 5.1 or
    more."""
    pairs = states * actions
    return stages * log(actions) / eta + delta * steps + 2 * beta * widths(stages, states, actions, steps + pairs)


def ravi_kl(stages: int, states: int, actions: int, branching: int, steps: int, slack: float) -> float:
    """1 + S + 2 sqrt(S X A T) + (1 + 2 c) (S^2 X A + S (sqrt(rho_T) + sqrt(rho_G)) (2 sqrt(X A T) + sqrt(2) S X A)), of
    the expected regret, c = s / (1 - s)."""
    S, X, A, T = stages, states, actions, steps
    rho = log(X * S / level(S, X, A, T)) + kappa(T)
    deviations = S * (sqrt(rho) + sqrt(log(X * A * T) + worst_redundancy(T, branching))) * widths(S, X, A, T) / sqrt(2)
    times = 1 + 2 * slack / (1 - slack) if slack < 1 else inf
    return 1 + S + 2 * sqrt(S * X * A * T) + times * (S**2 * X * A + deviations)
