"""Kernels of simulators: an MDP, an array, sparse matrices, a table or a function becomes entries p(y | x, a).

Whatever its form, it is checked here, and every error names the simulator, the pair and the number. A simulator that
only draws becomes a table by m draws for every pair, with an error that is stated (`sampled`):

    P_m(y | x, a) = #{j: y_j = y} / m,   y_j = simulator(x, a, u_j),   u_j uniform on [0, 1)

For all pairs at once, with probability 1 - delta, ||P_m - P||_1 <= sqrt(2 (X ln 2 + ln(X A / delta)) / m) (Weissman et
al. 2003, and a union bound), so |(P_m - P) V| is at most half of that times the span of V. The tables are drawn once:
a mixture of them is a linear mixture, but the truth is one only up to that error.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.building import uniforms
from ravi.mdps.tables import from_dense, from_sparse
from ravi.validation import InputError, require_memory

KINDS = "an MDP, an array P[x, a, x'], sparse matrices, a table P[x][a] = [(p, y), ...] or a function (x, a) -> {y: p}"


class Kernel(NamedTuple):
    """The p(y | x, a) that are not zero, each (pair, y) once."""

    shape: tuple[int, int]  # (X, A)
    pair: np.ndarray  # x A + a    (entries,)
    successor: np.ndarray  # y     (entries,)
    value: np.ndarray  # p         (entries,)


def of_numbers(simulator: Any, label: str) -> Kernel:
    """From all that is not a function: its numbers say how many states and actions there are."""
    if isinstance(simulator, MDP):
        return _of_mdp(simulator)
    if hasattr(simulator, "tocoo"):
        X = simulator.shape[-1]
        return _build(from_sparse, simulator, (X, simulator.shape[0] // max(X, 1)), label)
    if isinstance(simulator, Mapping) or _is_table(simulator):
        return _of_table(simulator, label)
    if isinstance(simulator, (list, tuple)) and simulator and hasattr(simulator[0], "tocoo"):
        return _build(from_sparse, simulator, (simulator[0].shape[-1], len(simulator)), label)
    if isinstance(simulator, (list, tuple)) or hasattr(simulator, "__array__"):
        P = validation.finite(simulator, label)
        return _build(from_dense, P, P.shape[:2], label)
    raise InputError(f"{label} is {type(simulator).__name__}, not {KINDS}")


def of_function(function: Callable[[int, int], Any], shape: tuple[int, int], label: str) -> Kernel:
    """From (x, a) -> {y: p}, which is called once for every pair."""
    require_memory(200 * shape[0] * shape[1], f"{label} on {shape[0]:,} states and {shape[1]:,} actions", "states")

    def rows() -> Iterator[tuple[str, Iterable[tuple[Any, Any]]]]:
        for x, a in np.ndindex(shape):
            here = f"{label}({x}, {a})"
            try:
                row = function(x, a)
            except Exception as error:
                error.add_note(f"in {here}")
                raise
            if not isinstance(row, Mapping):
                raise InputError(f"{here} gives {type(row).__name__}, not {{y: p}}")
            yield here, row.items()

    return _of_rows(rows(), shape)


def _of_mdp(mdp: MDP) -> Kernel:
    P = mdp.transitions.reshape(mdp.states * mdp.actions, -1)
    at = np.nonzero(P)  # pairs and slots
    return Kernel((mdp.states, mdp.actions), at[0], mdp.successors.reshape(P.shape)[at], P[at])


def _build(build: Callable[..., MDP], P: Any, shape: Sequence[int], label: str) -> Kernel:
    """Through an MDP's own way in, and its checks; what is not of the kernel does not matter."""
    try:
        return _of_mdp(build(P, np.zeros(shape), 0.5, 0))
    except InputError as error:
        advice = f"MDP.{build.__name__}(..., renormalise=True)"
        raise InputError(f"{label}: {str(error).replace('renormalise=True', advice)}") from None


def _is_table(simulator: Any) -> bool:
    """Whether P[0][0][0] is (p, y, ...): in an array it is a number."""
    try:
        return isinstance(simulator, (list, tuple)) and (
            isinstance(simulator[0], Mapping) or isinstance(simulator[0][0][0], (list, tuple))
        )
    except (IndexError, TypeError, KeyError):
        return False


def _of_table(table: Any, label: str) -> Kernel:
    """From P[x][a] = [(p, y, ...), ...], dictionaries or lists, without terminations; rewards in it are not read."""
    by_state = _list_values(table, label)
    by_pair = [_list_values(of_x, f"{label}[{x}]") for x, of_x in enumerate(by_state)]
    A = len(by_pair[0])
    for x, of_x in enumerate(by_pair):
        if len(of_x) != A:
            raise InputError(f"{label}[{x}] has {len(of_x)} actions, but {label}[0] has {A}")

    def rows() -> Iterator[tuple[str, Iterable[tuple[Any, Any]]]]:
        for x, a in np.ndindex(len(by_pair), A):
            here = f"{label}[{x}][{a}]"
            yield here, _outcomes(by_pair[x][a], here)

    return _of_rows(rows(), (len(by_pair), A))


