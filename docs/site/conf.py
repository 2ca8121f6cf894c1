"""The settings of the site (`make site`). Its pages are the Markdown of the repository, where it stands; no copies."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import ravi

project, author, release = "ravi", "The ravi developers", ravi.__version__
html_title = f"ravi {release}"
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/**/*.md", "benchmarks/*.md", "C*.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_copybutton"]

# Markdown as GitHub reads it: the same anchors. Formulas are text, so nothing renders them.
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # pages that are generated may go from # to ###
highlight_language = "text"
smartquotes_action = "D"  # dashes, and quotes as they are typed

# One theme without web fonts and without scripts of others, in light and dark.
html_theme = "furo"
pygments_dark_style = "github-dark"
html_static_path = ["style.css", "claims.js"]
html_css_files = ["style.css"]
html_js_files = ["claims.js"]  # of the table of claims
html_extra_path = ["index.html"]  # leads to docs/index.html
html_show_copyright = html_copy_source = html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

python_maximum_signature_line_length = 100
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autosummary_generate = False

ARRAY = re.compile(
    r"~?(?:numpy\.)?ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?(?:numpy\.)?dtype\[~?(?:numpy\.)?(\w+)\]\]"
)
SECTION = re.compile(r"^(Parameters|Attributes|Returns|Examples)\n-+\n", re.MULTILINE)


def marked(text: str) -> str:
    """A docstring's words as reStructuredText: code stays code, pages become links, and nothing else is markup."""
    text = text.replace("(. |", "(.\u2060 |")  # P(. | x, a) ends no sentence
    parts = re.split(r"`([^`]+)`|docs/([\w/]+)\.md", text)
    out = []
    for words, code, page in zip(parts[::3], [*parts[1::3], None], [*parts[2::3], None], strict=True):
        out.append(re.sub(r"([\\*|_])", r"\\\1", words))
        if code or page:
            out.append(f"``{code}``\\ " if code else f":doc:`docs/{page}.md </docs/{page}>`\\ ")
    return "".join(out)


def prose(text: str) -> list[str]:
    """Paragraphs, formulas (indented) and examples."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.startswith(">>>"):
            lines += [".. code-block:: pycon", "", *("   " + line for line in block.splitlines())]
        elif block.startswith("    "):
            lines += ["::", "", *block.splitlines()]
        else:
            lines += marked(block).splitlines()
        lines.append("")
    return lines


def entries(text: str) -> list[tuple[str, str]]:
    """What stands at the margin, and what is indented below it."""
    return [
        (head, " ".join(more.split())) for head, more in re.findall(r"^(\S.*)\n?((?:\s+.*\n?)*)", text, re.MULTILINE)
    ]


def told(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings in the house's NumPy style."""
    text = "\n".join(lines)
    opening, *sections = SECTION.split(text)
    lines[:] = prose(opening)
    for kind, body in zip(sections[::2], sections[1::2], strict=True):
        if kind == "Parameters":
            for head, more in entries(body):
                names, _, rest = head.partition(" : ")
                said = marked(f"{rest} {more}".strip())
                lines += [f":param {one.strip(' *')}: {said}" for one in names.split(",")]
        elif kind == "Attributes":
            listed = [f"* **{names}**: {marked(said)}" for names, said in entries(body)]
            lines += [".. rubric:: Attributes", "", *listed]
        elif kind == "Returns":
            given = [f"{marked(head)}: {marked(more)}" if more else marked(head) for head, more in entries(body)]
            lines.append(":returns: " + "; ".join(given))
        else:
            lines += [".. rubric:: Examples", "", *prose(body)]
        lines.append("")


def left_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Fields, which stand with their class, are no members of their own."""
    return None if callable(thing) or isinstance(thing, property | cached_property) else True


def shortened(app: Any, what: str, name: str, thing: Any, options: Any, *texts: str | None) -> tuple[str | None, ...]:
    """Arguments and result of a function, with the types of arrays as NumPy abbreviates them: `NDArray[float64]`."""
    return tuple(text and ARRAY.sub(r"NDArray[\1]", text) for text in texts)


def fetches_nothing(app: Any, error: Exception | None) -> None:
    """No page that was built, and no style sheet, asks another host for anything."""
    asked = re.compile(
        r"""<(?:script|img|iframe|link)\b[^>]*(?:src|href)="(?:https?:)?//|(?:url\(|@import )["']?(?:https?:)?//"""
    )
    files = [file for kind in ("html", "css") for file in Path(app.outdir).rglob(f"*.{kind}")]
    found = [file.name for file in files if asked.search(file.read_text())]
    if found and error is None:
        raise SystemExit(f"pages that need a network: {found}")


FOLDERS = ("tutorials", "guides", "explanation", "reference")


def moved(docs: Path) -> dict[str, str]:
    """Where pages lie that were in docs/ itself, by the address without ending that they had there."""
    pages = [(folder, page) for folder in FOLDERS for page in sorted((docs / folder).rglob("*.md"))]
    found = {page.relative_to(docs / folder): page.relative_to(docs) for folder, page in pages}
    return {
        str(old.with_suffix("")): str(new.with_suffix("")) for old, new in found.items() if not (docs / old).exists()
    }


def leads_on(app: Any, error: Exception | None) -> None:
    """An old address leads to its page."""
    docs = Path(app.outdir) / "docs"
    for old, new in moved(Path(app.srcdir) / "docs").items():
        to = f"{'../' * old.count('/')}{new}.html"
        (docs / old).parent.mkdir(parents=True, exist_ok=True)
        (docs / f"{old}.html").write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={to}">'
            f'<title>moved</title><a href="{to}">This page is at {to}</a>'
        )


def setup(app: Any) -> None:
    app.connect("build-finished", leads_on)
    app.connect("autodoc-process-docstring", told)
    app.connect("autodoc-skip-member", left_out)
    app.connect("build-finished", fetches_nothing)
    app.connect("autodoc-process-signature", shortened)
