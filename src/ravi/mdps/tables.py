"""MDPs from tables: dense, sparse and feature tables, put on their support and in order.

Every way in ends in the same storage: B successors per pair, ascending, with B the largest number that a pair has. A
pair with fewer is padded with the smallest states that it does not lead to, at probability 0. Those lie below B (the k
states that the pair does lead to take at most k places below B), so nothing here is larger than the table itself or
X * A * B.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.validation import InputError, at, first, require_memory

RENORMALISED = 1e-3  # `renormalise` rescales rows that are off by at most this; further off is no rounding
ROUNDING = 1e-12  # <theta, psi> below zero by at most this is zero: psi and theta cancel to a few ulps


def from_dense(
    P: Any, r: Any, discount: float, initial: Any, *, reward_range: Any = None, renormalise: bool = False,
    name: str = "mdp",
) -> MDP:  # fmt: skip
    """See `MDP.from_dense`."""
    more: dict[str, Any] = {"reward_range": reward_range, "renormalise": renormalise, "name": name}
    if hasattr(P, "tocoo") or (isinstance(P, (list, tuple)) and P and hasattr(P[0], "tocoo")):
        return from_sparse(P, r, discount, initial, **more)
    P = validation.finite(P, "P")
    if P.ndim != 3 or P.shape[0] != P.shape[2] or 0 in P.shape:
        turned = P.ndim == 3 and P.shape[1] == P.shape[2]
        hint = "; np.moveaxis(P, 0, 1) makes it of one that is (A, X, X)" if turned else ""
        raise InputError(f"P has shape {P.shape}, not (X, A, X){hint}")
    what, less = f"P of shape {P.shape}", "its size, or take MDP.from_sparse"
    require_memory(P.size, what, less)
    if (P < 0).any():
        index = first(P < 0)
        raise InputError(f"{at('P', index)} is {P[index]:g}, a negative probability")
    X, A, _ = P.shape
    require_memory(24 * int(np.count_nonzero(P)), what, less)
    rows = P.reshape(X * A, X)
    count, where = np.count_nonzero(rows, axis=1), np.nonzero(rows)
    earned = _numbers(r)
    if earned.shape == P.shape:  # r(x, a, x'): what counts is its mean, and the range is that of what can occur
        more["reward_range"] = reward_units(earned[P > 0]) if reward_range is None else reward_range
        earned = (P * earned).sum(-1)
    return _from_entries(count, where[1], rows[where], X, A, earned, discount, initial, **more)


def from_sparse(
    P: Any, r: Any, discount: float, initial: Any, *, reward_range: Any = None, renormalise: bool = False,
    name: str = "mdp",
) -> MDP:  # fmt: skip
    """See `MDP.from_sparse`. Entries that a matrix holds twice are added up, as SciPy reads them."""
    from scipy.sparse import csr_array

    one = hasattr(P, "tocoo")
    if not one and (isinstance(P, np.ndarray) or not isinstance(P, (list, tuple)) or not P):
        raise InputError(f"P is {type(P).__name__}, not a sparse matrix or a sequence of them; from_dense takes arrays")
    matrices = [P] if one else list(P)
    names = ["P"] if one else [f"P[{a}]" for a in range(len(matrices))]
    shape: tuple[int, ...] = getattr(matrices[0], "shape", ())
    X = shape[1] if len(shape) == 2 else 0
    if one and (X < 1 or shape[0] < 1 or shape[0] % X):
        raise InputError(f"P has shape {shape}, not (X * A, X)")
    A = shape[0] // X if one else len(matrices)

    pairs, successors, values = [], [], []
    for a, (matrix, label) in enumerate(zip(matrices, names, strict=True)):
        if not hasattr(matrix, "tocoo"):
            raise InputError(f"{label} is {type(matrix).__name__}, not a sparse matrix")
        if not one and (matrix.shape != (X, X) or X < 1):
            raise InputError(f"{label} has shape {matrix.shape}, not (X, X) = ({X}, {X})")
        coo = matrix.tocoo()
        if not np.issubdtype(coo.dtype, np.number) or np.iscomplexobj(coo.data):
            raise InputError(f"{label} holds {coo.dtype}, not real numbers")
        pairs.append(coo.row if one else coo.row.astype(np.int64) * A + a)
        successors.append(coo.col)
        values.append(coo.data.astype(np.float64))
    n = sum(map(len, values))
    require_memory(64 * n, f"a table of {n:,} entries", "their number")
    entries = np.concatenate(values), (np.concatenate(pairs), np.concatenate(successors))
    table = csr_array(entries, shape=(X * A, X))  # in order, and each entry once
    for wrong, what in ((~np.isfinite(table.data), "not a finite number"), (table.data < 0, "a negative probability")):
        if wrong.any():
            i = int(np.argmax(wrong))
            pair, y = np.searchsorted(table.indptr, i, side="right") - 1, table.indices[i]
            entry = at("P", (pair, y)) if one else at(names[pair % A], (pair // A, y))
            raise InputError(f"{entry} is {table.data[i]:g}, {what}")
    table.eliminate_zeros()
    return _from_entries(
        np.diff(table.indptr), table.indices, table.data, X, A, _numbers(r), discount, initial,
        reward_range=reward_range, renormalise=renormalise, name=name,
    )  # fmt: skip


def from_features(
    features: Any,
    parameter: Any,
    successors: Any,
    rewards: Any,
    discount: float,
    initial: Any,
    *,
    parameter_bound: float | None = None,
    feature_bound: float | None = None,
    name: str = "mdp",
) -> MDP:
    """See `MDP.from_features`."""
    psi, theta = validation.finite(features, "features"), validation.finite(parameter, "parameter")
    if psi.ndim != 4 or 0 in psi.shape:
        raise InputError(f"features has shape {psi.shape}, not (X, A, B, D)")
    validation.check_shape(theta, (psi.shape[3],), "parameter", "(D,)")
    P = psi @ theta  # (X, A, B)
    P[(P < 0) & (P >= -ROUNDING)] = 0
    try:
        validation.sums_to_one(P, "transitions")
    except InputError as error:
        raise InputError(f"features that do not make a kernel: <theta, psi> gives {error}") from None
    r, units = scaled(_numbers(rewards, "rewards"))
    return MDP(
        rewards=r, successors=successors, transitions=P, initial=initial, discount=discount, features=psi,
        parameter=theta, parameter_bound=parameter_bound, feature_bound=feature_bound, name=name, units=units,
    )  # fmt: skip


def from_linear(
    pair_features: Any, measures: Any, rewards: Any, discount: float, initial: Any, *, name: str = "mdp"
) -> MDP:
    """See `MDP.from_linear`."""
    phi, m = validation.finite(pair_features, "pair_features"), validation.finite(measures, "measures")
    if phi.ndim != 3:
        raise InputError(f"pair_features has shape {phi.shape}, not (X, A, D)")
    X, A, D = phi.shape
    validation.check_shape(m, (D, X), "measures", "(D, X)")
    r = validation.finite(rewards, "rewards")
    r = phi @ r if r.ndim == 1 and r.shape == (D,) else validation.check_shape(r, (X, A), "rewards", "(X, A)")
    P = phi @ m
    wrong = (P < -validation.SUM_TOLERANCE) | ~np.isfinite(P)
    if wrong.any():
        index = first(wrong)
        raise InputError(f"<phi, m> gives P{list(map(int, index))} = {P[index]:g}, a negative probability")
    inside = np.clip(r, 0, 1)
    r = inside if np.abs(r - inside).max() <= ROUNDING else r
    top = max(1.0, float(r.max()))  # rewards are scaled, and not shifted: r must stay linear in phi
    return replace(
        from_dense(np.maximum(P, 0), r, discount, initial, reward_range=(0, top)), pair_features=phi, name=name
    )


def support(pair: np.ndarray, successor: np.ndarray, pairs: int, states: int) -> tuple[np.ndarray, np.ndarray]:
    """Where entries (pair, successor) go: the successors (pairs, B), and the place of each entry in them, flat.

    Entries may come in any order, and twice: then both have the same place.
    """
    require_memory(64 * np.size(pair), f"a table of {np.size(pair):,} entries", "their number")
    key, which = np.unique(np.asarray(pair, np.int64) * states + successor, return_inverse=True)
    row, column = np.divmod(key, states)
    rows, own = _pad(np.bincount(row, minlength=pairs), column)
    return rows, np.flatnonzero(own)[which]


def _pad(count: np.ndarray, successor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The successors (pairs, B) of pairs that have `count` of them, in order; and which of those are not padding."""
    pairs, B = len(count), max(1, int(np.max(count, initial=0)))
    what = f"a table of {pairs:,} pairs, of which one has {B:,} successors,"
    require_memory(40 * pairs * B, what, "the number of states, or of successors of that pair")

    short = count < B
    column, n = successor[np.repeat(short, count)], count[short, None]
    held = np.arange(B) < n
    free, low = np.ones_like(held), column < B  # the states below B that a pair does not lead to
    free[np.nonzero(held)[0][low], column[low]] = False
    padding = np.nonzero(free & (np.cumsum(free, axis=1, dtype=np.int32) <= B - n))[1]
    both = np.empty(held.shape, np.int64)
    both[held], both[~held] = 2 * column.astype(np.int64), 2 * padding + 1  # padding is odd
    both.sort(axis=1)

    rows, own = np.empty((pairs, B), np.int32), np.ones((pairs, B), bool)
    rows[short], own[short] = both // 2, both % 2 == 0
    rows[own] = successor
    return rows, own


