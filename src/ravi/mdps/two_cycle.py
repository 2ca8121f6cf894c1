"""Where does greedy planning never settle? Two simulators whose estimated mixture is no kernel.

X = 3, A = 2, nu_0 uniform, r = [[0, 1], [0, 0], [1, .5]]. Two deterministic simulators, next states by state (row) and
action (column):

    P_1: [[1, 2], [2, 0], [0, 1]]      P_2: [[1, 0], [1, 1], [0, 2]]

and theta = (1/2, 1/2). At gamma = .9 the optimal policy is (1, 0, 0), V* = (10, 90 / 11, 10), rho* = .939394.

A least-squares estimate may leave the simplex. With theta_hat = (2, -1) the rows of P_hat still sum to one but have
negative entries, and truncated greedy value iteration V <- max_a clip(r + gamma P_hat V, 0, H) ends, from most starts,
in the 2-cycle (10, 9.4737, 8.6737), (8.5263, 9.4737, 10), whose greedy policies alternate between (0, 1, 0), with gap
.90606, and (1, 0, 0), with gap 0: a planner that iterates to convergence never stops, and half of its answers are
terrible. (From a constant V it happens to find the fixed point (10, 9.4737, 10); from (0, 0, 10) it cycles.)
Regularised value iteration keeps moving too, but its policies settle at gap 0.
"""

import numpy as np

from ravi.core import MDP
from ravi.mdps.ensemble import ensemble

FOLLOWING = (((1, 2), (2, 0), (0, 1)), ((1, 0), (1, 1), (0, 2)))  # next states of the simulators, (d, X, A)
REWARDS = ((0, 1), (0, 0), (1, 0.5))


def two_cycle(discount: float = 0.9) -> MDP:
    """Greedy planning with an estimated mixture of two simulators alternates between two policies."""
    simulators = [
        MDP(
            rewards=np.array(REWARDS),
            successors=np.array(following)[:, :, None],
            transitions=np.ones((3, 2, 1)),
            initial=np.full(3, 1 / 3),
            discount=discount,
        )
        for following in FOLLOWING
    ]
    return ensemble(simulators, (0.5, 0.5), name="two-cycle")
