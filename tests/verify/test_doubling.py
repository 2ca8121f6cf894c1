"""`verify` on learners that do not know T: every phase obeys its claims, every mistake violates those it should."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ravi import ids
from ravi.planning.solver import solve
from ravi.validation import InputError
from ravi.verify import DOUBLING, VARIANTS, doubling, verify
from ravi.verify.judge import Worst, in_rows
from tests.verify.mutations import sound
from tests.verify.mutations.doubling import SHORT

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verify.md"
GARNET, ENSEMBLE = "garnet/3,2,3,discount=0.75", "ensemble/2,4,2,2,discount=0.75"
CASES = [
    ("ravi-ucb/doubling", GARNET, "", set()),
    ("ravi-ucb/doubling", "trap,discount=0.5", "first=13,scale=0.15,step_scale=50", {"B5s"}),
    ("ravi-ucb/mixture/doubling", ENSEMBLE, "", set()),
    ("ravi-ucb/mixture/doubling", ENSEMBLE, "regularization=4,bound=3,step_scale=20", {"B5s"}),
    ("ravi-ucb+/doubling", GARNET, "inner=3", {"V1a"}),
    ("ravi-ucb+/doubling", "trap,discount=0.5", "inner=2,fresh=off,step_scale=10", {"B5s"}),
    ("ravi-ucb+/doubling", GARNET, "inner=2,span=off,clip=off,first=9", {"V1a"}),
    ("ravi-ucb+/doubling", GARNET, "inner=2,centre=off,span=off,gamma=off,balance=off", {"V1a", "B5s"}),
    ("ravi-ucb+/mixture/doubling", ENSEMBLE, "inner=3", {"V1a"}),
    ("ravi-ucb+/mixture/doubling", ENSEMBLE, "inner=2,radius=off,fresh=off,step_scale=10", {"B5s"}),
    ("ravi-ucb+/mixture/doubling", "hypercube/3,discount=0.7", "inner=2,span=off,clip=off,first=9", {"V1a"}),
]


def joined(learner, *options):
    return ",".join([learner, *(option for option in options if option)])


@cache
def report(learner, mdp, steps=80, seeds=4):
    return verify(learner, mdp, steps, seeds)


@pytest.mark.parametrize(("learner", "mdp", "options", "unmeasured"), CASES)
def test_every_learner_in_phases_obeys_every_claim(learner, mdp, options, unmeasured):
    found = report(joined(learner, options), mdp)
    assert found.holds, found.summary()
    assert {row.id for row in found.rows if row.verdict != "holds"} == unmeasured
    assert (found.invalid_at == 0).all()
    assert set(found.run.state.phase.tolist()) - {0}


def test_the_last_policy_has_no_guarantee_and_is_not_held_to_one():
    found = report("ravi-ucb+/doubling,inner=3,pick=last", GARNET)
    assert found.holds
    assert {row.id for row in found.rows if row.verdict == "not applicable"} == {"V7c", "V7d", "B5", "B5s"}


def test_bonuses_that_are_too_small_fail_v3_and_v4_only_and_the_first_epoch_is_named():
    found = report("ravi-ucb+/doubling,inner=3,scale=0.02", "ring/1,discount=0.8", 200, 6)
    assert {row.id for row in found.failed()} == {"V3", "V4"}
    assert "of 6 seeds fail in phase" in found["V3"].note
    assert (found.invalid_at > 0).all()
    alone = verify("ravi-ucb+/doubling,inner=3,scale=0.02", "ring/1,discount=0.8", 100, 6)  # no later epoch is named
    early = found.invalid_at < np.array([len(starts) for starts in alone.run.T_k])
    assert (found.invalid_at == alone.invalid_at)[early].all()
    assert early.any()


def test_an_invalid_bonus_ends_what_is_held_against_its_own_phase_only():
    found = report("ravi-ucb+/doubling,inner=3,scale=0.02", "ring/1,discount=0.8", 200, 6)
    assert (found.invalid_at == 1).all()  # in phase 0
    only = verify("ravi-ucb+/doubling,inner=3,scale=0.02", "ring/1,discount=0.8", 200, 6, only=["V4a"])
    assert only["V4a"].verdict == "holds"  # of a later phase


# ---- mistakes


def test_the_bounds_say_something_where_they_are_to_be_broken():
    found = sound(SHORT)
    assert found["B5"].bound < found["B5s"].bound < SHORT.steps / 2
    assert found["B4"].bound < SHORT.steps / 2
    assert f"B5 is {found['B5'].bound:.0f} at T = {SHORT.steps}" in PAGE.read_text()


def test_the_claims_that_the_docs_name():
    section = " ".join(PAGE.read_text().split("## Unknown T")[1].split("\n## ")[0].split())
    for claim in doubling.registry.claims:
        assert claim.id in section, claim.id
    statistical = {s: sum(c.kind != "D" and c.about in ("any", s) for c in DOUBLING) for s in ("tabular", "mixture")}
    assert f"{statistical['tabular']} statistical claims on counts, {statistical['mixture']} on a regression" in section


# ---- which claims, and what they see


def test_claims_can_be_chosen():
    found = verify("ravi-ucb/doubling", "riverswim/3,discount=0.7", 60, 3, only=["V4", "S7", "B1"])
    assert [row.id for row in found.rows] == ["S7", "V4a", "V4b", "V4", "B1"]
    with pytest.raises(InputError, match="V9 is not about ravi-ucb/doubling"):
        verify("ravi-ucb/doubling", "riverswim/3,discount=0.7", 60, 3, only=["V9"])
    with pytest.raises(InputError, match="B1 is not about ravi-ucb"):
        verify("ravi-ucb", "riverswim/3,discount=0.7", 60, 3, only=["B1"])
    with pytest.raises(InputError, match="verify takes at most 400"):
        verify("ravi-ucb/doubling", "riverswim/401", 60, 3)


def test_all_claims_about_backups_are_held_against_phases():
    ids_of = {row.id for row in report("ravi-ucb+/mixture/doubling,inner=3", ENSEMBLE).rows}
    wanted = {c.id for c in VARIANTS if c.about in ("any", "mixture", "parts")} - set(doubling.REPLACED)
    assert ids_of == wanted | {c.id for c in doubling.registry.claims}


def test_a_claim_of_probability_is_judged_phase_by_phase():
    """At first = 1 phase i fails with probability 2^-i: all of six seeds may fail in phase 0, three of them in phase 3
    (probability 0.03), but not three in phase 10 (2e-8)."""
    learner, world, T = "ravi-ucb/doubling", ids.mdp("riverswim/3,discount=0.7"), 1500
    setting = doubling.setting_of(ids.learner(learner, world, T), world, T, solve(world, tol=1e-12))
    claim = next(c for c in VARIANTS if c.id == "V3")

    def verdict(fails):
        found = [
            [Worst(-1.0 if seed < fails.get(i, 0) else 1.0, 0.0, 0.0, 1, i) for i in range(11)] for seed in range(6)
        ]
        return in_rows(claim, setting, found).verdict

    assert verdict({}) == verdict({0: 6, 1: 6, 3: 3, 10: 1}) == "holds"
    assert verdict({10: 3}) == verdict({9: 4, 0: 6}) == "violated"
