"""Is this input what it claims to be? Every border of the library asks here; every error names the entry."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ravi.core import MDP, Problem

SUM_TOLERANCE = 1e-9  # a row of float64 probabilities that was normalised once is within about 1e-16 * B
ENUMERATED = 12  # feature bounds are exact, by enumeration of {0, 1}^B, up to this many successors


LEAST, MOST = 1e-307, 1e308  # of a positive number: beyond, float64 loses digits, and then the number
MOST_SEEDS = 10**6  # of one run
LEAST_DELTA = 1e-100  # of a failure probability: X A T / delta and the like are finite


class InputError(ValueError):
    """Input that is wrong; the message says what and where."""


class StreamError(InputError):
    """A stream gave what it must not give; the message says at which play, and what."""


def at(name: str, index: Iterable[Any]) -> str:
    """`transitions[3, 1]`: how errors point to an entry."""
    inside = ", ".join(str(int(i)) for i in index)
    return f"{name}[{inside}]" if inside else name


def first(mask: np.ndarray) -> tuple[int, ...]:
    """The index of the first true entry."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def number(value: Any, name: str) -> float:
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {value!r}, not a number") from None
    if not math.isfinite(result):
        raise InputError(f"{name} is {result}, not a finite number")
    return result


def positive(value: Any, name: str) -> float:
    result = number(value, name)
    if result <= 0:
        raise InputError(f"{name} is {result:g}; it must be positive")
    return _in_reach(result, name, LEAST)


def nonnegative(value: Any, name: str) -> float:
    result = number(value, name)
    if result < 0:
        raise InputError(f"{name} is {result:g}; it must not be negative")
    return _in_reach(result, name, 0.0)


def _in_reach(value: float, name: str, least: float) -> float:
    if value < least:
        raise InputError(f"{name} is {value:g}; it must be at least {least:g}")
    if value > MOST:
        raise InputError(f"{name} is {value:g}; it must be at most {MOST:g}")
    return value


def derived(formula: Callable[[], float], name: str, **options: float | None) -> float:
    """A number that is computed from options; where it is not finite, the error names them."""
    try:
        result = float(formula())
    except (OverflowError, ZeroDivisionError):
        result = math.inf
    if not math.isfinite(result):
        given = " and ".join(f"{option} = {float(value):g}" for option, value in options.items() if value is not None)
        raise InputError(f"{name} is not a finite number with {given}")
    return result


def whole(value: Any, name: str, least: int = 1, most: int = 2**62) -> int:
    """A whole number given as int, as a float such as 1e6, or as a text of either; to the last digit."""
    try:
        result = int(value) if isinstance(value, (str, int, np.integer)) else None
    except ValueError:
        result = None
    if result is None:
        given = number(value, name)
        if given != int(given):
            raise InputError(f"{name} is {given:g}, not a whole number")
        result = int(given)
    if not least <= result <= most:
        where = f"at least {least}" if result < least else f"at most {most}"
        raise InputError(f"{name} is {result}; it must be {where}")
    return result


