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
    page = f"{MAKE.HEAD}\n## All learners know the supports\n\nas it was\n\n## Linear mixtures\n\nof before\n"
    found = ravi.run_suite(SUITE, tmp_path / "out", workers=1)
    made = MAKE.made(found, page)
    assert "## All learners know the supports\n\nas it was\n" in made
    assert "of before" not in made
    part = made.partition("## Linear mixtures")[2]
    assert "T = 60, 4 seeds." in part
    assert "| psrl/mixture | " in part  # smaller, no significant difference, larger
    left = [title for section, title in MAKE.SECTIONS.items() if section not in ("told", "tuned", "mixtures")]
    assert made.rstrip().endswith(f"Sections of the suite that were not run yet: {'; '.join(left)}.")
    assert MAKE.made(found, made) == made


def test_the_page_is_what_its_script_writes_of_it():
    page = MAKE.PAGE.read_text()
    assert page.startswith(MAKE.HEAD)


def test_the_answer_at_the_beginning_is_that_of_the_tables():
    told, mixtures = (
        MAKE.PAGE.read_text().partition(f"## {MAKE.SECTIONS[name]}\n")[2].partition("\n## ")[0]
        for name in ("told", "mixtures")
    )
    for other in ("ucrl2", "ucrl2b", "kl-ucrl"):
        assert f"| {other},support=on | 19 | 0 | 0 |" in told
    assert "| ravi-ucb+ | 19 | 0 | 0 |" in told
    assert "| psrl,support=on | 7 | 9 | 3 |" in told
    for other in ("uclk", "uclk+", "ucrl-vtr", "ravi-ucb/mixture", "ravi-ucb+/mixture"):
        assert f"| {other} | 8 | 0 | 0 |" in mixtures
    assert "| psrl/mixture | 0 | 6 | 2 |" in mixtures
