"""The price of not knowing T: phases of lengths l, 2 l, 4 l, ..., each run as if it were all.

Phase i (i = 0, 1, ...) has length l_i = 2^i l and comes after S_i = (2^i - 1) l steps. A part of a bound that grows
like c sqrt(T) adds up, over the phases i <= m that T reaches into, each charged whole, to

    c sum_{i <= m} sqrt(l_i) <= c sqrt(l_m) / (1 - 2^{-1/2}) <= c sqrt(T + l - 1) / (1 - 2^{-1/2}),

since l_m = S_m + l and T > S_m: with l = 1, not to know T costs a factor of at most 3.415 there, and close to that just
after a phase has begun.

Data are kept, so that the bonus of phase i stands on up to S_{i+1} plays: its union bound, or the determinant in its
beta, is over so many, and with delta_i = 1 / l_i failures cost 1 in each phase. More data than the phase's own only
lower the sum of its bonuses, which is that of l_i plays with the larger beta_i:

- *Counts.* A pair that begins the phase with N_0 >= 1 has sum_{N_0 <= u < N_0 + n} u^{-1/2} <= 2 sqrt(n), and its i-th
  epoch with late visits starts with N >= 2^{i+1} - 1: the two parts of Lemma 5.2.
- *Regressions.* With Lambda at the start of the phase, Lambda' at its end and G = Lambda' - Lambda, ln det Lambda' -
  ln det Lambda = ln det(I + Lambda^{-1/2} G Lambda^{-1/2}) <= d ln(1 + tr(G) / (lambda d)), as Lambda >= lambda I: the
  bound of Lemma A.2 for the steps of the phase alone. Lemma A.3 doubles the same determinant with every bad epoch.

A phase may begin late, at s > S_i, and has then S_{i+1} - s < l_i plays before its end: every sum that is bounded is
one over fewer steps. Policies begin anew: from where the last phase ended, H(pi* || pi_0) would not be bounded by
ln A. A phase gives way at the first reset after its end, gamma H steps later on average, each of which costs at most 1.

Where Q is fresh, <mu^{pi_1}, E V_1> - <mu*, Q_1> joins the boundary of each phase (`ravi.learners.ravi_ucb.plus`): at
most 1 if CB is the same for all pairs at V_0 = 0. With data that is so only if it is 0 there, as it is for regressions,
and for counts with `span` or `clip`; without these it is H at most (`start`).
"""

from collections.abc import Callable, Iterator, Sequence
from math import log, sqrt

from ravi.theory import constants, generic, inputs, mixture
from ravi.theory.generic import Bound, bound
from ravi.theory.tabular import bonus_sum, clipped_bonus_sum

FACTOR = 1 / (1 - sqrt(0.5))  # 3.414...


def length(phase: int, first: int) -> int:
    """l_i = 2^i l."""
    return first << phase


def end(phase: int, first: int) -> int:
    """S_{i+1} = (2^{i+1} - 1) l: the last step of phase i, were there a reset."""
    return (first << (phase + 1)) - first


