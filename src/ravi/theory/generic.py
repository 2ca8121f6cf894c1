"""Bounds on the regret, given the sum of the bonuses: Lemma 4.3 for one run, Theorem 4.1, and rewards that change.

Changing rewards (`changing_rewards`). Let the tables be fixed in advance, r_t in force at step t, and
f_t = <mu* - mu^{pi_k}, r_t> for a fixed policy pi*. What is known when epoch k begins settles pi_k, T_k, whether
k <= K(T), and whether k < tau, the first invalid epoch; how long the epoch lasts is up to resets. Write r_k for the
table that is revealed after it.

Clock "plays": r_k is the table of the epoch's last step. The epoch reaches its i-th step (i = 0, 1, ...) with
probability gamma^i, and ends with it with probability (1 - gamma) gamma^i, so that

    E[sum_{t in epoch k} f_t] = sum_i gamma^i f_{T_k + i} = H E[<mu* - mu^{pi_k}, r_k>].

Clock "epochs": r_t = r_k in all of the epoch, whose length has the mean H: the same identity. How many plays a table is
in force for is then random. What is bounded is max_pi E[sum_{t <= T} <mu^pi - mu^{pi_t}, r_t>], one policy for all
seeds, and not E[max_pi ...], each seed against the best policy for its own resets (which `ravi.run` reports,
and which is no smaller). By plays both are the same.

Lemma 4.3 with r_k, in the epochs before tau, and Lemma 4.4 give

    E[sum_{t <= T+, before tau} f_t] <= E[sum_{t <= T+} min(2 CB_t, H)] + H (log A / eta + eta kappa E K) + H^2.

From tau on f_t <= 1, which costs delta T. And f_t may be negative, -1 at least, where a gap is not: the steps after T,
gamma H on average, may have lowered the sum, and are taken out of it for gamma H.
"""

from collections.abc import Callable
from math import log, sqrt
from typing import NamedTuple, NoReturn

from ravi.theory import constants, inputs


class Bound(NamedTuple):
    """A bound on the regret, and the four parts that add up to it.

    Attributes
    ----------
    total
        The sum of the parts; first, so that bounds compare by it.
    bonus
        The price of exploration.
    optimisation
        The price of planning in small steps.
    boundary
        The price of the two ends of the telescoping sum.
    failure
        The price of steps with invalid bonuses.
    """

    total: float
    bonus: float
    optimisation: float
    boundary: float
    failure: float

    def __float__(self) -> float:
        return self.total

    def plus(self, boundary: float) -> "Bound":
        """The bound whose boundary is larger by as much."""
        return self._replace(total=self.total + boundary, boundary=self.boundary + boundary)


def bound(*, bonus: float, optimisation: float, boundary: float, failure: float = 0.0) -> Bound:
    """The bound of these parts."""
    return Bound(bonus + optimisation + boundary + failure, bonus, optimisation, boundary, failure)


def not_stated(*_: object, **__: object) -> NoReturn:
    """In the place of a form that a statement does not have."""
    raise NotImplementedError("the theory has no such form of this statement")


class Statement(NamedTuple):
    """The forms of a statement, each a function of plain numbers.

    Attributes
    ----------
    printed
        The bound of the paper.
    corrected
        The bound with the paper's constants and a proof without gaps.
    sharp
        The bound that the same proof gives with more care.
    bonus_sum
        The sum of the bonuses that it is made of.
    """

    printed: Callable[..., Bound] = not_stated
    corrected: Callable[..., Bound] = not_stated
    sharp: Callable[..., Bound] = not_stated
    bonus_sum: Callable[..., float] = not_stated


def _printed_per_run(horizon: float, epochs: int, bonus: float, entropy: float, eta: float) -> Bound:
    """Lemma 4.3: sum_{k <= K} gap(pi_k) <= 2 sum_{k <= K} <mu^{pi_k}, CB_k> + 2 H + H(pi* || pi_0) / eta + eta H^3 K/2.

    `bonus` is the sum of <mu^{pi_k}, CB_k>, `entropy` is H(pi* || pi_0): log A at most for a uniform pi_0. It holds for
    every V_0 in [0, H]^X, not for V_0 = 0 only: <mu^{pi_1} - mu*, E V_1> then joins the boundary, still 2 H at most.
    """
    H, K, eta = inputs.horizon(horizon), inputs.whole(epochs, "epochs", 0), inputs.positive(eta, "eta")
    S, entropy = inputs.nonnegative(bonus, "bonus"), inputs.nonnegative(entropy, "entropy")
    return bound(bonus=2 * S, optimisation=entropy / eta + eta * H**3 * K / 2, boundary=2 * H)


def _sharp_per_run(horizon: float, epochs: int, clipped_bonus: float, entropy: float, eta: float) -> Bound:
    """sum_{k <= K} gap(pi_k) <= sum_{k <= K} <mu^{pi_k}, min(2 CB_k, H)> + H + H(pi* || pi_0) / eta + eta kappa K.

    For a constant V_0, such as 0. `clipped_bonus` is the first sum. Reasons: `sharp`. With M backups per epoch, K
    counts backups.
    """
    H, K, eta = inputs.horizon(horizon), inputs.whole(epochs, "epochs", 0), inputs.positive(eta, "eta")
    S, entropy = inputs.nonnegative(clipped_bonus, "clipped_bonus"), inputs.nonnegative(entropy, "entropy")
    return bound(bonus=S, optimisation=entropy / eta + eta * constants.kappa(H) * K, boundary=H)


