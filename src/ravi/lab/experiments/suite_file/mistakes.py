"""What is wrong with a suite, and where? All of it, a line for each mistake."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ravi.lab.experiments.suite_file.toml_lines import Path as Place
from ravi.validation import InputError


class Mistakes:
    """What is wrong, each with its place."""

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


def said(error: Exception) -> str:
    """One line, and no list of what is known where there is a suggestion."""
    text = (str(error).strip().splitlines() or [""])[0]
    if not isinstance(error, InputError):
        return f"{type(error).__name__}: {text}"
    return text.split(" Known: ")[0] if "Did you mean" in text else text
