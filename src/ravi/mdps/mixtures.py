"""Garnets, which are random MDPs with b successors per pair, and mixtures of simulators.

Archibald, McKinnon and Thomas (1995), On the generation of Markov decision processes; the name is Bhatnagar, Sutton,
Ghavamzadeh and Lee's (2009). For each pair (x, a): b distinct successors, uniformly without replacement; their
probabilities are the spacings of b - 1 uniforms on [0, 1]. r(x, a) = U 1{U' > 1/2}. b = 1 is deterministic, b = X
dense. An instance is its seed's: built from sorts, products and differences of a fixed stream (`building.uniforms`), it
has the same bits everywhere.

A mixture is P = sum_i theta_i P_i, with the P_i known and theta hidden: the linear combinations of Modi, Jiang, Tewari
and Singh (2020), Sample complexity of reinforcement learning using linearly combined model ensembles: psi_i = P_i on
the union of the supports, theta on the simplex. ||theta|| <= 1 and phi_V(x, a) = ((P_1 V)(x, a), ..., (P_d V)(x, a))
lies in [0, H]^d: B_theta = 1, B_phi = sqrt(d), attained at V = H.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, overload

import numpy as np

from ravi import validation
from ravi.core import MDP, Problem
from ravi.mdps.building import instance_name, uniforms
from ravi.mdps.simulators import Kernel, of_function, of_numbers
from ravi.mdps.tables import support
from ravi.validation import InputError, require_table

STARTS = ("uniform", "first")
COMPARED = 32  # up to this many successors, a draw is compared with those before it; beyond, it is looked up
TABLE = 2**24  # entries of that look-up table at a time


def garnet(
    states: int, actions: int, branching: int, seed: int = 0, discount: float = 0.95, start: str = "uniform"
) -> MDP:
    """Each pair of a random MDP has b random successors; `start` is "uniform" or the "first" state."""
    X, A, b = sizes(states, actions, branching)
    validation.one_of(start, STARTS, "start")
    seed = validation.whole(seed, "seed", 0)
    draw = uniforms(seed)
    name = instance_name("garnet", X, A, b, seed=(seed, 0), start=(start, "uniform"))
    require_table(name, "states, actions or branching", X, A, b, scattered=False)
    successors, P = garnet_kernel(draw, X, A, b)
    return MDP(
        rewards=garnet_rewards(draw, X, A), successors=successors, transitions=P,
        initial=np.full(X, 1 / X) if start == "uniform" else np.eye(1, X)[0], discount=discount, name=name,
    )  # fmt: skip


def sizes(states: int, actions: int, branching: int) -> tuple[int, int, int]:
    """X, A and b <= X, checked."""
    X = validation.whole(states, "states")
    return X, validation.whole(actions, "actions", 1), validation.whole(branching, "branching", 1, X)


def garnet_kernel(draw: Callable[..., np.ndarray], X: int, A: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """Successors, ascending, and their probabilities, both (X, A, b)."""
    successors = np.sort(distinct(draw(X * A, b), X), axis=-1).astype(np.int32)
    cuts = np.zeros((X * A, b + 1))
    cuts[:, 1:b] = np.sort(draw(X * A, b - 1), axis=-1)
    cuts[:, b] = 1
    return successors.reshape(X, A, b), np.diff(cuts).reshape(X, A, b)


def garnet_rewards(draw: Callable[..., np.ndarray], X: int, A: int) -> np.ndarray:
    """U 1{U' > 1/2}, (X, A)."""
    return draw(X, A) * (draw(X, A) > 0.5)


def distinct(u: np.ndarray, X: int) -> np.ndarray:
    """b distinct numbers below X from each row of uniforms (rows, b), every set equally likely: Floyd's method.

    For j = X - b, ..., X - 1 draw t uniformly from 0, ..., j and take it, or j where t is taken already.
    """
    rows, b = u.shape
    chosen = np.empty((rows, b), dtype=np.int64)
    if b <= COMPARED:
        for i, j in enumerate(range(X - b, X)):
            t = (u[:, i] * (j + 1)).astype(np.int64)
            chosen[:, i] = np.where((chosen[:, :i] == t[:, None]).any(axis=1), j, t)
        return chosen
    block = max(1, TABLE // X)
    taken = np.zeros((min(block, rows), X), dtype=bool)
    for begin in range(0, rows, block):
        part = chosen[begin : begin + block]
        row = np.arange(len(part))
        for i, j in enumerate(range(X - b, X)):
            t = (u[begin : begin + block, i] * (j + 1)).astype(np.int64)
            part[:, i] = np.where(taken[row, t], j, t)
            taken[row, part[:, i]] = True
        taken[row[:, None], part] = False
    return chosen


MOST = 10**6  # simulators
FIELDS = ("rewards", "discount", "initial", "units")  # by simulators that are MDPs


@overload
def ensemble(
    simulators: Iterable[Any], weights: None = None, *, rewards: Any = None, discount: float | None = None,
    initial: Any = None, states: int | None = None, actions: int | None = None,
    units: tuple[float, float] | None = None, name: str = "ensemble",
) -> Problem: ...  # fmt: skip


@overload
def ensemble(
    simulators: Iterable[Any], weights: Any, *, rewards: Any = None, discount: float | None = None,
    initial: Any = None, states: int | None = None, actions: int | None = None,
    units: tuple[float, float] | None = None, name: str = "ensemble",
) -> MDP: ...  # fmt: skip


def ensemble(
    simulators: Iterable[Any],
    weights: Any = None,
    *,
    rewards: Any = None,
    discount: float | None = None,
    initial: Any = None,
    states: int | None = None,
    actions: int | None = None,
    units: tuple[float, float] | None = None,
    name: str = "ensemble",
) -> Problem:
    """The mixture of simulators that differ only in their kernels.

    A simulator is an MDP; an array P[x, a, x']; sparse matrices, as `MDP.from_sparse` takes them; a table P[x][a] =
    [(p, y, ...), ...] without terminations, whose rewards are not read; or a function (x, a) -> {y: p}. Kinds may be
    mixed. Simulators may be equal or linearly dependent: then theta is not unique, but P is, and the regression of a
    learner needs only that.

    weights: theta, or the number of the true simulator; the result is an MDP, which hides theta from its learners.
    Without weights the result is a Problem: what a learner knows if the true dynamics are outside the program.

    rewards, (X, A) or a function (x, a) -> r in [0, 1], discount, initial (nu_0, or one state) and units need not be
    given if an MDP is among the simulators; units are (0, 1) by default. `states` and `actions` are
    needed where there are only functions.

    Parameters
    ----------
    simulators
        The kernels, one after the other, in any of the forms above.
    weights
        theta, the number of the true simulator, or None.
    rewards, discount, initial, states, actions, units
        Of all simulators, as above.
    name
        How it is called.

    Returns
    -------
    MDP where `weights` are given, else Problem

    Examples
    --------
    >>> import ravi
    >>> windy = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.0, 1.0]]]  # P[x][a][x']
    >>> calm = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
    >>> given = {"rewards": [[0.0, 0.0], [1.0, 1.0]], "discount": 0.9, "initial": 0}
    >>> ravi.ensemble([windy, calm], weights=[0.3, 0.7], **given).dimension  # d
    2
    """
    given = _label(simulators)
    kernels = _kernels(given, rewards, states, actions)
    (X, A), d = kernels[0].shape, len(kernels)
    if callable(rewards):
        rewards = _rewards(rewards, X, A)
    known = {"rewards": rewards, "discount": discount, "initial": initial, "units": units}
    fields = _fields_of(given, known, X)
    successors, place = support(
        np.concatenate([kernel.pair for kernel in kernels]),
        np.concatenate([kernel.successor for kernel in kernels]),
        X * A,
        X,
    )
    require_table(name, "simulators, or their successors", X, A, successors.size // (X * A), d, scattered=False)
    psi = np.zeros((successors.size, d))
    column = np.repeat(np.arange(d), [kernel.value.size for kernel in kernels])  # whose entry it is
    psi[place, column] = np.concatenate([kernel.value for kernel in kernels])
    fields |= {
        "successors": successors.reshape(X, A, -1), "features": psi.reshape(X, A, -1, d), "parameter_bound": 1.0,
        "feature_bound": float(np.sqrt(d)), "name": name,
    }  # fmt: skip
    if weights is None:
        return Problem(**fields)
    if (
        isinstance(weights, (int, np.integer))
        and not isinstance(weights, validation.NO_NUMBER)
        and not 0 <= weights < d
    ):
        raise InputError(f"weights is {validation.shown(weights)}, but simulators are 0 to {d - 1}")
    theta = validation.distribution(weights, d, "weights")
    return MDP(**fields, transitions=fields["features"] @ theta, parameter=theta)


def garnets(
    simulators: int, states: int, actions: int, branching: int, seed: int = 0, discount: float = 0.95, border: int = 0
) -> MDP:
    """The kernel is a mixture of d known Garnet(X, A, b) kernels, whose weights are unknown.

    theta is drawn from Dirichlet(1, ..., 1); there is one reward table, and nu_0 is uniform. The last `border`
    simulators have weight 0: theta is on the border of the simplex, and the rest as before. theta is d exponentials,
    -log of uniforms, normalised: the last digit of a logarithm may differ between machines.
    """
    d = validation.whole(simulators, "simulators", 1)
    X, A, b = sizes(states, actions, branching)
    seed = validation.whole(seed, "seed", 0)
    border = validation.whole(border, "border", 0, d - 1)
    draw, name = uniforms(seed), instance_name("ensemble", d, X, A, b, seed=(seed, 0), border=(border, 0))
    met = max(b, X * -math.expm1(d * math.log1p(-b / X)) if b < X else X)  # successors of a pair, on average
    require_table(name, "simulators, states, actions or branching", X, A, math.ceil(met), d)
    exponentials = -np.log1p(-draw(d))  # of 1 - u, which is never 0
    exponentials[d - border :] = 0
    r = garnet_rewards(draw, X, A)
    mdps = []
    for _ in range(d):
        successors, P = garnet_kernel(draw, X, A, b)
        nu0 = np.full(X, 1 / X)
        mdps.append(MDP(rewards=r, successors=successors, transitions=P, initial=nu0, discount=discount))
    return ensemble(mdps, exponentials / exponentials.sum(), name=name)


def _label(simulators: Any) -> dict[str, Any]:
    """The simulators by the names that errors give them."""
    if isinstance(simulators, (Problem, Mapping, str)) or callable(simulators) or not isinstance(simulators, Iterable):
        raise InputError(f"simulators is one {type(simulators).__name__}; a mixture is of a list of simulators")
    every = validation.several(simulators, "simulators", "a list of simulators")
    given = {f"simulators[{i}]": simulator for i, simulator in enumerate(islice(every, MOST + 1))}
    if not given:
        raise InputError("simulators is empty; a mixture needs at least one")
    if len(given) > MOST:
        raise InputError(f"simulators are more than {MOST}, and so many are the most")
    return given


def _kernels(given: Mapping[str, Any], rewards: Any, states: int | None, actions: int | None) -> list[Kernel]:
    """The kernel of every simulator, all of one shape; functions last, which have no shape of their own."""
    kernels = {label: of_numbers(one, label) for label, one in given.items() if not callable(one)}
    shapes: dict[str, tuple[int, ...]] = {label: kernel.shape for label, kernel in kernels.items()}
    if rewards is not None and not callable(rewards):
        shapes["rewards"] = validation.finite(rewards, "rewards").shape
    shape = _shape(shapes, states, actions)
    kernels |= {label: of_function(one, shape, label) for label, one in given.items() if callable(one)}
    return [kernels[label] for label in given]


def _shape(shapes: Mapping[str, tuple[int, ...]], states: int | None, actions: int | None) -> tuple[int, int]:
    """(X, A), which all agree on."""
    X = None if states is None else validation.whole(states, "states")
    A = None if actions is None else validation.whole(actions, "actions")
    if not shapes:
        if X is None or A is None:
            missing = "states" if X is None else "actions"
            raise InputError(f"{missing} is missing: simulators that are functions do not say how many there are")
        return X, A
    first, shape = next(iter(shapes.items()))
    for label, other in shapes.items():
        if other != shape:
            raise InputError(f"{label} has (X, A) = {other}, but {first} has {shape}")
    if len(shape) != 2:
        raise InputError(f"{first} has shape {shape}, not (X, A)")
    for word, wanted, found in (("states", X, shape[0]), ("actions", A, shape[1])):
        if wanted is not None and wanted != found:
            raise InputError(f"{word} is {wanted}, but {first} has {found}")
    return shape[0], shape[1]


def _rewards(function: Callable[[int, int], Any], X: int, A: int) -> np.ndarray:
    """(X, A) from (x, a) -> r."""
    r = np.empty((X, A))
    for x, a in np.ndindex(X, A):
        r[x, a] = validation.number(function(x, a), f"rewards({x}, {a})")
        if not 0 <= r[x, a] <= 1:
            raise InputError(f"rewards({x}, {a}) is {r[x, a]:g}, outside [0, 1]")
    return r


def _fields_of(given: Mapping[str, Any], known: Mapping[str, Any], X: int) -> dict[str, Any]:
    """Rewards, discount, start and units: as given, or as the first MDP brings them; no MDP may bring others."""
    mdps = {label: one for label, one in given.items() if isinstance(one, MDP)}
    fields: dict[str, Any] = {}
    for word in FIELDS:
        value, source = known[word], "the one given"
        if value is None and mdps:
            source, value = next((label, getattr(one, word)) for label, one in mdps.items())
        if value is None and word == "units":
            value = (0.0, 1.0)
        if value is None:
            raise InputError(f"{word} is missing: none of the simulators is an MDP, which would bring it along")
        if word == "initial":
            value = validation.distribution(value, X)
        for label, one in mdps.items():
            _require_same(word, getattr(one, word), value, label, source)
        fields[word] = value
    return fields


def _require_same(word: str, mine: Any, theirs: Any, label: str, source: str) -> None:
    """An error that names the first difference."""
    mine, theirs = np.asarray(mine), validation.finite(theirs, word)
    if np.array_equal(mine, theirs):
        return
    if mine.shape != theirs.shape:
        raise InputError(f"{word} has shape {theirs.shape}, not that of {label}, {mine.shape}")
    index = validation.first(np.atleast_1d(mine != theirs))
    here, there = np.atleast_1d(mine)[index], np.atleast_1d(theirs)[index]
    where = validation.at(word, index) + " =" if mine.ndim else word
    raise InputError(f"{label} has {where} {here:g}, but {source} has {there:g}")
