"""What does a file of JSON hold? Read in one place, with limits on its size and depth.

Objects that decide what is shown carry a `seal`, a hash of all that they hold: a value that was changed afterwards is
noticed. It is no signature: who changes an object on purpose can seal it again.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import IO, Any

import numpy as np

from ravi.checks import InputError

SEAL = "seal"  # the key of the hash
LARGEST = 2**27  # bytes
DEEPEST = 100  # lists and objects in one another


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a file of JSON holds."""
    with reading(path) as file:
        text = file.read(LARGEST + 1)
    try:
        return parsed(text)
    except ValueError as error:
        raise InputError(f"{os.fspath(path)} is damaged: it is no JSON: {error}") from None


def parsed(text: bytes) -> Any:
    """What a text of JSON holds; anything else is a ValueError."""
    if len(text) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:,} bytes")
    if (depth := _depth(text)) > DEEPEST:
        raise ValueError(f"it is nested {depth:,} deep, and {DEEPEST} is the most")
    return json.loads(text.decode())


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """An object with its seal."""
    return {**content, SEAL: seal_of(content)}


def unsealed(content: Mapping[str, Any], where: str, *, must: bool = False) -> dict[str, Any]:
    """An object without its seal, which has to be right. One from before there were seals has none; `must` it have one,
    that too is an error."""
    held = dict(content)
    seal = held.pop(SEAL, None)
    if seal is None and must:
        raise InputError(f"{where} is damaged: it has no seal")
    if seal is not None and seal != seal_of(held):
        raise InputError(f"{where} is damaged: it was changed after it was written")
    return held


def seal_of(content: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> str:
    """A hash of an object, and of arrays that belong to it."""
    hashed = sha256(json.dumps(content).encode())
    for name, array in (arrays or {}).items():
        hashed.update(repr((name, array.dtype.str, array.shape)).encode())
        hashed.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file, opened. A device or a pipe may never end, and is none."""
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


def _depth(text: bytes) -> int:
    """How many brackets are open at once."""
    depth = most = 0
    for bracket in re.sub(rb'"(?:[^"\\]+|\\.)*+"?|[^][{}"]+', b"", text, flags=re.DOTALL):
        depth += 1 if bracket in b"[{" else -1
        most = max(most, depth)
    return most
