"""`verify` on regressions of other kinds: sampled features, linear MDPs, weights by variance. Sound ones obey, mistakes
are caught, and what is compared with is recomputed here in plain loops."""

from functools import cache
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from ravi import ids
from ravi.core import TheoryConstants
from ravi.estimators.sampled import draw
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.planning.solver import solve
from ravi.theory import constants, generic, mixture
from ravi.validation import InputError
from ravi.verify import CLAIMS, KINDS, VARIANTS, verify
from ravi.verify import OWN as BY_NAME
from ravi.verify.sampled import drawn
from ravi.verify.setting import setting_of

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verify.md"
OWN = [claim.id for claim in KINDS]
# Bounds that no run of a few thousand plays could exceed: they are above what all plays together can lose.
VACUOUS = {"N9", "L6", "W3", "W4"}

SOUND = [
    ("ravi-ucb/mixture-sampled,samples=2", "ensemble/2,6,2,4,discount=0.8"),
    ("ravi-ucb/mixture-sampled,samples=4,centre=on,draws=3", "ensemble/2,6,2,4,discount=0.8"),
    ("ravi-ucb/mixture-sampled,samples=1,scale=0.2,eta=0.5,regularization=0.1", "riverswim/mixture/4,discount=0.75"),
    ("ravi-ucb/mixture-sampled,samples=3,centre=on,scale=0.3,step_scale=100", "terrain/3,discount=0.75"),
    ("ravi-ucb/linear", "garnet/3,2,3,discount=0.75"),
    ("ravi-ucb/linear,scale=0.2,step_scale=50", "linear/6,2,3,discount=0.8"),
    ("ravi-ucb/linear,scale=0.1,eta=0.3,regularization=0.1", "linear/aggregated/6,2,2,discount=0.7"),
    ("ravi-ucb+/mixture,weights=variance,inner=2", "ensemble/3,6,2,4,discount=0.75"),
    ("ravi-ucb+/mixture,weights=variance,inner=3,fresh=off,clip=off,eta=0.5,scale=0.1", "terrain/3,discount=0.75"),
    ("ravi-ucb+/mixture,weights=variance,inner=1,gamma=off,balance=off", "riverswim/mixture/4,discount=0.75"),
]  # fmt: skip


@cache
def report(learner, mdp, steps=150, seeds=5, only=()):
    return verify(learner, mdp, steps, seeds, only=only)


@pytest.mark.parametrize(("learner", "mdp"), SOUND)
def test_sound_learners_violate_nothing(learner, mdp):
    found = report(learner, mdp)
    assert found.holds, found.summary()
    name = ids.learner(learner, ids.mdp(mdp), 150).parts.stated.kind
    own = [row for row in found.rows if row.id in OWN]
    assert [row.id for row in own] == [claim.id for claim in BY_NAME[name].registry.claims]
    scaled = "scale=" in learner or "eta=" in learner
    unmeasured = {row.id for row in own if row.verdict != "holds"}
    assert unmeasured <= ({"N9", "L6", "W2c", "W2d", "W4"} if scaled else set())
    assert np.isfinite(found.ladder.explicit) == (found.rows[-1].verdict == "holds")


def test_vacuous_bounds_are_above_what_any_run_can_lose():
    for learner, mdp in SOUND:
        for row in report(learner, mdp).rows:
            if row.id in VACUOUS and row.verdict == "holds":
                assert row.bound > ids.mdp(mdp).horizon * (150 + 100)


def test_the_docs_name_the_claims():
    section = " ".join(PAGE.read_text().split("## Other regressions")[1].split("\n## ")[0].split())
    for claim in KINDS:
        assert claim.id in section, claim.id


def test_ids_of_claims_are_distinct_and_can_be_chosen():
    assert not set(OWN) & {c.id for c in (*CLAIMS, *VARIANTS)}
    assert len(OWN) == len(set(OWN))
    found = report(*SOUND[0], only=("N2", "S4"))
    assert [row.id for row in found.rows] == ["S4", "N2a", "N2b", "N2c", "N2d"]
    with pytest.raises(InputError, match="L1a is not about ravi-ucb/mixture-sampled"):
        verify(*SOUND[0], 100, 3, only=["L1a"])
    with pytest.raises(InputError, match="N1a is not about ravi-ucb"):
        verify("ravi-ucb/mixture", SOUND[0][1], 100, 3, only=["N1a"])


def test_other_learners_are_judged_as_before():
    assert not {row.id for row in verify("ravi-ucb", "riverswim/3,discount=0.7", 60, 3).rows} & set(OWN)


# ---- what is compared with


