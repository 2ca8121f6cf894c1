"""Environments of Gymnasium by id: their options and the code that makes them; and the environment of an MDP."""

import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from operator import index
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ravi import validation
from ravi.core import MDP, an_mdp
from ravi.validation import InputError, install_command

ENTRY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.-]*")  # where something is in a module


def gymnasium_module() -> Any:
    """Gymnasium itself."""
    try:
        import gymnasium
    except ImportError:
        raise InputError(f"environments need Gymnasium: {install_command('gymnasium')}") from None
    return gymnasium


IDS: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # as they were given: Gymnasium forgets `module:`


def id_of(env: Any) -> str | None:
    """The id that makes an environment; None where none is known."""
    spec = getattr(env, "spec", None)
    if spec is not None:
        return IDS.get(env, str(spec.id))
    return IDS.get(env) if isinstance(env, gymnasium_module().Env) else None


def open_environment(env: Any, options: Mapping[str, Any] | None = None) -> Any:
    """An environment, or the one that an id makes, with its own options."""
    gymnasium = gymnasium_module()
    if isinstance(env, str):
        try:
            with warnings.catch_warnings():
                if env not in gymnasium.registry:  # its error says the same
                    warnings.filterwarnings("ignore", ".*is out of date", DeprecationWarning)
                made = gymnasium.make(env, **(options or {}))
            IDS[made] = env
            return made
        except Exception as error:  # the environment's own code, with options of the user's
            raise InputError(
                f"Gymnasium makes no environment of {validation.shown(env)}: {_why(error)[:500]}"
            ) from None
    if options:
        raise InputError(f"options go with an environment's id, not with {env!r}, which is made already")
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise InputError(f"{env!r} is many environments at once; give a single one")
    if isinstance(env, type):
        raise InputError(f"{env.__name__} is a class, not an environment: {env.__name__}() makes one")
    missing = [need for need in ("reset", "step", "observation_space", "action_space") if not hasattr(env, need)]
    if missing:
        raise InputError(f"{validation.shown(env)} is no Gymnasium environment: it has no {', '.join(missing)}")
    return env


def _why(error: Exception) -> str:
    """What an error says; with its type where that is no sentence, as of a KeyError."""
    text = str(error)
    return text if " " in text else f"{type(error).__name__}: {text}".removesuffix(": ")


def inner_of(env: Any) -> Any:
    """An environment without its wrappers: itself, where it is no `gymnasium.Env` but has what one needs."""
    return getattr(env, "unwrapped", env)


def name_of(env: Any) -> str:
    """The id of an environment; where it was not made by one, its own name or its class."""
    spec, inner = getattr(env, "spec", None), inner_of(env)
    if spec is not None:
        return str(spec.id)
    own = getattr(inner, "name", None)
    return own if isinstance(own, str) else type(inner).__name__


def options_of(text: str) -> dict[str, Any]:
    """An environment's options from `map_name:8x8;is_slippery:false`: numbers, true, false, none, and texts."""
    options: dict[str, Any] = {}
    for part in filter(None, text.split(";")):
        key, colon, value = part.partition(":")
        if not colon or not key.isidentifier():
            raise InputError(f"{part!r} is no option of an environment; write key:value, and ; between several")
        if key in options:
            raise InputError(f"{key} is given twice")
        options[key] = value_of(value)
    return options


def value_of(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def code_in(env: str, options: Mapping[str, Any] | None = None) -> str | None:
    """The code that Gymnasium would import for this: `module:Env-v0` as the id or among the options; None for none."""
    return env if ":" in env else next((text for text in _texts(options or {}) if ENTRY.fullmatch(text)), None)


def _texts(value: Any) -> Iterator[str]:
    """Every text in what JSON holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)


def make(mdp: MDP) -> Any:
    """A Gymnasium environment that is this MDP: it never terminates, for the discount is the learner's. In episodes it
    is truncated after their length.

    Rewards are r(x, a) in the MDP's units. Its table `P`, `initial_state_distrib` and `reward_range` are those of the
    MDP, so that `ravi.gymnasium.mdp(make(m), m.discount)` is m again (without features).
    """
    return _environment()(an_mdp(mdp))


@cache
def _environment() -> Any:
    """The class of the environments that `make` makes: Gymnasium is imported when it is needed."""
    gymnasium = gymnasium_module()

    class Simulated(gymnasium.Env):  # type: ignore[misc, name-defined]
        """An MDP as an environment."""

        metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

        def __init__(self, mdp: MDP) -> None:
            from ravi.runtime.walk import world_of

            self.mdp, self.name = mdp, mdp.name
            self.observation_space = gymnasium.spaces.Discrete(mdp.states)
            self.action_space = gymnasium.spaces.Discrete(mdp.actions)
            self.initial_state_distrib = mdp.initial
            self.reward_range = mdp.units
            self.render_mode = None
            self._world, self._rewards = world_of(mdp), mdp.in_units(mdp.rewards)
            self._state: int | None = None
            self._left = 0  # steps of the episode, where there are some

        @cached_property
        def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
            X, A, _ = self.mdp.transitions.shape
            return {x: {a: self._row(x, a) for a in range(A)} for x in range(X)}

        def _row(self, x: int, a: int) -> list[tuple[float, int, float, bool]]:
            r = float(self._rewards[x, a])
            row = zip(self.mdp.transitions[x, a].tolist(), self.mdp.successors[x, a].tolist(), strict=True)
            return [(p, y, r, False) for p, y in row]

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed)
            self._state = int(np.searchsorted(self._world.initial, self.np_random.random(), side="right"))
            self._left = self._world.episode
            return self._state, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            x, a = self._state, index(action)
            if x is None:
                raise InputError(f"{self.name} must be reset before its first step")
            if not 0 <= a < self.mdp.actions:
                raise InputError(f"action is {a}, but actions are 0 to {self.mdp.actions - 1}")
            slot = np.searchsorted(self._world.cumulative[x, a], self.np_random.random(), side="right")
            self._state = int(self._world.successors[x, a, slot])
            self._left -= 1
            return self._state, float(self._rewards[x, a]), False, self._left == 0, {}

    return Simulated
