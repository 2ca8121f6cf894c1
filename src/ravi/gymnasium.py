"""The MDP of a Gymnasium environment; `make`, the environment of an MDP, is in `ravi.mdps.environments`.

An environment that ships its table, `P[s][a] = [(probability, successor, reward, terminated), ...]`, is read exactly:

    ravi.gymnasium.mdp("FrozenLake-v1", discount=0.99)

Termination is a property of a transition, not of the state that it leads to, and a discounted MDP has none: what it
stands for is a choice. `absorb`: every terminated transition enters one more state, the last one, where every action
stays and earns 0. `restart`: it leads to nu_0. Rewards are shifted and scaled to [0, 1]; `MDP.units` leads back, so
that H * mdp.in_units(optimum) is the discounted return in the environment's units. A time limit is no part of an MDP
either, and is dropped. An environment without a table is learned from by playing: `ravi.learn`.
"""

import math
import re
import warnings
from collections.abc import Iterator
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.building import instance_name
from ravi.mdps.environments import gymnasium_module, inner_of, name_of, open_environment, options_of, value_of
from ravi.mdps.environments import make as make
from ravi.mdps.tables import table_of
from ravi.validation import InputError, require_memory

TERMINATIONS = ("absorb", "restart")
# Wrappers of Gymnasium that leave the problem as it is.
HARMLESS = {
    "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics", "RecordVideo", "RenderCollection",
    "HumanRendering", "AddWhiteNoise", "ObstructView", "TimeLimit",
}  # fmt: skip
# What a wrapper that changes the problem has of its own.
CHANGES = ("step", "reset", "action", "observation", "reward", "action_space", "observation_space", "__getattr__")


class TimeLimitDropped(UserWarning):
    """The environment has a time limit, which its MDP has not."""


class TableEntry(NamedTuple):
    """One entry of a table."""

    state: int
    action: int
    probability: float
    successor: int
    reward: float
    terminated: bool


def mdp(env: Any, discount: float, *, termination: str = "absorb", initial: Any = None, name: str | None = None) -> MDP:
    """The MDP of an environment that ships its table, or of the id of one.

    `initial` is nu_0, or one state, where the environment does not say where it begins (`initial_state_distrib`).
    """
    env = open_environment(env)
    limit = _time_limit(env)
    if limit is not None:
        warnings.warn(
            f"{name_of(env)} is cut off after {limit} steps; its MDP has no time limit", TimeLimitDropped, stacklevel=2
        )
    return _read(env, discount, termination, initial, name)


def by_id(env: str, discount: float, termination: str, options: str) -> MDP:
    """What `ravi.mdp("gymnasium/FrozenLake-v1,discount=0.99,options=map_name:8x8")` builds, without a warning."""
    made = open_environment(env, options_of(options))
    _time_limit(made)
    return _read(made, discount, termination, None, None)


def _read(env: Any, discount: float, termination: str, initial: Any, name: str | None) -> MDP:
    validation.one_of(termination, TERMINATIONS, "termination")
    inner = inner_of(env)
    if getattr(inner, "fickle_passenger", False):
        raise InputError(
            f"{name_of(env)} with fickle_passenger ships a table that does not describe it: its steps depend on "
            "whether the passenger will still change destination. Learn from it by playing: ravi.learn"
        )
    P = getattr(inner, "P", None)
    if P is None:
        raise InputError(f"{name_of(env)} has no table P to be read. Learn from it by playing: ravi.learn")
    X, A = _count(env.observation_space, "observation"), _count(env.action_space, "action")
    entries = [entry for entry in _entries(P, X, A) if entry.probability or not entry.terminated]
    nu0 = _initial(env, initial, X)
    ends = any(entry.terminated for entry in entries)
    absorbing = ends and termination == "absorb"
    units = _units(env, entries, absorbing)
    rewards, start = _rewards(entries, units, X, A, absorbing), np.append(nu0, 0.0) if absorbing else nu0
    called = _called(env, termination) if name is None else name
    return table_of(_led(entries, nu0, X, A, absorbing), rewards, discount, start, name=called, units=units)


