"""On which line of a TOML file is a value? `tomllib` does not say; this walks over a text that it has accepted."""

import re
from itertools import pairwise
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]  # ("sections", 1, "learners", 3)

SKIPPED = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)  # strings and comments: nothing in them is structure


def lines(text: str) -> dict[Path, int]:
    """The line of every table and every value."""
    return {path: text.count("\n", 0, at) + 1 for path, at in _Walk(text).found.items()}


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = SKIPPED.sub(lambda m: (" " if m[0][0] == "#" else "x") * len(m[0]), text)  # same length
        self.found: dict[Path, int] = {}
        self._length: dict[Path, int] = {}  # of arrays of tables
        table: Path = ()
        at = self._next(0)
        while at < len(text):
            if self.bare[at] == "[":
                end = self.bare.index("]", at)
                table = self._header(at, end, many=self.bare.startswith("[[", at))
                at = self._next(self.bare.index("\n", end) if "\n" in self.bare[end:] else len(text))
            else:
                at = self._next(self._pair(at, table))

    def _header(self, at: int, end: int, many: bool) -> Path:
        *above, last = self._keys(at + 1 + many, end)
        path: Path = ()
        for key in above:
            path = self._inside((*path, key))
        path = (*path, last)
        if many:
            self.found.setdefault(path, at)
            self._length[path] = self._length.get(path, 0) + 1
            path = self._inside(path)
        self.found[path] = at
        return path

    def _inside(self, path: Path) -> Path:
        """The path of a table; in an array of tables, that of the last one so far."""
        return (*path, self._length[path] - 1) if path in self._length else path

    def _pair(self, at: int, table: Path) -> int:
        """`key = value`, and where it ends."""
        equals = self.bare.index("=", at)
        keys = self._keys(at, equals)
        for i in range(1, len(keys)):
            self.found.setdefault((*table, *keys[:i]), at)
        return self._value(self._next(equals + 1), (*table, *keys))

    def _value(self, at: int, path: Path) -> int:
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
