"""Which policy do rows play whose sum is not exactly one, and which rows are not a policy?

A learner's rows are its own: of float32, or normalised by other sums than ours. A walk plays a row p by one number u,
uniform in [0, 1): action b where s_{b-1} <= u < s_b, with the partial sums s_b of p_1, ..., p_b as float64 has them,
and what is left to one by the last action of positive probability (`ravi.runtime.walk.draw`). So what is played is
always a distribution,

    q_b = min(s_b, 1) - min(s_{b-1}, 1),   q_b = 1 - min(s_{b-1}, 1) for the last b with p_b > 0,

and |q - p|_1 <= |s_A - 1| + 2^-53 A. It is q that is scored. Rows of |s_A - 1| <= 2^-52 A, which is rounding, are
scored as they are: certificates pay 2^-52 A + |s_A - 1| for these.
"""

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.planning.certificates import EPS, miss
from ravi.runtime.ranges import PLAYABLE
from ravi.validation import InputError

TYPES = "fdbBhHiIlLqQ?"  # float32, float64 and whole numbers, as NumPy codes them


def played(policy: Array) -> Array:
    """The policy that is played by rows (..., A); the rows themselves where only rounding keeps them from one."""
    rows = np.ascontiguousarray(policy, dtype=np.float64)
    A = rows.shape[-1]
    return rows if miss(rows) <= EPS * A else as_drawn(rows.reshape(-1, A)).reshape(rows.shape)


@compiled
def as_drawn(rows):  # type: ignore[no-untyped-def]
    """`played`, of rows (N, A) that are not negative."""
    drawn = np.empty_like(rows)
    for i in range(rows.shape[0]):
        row_as_drawn(rows[i], drawn[i])
    return drawn


@compiled
def row_as_drawn(row, drawn):  # type: ignore[no-untyped-def]
    A = row.shape[0]
    total, last = 0.0, 0
    for b in range(A):
        total += row[b]
        drawn[b] = row[b]
        if row[b] > 0.0:
            last = b
    if abs(total - 1.0) > EPS * A:
        mass = 0.0
        for b in range(last + 1):
            below = min(mass, 1.0)
            mass += row[b]
            drawn[b] = (min(mass, 1.0) if b < last else 1.0) - below


def refuse(name: str, policy: Array, keys: Array, over: Array) -> None:
    """An error where rows (n, X, A) or (n, S, X, A) of a learner, of the seeds that are not over, are no policy."""
    if policy.dtype.char not in TYPES:
        raise InputError(f"{name} has a policy of {policy.dtype}; it must be of float64 or float32")
    rows = policy if policy.ndim == 3 else policy.reshape(len(keys), -1, policy.shape[-1])
    i, place = _no_policy(rows, over)
    if i < 0:
        return
    row, (stage, x) = rows[i, place].astype(np.float64), divmod(place, policy.shape[-2])
    wrong = "has a negative probability" if (row < 0).any() else f"sums to {row.sum():.10g}, not 1"
    raise InputError(
        f"{name} planned what is no policy: seed {int(keys[i])}, state {x}{f' at age {stage}' * (policy.ndim == 4)}: "
        f"the row {np.array2string(row, threshold=8)} {wrong} (to within {PLAYABLE:g})"
    )


@compiled
def _no_policy(rows, over):  # type: ignore[no-untyped-def]
    """The first seed and the first of its rows that is no distribution; -1 where all are."""
    n, N, A = rows.shape
    for i in range(n):
        if over[i] == 0:
            for k in range(N):
                mass, least = 0.0, 0.0
                for b in range(A):
                    p = np.float64(rows[i, k, b])
                    mass += p
                    least = min(least, p)
                if not (abs(mass - 1.0) <= PLAYABLE and least >= 0.0):  # a nan neither
                    return i, k
    return -1, -1
