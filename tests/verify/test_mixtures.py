"""`verify` on RAVI-KL for mixtures: sound learners obey every claim, every mistake violates those that it should."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi.verify import MIXTURES, verify
from ravi.verify.mixtures import model_of
from tests.verify.mixtures_mutations import MUTATIONS, NAMES, mistake

PAGE = Path(__file__).parents[2] / "docs" / "verify.md"


@cache
def report(setting):
    return verify(setting.build(), setting.mdp, setting.steps, setting.seeds)


@pytest.mark.parametrize("setting", list(NAMES), ids=NAMES.get)
def test_a_sound_learner_violates_nothing(setting):
    found = report(setting)
    assert found.holds, found.summary()
    assert [row.id for row in found.rows] == [claim.id for claim in MIXTURES]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_mistake_is_found(mutation, monkeypatch):
    assert report(mutation.setting).holds
    with np.errstate(all="ignore"):
        broken = mutation.make(monkeypatch, mutation.setting)
        found = verify(broken, mutation.setting.mdp, mutation.setting.steps, mutation.setting.seeds)
    violated = {row.id for row in found.failed()}
    assert violated >= set(mutation.claims), violated


def test_every_mistake_is_documented():
    page = PAGE.read_text()
    mistake.documented(page)
    for claim in MIXTURES:
        statement = claim.statement.replace("|", "\\|")
        assert f"| {claim.id} | {statement} |" in page


@pytest.mark.parametrize("id", ["riverswim/mixture/4", "terrain/3,2", "ensemble/3,4,2,2"])
def test_the_truth_is_a_mixture_of_the_kernels(id):
    mdp = ravi.mdp(id)
    model = model_of(mdp)
    assert (model.theta >= 0).all()
    np.testing.assert_allclose(model.psi @ model.theta, mdp.transitions, atol=1e-8)


def test_the_levels_hold_in_runs():
    """E plays under invalid plans against the sum of the levels, on 12 seeds."""
    found = verify("ravi-kl/mixture,plan=greedy", "fork/2,discount=0.5", 200, 12, only=["KM7", "KM8", "K11"])
    assert [row.verdict for row in found.rows] == ["holds"] * 3
