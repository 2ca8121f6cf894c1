"""The mistakes of a suite, a line for each, with the line of a TOML file that it stands on.

`tomllib` does not say where a value is: `lines` walks over a text that it has accepted.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, TypeAlias

from ravi.validation import InputError

Place: TypeAlias = tuple[str | int, ...]  # ("sections", 1, "learners", 3)

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|[\[\]{}=,\n]|[^\s\[\]{}=,#\"']+",
    re.DOTALL,
)  # strings, comments, structure, and what stands between


class Places(NamedTuple):
    """The places in the file of the parts of a section."""

    shared: dict[str, Place]  # the keys that the top may give, by name
    mdps: dict[str, Place]
    learners: dict[str, Place]  # by label


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
    found: dict[Place, int] = {}
    lengths: dict[Place, int] = {}  # of arrays of tables
    tokens = deque(_tokens(text))

    def skip(*some: str) -> None:
        while tokens and tokens[0][0] in some:
            tokens.popleft()

    def keys(end: str) -> list[str]:
        """The parts of a dotted key, without their quotes."""
        parts: list[str] = []
        while (token := tokens.popleft()[0]) != end:
            parts += [token[1:-1]] if token[0] in "\"'" else filter(None, token.split("."))
        return parts

    def last(path: Place) -> Place:
        """The path of a table; in an array of tables, that of the last one so far."""
        return (*path, lengths[path] - 1) if path in lengths else path

    def header() -> Place:
        line = tokens.popleft()[1]
        many = tokens[0][0] == "["
        skip("[")
        path: Place = ()
        *above, key = keys("]")
        skip("]")
        for one in above:
            path = last((*path, one))
        path = (*path, key)
        if many:
            found.setdefault(path, line)
            lengths[path] = lengths.get(path, 0) + 1
            path = last(path)
        found[path] = line
        return path

    def pair(table: Place) -> None:
        line = tokens[0][1]
        names = keys("=")
        for i in range(1, len(names)):
            found.setdefault((*table, *names[:i]), line)
        value((*table, *names))

    def value(path: Place) -> None:
        opened, found[path] = tokens.popleft()
        if opened in "[{":
            skip("\n", ",")
            for i in count():
                if tokens[0][0] in "]}":
                    break
                value((*path, i)) if opened == "[" else pair(path)
                skip("\n", ",")
            tokens.popleft()
        else:
            while tokens and tokens[0][0] not in (",", "]", "}", "\n"):  # a date and its time
                tokens.popleft()

    table: Place = ()
    skip("\n")
    while tokens:
        if tokens[0][0] == "[":
            table = header()
        else:
            pair(table)
        skip("\n")
    return found


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """The tokens of a text but for comments, each with its line."""
    line, at = 1, 0
    for token in TOKEN.finditer(text):
        line, at = line + text.count("\n", at, token.start()), token.start()
        if token[0][0] != "#":
            yield token[0], line
