"""QuantEcon's `DiscreteDP`: R, Q and beta, by state and action, or by pairs (s_indices, a_indices).

An action that is not feasible (R = -inf, or no pair) is no action of its state. Q may be dense or sparse.
"""

from typing import Any

import numpy as np

from ravi import validation
from ravi.importers.imported import Entries, Imported, imported
from ravi.validation import InputError


def quantecon(ddp: Any, *, initial: Any = 0, name: str = "DiscreteDP") -> Imported:
    """The MDP of a `quantecon.markov.DiscreteDP`: `initial` is nu_0, or one state, of which it says nothing."""
    missing = [field for field in ("R", "Q", "beta") if not hasattr(ddp, field)]
    if missing:
        raise InputError(f"{validation.shown(ddp)} is no DiscreteDP: it has no {', '.join(missing)}")
    x, a, rows, earned = _pairs(ddp)
    X, A = rows.shape[1], int(a.max()) + 1
    wrong = np.isnan(earned) | (earned == np.inf)
    if wrong.any():
        i = int(wrong.argmax())
        raise InputError(f"R of state {x[i]}, action {a[i]} is {earned[i]}; it is a number, or -inf where not feasible")
    pair, y, p = _nonzero(rows)
    feasible, there = np.isfinite(earned), np.zeros((X, A), bool)
    there[x[feasible], a[feasible]] = True
    kept = feasible[pair]
    pair, y, p = pair[kept], y[kept], p[kept]
    return imported(Entries(x[pair], a[pair], y, p, earned[pair]), X, A, ddp.beta, initial, name=name, pairs=there)


def _pairs(ddp: Any) -> tuple[Any, Any, Any, Any]:
    """States and actions of pairs (L,), their rows of Q (L, S), and their R (L,)."""
    R = validation.array(ddp.R, "R").astype(float)
    Q = ddp.Q if hasattr(ddp.Q, "tocoo") else validation.array(ddp.Q, "Q").astype(float)
    if R.ndim == 2 and R.size and Q.shape == (*R.shape, len(R)):
        x, a = np.indices(R.shape).reshape(2, -1)
        return x, a, Q.reshape(R.size, len(R)), R.ravel()
    if R.ndim != 1 or not R.size or len(Q.shape) != 2 or Q.shape[0] != len(R):
        raise InputError(f"R has shape {R.shape} and Q {Q.shape}, not (S, A) and (S, A, S), nor (L,) and (L, S)")
    return _indices(ddp, "s_indices", len(R), Q.shape[1]), _indices(ddp, "a_indices", len(R)), Q, R


def _indices(ddp: Any, field: str, L: int, most: int = 2**20) -> Any:
    """The states, or the actions, of L pairs."""
    given = getattr(ddp, field, None)
    if given is None:
        raise InputError(f"R has shape ({L},), by pairs, but there are no {field}; s_indices and a_indices are theirs")
    found = validation.shaped(validation.array(given, field), (L,), field, "(L,)")
    wrong = ~((found >= 0) & (found < most) & (found == np.floor(found)))
    if wrong.any():
        i = int(wrong.argmax())
        raise InputError(f"{field}[{i}] is {found[i]:g}, not a whole number from 0 to {most - 1}")
    return found.astype(int)


def _nonzero(rows: Any) -> tuple[Any, Any, Any]:
    """Row, column and value of what is not zero."""
    if hasattr(rows, "tocoo"):
        coo = rows.tocoo()
        return coo.row.astype(int), coo.col.astype(int), coo.data.astype(float)
    dense = np.asarray(rows, float)
    pair, y = np.nonzero(dense)
    return pair, y, dense[pair, y]
