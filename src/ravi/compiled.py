"""How is a function compiled? By Numba, at its first call, into a cache that no stale code survives in.

Numba's own cache looks at the file of a function only: a compiled caller of an edited function in another file would
go on with the old one. So the functions of a file are kept in a folder named by a hash of that file, of every file of
this package that it imports, directly or not, and of the versions that compile them. It lies under RAVI_CACHE_DIR,
NUMBA_CACHE_DIR or the user's cache folder, whichever is set and can be written; where none can, functions are compiled
without a cache. Folders that nothing was read from for a season are removed when a new one is made.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import config as _config

config: Any = _config
PACKAGE = Path(__file__).parent
SEASON = 90 * 24 * 3600  # seconds
IMPORTS = re.compile(rb"^(?:from (ravi[\w.]*) import (\([^)]*\)|[^\n]*)|import (ravi[\w.]*))", re.MULTILINE)


@cache
def imported(source: Path, package: Path = PACKAGE) -> frozenset[Path]:
    """The files of the package that a file imports as it is loaded."""
    found = set()
    for module, names, plain in IMPORTS.findall(source.read_bytes()):
        parts = (module or plain).decode().split(".")[1:]
        outer = [parts[:k] for k in range(len(parts))]
        inner = [[*parts, name] for name in re.findall(r"\w+", names.decode())]
        for path in [*outer, parts, *inner]:
            place = package.joinpath(*path)
            found |= {file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()}
    return frozenset(found)


def fingerprint(source: Path, package: Path = PACKAGE) -> str:
    """A hash of a file, of all that it imports from the package, and of what compiles it."""
    needed, more = {source}, [source]
    while more:
        new = imported(more.pop(), package) - needed
        needed |= new
        more.extend(new)
    digest = hashlib.sha256(repr((numba.__version__, sys.version, platform.machine(), np.__version__)).encode())
    for file in sorted(needed):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _candidates() -> list[Path]:
    named = [Path(os.environ[name]) for name in ("RAVI_CACHE_DIR", "NUMBA_CACHE_DIR") if os.environ.get(name)]
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [*named, Path(user) / "ravi"]


@cache
def cache_folder(source: Path) -> Path | None:
    """The folder of the compiled functions of a file, or None where nothing can be written."""
    name = f"{source.stem}-{fingerprint(source)}"
    for parent in _candidates():
        folder = parent / name
        try:
            new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            if new:
                _tidy(parent, source.stem)
            return folder
    return None


def _tidy(parent: Path, stem: str) -> None:
    """Remove what was compiled from earlier forms of a file, and has not been used for a season."""
    for folder in parent.glob(f"{stem}-{'[0-9a-f]' * 16}"):
        try:
            if time.time() - folder.stat().st_mtime > SEASON:
                shutil.rmtree(folder)
        except OSError:  # another process was faster
            continue


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at its first call; its plain form stays at `.py_func`."""
    folder = cache_folder(Path(function.__code__.co_filename))
    if folder is None:
        return numba.njit(error_model="numpy")(function)  # x / 0 is inf or nan, as in NumPy: no branch in a loop
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)  # read when the dispatcher is made
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