def scatter(
    entries: Iterable[tuple[Any, Any, Any, Any]], states: int, actions: int, dimension: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Successors (X, A, B) and values on them, from (x, a, x', value): how builders write down their tables.

    x, a and x' are numbers or arrays that broadcast; the value is P(x' | x, a), or with a `dimension` psi(x, a, x').
    Values that meet at the same x' are added up.
    """
    tail = () if dimension is None else (dimension,)
    pairs, successors, values = [], [], []
    for x, a, y, value in entries:
        x, a, y = (part.ravel() for part in np.broadcast_arrays(x, a, y))
        pairs.append(x * actions + a)
        successors.append(y)
        values.append(np.broadcast_to(value, (x.size, *tail)))
    rows, place = support(np.concatenate(pairs), np.concatenate(successors), states * actions, states)
    table = np.zeros((rows.size, *tail))
    np.add.at(table, place, np.concatenate(values))
    shape = (states, actions, rows.shape[1])
    return rows.reshape(shape), table.reshape(*shape, *tail)


def table_of(
    entries: Iterable[tuple[Any, Any, Any, Any]], rewards: np.ndarray, discount: float, initial: Any, **more: Any
) -> MDP:
    """The MDP whose kernel is `scatter` of entries; its rewards are (X, A)."""
    X, A = rewards.shape
    successors, P = scatter(entries, X, A)
    return MDP(rewards=rewards, successors=successors, transitions=P, initial=initial, discount=discount, **more)


def mixture_of(
    entries: Iterable[tuple[Any, Any, Any, Any]], parameter: Any, rewards: np.ndarray, discount: float, initial: Any,
    **more: Any,
) -> MDP:  # fmt: skip
    """The mixture whose features are `scatter` of entries; its rewards are (X, A), its parameter (D,)."""
    X, A = rewards.shape
    successors, psi = scatter(entries, X, A, len(parameter))
    return from_features(psi, parameter, successors, rewards, discount, initial, **more)


def _from_entries(
    count: np.ndarray, successor: np.ndarray, value: np.ndarray, X: int, A: int, r: np.ndarray, discount: float,
    initial: Any, *, reward_range: Any, renormalise: bool, name: str,
) -> MDP:  # fmt: skip
    """The MDP of the non-zero P(successor | pair) = value, in order; of each pair there are `count`."""
    r = (
        np.broadcast_to(r[:, None], (X, A))
        if r.shape == (X,)
        else validation.check_shape(r, (X, A), "r", "(X,) or (X, A)")
    )
    rewards, units = scaled(r, None if reward_range is None else validation.units(reward_range, "reward_range"))
    successors, own = _pad(count, successor)
    P = np.zeros(successors.shape)
    P[own] = value
    return MDP(
        rewards=rewards, successors=successors.reshape(X, A, -1),
        transitions=_normalise(P.reshape(X, A, -1), renormalise), initial=initial, discount=discount, name=name,
        units=units,
    )  # fmt: skip


def _numbers(r: Any, name: str = "r") -> np.ndarray:
    """Rewards as an array, of a sparse matrix too."""
    given = validation.array(r.toarray() if hasattr(r, "tocoo") else r, name)
    if (given == -np.inf).any():
        raise validation.InputError(
            f"{validation.at(name, first(given == -np.inf))} is -inf; an action that a state does not have is given "
            "the row and the reward of one that it has, as ravi.importers.quantecon does for a DiscreteDP"
        )
    return validation.finite(given, name)


def reward_units(rewards: np.ndarray, *, zero: bool = False) -> tuple[float, float]:
    """The rewards that 0 and 1 stand for: 0 and 1 if all rewards lie between them, else the least and the largest.
    zero: a reward of 0 can occur too."""
    low, high = float(np.min(rewards, initial=np.inf)), float(np.max(rewards, initial=-np.inf))
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    if 0 <= low <= high <= 1:
        return 0.0, 1.0
    return (low, high) if low < high else (low, low + 1.0)


def scaled(rewards: np.ndarray, units: tuple[float, float] | None = None) -> tuple[np.ndarray, tuple[float, float]]:
    """Rewards in [0, 1], and what 0 and 1 stand for; those that lie there already are left as they are."""
    low, high = reward_units(rewards) if units is None else units
    validation.between(rewards, low, high, "r")
    if (low, high) == (0.0, 1.0):
        return rewards, (low, high)
    return np.clip((rewards - low) / (high - low), 0.0, 1.0), (low, high)


def _normalise(P: np.ndarray, renormalise: bool) -> np.ndarray:
    """P itself, or with its rows rescaled; an error where a row is off by more than is allowed."""
    renormalise, total = validation.flag(renormalise, "renormalise"), P.sum(-1)
    wrong = np.abs(total - 1) > (RENORMALISED if renormalise else validation.SUM_TOLERANCE)
    if wrong.any():
        index = first(wrong)
        if renormalise:
            hint = f"; renormalise=True rescales rows that are off by at most {RENORMALISED:g}"
        else:
            hint = "; renormalise=True rescales such rows" if abs(total[index] - 1) <= RENORMALISED else ""
        raise InputError(f"{at('transitions', index)} sums to {total[index]:.10g}, not 1{hint}")
    return P / total[..., None] if renormalise else P
