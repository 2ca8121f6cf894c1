"""Runs every block of the guides in order: `python docs/make_guides.py` writes what they print.

A guide is a page that is one story. Its ```python blocks share one namespace and one folder; a block that begins with
`# name.py` is a file of that name instead. A ```text block after one is what it printed. In a ```console block, lines
that begin with `$ ` are typed, and the others are what they print; an exit status other than 0 is said in a comment.
Numbers are compared as they are written; times, and errors of rounding below 1e-6, are not. `...` stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
GUIDES = (
    "tutorials/solve_my_environment",
    "tutorials/ten_minutes",
    "guides/gymnasium",
    "guides/simulators",
    "guides/table",
    "guides/import",
    "guides/add_a_learner",
    "explanation/guarantee",
)
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.(?:py|toml))\n")
PROGRAMS = {"ravi": str(Path(sys.executable).with_name("ravi")), "python": sys.executable}  # as they are installed
TIMES = re.compile(r"\d[\d,.]* (?:s|ms|us|(?:plays|steps) per second|steps/s)\b|\bin \d[\d.]*s\b(?: \([\d:]+\))?")
SMALL = re.compile(r"\b\d(?:\.\d+)?e-(?:0[7-9]|[1-9]\d)\b")


class Block(NamedTuple):
    language: str
    body: str
    start: int  # of its body in the page
    end: int


class Said(NamedTuple):
    """What a guide says that something prints, and what it prints."""

    what: str
    wanted: str
    got: str
    start: int
    end: int

    @property
    def true(self) -> bool:
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        return doctest.OutputChecker().check_output(masked(self.wanted), masked(self.got), flags)


def blocks(text: str) -> list[Block]:
    return [Block(m[1], m[2], m.start(2), m.end(2)) for m in FENCE.finditer(text)]


def masked(text: str) -> str:
    """A text without what differs from run to run, and from machine to machine."""
    return SMALL.sub("<small>", TIMES.sub("<time>", text))


def told(page: Path, folder: Path) -> Iterator[Said]:
    """Run a guide in a folder: what it says, and what is so."""
    names: dict[str, object] = {"__name__": "guide"}
    printed, last = "", ""
    for block in blocks(page.read_text()):
        found = FILE.match(block.body)
        if block.language in ("python", "toml") and found:
            (folder / found[1]).write_text(block.body)
        elif block.language == "python":
            last, output = block.body, io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.chdir(folder), importing(folder):
                exec(compile(block.body, f"<{page.name}>", "exec"), names)
            printed = output.getvalue()
        elif block.language == "text":
            yield Said(last, block.body, printed, block.start, block.end)
        elif block.language == "console":
            yield from typed(block, folder)
        else:
            raise AssertionError(f"{page.name} has a block of {block.language or 'nothing'}, which is not run")


@contextlib.contextmanager
def importing(folder: Path) -> Iterator[None]:
    """Files of this folder can be imported, and are forgotten."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def typed(block: Block, folder: Path) -> Iterator[Said]:
    """The commands of a block, and what they print, errors too."""
    place = block.start
    for part in re.split(r"^(?=\$ )", block.body, flags=re.MULTILINE):
        head = re.match(r"\$ (?:.*\\\n)*.*\n", part)
        if head:
            command = head[0][2:]
            program, *words = shlex.split(command.replace("\\\n", " "), comments=True)
            environment = os.environ | {"COLUMNS": "120", "NO_COLOR": "1"}
            done = subprocess.run(
                [PROGRAMS[program], *words], cwd=folder, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            status = re.search(r"# exit status (\d+)$", command)
            assert done.returncode == (int(status[1]) if status else 0), f"{command}{done.stdout}"
            yield Said(command, part[head.end() :], done.stdout, place + head.end(), place + len(part))
        place += len(part)


def write(page: Path) -> None:
    """Put what is so where something else is said."""
    with tempfile.TemporaryDirectory() as folder:
        found = list(told(page, Path(folder)))
    text = page.read_text()
    for said in sorted(found, key=lambda said: -said.start):
        if not said.true:
            text = text[: said.start] + said.got.rstrip("\n") + "\n" + text[said.end :]
    page.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:] or GUIDES:
        write(DOCS / f"{name}.md")
