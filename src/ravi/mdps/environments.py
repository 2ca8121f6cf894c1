"""Which environment of Gymnasium does an id name, with which options, and what code would make it?"""

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ravi import checks
from ravi.checks import InputError
from ravi.extras import install

ENTRY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.-]*")  # where something is in a module


def imported() -> Any:
    """Gymnasium itself."""
    try:
        import gymnasium
    except ImportError:
        raise InputError(f"environments need Gymnasium: {install('gymnasium')}") from None
    return gymnasium


def opened(env: Any, options: Mapping[str, Any] | None = None) -> Any:
    """An environment, or the one that an id makes, with its own options."""
    gymnasium = imported()
    if isinstance(env, str):
        try:
            with warnings.catch_warnings():
                if env not in gymnasium.registry:  # its error says the same
                    warnings.filterwarnings("ignore", ".*is out of date", DeprecationWarning)
                return gymnasium.make(env, **(options or {}))
        except Exception as error:  # the environment's own code, with options of the user's
            why = (str(error) or type(error).__name__)[:500]
            raise InputError(f"Gymnasium makes no environment of {checks.shown(env)}: {why}") from None
    if options:
        raise InputError(f"options go with an environment's id, not with {env!r}, which is made already")
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise InputError(f"{env!r} is many environments at once; give a single one")
    missing = [need for need in ("reset", "step", "observation_space", "action_space") if not hasattr(env, need)]
    if missing:
        raise InputError(f"{checks.shown(env)} is no Gymnasium environment: it has no {', '.join(missing)}")
    return env


def name_of(env: Any) -> str:
    """The id of an environment; where it was not made by one, its own name or its class."""
    spec, inner = getattr(env, "spec", None), getattr(env, "unwrapped", env)
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
