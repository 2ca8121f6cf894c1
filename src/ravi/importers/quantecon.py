"""QuantEcon's `DiscreteDP`: R, Q and beta, by state and action, or by pairs (s_indices, a_indices).

An action that is not feasible (R = -inf, or no pair) is no action of its state. Q may be dense or sparse.
"""

from typing import Any

import numpy as np

from ravi import checks
from ravi.checks import InputError
from ravi.importers.imported import Entries, Imported, imported


def quantecon(ddp: Any, *, initial: Any = 0, name: str = "DiscreteDP") -> Imported:
    """The MDP of a `quantecon.markov.DiscreteDP`: `initial` is nu_0, or one state, of which it says nothing."""
    missing = [field for field in ("R", "Q", "beta") if not hasattr(ddp, field)]
    if missing:
        raise InputError(f"{checks.shown(ddp)} is no DiscreteDP: it has no {', '.join(missing)}")
    Q, R = ddp.Q, np.asarray(ddp.R, float)
    if R.ndim == 2:
        X, A = R.shape
        x, a = (index.ravel() for index in np.indices((X, A)))
        rows, earned = np.asarray(Q, float).reshape(X * A, X), R.ravel()
    else:
        x, a, rows, earned = np.asarray(ddp.s_indices, int), np.asarray(ddp.a_indices, int), Q, R
        X, A = Q.shape[1], int(a.max()) + 1
    wrong = np.isnan(earned) | (earned == np.inf)
    if wrong.any():
        i = int(wrong.argmax())
        raise InputError(f"R of state {x[i]}, action {a[i]} is {earned[i]}; it is a number, or -inf where not feasible")
    pair, y, p = _nonzero(rows)
    kept = np.isfinite(earned)[pair]
    pair, y, p = pair[kept], y[kept], p[kept]
    return imported(Entries(x[pair], a[pair], y, p, earned[pair]), X, A, ddp.beta, initial, name=name)


def _nonzero(rows: Any) -> tuple[Any, Any, Any]:
    """Row, column and value of what is not zero."""
    if hasattr(rows, "tocoo"):
        coo = rows.tocoo()
        return coo.row.astype(int), coo.col.astype(int), coo.data.astype(float)
    dense = np.asarray(rows, float)
    pair, y = np.nonzero(dense)
    return pair, y, dense[pair, y]
