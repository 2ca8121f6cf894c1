"""The gallery shows what the code gives: every block is run again, and its output compared to the letter."""

import re
from pathlib import Path

import pytest

from tests.helpers import script

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "guides" / "gallery.md").read_text()


MAKE = script("make_gallery")
BLOCKS = list(MAKE.BLOCK.finditer(TEXT))
QUESTIONS = re.findall(r"^## (.*)$", TEXT, flags=re.MULTILINE)


def test_every_question_has_code_its_output_and_a_reading():
    assert len(QUESTIONS) >= 8
    assert TEXT.count("```python") == len(BLOCKS)
    for section in re.split(r"^## .*$", TEXT, flags=re.MULTILINE)[1:]:
        assert section.count("```python") == 1
        (found,) = MAKE.BLOCK.finditer(section)
        assert found["given"].strip()
        reading = section[found.end() :].strip()
        assert reading.endswith(".")
        assert "```" not in reading


def test_every_figure_is_of_a_block():
    shown = set(re.findall(r"\]\(gallery/([\w-]+\.png)\)", TEXT))
    assert shown == {file.name for file in (DOCS / "guides" / "gallery").iterdir()}


@pytest.mark.parametrize("block", BLOCKS, ids=[question.lower().replace(" ", "-") for question in QUESTIONS])
def test_the_output_is_what_the_code_gives_now(block):
    said, drawn = MAKE.ran(block["code"])
    assert MAKE.given(said, drawn) == block["given"], "run `python docs/make_gallery.py`"
