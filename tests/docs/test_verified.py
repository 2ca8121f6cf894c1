"""The page of what `ravi verify` found is of claims as they are now, says what was recorded, and can be filtered."""

import json
from pathlib import Path

import pytest

from ravi.verify import DEFAULT, form_of, verify
from tests.helpers import script
from tests.lab.report import browser

DOCS = Path(__file__).parents[2] / "docs"
MAKE = script("make_verified")
FOUND = json.loads(MAKE.RECORDED.read_text())


def test_the_page_is_what_was_recorded():
    assert MAKE.PAGE.read_text() == MAKE.page(FOUND), "run `python docs/make_verified.py`"


def test_what_was_recorded_are_the_claims_of_now():
    assert len(FOUND) == len(DEFAULT)
    for run, (mdp, learner, steps) in zip(FOUND, DEFAULT, strict=True):
        assert run["steps"] == steps
        claims = {claim.id: (claim.statement, claim.where, claim.kind) for claim in form_of(learner, mdp, steps).claims}
        held = {claim["id"]: (claim["statement"], claim["where"], claim["kind"]) for claim in run["claims"]}
        assert held.items() <= claims.items(), "run `ravi verify --json docs/explanation/verified.json`"
        assert run["holds"]


def test_what_was_recorded_comes_out_again():
    mdp, learner, steps = DEFAULT[1]
    only = ["P1", "S8", "A15", "T1"]
    again = verify(learner, mdp, steps, len(FOUND[1]["seeds"]), only=only)
    held = {claim["id"]: claim for claim in FOUND[1]["claims"]}
    for row in again.rows:
        assert row.verdict == held[row.id]["verdict"]
        assert row.margin == pytest.approx(held[row.id]["margin"], rel=1e-6, abs=1e-9)


def test_what_is_used_of_a_bound():
    def used(measured, bound, margin, tolerance=0.0):
        return MAKE.used({"measured": measured, "bound": bound, "margin": margin, "tolerance": tolerance})

    assert used(3.0, 4.0, 1.0) == 0.75
    assert used(-3.0, 4.0, 7.0) == 0.0
    assert used(1e-9, 0.0, -1e-9, 4e-9) == pytest.approx(0.25)  # an identity, of what rounding is granted
    assert used(-1.0, 0.0, 3.0) == 0.25  # an equality in expectation: 1 of 4 that chance is granted
    assert used(None, 4.0, None) is None


def test_claims_are_filtered_and_sorted(tmp_path):
    table = MAKE.PAGE.read_text().partition("<div class='claims-wrapper'>")
    ready = "<script>addEventListener('load', () => { document.documentElement.dataset.ready = 'yes' })</script>"
    style, code = ((DOCS / "site" / name).read_text() for name in ("style.css", "claims.js"))
    head = f"<!doctype html><meta charset='utf-8'><style>{style}</style><script>{code}</script>{ready}"
    (tmp_path / "page.html").write_text(f"{head}<body>{table[1]}{table[2]}")
    every = sum(len(run["claims"]) for run in FOUND)

    def shown(page):
        return page.locator("table.claims tbody tr:visible")

    with browser.browser() as started, browser.opened(started, tmp_path / "page.html") as page:
        assert shown(page).count() == every
        page.select_option("select[name=run]", "3")
        page.select_option("select[name=kind]", "E")
        wanted = [claim["id"] for claim in FOUND[2]["claims"] if claim["kind"] == "E"]
        assert sorted(shown(page).locator("th").all_inner_texts()) == sorted(wanted)
        assert page.locator("output").inner_text() == f"{len(wanted)} of {every}"
        page.select_option("select[name=order]", "tight")
        shares = [float(row.get_attribute("data-used")) for row in shown(page).all()]
        assert shares == sorted(shares, reverse=True)
        page.fill("input[name=search]", "theorem 5.6")
        assert set(shown(page).locator("[data-label=where]").all_inner_texts()) == {"Theorem 5.6"}
        assert page.errors == page.requests == []
    with browser.browser() as started, browser.opened(started, tmp_path / "page.html", width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
