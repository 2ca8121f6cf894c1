"""`verify` can fail: every mistake violates the claims that it should, and a sound learner none."""

from pathlib import Path

import numpy as np
import pytest

import ravi.verify
from tests.verify.mutations import (
    broken,
    changing_rewards,
    doubling,
    episodes,
    estimators,
    mixtures,
    paper,
    sets,
    sound,
    unknown_rewards,
    variants,
)

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verify.md"
FAMILIES = (paper, variants, unknown_rewards, changing_rewards, doubling, estimators, sets, mixtures, episodes)
ALL = {module.__name__.rpartition(".")[2]: module.mutation for module in FAMILIES}
SETTINGS = [
    pytest.param(setting, id=f"{family}-{name}")
    for family, mistakes in ALL.items()
    for setting, name in mistakes.names.items()
]
CLAIMS = {
    "paper": ravi.verify.CLAIMS,
    "estimators": ravi.verify.KINDS,
    "sets": ravi.verify.SETS,
    "episodes": ravi.verify.EPISODES,
    **{
        name: getattr(ravi.verify, name).registry.claims
        for name in ("variants", "unknown_rewards", "changing_rewards", "doubling", "mixtures")
    },
}
CERTAIN = {"M10"}  # an inequality between numbers: no learner, no observer and no run has a part in it
MUTATIONS = [pytest.param(m, id=f"{family}-{m.says}") for family, mistakes in ALL.items() for m in mistakes.all]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_sound_learner_violates_nothing_and_its_policies_move(setting):
    """But where bonuses are bare: there S4 and Lemma 4.2 fail by construction."""
    found = sound(setting)
    assert {row.id for row in found.failed()} == set(setting.violated), found.summary()
    assert found.status == bool(setting.violated)
    if setting.moves:
        assert np.abs(found.run.last_policy - 1 / found.run.last_policy.shape[-1]).max() > setting.moves


@pytest.mark.slow  # its runs are those of the test above
@pytest.mark.parametrize("setting", [one for one in SETTINGS if one.id.startswith(("sets", "mixtures"))])
def test_every_claim_about_sets_is_held(setting):
    claims = ravi.verify.SETS if setting in sets.NAMES else ravi.verify.MIXTURES
    assert [row.id for row in sound(setting).rows] == [claim.id for claim in claims]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_every_mistake_is_caught(mutation):
    found = broken(mutation, only=mutation.claims)
    assert set(mutation.claims) <= {row.id for row in found.failed()} - set(mutation.setting.violated), found.summary()
    assert found.status == 1
    assert not found.holds
    assert ", ".join(row.id for row in found.failed()) in found.summary()


@pytest.mark.parametrize("family", ALL)
def test_every_claim_catches_a_mistake(family):
    """Each of a family, one that is made there."""
    assert {claim.id for claim in CLAIMS[family]} - ALL[family].caught() == CERTAIN & {c.id for c in CLAIMS[family]}


@pytest.mark.parametrize("family", ALL)
def test_the_tables_in_the_docs_are_those_that_are_run(family):
    ALL[family].documented(PAGE.read_text())
