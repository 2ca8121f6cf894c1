"""Runs the notebooks, and writes what came out: `python docs/make_notebooks.py [NAME ...]`.

A notebook is a page of Markdown in docs/tutorials: its ```python blocks are the cells, in one kernel, and what a cell
printed, drew or showed stands behind it, between two markers. Beside the page stands the same as NAME.ipynb.
"""

from __future__ import annotations

import base64
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "tutorials"
PICTURES = "pictures"
NAMES = ("tour", "your_environment", "your_learner", "reading_a_guarantee")
LANGUAGE = {"language_info": {"name": "python"}}
GIVEN, END = "<!-- given -->\n", "<!-- end -->\n"
BLOCK = re.compile(rf"```python\n(?P<code>.*?)```\n(?:\n{GIVEN}(?P<given>.*?){END})?", re.DOTALL)


class Cell(NamedTuple):
    words: str  # before it, of the page
    code: str
    given: str  # what the page says that it gives


def cells(text: str) -> tuple[list[Cell], str]:
    """The cells of a page, and what is said behind the last."""
    found, last = list[Cell](), 0
    for block in BLOCK.finditer(text):
        found.append(Cell(text[last : block.start()], block["code"], block["given"] or ""))
        last = block.end()
    return found, text[last:]


def run(text: str, folder: Path | str) -> nbformat.NotebookNode:
    """The page as a notebook, run in a folder, in a kernel of its own; times are not kept."""
    found, rest = cells(text)
    words, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    pairs = [(words(cell.words.strip()), code(cell.code.rstrip("\n"))) for cell in found]
    parts = [part for pair in pairs for part in pair if part.source] + [words(rest.strip())] * bool(rest.strip())
    for number, part in enumerate(parts):
        part.id = f"cell-{number}"
    made = nbformat.v4.new_notebook(cells=parts, metadata=LANGUAGE)
    options = {"resources": {"metadata": {"path": str(folder)}}, "coalesce_streams": True}  # however they came
    NotebookClient(made, timeout=300, kernel_name="python3", **options).execute()
    for cell in made.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":  # bars that are gone leave nothing
            cell.outputs = [one for one in cell.outputs if one.get("data", {}).get("text/html") != ""]
    made.metadata = nbformat.from_dict(LANGUAGE)
    return made


def given(outputs: list[Any], stem: str, pictures: dict[str, bytes]) -> str:
    """What stands behind a cell: pictures as files, HTML as it is, and text."""
    parts = []
    for number, output in enumerate(outputs):
        data = output.get("data", {})
        if "image/png" in data:
            name = f"{stem}-{number}.png" if number else f"{stem}.png"
            pictures[name] = base64.b64decode(data["image/png"])
            parts.append(f"![what the cell draws]({PICTURES}/{name})\n")
        elif "text/html" in data:
            parts.append(data["text/html"].strip() + "\n")
        else:
            said = output.get("text") or data.get("text/plain", "")
            parts.append("```text\n" + "\n".join(line.rstrip() for line in said.strip("\n").splitlines()) + "\n```\n")
    return "\n".join(parts)


def page(text: str, made: nbformat.NotebookNode, name: str) -> tuple[str, dict[str, bytes]]:
    """The page with what its cells give, and its pictures."""
    found, rest = cells(text)
    outputs = [cell.outputs for cell in made.cells if cell.cell_type == "code"]
    pictures: dict[str, bytes] = {}
    parts = []
    for number, (cell, shown) in enumerate(zip(found, outputs, strict=True), 1):
        behind = given(shown, f"{name}-{number}", pictures)
        parts.append(f"{cell.words}```python\n{cell.code}```\n" + (f"\n{GIVEN}{behind}{END}" if behind else ""))
    return "".join(parts) + rest, pictures


def main(names: list[str]) -> None:
    for name in names or NAMES:
        place = FOLDER / f"{name}.md"
        with tempfile.TemporaryDirectory() as folder:
            made = run(place.read_text(), folder)
        text, pictures = page(place.read_text(), made, name)
        place.write_text(text)
        nbformat.write(made, place.with_suffix(".ipynb"))
        (FOLDER / PICTURES).mkdir(exist_ok=True)
        for old in (FOLDER / PICTURES).glob(f"{name}-*.png"):
            old.unlink()
        for file, content in pictures.items():
            (FOLDER / PICTURES / file).write_bytes(content)


if __name__ == "__main__":
    main(sys.argv[1:])
