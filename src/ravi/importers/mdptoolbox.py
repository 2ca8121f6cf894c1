"""pymdptoolbox's `(P, R)`: A matrices of transitions, one per action, and rewards by state, pair or transition."""

from typing import Any

import numpy as np

from ravi import validation
from ravi.importers.imported import Entries, Imported, imported
from ravi.validation import InputError


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
    entries = Entries(*map(np.concatenate, zip(*parts, strict=True)))
    return imported(entries, S, A, discount, initial, name=name, pairs=np.ones((S, A), bool))


def _matrix(matrix: Any, label: str) -> Any:
    made = matrix.tocsr() if hasattr(matrix, "tocsr") else validation.finite(matrix, label)
    if len(made.shape) != 2:
        raise InputError(f"{label} has shape {made.shape}, not (S, S)")
    return made


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
