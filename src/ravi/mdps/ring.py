"""What is hard for a table? A ring of two-state gadgets, in each of which one action is a little better.

After the lower bound of He, Zhou and Gu (2021), Nearly minimax optimal reinforcement learning for discounted MDPs.
Gadget i has states 2 i (r = 0) and 2 i + 1 (r = 1). From 2 i an action leads up to 2 i + 1 with probability 1 - gamma,
the gadget's own best action with eps more, else stays; from 2 i + 1 every action stays with probability gamma and goes
on to the next gadget's lower state with 1 - gamma. nu_0 is uniform over the lower states, so that every gadget matters.
By symmetry all gadgets have the same values: with p = 1 - gamma + eps,

    rho* = gamma p / ((1 - gamma) (1 + gamma) + gamma p),

and the same with p = 1 - gamma + eps m for a policy that gives the best actions probability m.
"""

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.draws import uniforms
from ravi.mdps.names import named
from ravi.mdps.tables import table_of
from ravi.validation import require_table


def ring(gadgets: int = 4, gap: float | None = None, discount: float = 0.95, actions: int = 2, seed: int = 0) -> MDP:
    """One action is better by `gap` in each of S two-state gadgets: a lower-bound instance for tables.

    `gap` is eps, by default (1 - gamma) / 2; the seed draws the best actions.
    """
    S, A = validation.whole(gadgets, "gadgets", 1), validation.whole(actions, "actions", 1)
    gamma = validation.probability(discount, "discount")
    eps = (1 - gamma) / 2 if gap is None else validation.nonnegative(gap, "gap")
    if eps > gamma:
        raise validation.InputError(f"gap is {eps:g}; with discount {gamma:g} it must be at most gamma")
    seed = validation.whole(seed, "seed", 0)
    name = named("ring", S, gap=(gap, None), actions=(A, 2), seed=(seed, 0))
    require_table(name, "gadgets or actions", 2 * S, A, 2)
    best = (A * uniforms(seed)(S)).astype(np.int64)  # a*_i
    low, a = 2 * np.arange(S)[:, None], np.arange(A)  # (S, 1), (A,)
    stay = (gamma - eps * (best[:, None] == a)).ravel()  # (S * A,)
    entries = [
        (low, a, low + 1, 1 - stay),
        (low, a, low, stay),
        (low + 1, a, low + 1, gamma),
        (low + 1, a, (low + 2) % (2 * S), 1 - gamma),
    ]
    r = np.zeros((2 * S, A))
    r[1::2] = 1
    return table_of(entries, r, gamma, np.tile([1 / S, 0], S), name=name)
