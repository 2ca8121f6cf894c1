"""What does an id give to the builder that it names? Its text is split by a table of names and the builder's signature.

An id is a name from a table, then, after a slash or a comma, the builder's arguments: values in their order, and
`key=value`. What a builder takes, and of which type, is read from its signature; skip: arguments that no id gives.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType
from typing import Any

from ravi import validation
from ravi.runtime import foreign
from ravi.validation import InputError


def name_of(text: str, table: Mapping[str, Any]) -> str | None:
    """The longest name that `text` begins with, up to a slash, a comma or its end."""
    ends = [len(text), *(mark.start() for mark in reversed([*re.finditer("[/,]", text)]))]
    return next((text[:end] for end in ends if text[:end] in table), None)


def split(text: str, table: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The name, and the arguments after it."""
    name = name_of(text, table) or foreign.name_in(text)
    assert name is not None
    return name, text[len(name) + 1 :].split(",") if text != name else []


def arguments(text: str, given: list[str], builder: Callable[..., Any], skip: int) -> tuple[list[Any], dict[str, Any]]:
    """What the id gives its builder, in order and by name."""
    parameters = parameters_of(builder, skip)
    taken = ", ".join(parameters) or "no options"
    places = [name for name, (p, _) in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for part in given:
        key, equals, value = part.partition("=")
        if not equals:
            if kwargs:
                raise InputError(f"{text}: {part!r} stands after key=value; give it a key too")
            if len(args) == len(places):
                raise InputError(f"{text}: {part!r} is one value too many; it takes {taken}")
            key = places[len(args)]
            args.append(_converted(text, key, part, parameters[key][1]))
            continue
        if key not in parameters:
            raise InputError(
                f"{text}: there is no option {key!r}; it takes {taken}." + validation.did_you_mean(key, parameters)
            )
        if key in kwargs or key in places[: len(args)]:
            raise InputError(f"{text}: {key} is given twice")
        kwargs[key] = _converted(text, key, value, parameters[key][1])
    needed = [name for name in places[len(args) :] if parameters[name][0].default is inspect.Parameter.empty]
    if missing := [name for name in needed if name not in kwargs]:
        raise InputError(f"{text}: {', '.join(missing)} missing; it takes {taken}")
    return args, kwargs


def all_arguments(text: str, table: Mapping[str, Any], builder: Callable[..., Any]) -> dict[str, Any]:
    """What the id gives its builder, with the defaults of what it leaves out."""
    args, kwargs = arguments(text, split(text, table)[1], builder, skip=0)
    given = inspect.signature(builder).bind(*args, **kwargs)
    given.apply_defaults()
    return dict(given.arguments)


def parameters_of(builder: Callable[..., Any], skip: int) -> dict[str, tuple[inspect.Parameter, type]]:
    """The arguments that an id may give, by name, each with the type that its value is read as: int, float or str."""
    hints = _hints(builder) if isinstance(builder, FunctionType) else typing.get_type_hints(builder)
    parameters = list(inspect.signature(builder).parameters.values())[skip:]
    return {p.name: (p, kind) for p in parameters if (kind := _kind(hints.get(p.name))) is not None}


@cache
def _hints(builder: FunctionType) -> dict[str, Any]:
    return typing.get_type_hints(builder)


def _kind(hint: Any) -> type | None:
    return next((kind for kind in (int, float, str) if hint is kind or kind in typing.get_args(hint)), None)


def _converted(text: str, key: str, value: str, kind: type) -> Any:
    if kind is str:
        return value
    try:
        return validation.whole(value, key, -(2**62)) if kind is int else validation.number(value, key)
    except InputError as error:
        raise InputError(f"{text}: {error}") from None


def takes(text: str, builder: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """An error unless the builder, which may be a user's, can be called with these arguments."""
    try:
        inspect.signature(builder).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise InputError(f"{text}: its function cannot be called as a builder is: {error}") from None


def unknown(what: str, text: str, table: Mapping[str, Any], other: str = "") -> InputError:
    """The error of an unknown name: with the nearest known one, or where none is near, with all of them."""
    head = text.split(",")[0].split("/")[0]
    near = validation.did_you_mean(head, table) or f" Known: {', '.join(table)}.{other}"
    return InputError(f"there is no {what} {validation.shown(text)}.{near}")
