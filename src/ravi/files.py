"""How is anything stored? One portable file: a zip archive of arrays and a JSON header, never pickle.

The file is what `numpy.savez` writes, so `numpy.load(path)` opens it anywhere: an entry `header.npy`, the bytes of a
JSON object

    {"format": "ravi", "kind": "mdp", "version": 1, "arrays": [names], ..., "seal": a hash of all of it}

and one entry per array, none of them compressed. The archive's checksums cover every array; the list of names covers
the archive; the seal covers what was changed on purpose, by a tool that writes sound archives. The same content gives
the same bytes. A file is written under a temporary name and renamed when it is complete, so a reader, or a crash, never
sees half of one.

A seal is no signature: who changes a file can seal it again. What is read is therefore checked for what it is used for,
and nothing is believed about sizes: no entry takes more memory than the file has bytes.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import secrets
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from math import prod
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ravi import headers, older, tree
from ravi.checks import InputError, shown
from ravi.core import MDP
from ravi.jsons import SEAL, parsed, reading, seal_of

if TYPE_CHECKING:
    from ravi.runs import Run

FORMAT = "ravi"
VERSION = 1
HEADER = "header"  # the entry of the JSON object
RESERVED = ("format", "kind", "version", "arrays", SEAL)  # its keys that are not metadata
GIVEN = tuple(field.name for field in fields(MDP) if field.init)  # what an MDP is made of
MDP_HEADER = {
    "name": str, "discount": float, "units": tuple[float, float], "parameter_bound": float | None,
    "feature_bound": float | None,
}  # fmt: skip

# What zipfile, numpy and json raise at bytes that are not theirs; RuntimeError at an entry that claims to be encrypted,
# or (NotImplementedError) to be of an unknown compression.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, MemoryError, OSError, OverflowError,
    RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip

Path = str | os.PathLike[str]
Place = Path | IO[bytes]  # where an archive is written or read: a path, or an open file, such as io.BytesIO


class Unwritable(InputError):
    """A file could not be written: a disk that is full, a folder that is read-only."""


def write(place: Place, kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the arrays and the header's metadata to exactly this place; to a path, all or nothing."""
    entries = _entries(_where(place), kind, header, arrays)
    if isinstance(place, (str, os.PathLike)):
        put(place, lambda file: _pack(file, entries))
    else:
        _pack(place, entries)


