"""The shipped suites: they can be run, they are complete, and they compare fairly."""

import json
import re
import subprocess
import sys
import zipfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from ravi import ids
from ravi.lab.experiments.reading import shipped, specify
from ravi.lab.suites import SUITES
from ravi.planning.solver import solve

ROOT = Path(__file__).parents[3]
FAMILIES = ("tabular", "mixture", "linear")
COMPARED = ("quick", *FAMILIES, "paper")  # those that tune
YARDSTICKS = {"uniform", "optimum", "ravi-ucb/known"}


@cache
def suite(name):
    return specify(name)


def names(learners):
    """Without options."""
    return {max((n for n in ids.LEARNERS if re.match(rf"{re.escape(n)}([,/]|$)", l)), key=len) for l in learners}


def learners_of(name):
    return names(entry.learner for entry in suite(name).entries)


@pytest.mark.parametrize("name", SUITES)
def test_a_shipped_suite_has_no_mistakes_and_comes_back_from_json(name):
    made = suite(name)
    assert made.name == name
    assert made.title
    assert specify(json.loads(json.dumps(made.plain())), build=False) == made


def test_the_list_of_suites_is_what_is_there():
    there = [file.name for file in files("ravi.lab.suites").iterdir() if file.name.endswith(".toml")]
    assert sorted(there) == sorted(f"{name}.toml" for name in SUITES)


def test_the_suites_are_told_without_building_anything(monkeypatch):
    def never(*_):
        raise AssertionError

    built = {name: suite(name) for name in SUITES}
    monkeypatch.setattr(ids, "mdp", never)
    monkeypatch.setattr(ids, "learner", never)
    assert shipped() == built


def test_the_suites_are_in_the_wheel(tmp_path):
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert {f"ravi/lab/suites/{name}.toml" for name in SUITES} <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_valid_under_other_seeds(name):
    assert {section.seeds for section in specify(name, seeds="100-101", build=False).sections} == {(100, 101)}


# Complete.


def test_every_learner_is_in_the_suite_of_its_family():
    discounted = {
        name
        for name, known in ids.LEARNERS.items()
        if "discounted" in known.criteria and not name.endswith("/average")  # made for another criterion
    }
    assert set().union(*(learners_of(name) for name in FAMILIES)) | YARDSTICKS == discounted


def test_the_learners_of_tabular_meet_on_all_mdps():
    compared = [section.learners for section in suite("tabular").sections if section.name != "oracle-span"]
    assert len(compared) == 3
    assert all(learners == compared[0] for learners in compared)


def test_every_algorithm_that_the_paper_names_is_in_its_suite():
    page = (ROOT / "docs" / "explanation" / "paper.md").read_text()
    table = page.split("## The algorithms that the paper names")[1].split("\n## ")[0]
    named = set(re.findall(r"`([^`]+)`", table)) & set(ids.LEARNERS)
    assert len(named) > 25
    assert named <= learners_of("paper")


@pytest.mark.parametrize("section", shipped()["scaling"].sections, ids=lambda section: section.name)
def test_a_grid_of_scaling_is_long_enough_to_fit_an_exponent(section):
    families = {re.split("[/,]", mdp)[0] for mdp in section.mdps}
    assert len(section.mdps) // len(families) * len(section.steps) >= 4
    assert section.columns == ("given",)


# Fair.


@pytest.mark.parametrize("name", COMPARED)
def test_published_and_tuned_constants_stand_side_by_side(name):
    assert all(section.columns == ("theory", "tuned") for section in suite(name).sections)


@pytest.mark.parametrize("name", COMPARED)
def test_one_rule_of_tuning_holds_for_all_learners_of_a_suite(name):
    made = suite(name)
    assert made.tuning.budget == 20
    assert made.tuning.scale == (1e-4, 1.0)  # the published constant is an end of the range
    assert made.tuning.step_scale[0] == 1.0
    assert made.tuning.step_scale[1] >= 1000
    assert not set(made.tuning.seeds) & {seed for section in made.sections for seed in section.seeds}


@pytest.mark.parametrize("name", COMPARED)
def test_nothing_but_multipliers_is_set_to_learn_better(name):
    free = {"mode", "schedule", "sweeps", "evaluation", "initial", "replan", "span"}  # another algorithm, not tuning
    for entry in suite(name).entries:
        assert set(ids.given_options(entry.learner)) <= free, entry.learner


def test_a_known_span_is_that_of_the_optimum_and_its_label_says_oracle():
    entries = [entry for name in SUITES for entry in suite(name).entries]
    found = [entry for entry in entries if isinstance(ids.given_options(entry.learner).get("span"), float)]
    assert len({entry.learner for entry in found}) == 6
    for entry in found:
        V = solve(ids.mdp(entry.mdp)).V
        span = ids.given_options(entry.learner)["span"]
        assert V.max() - V.min() <= span <= V.max() - V.min() + 1e-3
        assert "oracle" in entry.label
