"""What claims measure, on small runs: the numbers of two implementations that shared nothing.

`numbers.json` has the verdict, the measured value, the bound and the margin of every claim, as an observer found them
that followed the run epoch by epoch, and that was held against plain loops over the steps, row by row. It is written
anew by `python -m tests.verify.test_numbers`: look at what changes.
"""

import json
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import garnet, garnets
from ravi.verify import form_of, verify
from ravi.verify.judge import OF_BACKUPS
from ravi.verify.record import run_recorded
from tests.verify.mutations import sound
from tests.verify.test_mutations import ALL

PLACE = Path(__file__).with_name("numbers.json")
MOVING = {"tabular": {"beta": 2.0, "eta": 0.4}, "mixture": {"scale": 0.06, "regularization": 0.7, "eta": 0.4}}
LAPSING = {"tabular": {"beta": 1.0, "eta": 0.4}, "mixture": {"scale": 0.03, "regularization": 0.7, "eta": 0.4}}
ELSEWHERE = {"initial_value": [0.4, 3.0, 1.1], "initial_policy": [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], "delta": 0.2}
# Bonuses become invalid early, late or never (lapsing); none is valid (hopeless).
CASES = {
    "moving": (MOVING, 60, 6),
    "lapsing": (LAPSING, 60, 6),
    "papers": ({}, 40, 5),
    "bolder": ({"delta": 0.3}, 40, 5),
    "elsewhere": ({kind: MOVING[kind] | ELSEWHERE for kind in MOVING}, 60, 6),
    "hopeless": ({"beta": 0.0, "eta": 0.4, "initial_value": 2.0}, 30, 6),
    "one_step": ({}, 1, 5),
    "one_action": ({}, 30, 4),
    "one_place": ({"eta": 0.4}, 30, 4),
}


def built(name, kind):
    """MDP, learner, steps and seeds of a case."""
    options, steps, seeds = CASES[name]
    options = options.get(kind, options)
    if name == "elsewhere" and kind == "mixture":
        options = options | {"bound": 2.0}
    X, A = 1 if name == "one_place" else 3, 1 if name == "one_action" else 2
    mdp = garnet(X, A, min(2, X), 3, 0.7) if kind == "tabular" else garnets(2, X, A, min(2, X), 1, 0.7)
    build = ravi_ucb.tabular if kind == "tabular" else ravi_ucb.linear_mixture
    return mdp, build(mdp.problem, steps, **options), steps, seeds


@cache
def case(name, kind):
    mdp, learner, steps, seeds = built(name, kind)
    return verify(learner, mdp, steps, seeds)


IN_FULL_TOO = (
    "tabular", "mixture", "counts", "regression", "several", "plays", "phases", "regression in phases", "sampled",
    "linear", "weighted", "slack", "unknown rewards", "slack mixture",
)  # fmt: skip
FOUND = {f"{name}-{kind}": lambda name=name, kind=kind: case(name, kind) for name in CASES for kind in MOVING}
FOUND |= {
    f"{family}-{name}": lambda setting=setting: sound(setting)
    for family, mistakes in ALL.items()
    for setting, name in mistakes.names.items()
}


def numbers(report):
    """What is stored of a report."""
    rows = {row.id: [row.verdict, *(shown(value) for value in row[4:7])] for row in report.rows}
    return {"claims": rows, "ladder": [shown(x) for x in report.ladder[:-1]], "invalid_at": report.invalid_at.tolist()}


# Of these, every row counts, not the worst one alone.
IN_FULL = {f"{name}-{kind}": (lambda name=name, kind=kind: built(name, kind)) for name in CASES for kind in MOVING}
IN_FULL |= {
    f"{family}-{name}": lambda setting=setting: (setting.place(), setting.build(), setting.steps, setting.seeds)
    for family, mistakes in ALL.items()
    for setting, name in mistakes.names.items()
    if name in IN_FULL_TOO
}


def rooms(mdp, learner, steps, seeds):
    """The sum of the margins of each claim, over all rows of all seeds."""
    form, sums = form_of(learner, mdp, steps), {}
    _, records = run_recorded(form.setting, form.learner, seeds, False, form.plan_of)
    along = [claim for claim in form.claims if claim.kind != "E" and claim.per not in ("once", "run")]
    for s, claim in product(records, along):
        for one in s.sequences if claim.per in OF_BACKUPS else [s]:
            measured, bound = claim.measure(one)
            margin = (np.asarray(bound) - measured)[one.valid if claim.conditional else ...]
            sums[claim.id] = sums.get(claim.id, 0.0) + float(margin[np.isfinite(margin)].sum())
    return sums


def shown(value):
    return float(f"{value:.13g}")


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", FOUND)
def test_claims_measure_what_they_did(name):
    right, found = json.loads(PLACE.read_text())[name], numbers(FOUND[name]())
    assert found["invalid_at"] == right["invalid_at"]
    close(found["ladder"], right["ladder"])
    assert list(found["claims"]) == list(right["claims"])
    for id, (verdict, *values) in found["claims"].items():
        verdict_then, *then = right["claims"][id]
        tie = abs(then[2]) < 1e-12  # where rounding is the worst case, rounding decides which is shown
        assert verdict == verdict_then, id
        close(values[2:] if tie else values, then[2:] if tie else then)


@pytest.mark.parametrize("name", IN_FULL)
def test_every_row_measures_what_it_did(name):
    with np.errstate(all="ignore"):
        found, right = rooms(*IN_FULL[name]()), json.loads(PLACE.read_text())[name]["rooms"]
    assert found.keys() == right.keys()
    np.testing.assert_allclose([found[id] for id in right], [*right.values()], rtol=1e-8, atol=1e-6)


if __name__ == "__main__":
    found = {name: numbers(find()) for name, find in FOUND.items()}
    for name, find in IN_FULL.items():
        found[name]["rooms"] = {id: shown(sum) for id, sum in rooms(*find()).items()}
    PLACE.write_text(json.dumps(found, separators=(",", ":")))