def put(path: Path, fill: Callable[[IO[bytes]], object], what: str = "") -> None:
    """Make a file by `fill`, all or nothing: it has its name when its bytes, and the name itself, are on disk.

    All that the library writes goes this way. The temporary name is fresh, and nothing is written through a link: a
    file takes the place of a link of its name, and what that points to stays. what: as in `may_be`.
    """
    where = os.fspath(path)
    may_be(path, what)
    folder = os.path.dirname(where) or "."
    temporary = os.path.join(folder, f".ravi-{secrets.token_hex(8)}-{os.getpid()}@{platform.node()}.tmp")
    try:
        with open(temporary, "xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, where)
        _sync(folder)
    except OSError as error:
        raise Unwritable(f"{_cannot(where, what)}: {error.strerror or error}") from None
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def may_be(path: Path, what: str = "") -> None:
    """An error where no file can be: its folder is missing, or it is a device or a pipe. To ask before long work.

    what: what the file is to the user, such as "the figure", for the error.
    """
    where = os.fspath(path)
    folder = os.path.dirname(where) or "."
    try:
        os.lstat(where)
    except ValueError as error:  # a name may hold what no file's can
        raise InputError(f"{_cannot(where, what)}: {error}") from None
    except OSError:
        pass
    if not os.path.isdir(folder):
        raise InputError(f"{_cannot(where, what)}: there is no folder {folder}")
    if os.path.exists(where) and not os.path.isfile(where) and not os.path.isdir(where):
        raise InputError(f"{_cannot(where, what)}: it is a device or a pipe, not a file")


def _cannot(where: str, what: str) -> str:
    return f"cannot write {what} {where}" if what else f"cannot write {where}"


def put_text(path: Path, text: str, what: str = "") -> None:
    """The same for a text."""
    put(path, lambda file: file.write(text.encode(errors="backslashreplace")), what)


def tidy(folder: Path) -> None:
    """Remove what processes of this machine that are no more left half written in a folder."""
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


def read(place: Place, *kinds: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file of one of these kinds; anything else is an error that says what is wrong."""
    where = _where(place)
    if not isinstance(place, (str, os.PathLike)):
        return _opened(place, where, kinds)
    if not os.path.exists(place):
        raise InputError(f"there is no file {where}")
    with reading(place) as file:
        return _opened(file, where, kinds)


def _where(place: Place) -> str:
    if not isinstance(place, (str, os.PathLike)) and not hasattr(place, "read"):
        raise InputError(f"the file is {shown(place)}, not a path or an open file")
    return os.fspath(place) if isinstance(place, (str, os.PathLike)) else "the content"


def _opened(file: IO[bytes], where: str, kinds: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    start = file.read(4)
    if start != b"PK\x03\x04":  # how an archive with an entry begins
        raise InputError(f"{where} is not a ravi file: {'it is empty' if not start else 'no archive of arrays'}")
    return _unpack(file, where, kinds)


def save_mdp(mdp: MDP, path: Place) -> None:
    """Write an MDP; `load_mdp` gives the same bits back."""
    arrays, header = {}, {}
    for name in GIVEN:
        value = getattr(mdp, name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            header[name] = value
    write(path, "mdp", header, arrays)


def load_mdp(path: Place) -> MDP:
    """Read an MDP and check it as if it had just been made."""
    header, arrays = read(path, "mdp")
    values = {name: value for name, value in (header | arrays).items() if name in GIVEN}
    values.setdefault("units", (0.0, 1.0))  # files from before there were units
    missing = [name for name in GIVEN if name not in values]
    if missing:
        raise InputError(f"{_where(path)} is damaged: it has no {', '.join(missing)}")
    try:
        headers.checked(values, MDP_HEADER)
    except InputError as error:
        raise InputError(f"{_where(path)} is damaged: {error}") from None
    try:
        return MDP(**values)
    except InputError as error:
        raise InputError(f"{_where(path)}: {error}") from None


def save_run(run: Run, path: Place) -> None:
    """Write a run: its results, and the state of each seed, so that it can be resumed."""
    header = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in ("batch", "results")}
    stands = run.batch if isinstance(run.batch, dict) else tree.stored(run.batch)
    arrays = {f"batch.{name}": array for name, array in stands.items()}
    write(path, "run", header, arrays | {f"results.{name}": array for name, array in run.results.items()})


def load_run(path: Place) -> Run:
    """Read a run; `batch` holds its arrays by name, which `resume` puts into their places."""
    header, arrays = read(path, "run", "large")
    try:
        if header.get("kind") == "large":  # from before runs in large worlds were runs like all others
            header, arrays = older.as_run(header, arrays)
        return _run_of(header, arrays)
    except InputError as error:
        raise InputError(f"{_where(path)} is damaged: {error}") from None


def _run_of(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Run:
    from ravi.runs import Run, shaped, told_by

    parts: dict[str, dict[str, np.ndarray]] = {"batch": {}, "results": {}}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = array
    run = Run(**told_by(header), batch=parts["batch"], results=parts["results"])
    if "world" not in header and "plays_at" in run.results:  # rewards changed, and it was scored apart from its file
        run = replace(run, world="changing", options=run.options | {"measured": True}, results={})
    return shaped(run)


def _entries(where: str, kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Every entry of the archive, the header first, checked before a file is touched."""
    for key in RESERVED:
        if key in header:
            raise InputError(f"cannot write {where}: the header's {key!r} is the format's own")
    for name, array in arrays.items():
        if name == HEADER:
            raise InputError(f"cannot write {where}: an array cannot be called {HEADER!r}")
        if np.asarray(array).dtype.hasobject:
            raise InputError(f"cannot write {where}: {name} holds Python objects, not numbers")
        if np.asarray(array).dtype.names is not None:
            raise InputError(f"cannot write {where}: {name} holds records, not numbers")
    full = {"format": FORMAT, "kind": kind, "version": VERSION, "arrays": list(arrays), **header}
    try:
        json.dumps(full, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot write {where}: the header is not JSON ({error})") from None
    text = json.dumps(full | {SEAL: seal_of(full, {name: np.asarray(array) for name, array in arrays.items()})})
    return {HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}


def _pack(file: IO[bytes], entries: Mapping[str, Any]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in entries.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980: the same content, the same bytes
            entry.external_attr = 0o644 << 16
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)


def _unpack(file: IO[bytes], where: str, kinds: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        archive = zipfile.ZipFile(file)
        names = _names(archive, file)
    except DAMAGE as error:
        raise InputError(f"{where} is damaged or cut short: {_said(error)}") from None
    if f"{HEADER}.npy" not in names:
        raise InputError(f"{where} is not a ravi file: it has no header")
    try:
        header = parsed(_array(archive, HEADER).tobytes())
    except DAMAGE as error:
        raise InputError(f"{where} is damaged: its header cannot be read: {_said(error)}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{where} is not a ravi file: its header does not say so")
    version, listed = header.get("version"), header.get("arrays")
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{where} is damaged: its version is {version!r}")
    if version > VERSION:
        raise InputError(f"{where} has version {version} of the format; this ravi reads up to {VERSION}")
    if header.get("kind") not in kinds:
        raise InputError(f"{where} holds {header.get('kind')!r}, not {kinds[0]!r}")
    if not isinstance(listed, list) or {f"{name}.npy" for name in [HEADER, *listed]} != names:
        raise InputError(f"{where} is damaged: it does not hold the arrays that its header lists")
    arrays = {}
    for name in listed:
        try:
            arrays[name] = _array(archive, name)
        except DAMAGE as error:
            raise InputError(f"{where} is damaged: its array {name!r} cannot be read: {_said(error)}") from None
    seal = header.pop(SEAL, None)  # None in files from before there were seals
    if seal is not None and seal != seal_of(header, arrays):
        raise InputError(f"{where} is damaged: it was changed after it was written")
    return header, arrays


def _names(archive: zipfile.ZipFile, file: IO[bytes]) -> set[str]:
    """The names of all entries, if none is compressed and all are as large as they can be in a file of this size."""
    entries = archive.infolist()
    names = {entry.filename for entry in entries}
    if len(names) < len(entries):
        raise ValueError("two entries have one name")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise ValueError(f"its entry {entry.filename!r} is compressed, which ravi's are not")
    if sum(entry.file_size for entry in entries) > file.seek(0, os.SEEK_END):
        raise ValueError("its entries claim more bytes than it has")
    return names


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One entry; reading it to its end is what compares its checksum."""
    content = archive.read(f"{name}.npy")
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


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _sync(folder: str) -> None:
    """Flush a folder to disk, and with it the names of its files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