def _count(space: Any, what: str) -> int:
    gymnasium = gymnasium_module()
    if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
        raise InputError(f"the {what} space is {space}; a table is read where it is Discrete and starts at 0")
    return int(space.n)


def _entries(P: Any, X: int, A: int) -> Iterator[TableEntry]:
    """Every entry of the table, checked, in its order."""
    _sized(P, X, "P", "states")
    for x in range(X):
        row = _at(P, x, "P", X)
        _sized(row, A, f"P[{x}]", "actions")
        for a in range(A):
            mass = 0.0
            for i, given in enumerate(_listed(_at(row, a, f"P[{x}]", A), f"P[{x}][{a}]")):
                entry = _entry(given, x, a, X, f"P[{x}][{a}][{i}]")
                mass += entry.probability
                yield entry
            if abs(mass - 1) > validation.SUM_TOLERANCE:
                raise InputError(f"P[{x}][{a}] has probabilities that sum to {mass:.10g}, not 1")


def _sized(table: Any, size: int, label: str, what: str) -> None:
    if hasattr(table, "__len__") and len(table) > size:
        raise InputError(f"{label} has {len(table)} entries, but there are {size} {what}")


def _at(table: Any, place: int, label: str, size: int) -> Any:
    try:
        return table[place]
    except (KeyError, IndexError, TypeError):
        raise InputError(f"{label} has no entry {place}, though entries 0 to {size - 1} are needed") from None


def _listed(entries: Any, label: str) -> list[Any]:
    try:
        return list(entries)
    except TypeError:
        raise InputError(
            f"{label} is {entries!r}, not a list of (probability, successor, reward, terminated)"
        ) from None


def _entry(given: Any, x: int, a: int, X: int, label: str) -> TableEntry:
    try:
        p, y, r, terminated = given
    except (TypeError, ValueError):
        raise InputError(f"{label} is {given!r}, not (probability, successor, reward, terminated)") from None
    probability, reward = (
        validation.number(p, f"the probability of {label}"),
        validation.number(r, f"the reward of {label}"),
    )
    if probability < 0:
        raise InputError(f"the probability of {label} is {probability:g}, which is negative")
    try:
        successor = index(y)
    except TypeError:
        raise InputError(f"{label} leads to {y!r}, not to a state") from None
    if not 0 <= successor < X:
        raise InputError(f"{label} leads to {successor}, but states are 0 to {X - 1}")
    return TableEntry(x, a, probability, successor, reward, validation.flag(terminated, f"whether {label} terminates"))


def _initial(env: Any, initial: Any, X: int) -> np.ndarray:
    given = getattr(inner_of(env), "initial_state_distrib", None) if initial is None else initial
    if given is None:
        raise InputError(f"{name_of(env)} does not say where it begins (initial_state_distrib); give initial=")
    return validation.distribution(given, X, "initial_state_distrib" if initial is None else "initial")


def _units(env: Any, entries: list[TableEntry], absorbing: bool) -> tuple[float, float]:
    """The range of single rewards, with the 0 of an absorbing state; wider where the environment declares it so."""
    earned = [entry.reward for entry in entries if entry.probability] + ([0.0] if absorbing else [])
    low, high = min(earned), max(earned)
    declared = getattr(inner_of(env), "reward_range", None)
    if isinstance(declared, tuple) and len(declared) == 2 and all(map(math.isfinite, declared)):
        low, high = min(low, float(declared[0])), max(high, float(declared[1]))
    return (low, high) if low < high else (low, low + 1.0)


def _rewards(entries: list[TableEntry], units: tuple[float, float], X: int, A: int, absorbing: bool) -> np.ndarray:
    """r(x, a) = sum p r in [0, 1]; as the first reward and the mean distance from it, exact where all are the same."""
    low, high = units
    first: dict[tuple[int, int], float] = {}
    distance = np.zeros((X, A))
    for x, a, p, _, earned, _ in entries:
        if p:
            distance[x, a] += p * (earned - first.setdefault((x, a), earned))
    r = np.array([[first[x, a] for a in range(A)] for x in range(X)]) + distance  # in the environment's units
    if absorbing:
        r = np.vstack([r, np.zeros((1, A))])
    return np.clip((r - low) / (high - low), 0.0, 1.0)  # the last digit may leave the range


