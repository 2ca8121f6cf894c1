"""The cache of compiled functions: each is kept under a hash of its code in memory, in a folder of its user alone.

The hash covers the bytecode, constants, defaults and closure of a function, and whatever its global names stand for: so
the code of all that it calls, as this process has it, whatever files hold by now. It covers the options of each, those
of Numba (`NUMBA_BOUNDSCHECK` and the like) and the versions, too; the processor is part of the key within a file. A
function that depends on a value of unknown kind is not kept.

What is kept is unpickled, and so may run any code: it lies in a folder of mode 0700 that belongs to the user, within
RAVI_CACHE_DIR, NUMBA_CACHE_DIR or the user's cache folder, the first where there is or can be one. Without any,
functions are compiled without a cache, and a warning says so, once. Functions that nothing has read for a season are
removed when others are written.
"""

import dis
import hashlib
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, compiler, config, types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import builtin_registry

from ravi._jit import deferred

SEASON = 90 * 24 * 3600  # seconds
VERSIONED = {"builtins", "cmath", "llvmlite", "math", "numba", "numpy", "operator", "scipy"}  # known by their versions
PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, range, np.generic, np.dtype, types.Type)


class CacheWarning(UserWarning):
    """Compiled functions are not kept, or not where they were to be."""


def _candidates() -> list[Path]:
    named = [Path(os.environ[name]) for name in ("RAVI_CACHE_DIR", "NUMBA_CACHE_DIR") if os.environ.get(name)]
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [*named, Path(user) / "ravi"]


@cache
def cache_folder() -> Path | None:
    """The folder of compiled functions, made where it was not there; None where there can be none."""
    reasons, found = [], None
    for candidate in _candidates():
        place = candidate / "compiled"
        try:
            candidate.mkdir(parents=True, exist_ok=True)
            place.mkdir(mode=0o700, exist_ok=True)
            held = os.stat(place)
        except OSError as error:
            reasons.append(f"{place}: {error.strerror}")
            continue
        if held.st_uid != os.geteuid() or held.st_mode & 0o077:
            reasons.append(f"{place}: others than its user have access to it; remove it")
        elif not os.access(place, os.W_OK | os.X_OK):
            reasons.append(f"{place}: it cannot be written")
        else:
            found = place
            break
    if reasons and found is None:
        _warn(f"compiled functions are not kept, and every process compiles anew. {'; '.join(reasons)}")
    elif reasons:
        _warn(f"compiled functions are kept in {found}, not in {'; '.join(reasons)}")
    return found


@cache
def _warn(what: str) -> None:
    """Warn, once for each text."""
    warnings.warn(what, CacheWarning, stacklevel=2)


class Unknown(Exception):
    """A function depends on a value of a kind that `_parts` does not know."""


class Digest:
    """A hash of values, in order. What was met before goes by its number: functions may call each other."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._met: dict[int, tuple[int, Any]] = {}  # by id, with what must live as long as its id

    def add(self, value: Any) -> None:
        if isinstance(value, PLAIN):
            self._say(type(value).__name__, repr(value))
        elif id(value) in self._met:
            self._say("again", self._met[id(value)][0])
        else:
            self._met[id(value)] = len(self._met), value
            kind, parts = _parts(value)
            self._say(kind, len(parts))
            for part in parts:
                self.add(part)

    def _say(self, kind: str, what: Any) -> None:
        self.hash.update(f"{kind} {what}\0".encode())


def _parts(value: Any) -> tuple[str, tuple[Any, ...]]:
    """What kind of value it is, and what it is made of."""
    own = getattr(value, "py_func", value)
    if isinstance(own, (FunctionType, BuiltinFunctionType, np.ufunc, type)) and _is_versioned(own):
        return f"{getattr(own, '__module__', '')}.{own.__name__}", ()
    if isinstance(value, Dispatcher):
        return "compiled", (deferred.is_deferring(value), sorted(value.targetoptions.items()), own)
    if isinstance(value, FunctionType):
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        others = value.__defaults__, value.__kwdefaults__, vars(value), _overloads(value, len(builtin_registry.globals))
        return "function", (value.__code__, cells, *others, *_globals(value))
    if isinstance(value, CodeType):
        return _hash_of(value), ()
    if isinstance(value, ModuleType):
        return value.__name__, ()
    if isinstance(value, (tuple, list)):
        return type(value).__name__, (*(() if type(value) in (tuple, list) else (type(value),)), *value)
    if isinstance(value, (set, frozenset)):
        return "set", tuple(sorted(value, key=repr))
    if isinstance(value, dict):
        return "dict", tuple(value.items())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return "array", (value.dtype, value.shape, value.tobytes())
    if isinstance(value, Enum):
        return value.name, (type(value), value.value)
    if isinstance(value, type):
        inside = (getattr(value, "_fields", None), getattr(value, "_field_defaults", None))
        members = [each.value for each in value] if issubclass(value, Enum) else None
        return f"{value.__module__}.{value.__qualname__}", (*inside, members)
    raise Unknown(type(value).__name__)


OF_CODE = (
    "code", "consts", "names", "varnames", "freevars", "cellvars", "argcount", "kwonlyargcount", "flags",
    "exceptiontable",
)  # fmt: skip


@cache
def _hash_of(code: CodeType) -> str:
    """The hash of all in a code but where it stands."""
    digest = Digest()
    for name in OF_CODE:
        digest.add(getattr(code, f"co_{name}"))
    return digest.hash.hexdigest()


def _is_versioned(function: Any) -> bool:
    """Whether a function or a class is of a package whose version says what it does."""
    return (getattr(function, "__module__", None) or "numpy").split(".")[0] in VERSIONED


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The global names of a function with what they stand for, and what it may take from modules among them."""
    used, attributes = _names(function.__code__)
    for name in used:
        if name not in function.__globals__:
            continue  # it is built in
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, ModuleType) and value.__name__.split(".")[0] not in VERSIONED:
            yield from ((f"{name}.{each}", getattr(value, each)) for each in attributes if hasattr(value, each))


