"""The page of a folder of results, one HTML file that needs no network: statistics, words and data in a template.

The same folder gives the same bytes: nothing on the page tells when it was built.
"""

from __future__ import annotations

import base64
import hashlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ravi.runtime import archive
from ravi.validation import InputError, require_extra

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

HERE = Path(__file__).parent
NAME = "report.html"
TEXTS = ("id", "statement", "where", "kind", "verdict", "note")  # of a claim
NUMBERS = ("measured", "bound", "margin", "tolerance")
LARGEST = 1e300  # of numbers that can be written


def report(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    verify: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the page of a folder of results, and return where it is: FOLDER/report.html unless out says otherwise.

    verify: a file that `ravi verify --json` wrote; FOLDER/verify.json where there is one.
    """
    from ravi.lab.experiments.results import ConflictWarning, DamagedWarning, results

    require_extra("the page needs", "report", "jinja2", "plotly")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConflictWarning))
        warnings.simplefilter("ignore", (DamagedWarning))  # both stand on the page
        found = results(folder)
    path = found.folder / NAME if out is None else Path(out)
    if not path.name or path.is_dir():
        raise InputError(f"cannot write the page {path}: it is a folder; name a file")
    archive.check_place(path, "the page")
    pieces = page(found, _claims(found.folder, verify))
    archive.write_file(
        path, lambda file: file.writelines(piece.encode(errors="backslashreplace") for piece in pieces), "the page"
    )
    return path


def page(found: Results, claims: list[dict[str, Any]] | None = None) -> Iterator[str]:
    """The page as text, piece by piece: it is never held as a whole."""
    import jinja2
    from plotly.offline import get_plotlyjs

    from ravi.display.numbers import percent
    from ravi.lab.report.page import words
    from ravi.lab.report.page.charts import chart_data, embedded
    from ravi.lab.report.page.content import content

    held = content(found, claims)
    scripts = [get_plotlyjs(), (HERE / "page.js").read_text(encoding="utf-8")]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": words.number, "percent": percent}
    return environment.get_template("template.html.jinja").generate(
        **held,
        cells=words,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        data=embedded(chart_data(held["sections"])),
        scripts=scripts,
        hashes=[_hash(script) for script in scripts],
    )


def _hash(script: str) -> str:
    """By which the page's policy lets this script run, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _claims(folder: Path, verify: str | os.PathLike[str] | None) -> list[dict[str, Any]] | None:
    """What `ravi verify` found: one report, or several."""
    path = folder / "verify.json" if verify is None else Path(verify)
    if verify is None and not path.is_file():
        return None
    held = archive.read_json(path)
    found = held if isinstance(held, list) else [held]
    for place, one in enumerate(found):
        wrong = _wrong(one)
        if wrong:
            raise InputError(f"{path}: entry {place} is not what ravi verify --json writes: {wrong}")
    return found


def _wrong(one: Any) -> str:
    """What is wrong with a report of `ravi verify`; empty where nothing is."""
    if not isinstance(one, dict):
        return "it is not an object"
    claims, seeds = one.get("claims"), one.get("seeds")
    if not isinstance(claims, list) or not all(isinstance(row, dict) for row in claims):
        return "claims is not a list of objects"
    if seeds is not None and not isinstance(seeds, list):
        return "seeds is not a list"
    for where, row, texts, numbers in (
        ("", one, ("mdp", "learner"), ("steps",)),
        *((f"claim {k}: ", row, TEXTS, NUMBERS) for k, row in enumerate(claims)),
    ):
        for name in texts:
            if not isinstance(row.get(name), str | None):
                return f"{where}{name} is not a text"
        for name in numbers:
            value = row.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
                return f"{where}{name} is not a number"
        if where and row.get("verdict") is None:
            return f"{where}verdict is missing"
    return ""