def _list_values(part: Any, label: str) -> list[Any]:
    """The values of a table's level by number: a list's, or those of a dictionary with keys 0, 1, ..."""
    if not isinstance(part, (Mapping, list, tuple)) or not len(part):
        what = "empty" if isinstance(part, (Mapping, list, tuple)) else f"{type(part).__name__}, not a dict or a list"
        raise InputError(f"{label} is {what}")
    missing = [key for key in range(len(part)) if isinstance(part, Mapping) and key not in part]
    if missing:
        raise InputError(f"{label} has {len(part)} entries, but none for {missing[0]}; they are numbered from 0")
    return [part[key] for key in range(len(part))]


def _outcomes(row: Any, label: str) -> Iterator[tuple[Any, Any]]:
    if not isinstance(row, (list, tuple)):
        raise InputError(f"{label} is {type(row).__name__}, not a list of (p, y)")
    for i, outcome in enumerate(row):
        if not isinstance(outcome, (list, tuple)) or len(outcome) < 2:
            raise InputError(f"{label}[{i}] is {outcome!r}, not (p, y)")
        if len(outcome) > 3 and outcome[3]:
            raise InputError(
                f"{label}[{i}] is {outcome!r}, a termination: ravi.gymnasium.mdp makes an MDP of an environment's "
                "table, and that is a simulator too"
            )
        yield outcome[1], outcome[0]


def _of_rows(rows: Iterable[tuple[str, Iterable[tuple[Any, Any]]]], shape: tuple[int, int]) -> Kernel:
    """From one row after the other, each with its name, as pairs (y, p); a y that comes twice is added up."""
    pairs: list[int] = []
    successors: list[int] = []
    values: list[float] = []
    for pair, (label, row) in enumerate(rows):
        found: dict[int, float] = {}
        for y, p in row:
            state = state_of(y, shape[0], label)
            found[state] = found.get(state, 0.0) + _chance(p, f"{label}, p({state})")
        total = fsum(found.values())
        if abs(total - 1) > validation.SUM_TOLERANCE:
            raise InputError(f"{label} sums to {total:.10g}, not 1")
        pairs += [pair] * len(found)
        successors += found.keys()
        values += found.values()
    value = np.array(values)
    kept = value != 0
    return Kernel(shape, np.array(pairs)[kept], np.array(successors)[kept], value[kept])


def state_of(y: Any, states: int, label: str) -> int:
    """A successor as the number of a state."""
    try:
        state = operator.index(y)
    except TypeError:
        raise InputError(f"{label} leads to {y!r}, not to the number of a state") from None
    if isinstance(y, (bool, np.bool_)) or not 0 <= state < states:
        raise InputError(f"{label} leads to state {y}, but states are 0 to {states - 1}")
    return state


def _chance(p: Any, label: str) -> float:
    """A probability as a float; a Fraction, too."""
    value = validation.number(p, label)
    if value < 0:
        raise InputError(f"{label} is {value:g}, a negative probability")
    return value


class Sampled(NamedTuple):
    """A simulator's table, for `ravi.ensemble`, and how far from the truth it may be."""

    table: list[list[list[tuple[float, int]]]]  # P[x][a] = [(p, y), ...]
    error: float  # ||P_m - P||_1 of every pair, at most, with probability 1 - delta


def sampled(
    simulator: Callable[[int, int, float], int], states: int, actions: int, draws: int, *, seed: int = 0,
    delta: float = 0.01,
) -> Sampled:  # fmt: skip
    """The table of (x, a, u) -> y by `draws` draws for every pair. Give every simulator a seed of its own."""
    X, A, m = validation.whole(states, "states"), validation.whole(actions, "actions"), validation.whole(draws, "draws")
    delta = validation.probability(delta, "delta")
    if not callable(simulator):
        raise validation.InputError(f"simulator is {validation.shown(simulator)}, not a function (x, a, u) -> y")
    size = 200 * X * A * min(m, X) + 100 * m  # lists of Python's own numbers
    require_memory(size, f"a table of {X:,} states, {A:,} actions and {m:,} draws", "states, actions or draws")
    numbers = uniforms(seed)
    table = []
    for x in range(X):
        of_x = []
        for a in range(A):
            label = f"simulator({x}, {a}, u)"
            found = [state_of(simulator(x, a, float(u)), X, label) for u in numbers(m)]
            y, count = np.unique(found, return_counts=True)
            of_x.append([(int(n) / m, int(one)) for one, n in zip(y, count, strict=True)])
        table.append(of_x)
    return Sampled(table, sqrt(2 * (X * log(2) + log(X * A / delta)) / m))