@cache
def _names(code: CodeType) -> tuple[list[str], list[str]]:
    """The global names and the attributes in a code and in those within it."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    names = [found.union(*(used for used, _ in inner)), {*code.co_names}.union(*(all_ for _, all_ in inner))]
    return sorted(names[0]), sorted(names[1])


@cache
def _overloads(function: FunctionType, number: int) -> list[Any]:
    """What Numba takes in place of a function (`numba.extending.overload`); number: of the functions that it knows."""
    kinds = [kind for known, kind in builtin_registry.globals if known is function]
    found = [getattr(template, "_overload_func", None) for kind in kinds for template in kind.templates]
    return [each for each in found if each is not None]


def fingerprint(function: Dispatcher) -> str | None:
    """The hash of all that a compiled function depends on; None where that cannot be told."""
    config.reload_config()
    settings = [
        f"{name}={value!r}"
        for name, value in sorted(vars(config).items())
        if name.isupper() and isinstance(value, PLAIN) and not name.startswith(IRRELEVANT)
    ]
    digest = Digest()
    try:
        digest.add(_environment())
        digest.add(" ".join(settings))
        digest.add(function)
    except Unknown:
        return None
    return digest.hash.hexdigest()[:32]


IRRELEVANT = ("CACHE", "CUDA", "NUMBA", "THREADING")  # of Numba's settings
FORMAT = 2  # of the files


@cache
def _environment() -> str:
    """The versions of what compiles, and the code of `deferred`."""
    here = [each for each in vars(deferred).values() if getattr(each, "__module__", None) == deferred.__name__]
    places = [vars(each) for each in here if isinstance(each, type)] + [{"": each} for each in here]
    codes = [_hash_of(each.__code__) for place in places for each in place.values() if isinstance(each, FunctionType)]
    return " ".join([str(FORMAT), sys.version, numba.__version__, llvmlite.__version__, np.__version__, *codes])


def _fields(kind: Any) -> tuple[Any, ...]:
    """The names within a type, or within a tuple of types: those of the fields of named tuples."""
    inner = kind if isinstance(kind, tuple) else getattr(kind, "types", ())
    return getattr(kind, "fields", ()), *map(_fields, inner)


class FunctionCache:
    """The cache of one function. It never fails its caller: what cannot be read is compiled, a failed write is a
    warning. Code is kept with its key: two processes that compile a function for other types at once may take the same
    file for it, and the last one has it."""

    cache_path = None  # which Numba's statistics ask for

    def __init__(self, function: Dispatcher) -> None:
        self.function = function

    def _file(self) -> Any:
        """The function's file, or None where it is not kept."""
        folder = cache_folder()
        digest = None if folder is None else fingerprint(self.function)
        if digest is None:
            return None
        return caching.IndexDataCacheFile(str(folder), f"{self.function.__name__[:40]}-{digest}", digest)

    def has_entry(self) -> bool:
        """Whether the function is there, for some types."""
        file = self._file()
        return file is not None and os.path.exists(file._index_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        if (file := self._file()) is None:
            return None
        try:
            key = _key(sig, target_context)
            found = file.load(key)
            if found is None or found[0] != key:
                return None
            with suppress(OSError):
                os.utime(file._index_path)
            _, *parts, constants = found
            for environment, kept in zip(_environments(parts), constants, strict=True):
                environment.consts.extend(kept[len(environment.consts) :])
            return compiler.CompileResult._rebuild(target_context, *parts)
        except Exception:  # it is damaged: whatever unpickling may raise
            with suppress(OSError):
                file.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if isinstance(data.entry_point, deferred.Deferred) or data.library.has_dynamic_globals:
            return
        if (file := self._file()) is None:
            return
        try:
            key, parts = _key(sig, data), data._reduce()
            file.save(key, (key, *parts, [list(environment.consts) for environment in _environments(parts)]))
            _tidy(Path(file._cache_path))
        except Exception as error:  # the disk is full, or what was compiled cannot be written down
            why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            _warn(f"compiled functions cannot be kept in {file._cache_path}: {why}")


def _environments(parts: Any) -> Iterator[Any]:
    """The environments of a function that is kept and of those that it calls. Numba takes one of a name that it has met
    as it is, and that of a function which only compiled ones had called has none of the wrapper's constants yet."""
    yield from (parts[2], *parts[-1])


def _key(types: Any, owner: Any) -> tuple[Any, ...]:
    """What tells one compiled form of a function from another: its types, and the processor."""
    codegen = owner.codegen
    return types, _fields(types), (codegen() if callable(codegen) else codegen).magic_tuple()


@cache
def _tidy(folder: Path) -> None:
    """Remove what was not read for a season, once in a process."""
    for index in folder.glob("*.nbi"):
        with suppress(OSError):  # another process was faster
            if time.time() - index.stat().st_mtime > SEASON:
                for file in folder.glob(f"{index.stem}.*"):
                    file.unlink()
