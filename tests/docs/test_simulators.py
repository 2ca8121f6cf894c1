"""docs/guides/simulators.md shows what its script measures."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ravi
from tests.helpers import script

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "guides" / "simulators.md").read_text()


MAKE = script("figures/simulators")


def settled(*gaps, starts=(1, 10, 20, 40)):
    run = SimpleNamespace(T_k=[np.array(starts)], gap_k=[np.array(gaps)], optimum=2.0, steps=50)
    return MAKE.settled(run)[0]


def test_settled_is_the_first_play_after_the_last_that_was_not_close():
    """Close is a gap of at most 0.1, 5 % of 2; the last quarter begins at 37.5."""
    assert settled(1, 1, 0.1, 0) == 20
    assert settled(1, 0, 0.11, 0, starts=(1, 10, 20, 37)) == 37
    assert settled(0, 0, 0, 0) == 1
    assert settled(0, 0, 0, 0.2) == np.inf
    assert settled(0, 0, 1, 0) == np.inf


def test_quartiles_are_values_that_occur_also_infinite_ones():
    np.testing.assert_array_equal(MAKE.quartiles(np.array([1, 2, 3, 4, np.inf])), (2, 3, 4))
    np.testing.assert_array_equal(MAKE.quartiles(np.array([1, 2, np.inf, np.inf])), (2, np.inf, np.inf))


def test_tuning_and_report_use_different_seeds_and_the_constants_are_of_the_grid():
    assert not set(MAKE.REPORTED) & set(MAKE.TUNED_ON)
    for world in MAKE.WORLDS:
        for player in world.players.values():
            options = dict(part.split("=") for part in player.learner.split(",")[1:])
            assert float(options["scale"]) in MAKE.SCALES
            assert "eta" not in options or float(options["eta"]) in MAKE.ETAS


@pytest.mark.parametrize("world", MAKE.WORLDS, ids=lambda world: world.build.__name__)
def test_the_page_has_the_losses_and_the_steps_of_the_learner_with_simulators(world):
    assert MAKE.losses(world) in TEXT
    label, player = next(iter(world.players.items()))
    run = ravi.run(player.learner, world.build(), player.steps, MAKE.REPORTED)
    (row,) = MAKE.steps_needed(world, {label: run})
    assert row in TEXT


def test_the_page_has_every_learner():
    for world in MAKE.WORLDS:
        for label, player in world.players.items():
            assert f"| {world.build().name} | {label} | `{player.learner}` |" in TEXT
