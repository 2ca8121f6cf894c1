"""Is this an MDP, or a problem? Every array against the others: shapes, ranges, kernels, features and their bounds.

And is there room for it? Who makes tables asks `room` before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ravi import validation
from ravi.runtime import memory
from ravi.validation import SUM_TOLERANCE, InputError, at, finite, first, positive, sealed, shaped, shown, sums_to_one

if TYPE_CHECKING:
    from ravi.core import MDP, Problem

MOST_STATES = 2**31 - 1  # successors are 32-bit
# Bytes at the peak of making an MDP: for a pair; for each of its successors, in order or to be put in order; for each
# feature of a successor.
PAIR, ORDERED, SCATTERED, FEATURE = 40, 36, 90, 40
ENUMERATED = 12  # feature bounds are exact, by enumeration of {0, 1}^B, up to this many successors


def room(name: str, lower: str, X: int, A: int, B: int, D: int = 0, *, scattered: bool = True) -> None:
    """An error, before anything is taken, where the tables of an MDP of this size are too large.

    scattered: its entries come in any order, and are sorted.
    """
    if not isinstance(name, str):
        raise InputError(f"name is {shown(name)}, not a text")
    if X > MOST_STATES:
        raise InputError(f"{name} would have {shown(X)} states, and {MOST_STATES} are the most: lower {lower}")
    memory.needed(_peak(X, A, B, D, SCATTERED if scattered else ORDERED), f"the tables of {name}", lower)


def _peak(X: int, A: int, B: int, D: int, successor: int = ORDERED) -> int:
    return X * A * (PAIR + B * (successor + FEATURE * D))


def size(problem: Problem) -> int:
    """Bytes of all its arrays."""
    return sum(value.nbytes for value in vars(problem).values() if isinstance(value, np.ndarray))


def problem(self: Problem) -> dict[str, Any]:
    """The fields of a problem, checked, in the types that the library computes with."""
    discount = validation.probability(self.discount, "discount")
    rewards = finite(self.rewards, "rewards")
    if rewards.ndim != 2 or 0 in rewards.shape:
        raise InputError(f"rewards has shape {rewards.shape}; it must be (X, A) with X and A at least 1")
    X, A = rewards.shape
    memory.needed(PAIR * X * A, f"rewards of shape {rewards.shape}", "states or actions")
    validation.between(rewards, 0, 1, "rewards")
    initial = validation.distribution(self.initial, X)

    successors = validation.array(self.successors, "successors")
    if not np.issubdtype(successors.dtype, np.integer):
        raise InputError(f"successors holds {successors.dtype}, not whole numbers")
    if successors.ndim != 3 or successors.shape[:2] != (X, A) or successors.shape[2] < 1:
        raise InputError(f"successors has shape {successors.shape}, not (X, A, B) = ({X}, {A}, B)")
    if not isinstance(self.name, str):
        raise InputError(f"name is {shown(self.name)}, not a text")
    features = None if self.features is None else finite(self.features, "features")
    D = 0 if features is None or features.ndim != 4 else features.shape[3]
    copies = _peak(X, A, successors.shape[2], D) // 2  # what is given is taken already
    memory.needed(copies, f"a copy of the tables of {self.name}", "states, actions or successors")
    outside = (successors < 0) | (successors >= X)
    if outside.any():
        index = first(outside)
        raise InputError(f"{at('successors', index)} is {successors[index]}, but states are 0 to {X - 1}")
    if not (successors[..., 1:] > successors[..., :-1]).all():
        ordered = np.sort(successors, axis=-1)
        twice = ordered[..., 1:] == ordered[..., :-1]
        if twice.any():
            index = first(twice)
            raise InputError(f"{at('successors', index[:2])} names state {ordered[index]} twice")
        raise InputError(
            f"{at('successors', first((ordered != successors).any(-1)))} is not in ascending order; "
            "MDP.from_dense and MDP.from_sparse put successors in order"
        )

    fields: dict[str, Any] = {
        "discount": discount,
        "rewards": sealed(rewards),
        "successors": sealed(successors.astype(np.int32)),
        "support": support(self.support, successors.shape),
        "initial": sealed(initial),
    }
    fields["units"] = validation.units(self.units)
    if self.pair_features is not None:
        fields["pair_features"] = sealed(pair_features(self.pair_features, X, A))
    if features is None:
        for bound in ("parameter_bound", "feature_bound"):
            if getattr(self, bound) is not None:
                raise InputError(f"{bound} is given without features")
        return fields
    if features.ndim != 4 or features.shape[:3] != successors.shape or features.shape[3] < 1:
        raise InputError(f"features has shape {features.shape}, not (X, A, B, D) = {(*successors.shape, 'D')}")
    fields["features"] = sealed(features)
    fields["feature_bound"] = feature_bound(features, self.feature_bound)
    if self.parameter_bound is not None:
        fields["parameter_bound"] = positive(self.parameter_bound, "parameter_bound")
    return fields


def support(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Which of the successors have a positive probability: all of them unless that is given."""
    if value is None:
        return np.broadcast_to(np.True_, shape)
    array = validation.array(value, "support")
    if array.dtype != np.bool_:
        raise InputError(f"support holds {array.dtype}, not True or False")
    shaped(array, shape, "support", "(X, A, B)")
    empty = np.all(~array, axis=-1)
    if empty.any():
        raise InputError(f"{at('support', first(empty))} has no successor")
    return sealed(array)


