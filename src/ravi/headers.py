"""Is a header what it claims to be? The JSON of a file, key by key, against the types that its keys are declared with.

A type is written as in an annotation: `str`, `int`, `float`, `bool`, `float | None`, `list[int]`, `dict[str, Any]`,
`tuple[float, float]`. A whole number is a float too, a truth value is neither, and nothing is nan or infinite.
"""

import sys
from collections.abc import Mapping
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from ravi.checks import InputError

SAID = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
LARGEST = sys.float_info.max
SHOWN = 60  # characters of what is wrong


def checked(
    header: Mapping[str, Any], types: Mapping[str, Any], *, within: str = "", partial: bool = False
) -> dict[str, Any]:
    """The values of these keys, each of its type; the error names the key.

    within: the key whose value this object is. partial: a key may be missing.
    """
    place = f"{within}." if within else ""
    missing = [f"{place}{name}" for name in types if name not in header and not partial]
    if missing:
        raise InputError(f"it has no {', '.join(missing)}")
    held = {name: header[name] for name in types if name in header}
    for name, value in held.items():
        if not _fits(value, types[name]):
            text = repr(value)
            shown = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
            raise InputError(f"its {place}{name} is {shown}, not {_said(types[name])}")
    return held


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inside)
    if origin is list:
        return isinstance(value, list) and all(_fits(one, inside[0]) for one in value)
    if origin is tuple:
        long = isinstance(value, (list, tuple)) and len(value) == len(inside)
        return long and all(_fits(one, kind) for one, kind in zip(value, inside, strict=True))
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, inside[1]) for one in value.values())
    if kind is float:
        return (_fits(value, int) and abs(value) <= LARGEST) or (isinstance(value, float) and isfinite(value))
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)


def _said(kind: Any) -> str:
    """A type in words."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(_said(one) for one in inside)
    if origin is dict:
        return "an object" if inside[1] is Any else f"an object of which each value is {_said(inside[1])}"
    if origin is list:
        return "a list" if inside[0] is Any else f"a list of which each entry is {_said(inside[0])}"
    if origin is tuple:
        return f"[{', '.join(_said(one) for one in inside)}]"
    return SAID[kind]
