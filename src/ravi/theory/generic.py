"""How large can the regret be, given the sum of the bonuses? Theorem 4.1."""

from math import log, sqrt

from ravi.theory import constants, inputs
from ravi.theory.parts import Bound, bound


def printed(horizon: float, actions: int, steps: int, bonus: float) -> Bound:
    """Theorem 4.1: R_T <= 2 E[sum_{t <= T+} CB_t(X_t, A_t)] + sqrt(2 H^4 log A T) + 2 H^2; `bonus` is the E[sum]."""
    H, A, T = inputs.horizon(horizon), inputs.whole(actions, "actions"), inputs.whole(steps, "steps")
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
    H, A, T = inputs.horizon(horizon), inputs.whole(actions, "actions"), inputs.whole(steps, "steps")
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
    H, A, T = inputs.horizon(horizon), inputs.whole(actions, "actions"), inputs.whole(steps, "steps")
    S, M = inputs.nonnegative(clipped_bonus, "clipped_bonus"), inputs.whole(inner_steps, "inner_steps")
    eta = constants.eta_sharp(H, A, T, M) if eta is None else inputs.positive(eta, "eta")
    optimisation = _optimisation(H, A, T, M, constants.kappa(H), eta)
    return bound(bonus=S, optimisation=optimisation, boundary=H**2 / M, failure=inputs.delta(delta, T) * T)


def _optimisation(H: float, A: int, T: int, M: int, kappa: float, eta: float) -> float:
    """H (log A / (M eta) + eta kappa E K); with one action policies do not move and nothing is lost."""
    return H * (log(A) / (M * eta) + eta * kappa * constants.expected_epochs(H, T)) if A > 1 else 0.0
