"""How is a function compiled? By Numba, at its first call, into a cache that no stale code survives in.

Numba's own cache looks at the file of a function only: a compiled caller of an edited function in another file would
go on with the old one. So the functions of a file are kept in a folder named by a hash of that file, of every file of
this package that it imports, directly or not, and of the versions that compile them. It lies under RAVI_CACHE_DIR,
NUMBA_CACHE_DIR or the user's cache folder, the first that is safe and can be written; folders that nothing was read
from for a season are removed when a new one is made.

What Numba keeps is unpickled, and so may run any code: a folder is safe when it is the user's own and nobody else can
write into it, nor put another in its place. Where none is, or the disk is full, functions are compiled without a cache,
and a warning says so, once.
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
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import caching as _caching
from numba.core import types as _types

from ravi import late

caching: Any = _caching  # Numba's types say nothing of it
unliteral: Any = _types.unliteral
PACKAGE = Path(__file__).parent
SEASON = 90 * 24 * 3600  # seconds
FEW = 15_000  # numbers that Python goes through in less time than it takes to compile
WORTH = 3.0  # seconds of a function in Python, from which on it is compiled
EARLY = 0.2  # of a run: the part from which on it is known how long the whole would take
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
    """Where Numba keeps one function, and by what it knows that it is still the same."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._py_file, self._line = function.__code__.co_filename, function.__code__.co_firstlineno
        self._folder = folder

    def ensure_cache_path(self) -> None:
        """It is there, or writing fails."""

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name  # the hash of all that it depends on

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Kind(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's cache of one function, in a folder that we choose."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function, folder)
        self._filename_base = self.get_filename_base(function.__qualname__, getattr(sys, "abiflags", ""))


class _Kept(caching.FunctionCache):  # type: ignore[misc]
    """What cannot be read is compiled anew, what cannot be written is not kept: a cache never fails its caller."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._impl_class = lambda function: _Kind(function, folder)
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


def compiled(function: Callable[..., Any], *others: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile `function` at its first call; its plain form stays at `.py_func`. others: functions that it calls, of
    files that its own does not import. options: Numba's."""
    made: Any = numba.njit(error_model="numpy", **options)(function)  # x / 0 is inf or nan, as in NumPy: no branch
    if made is function:  # where Numba is told to compile nothing
        return made
    late.ours.add(function)
    folder = cache_folder(*dict.fromkeys(Path(_plain_form(one).__code__.co_filename) for one in (function, *others)))
    if folder is not None:
        made._cache = _Kept(function, folder)
    made._compile_for_args = partial(_met, made, made._compile_for_args)  # what Numba asks for types that are new to it
    made.get_call_template = partial(_of_general_types, made.get_call_template)
    return made


def _plain_form(function: Callable[..., Any]) -> Any:
    return getattr(function, "py_func", function)


class Ready(Enum):
    """How soon a function can be called with types that it may have met."""

    NOW = "it is compiled, or nothing ever is"
    LOADED = "it is in the cache"
    COMPILED = "it is new"


def ready(function: Any) -> Ready:
    if not hasattr(function, "py_func") or function.signatures:
        return Ready.NOW
    return Ready.LOADED if isinstance(function._cache, _Kept) and function._cache.kept() else Ready.COMPILED


def _of_general_types(template: Callable[..., Any], arguments: Any, names: Any) -> Any:
    """What a compiled caller calls: one function for all integers, where Numba would compile one for each constant."""
    return template(tuple(map(unliteral, arguments)), {name: unliteral(kind) for name, kind in names.items()})


class Effort:
    """What compiling has taken, and what it may be saved: one for the process."""

    seconds = 0.0  # that functions took to be compiled or loaded
    allowance = 0.0  # seconds for which Python may run functions that are not in the cache
    interpreted = 0.0  # seconds for which it did
    done = 1.0  # the part of the run that is under way
    tell: Callable[[], None] | None = None  # called when a function is compiled that is not in the cache


effort = Effort()
_interpreted_for = defaultdict[Any, float](float)  # seconds, by function


@contextmanager
def sparing(seconds: float = 2.0) -> Iterator[None]:
    """For what is soon done: Python runs what is not in the cache, as long as it has few numbers to go through and
    that takes no longer than `seconds` of CPU time. The results are the same, bit for bit (tests/test_interpreted.py).
    """
    outer = effort.allowance
    effort.allowance = max(outer, seconds)
    try:
        yield
    finally:
        effort.allowance, effort.done = min(outer, effort.allowance), 1.0


def _met(made: Any, compile_for: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The function to call for types that are new to `made`: compiled now, or interpreted where that is cheaper."""
    new = not (isinstance(made._cache, _Kept) and made._cache.kept())
    whole = _interpreted_for[made] / max(effort.done, EARLY)  # seconds, if it goes on like this
    if new and effort.allowance > 0 and whole < WORTH and _numbers(arguments) <= FEW:
        return partial(_interpret, made)
    if new and effort.tell is not None:
        effort.tell()
    began = time.perf_counter()
    try:
        with late.put_off(made.py_func):
            found = compile_for(*arguments)
            if late.inner(made, found):
                found = compile_for(*arguments)
        return late.settled(made, found)
    finally:
        effort.seconds += time.perf_counter() - began


def _numbers(values: Any) -> int:
    """How many there are in nested tuples of arrays and numbers."""
    return sum(map(_numbers, values)) if isinstance(values, tuple) else np.size(values)


def _interpret(made: Any, *arguments: Any) -> Any:
    """Interpret a compiled function, and count the time that it takes."""
    began = time.process_time()
    with np.errstate(all="ignore"):
        found = interpreted(made)(*_as_numpy(arguments))
    taken = time.process_time() - began
    effort.allowance -= taken
    effort.interpreted += taken
    _interpreted_for[made] += taken
    return tuple(map(_plain, found)) if type(found) is tuple else _plain(found)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@cache
def interpreted(function: Any) -> Callable[..., Any]:
    """A compiled function, and those that it calls, as Python runs them; x / 0 is inf or nan there, too."""
    if not hasattr(function, "py_func"):  # where Numba is told to compile nothing
        return function
    plain = function.py_func
    names = {
        name: interpreted(value)
        for name in plain.__code__.co_names
        if hasattr(value := plain.__globals__.get(name), "py_func")
    }
    code = plain.__code__.replace(co_consts=_as_numpy(plain.__code__.co_consts))
    return FunctionType(code, {**plain.__globals__, **names}, plain.__name__)


def _as_numpy(value: Any) -> Any:
    """Numbers of Python, also in tuples, as those of NumPy, which divide by 0."""
    if type(value) is tuple:
        return tuple(map(_as_numpy, value))
    return np.float64(value) if type(value) is float else value


def instance(frame: Callable[..., Any], **names: Callable[..., Any]) -> Any:
    """`frame`, a plain function, with these functions in place of its globals of the same names; not compiled."""
    codes = [_plain_form(function).__code__ for function in names.values()]
    name = "_".join([frame.__name__, "with", *(code.co_name for code in codes)])
    at = codes[0]
    code = frame.__code__.replace(
        co_name=name, co_qualname=name, co_filename=at.co_filename, co_firstlineno=at.co_firstlineno
    )
    return FunctionType(code, {**frame.__globals__, **names}, name)


@cache
def bound(frame: Callable[..., Any], **names: Callable[..., Any]) -> Callable[..., Any]:
    """`instance`, compiled.

    Functions that are passed or closed over are compiled anew in every process; one that is bound by name is kept, as
    if the frame stood where the (first) function does, whose file must import that of the frame.
    """
    return compiled(instance(frame, **names))
