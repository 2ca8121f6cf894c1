"""The mistakes of a suite, a line for each, with the line of a TOML file that it stands on.

`tomllib` does not say where a value is: `lines` walks over a text that it has accepted.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeAlias

from ravi.validation import InputError

Place: TypeAlias = tuple[str | int, ...]  # ("sections", 1, "learners", 3)

SKIPPED = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)  # strings and comments: nothing in them is structure


class Mistakes:
    """The mistakes of a suite, each with its place."""

    def __init__(self, file: str, lines: Mapping[Place, int]) -> None:
        self.file, self._lines = file, lines
        self._found: dict[str, int] = {}  # message -> line

    def add(self, path: Place, message: str) -> None:
        line = next((self._lines[path[:i]] for i in range(len(path), 0, -1) if path[:i] in self._lines), 0)
        dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
        where = [f"{self.file}:{line}" if line else self.file, dotted, message]
        self._found.setdefault(": ".join(part for part in where if part), line)

    @contextmanager
    def at(self, path: Place) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            self.add(path, str(error))

    def tell(self) -> None:
        if self._found:
            raise InputError("\n".join(sorted(self._found, key=lambda message: self._found[message])))


def first_line(error: Exception) -> str:
    """One line, and no list of what is known where there is a suggestion."""
    text = (str(error).strip().splitlines() or [""])[0]
    if not isinstance(error, InputError):
        return f"{type(error).__name__}: {text}"
    return text.split(" Known: ")[0] if "Did you mean" in text else text


def lines(text: str) -> dict[Place, int]:
    """The line of every table and every value."""
    return {path: text.count("\n", 0, at) + 1 for path, at in _Walk(text).found.items()}


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = SKIPPED.sub(lambda m: (" " if m[0][0] == "#" else "x") * len(m[0]), text)  # same length
        self.found: dict[Place, int] = {}
        self._length: dict[Place, int] = {}  # of arrays of tables
        table: Place = ()
        at = self._next(0)
        while at < len(text):
            if self.bare[at] == "[":
                end = self.bare.index("]", at)
                table = self._header(at, end, many=self.bare.startswith("[[", at))
                at = self._next(self.bare.index("\n", end) if "\n" in self.bare[end:] else len(text))
            else:
                at = self._next(self._pair(at, table))

    def _header(self, at: int, end: int, many: bool) -> Place:
        *above, last = self._keys(at + 1 + many, end)
        path: Place = ()
        for key in above:
            path = self._inside((*path, key))
        path = (*path, last)
        if many:
            self.found.setdefault(path, at)
            self._length[path] = self._length.get(path, 0) + 1
            path = self._inside(path)
        self.found[path] = at
        return path

    def _inside(self, path: Place) -> Place:
        """The path of a table; in an array of tables, that of the last one so far."""
        return (*path, self._length[path] - 1) if path in self._length else path

    def _pair(self, at: int, table: Place) -> int:
        """`key = value`, and where it ends."""
        equals = self.bare.index("=", at)
        keys = self._keys(at, equals)
        for i in range(1, len(keys)):
            self.found.setdefault((*table, *keys[:i]), at)
        return self._value(self._next(equals + 1), (*table, *keys))

    def _value(self, at: int, path: Place) -> int:
        self.found[path] = at
        opened = self.bare[at]
        if opened not in "[{":
            ends = re.compile(r"[,\]}\n]").search(self.bare, at)
            return ends.start() if ends else len(self.bare)
        at, i = self._next(at + 1), 0
        while self.bare[at] not in "]}":
            at = self._value(at, (*path, i)) if opened == "[" else self._pair(at, path)
            at, i = self._next(at), i + 1
        return at + 1

    def _next(self, at: int) -> int:
        """Past white space and commas."""
        found = re.compile(r"[^\s,]").search(self.bare, at)
        return found.start() if found else len(self.bare)

    def _keys(self, at: int, end: int) -> list[str]:
        """The parts of a dotted key, without their quotes."""
        cuts = [at - 1, *(i for i in range(at, end) if self.bare[i] == "."), end]
        parts = [self.text[low + 1 : high].strip() for low, high in pairwise(cuts)]
        return [part[1:-1] if part[:1] in "\"'" and part else part for part in parts]
