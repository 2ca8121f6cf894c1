"""What does it cost not to know T? Phases of lengths l, 2 l, 4 l, ..., each run as if it were all.

Phase i (i = 0, 1, ...) has length l_i = 2^i l and comes after S_i = (2^i - 1) l plays. A part of a bound that grows
like c sqrt(T) adds up, over the phases i <= m that T reaches into, each charged whole, to

    c sum_{i <= m} sqrt(l_i) <= c sqrt(l_m) / (1 - 2^{-1/2}) <= c sqrt(T + l - 1) / (1 - 2^{-1/2}),

since l_m = S_m + l and T > S_m: with l = 1, not to know T costs a factor of at most 3.415 there, and close to that just
after a phase has begun.

Data are kept, so that the bonus of phase i stands on up to S_{i+1} plays: its union bound is over so many, and with
delta_i = 1 / l_i failures cost 1 in each phase. More data than Lemma 5.2 counts on only lower its sum. Policies begin
anew: from where the last phase ended, H(pi* || pi_0) would not be bounded by ln A. A phase gives way at the first reset
after its end, gamma H plays later on average, each of which costs at most 1.
"""

from __future__ import annotations

from math import sqrt

from ravi.theory import constants, generic, inputs
from ravi.theory.parts import Bound, bound
from ravi.theory.tabular import bonus_sum

FACTOR = 1 / (1 - sqrt(0.5))  # 3.414...


def length(phase: int, first: int) -> int:
    """l_i = 2^i l."""
    return first << phase


def end(phase: int, first: int) -> int:
    """S_{i+1} = (2^{i+1} - 1) l: the last play of phase i, were there a reset."""
    return (first << (phase + 1)) - first


def phases(steps: int, first: int = 1) -> int:
    """How many phases T plays reach into: the least m + 1 with S_{m+1} >= T."""
    T, l = inputs.whole(steps, "steps"), inputs.whole(first, "first")
    return ((T - 1) // l + 1).bit_length()


def tabular(horizon: float, states: int, actions: int, steps: int, *, first: int = 1) -> Bound:
    """R_T <= sum over phases of `generic.corrected`, and gamma H for every change of phase."""
    H, X, A = inputs.horizon(horizon), inputs.whole(states, "states"), inputs.whole(actions, "actions")
    parts = []
    for i in range(phases(steps, first)):
        l = length(i, first)
        beta = constants.beta_tabular(H, X, A, end(i, first), 1 / l)
        parts.append(generic.corrected(H, A, l, bonus_sum(H, X, A, l, beta), delta=1 / l))
    changes = (len(parts) - 1) * constants.expected_padding(H)
    return bound(
        bonus=sum(each.bonus for each in parts),
        optimisation=sum(each.optimisation for each in parts),
        boundary=sum(each.boundary for each in parts) + changes,
        failure=sum(each.failure for each in parts),
    )
