"""docs/explanation/lead.md: its script makes the sections that a folder has anew, and leaves the others as they are;
its beginning says what its tables do."""

import re

import numpy as np
import pytest

import ravi
from tests.helpers import script

MAKE = script("figures/lead")
SUITE = {
    "steps": 60,
    "seeds": 4,
    "sections": [
        {"name": "mixtures", "mdps": ["fork/2"], "learners": ["ravi-kl/mixture", "psrl/mixture", "uniform"]},
        {"name": "tuned", "mdps": ["trap"], "learners": ["ravi-kl", "psrl"], "seeds": 2},
    ],
}


@pytest.mark.usefixtures("in_this_process")
def test_a_section_is_made_anew_and_the_others_stay(tmp_path):
    verdict = "| ravi-kl compared with | a | b | c |\n|---|--:|--:|--:|\n"
    verdict += "| ravi-kl, greedy | 1 | 1 | 1 |\n| psrl,support=on | 2 | 0 | 1 |\n"
    page = f"{MAKE.HEAD}\n## All learners know the supports\n\nas it was\n{verdict}\n## Linear mixtures\n\nof before\n"
    found = ravi.run_suite(SUITE, tmp_path / "out", workers=1)
    made = MAKE.made(found, page)
    assert f"## All learners know the supports\n\nas it was\n{verdict}" in made
    said = "- of 3 tabular MDPs, where learners know the supports, `ravi-kl` compared with `psrl,support=on` 2, 0, 1\n"
    assert said in made
    assert "of before" not in made
    part = made.partition("## Linear mixtures")[2]
    assert "T = 60, 4 seeds." in part
    assert "| psrl/mixture | " in part  # smaller, no significant difference, larger
    left = [title for section, title in MAKE.SECTIONS.items() if section not in ("told", "tuned", "mixtures")]
    assert made.rstrip().endswith(f"Sections of the suite that were not run yet: {'; '.join(left)}.")
    assert MAKE.made(found, made) == made


def test_a_cell_is_the_mean_with_what_it_hides():
    runs = np.arange(1.0, 12.0)
    runs[-1] = 989.0
    assert MAKE.cell(runs, best=True) == "**94.9** (10.0, 989)"
    assert MAKE.cell(runs[:3], best=False) == "2.0 (2.8, 3.0)"


def test_the_beginning_of_the_page_is_that_of_its_tables():
    page = MAKE.PAGE.read_text()
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)
    assert parts[0].strip() == MAKE.head(dict(zip(parts[1::2], parts[2::2], strict=True))).strip()
