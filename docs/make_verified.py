"""The page explanation/verified.md, from what `ravi verify` found: `python docs/make_verified.py`.

    ravi verify --json docs/explanation/verified.json    # 6 s

The table stands in the page, to be read anywhere; on the site, site/claims.js filters and sorts it.
"""

from __future__ import annotations

import json
import math
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "explanation"
RECORDED, PAGE = FOLDER / "verified.json", FOLDER / "verified.md"
PARTS = {
    "P": "Section 2, preliminaries",
    "S": "Section 3, the algorithm",
    "A": "Section 4, the analysis",
    "T": "Section 5.1, tabular",
    "M": "Section 5.2, mixtures",
    "D": "Discussion",
    "C": "Appendix C",
}
KINDS = {"D": "always", "P": "with probability 1 - delta", "E": "in expectation"}
HEAD = ("claim", "run", "where", "statement", "kind", "measured", "bound", "margin", "used", "verdict")
WORDS = """# The paper, verified

Every equation, lemma, theorem and corollary of the paper as a claim that was measured on a run, by `ravi verify`:
{count} measurements of {claims} claims on three runs, {seeds} seeds each.
{verdict}

Each row shows the worst case over seeds and epochs or, for a claim in expectation, the mean over seeds. *Kind* is D for
deterministic claims, P for claims that hold with probability 1 - delta, E for claims in expectation. *Margin* is the
bound minus the measured value; *used* is the measured value in percent of the bound: a claim is tight near 100 % and
loose near 0 %. For an identity the measured value is its error, and the bound is the allowance for rounding.
[How it is measured](verify.md) explains the rules; [the paper, line by line](paper.md) names the code.

| run | learner | MDP | T |
|---|---|---|---|
{runs}

"""


def used(claim: dict[str, Any]) -> float | None:
    """How much of its bound a claim used; of an equality, how much of what chance is granted."""
    measured, margin = claim["measured"], claim["margin"]
    if measured is None or margin is None or claim["bound"] is None:
        return None
    room = margin + claim["tolerance"]
    inequality = math.isclose(claim["bound"] - measured, margin, rel_tol=1e-6, abs_tol=1e-12)
    taken = max(measured, 0.0) if inequality else abs(measured - claim["bound"])
    return taken / (taken + room) if taken + room > 0 else None


def row(claim: dict[str, Any], run: int) -> str:
    share, granted = used(claim), claim["tolerance"]
    data = {"run": run, "part": claim["id"][0], "kind": claim["kind"], "verdict": claim["verdict"]}
    data |= {"used": -1 if share is None else round(share, 6)}
    told = " ".join(f"data-{name}='{escape(str(value))}'" for name, value in data.items())
    numbers = "".join(
        f"<td class='number' data-label='{name}'>{'–' if claim[name] is None else f'{claim[name] + more:.4g}'}</td>"
        for name, more in (("measured", 0.0), ("bound", granted), ("margin", granted))
    )
    bar = "–" if share is None else f"<span class='bar' style='--used:{share:.3f}'></span>{share:.0%}"
    note = f" <small>{escape(claim['note'])}</small>" if claim["note"] else ""
    return (
        f"<tr {told}><th scope='row'>{escape(claim['id'])}</th><td data-label='run'>{run}</td>"
        f"<td data-label='where'>{escape(claim['where'])}</td><td class='statement'>{escape(claim['statement'])}</td>"
        f"<td data-label='kind'>{claim['kind']}</td>{numbers}<td class='number used' data-label='used'>{bar}</td>"
        f"<td class='verdict'>{escape(claim['verdict'])}{note}</td></tr>"
    )


def page(found: list[dict[str, Any]]) -> str:
    """The page of what was recorded."""
    every = [(claim, number) for number, run in enumerate(found, 1) for claim in run["claims"]]
    bad = [claim["id"] for claim, _ in every if claim["verdict"] == "violated"]
    idle = sum(claim["verdict"] not in ("holds", "violated") for claim, _ in every)
    verdict = f"**{len(bad)} are violated: {', '.join(bad)}.**" if bad else "**All that apply hold.**"
    verdict += f" {idle} do not apply, because their run does not use the constants of the theorem." if idle else ""
    runs = "\n".join(
        "| {} | {}, {scale:g} x beta, {step_scale:g} x eta | {}, gamma = {:g} | {:,} |".format(
            number, run["learner"], run["mdp"], run["discount"], run["steps"], **run["settings"]
        )
        for number, run in enumerate(found, 1)
    )
    parts, ids = list(PARTS), list(dict.fromkeys(claim["id"] for claim, _ in every))
    words = WORDS.format(count=len(every), claims=len(ids), seeds=len(found[0]["seeds"]), verdict=verdict, runs=runs)
    rows = sorted(every, key=lambda one: (parts.index(one[0]["id"][0]), ids.index(one[0]["id"])))
    looks = dict.fromkeys(("measured", "bound", "margin", "used"), " class='number'")
    head = "".join(f"<th scope='col'{looks.get(name, '')}>{name}</th>" for name in HEAD)
    names = escape(json.dumps({"part": PARTS, "kind": KINDS}))
    lines = [
        "<div class='claims-wrapper'>", f"<table class='claims' data-names='{names}'>",
        f"<thead><tr>{head}</tr></thead>", "<tbody>", *(row(*one) for one in rows), "</tbody>", "</table>", "</div>",
    ]  # fmt: skip
    return words + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RECORDED.read_text())))
