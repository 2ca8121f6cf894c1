"""The archive: one portable file for an MDP, a run, an agent or a policy, and how every file is written and read.

An archive is what `numpy.savez` writes, so `numpy.load(path)` opens it anywhere: one uncompressed entry per array, and
the entry `header.npy` with the bytes of a JSON object

    {"format": "ravi", "kind": "mdp", "version": 1, "arrays": [names], ..., "checksum": SHA-256 of header and arrays}

The same content gives the same bytes, and nothing is pickled. A file is written under a temporary name and renamed when
it is complete, so no reader and no crash leaves half of one.

Whoever changes a file on purpose can renew its checksum. A reader therefore trusts nothing: no entry takes more memory
than the file has bytes, `typed` checks the header, and `ravi.runtime.ranges` checks every index that compiled code
uses.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import secrets
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from hashlib import sha256
from math import isfinite, prod
from types import NoneType, UnionType
from typing import IO, Any, TypeVar, Union, get_args, get_origin

import numpy as np

from ravi.validation import InputError, shown

FORMAT, VERSION = "ravi", 1
HEADER, CHECKSUM = "header", "checksum"  # the entry of the JSON object, and its key
RESERVED = ("format", "kind", "version", "arrays", CHECKSUM)  # keys of the header that are not metadata

# What zipfile, numpy and json raise at bytes that are not theirs; RuntimeError at an entry that claims to be encrypted
# or (NotImplementedError) of an unknown compression, and (RecursionError) at JSON that is nested too deep.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, MemoryError, OSError, OverflowError,
    RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip

Thing = TypeVar("Thing")
Path = str | os.PathLike[str]
Place = Path | IO[bytes]  # where an archive is written or read: a path, or an open file, such as io.BytesIO


class Unwritable(InputError):
    """A file could not be written: a disk that is full, a folder that is read-only."""


# Files of any kind.


def write_file(path: Path, fill: Callable[[IO[bytes]], object], what: str = "") -> None:
    """Write a file by `fill`, all or nothing: it has its name when its bytes, and the name itself, are on disk.

    All that the library writes goes this way. The temporary name is fresh, and nothing is written through a link: a
    file takes the place of a link of its name, and the link's target stays as it was.

    Parameters
    ----------
    path
        Where the file is to be.
    fill
        Writes its bytes to the open file that it is given.
    what
        What the file is to the user, such as "the figure", for an error.
    """
    where = os.fspath(path)
    check_place(path, what)
    folder = os.path.dirname(where) or "."
    temporary = os.path.join(folder, f".ravi-{secrets.token_hex(8)}-{os.getpid()}@{platform.node()}.tmp")
    try:
        with open(temporary, "xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, where)
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise Unwritable(f"{_cannot_write(where, what)}: {error.strerror or error}") from None
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def write_text_file(path: Path, text: str, what: str = "") -> None:
    """Write a text in UTF-8, as `write_file` does."""
    write_file(path, lambda file: file.write(text.encode(errors="backslashreplace")), what)


def check_place(path: Path, what: str = "") -> None:
    """Raise an InputError where no file can be, because its folder is missing or it is a device or a pipe.

    Long work calls it first. The parameters are those of `write_file`.
    """
    where = os.fspath(path)
    folder = os.path.dirname(where) or "."
    try:
        os.lstat(where)
    except ValueError as error:  # a name may hold what no file's can
        raise InputError(f"{_cannot_write(where, what)}: {error}") from None
    except OSError:
        pass
    if not os.path.isdir(folder):
        raise InputError(f"{_cannot_write(where, what)}: there is no folder {folder}")
    if os.path.exists(where) and not os.path.isfile(where) and not os.path.isdir(where):
        raise InputError(f"{_cannot_write(where, what)}: it is a device or a pipe, not a file")


def _cannot_write(where: str, what: str) -> str:
    return f"cannot write {what} {where}" if what else f"cannot write {where}"


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a folder whose process, of this machine, has ended."""
    for name in os.listdir(folder):
        found = re.fullmatch(r"\.ravi-[0-9a-f]+-(\d+)@(.*)\.tmp", name)
        if found is None or found[2] != platform.node():
            continue
        try:
            os.kill(int(found[1]), 0)
        except ProcessLookupError:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
        except OSError:  # alive, and another user's
            continue


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read. A device or a pipe may never end, and is refused."""
    where = os.fspath(path)
    try:
        kind = os.stat(where).st_mode
        if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
            with open(where, "rb") as file:
                yield file
            return
    except OSError as error:
        raise InputError(f"cannot read {where}: {error.strerror or error}") from None
    raise InputError(f"cannot read {where}: it is a device or a pipe, not a file")


def read_json(path: Path) -> Any:
    """The content of a JSON file; anything else is an InputError that names the file."""
    with open_file(path) as file:
        text = file.read()
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{os.fspath(path)} is damaged: it is no JSON: {error}") from None


# Headers.


def typed(
    header: Mapping[str, Any], types: Mapping[str, Any], *, within: str = "", partial: bool = False
) -> dict[str, Any]:
    """The values of some keys of a header, each checked to be of its type; an error names the key.

    Parameters
    ----------
    header
        An object of JSON.
    types
        The type of every key, written as in an annotation: `str`, `int`, `float`, `bool`, `float | None`, `list[int]`,
        `dict[str, Any]`, `tuple[float, float]`. A whole number is a float too, a truth value is neither, and nothing is
        nan or infinite.
    within
        The key whose value this object is.
    partial
        Whether a key may be missing.

    Examples
    --------
    >>> typed({"steps": 10, "name": "x"}, {"steps": int})
    {'steps': 10}
    """
    place = f"{within}." if within else ""
    missing = [f"{place}{name}" for name in types if name not in header and not partial]
    if missing:
        raise InputError(f"it has no {', '.join(missing)}")
    held = {name: header[name] for name in types if name in header}
    for name, value in held.items():
        if not _is_of(value, types[name]):
            text = repr(value)
            text = text if len(text) <= 60 else text[:57] + "..."
            raise InputError(f"its {place}{name} is {text}, not {_in_words(types[name])}")
    return held


WORDS = {Any: "", str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, also of one that is made of others."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_of(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, (list, tuple)) and len(value) == len(inner) and all(map(_is_of, value, inner))
    if origin is not None:
        return isinstance(value, origin) and all(
            _is_of(one, inner[-1]) for one in (value.values() if origin is dict else value)
        )
    if kind is float:
        small = _is_of(value, int) and abs(value) <= sys.float_info.max
        return small or (isinstance(value, float) and isfinite(value))
    return kind is Any or (isinstance(value, kind) and isinstance(value, bool) == (kind is bool))


def _in_words(kind: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(kind), [*map(_in_words, get_args(kind))]
    if origin in (Union, UnionType):
        return " or ".join(inner)
    if origin is tuple:
        return f"[{', '.join(inner)}]"
    if origin is not None:
        what, part = ("an object", "value") if origin is dict else ("a list", "entry")
        return f"{what} of which each {part} is {inner[-1]}" if inner[-1] else what
    return WORDS[kind]


# Archives.


def write(place: Place, kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write an archive to exactly this place; to a path, all or nothing.

    Parameters
    ----------
    place
        A path, or an open file.
    kind
        What it holds: "mdp", "run", "agent" or "policy".
    header
        Metadata, which must be JSON and use none of the keys `RESERVED`.
    arrays
        Arrays of numbers by name.
    """
    entries = _entries(name_of(place), kind, header, arrays)
    if isinstance(place, (str, os.PathLike)):
        write_file(place, lambda file: np.savez(file, **entries))
    else:
        np.savez(place, **entries)


