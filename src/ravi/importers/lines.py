"""How is a text file read so that an error names its file, its line, and what would be right?"""

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from ravi import validation
from ravi.validation import InputError, require_memory


def is_whole(word: str) -> bool:
    """Whether a word is a whole number: digits that Python reads, and no others."""
    return re.fullmatch("[0-9]{1,4000}", word) is not None


class Lines:
    """The lines of a file that hold something, each with its number."""

    def __init__(self, path: str | os.PathLike[str], comment: str | None = "#") -> None:
        self.path = validation.path(path, "the file")
        try:
            require_memory(10 * self.path.stat().st_size, f"the text of {self.path}", "its size")
            text = self.path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise InputError(f"there is no file {self.path}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path} cannot be read as a text: {error}") from None
        self._lines = []
        for number, line in enumerate(text.splitlines(), 1):
            held = (line if comment is None else line.partition(comment)[0]).strip()
            if held:
                self._lines.append((number, held))

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: int) -> tuple[int, str]:
        return self._lines[place]

    def where(self, line: int) -> str:
        return f"{self.path}, line {line}"

    def wrong(self, line: int, what: str) -> InputError:
        return InputError(f"{self.where(line)}: {what}")

    def whole(self, line: int, text: Any, name: str, least: int = 0, most: int = 2**62) -> int:
        return self.checked(line, validation.whole, text, name, least, most)

    def number(self, line: int, text: Any, name: str) -> float:
        return self.checked(line, validation.number, text, name)

    def checked(self, line: int, check: Callable[..., Any], *given: Any) -> Any:
        """What a check gives; its error begins with the line."""
        try:
            return check(*given)
        except InputError as error:
            raise self.wrong(line, str(error)) from None

    def probability(self, line: int, text: Any) -> float:
        found = self.number(line, text, "the probability")
        if not 0 <= found <= 1:
            raise self.wrong(line, f"the probability is {found:g}, not between 0 and 1")
        return found
