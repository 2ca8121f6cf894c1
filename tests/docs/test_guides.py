"""The guides tell the truth: every block of them is run, and what they say that it prints is what it prints."""

import re
from pathlib import Path

import pytest

from tests.helpers import script

DOCS = Path(__file__).parents[2] / "docs"


RUN = script("make_guides")


LONG = ("guides/gymnasium", "guides/table", "guides/add_a_learner", "explanation/guarantee")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in RUN.GUIDES])
def test_a_guide_says_what_is_so(name, tmp_path):
    for said in RUN.told(DOCS / f"{name}.md", tmp_path):
        assert said.true, f"{said.what}\nprints\n{said.got}\nnot\n{said.wanted}"


def test_the_lake_of_the_guide_is_the_one_that_was_measured():
    guide, measured = (
        (DOCS / "guides" / "gymnasium.md").read_text(),
        (DOCS.parent / "benchmarks" / "live.md").read_text(),
    )
    table = re.search(r"<!-- measured -->\n(.*?)<!-- end -->", guide, re.DOTALL)[1]
    assert "--learner certainty-equivalent --discount 0.99 --steps 3e5 --reward-scale 0.1" in guide
    assert "| `certainty-equivalent`, reward scale 0.1 | 300,000 |" in table
    assert table in measured


def test_every_page_with_commands_that_print_is_a_guide():
    pages = {
        str(page.relative_to(DOCS).with_suffix(""))
        for page in DOCS.rglob("*.md")
        if re.search(r"^```(console|sh|text)", page.read_text(), re.M)
    }
    notebooks = {str(file.relative_to(DOCS).with_suffix("")) for file in DOCS.rglob("*.ipynb")}
    assert pages <= {*RUN.GUIDES, "guides/gallery", "reference/command"} | notebooks  # which have tests of their own


def test_every_guide_is_linked_from_the_home_page():
    home = (DOCS / "index.md").read_text()
    for name in RUN.GUIDES:
        assert f"({name}.md)" in home


def test_what_differs_is_seen_and_times_are_not():
    def true(wanted, got):
        return RUN.Said("", wanted, got, 0, 0).true

    assert true("regret 12.5, in 3.10 s, 12,000 steps per second\n", "regret 12.5, in 4 s, 9 steps per second\n")
    assert true("1 passed in 3.10s\n", "1 passed in 72.10s (0:01:12)\n")
    assert true("optimum 0.5 (error at most 1.2e-12)\n", "optimum 0.5 (error at most 3e-11)\n")
    assert true("first\n...\nlast\n", "first\n2\n3\nlast\n")
    assert not true("regret 12.5\n", "regret 12.6\n")
    assert not true("12 s\n", "12 m\n")
    assert not true("error 1.2e-03\n", "error 1.3e-03\n")
    assert not true("one\n", "one\ntwo\n")


def test_a_guide_that_does_not_run_or_has_blocks_that_are_not_run_fails(tmp_path):
    page = tmp_path / "page.md"
    for wrong in ("```python\n1 / 0\n```\n", "```bash\nls\n```\n", "```console\n$ ravi solve nothing\n```\n"):
        page.write_text(wrong)
        with pytest.raises((ZeroDivisionError, AssertionError)):
            list(RUN.told(page, tmp_path))
    page.write_text("```python\nx = 1\n```\nwords\n```python\nprint(x + 1)\n```\n```text\n3\n```\n")
    (said,) = RUN.told(page, tmp_path)
    assert not said.true
    RUN.write(page)
    (said,) = RUN.told(page, tmp_path)
    assert said.true
    assert said.wanted == "2\n"
