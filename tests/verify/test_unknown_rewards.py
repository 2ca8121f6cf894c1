"""`verify` where rewards are not known: sound learners obey every claim, mistakes violate those that they should."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from ravi import ids
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.learners.ravi_ucb import ravi_ucb, unknown_rewards
from ravi.planning.solver import solve
from ravi.theory import constants
from ravi.theory import unknown_rewards as theory
from ravi.validation import InputError
from ravi.verify import UNKNOWN, VARIANTS, verify
from ravi.verify import unknown_rewards as unknown
from ravi.verify.judge import Worst, in_rows
from ravi.verify.setting import setting_of
from tests.verify.mutations.unknown_rewards import ONE, mutation

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verify.md"
GARNET = "garnet/3,2,3,discount=0.75"


@cache
def report(learner, mdp, steps=200, seeds=5, only=()):
    return verify(learner, mdp, steps, seeds, only=only)


@pytest.mark.parametrize(
    ("learner", "mdp", "unmeasured"),
    [
        ("ravi-ucb/unknown-rewards", GARNET, {"U8s"}),
        ("ravi-ucb/unknown-rewards,scale=0.1,step_scale=30", "garnet/2,2,2,discount=0.8", {"U8s"}),
        ("ravi-ucb/unknown-rewards,scale=0.03,step_scale=60,reward_scale=2", ONE.mdp, {"U8", "U8s"}),
        ("ravi-ucb/unknown-rewards,rewards=deterministic,scale=0.05,eta=0.5", "riverswim/3,discount=0.6", {"U8s"}),
        ("ravi-ucb+/unknown-rewards,inner=3", GARNET, {"V1a"}),
        ("ravi-ucb+/unknown-rewards,inner=3,eta=0.5,fresh=off", GARNET, {"U8s"}),
        ("ravi-ucb+/unknown-rewards,inner=2,span=off,clip=off", GARNET, {"V1a"}),
        ("ravi-ucb+/unknown-rewards,inner=2,centre=off,span=off,gamma=off", "ring/1,discount=0.8", {"V1a"}),
        ("ravi-ucb+/unknown-rewards,inner=2,balance=off,rewards=deterministic", "trap,discount=0.7", {"V1a", "U8s"}),
    ],
)  # fmt: skip
def test_every_variant_obeys_every_claim(learner, mdp, unmeasured):
    found = report(learner, mdp)
    assert found.holds, found.summary()
    assert {row.id for row in found.rows if row.verdict != "holds"} == unmeasured
    assert (found.invalid_at == 0).all()
    assert {row.id for row in found.rows} == {c.id for c in UNKNOWN if c.about in ("any", "tabular", "parts")}


@pytest.mark.parametrize("several", [False, True])
def test_a_mixture_that_learns_its_rewards_obeys_its_claims(several):
    world, T = ids.mdp("ensemble/2,4,2,2,discount=0.75"), 200
    build = ravi_ucb_plus.linear_mixture if several else ravi_ucb.linear_mixture
    options = {"inner": 2, "eta": 0.5} if several else {"step_scale": 30}
    found = verify(unknown_rewards.unknown(build(world.problem, T, **options), world.problem, T), world, T, 5)
    assert found.holds, found.summary()
    assert {row.id for row in found.rows} == {c.id for c in UNKNOWN if c.about in ("any", "mixture", "parts")}
    assert found["U8"].verdict == "holds"


def test_an_estimator_of_another_kind_is_judged_by_the_general_claims():
    world, T = ids.mdp("ensemble/2,4,2,2,discount=0.75"), 120
    base = ravi_ucb_plus.linear_mixture(world.problem, T, inner=2, weights="variance")
    found = verify(unknown_rewards.unknown(base, world.problem, T), world, T, 4)
    assert found.holds, found.summary()
    assert {row.id for row in found.rows} == {c.id for c in UNKNOWN if c.about == "any"}
    assert found["U7"].verdict == found["U8"].verdict == "not applicable"


@pytest.mark.parametrize("name", ["ravi-ucb/unknown-rewards,step_scale=30", "ravi-ucb+/unknown-rewards,inner=2"])
def test_a_bonus_of_rewards_that_is_too_small_is_to_blame_and_that_of_the_kernel_is_not(name):
    found = report(f"{name},reward_scale=0.05", GARNET)
    assert {row.id for row in found.failed()} >= {"U3a"}
    assert {row.id for row in found.failed()} <= {"U3a", "V3", "V4"}
    assert found["U3b"].verdict == "holds"
    assert found["U8"].verdict == "not applicable"


def test_two_events_may_fail_twice_as_often():
    """Of so many seeds that delta allows no such number of failures, and 2 delta does."""
    world, T, n = ids.mdp(GARNET), 1000, 40
    setting = setting_of(ids.learner("ravi-ucb/unknown-rewards", world, T), world, T, solve(world, tol=1e-12))
    failures = next(k for k in range(n) if binom.sf(k - 1, n, 1 / T) < 1e-6)
    assert binom.sf(failures - 1, n, 2 / T) > 1e-6
    found = [[Worst(-1.0 if seed < failures else 1.0, 0.0, 0.0, 1)] for seed in range(n)]
    verdicts = {claim.id: in_rows(claim, setting, found).verdict for claim in UNKNOWN if claim.kind == "P"}
    assert verdicts == {"T2": "violated", "V3": "holds", "V4": "holds", "U3a": "violated", "U3b": "violated"}


# ---- mistakes


def test_what_holds_with_two_events_catches_a_mistake():
    assert set(unknown.TWICE) <= mutation.caught()


def test_the_claims_that_the_docs_name():
    section = " ".join(PAGE.read_text().split("## Unknown rewards")[1].split("\n## ")[0].split())
    for claim in unknown.registry.claims:
        assert claim.id in section, claim.id
    for name in (*unknown.REPLACED, *unknown.TWICE):
        assert name in section, name
    statistical = sum(c.kind != "D" and c.about in ("any", "tabular", "parts") for c in UNKNOWN)
    assert f"{statistical} statistical claims on counts" in section


# ---- which claims, and what they see


def test_the_claims_of_a_variant_are_all_there():
    ours, theirs = {c.id for c in UNKNOWN}, {c.id for c in VARIANTS}
    assert theirs - ours == set(unknown.REPLACED)
    assert ours - theirs == {c.id for c in unknown.registry.claims}
    found = verify("ravi-ucb/unknown-rewards", GARNET, 40, 3, only=["U3", "V3", "S7"])
    assert [row.id for row in found.rows] == ["S7", "V3", "U3a", "U3b"]
    with pytest.raises(InputError, match="V9 is not about ravi-ucb/unknown-rewards"):
        verify("ravi-ucb/unknown-rewards", GARNET, 40, 3, only=["V9"])
    with pytest.raises(InputError, match=r"U1 is not about ravi-ucb\+"):
        verify("ravi-ucb+,inner=2", GARNET, 40, 3, only=["U1"])


def test_a_sum_that_meets_its_bound_with_equality_raises_no_alarm():
    """One pair, one play, no width: its bonuses are the length of an epoch, H on average. These seeds have 2, all."""
    found = verify("ravi-ucb/unknown-rewards,reward_scale=0", "garnet/1,1,1,discount=0.3", 1, [81, 82, 83])
    H, s = 1 / 0.7, constants.reward_spread(1, 1, 1, 1.0)
    assert found["U6"].measured == 2 > theory.bonus_sum(H, 1, 1, 1, 0.0) == pytest.approx(H)
    assert found["U6"].bound == pytest.approx(theory.bonus_sum(H, 1, 1, 1, s))
    assert found["U6"].verdict == "holds"


def test_a_first_plan_is_the_same_for_all_pairs():
    """So that a fresh Q adds nothing to the bound's beginning."""
    world = ids.mdp(GARNET)
    learner = ids.learner("ravi-ucb+/unknown-rewards,inner=1", world, 100)
    Q = learner.plan(learner.init(np.arange(2, dtype=np.uint64))).Q
    assert np.ptp(Q) == 0
