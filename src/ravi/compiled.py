"""How is a function compiled? By Numba, at its first call, into a cache that no stale code survives in.

Numba's own cache looks at the file of a function only: a compiled caller of an edited function in another file would
go on with the old one. So the cache folder is named by a hash of every file that holds compiled functions and of the
versions that compile them. It lies under RAVI_CACHE_DIR, NUMBA_CACHE_DIR or the user's cache folder, whichever is set
and can be written; where none can, functions are compiled without a cache.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import config as _config

config: Any = _config
MARK = b"import compiled\n"  # a file with compiled functions imports the decorator by this line


def fingerprint(package: Path) -> str:
    """A hash of the sources that are compiled and of what compiles them."""
    digest = hashlib.sha256()
    versions = (numba.__version__, sys.version, platform.machine(), np.__version__)
    digest.update(repr(versions).encode())
    for source in sorted(package.rglob("*.py")):
        text = source.read_bytes()
        if MARK in text or source.name == "compiled.py":
            digest.update(source.relative_to(package).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def _candidates() -> list[Path]:
    named = [Path(os.environ[name]) for name in ("RAVI_CACHE_DIR", "NUMBA_CACHE_DIR") if os.environ.get(name)]
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [*named, Path(user) / "ravi"]


@cache
def cache_folder() -> Path | None:
    """The folder of this version's compiled functions, or None where nothing can be written."""
    name = "ravi-" + fingerprint(Path(__file__).parent)
    for parent in _candidates():
        folder = parent / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at its first call; its plain form stays at `.py_func`."""
    folder = cache_folder()
    if folder is None:
        return numba.njit(error_model="numpy")(function)  # x / 0 is inf or nan, as in NumPy: no branch in a loop
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)  # read when the dispatcher is made
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