def pair_features(value: Any, X: int, A: int) -> np.ndarray:
    """phi(x, a) with ||phi(x, a)||_2 <= 1, which the constants of linear MDPs assume."""
    array = finite(value, "pair_features")
    if array.ndim != 3 or array.shape[:2] != (X, A) or array.shape[2] < 1:
        raise InputError(f"pair_features has shape {array.shape}, not (X, A, D) = ({X}, {A}, D)")
    norms = np.linalg.norm(array, axis=-1)
    if (norms > 1 + SUM_TOLERANCE).any():
        index = first(norms > 1 + SUM_TOLERANCE)
        raise InputError(f"{at('pair_features', index)} has norm {norms[index]:g}; in a linear MDP ||phi(x, a)|| <= 1")
    return array


def linear(phi: np.ndarray, successors: np.ndarray, transitions: np.ndarray, rewards: np.ndarray) -> None:
    """P(x' | x, a) and r(x, a) are linear in phi(x, a)."""
    X, A, _ = successors.shape
    D = phi.shape[2]
    size = 8 * (X * A * (4 * (X + 1) + 3 * D) + 2 * D * (X + 1))
    memory.needed(size, f"to hold pair_features ({X}, {A}, {D}) against their kernel", "states or dimensions")
    P = np.zeros((X, A, X))
    np.put_along_axis(P, successors.astype(np.int64), transitions, axis=2)
    rows, wanted = phi.reshape(X * A, -1), np.concatenate([P, rewards[..., None]], axis=2).reshape(X * A, X + 1)
    missed = np.abs(rows @ np.linalg.lstsq(rows, wanted, rcond=None)[0] - wanted).reshape(X, A, X + 1).max(-1)
    if missed.max() > SUM_TOLERANCE:
        index = first(missed == missed.max())
        raise InputError(
            f"pair_features do not make this MDP linear: at {at('pair_features', index)} no m and theta give its "
            f"probabilities and reward to better than {missed.max():.2g}"
        )


