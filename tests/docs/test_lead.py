"""docs/explanation/lead.md: its script makes the sections that a folder has anew, and leaves the others as they are."""

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
    page = f"{MAKE.HEAD}\n## All learners told the supports\n\nas it was\n\n## Linear mixtures\n\nof before\n"
    found = ravi.run_suite(SUITE, tmp_path / "out", workers=1)
    made = MAKE.made(found, page)
    assert "## All learners told the supports\n\nas it was\n" in made
    assert "of before" not in made
    part = made.partition("## Linear mixtures")[2]
    assert "T = 60, 4 seeds." in part
    assert "| psrl/mixture | " in part  # ahead, tied, behind
    left = [title for section, title in MAKE.SECTIONS.items() if section not in ("told", "tuned", "mixtures")]
    assert made.rstrip().endswith(f"Sections of the suite that were not run yet: {'; '.join(left)}.")
    assert MAKE.made(found, made) == made


def test_the_page_is_what_its_script_writes_of_it():
    page = MAKE.PAGE.read_text()
    assert page.startswith(MAKE.HEAD)
