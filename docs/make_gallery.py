"""Runs every example of the gallery, and writes what came out into docs/guides/gallery.md.

    python docs/make_gallery.py

Behind every Python block of the page stands what it printed and drew, between two markers. A block runs in a folder of
its own, and in no process of its own: it sees nothing of the others.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parent / "guides" / "gallery.md"
FIGURES = PAGE.parent / "gallery"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n\n<!-- given -->\n(?P<given>.*?)<!-- end -->\n", re.DOTALL)


def ran(code: str) -> tuple[str, dict[str, bytes]]:
    """What a block prints, and the figures (PNG) that it leaves in its folder."""
    said, before, path = io.StringIO(), os.getcwd(), list(sys.path)
    modules = re.findall(r'Path\("(\w+)\.py"\)', code)  # that the block writes: one of another folder is not it
    for name in modules:
        sys.modules.pop(name, None)
        sys.path[:] = [place for place in sys.path if not (Path(place) / f"{name}.py").exists()]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(said):
                exec(compile(code, "gallery", "exec"), {"__name__": "gallery"})
            drawn = {file.name: file.read_bytes() for file in sorted(Path(folder).glob("*.png"))}
        finally:
            os.chdir(before)
            sys.path[:] = path
            for name in modules:
                sys.modules.pop(name, None)
    return "\n".join(line.rstrip() for line in said.getvalue().splitlines()), drawn


def given(said: str, drawn: dict[str, bytes]) -> str:
    """What stands between the markers."""
    text = f"```text\n{said}\n```\n" if said else ""
    return text + "".join(f"\n![{Path(name).stem}](gallery/{name})\n" for name in drawn)


def main() -> None:
    figures: dict[str, bytes] = {}

    def again(found: re.Match[str]) -> str:
        said, drawn = ran(found["code"])
        figures.update(drawn)
        return f"```python\n{found['code']}```\n\n<!-- given -->\n{given(said, drawn)}<!-- end -->\n"

    PAGE.write_text(BLOCK.sub(again, PAGE.read_text()))
    FIGURES.mkdir(exist_ok=True)
    for name, content in figures.items():
        (FIGURES / name).write_bytes(content)
    for file in FIGURES.glob("*.png"):
        if file.name not in figures:
            file.unlink()


if __name__ == "__main__":
    main()
