"""docs/explanation/beyond.md shows what its script measures."""

from pathlib import Path

import numpy as np
import pytest

import ravi
from tests.helpers import script

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "explanation" / "beyond.md").read_text()


MAKE = script("figures/beyond")


@pytest.mark.parametrize("label", ["known", "unknown"])
def test_the_page_has_the_regret_of_learners_that_know_and_do_not_know_their_rewards(label):
    regret = ravi.run(MAKE.REWARDS[label], MAKE.RIVER, MAKE.STEPS, MAKE.SEEDS).regret
    row = f"| {label} | `{MAKE.REWARDS[label]}` | {regret.mean():,.0f} | {regret.min():,.0f} | {regret.max():,.0f} |"
    assert row in TEXT


def test_the_page_has_the_regret_under_changing_rewards():
    short = MAKE.LENGTHS[:3]
    for label, world in MAKE.WORLDS.items():
        means = [ravi.run(MAKE.CHANGING, world, T, MAKE.SEEDS, points=1).regret.mean() for T in short]
        assert f"| {label} | {' | '.join(f'{r:,.0f}' for r in means)} |" in TEXT


def test_the_page_has_the_lemma():
    assert MAKE.lemma() in TEXT


def test_the_page_has_the_price_of_not_knowing_T():
    T = MAKE.HORIZONS[0]
    known, unknown = (
        float(ravi.run(f"{name},{MAKE.TUNED}", MAKE.RIVER, T, MAKE.SEEDS).regret.mean())
        for name in ("ravi-ucb", "ravi-ucb/doubling")
    )
    assert MAKE.horizons({T: (known, unknown)}).splitlines()[-1] in TEXT


def test_the_uniform_policy_has_its_exact_regret():
    world = MAKE.WORLDS["every 50 steps"]
    pi, best = np.full((6, 2), 0.5), ravi.solve(world.mdp).optimum  # the mean of both tables
    assert MAKE.idle(world, 1000) == pytest.approx(1000 * (best - ravi.return_of(world.mdp, pi)), abs=1e-6)


def test_an_exponent_is_the_slope():
    assert MAKE.exponent((10, 100, 1000), [3.0, 30.0, 300.0]) == pytest.approx(1)
    assert MAKE.exponent((10, 1000), [2.0, 20.0]) == pytest.approx(0.5)
