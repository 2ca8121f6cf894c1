"""Greedy policies of a table of Q, of which one row is made anew at a time.

They learn at every step, within the walk. They act greedily in a table, ties to the first action. A play of
(x, a) changes the table at (x, a) only, so the policy can change in row x only. Where it does, the walk notes x in
`stale` and ends the epoch, and `plan` sets that row anew: O(A), whatever X is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import first
from ravi.core import Array, Learner, Seedwise
from ravi.runtime.seedwise import compiled_learner
from ravi.schedules import seed_never

NONE = -1  # no row is stale


def greedy_in_a_table(
    name: str, init: Callable[[Array], Any], learn: Any, own: Callable[..., tuple[Any, ...]], settings: dict[str, Any],
    *, keyed: bool = False,
) -> Learner:  # fmt: skip
    """The learner that learns by `learn` at every step, from what `own` gives of its state (and, where it is keyed, of
    the keys): first (policy, table, stale), as `renew` takes them."""
    form = Seedwise(renew, learn, own, reset=False, changes=True, keyed=keyed)
    return compiled_learner(name, init, form, settings)


def first_action(n: int, X: int, A: int) -> Array:
    """The policy that is greedy in a constant table."""
    policy = np.zeros((n, X, A))
    policy[..., 0] = 1.0
    return policy


@compiled
def best(row):  # type: ignore[no-untyped-def]
    """argmax_a row(a); ties to the first."""
    a = 0
    for b in range(1, row.shape[0]):
        if row[b] > row[a]:
            a = b
    return a


@compiled
def lower(own, raw, i, x, a, alpha, target):  # type: ignore[no-untyped-def]
    """Move Q = `raw` at (x, a) to the target, and the table Q_hat down to it; whether the policy is then another one.
    `own` is (policy, table, stale)."""
    _, table, stale = own
    raw[i, x, a] = (1.0 - alpha) * raw[i, x, a] + alpha * target
    table[i, x, a] = min(table[i, x, a], raw[i, x, a])
    if best(table[i, x]) == a:
        return False
    stale[i] = x
    return True


@compiled
def renew(own, i, t):  # type: ignore[no-untyped-def]
    """Make the stale row of the policy greedy in the table; `own` begins with (policy, table, stale). A team's."""
    policy, table, stale = own[0]
    if first() and stale[i] >= 0:
        x = stale[i]
        for a in range(policy.shape[2]):
            policy[i, x, a] = 0.0
        policy[i, x, best(table[i, x])] = 1.0
        stale[i] = NONE
    return seed_never(own, i, t)
