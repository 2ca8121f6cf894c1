"""What does the algorithm do where there is nothing to learn? One state, so that its trajectory has a closed form.

X = 1 with rewards r(a): rho(pi) = sum_a pi(a) r(a). With P known, CB = 0 and V_0 = 0 the iterates of RAVI-UCB are

    pi_k(a) proportional to exp(eta (k - 1) r(a)),
    V_1 + ... + V_k = (1 / eta) log mean_a exp(eta S_k(a)),  S_{k+1} = S_k + r + gamma V_k,  S_1 = 0,

and nothing is truncated: an index that is off by one shows at once.
"""

from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.validation import require_table


def one_state(actions: int = 2, discount: float = 0.95) -> MDP:
    """The A actions of a single state earn 1 / A, 2 / A, ..., 1, so that iterates have a closed form."""
    A = validation.whole(actions, "actions", 1)
    name = named("one-state", A)
    require_table(name, "actions", 1, A, 1, scattered=False)
    return one_state_of(np.arange(1, A + 1) / A, discount, name=name)


def one_state_of(rewards: Any, discount: float = 0.95, *, name: str = "one-state") -> MDP:
    """One state with these rewards."""
    r = validation.finite(rewards, "rewards")
    if r.ndim != 1 or r.size < 1:
        raise validation.InputError(f"rewards has shape {r.shape}, not (A,) with A at least 1")
    validation.between(r, 0, 1, "rewards")
    shape = (1, r.size, 1)
    return MDP(
        rewards=r[None], successors=np.zeros(shape, np.int32), transitions=np.ones(shape), initial=np.ones(1),
        discount=discount, name=name,
    )  # fmt: skip
