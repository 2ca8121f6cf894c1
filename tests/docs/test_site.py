"""The site has every page and every public name, and its configuration names what is there; no test builds it."""

import inspect
import re
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import ravi

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = DOCS / "site"
CONF = runpy.run_path(str(SITE / "conf.py"))
PAGES = {page.resolve() for pattern in CONF["include_patterns"] for page in ROOT.glob(pattern)}
NAMES = sorted(set(ravi.__all__) - {"__version__"})


def navigation(page):
    """The pages that a page lists, and those that they list."""
    for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL):
        for entry in re.findall(r"^[^:\s].*$", tree, flags=re.MULTILINE):
            folder, _, name = entry.rpartition("/")
            listed = [below.resolve() for below in (page.parent / folder).glob(f"{name}.md")]
            assert listed, f"{page.name} lists {entry}, which is not there"
            for below in listed:
                yield below
                yield from navigation(below)


def test_every_page_is_in_the_navigation_once():
    found = list(navigation(DOCS / "index.md"))
    assert sorted([*found, DOCS / "index.md"]) == sorted(PAGES)
    assert {*DOCS.rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")} <= PAGES


def test_every_page_begins_with_a_title():
    assert not [page for page in PAGES if not re.match(r"# \S.*\n(\n|$)", page.read_text())]


def test_the_configuration_names_files_that_exist():
    assert (ROOT / f"{CONF['root_doc']}.md").exists()
    for name in [*CONF["html_static_path"], *CONF["html_extra_path"]]:
        assert (SITE / name).exists(), name
    (home,) = re.findall(r'<a href="(.*?)\.html">', (SITE / "index.html").read_text())
    assert home == CONF["root_doc"]


def test_old_addresses_lead_to_pages_that_exist(tmp_path):
    found = CONF["moved"](DOCS)
    assert found["learners"] == "reference/learners"
    assert found["api/mdps"] == "reference/api/mdps"
    app = SimpleNamespace(outdir=tmp_path, srcdir=ROOT)
    CONF["leads_on"](app, None)
    for old in found:
        page = tmp_path / "docs" / f"{old}.html"
        (to,) = re.findall(r'<a href="(.*?)\.html">', page.read_text())
        assert (DOCS / page.parent.relative_to(tmp_path / "docs") / f"{to}.md").resolve() in PAGES


def test_nothing_of_the_site_is_fetched_when_it_is_read():
    for file in SITE.glob("*.*"):
        assert "://" not in file.read_text(), file


def test_every_public_name_is_on_a_page_of_the_reference():
    text = "\n".join(page.read_text() for page in (DOCS / "reference" / "api").glob("*.md"))
    found = re.findall(r"^\.\. auto(?:class|exception|function):: (?:ravi\.)?(\w+)", text, flags=re.MULTILINE)
    assert sorted(set(found)) == NAMES
    for module in ("gymnasium", "importers"):
        listed = set(re.findall(rf":: ravi\.{module}\.(\w+)", text))
        assert listed >= set(getattr(getattr(ravi, module), "__all__", {"mdp", "make"}))


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(getattr(ravi, name))])
def test_the_reference_tells_every_parameter(name):
    thing = getattr(ravi, name)
    lines = inspect.getdoc(thing).splitlines()
    CONF["told"](None, "function", f"ravi.{name}", thing, None, lines)
    assert re.findall(r"^:param (\w+): \S", "\n".join(lines), flags=re.MULTILINE) == list(
        inspect.signature(thing).parameters
    )


def test_the_lock_has_what_the_site_needs_in_the_versions_of_the_rest():
    def locked(name):
        return dict.fromkeys(re.findall(r"^([\w-]+==\S+)", (ROOT / name).read_text(), flags=re.MULTILINE))

    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["site"]
    site, rest = locked("site.lock"), locked("requirements.lock")
    assert {re.split(r"[>=]", one)[0] for one in needed} <= {one.split("==")[0] for one in site}
    shared = {one.split("==")[0] for one in rest}
    assert {one for one in site if one.split("==")[0] in shared} <= set(rest)
    assert "://" not in (ROOT / "site.lock").read_text()