def phases(steps: int, first: int = 1) -> int:
    """How many phases T steps reach into: the least m + 1 with S_{m+1} >= T."""
    T, l = inputs.whole(steps, "steps"), inputs.whole(first, "first")
    return ((T - 1) // l + 1).bit_length()


def sum_of_phases(parts: Sequence[Bound], horizon: float) -> Bound:
    """The bounds of all phases, and gamma H for every change of phase."""
    changes = (len(parts) - 1) * constants.expected_padding(horizon)
    return bound(
        bonus=sum(each.bonus for each in parts),
        optimisation=sum(each.optimisation for each in parts),
        boundary=sum(each.boundary for each in parts) + changes,
        failure=sum(each.failure for each in parts),
    )


def tabular(horizon: float, states: int, actions: int, steps: int, *, first: int = 1) -> Bound:
    """R_T <= sum over phases of `generic.corrected`, and gamma H for every change of phase."""
    H, X, A, T = inputs.table(horizon, states, actions, steps)

    def plan(l: int, end: int) -> Bound:
        S = bonus_sum(H, X, A, l, constants.beta_tabular(H, X, A, end, 1 / l))
        return generic.corrected(H, A, l, S, delta=1 / l)

    return sum_of_phases([plan(l, end) for l, end in _lengths(T, first)], H)


def linear_mixture(
    horizon: float, dimension: int, actions: int, steps: int, *, bound: float, regularization: float = 1.0,
    first: int = 1,
) -> Bound:  # fmt: skip
    """The same with the bonus sum of `mixture.bonus_sum_corrected` for l_i plays, beta_i in place of its beta."""
    H, d, T, B, lam, _ = inputs.regression(horizon, dimension, steps, bound, regularization)

    def plan(l: int, end: int) -> Bound:
        beta = constants.beta_mixture(H, d, end, 1 / l, parameter_bound=B, feature_bound=B, regularization=lam)
        S = beta * mixture.norm_sum(H, d, l, bound=B, regularization=lam)
        return generic.corrected(H, actions, l, S, delta=1 / l)

    return sum_of_phases([plan(l, end) for l, end in _lengths(T, first)], H)


def sharp(
    horizon: float, actions: int, bonuses: Sequence[float], *, etas: Sequence[float] | None = None,
    inner_steps: int = 1, first: int = 1, start: float = 0.0,
) -> Bound:  # fmt: skip
    """R_T <= sum_i [S_i + H (log A / (M eta_i) + eta_i kappa E K(l_i)) + (H^2 + H start) / M + 1] + gamma H per change.

    By `generic.sharp`; `bonuses` are the S_i >= E[sum min(2 CB, H)] of every phase, to its T+. eta_i is by default
    `constants.eta_balanced` for l_i and S_i, which at most doubles the bound of a phase. `start` is what
    <mu^{pi_1}, E V_1> - <mu*, Q_1> is worth at most where Q is fresh: 1, or H.
    """
    H, M = inputs.horizon(horizon), inputs.whole(inner_steps, "inner_steps")
    parts, more = [], H * inputs.nonnegative(start, "start") / M
    for i, S in enumerate(bonuses):
        l = length(i, first)
        eta = constants.eta_balanced(H, actions, l, S, M) if etas is None else etas[i]
        parts.append(generic.sharp(H, actions, l, S, delta=1 / l, eta=eta, inner_steps=M).plus(more))
    return sum_of_phases(parts, H)


def plus(horizon: float, states: int, actions: int, steps: int, *, inner_steps: int = 1, first: int = 1) -> Bound:
    """`sharp` for RAVI-UCB+ on counts, all parts on."""
    H, X, A, T = inputs.table(horizon, states, actions, steps)

    def bonus(l: int, plays: int) -> float:
        return clipped_bonus_sum(H, X, A, l, (1 - 1 / H) * constants.beta_tabular_l1(H, X, A, plays, 1 / l))

    return _balanced(H, A, T, bonus, inner_steps, first)


def plus_linear_mixture(
    horizon: float, dimension: int, actions: int, steps: int, *, parameter_bound: float, feature_bound: float,
    regularization: float = 1.0, inner_steps: int = 1, first: int = 1,
) -> Bound:  # fmt: skip
    """`sharp` for RAVI-UCB+ on a regression, all parts on; ||phi|| <= 2 B_phi, in parts of half the span of V."""
    H, d, T, B_phi, lam, _ = inputs.regression(horizon, dimension, steps, feature_bound, regularization)
    size, gamma = 2 * B_phi, 1 - 1 / H

    def bonus(l: int, plays: int) -> float:
        noise = sqrt(d * log(1 + plays * size**2 / (lam * d)) + 2 * log(l))
        beta = gamma * H / 2 * (noise + sqrt(lam) * parameter_bound)
        return mixture.clipped_bonus_sum(H, d, l, beta, bound=size / H, regularization=lam)

    return _balanced(H, actions, T, bonus, inner_steps, first)


def _balanced(
    H: float, A: int, T: int, bonus: Callable[[int, int], float], inner_steps: int, first: int
) -> Bound:  # fmt: skip
    """`sharp` with steps that balance the bonuses of a phase's own plays; those of all data are in the bound."""
    lengths = list(_lengths(T, first))
    etas = [constants.eta_balanced(H, A, l, bonus(l, l), inner_steps) for l, _ in lengths]
    bonuses = [bonus(l, end) for l, end in lengths]
    return sharp(H, A, bonuses, etas=etas, inner_steps=inner_steps, first=first, start=1.0)


def _lengths(steps: int, first: int) -> Iterator[tuple[int, int]]:
    """l_i and S_{i+1} of every phase."""
    return ((length(i, first), end(i, first)) for i in range(phases(steps, first)))
