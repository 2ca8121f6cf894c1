"""Where are compiled functions kept? In a folder that only the user can write, and that no stale code survives in.

The functions of a file are kept in a folder named by a hash of that file, of every file of this package that it
imports, directly or not, and of the versions that compile them: Numba's own cache looks at the file of a function
only, and would go on with the old form of a function in another file. The folder is in RAVI_CACHE_DIR, NUMBA_CACHE_DIR
or the user's cache folder, the first that is safe and can be written. Folders that nothing was read from for a season
are removed when a new one is made.

What Numba keeps is unpickled, and so may run any code: a folder is safe if it is the user's own and nobody else can
write into it, nor put another in its place. If none is safe, functions are compiled without a cache, and a warning
says so, once.
"""

import grp
import hashlib
import os
import platform
import pwd
import re
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import caching

from ravi._jit import late

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


def fingerprint(*sources: Path, package: Path = PACKAGE) -> str:
    """A hash of files, of all that they import from the package, and of what compiles them."""
    needed, more = set(sources), list(sources)
    while more:
        new = imported(more.pop(), package) - needed
        needed |= new
        more.extend(new)
    digest = hashlib.sha256(repr((numba.__version__, sys.version, platform.machine(), np.__version__)).encode())
    for file in sorted(needed):
        digest.update(Path(os.path.relpath(file, package)).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


class CacheWarning(UserWarning):
    """Compiled functions are not kept, or not where they were to be."""


def _candidates() -> list[Path]:
    named = [Path(os.environ[name]) for name in ("RAVI_CACHE_DIR", "NUMBA_CACHE_DIR") if os.environ.get(name)]
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [*named, Path(user) / "ravi"]


@cache
def cache_folder(source: Path, *others: Path) -> Path | None:
    """The folder of the compiled functions of a file, or None where there is none that is safe and can be written.
    others: further files that these functions depend on, though it does not import them."""
    parent = _home()
    if parent is None:
        return None
    folder = parent / f"{source.stem}-{fingerprint(source, *others)}"
    try:
        new = _made(folder)
        os.utime(folder)
        held = os.stat(folder)
    except OSError as error:
        _tell(f"compiled functions cannot be kept in {parent}: {error.strerror}")
        return None
    if held.st_uid != os.geteuid() or held.st_mode & 0o077:
        _tell(f"{folder} is not used: others than its user have access to it; remove it")
        return None
    if new:
        _tidy(parent, source.stem)
    return folder


@cache
def _home() -> Path | None:
    """The first candidate that can be used, made where it was not there; None where none can be."""
    reasons, found = [], None
    for candidate in _candidates():
        place = Path(os.path.realpath(candidate))
        try:
            _made(place)
            why = unsafe(place)
        except OSError as error:
            why = error.strerror
        if why is None and not os.access(place, os.W_OK | os.X_OK):
            why = "it cannot be written"
        if why is None:
            found = place
            break
        reasons.append(f"{place}: {why}")
    if reasons and found is None:
        _tell(f"compiled functions are not kept, and every process compiles anew. {'; '.join(reasons)}")
    elif reasons:
        _tell(f"compiled functions are kept in {found}, not in {'; '.join(reasons)}")
    return found


def unsafe(folder: Path) -> str | None:
    """Why what lies in a folder may be another user's; None where only this user can have put it there."""
    held, user = os.stat(folder), os.geteuid()
    if held.st_uid != user:
        return f"it is {_name(held.st_uid)}'s"
    if held.st_mode & 0o022:
        return f"others can write into it (chmod go-w {folder})"
    for parent in folder.parents:
        held = os.stat(parent)
        if held.st_uid not in (user, 0):
            return f"{parent} is {_name(held.st_uid)}'s"
        open_to = held.st_mode & (0o022 if _shared(held.st_gid, user) else 0o002)
        if open_to and not held.st_mode & stat.S_ISVTX:  # in a sticky folder, such as /tmp, one's own is safe
            return f"others can write into {parent} (chmod go-w {parent})"
    return None


def _shared(group: int, user: int) -> bool:
    """Whether others may be in a group; not in that of the user's own name, which many systems make for each."""
    try:
        held, name = grp.getgrgid(group), pwd.getpwuid(user).pw_name
    except KeyError:
        return True
    return held.gr_name != name or bool(set(held.gr_mem) - {name})


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _made(folder: Path) -> bool:
    """Make a folder and those above it, where they are not there, for this user alone; whether it was made."""
    new = not folder.is_dir()
    for place in [*reversed(folder.parents), folder] if new else ():
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
    return new


@cache
def _tell(what: str) -> None:
    """Warn, once for each text."""
    warnings.warn(what, CacheWarning, stacklevel=2)


def _tidy(parent: Path, stem: str) -> None:
    """Remove what was compiled from earlier forms of a file, and has not been used for a season."""
    for folder in parent.glob(f"{stem}-{'[0-9a-f]' * 16}"):
        try:
            if time.time() - folder.stat().st_mtime > SEASON:
                shutil.rmtree(folder)
        except OSError:  # another process was faster
            continue


class _Place:
    """What Numba asks about the place of one function: its folder, and the stamp of its source."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._py_file, self._line = function.__code__.co_filename, function.__code__.co_firstlineno
        self._folder = folder

    def ensure_cache_path(self) -> None:
        """Nothing to do: `cache_folder` has made it."""

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name  # the hash of all that it depends on

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Cache(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's cache of one function, in a folder that we choose."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function, folder)
        self._filename_base = self.get_filename_base(function.__qualname__, getattr(sys, "abiflags", ""))


class Kept(caching.FunctionCache):  # type: ignore[misc]
    """A cache that never fails its caller: what cannot be read is compiled again, a failed write is a warning."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._impl_class = lambda function: _Cache(function, folder)
        super().__init__(function)

    def kept(self) -> bool:
        """Whether the function is here, for some types."""
        return os.path.exists(self._cache_file._index_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # it is damaged: whatever unpickling may raise
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if isinstance(data.entry_point, late.Late):
            return
        try:
            super().save_overload(sig, data)
        except Exception as error:  # the disk is full, or what was compiled cannot be written down
            why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            _tell(f"compiled functions cannot be kept in {Path(self.cache_path).parent}: {why}")
