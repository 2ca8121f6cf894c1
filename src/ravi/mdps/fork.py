"""What is the fork? One choice, for which every simulator recommends another action.

X = 3, A = d, from state 0. In simulator i, action i leads from 0 to state 1 with probability `high` and every other one
with `low`, else to state 2. In 1 and 2 all actions do the same: stay with 1/2, else go back to 0. State 1 pays 1. So
action a leads to 1 with p_a = low + (high - low) theta_a, the best action is that of the largest weight, and what p is
worth at 0 is, with c = 1 - gamma / 2,

    V(0) = gamma p / (c - gamma^2 / 2).

theta is `weight` for the simulator `best` and (1 - weight) / (d - 1) for each other one: .32 and .227 at the defaults,
p = .356 against .281. A move from 0 by action a tells of theta_a only: a bandit whose arms are .075 apart, where no
mixture helps. Ties go to the first action in greedy learners: where the best one is not to be a gift, it is another.

>>> from ravi.mdps import fork
>>> fork().transitions[0, :, 0].round(3).tolist()  # to state 1, by action
[0.356, 0.281, 0.281, 0.281]
"""

import math

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.mdps.tables import mixture_of
from ravi.validation import require_table


def fork(
    simulators: int = 4, discount: float = 0.9, weight: float = 0.32, high: float = 0.9, low: float = 0.1, best: int = 0
) -> MDP:
    """Each of d simulators recommends another first action; simulator `best` has the largest `weight`.

    The others share the rest of the weight.
    """
    d = validation.whole(simulators, "simulators", 2)
    best = validation.whole(best, "best", 0, d - 1)
    weight, high, low = (
        validation.chance(weight, "weight"),
        validation.chance(high, "high"),
        validation.chance(low, "low"),
    )
    name = named("fork", d, weight=(weight, 0.32), high=(high, 0.9), low=(low, 0.1), best=(best, 0))
    require_table(name, "simulators", 3, d, 2, d)
    p = np.where(np.eye(d, dtype=bool), high, low)  # to state 1, by action and simulator
    half, a = np.full(d, 0.5), np.arange(d)
    entries = [(0, a, 1, p), (0, a, 2, 1 - p), *((x, a, y, half) for x in (1, 2) for y in (0, x))]
    r = np.zeros((3, d))
    r[1] = 1
    theta = np.full(d, (1 - weight) / (d - 1))
    theta[best] = weight
    return mixture_of(entries, theta, r, discount, 0, parameter_bound=1.0, feature_bound=math.sqrt(d), name=name)
