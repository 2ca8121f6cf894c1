"""What is a bandit with absorbing outcomes? One choice between resets, whose outcome lasts until the next.

State 0 (the start, r = 0): arm a leads to state 1 (good, r = 1) with probability p_a, else to state 2 (bad, r = 0);
both are absorbing. For every policy

    rho(pi) = gamma sum_a pi(a | 0) p_a,      gap(pi) = gamma (max p - sum_a pi(a | 0) p_a).

T steps make about T / H pulls; without resets no learner could pull twice. As a linear mixture, d = A + 1 and theta =
(p_1, ..., p_A, 1): psi(0, a, good) = e_a, psi(0, a, bad) = e_{A+1} - e_a, and absorbing rows e_{A+1}. ||theta||^2 =
1 + sum_a p_a^2; ||phi_V||^2 = (V(good) - V(bad))^2 + V(bad)^2 at state 0, so B_phi = sqrt(2).
"""

from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.mdps.tables import mixture_of
from ravi.validation import require_table

CHOICE, GOOD, BAD = 0, 1, 2


def bandit(arms: int = 5, best: float = 0.9, other: float = 0.5, discount: float = 0.95) -> MDP:
    """Each arm succeeds with probability `other` and the last with `best`; the outcome lasts until a reset.

    The best arm is the last one, so that breaking ties towards action 0 does not find it.
    """
    A = validation.whole(arms, "arms", 1)
    best, other = validation.chance(best, "best"), validation.chance(other, "other")
    name = named("bandit", A, best=(best, 0.9), other=(other, 0.5))
    require_table(name, "arms", 3, A, 2, A + 1)
    return bandit_of([other] * (A - 1) + [best], discount, name=name)


def bandit_of(probabilities: Any, discount: float = 0.95, *, name: str = "bandit") -> MDP:
    """The bandit whose arms succeed with these probabilities."""
    p = validation.finite(probabilities, "probabilities")
    if p.ndim != 1 or p.size < 1:
        raise validation.InputError(f"probabilities has shape {p.shape}, not (A,) with A at least 1")
    validation.between(p, 0, 1, "probabilities")
    A = p.size
    require_table(name, "arms", 3, A, 2, A + 1)
    a, e = np.arange(A), np.eye(A + 1)
    entries = [
        (CHOICE, a, GOOD, e[:A]),
        (CHOICE, a, BAD, e[A] - e[:A]),
        (GOOD, a, GOOD, e[A]),
        (BAD, a, BAD, e[A]),
    ]
    r = np.zeros((3, A))
    r[GOOD] = 1
    return mixture_of(entries, [*p, 1.0], r, discount, CHOICE, name=name)