def kernel(self: MDP) -> dict[str, Any]:
    """P is a kernel, and where there are features, it is theirs: P = <theta, psi> with ||theta|| <= B_theta."""
    transitions = finite(self.transitions, "transitions")
    shaped(transitions, self.successors.shape, "transitions", "(X, A, B)")
    sums_to_one(transitions, "transitions")
    fields: dict[str, Any] = {"transitions": sealed(transitions), "support": sealed(transitions > 0)}
    if self.pair_features is not None:
        linear(self.pair_features, self.successors, transitions, self.rewards)
    if self.features is None:
        if self.parameter is not None:
            raise InputError("parameter is given without features")
        return fields
    if self.parameter is None:
        raise InputError("features are given without the parameter theta that makes P = <theta, psi>")
    theta = shaped(finite(self.parameter, "parameter"), (self.dimension,), "parameter", "(D,)")
    mixed = self.features @ theta
    wrong = np.abs(mixed - transitions) > SUM_TOLERANCE
    if wrong.any():
        index = first(wrong)
        raise InputError(
            f"features and parameter give {at('transitions', index)} = {mixed[index]:g}, not {transitions[index]:g}: "
            "they do not make this kernel"
        )
    norm = float(np.linalg.norm(theta))
    declared = self.parameter_bound
    if declared is not None and declared < norm * (1 - SUM_TOLERANCE):
        raise InputError(f"parameter_bound is {declared:g}, but the parameter has norm {norm:g} (Assumption 5.3)")
    return fields | {"parameter": sealed(theta), "parameter_bound": norm if declared is None else declared}


def policy(value: Any, problem: Problem, name: str = "policy", *, interior: bool = False) -> np.ndarray:
    """A policy (X, A) or a batch (n, X, A) whose rows sum to one; `interior`: without zeros."""
    array = finite(value, name)
    shape = (problem.states, problem.actions)
    if array.ndim not in (2, 3) or array.shape[-2:] != shape:
        raise InputError(f"{name} has shape {array.shape}, not (X, A) = {shape} or a batch (n, X, A)")
    memory.needed(32 * array.size, f"{name} of shape {array.shape}", "their number")
    sums_to_one(array, name)
    if interior and (array == 0).any():
        raise InputError(f"{at(name, first(array == 0))} is 0; every action needs a positive probability")
    return array


def feature_bound(features: np.ndarray, declared: float | None = None) -> float:
    """B_phi >= max over (x, a) and V in [0, 1]^X of ||sum_x' psi(x, a, x') V(x')||  (Assumption 5.3).

    The norm is convex in V, so its maximum is at a vertex: exact for up to twelve successors by enumeration, and for
    features of one sign (where V = 1 or coordinatewise extremes meet). Beyond, each coordinate is maximised on its
    own, which can only be too large. A declared bound is checked against the exact value or, where that is out of
    reach, against vertices that a few ascent steps find.
    """
    X, A, B, D = features.shape
    rows = features.reshape(X * A, B, D)
    plus, minus = np.maximum(rows, 0).sum(1), np.maximum(-rows, 0).sum(1)  # (XA, D)
    ceiling = np.linalg.norm(np.maximum(plus, minus), axis=-1)  # each coordinate at its own extreme
    if B <= ENUMERATED:
        mixed = plus.any(1) & minus.any(1)  # where all entries have one sign, V = 1 attains the ceiling
        some, inner = rows[mixed], np.zeros(int(mixed.sum()))
        for vertex in range(1, 2**B if mixed.any() else 1):
            chosen = [j for j in range(B) if vertex >> j & 1]
            np.maximum(inner, np.linalg.norm(some[:, chosen].sum(1), axis=-1), out=inner)
        ceiling[mixed] = inner
        reached = ceiling
    else:
        reached = np.linalg.norm(rows.sum(1), axis=-1)
        V = np.ones((X * A, B))
        for _ in range(8):  # V <- vertex that maximises <V, psi phi_V>
            phi = np.einsum("pbd,pb->pd", rows, V)
            V = (np.einsum("pbd,pd->pb", rows, phi) > 0).astype(float)
            np.maximum(reached, np.linalg.norm(np.einsum("pbd,pb->pd", rows, V), axis=-1), out=reached)
    if declared is None:
        return float(ceiling.max())
    value = positive(declared, "feature_bound")
    if value < reached.max() * (1 - SUM_TOLERANCE):
        pair = np.unravel_index(int(reached.argmax()), (X, A))
        raise InputError(
            f"feature_bound is {value:g}, but at {at('features', pair)} some V in [0, H]^X has "
            f"||phi_V|| = {reached.max():g} H (Assumption 5.3)"
        )
    return value
