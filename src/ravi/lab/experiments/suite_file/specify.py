"""`specify` reads and checks a suite: that of a name, of a TOML file, or of Python data of the same shape."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ravi import validation
from ravi.lab import suites
from ravi.lab.experiments.suite_file.building import Builder
from ravi.lab.experiments.suite_file.mistakes import Mistakes, lines
from ravi.lab.experiments.suite_file.reading import Reader
from ravi.lab.experiments.suite_file.specification import Suite
from ravi.validation import InputError


def specify(source: str | os.PathLike[str] | Mapping[str, Any], *, seeds: Any = None, build: bool = True) -> Suite:
    """The suite of a name (`ravi.lab.suites`), of a TOML file, or of Python data of the same shape.

    seeds: these, in place of those of every section: how many, a text such as 5-8 or 1,7,9, or a list.
    build: every MDP is built, and every learner for every MDP and T, so that what cannot be is told now. Without it
    ids are taken as they are: for a suite that was specified before.
    """
    if isinstance(source, Mapping):
        data, mistakes, base, name = dict(source), Mistakes("", {}), Path.cwd(), "suite"
    else:
        text, file, base, name = _text(source)
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(_syntax(file, error)) from None
        except RecursionError:
            raise InputError(f"{file}: its lists and tables are nested too deep") from None
        mistakes = Mistakes(file, lines(text))
    read = Reader(mistakes, base)
    suite = read.suite(data, name, seeds)
    if validation.flag(build, "build"):
        Builder(mistakes, base).check(suite, read.places)
    mistakes.tell()
    return suite


def shipped() -> dict[str, Suite]:
    """The suites that come with the library, by name; nothing is built."""
    return {name: specify(name, build=False) for name in suites.SUITES}


def _text(source: str | os.PathLike[str]) -> tuple[str, str, Path, str]:
    """The TOML of a suite, how its file is called in messages, its folder, and the name that it has by default."""
    if isinstance(source, str) and source in suites.SUITES:
        return suites.text(source), f"{source}.toml", Path.cwd(), source
    path = validation.path(source, "suite")
    if not path.is_file():
        near = validation.did_you_mean(os.fspath(source), suites.SUITES) or f" Known: {', '.join(suites.SUITES)}."
        raise InputError(f"there is no suite {os.fspath(source)!r}.{near} A suite may also be a TOML file.")
    try:
        return path.read_bytes().decode(), str(path), path.absolute().parent, path.stem
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _syntax(file: str, error: tomllib.TOMLDecodeError) -> str:
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    return f"{file}:{found[2]}: {found[1]} (column {found[3]})" if found else f"{file}: {error}"
