"""How small can the regret be at best? A lower bound for every learner, on the rings of `ravi.mdps.small`.

Theorem 5 of docs/explanation/kl.md has the proof. It holds for every learner, also one that changes its policy at any
time, that knows all of the MDP but which action is best in each gadget.
"""

from math import sqrt
from typing import NamedTuple

from ravi.theory import inputs
from ravi.validation import InputError


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
    H, S, A = inputs.horizon(horizon), inputs.whole(gadgets, "gadgets"), inputs.whole(actions, "actions")
    T = inputs.whole(steps, "steps")
    if H < 3 or A < 2:
        raise InputError(f"horizon is {H:g} and actions is {A}; the lower bound needs H >= 3 and two actions")
    if T < H or T + H < H * S * A / 4:
        raise InputError(
            f"steps is {T:,}; the lower bound needs T >= H = {H:g} and T + H >= H S A / 4 = {H * S * A / 4:g}"
        )
    gap = sqrt(S * A / (H * (T + H))) / 4
    return Lower(gap, 2 * H * T * gap / 105)
