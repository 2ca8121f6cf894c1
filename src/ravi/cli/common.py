"""What commands share: options, ids typed by the user, printing, progress bars, and the message after Ctrl-C."""

import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from ravi.display.printable import folded, printable, room
from ravi.display.progress import Progress, telling
from ravi.validation import InputError

SHORT = 20_000  # plays of all seeds, which Python makes in the time that it takes to compile a few functions
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ALLOW_CODE = Annotated[
    bool, typer.Option("--allow-code", help="Allow importing the modules that the file names; they can run any code.")
]

OPTION = Annotated[
    list[str] | None,
    typer.Option("--option", help="An option of the environment, such as map_name=8x8. May be repeated."),
]
DISCOUNT = Annotated[float | None, typer.Option(help="gamma, unless the id of the MDP or its file says it.")]
CRITERION = Annotated[
    str | None,
    typer.Option(help="What counts, unless the id says it: discounted, average, or episodic,episode=LENGTH."),
]
SEEDS = typer.Option(help="The number of seeds, counted from 0; or a list, such as 5-8 or 1,7,9.")
SEED = Annotated[int, typer.Option(help="The random seed; the same seed gives the same result.")]


def with_options(mdp: str, discount: float | None, criterion: str | None) -> str:
    """The id of an MDP with its options that were given apart."""
    for key, value in (("discount", discount), ("criterion", criterion)):
        if value is not None and f",{key}=" in mdp:
            raise InputError(f"--{key} {value}: {mdp} says its own")
        mdp += "" if value is None else f",{key}={value}"
    return mdp


def declared(function: Callable[..., None]) -> Callable[..., None]:
    """A function as a command: its parameters are the arguments, those after `*` the options, a flag has no opposite.

    What each is comes from the section Parameters of its docstring, which is no part of the help's text.
    """
    about, _, section = (inspect.getdoc(function) or "").partition("\n\nParameters\n----------\n")
    lines = re.findall(r"^(\w+)\n((?:    .*\n?)+)", section, re.MULTILINE)
    said = {name: " ".join(text.split()) for name, text in lines}
    hints, signature = get_type_hints(function, include_extras=True), inspect.signature(function)
    parameters = []
    for name, parameter in signature.parameters.items():
        kind, *given = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        flag = [f"--{name.replace('_', '-')}"] if kind is bool else []
        plain = typer.Option(*flag) if parameter.kind is parameter.KEYWORD_ONLY else typer.Argument()
        info = copy(given[0]) if given else plain
        info.help = said.get(name, info.help)
        parameters.append(parameter.replace(annotation=Annotated[kind, info]))

    @wraps(function)
    def command(**given: Any) -> None:
        function(**given)

    command.__doc__, command.__signature__ = about, signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def allow_typed_modules(*names: str | None) -> None:
    """Let modules that are named in ids on the command line be found in the current folder.

    An installed command, unlike `python -m`, does not look there. This is the one place that lets it, and it is safe
    to: the user has typed the module's name, which is to run it. Ids that a file says do not come here, an id without
    a module changes nothing, and the folder is last on the path, so that no file in it hides another module.
    """
    here = os.getcwd()
    for name in names:
        if name is not None and ":" in name:
            from ravi import ids
            from ravi.ids import allow_imports, check_origin
            from ravi.mdps import environments

            module = (ids.code_in(name) or environments.code_in(name) or "").partition(":")[0]
            if all(part.isidentifier() for part in module.split(".")):
                allow_imports(here)
                check_origin(name, module, here)


def say(text: object, error: bool = False, whole: bool = False) -> None:
    """Print what may hold text of others: the terminal shows all of it, and obeys nothing.

    Lines are folded to the terminal's columns, but for errors, which are one line each, and what is to be kept whole.
    """
    shown = printable(str(text), keep="\n\t")
    print(shown if error or whole else folded(shown, room()), file=sys.stderr if error else sys.stdout, flush=True)


def say_json(answer: Any) -> None:
    """Print one JSON object in one line; what is not a number is null there."""
    from decimal import Decimal
    from math import isfinite

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if isinstance(value, Decimal):
            return int(value) if value == value.to_integral_value() else float(value)
        return None if isinstance(value, float) and not isfinite(value) else value

    say(json.dumps(plain(answer), default=str, allow_nan=False), whole=True)


def stopped_early(kept: Path | None) -> typer.Exit:
    """Say that Ctrl-C came before the end, and from which file the same command continues; returns how to exit."""
    where = f"; the same command goes on from {kept}" if kept is not None else ""
    say(f"ravi: stopped before the end{where}", error=True)
    return typer.Exit(130)


def progress_bar(label: str) -> AbstractContextManager[Progress | None]:
    """A bar on the terminal while the work lasts; nothing where standard error is no terminal."""
    return telling(None, label, patience=0)


def options(words: list[str] | None) -> dict[str, Any]:
    """key=value, the value as JSON where it is, else a text; True, False and None as Python writes them too."""
    python = {"True": True, "False": False, "None": None}
    options: dict[str, Any] = {}
    for word in words or []:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise InputError(f"--option is {word!r}, not key=value")
        if key in options:
            raise InputError(f"--option gives {key} twice")
        options[key] = python.get(value, value)
        if value not in python:
            with suppress(ValueError, RecursionError):
                options[key] = json.loads(value)
    return options
