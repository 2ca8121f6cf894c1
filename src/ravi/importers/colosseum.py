"""Tables by state, action and successor: Colosseum's MDPs, and (T, R) as papers and benchmarks keep them."""

from typing import Any

import numpy as np

from ravi import validation
from ravi.importers.imported import Entries, Imported, imported
from ravi.validation import InputError


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
    return imported(Entries(x, a, y, P[x, a, y], earned), S, A, discount, initial, name=name, renormalise=renormalise)


def colosseum(mdp: Any, discount: float) -> Imported:
    """A continuous MDP of Colosseum (`colosseum.mdp.BaseMDP`): its kernel, mean rewards and first states."""
    missing = [
        each for each in ("transition_matrix_and_rewards", "starting_state_distribution") if not hasattr(mdp, each)
    ]
    if missing:
        raise InputError(f"{validation.shown(mdp)} is no MDP of Colosseum: it has no {', '.join(missing)}")
    T, R = mdp.transition_matrix_and_rewards
    return tables(T, R, discount, initial=np.asarray(mdp.starting_state_distribution, float), name=type(mdp).__name__,
                  renormalise=True)  # fmt: skip
