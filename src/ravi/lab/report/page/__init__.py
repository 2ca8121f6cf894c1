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
TEXTS = ("mdp", "learner", "id", "statement", "where", "kind", "verdict", "note")  # of a report, and of a claim
NUMBERS = ("steps", "measured", "bound", "margin", "tolerance")
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
        for shown in (ConflictWarning, DamagedWarning):  # both stand on the page
            warnings.simplefilter("ignore", shown)
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
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    scripts = [get_plotlyjs(), script]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": words.number, "percent": percent}
    held |= {"cells": words, "style": style, "scripts": scripts, "hashes": [*map(_hash, scripts)]}
    return environment.get_template("template.html.jinja").generate(**held, data=embedded(chart_data(held["sections"])))


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
    if not isinstance(seeds, list | None):
        return "seeds is not a list"
    named = [(f"claim {place}: ", row) for place, row in enumerate(claims)]
    for where, row in (("", one), *named):
        for name in TEXTS:
            if not isinstance(row.get(name), str | None):
                return f"{where}{name} is not a text"
        for name in NUMBERS:
            value = row.get(name)
            value = 0 if value is None else value
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
                return f"{where}{name} is not a number"
    return next((f"{where}verdict is missing" for where, row in named if row.get("verdict") is None), "")