def read(place: Place, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of an archive of this kind; anything else is an InputError that says what is wrong."""
    where = name_of(place)
    if not isinstance(place, (str, os.PathLike)):
        return _unpack(place, where, kind)
    if not os.path.exists(place):
        raise InputError(f"there is no file {where}")
    with open_file(place) as file:
        return _unpack(file, where, kind)


def write_fields(place: Place, kind: str, thing: Any) -> None:
    """Write a dataclass as an archive: its arrays as arrays, and all other fields into the header."""
    held = {field.name: getattr(thing, field.name) for field in fields(thing) if field.init}
    arrays = {name: value for name, value in held.items() if isinstance(value, np.ndarray)}
    write(place, kind, {name: value for name, value in held.items() if name not in arrays}, arrays)


def read_fields(place: Place, kind: str, thing: type[Thing]) -> Thing:
    """Make a dataclass of an archive that `write_fields` wrote; the dataclass checks its own fields."""
    header, arrays = read(place, kind)
    try:
        made_of = {field.name: Any for field in fields(thing) if field.init}  # type: ignore[arg-type]
        return thing(**typed(header | arrays, made_of))
    except InputError as error:
        raise InputError(f"{name_of(place)} is damaged: {error}") from None


def checksum_of(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of the header, as `json.dumps` writes it, and of the name, dtype, shape and bytes of every array."""
    hashed = sha256(json.dumps(header).encode())
    for name, array in arrays.items():
        hashed.update(repr((name, array.dtype.str, array.shape)).encode())
        hashed.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


def name_of(place: Place) -> str:
    """What an error calls the place of an archive."""
    if not isinstance(place, (str, os.PathLike)) and not hasattr(place, "read"):
        raise InputError(f"the file is {shown(place)}, not a path or an open file")
    return os.fspath(place) if isinstance(place, (str, os.PathLike)) else "the content"


def _entries(where: str, kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Every entry of an archive, the header first, checked before a file is touched."""
    held = {name: np.asarray(array) for name, array in arrays.items()}
    for key in RESERVED:
        if key in header:
            raise InputError(f"cannot write {where}: the header's {key!r} is the format's own")
    for name, array in held.items():
        if name in (HEADER, "file", "allow_pickle"):  # the last two are arguments of `numpy.savez`
            raise InputError(f"cannot write {where}: an array cannot be called {name!r}")
        if array.dtype.hasobject or array.dtype.names is not None:
            what = "Python objects" if array.dtype.hasobject else "records"
            raise InputError(f"cannot write {where}: {name} holds {what}, not numbers")
    full = {"format": FORMAT, "kind": kind, "version": VERSION, "arrays": list(held), **header}
    try:
        json.dumps(full, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot write {where}: the header is not JSON ({error})") from None
    text = json.dumps(full | {CHECKSUM: checksum_of(full, held)})
    return {HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **held}


def _unpack(file: IO[bytes], where: str, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    start = file.read(4)
    if start != b"PK\x03\x04":  # how an archive with an entry begins
        raise InputError(f"{where} is not a ravi file: {'it is empty' if not start else 'no archive of arrays'}")
    try:
        packed = zipfile.ZipFile(file)
        names = _names(packed, file)
    except DAMAGE as error:
        raise InputError(f"{where} is damaged or cut short: {_message(error)}") from None
    if f"{HEADER}.npy" not in names:
        raise InputError(f"{where} is not a ravi file: it has no header")
    try:
        header = json.loads(_array(packed, HEADER).tobytes().decode())
    except DAMAGE as error:
        raise InputError(f"{where} is damaged: its header cannot be read: {_message(error)}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{where} is not a ravi file: its header does not say so")
    if header.get("version") != VERSION:
        raise InputError(f"{where} has version {header.get('version')!r} of the format; this ravi reads {VERSION}")
    if header.get("kind") != kind:
        raise InputError(f"{where} holds {header.get('kind')!r}, not {kind!r}")
    listed, arrays = header.get("arrays"), {}
    if not isinstance(listed, list) or {f"{name}.npy" for name in [HEADER, *listed]} != names:
        raise InputError(f"{where} is damaged: it does not hold the arrays that its header lists")
    for name in listed:
        try:
            arrays[name] = _array(packed, name)
        except DAMAGE as error:
            raise InputError(f"{where} is damaged: its array {name!r} cannot be read: {_message(error)}") from None
    try:
        intact = header.pop(CHECKSUM, None) == checksum_of(header, arrays)
    except RecursionError as error:
        raise InputError(f"{where} is damaged: its header cannot be read: {error}") from None
    if not intact:
        raise InputError(f"{where} is damaged: it was changed after it was written")
    return header, arrays


def _names(packed: zipfile.ZipFile, file: IO[bytes]) -> set[str]:
    """The names of all entries, if none is compressed and all are as large as they can be in a file of this size."""
    entries = packed.infolist()
    names = {entry.filename for entry in entries}
    if len(names) < len(entries):
        raise ValueError("two entries have one name")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise ValueError(f"its entry {entry.filename!r} is compressed, which ravi's are not")
    if sum(entry.file_size for entry in entries) > file.seek(0, os.SEEK_END):
        raise ValueError("its entries claim more bytes than it has")
    return names


def _array(packed: zipfile.ZipFile, name: str) -> np.ndarray:
    """One entry, as an array of numbers, truth values or texts that owns its memory."""
    content = packed.read(f"{name}.npy")
    start = io.BytesIO(content)
    if (form := np.lib.format.read_magic(start)) != (1, 0):
        raise ValueError(f"it has the form {form}")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(start)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    if dtype.names is not None or not dtype.itemsize:
        raise ValueError(f"it holds {dtype}, not numbers")
    if prod(shape) * dtype.itemsize != len(content) - start.tell():
        raise ValueError(f"its shape {shape} does not have as many bytes as it")
    array = np.ndarray(shape, dtype, content, start.tell(), order="F" if by_columns else "C")
    if dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError("it holds truth values that are neither")
    return array.copy()


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__