def _led(
    entries: list[TableEntry], nu0: np.ndarray, X: int, A: int, absorbing: bool
) -> Iterator[tuple[Any, Any, Any, Any]]:
    """(x, a, x', probability): where transitions lead, terminated ones to the last state or to nu_0."""
    x, a, p, y, _, terminated = (np.array(column) for column in zip(*entries, strict=True))
    yield x[~terminated], a[~terminated], y[~terminated], p[~terminated]
    x, a, p = (column[terminated] for column in (x, a, p))
    if absorbing:
        yield x, a, X, p
        yield X, np.arange(A), X, 1.0
    else:
        starts = np.flatnonzero(nu0)
        size, what = 64 * len(p) * len(starts), f"{len(p):,} terminations that restart in {len(starts):,} states"
        require_memory(size, what, "their number, or say termination='absorb'")
        yield x[:, None], a[:, None], starts, np.outer(p, nu0[starts]).ravel()


def _called(env: Any, termination: str) -> str:
    """The id of ravi's own that builds this MDP, where there is one."""
    spec = getattr(env, "spec", None)
    if spec is None:
        return name_of(env)
    usual = gymnasium_module().registry[spec.id].kwargs if spec.id in gymnasium_module().registry else {}
    given = {key: value for key, value in spec.kwargs.items() if value != usual.get(key, ...)}
    options = ";".join(f"{key}:{_written(value)}" for key, value in given.items())
    return instance_name("gymnasium", spec.id, termination=(termination, "absorb"), options=(options, ""))


def _written(value: Any) -> str:
    """An option as `options_of` reads it; dots for one that no id can give."""
    text = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    return text if not re.search(r"[,;\s]", text) and value_of(text) == value else "..."


def _time_limit(env: Any) -> int | None:
    """The time limit among an environment's wrappers; an error where one of them changes the problem."""
    wrappers, changing = gymnasium_module().wrappers, changed_by(env)
    if isinstance(changing, wrappers.Autoreset):
        raise InputError(
            "the wrapper Autoreset begins anew by a step of its own; unwrap it, and say termination='restart'"
        )
    if changing is not None:
        raise InputError(
            f"the wrapper {type(changing).__name__} may change observations, actions or rewards, of which the table of "
            f"{name_of(env.unwrapped)} does not know; unwrap it, or learn by playing: ravi.learn"
        )
    limits = [int(one._max_episode_steps) for one in _wrappers(env) if type(one) is wrappers.TimeLimit]
    return min(limits, default=None)


def changed_by(env: Any) -> Any:
    """The first wrapper of an environment that may change observations, actions or rewards; None where none does."""
    return next(filter(_changes, _wrappers(env)), None)


def _wrappers(env: Any) -> Iterator[Any]:
    while isinstance(env, gymnasium_module().Wrapper):
        yield env
        env = env.env


def _changes(wrapper: Any) -> bool:
    """Whether a wrapper has anything of its own that could change the problem."""
    kind, below = type(wrapper), type(wrapper).__mro__
    if kind.__module__.startswith("gymnasium.wrappers.") and kind.__name__ in HARMLESS:
        return False
    own = [vars(base) for base in below[: below.index(gymnasium_module().Wrapper)]] + [vars(wrapper)]
    set_apart = wrapper._action_space is not None or wrapper._observation_space is not None
    return set_apart or any(name in names for names in own for name in CHANGES)


def gymnasium(
    env: str = "FrozenLake-v1", discount: float = 0.99, termination: str = "absorb", options: str = ""
) -> MDP:
    """A Gymnasium environment is read from its transition table; options=map_name:8x8;is_slippery:false.

    Its time limit is left out. Terminated transitions enter one more state that is never left (`absorb`), or lead to
    nu_0 (`restart`).
    """
    return by_id(env, discount, termination, options)