def probability(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    result = number(value, name)
    if not 0 < result < 1:
        raise InputError(f"{name} is {result:g}; it must lie strictly between 0 and 1")
    return _in_reach(result, name, LEAST)


def delta(value: Any, T: int) -> float:
    """The failure probability of a guarantee: 1/T unless given."""
    return 1 / T if value is None else _in_reach(probability(value, "delta"), "delta", LEAST_DELTA)


def step_size(eta: float | None, step_scale: float, published: float) -> float:
    """eta, `published` unless given, times `step_scale`."""
    step = published if eta is None else positive(eta, "eta")
    return positive(step * positive(step_scale, "step_scale"), "step_scale * eta")


def one_of(value: Any, known: Iterable[str], name: str) -> str:
    """One of a few words."""
    words = list(known)
    if value not in words:
        raise InputError(f"{name} is {value!r}, not one of {', '.join(words)}.{did_you_mean(str(value), words)}")
    return str(value)


def steps(value: Any) -> int:
    """T, the number of steps; counts are 32-bit."""
    return whole(value, "steps (T)", 1, 2**31 - 2)


def seeds(value: Any, name: str = "seeds") -> list[int]:
    """Which seeds: 64 is 0 to 63; the text 5-8 is 5, 6, 7, 8, and 1,7,9 are these, as is a list of them."""
    chosen: list[int] = []
    if isinstance(value, str) and ("," in value or "-" in value):
        for part in value.split(","):
            low, dash, high = part.partition("-")
            first = whole(low, name, 0)
            chosen += range(first, (whole(high, name, first, first + MOST_SEEDS) if dash else first) + 1)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        chosen = [whole(seed, at(name, [i]), 0) for i, seed in enumerate(value)]
    else:
        chosen = list(range(whole(value, name, 1, MOST_SEEDS)))
    if not chosen:
        raise InputError(f"{name} is empty; at least one seed is needed")
    if len(set(chosen)) < len(chosen):
        twice = next(seed for seed, times in Counter(chosen).items() if times > 1)
        raise InputError(f"{name} names seed {twice} twice")
    return chosen


def finite(value: Any, name: str) -> np.ndarray:
    """A float64 array without nan or inf."""
    try:
        array = np.asarray(value)
        array = array if np.iscomplexobj(array) else array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is not an array of numbers") from None
    if np.iscomplexobj(array):
        raise InputError(f"{name} holds complex numbers")
    if not np.isfinite(array).all():
        index = first(~np.isfinite(array))
        raise InputError(f"{at(name, index)} is {array[index]}, not a finite number")
    return array


def shaped(array: np.ndarray, shape: tuple[int, ...], name: str, meaning: str) -> np.ndarray:
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, not {meaning} = {shape}")
    return array


def between(array: np.ndarray, low: float, high: float, name: str) -> np.ndarray:
    outside = (array < low) | (array > high)
    if outside.any():
        index = first(outside)
        raise InputError(f"{at(name, index)} is {array[index]:g}, outside [{low:g}, {high:g}]")
    return array


def sums_to_one(array: np.ndarray, name: str) -> np.ndarray:
    """Rows along the last axis are distributions."""
    if (array < 0).any():
        index = first(array < 0)
        raise InputError(f"{at(name, index)} is {array[index]:g}, a negative probability")
    total = array.sum(-1)
    wrong = np.abs(total - 1) > SUM_TOLERANCE
    if wrong.any():
        index = first(np.atleast_1d(wrong))
        where = at(name, index) if array.ndim > 1 else name
        raise InputError(f"{where} sums to {np.atleast_1d(total)[index]:.10g}, not 1")
    return array


def sealed(array: np.ndarray) -> np.ndarray:
    """A contiguous array of our own that nobody can write into."""
    array = np.array(array, order="C", copy=True)
    array.setflags(write=False)
    return array


def distribution(initial: Any, states: int, name: str = "initial") -> np.ndarray:
    """nu_0 from a vector, or from the one state that it is concentrated on."""
    if isinstance(initial, (int, np.integer)) and not isinstance(initial, bool):
        if not 0 <= initial < states:
            raise InputError(f"{name} is state {initial}, but states are 0 to {states - 1}")
        return np.eye(1, states, int(initial))[0]
    array = finite(initial, name)
    return sums_to_one(shaped(array, (states,), name, "(X,)"), name)


def policy(value: Any, problem: Problem, name: str = "policy", *, interior: bool = False) -> np.ndarray:
    """A policy (X, A) or a batch (n, X, A) whose rows sum to one; `interior`: without zeros."""
    array = finite(value, name)
    shape = (problem.states, problem.actions)
    if array.ndim not in (2, 3) or array.shape[-2:] != shape:
        raise InputError(f"{name} has shape {array.shape}, not (X, A) = {shape} or a batch (n, X, A)")
    sums_to_one(array, name)
    if interior and (array == 0).any():
        raise InputError(f"{at(name, first(array == 0))} is 0; every action needs a positive probability")
    return array


def problem(self: Problem) -> dict[str, Any]:
    """The fields of a problem, checked, in the types that the library computes with."""
    discount = probability(self.discount, "discount")
    rewards = finite(self.rewards, "rewards")
    if rewards.ndim != 2 or 0 in rewards.shape:
        raise InputError(f"rewards has shape {rewards.shape}; it must be (X, A) with X and A at least 1")
    between(rewards, 0, 1, "rewards")
    X, A = rewards.shape
    initial = distribution(self.initial, X)

    try:
        successors = np.asarray(self.successors)
    except ValueError:
        raise InputError("successors is not an array of numbers") from None
    if not np.issubdtype(successors.dtype, np.integer):
        raise InputError(f"successors holds {successors.dtype}, not whole numbers")
    if successors.ndim != 3 or successors.shape[:2] != (X, A) or successors.shape[2] < 1:
        raise InputError(f"successors has shape {successors.shape}, not (X, A, B) = ({X}, {A}, B)")
    outside = (successors < 0) | (successors >= X)
    if outside.any():
        index = first(outside)
        raise InputError(f"{at('successors', index)} is {successors[index]}, but states are 0 to {X - 1}")
    ordered = np.sort(successors, axis=-1)
    twice = ordered[..., 1:] == ordered[..., :-1]
    if twice.any():
        index = first(twice)
        raise InputError(f"{at('successors', index[:2])} names state {ordered[index]} twice")
    if not (ordered == successors).all():
        raise InputError(
            f"{at('successors', first((ordered != successors).any(-1)))} is not in ascending order; "
            "MDP.from_dense and MDP.from_sparse put successors in order"
        )

    fields: dict[str, Any] = {
        "discount": discount,
        "rewards": sealed(rewards),
        "successors": sealed(successors.astype(np.int32)),
        "initial": sealed(initial),
    }
    if not isinstance(self.name, str):
        raise InputError(f"name is {self.name!r}, not a text")
    fields["units"] = units(self.units)
    if self.pair_features is not None:
        fields["pair_features"] = sealed(pair_features(self.pair_features, X, A))
    if self.features is None:
        for bound in ("parameter_bound", "feature_bound"):
            if getattr(self, bound) is not None:
                raise InputError(f"{bound} is given without features")
        return fields
    features = finite(self.features, "features")
    if features.ndim != 4 or features.shape[:3] != successors.shape or features.shape[3] < 1:
        raise InputError(f"features has shape {features.shape}, not (X, A, B, D) = {(*successors.shape, 'D')}")
    fields["features"] = sealed(features)
    fields["feature_bound"] = feature_bound(features, self.feature_bound)
    if self.parameter_bound is not None:
        fields["parameter_bound"] = positive(self.parameter_bound, "parameter_bound")
    return fields


def units(value: Any, name: str = "units") -> tuple[float, float]:
    """Two rewards, the least and the largest, in the user's units."""
    low, high = shaped(finite(value, name), (2,), name, "(low, high)").tolist()
    if low >= high:
        raise InputError(f"{name} is {low:g} to {high:g}: the least reward must be below the largest")
    if not math.isfinite(high - low):
        raise InputError(f"{name} is {low:g} to {high:g}, a range that is not a finite number")
    return low, high


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
    fields: dict[str, Any] = {"transitions": sealed(transitions)}
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
