"""docs/guides/continuous.md has what its script measures."""

import re
from pathlib import Path

from ravi.continuous import reference
from tests.helpers import script

DOCS = Path(__file__).parents[1].parent / "docs"
TEXT = (DOCS / "guides" / "continuous.md").read_text()


MAKE = script("figures/continuous")


def test_every_world_and_learner_is_in_the_table():
    for world in MAKE.WORLDS:
        for label in MAKE.learners(world):
            assert f"| {world.mdp.problem.name} | {world.steps:,} | {label} |" in TEXT


def test_the_error_of_normalisation_on_the_page_is_that_of_the_pendulum():
    world = MAKE.WORLDS[1]
    found = reference(world.mdp, world.nodes).normalisation
    assert f"| pendulum | 24 x 24 | {found:.1e} |" in TEXT


def test_the_order_is_the_slope_of_the_grids_that_resolve_the_densities():
    errors = [(m, 7.0 / m**3, 1e-5) for m in (10, 20, 40)]
    assert abs(MAKE.order(errors) - 3) < 1e-9
    assert abs(MAKE.order([(5, 1e9, 0.1), *errors]) - 3) < 1e-9


def test_its_figures_exist():
    for name in re.findall(r"\(figures/([\w-]+\.png)\)", TEXT):
        assert (DOCS / "figures" / name).exists()
