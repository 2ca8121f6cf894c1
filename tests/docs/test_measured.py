"""Pages show what their scripts measure: their numbers are measured again, their outputs are those of the scripts."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ravi
from ravi.continuous import reference
from tests.helpers import script

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BEYOND, CONTINUOUS, LEAD, SIMULATORS = (
    script(f"figures/{name}") for name in ("beyond", "continuous", "lead", "simulators")
)
PAGES = {
    name: (DOCS / f"{name}.md").read_text()
    for name in ("explanation/beyond", "guides/continuous", "guides/simulators", "guides/gallery")
}


# docs/explanation/beyond.md


@pytest.mark.parametrize("label", ["known", "unknown"])
def test_the_regret_of_learners_that_know_and_do_not_know_their_rewards(label):
    regret = ravi.run(BEYOND.REWARDS[label], BEYOND.RIVER, BEYOND.STEPS, BEYOND.SEEDS).regret
    row = f"| {label} | `{BEYOND.REWARDS[label]}` | {regret.mean():,.0f} | {regret.min():,.0f} | {regret.max():,.0f} |"
    assert row in PAGES["explanation/beyond"]


def test_the_regret_under_changing_rewards():
    short = BEYOND.LENGTHS[:3]
    for label, world in BEYOND.WORLDS.items():
        means = [ravi.run(BEYOND.CHANGING, world, T, BEYOND.SEEDS, points=1).regret.mean() for T in short]
        assert f"| {label} | {' | '.join(f'{r:,.0f}' for r in means)} |" in PAGES["explanation/beyond"]


def test_the_price_of_not_knowing_T_and_the_lemma():
    T = BEYOND.HORIZONS[0]
    known, unknown = (
        float(ravi.run(f"{name},{BEYOND.TUNED}", BEYOND.RIVER, T, BEYOND.SEEDS).regret.mean())
        for name in ("ravi-ucb", "ravi-ucb/doubling")
    )
    assert BEYOND.horizons({T: (known, unknown)}).splitlines()[-1] in PAGES["explanation/beyond"]
    assert BEYOND.lemma() in PAGES["explanation/beyond"]


def test_the_uniform_policy_has_its_exact_regret_and_an_exponent_is_the_slope():
    world = BEYOND.WORLDS["every 50 steps"]
    pi, best = np.full((6, 2), 0.5), ravi.solve(world.mdp).optimum  # the mean of both tables
    assert BEYOND.idle(world, 1000) == pytest.approx(1000 * (best - ravi.return_of(world.mdp, pi)), abs=1e-6)
    assert BEYOND.exponent((10, 100, 1000), [3.0, 30.0, 300.0]) == pytest.approx(1)
    assert BEYOND.exponent((10, 1000), [2.0, 20.0]) == pytest.approx(0.5)


# docs/guides/continuous.md


def test_every_continuous_world_and_learner_is_in_the_table_and_the_error_of_normalisation_is_that_of_the_pendulum():
    for world in CONTINUOUS.WORLDS:
        for label in CONTINUOUS.learners(world):
            assert f"| {world.mdp.problem.name} | {world.steps:,} | {label} |" in PAGES["guides/continuous"]
    pendulum = CONTINUOUS.WORLDS[1]
    found = reference(pendulum.mdp, pendulum.nodes).normalisation
    assert f"| pendulum | 24 x 24 | {found:.1e} |" in PAGES["guides/continuous"]


def test_the_order_is_the_slope_of_the_grids_that_resolve_the_densities():
    errors = [(m, 7.0 / m**3, 1e-5) for m in (10, 20, 40)]
    assert abs(CONTINUOUS.order(errors) - 3) < 1e-9
    assert abs(CONTINUOUS.order([(5, 1e9, 0.1), *errors]) - 3) < 1e-9


# docs/guides/simulators.md


def settled(*gaps, starts=(1, 10, 20, 40)):
    run = SimpleNamespace(T_k=[np.array(starts)], gap_k=[np.array(gaps)], optimum=2.0, steps=50)
    return SIMULATORS.settled(run)[0]


def test_settled_is_the_first_play_after_the_last_that_was_not_close():
    """Close is a gap of at most 0.1, 5 % of 2; the last quarter begins at 37.5."""
    assert settled(1, 1, 0.1, 0) == 20
    assert settled(1, 0, 0.11, 0, starts=(1, 10, 20, 37)) == 37
    assert settled(0, 0, 0, 0) == 1
    assert settled(0, 0, 0, 0.2) == np.inf
    assert settled(0, 0, 1, 0) == np.inf


def test_quartiles_are_values_that_occur_also_infinite_ones():
    np.testing.assert_array_equal(SIMULATORS.quartiles(np.array([1, 2, 3, 4, np.inf])), (2, 3, 4))
    np.testing.assert_array_equal(SIMULATORS.quartiles(np.array([1, 2, np.inf, np.inf])), (2, np.inf, np.inf))


def test_tuning_and_report_use_different_seeds_and_the_constants_are_of_the_grid():
    assert not set(SIMULATORS.REPORTED) & set(SIMULATORS.TUNED_ON)
    for world in SIMULATORS.WORLDS:
        for label, player in world.players.items():
            options = dict(part.split("=") for part in player.learner.split(",")[1:])
            assert float(options["scale"]) in SIMULATORS.SCALES
            assert "eta" not in options or float(options["eta"]) in SIMULATORS.ETAS
            assert f"| {world.build().name} | {label} | `{player.learner}` |" in PAGES["guides/simulators"]


@pytest.mark.parametrize("world", SIMULATORS.WORLDS, ids=lambda world: world.build.__name__)
def test_the_losses_and_the_steps_of_the_learner_with_simulators(world):
    assert SIMULATORS.losses(world) in PAGES["guides/simulators"]
    label, player = next(iter(world.players.items()))
    run = ravi.run(player.learner, world.build(), player.steps, SIMULATORS.REPORTED)
    (row,) = SIMULATORS.steps_needed(world, {label: run})
    assert row in PAGES["guides/simulators"]


# docs/explanation/lead.md: sections that a folder has are made anew, and the others stay


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
    page = f"{LEAD.HEAD}\n## All learners know the supports\n\nas it was\n{verdict}\n## Linear mixtures\n\nof before\n"
    found = ravi.run_suite(SUITE, tmp_path / "out", workers=1)
    made = LEAD.made(found, page)
    assert f"## All learners know the supports\n\nas it was\n{verdict}" in made
    said = "- of 3 tabular MDPs, where learners know the supports, `ravi-kl` compared with `psrl,support=on` 2, 0, 1\n"
    assert said in made
    assert "of before" not in made
    part = made.partition("## Linear mixtures")[2]
    assert "T = 60, 4 seeds." in part
    assert "| psrl/mixture | " in part  # smaller, no significant difference, larger
    left = [title for section, title in LEAD.SECTIONS.items() if section not in ("told", "tuned", "mixtures")]
    assert made.rstrip().endswith(f"Sections of the suite that were not run yet: {'; '.join(left)}.")
    assert LEAD.made(found, made) == made


def test_a_cell_is_the_mean_with_what_it_hides():
    runs = np.arange(1.0, 12.0)
    runs[-1] = 989.0
    assert LEAD.cell(runs, best=True) == "**94.9** (10.0, 989)"
    assert LEAD.cell(runs[:3], best=False) == "2.0 (2.8, 3.0)"


def test_the_beginning_of_the_page_is_that_of_its_tables():
    parts = re.split(r"^## (.+)\n", LEAD.PAGE.read_text(), flags=re.MULTILINE)
    assert parts[0].strip() == LEAD.head(dict(zip(parts[1::2], parts[2::2], strict=True))).strip()


# docs/guides/gallery.md: every block is run again, and its output compared to the letter


GALLERY = script("make_gallery")
BLOCKS = list(GALLERY.BLOCK.finditer(PAGES["guides/gallery"]))
QUESTIONS = re.findall(r"^## (.*)$", PAGES["guides/gallery"], flags=re.MULTILINE)


def test_every_question_has_code_its_output_and_a_reading_and_every_figure_is_of_a_block():
    text = PAGES["guides/gallery"]
    assert len(QUESTIONS) >= 8
    assert text.count("```python") == len(BLOCKS)
    for section in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]:
        assert section.count("```python") == 1
        (found,) = GALLERY.BLOCK.finditer(section)
        assert found["given"].strip()
        reading = section[found.end() :].strip()
        assert reading.endswith(".")
        assert "```" not in reading
    shown = set(re.findall(r"\]\(gallery/([\w-]+\.png)\)", text))
    assert shown == {file.name for file in (DOCS / "guides" / "gallery").iterdir()}


@pytest.mark.parametrize("block", BLOCKS, ids=[question.lower().replace(" ", "-") for question in QUESTIONS])
def test_the_output_is_what_the_code_gives_now(block):
    said, drawn = GALLERY.ran(block["code"])
    assert GALLERY.given(said, drawn) == block["given"], "run `python docs/make_gallery.py`"


# examples/


def test_algorithm_2_from_scratch_is_the_learner_of_the_library():
    example = ROOT / "examples" / "ravi_ucb_from_scratch.py"
    epochs, regret = runpy.run_path(str(example))["ravi_ucb"]()
    run = ravi.run("ravi-ucb,scale=0.003,step_scale=100", "riverswim/6,discount=0.9", steps=5000, seeds=1)
    assert [first for first, _ in epochs] == run.T_k[0].tolist()
    np.testing.assert_allclose(epochs[-1][1], run.last_policy[0], rtol=1e-9)
    assert regret == pytest.approx(run.regret[0], abs=1e-8 + run.regret_error[0])
    assert len(example.read_text().splitlines()) <= 80
