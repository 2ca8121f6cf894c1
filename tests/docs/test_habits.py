"""The project's habits hold: workflows call targets that exist, hooks are the checks, recipes fit on a screen."""

import itertools
import re
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import ravi
from tests import conftest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^(\w+):", MAKEFILE, re.M))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read(file):
    return yaml.safe_load(file.read_text())


def commands(workflow):
    """What its jobs run, a line each."""
    steps = [step for job in read(workflow)["jobs"].values() for step in job["steps"]]
    return [line for step in steps for line in step.get("run", "").splitlines()]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_calls_only_targets_that_exist(workflow):
    found = read(workflow)
    assert {"name", True, "permissions", "jobs"} <= set(found)  # YAML reads `on` as true
    assert found["name"] == workflow.stem
    assert commands(workflow)
    for command in commands(workflow):
        called = re.fullmatch(r"make (\w+|\${{ matrix\.numba }})( PYTHON=python)?", command)
        assert called, command
        assert called[1] in TARGETS | {"${{ matrix.numba }}"}


def test_workflows_test_what_is_promised_and_publish_what_was_run():
    found = [command for workflow in WORKFLOWS for command in commands(workflow)]
    called = [command.split()[1] for command in found if "matrix" not in command]
    assert sorted(called) == ["pages", "site", "site", "test", "test", "wheel", "wheel"]
    release = read(ROOT / ".github" / "workflows" / "release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert set(release["jobs"]["packages"]["needs"]) == {*release["jobs"]} - {"packages"}
    job, numba = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"].values()
    assert set(numba["strategy"]["matrix"]["numba"]) == {"plain", "newest"} < TARGETS
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert job["strategy"]["matrix"] == {"os": ["ubuntu-latest", "macos-latest"], "python": versions}
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"


def test_every_target_is_phony_but_the_environment():
    assert set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split()) == TARGETS


def test_the_hooks_are_the_checks():
    """As `make check` runs them, by the same environment; ruff only over the files of the commit."""
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert all(hook["language"] == "system" for hook in repository["hooks"])
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in repository["hooks"]]
    recipe = re.search(r"^check: .*\n((?:\t.*\n)+)", MAKEFILE, re.M)[1]
    assert hooks == [line.strip().removeprefix("$(BIN)/").removesuffix(" .") for line in recipe.splitlines()]


@pytest.mark.parametrize("form", ["wrong", "paper", "learner"])
def test_a_form_asks_for_something(form):
    asked = read(ROOT / ".github" / "ISSUE_TEMPLATE" / f"{form}.yml")
    assert {"name", "description", "body"} <= set(asked)
    assert any(field.get("validations", {}).get("required") for field in asked["body"])
    assert len({field["id"] for field in asked["body"]}) == len(asked["body"])


def test_each_recipe_is_complete_and_fits_on_a_screen():
    """One block each, which ends with what has to hold; `test_docs.py` runs it."""
    sections = re.split(r"^## ", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M)[1:]
    assert [section.splitlines()[0] for section in sections] == [
        f"Add a{thing}" for thing in (" learner", "n MDP", " measure", " claim")
    ]
    for section in sections:
        (block,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
        assert re.match(r"assert |testing\.check\(", block.splitlines()[-1])
        assert len(section.splitlines()) <= 50


def test_the_boundaries_are_about_modules_that_exist():
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    named = [one.get(key, ()) for one in contracts for key in ("source_modules", "forbidden_modules", "layers")]
    for name in " | ".join(itertools.chain(*named)).split(" | "):
        path = ROOT / "src" / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


def test_quick_tests_are_those_that_were_measured_to_be():
    """With two cores, what is left of the minute is for collecting, and for what the list does not name."""
    listed = conftest.durations().items()
    assert sum(seconds for name, seconds in listed if "::" in name and seconds <= conftest.QUICK) < 60
    assert any(seconds > conftest.QUICK for name, seconds in listed if "::" in name)


@pytest.mark.parametrize(
    ("claims", "kept"),
    [([], set()), (["A", "B", "AB"], {2}), (["A", "A"], {0}), (["AB", "BC", "CD", "D"], {0, 2}), (["", "A"], {1})],
)
def test_every_claim_that_a_mistake_is_made_for_is_violated_by_a_quick_one(claims, kept):
    assert conftest.cover([SimpleNamespace(claims=tuple(some)) for some in claims]) == kept


def test_the_files_to_read_first_exist():
    told = (
        (ROOT / "docs" / "explanation" / "design.md")
        .read_text()
        .partition("## Read first")[2]
        .partition("Then `tests")[0]
    )
    files = [ROOT / "src" / "ravi" / name for name in re.findall(r"^\d+\. `([\w/]+\.py)`", told, re.MULTILINE)]
    assert files
    assert all(file.is_file() for file in files)


def test_the_readme_is_one_screen_whose_badges_ask_no_service_and_say_what_is_so():
    text = (ROOT / "README.md").read_text()
    badges = {
        name: (ROOT / "docs" / "badges" / f"{name}.svg").read_text() for name in re.findall(r"(\w+)\.svg\)", text)
    }
    assert {file.stem for file in (ROOT / "docs" / "badges").iterdir()} == set(badges)
    project, tools = PROJECT["project"], PROJECT["tool"]
    assert f"licence: {project['license']}<" in badges["licence"]
    versions = re.findall(r"3\.\d+", " ".join(project["classifiers"]))
    assert f"python: {' | '.join(versions)}<" in badges["python"]
    assert tools["mypy"]["strict"]
    assert "typed: mypy strict<" in badges["typed"]


def test_a_package_leads_to_the_place_that_it_was_built_at(monkeypatch):
    build = runpy.run_path(str(ROOT / "hatch_build.py"))
    text = "![one](docs/demo.png) [two](docs/index.md) [three](https://arxiv.org/abs/1) [four](#start)"
    for name in ("RAVI_REPOSITORY", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    assert build["page"](text, "1.2.0", build["repository"]()) == text
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://host.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "who/ravi")
    home = build["repository"]()
    assert build["page"](text, "1.2.0", home) == (
        f"![one]({home}/raw/v1.2.0/docs/demo.png) [two]({home}/blob/v1.2.0/docs/index.md) "
        "[three](https://arxiv.org/abs/1) [four](#start)"
    )
    assert build["urls"](home)["Repository"] == home == "https://host.example/who/ravi"


def test_the_recipe_of_conda_needs_what_the_project_needs():
    text = (ROOT / "conda" / "meta.yaml").read_text()
    recipe = yaml.safe_load(re.sub(r"{%.*%}|{{ PYTHON }}", "", text).replace("{{ version }}", ravi.__version__))
    project = PROJECT["project"]
    assert f'version = "{ravi.__version__}"' in text
    needs = recipe["requirements"]
    asked = [f"python {project['requires-python']}", *(one.replace(">=", " >=") for one in project["dependencies"])]
    assert needs["run"] == asked
    assert PROJECT["build-system"]["requires"] == [needs["host"][-1].replace(" ", "")]
    extras = {one.split(">=")[0]: one for found in project["optional-dependencies"].values() for one in found}
    others = {"python-duckdb": "duckdb", "matplotlib-base": "matplotlib"}  # as conda calls them
    for one in needs["run_constrained"]:
        name, least = one.split(" ")
        assert f"{others.get(name, name)}{least}" == extras[others.get(name, name)]
    assert recipe["build"]["entry_points"] == [f"ravi = {project['scripts']['ravi']}"]
    assert recipe["about"]["summary"] == project["description"]