per_run = Statement(_printed_per_run, sharp=_sharp_per_run)


def printed(horizon: float, actions: int, steps: int, bonus: float) -> Bound:
    """Theorem 4.1: R_T <= 2 E[sum_{t <= T+} CB_t(X_t, A_t)] + sqrt(2 H^4 log A T) + 2 H^2; `bonus` is the E[sum]."""
    H, A, T = inputs.choices(horizon, actions, steps)
    S = inputs.nonnegative(bonus, "bonus")
    return bound(bonus=2 * S, optimisation=sqrt(2 * H**4 * log(A) * T), boundary=2 * H**2)


def corrected(
    horizon: float, actions: int, steps: int, bonus: float, *, delta: float | None = None, eta: float | None = None,
    inner_steps: int = 1,
) -> Bound:  # fmt: skip
    """Theorem 4.1 with the paper's constants and a proof without gaps; `bonus` is E[sum_{t <= T+} CB_t(X_t, A_t)].

        R_T <= 2 E[sum CB] + H (log A / (M eta) + eta H^3/2 E K) + 2 H^2 / M + delta T
            =  2 E[sum CB] + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T

    by Lemma 4.3 in the epochs before tau, the first that is invalid, and by gaps of at most 1 from there on, which
    costs T P(tau <= K(T)) <= delta T. {k < tau} and {k <= K(T)} are known when epoch k starts, so that Wald's identity
    turns H sums over epochs into sums over the steps up to T+. New are E K = (1 - gamma) T + gamma and delta T. pi_0
    must be uniform, or log A becomes H(pi* || pi_0).

    The second line is for eta of Theorem 4.1, the default; it falls up to T = gamma H / 2, where that eta is too large,
    and rises from there on. `inner_steps` M > 1 is the Discussion's variant: M backups per epoch on the same data, of
    whose policies a uniform one is played. Lemma 4.3 holds for all M K backups, if bonuses are valid for every V at
    once (those of Lemmas 5.1 and 5.4 are). By default eta is then that of M T steps, which divides both terms with
    log A by sqrt(M).
    """
    H, A, T = inputs.choices(horizon, actions, steps)
    S, M, delta = inputs.nonnegative(bonus, "bonus"), inputs.whole(inner_steps, "inner_steps"), inputs.delta(delta, T)
    eta = constants.eta(H, A, T) / sqrt(M) if eta is None else inputs.positive(eta, "eta")
    optimisation = _optimisation(H, A, T, M, H**3 / 2, eta)
    return bound(bonus=2 * S, optimisation=optimisation, boundary=2 * H**2 / M, failure=delta * T)


def sharp(
    horizon: float, actions: int, steps: int, clipped_bonus: float, *, delta: float | None = None,
    eta: float | None = None, inner_steps: int = 1,
) -> Bound:  # fmt: skip
    """Theorem 4.1 with more care; `clipped_bonus` is E[sum_{t <= T+} min(2 CB_t(X_t, A_t), H)].

        R_T <= E[sum min(2 CB, H)] + H (log A / (M eta) + eta kappa E K) + H^2 / M + delta T
            =  E[sum min(2 CB, H)] + 2 H sqrt(kappa log A E K / M) + H^2 / M + delta T

    The second line is for `constants.eta_sharp`, the default. Beyond `corrected`: Lemma 4.2 holds with min(2 CB_k, H),
    since Q_{k+1} <= H and r + gamma P V_k >= 0; <mu* - mu, E V> <= H for V in [0, H], not 2 H; and kappa, about
    H^{5/2}/4, is below H^3/2, so that the second part grows like H^{7/4} instead of H^2. V_0 must be constant, or
    H^2 / M counts twice.
    """
    H, A, T = inputs.choices(horizon, actions, steps)
    S, M = inputs.nonnegative(clipped_bonus, "clipped_bonus"), inputs.whole(inner_steps, "inner_steps")
    eta = constants.eta_sharp(H, A, T, M) if eta is None else inputs.positive(eta, "eta")
    optimisation = _optimisation(H, A, T, M, constants.kappa(H), eta)
    return bound(bonus=S, optimisation=optimisation, boundary=H**2 / M, failure=inputs.delta(delta, T) * T)


def _optimisation(H: float, A: int, T: int, M: int, kappa: float, eta: float) -> float:
    """H (log A / (M eta) + eta kappa E K); with one action policies do not move and nothing is lost."""
    return H * (log(A) / (M * eta) + eta * kappa * constants.expected_epochs(H, T)) if A > 1 else 0.0


def _sharp_changing(
    horizon: float, actions: int, steps: int, clipped_bonus: float, *, delta: float | None = None,
    eta: float | None = None,
) -> Bound:  # fmt: skip
    """`sharp`, and gamma H more: pi_0 uniform, V_0 constant, `clipped_bonus` >= E[sum min(2 CB_t, H)]."""
    known = sharp(horizon, actions, steps, clipped_bonus, delta=delta, eta=eta)
    return known.plus(constants.expected_padding(horizon))


changing_rewards = Statement(sharp=_sharp_changing)
