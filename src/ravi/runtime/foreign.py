"""Whose code does an id run? This library's, or that of a module that it names: `package.module:function`.

To build what such an id stands for, its module is imported and its function called. Two rules keep that from happening
by itself; docs/guides/security.md has them for users:

1. Who names the module decides. What the user types (a command, a call, a suite's file) is imported. What a file says
   is not: every place that reads an id from one asks `ravi.ids.trusted`, which refuses unless the user allows code.
2. A function is called only if it says itself what it makes: its return annotation is `Learner`, or `MDP`.
"""

import importlib
import importlib.util
import re
import sys
import typing
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ravi.validation import InputError

NAME = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*(?=[,/]|$)")


def name_in(text: str) -> str | None:
    """`package.module:function` at the head of an id; None for an id of this library's own."""
    found = NAME.match(text)
    return None if found is None else found[0]


def function(text: str, name: str, kind: type) -> Callable[..., Any]:
    """The function that an id names. Its module is imported; it must declare that it makes a `kind`."""
    module, attribute = name.split(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{text}: {error}") from None
    if not callable(found):
        raise InputError(f"{text}: {name} is {type(found).__name__}, not a function")
    if isinstance(found, type) and hasattr(found, "reset") and hasattr(found, "step"):
        raise InputError(
            f"{text}: {name} is the class of an environment, and an id is taken: write gymnasium.register"
            f'("{attribute}-v0", "{name}") in {module} and give {module}:{attribute}-v0, or in Python use '
            f"ravi.learn({attribute}())"
        )
    try:
        made = typing.get_type_hints(found).get("return")
    except Exception as error:  # annotations are code too
        raise InputError(f"{text}: the annotations of {name} cannot be read: {type(error).__name__}: {error}") from None
    if not (isinstance(made, type) and issubclass(made, kind)):
        raise InputError(
            f"{text}: {name} does not declare that it makes a {kind.__name__}, so it is not called; one of your own "
            f"does by its return annotation: def {attribute}(...) -> ravi.{kind.__name__}"
        )
    return found


def importable(folder: str) -> None:
    """Let modules be imported from a folder that the user chose: that of a suite's file, or the current one.

    It comes last on the path, so that it hides nothing, and stays there. Workers are given the path of their driver.
    """
    if folder and folder not in sys.path:
        sys.path.append(folder)


def beside(text: str, module: str, folder: str) -> None:
    """An error if a module that is in this folder would be imported from elsewhere."""
    inside = Path(folder, *module.split("."))
    there = [path for path in (inside.with_suffix(".py"), inside / "__init__.py") if path.is_file()]
    if not there:
        return
    found = getattr(sys.modules.get(module), "__file__", None)
    if module not in sys.modules:
        with suppress(ImportError):  # of a package around it
            found = getattr(importlib.util.find_spec(module), "origin", None)
    if found is None or not there[0].samefile(found):
        raise InputError(f"{text}: the module {module} is {found}, not {there[0]}; give it another name")
