"""Models as arrays: QuantEcon's `DiscreteDP`, pymdptoolbox's (P, R), Colosseum's MDPs, and (T, R) of papers.

`DiscreteDP` has R, Q and beta by state and action, or by pairs (s_indices, a_indices); an action that is not feasible
(R = -inf, or no pair) is no action of its state, and Q may be dense or sparse. pymdptoolbox has A matrices of
transitions, one per action, and rewards by state, pair or transition.
"""

from typing import Any

import numpy as np

from ravi import validation
from ravi.importers.imported import Imported, mdp_of_entries
from ravi.validation import InputError


def quantecon(ddp: Any, *, initial: Any = 0, name: str = "DiscreteDP") -> Imported:
    """The MDP of a `quantecon.markov.DiscreteDP`: `initial` is nu_0, or one state, of which it says nothing."""
    missing = [field for field in ("R", "Q", "beta") if not hasattr(ddp, field)]
    if missing:
        raise InputError(f"{validation.shown(ddp)} is not a DiscreteDP: it has no {', '.join(missing)}")
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
    return mdp_of_entries((x[pair], a[pair], y, p, earned[pair]), X, A, ddp.beta, initial, name=name, pairs=there)


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
        raise InputError(f"R has shape ({L},), an entry for each pair, but the model has no {field}")
    found = validation.check_shape(validation.array(given, field), (L,), field, "(L,)")
    wrong = ~((found >= 0) & (found < most) & (found == np.floor(found)))
    if wrong.any():
        i = int(wrong.argmax())
        raise InputError(f"{field}[{i}] is {found[i]:g}, not a whole number from 0 to {most - 1}")
    return found.astype(int)


def _nonzero(rows: Any) -> tuple[Any, Any, Any]:
    """Row, column and value of what is not zero."""
    from scipy.sparse import coo_array

    found = coo_array(rows)
    return found.row.astype(int), found.col.astype(int), found.data.astype(float)


def mdptoolbox(P: Any, R: Any, discount: float, *, initial: Any = 0, name: str = "(P, R)") -> Imported:
    """The MDP of pymdptoolbox's arrays, or of MDPtoolbox's for MATLAB, R and Julia, which have the same shapes.

    P: (A, S, S), or a sequence of A matrices (S, S), dense or sparse. R: (S,), (S, A), (A, S, S), or A matrices.
    """
    matrices = [
        _matrix(matrix, f"P[{a}]") for a, matrix in enumerate(validation.several(P, "P", "a matrix per action"))
    ]
    if not matrices:
        raise InputError("P has no matrices; there is one (S, S) for every action")
    A, S = len(matrices), matrices[0].shape[0]
    for a, matrix in enumerate(matrices):
        if matrix.shape != (S, S):
            raise InputError(f"P[{a}] has shape {matrix.shape}, not (S, S) = ({S}, {S})")
    parts = []
    for a, matrix in enumerate(matrices):
        x, y = matrix.nonzero()
        p = np.asarray(matrix[x, y], float).ravel()
        parts.append((x, np.full(len(x), a), y, p, _earned(R, A, S, a, x, y)))
    entries = tuple(map(np.concatenate, zip(*parts, strict=True)))
    return mdp_of_entries(entries, S, A, discount, initial, name=name, pairs=np.ones((S, A), bool))


def _matrix(matrix: Any, label: str) -> Any:
    found = matrix.tocsr() if hasattr(matrix, "tocsr") else validation.finite(matrix, label)
    if len(found.shape) != 2:
        raise InputError(f"{label} has shape {found.shape}, not (S, S)")
    return found


def _earned(R: Any, A: int, S: int, a: int, x: Any, y: Any) -> Any:
    """R of the transitions x -> y of action a."""
    if hasattr(R, "tocsr"):  # (S, A)
        R = R.toarray()
    R = list(R) if isinstance(R, np.ndarray) and R.dtype == object else R
    if isinstance(R, (list, tuple)) and len(R) == A and all(len(getattr(each, "shape", ())) == 2 for each in R):
        R = [_matrix(each, f"R[{b}]") for b, each in enumerate(R)]  # one (S, S) per action, as P
        shapes, found = {each.shape for each in R}, R[a]
        if shapes != {(S, S)}:
            raise InputError(f"R has matrices of shape {', '.join(map(str, sorted(shapes)))}, not (S, S) = ({S}, {S})")
        return np.asarray(found[x, y], float).ravel()
    table = validation.finite(R, "R")
    if table.shape == (S,):
        return table[x]
    if table.shape == (S, A):
        return table[x, a]
    if table.shape == (A, S, S):
        return table[a, x, y]
    raise InputError(f"R has shape {table.shape}, not (S,) = ({S},), (S, A) = ({S}, {A}) or (A, S, S)")


def tables(
    T: Any, R: Any, discount: float, *, initial: Any = 0, renormalise: bool = False, name: str = "(T, R)"
) -> Imported:
    """The MDP of T[s, a, s'] and R[s], R[s, a] or R[s, a, s'], in any units."""
    P, r = validation.finite(T, "T"), validation.finite(R, "R")
    if P.ndim != 3 or P.shape[0] != P.shape[2] or 0 in P.shape:
        raise InputError(f"T has shape {P.shape}, not (S, A, S); ravi.importers.mdptoolbox takes (A, S, S)")
    S, A, _ = P.shape
    if r.shape not in ((S,), (S, A), (S, A, S)):
        raise InputError(f"R has shape {r.shape}, not (S,) = ({S},), (S, A) = ({S}, {A}) or (S, A, S)")
    x, a, y = np.nonzero(P)
    earned = np.broadcast_to(r.reshape(*r.shape, *(1,) * (3 - r.ndim)), P.shape)[x, a, y]
    return mdp_of_entries((x, a, y, P[x, a, y], earned), S, A, discount, initial, name=name, renormalise=renormalise)


def colosseum(mdp: Any, discount: float) -> Imported:
    """A continuous MDP of Colosseum (`colosseum.mdp.BaseMDP`): its kernel, mean rewards and first states."""
    missing = [
        each for each in ("transition_matrix_and_rewards", "starting_state_distribution") if not hasattr(mdp, each)
    ]
    if missing:
        raise InputError(f"{validation.shown(mdp)} is not an MDP of Colosseum: it has no {', '.join(missing)}")
    T, R = mdp.transition_matrix_and_rewards
    return tables(T, R, discount, initial=np.asarray(mdp.starting_state_distribution, float), name=type(mdp).__name__,
                  renormalise=True)  # fmt: skip
