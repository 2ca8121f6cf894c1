"""The format of a file, by the ending of its name; files that are not ravi's own are read from here."""

import os
from pathlib import Path
from typing import Any

from ravi import validation
from ravi.importers.imported import Imported
from ravi.importers.pomdp import pomdp
from ravi.importers.prism import prism
from ravi.importers.table import table
from ravi.validation import InputError

ENDINGS = {".tra": prism, ".csv": table, ".mdp": pomdp, ".pomdp": pomdp}
OTHERS = {".sta", ".lab", ".srew", ".trew"}


def read(path: str | os.PathLike[str], discount: float | None = None, **options: Any) -> Imported:
    """The model of a file: PRISM's and Storm's .tra, a .csv of transitions, pomdp.org's .mdp and .pomdp."""
    ending = validation.path(path, "the file").suffix.lower()
    if ending in OTHERS:
        raise InputError(f"{path} belongs to a model; give {Path(path).with_suffix('.tra')}, which is read with it")
    if ending not in ENDINGS:
        raise InputError(f"{path} has none of the formats that ravi reads: {', '.join(ENDINGS)}, and its own")
    if discount is None and ENDINGS[ending] is not pomdp:
        raise InputError(f"{path} has no discount: write {path},discount=0.95, or discount=0.95 in Python")
    return ENDINGS[ending](path, discount=discount, **options)  # type: ignore[operator]


def is_foreign(path: str) -> bool:
    """Whether a file is, by its beginning, of another format than ravi's own, a ZIP archive."""
    try:
        with open(path, "rb") as file:
            return file.read(2) != b"PK"
    except OSError:
        return False
