"""Notebooks show what their cells give: each is run, and its page and its file compared with what came out."""

import re
from pathlib import Path

import pytest

from tests.helpers import script

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
MAKE = script("make_notebooks")
MASKED = script("make_guides").masked


@pytest.mark.parametrize("name", MAKE.NAMES)
def test_a_notebook_gives_what_its_page_shows(name, tmp_path):
    shown = (FOLDER / f"{name}.md").read_text()
    made = MAKE.run(shown, tmp_path)
    text, pictures = MAKE.page(shown, made, name)
    assert MASKED(text).split("\n") == MASKED(shown).split("\n"), f"run `python docs/make_notebooks.py {name}`"
    assert pictures.keys() == {file.name for file in (FOLDER / MAKE.PICTURES).glob(f"{name}-*.png")}
    assert all(content.startswith(b"\x89PNG") for content in pictures.values())


@pytest.mark.parametrize("name", MAKE.NAMES)
def test_the_file_of_a_notebook_is_its_page(name):
    shown = (FOLDER / f"{name}.md").read_text()
    held = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    nbformat.validate(held)
    assert MAKE.page(shown, held, name)[0] == shown
    cells, rest = MAKE.cells(shown)
    words = [cell.words.strip() for cell in cells] + [rest.strip()]
    assert [cell.source for cell in held.cells if cell.cell_type == "markdown"] == [one for one in words if one]
    assert [cell.source + "\n" for cell in held.cells if cell.cell_type == "code"] == [cell.code for cell in cells]
    assert f"[As a notebook]({name}.ipynb)" in " ".join(shown.split())


def test_pictures_are_those_of_the_pages():
    named = {
        picture
        for name in MAKE.NAMES
        for picture in re.findall(rf"\({MAKE.PICTURES}/(.*?)\)", (FOLDER / f"{name}.md").read_text())
    }
    assert named == {file.name for file in (FOLDER / MAKE.PICTURES).iterdir()}