@pytest.mark.parametrize("mdp", ["ensemble/3,8,2,6,discount=0.75", "riverswim/mixture/4,discount=0.75"])
@pytest.mark.parametrize("centre", ["off", "on"])
def test_the_observers_draws_are_those_of_the_estimator(mdp, centre):
    """Also where some pairs have more than m successors, and some have m or fewer and are kept whole."""
    mdp = ids.mdp(mdp)
    for m in range(1, 8):
        learner = ids.learner(f"ravi-ucb/mixture-sampled,samples={m},draws=4,centre={centre}", mdp, 100)
        ours, theirs = drawn(setting_of(learner, mdp, 100, solve(mdp))), draw(mdp.problem, m, 4, centre=centre == "on")
        np.testing.assert_allclose(ours.errors, theirs.errors, atol=1e-13)
        assert ours.bound == pytest.approx(max(mdp.parameter_bound, theirs.feature_bound))
        V = np.random.default_rng(m).uniform(0, 4, size=mdp.states)
        phi = np.einsum("xajd,xaj->xad", ours.features, V[mdp.successors])
        other = np.einsum("xajd,xaj->xad", theirs.problem.features, V[theirs.problem.successors])
        np.testing.assert_allclose(phi, other, atol=1e-12)


def test_the_bounds_are_those_of_the_theory():
    (learner, mdp), T = SOUND[0], 150
    world, found = ids.mdp(mdp), report(*SOUND[0])
    made = draw(world.problem, 2, 0)
    H, d, B_theta = world.horizon, world.dimension, world.parameter_bound
    B, eps = max(B_theta, made.feature_bound), world.horizon * made.errors.max()
    beta = constants.beta_mixture(H, d, T, 1 / T, parameter_bound=B, feature_bound=B)
    N = mixture.bonus_sum_corrected(H, d, T, bound=B) / beta
    S = (beta + B_theta * eps * sqrt(T)) * N + B_theta * eps * (T + H - 1)
    assert found["N8"].bound == pytest.approx(S, rel=1e-12)
    assert found["N9"].bound == pytest.approx(generic.corrected(H, world.actions, T, S).total, rel=1e-12)
    assert found.ladder.explicit == found["N9"].bound

    world, found = ids.mdp(SOUND[4][1]), report(*SOUND[4])
    H, d = world.horizon, 6
    beta = d * H * sqrt(log(2 * d * T * T))
    N = mixture.bonus_sum_corrected(H, d, T, bound=1 / H) / constants.beta_mixture(
        H, d, T, 1 / T, parameter_bound=1 / H, feature_bound=1 / H
    )
    assert found["L5"].bound == pytest.approx(beta * N, rel=1e-12)
    assert found["L6"].bound == pytest.approx(generic.corrected(H, 2, T, beta * N).total, rel=1e-12)
    least = H / 2 * sqrt(d * log(1 + T / d) + 2 * log(T) + 2 * 3 * log(2)) + H * sqrt(6)  # P has rows of mass 1
    assert constants.beta_linear(H, 3, d, T, feature_bound=1.0, weight_bound=H * sqrt(6)) == pytest.approx(
        least, rel=1e-12
    )
    assert beta > least

    (learner, mdp), found = SOUND[7], report(*SOUND[7])
    world = ids.mdp(mdp)
    H, d, B_phi, made = world.horizon, world.dimension, world.feature_bound, ids.learner(learner, world, T)
    l, m = log(4 * T**2 * 3 * T), log(1 + T * B_phi**2)
    beta = 8 * sqrt(d * m * l) + 4 * sqrt(d) * l + world.parameter_bound
    S = mixture.clipped_bonus_sum(H, d, T, 0.75 * sqrt(3) * H * beta, bound=sqrt(d) * B_phi / H)
    assert found["W3"].bound == pytest.approx(S, rel=1e-12)
    bound = generic.sharp(H, 2, T, S, eta=made.parts.eta, inner_steps=2).total + H / 2
    assert found["W4"].bound == pytest.approx(bound, rel=1e-12)


def test_the_linear_bound_is_not_claimed_where_beta_is_too_small():
    found = report("ravi-ucb/linear,scale=0.2", "garnet/3,2,3,discount=0.75", only=("L5", "L6"))
    assert found["L6"].verdict == "not applicable"
    assert found["L5"].verdict == "holds"


def test_the_event_for_all_values_is_one_for_all_corners():
    """xi is convex in V: no V in [0, H]^X is above all corners."""
    rng = np.random.default_rng(0)
    phi, surplus = rng.normal(size=(12, 3)), rng.normal(size=(12, 4))
    Lam = np.eye(3) + phi.T @ phi

    def xi(V):
        return sqrt((phi.T @ surplus @ V) @ np.linalg.solve(Lam, phi.T @ surplus @ V))

    corners = max(xi(5.0 * np.array(c)) for c in np.ndindex(2, 2, 2, 2))
    assert all(xi(V) <= corners for V in rng.uniform(0, 5, size=(200, 4)))


def test_an_estimator_without_a_name_of_ours_has_no_claims_of_its_own():
    world = ids.mdp("riverswim/3,discount=0.7")
    base = ravi_ucb.known_kernel(world, 100)
    made = ravi_ucb.generic(world.problem, base.parts.estimator, base.parts.bonus, 0.3, stated=TheoryConstants("mine"))
    found = verify(made, world, 60, 3)
    assert found.holds
    assert not {row.id for row in found.rows} & set(OWN)
