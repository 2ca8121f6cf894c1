"""What does one wrong action cost? The trap of the paper's discussion: only a reset leads out of it.

Moulin and Neu (2023), Optimistic planning by regularized dynamic programming, Section 6. State 0 is the start: stay
(action 0) earns 1, jump (action 1) earns nothing and leads to state 1, the trap, where r = 0. The trap is left with
probability q (0: only by a reset). A policy that jumps with probability eps has

    gap = eps (1 + gamma q) / (1 - gamma + gamma (eps + q)),

that is eps / (1 - gamma + gamma eps) for q = 0. rho* = 1. A learner that always jumps has gap 1 in every round; along
a trajectory without resets it would be charged H once and nothing after.
"""

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.mdps.tables import table_of

STAY, JUMP = 0, 1


def trap(discount: float = 0.95, leave: float = 0.0) -> MDP:
    """One wrong action leads to a state without rewards, which is left with probability `leave` per step."""
    q = validation.chance(leave, "leave")
    entries = [(0, STAY, 0, 1.0), (0, JUMP, 1, 1.0), (1, [STAY, JUMP], 1, 1 - q)]
    if q > 0:
        entries.append((1, [STAY, JUMP], 0, q))
    rewards = np.array([[1.0, 0.0], [0.0, 0.0]])
    return table_of(entries, rewards, discount, np.eye(2)[0], name=named("trap", leave=(q, 0.0)))
