"""Docs tell the truth: names exist, snippets run, and nothing points outside."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from ravi.lab.experiments.reading import specify
from tests.docs.test_guides import RUN
from tests.helpers import script

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
REFERENCE = ROOT / "docs" / "reference"
GUIDES = {ROOT / "docs" / f"{name}.md" for name in RUN.GUIDES}  # run whole, by tests/docs/test_guides.py
NOTEBOOKS = {page.with_suffix(".md") for page in (ROOT / "docs").rglob("*.ipynb")}  # by tests/docs/test_notebooks.py
SINGLE = [page for page in PAGES if page not in GUIDES | NOTEBOOKS]  # whose snippets stand alone


def resolved(path):
    """The object that a dotted path names."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            thing = getattr(thing, name)
        return thing
    raise AttributeError(path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_dotted_name_in_code_exists(page):
    for name in set(re.findall(r"`(ravi(?:\.\w+)+)`", page.read_text())):
        assert resolved(name) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_test_named_in_code_exists(page):
    text = page.read_text()
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    for name in set(re.findall(r"`(test_\w+)`", text)):
        assert f"def {name}(" in tests, name
    for name in set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w/.]+)`", text)):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", SINGLE, ids=lambda page: page.name)
def test_every_suite_in_the_docs_can_be_run(page, tmp_path):
    for number, text in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), flags=re.DOTALL)):
        (tmp_path / f"{number}.toml").write_text(text)
        assert specify(tmp_path / f"{number}.toml").entries


def snippets():
    for page in SINGLE:
        if page.name == "gallery.md":  # tests/docs/test_measured.py runs each, and compares what it prints
            continue
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)):
            yield pytest.param(code, id=f"{page.name}-{number}")


@pytest.mark.parametrize("code", list(snippets()))
def test_every_python_snippet_runs(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})
    for name in set(sys.modules) - before:  # modules that the snippet wrote are its own
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_the_pages_of_benchmarks_begin_as_their_scripts_say():
    told = {}
    for path in (ROOT / "benchmarks").glob("*.py"):
        found = re.search(r'^ABOUT = """\\?\n(.*?)\n"""', path.read_text(), flags=re.DOTALL | re.MULTILINE)
        told |= {path: found[1]} if found else {}
    assert len(told) == 13
    for path, about in told.items():
        said = re.escape(about).replace(r"\{SEEDS\}", r"\d+").replace(r"\{EPISODES\}", r"\d+")
        assert re.match(rf"# [^\n]+\n\n{said}\n\n", path.with_suffix(".md").read_text()), path.name


def test_paper_md_maps_every_numbered_statement():
    text = (ROOT / "docs" / "explanation" / "paper.md").read_text()
    statements = [f"Lemma {n}" for n in ("4.2", "4.3", "4.4", "5.1", "5.2", "5.4", "5.5", "A.1", "A.4", "C.1")]
    statements += ["Theorem 4.1", "Theorem 5.6", "Theorem C.2", "Corollary 5.7", "Assumption 5.3", "Lemmas A.2, A.3"]
    statements += ["Algorithm 1", "Algorithm 2", "Algorithm 3"]
    for statement in statements:
        assert statement in text, statement
    for number in range(1, 13):
        assert re.search(rf"Equations? .*\({number}\)|\({number}\)", text), number


def test_the_version_is_the_same_everywhere():
    import ravi

    assert f'version = "{ravi.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {ravi.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {ravi.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_pages_of_the_learners_are_those_that_the_code_makes():
    found = script("make_learners").pages()
    assert {f"learners/{file.name}" for file in (REFERENCE / "learners").iterdir()} == set(found) - {"learners.md"}
    for name, text in found.items():
        assert (REFERENCE / name).read_text() == text, "run `make docs`"


def test_the_page_of_the_command_is_the_one_that_the_code_makes():
    assert (REFERENCE / "command.md").read_text() == script("make_command").page(), "run `make docs`"


def test_every_learner_is_on_the_page_of_its_family():
    from ravi.ids import LEARNERS, WRAPPERS

    chooser, *families = script("make_learners").pages().values()
    headings = [name for text in families for name in re.findall(r"^## (\S+)$", text, flags=re.MULTILINE)]
    wanted = [*LEARNERS, *(f"NAME/{name}" for name in WRAPPERS)]
    assert sorted(headings) == sorted(wanted)
    assert all(chooser.count(f"[{name}](") == 2 for name in wanted)


def test_every_learner_of_others_has_its_row_of_what_it_was_compared_with():
    from ravi.ids import LEARNERS

    rows = [
        line.strip("|").split("|")
        for line in (ROOT / "docs" / "explanation" / "trust.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]
    assert len(named) == len(set(named))
    assert {name for name in LEARNERS if not name.startswith("ravi-")} <= set(named) <= set(LEARNERS)
    assert {len(row) for row in rows} == {5}


def test_every_learner_says_what_it_is():
    from ravi.learners.cards import LABELS, TAGS, cards

    for card in cards():
        missing = [label for label in LABELS if label not in card.facts and label not in ("Constants", "Deviations")]
        assert not missing, (card.id, missing)
        assert any(tag in card.facts["Trust"] for tag in TAGS), card.id
