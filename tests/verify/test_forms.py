"""`verify` by form of learner: sound ones obey every claim about them, and what fails is what was broken, no more."""

from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import ravi
from ravi import ids, verify
from ravi.core import TheoryConstants
from ravi.estimators.counts import Counts
from ravi.estimators.sampled import draw
from ravi.learners.ravi_ucb import plus, ravi_ucb
from ravi.learners.ravi_ucb import unknown_rewards as unknown
from ravi.learners.ravi_ucb.changing_rewards import changing as on
from ravi.mdps.changing_rewards import tides
from ravi.optimism.relative_entropy import ends
from ravi.planning.solver import solve
from ravi.theory import constants, generic, mixture
from ravi.validation import InputError
from ravi.verify import CHANGING, CLAIMS, DOUBLING, EVERY, KINDS, MIXTURES, UNKNOWN, VARIANTS
from ravi.verify.changing_rewards import BEST, last_plays_stand_for_all
from ravi.verify.changing_rewards import setting_of as changing_setting
from ravi.verify.doubling import setting_of as setting_of_phases
from ravi.verify.expected import by_dual
from ravi.verify.judge import Worst, in_rows
from ravi.verify.mixtures import model_of
from ravi.verify.record import run_recorded
from ravi.verify.report import Ladder
from ravi.verify.sampled import drawn
from ravi.verify.setting import setting_of
from tests.helpers import dense
from tests.verify.mutations import sound
from tests.verify.mutations.changing_rewards import KNOWN, PLAYS
from tests.verify.mutations.doubling import SHORT

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verify.md"
GARNET, ENSEMBLE = "garnet/3,2,3,discount=0.75", "ensemble/2,4,2,2,discount=0.75"
FOUR, TERRAIN, RING = "ensemble/2,6,2,4,discount=0.8", "terrain/3,discount=0.75", "ring/1,discount=0.8"
SWIM, TRAP, TIDES = "riverswim/mixture/4,discount=0.75", "trap,discount=0.5", "tides/3,discount=0.7"
PLAIN = "inner=1,fresh=off,centre=off,span=off,clip=off,gamma=off,balance=off,scale=0.2,eta=0.3"

# By MDP: learners, and the claims about them that have nothing to measure or another's constants.
SOUND = {
    GARNET: {
        "ravi-ucb,scale=0.1,eta=0.3": "A20 A20c T5",
        "ravi-ucb+,inner=3": "V1a",  # only a Q that is not fresh begins with E V_0
        "ravi-ucb+,inner=3,fresh=off": "",
        "ravi-ucb+,inner=3,span=off": "V1a",
        "ravi-ucb+,inner=3,clip=off": "V1a",
        "ravi-ucb+,inner=3,gamma=off": "V1a",
        "ravi-ucb+,inner=3,balance=off": "V1a V9s",
        "ravi-ucb+,inner=3,centre=off,span=off": "V1a",
        "ravi-ucb+,inner=3,pick=last": "V1a V7c V7d V9 V9s",  # the last policy has no guarantee
        f"ravi-ucb+,{PLAIN}": "V9 V9s",
        "ravi-ucb/doubling": "",
        "ravi-ucb+/doubling,inner=3": "V1a",
        "ravi-ucb+/doubling,inner=3,pick=last": "V1a V7c V7d B5 B5s",
        "ravi-ucb+/doubling,inner=2,span=off,clip=off,first=9": "V1a",
        "ravi-ucb+/doubling,inner=2,centre=off,span=off,gamma=off,balance=off": "V1a B5s",
        "ravi-ucb/linear": "",
        "ravi-ucb/linear,scale=0.2": "L6",  # beta is too small
        "ravi-ucb/unknown-rewards": "U8s",
        "ravi-ucb/unknown-rewards,scale=0.03,step_scale=60,reward_scale=2": "U8 U8s",
        "ravi-ucb+/unknown-rewards,inner=3": "V1a",
        "ravi-ucb+/unknown-rewards,inner=3,eta=0.5,fresh=off": "U8s",
        "ravi-ucb+/unknown-rewards,inner=2,span=off,clip=off": "V1a",
        "ravi-kl,plan=mirror,inner=3,eta=0.5": "V1a V9s",
        "ravi-kl/unknown-rewards,plan=mirror,inner=2,eta=0.5": "V1a U8s",
    },
    ENSEMBLE: {
        "ravi-ucb": "",  # the claims about counts hold in any MDP, also in one that has features
        "ravi-ucb/mixture,scale=0.1,eta=0.3": "A20 A20c M15",
        "ravi-ucb+/mixture,inner=3": "V1a",
        "ravi-ucb+/mixture,inner=3,fresh=off": "",
        "ravi-ucb+/mixture,inner=3,span=off": "V1a",
        "ravi-ucb+/mixture,inner=3,clip=off": "V1a",
        "ravi-ucb+/mixture,inner=3,gamma=off": "V1a",
        "ravi-ucb+/mixture,inner=3,balance=off": "V1a V9s",
        "ravi-ucb+/mixture,inner=3,centre=off,span=off": "V1a",
        "ravi-ucb+/mixture,inner=3,radius=off": "V1a",
        f"ravi-ucb+/mixture,{PLAIN}": "V9 V9s",
        "ravi-ucb/mixture/doubling": "",
        "ravi-ucb/mixture/doubling,regularization=4,bound=3,step_scale=20": "B5s",
        "ravi-ucb+/mixture/doubling,inner=3": "V1a",
        "ravi-ucb+/mixture/doubling,inner=2,radius=off,fresh=off,step_scale=10": "B5s",
    },
    FOUR: {
        "ravi-ucb/mixture-sampled,samples=2": "",
        "ravi-ucb/mixture-sampled,samples=4,centre=on,draws=3": "",
        "ravi-ucb+/mixture,weights=variance,inner=2": "V1a V8 V9 V9s",
    },
    SWIM: {
        "ravi-ucb/mixture-sampled,samples=1,scale=0.2,eta=0.5,regularization=0.1": "A20 A20c N9",
        "ravi-ucb+/mixture,weights=variance,inner=1,gamma=off,balance=off": "V1a V8 V9 V9s",
    },
    TERRAIN: {
        "ravi-ucb/mixture-sampled,samples=3,centre=on,scale=0.3,step_scale=100": "A20 A20c N9",
        "ravi-ucb+/mixture,weights=variance,inner=3,fresh=off,clip=off,eta=0.5,scale=0.1": "V8 V9 V9s W2c W2d W4",
    },
    TRAP: {
        "ravi-ucb/doubling,first=13,scale=0.15,step_scale=50": "B5s",
        "ravi-ucb+/doubling,inner=2,fresh=off,step_scale=10": "B5s",
        "ravi-ucb+/unknown-rewards,inner=2,balance=off,rewards=deterministic": "V1a U8s",
    },
    RING: {"ravi-ucb+/unknown-rewards,inner=2,centre=off,span=off,gamma=off": "V1a"},
    "hypercube/3,discount=0.7": {"ravi-ucb+/mixture/doubling,inner=2,span=off,clip=off,first=9": "V1a"},
    "linear/6,2,3,discount=0.8": {"ravi-ucb/linear,scale=0.2,step_scale=50": "A20 A20c L6"},
    "linear/aggregated/6,2,2": {"ravi-ucb/linear,scale=0.1,eta=0.3,regularization=0.1": "A20 A20c L6"},
    "riverswim/3,discount=0.6": {
        "ravi-ucb/unknown-rewards,rewards=deterministic,scale=0.05,eta=0.5": "U8s",
        "ravi-kl,plan=mirror,inner=2,eta=0.5,support=off,fresh=off": "V9s",
    },
    "fork/2,discount=0.5": {"ravi-kl/mixture,plan=greedy": ""},
    f"{TIDES},block=1": {"ravi-ucb": "", "ravi-kl,plan=mirror,inner=1,fresh=off,eta=0.5": ""},
    f"{TIDES},block=5,clock=epochs": {
        "ravi-ucb,scale=0.03,step_scale=30,initial_value=2.0": "R9",  # bonuses that are not proven have no bound
        "ravi-ucb/known,eta=1.0": "R8 R9",
        "ravi-ucb+,inner=1,fresh=off,eta=0.5": "",
    },
}
ROWS = [(learner, mdp, unmeasured) for mdp, held in SOUND.items() for learner, unmeasured in held.items()]


@pytest.mark.parametrize(("learner", "mdp", "unmeasured"), ROWS)
def test_a_sound_learner_obeys_every_claim(learner, mdp, unmeasured):
    found = verify.verify(learner, mdp, 160, 5)
    assert found.holds, found.summary()
    assert [row.id for row in found.rows if row.verdict != "holds"] == unmeasured.split()
    assert (found.invalid_at == 0).all()


@pytest.mark.parametrize(("mdp", "learner", "steps"), EVERY)
def test_every_variant_that_the_command_runs_has_policies_that_move_and_obeys_its_claims(mdp, learner, steps):
    found = verify.verify(learner, mdp, steps, 4)
    assert found.holds, found.summary()
    central = "S7" if found.run.learner.startswith("ravi-ucb") or "inner" in found.run.settings else "K4"
    assert found[central].verdict == "holds"
    assert np.ptp(found.run.last_policy, axis=-1).max() > 0.05


def test_every_learner_of_the_family_is_among_the_variants_that_the_command_runs():
    run_by_it = {learner.split(",")[0] for _, learner, _ in EVERY}
    family = {name for name in ids.LEARNERS if name.startswith(("ravi-ucb", "ravi-kl"))}
    assert run_by_it == family - {"ravi-ucb/known"}  # which estimates nothing
    assert any(mdp.startswith("tides") for mdp, _, _ in EVERY)  # rewards that change


def weighted(problem):
    return plus.linear_mixture(problem, 120, inner=2, weights="variance")


def in_general(build):
    """A learner with the parts of one that knows the kernel, of a kind that has no claims of its own."""

    def make(problem):
        parts = ravi_ucb.known_kernel(ids.mdp(ENSEMBLE), 120).parts
        return build(problem, parts.estimator, parts.bonus, 0.3)

    return make


GENERAL = [
    (in_general(ravi_ucb.generic), CLAIMS, "A20 A20c"),
    (in_general(lambda *given: ravi_ucb.generic(*given, stated=TheoryConstants("mine"))), CLAIMS, "A20 A20c"),
    (in_general(lambda *given: plus.generic(*given, inner=3)), VARIANTS, "V1a V8 V9 V9s"),
    (lambda problem: unknown.unknown(weighted(problem), problem, 120), UNKNOWN, "V1a U7 U8 U8s"),
]


@pytest.mark.parametrize(("build", "claims", "unmeasured"), GENERAL)
def test_an_estimator_of_another_kind_is_judged_by_the_general_claims(build, claims, unmeasured):
    mdp = ids.mdp(ENSEMBLE)
    found = verify.verify(build(mdp.problem), mdp, 120, 4)
    assert found.holds, found.summary()
    assert [row.id for row in found.rows] == [claim.id for claim in claims if claim.about == "any"]
    assert [row.id for row in found.rows if row.verdict != "holds"] == unmeasured.split()


@pytest.mark.parametrize("several", [False, True])
def test_a_mixture_that_learns_its_rewards_obeys_its_claims(several):
    problem, T = ids.mdp(ENSEMBLE).problem, 200
    base = (
        plus.linear_mixture(problem, T, inner=2, eta=0.5)
        if several
        else ravi_ucb.linear_mixture(problem, T, step_scale=30)
    )
    found = verify.verify(unknown.unknown(base, problem, T), ids.mdp(ENSEMBLE), T, 5)
    assert found.holds, found.summary()
    assert {row.id for row in found.rows} == {c.id for c in UNKNOWN if c.about in ("any", "mixture", "parts")}
    assert found["U8"].verdict == "holds"


# ---- what is to blame

BLAMED = [  # learner, MDP, steps, seeds, what must fail, and what may fail too
    ("ravi-ucb+,inner=3,scale=0.02", RING, 250, 5, "V3 V4", ""),
    ("ravi-ucb+/mixture,inner=3,scale=0.02", TERRAIN, 250, 5, "V3 V4", ""),
    ("ravi-ucb+/doubling,inner=3,scale=0.02", RING, 200, 6, "V3 V4", ""),
    ("ravi-ucb/unknown-rewards,step_scale=30,reward_scale=0.05", GARNET, 200, 5, "U3a", "V3 V4"),
    ("ravi-ucb+/unknown-rewards,inner=2,reward_scale=0.05", GARNET, 200, 5, "U3a", "V3 V4"),
    ("ravi-ucb,scale=0.003,step_scale=60", PLAYS.world(), 200, 6, "R3 R4", ""),
]


@pytest.mark.parametrize(("learner", "mdp", "steps", "seeds", "must", "may"), BLAMED)
def test_small_bonuses_fail_where_they_are_to_blame_and_nowhere_else(learner, mdp, steps, seeds, must, may):
    found = verify.verify(learner, mdp, steps, seeds)
    assert {*must.split()} <= {row.id for row in found.failed()} <= {*must.split(), *may.split()}
    lost = found.invalid_at[found.invalid_at > 0]
    assert len(lost) > seeds / 2 or may
    assert (
        not len(lost) or f"Bonuses were invalid in {len(lost)} seeds, first in epoch {lost.min()}." in found.summary()
    )


def test_an_invalid_bonus_ends_what_is_held_against_its_own_phase_only():
    found = verify.verify("ravi-ucb+/doubling,inner=3,scale=0.02", RING, 200, 6, only=["V3", "V4a"])
    assert (found.invalid_at == 1).all()  # in phase 0
    assert found["V4a"].verdict == "holds"  # of a later phase
    assert "of 6 seeds fail in phase" in found["V3"].note


def test_half_the_radius_of_algorithm_1_is_found():
    learner, other = (
        ids.learner(f"ravi-kl,plan=mirror,inner=2,eta=0.5{less}", ids.mdp(GARNET), 120) for less in ("", ",scale=0.5")
    )
    mixed = learner._replace(plan=other.plan, parts=other.parts._replace(stated=learner.parts.stated))
    assert {"V2c", "V2d"} <= {row.id for row in verify.verify(mixed, GARNET, 120, 3).failed()}


def test_a_claim_of_probability_is_judged_phase_by_phase():
    """At first = 1 phase i fails with probability 2^-i: all of six seeds may fail in phase 0, three of them in phase 3
    (probability 0.03), but not three in phase 10 (2e-8)."""
    world, T = ids.mdp("riverswim/3,discount=0.7"), 1500
    setting = setting_of_phases(ids.learner("ravi-ucb/doubling", world, T), world, T, solve(world, tol=1e-12))
    claim = next(c for c in VARIANTS if c.id == "V3")

    def verdict(fails):
        found = [
            [Worst(-1.0 if seed < fails.get(i, 0) else 1.0, 0.0, 0.0, 1, i) for i in range(11)] for seed in range(6)
        ]
        return in_rows(claim, setting, found).verdict

    assert verdict({}) == verdict({0: 6, 1: 6, 3: 3, 10: 1}) == "holds"
    assert verdict({10: 3}) == verdict({9: 4, 0: 6}) == "violated"


def test_two_events_may_fail_twice_as_often():
    """Of so many seeds that delta allows no such number of failures, and 2 delta does."""
    world, T, n = ids.mdp(GARNET), 1000, 40
    setting = setting_of(ids.learner("ravi-ucb/unknown-rewards", world, T), world, T, solve(world, tol=1e-12))
    failures = next(k for k in range(n) if binom.sf(k - 1, n, 1 / T) < 1e-6)
    assert binom.sf(failures - 1, n, 2 / T) > 1e-6
    found = [[Worst(-1.0 if seed < failures else 1.0, 0.0, 0.0, 1)] for seed in range(n)]
    verdicts = {claim.id: in_rows(claim, setting, found).verdict for claim in UNKNOWN if claim.kind == "P"}
    assert verdicts == {"T2": "violated", "V3": "holds", "V4": "holds", "U3a": "violated", "U3b": "violated"}


def test_a_sum_that_meets_its_bound_with_equality_raises_no_alarm():
    """One pair, one play, no width: its bonuses are the length of an epoch, H on average. These seeds have 2, all."""
    found = verify.verify("ravi-ucb/unknown-rewards,reward_scale=0", "garnet/1,1,1,discount=0.3", 1, [81, 82, 83])
    H, s = 1 / 0.7, constants.reward_spread(1, 1, 1, 1.0)
    assert found["U6"].measured == 2 > ravi.theory.unknown_rewards.bonus_sum(H, 1, 1, 1, 0.0) == pytest.approx(H)
    assert found["U6"].bound == pytest.approx(ravi.theory.unknown_rewards.bonus_sum(H, 1, 1, 1, s))
    assert found["U6"].verdict == "holds"


def test_the_levels_hold_in_runs():
    """E plays under invalid plans against the sum of the levels, on 12 seeds."""
    learner, mdp = "ravi-kl/mixture,plan=greedy", "fork/2,discount=0.5"
    found = verify.verify(learner, mdp, 200, 12, only=["KM7", "KM8", "K11"])
    assert [row.verdict for row in found.rows] == ["holds"] * 3


# ---- which claims

CHOSEN = [  # learner, MDP, what is asked for; the claims, or why not
    ("ravi-ucb", "riverswim/3", "A1", "A1a A1b A1"),
    ("ravi-ucb", "riverswim/3", "A15 S3", "S3 A15 A15c"),
    ("ravi-ucb", "riverswim/3", "A15c", "A15c"),
    ("ravi-ucb+,inner=2", "riverswim/3", "V4 S7", "S7 V4a V4b V4"),
    ("ravi-ucb/doubling", "riverswim/3", "V4 S7 B1", "S7 V4a V4b V4 B1"),
    ("ravi-ucb/unknown-rewards", GARNET, "U3 V3 S7", "S7 V3 U3a U3b"),
    ("ravi-ucb/mixture-sampled,samples=2", FOUR, "N2 S4", "S4 N2a N2b N2c N2d"),
    ("ravi-ucb", "tides/3", "R4", "R4a R4b R4"),
]
REFUSED = [
    ("ravi-ucb", "riverswim/3", "A115", r"there is no claim 'A115'.*Did you mean.*A15"),
    ("ravi-ucb", "riverswim/3", "M15", "M15 is not about ravi-ucb"),
    ("ravi-ucb", "riverswim/3", "V1a", "V1a is not about ravi-ucb"),
    ("ravi-ucb", "riverswim/3", "B1", "B1 is not about ravi-ucb"),
    ("ravi-ucb/mixture", FOUR, "N1a", "N1a is not about ravi-ucb"),
    ("ravi-ucb/mixture-sampled,samples=2", FOUR, "L1a", "L1a is not about ravi-ucb/mixture-sampled"),
    ("ravi-ucb+,inner=2", "riverswim/3", "A15", "A15 is not about ravi-ucb"),
    ("ravi-ucb+,inner=2", GARNET, "U1", r"U1 is not about ravi-ucb\+"),
    ("ravi-ucb/doubling", "riverswim/3", "V9", "V9 is not about ravi-ucb/doubling"),
    ("ravi-ucb/unknown-rewards", GARNET, "V9", "V9 is not about ravi-ucb/unknown-rewards"),
    ("ravi-ucb", "tides/3", "R2b", "R2b is not about"),
    ("ravi-ucb", "riverswim/401", "", "has 401 states; verify takes at most 400"),
    ("ravi-ucb/doubling", "riverswim/401", "", "has 401 states; verify takes at most 400"),
    ("ravi-ucb", "tides/500", "", "has 500 states; verify takes at most 400"),
    ("ravi-ucb", "tides/3,blok=5", "", "tides/3,blok=5"),
    ("uniform", "riverswim/3", "", "uniform is not of RAVI-UCB's form"),
    *((name, "tides/3", "", "no form for changing rewards")
      for name in ("ravi-ucb+", "ucrl2", "ravi-ucb/unknown-rewards", "ravi-ucb/doubling")),
]  # fmt: skip


@pytest.mark.parametrize(("learner", "mdp", "only", "claims"), CHOSEN)
def test_claims_can_be_chosen(learner, mdp, only, claims):
    assert [row.id for row in verify.verify(learner, mdp, 60, 3, only=only.split()).rows] == claims.split()


@pytest.mark.parametrize(("learner", "mdp", "only", "why"), REFUSED)
def test_what_verify_does_not_take(learner, mdp, only, why):
    with pytest.raises(InputError, match=why):
        verify.verify(learner, mdp, 60, 3, only=only.split())


def statistical(claims, kind):
    return sum(c.kind != "D" and c.about in ("any", kind) for c in claims)


SECTIONS = {  # of the page: its claims, and those that it counts on counts and on a regression
    "Learners with several backups": (VARIANTS, VARIANTS),
    "Unknown T": (verify.doubling.registry.claims, DOUBLING),
    "Changing rewards": (verify.changing_rewards.registry.claims, CHANGING),
    "Unknown rewards": (verify.unknown_rewards.registry.claims, None),
    "Other regressions": (KINDS, None),
}


@pytest.mark.parametrize("title", SECTIONS)
def test_the_page_has_the_claims_of_every_form(title):
    section = " ".join(PAGE.read_text().split(f"## {title}")[1].split("\n## ")[0].split())
    named, counted = SECTIONS[title]
    assert [claim.id for claim in named if claim.id not in section] == []
    if counted:
        counts, regression = (statistical(counted, kind) for kind in ("tabular", "mixture"))
        assert f"{counts} statistical claims on counts, {regression} on a regression" in section
    if title == "Unknown rewards":
        known = verify.unknown_rewards
        assert all(name in section for name in (*known.REPLACED, *known.TWICE))
        many = sum(c.kind != "D" and c.about in ("any", "tabular", "parts") for c in UNKNOWN)
        assert f"{many} statistical claims on counts" in section


def test_the_page_has_the_claims_of_mixtures_and_the_bounds_of_runs():
    page = PAGE.read_text()
    for claim in MIXTURES:
        assert f"| {claim.id} | {claim.statement.replace('|', chr(92) + '|')} |" in page
    found, l = sound(SHORT), sound(KNOWN).ladder
    assert found["B5"].bound < found["B5s"].bound < SHORT.steps / 2
    assert found["B4"].bound < SHORT.steps / 2
    assert f"B5 is {found['B5'].bound:.0f} at T = {SHORT.steps}" in page
    words = " ".join(page.split())
    assert f"regret {l.regret:.2f}, H x sum of the epochs' gaps {l.epochs:.2f}, exact certificate" in words
    assert f"certificate {l.certificate:.2f}, Lemma 4.3 {l.lemma:.2f}." in words


# ---- what is compared with


def world_and_report(mdp, learner, T):
    return ids.mdp(mdp), verify.verify(learner, mdp, T, 3)


def test_the_bounds_are_those_of_the_theory():
    T = 150
    world, found = world_and_report(FOUR, "ravi-ucb/mixture-sampled,samples=2", T)
    drawn_by_it, H, d, B_theta = draw(world.problem, 2, 0), world.horizon, world.dimension, world.parameter_bound
    B, eps = max(B_theta, drawn_by_it.feature_bound), H * drawn_by_it.errors.max()
    beta = constants.beta_mixture(H, d, T, 1 / T, parameter_bound=B, feature_bound=B)
    N = mixture.bonus_sum_corrected(H, d, T, bound=B) / beta
    S = (beta + B_theta * eps * sqrt(T)) * N + B_theta * eps * (T + H - 1)
    assert found["N8"].bound == pytest.approx(S, rel=1e-12)
    assert found["N9"].bound == pytest.approx(generic.corrected(H, world.actions, T, S).total, rel=1e-12)
    assert found.ladder.explicit == found["N9"].bound

    world, found = world_and_report(GARNET, "ravi-ucb/linear", T)
    H, d = world.horizon, 6
    beta, longest = d * H * sqrt(log(2 * d * T * T)), {"parameter_bound": 1 / H, "feature_bound": 1 / H}
    N = mixture.bonus_sum_corrected(H, d, T, bound=1 / H) / constants.beta_mixture(H, d, T, 1 / T, **longest)
    assert found["L5"].bound == pytest.approx(beta * N, rel=1e-12)
    assert found["L6"].bound == pytest.approx(generic.corrected(H, 2, T, beta * N).total, rel=1e-12)
    least = H / 2 * sqrt(d * log(1 + T / d) + 2 * log(T) + 2 * 3 * log(2)) + H * sqrt(6)  # P has rows of mass 1
    by_theory = constants.beta_linear(H, 3, d, T, feature_bound=1.0, weight_bound=H * sqrt(6))
    assert beta > least == pytest.approx(by_theory, rel=1e-12)

    learner, mdp = "ravi-ucb+/mixture,weights=variance,inner=2", "ensemble/3,6,2,4,discount=0.75"
    world, found = world_and_report(mdp, learner, T)
    H, d, B_phi, eta = world.horizon, world.dimension, world.feature_bound, ids.learner(learner, world, T).parts.eta
    l, m = log(4 * T**2 * 3 * T), log(1 + T * B_phi**2)
    beta = 8 * sqrt(d * m * l) + 4 * sqrt(d) * l + world.parameter_bound
    S = mixture.clipped_bonus_sum(H, d, T, 0.75 * sqrt(3) * H * beta, bound=sqrt(d) * B_phi / H)
    assert found["W3"].bound == pytest.approx(S, rel=1e-12)
    bound = generic.sharp(H, 2, T, S, eta=eta, inner_steps=2).total + H / 2
    assert found["W4"].bound == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("mdp", ["ensemble/3,8,2,6,discount=0.75", SWIM])
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


def test_the_dual_is_the_maximum():
    """The observer's search against the learner's Newton method, over random rows."""
    mdp = ravi.mdp("garnet/9,3,4")
    rng = np.random.default_rng(0)
    moves = np.array([[[rng.multinomial(rng.integers(0, 50), row) for row in pair] for pair in mdp.transitions]])
    D = Counts(moves.sum(-1, dtype=np.int32), moves.astype(np.int32))
    rho, V = rng.exponential(4.0, D.visits.shape), rng.random((1, 9))
    for support in (True, False):
        low, high = ends(mdp.successors, D, rho, support, V)
        np.testing.assert_allclose(by_dual(mdp, moves, rho, support, V), high, atol=1e-10)
        np.testing.assert_allclose(-by_dual(mdp, moves, rho, support, -V), low, atol=1e-10)


@pytest.mark.parametrize("id", ["riverswim/mixture/4", "terrain/3,2", "ensemble/3,4,2,2"])
def test_the_truth_is_a_mixture_of_the_kernels(id):
    mdp = ravi.mdp(id)
    model = model_of(mdp)
    assert (model.theta >= 0).all()
    np.testing.assert_allclose(model.psi @ model.theta, mdp.transitions, atol=1e-8)


def test_a_first_plan_is_the_same_for_all_pairs():
    """So that a fresh Q adds nothing to the bound's beginning."""
    learner = ids.learner("ravi-ucb+/unknown-rewards,inner=1", ids.mdp(GARNET), 100)
    assert np.ptp(learner.plan(learner.init(np.arange(2, dtype=np.uint64))).Q) == 0


def test_a_ladder_whose_charges_are_no_number_prints():
    """Of a broken learner: its report is printed, not refused."""
    labels = ("measured regret", "what K5 charges its plays with", "explicit bound")
    found = Ladder(2.0, np.nan, np.nan, np.nan, np.inf, 3.0, labels)
    assert [label for label, _ in found.rungs()] == list(labels)
    assert "what K5 charges its plays with" in str(found)


# ---- rewards that change


def test_the_variance_of_last_plays_is_the_one_that_r7_takes():
    """Of 500 seeds, fixed ones; means stray by more than 4.5 of their errors with probability 1e-5."""
    w = tides(3, 0.7, block=1)
    learner, at = changing_setting(ids.learner("ravi-ucb,scale=0.05,eta=0.5", w.mdp, 40), w, 40)
    found = [last_plays_stand_for_all(s) for s in run_recorded(at, learner, 500, False)[1]]
    drift, variance = np.array([one[0] for one in found]), np.array([one[2].variance for one in found]).mean(0)
    moving = variance > 1e-6
    assert moving.sum() >= 4
    assert (np.abs(drift.mean(0)[moving]) < 4.5 * np.sqrt(variance[moving] / 500)).all()
    assert (np.abs((drift**2).mean(0)[moving] / variance[moving] - 1) < 0.3).all()


@pytest.mark.parametrize(("clock", "block", "T"), [("plays", 7, 60), ("epochs", 3, 60), ("epochs", 50, 60)])
def test_the_best_comparator_is_the_best_of_all_for_the_plays_that_are_expected(clock, block, T):
    """By the law of the epoch of every play, step by step."""
    w = replace(PLAYS.world(), clock=clock, block=block)
    _, at = changing_setting(ids.learner("ravi-ucb", w.mdp, T), w, T)
    plays, p, gamma = np.zeros(len(w.tables)), np.zeros(T + 1), w.mdp.discount
    p[1] = 1.0  # of epoch k, at play t
    for t in range(1, T + 1):
        for k in range(1, t + 1):
            plays[((t if clock == "plays" else k) - 1) // block % len(w.tables)] += p[k]
        p[1:] = gamma * p[1:] + (1 - gamma) * p[:-1]
    np.testing.assert_allclose(w.expected(T), plays, rtol=0, atol=1e-9)
    gains = at.against.rho @ plays
    assert gains[BEST] >= gains.max() - 1e-9
    P = np.einsum("xa,xay->xy", pi := at.parts.initial_policy, dense(w.mdp))
    nu = np.linalg.solve(np.eye(w.mdp.states) - gamma * P.T, (1 - gamma) * w.mdp.initial)
    np.testing.assert_allclose(at.against.rho[-1], np.einsum("x,xa,jxa->j", nu, pi, w.tables))


def rows_of(learner, world):
    return [row[:-2] for row in verify.verify(learner, world, 100, 3).rows]


def test_a_world_goes_by_its_id_and_a_learner_may_be_made_for_it():
    world = tides(3, 0.7, block=5, clock="epochs")
    right = rows_of("ravi-ucb,scale=0.1,eta=0.3", f"{TIDES},block=5,clock=epochs")
    base = ids.learner("ravi-ucb,scale=0.1,eta=0.3", world.mdp, 100)
    assert right == rows_of("ravi-ucb,scale=0.1,eta=0.3", world) == rows_of(on(base, world), world)
    assert ids.changing("riverswim/4") is None
    for wrong, word in (
        ({"block": 9}, "block"),
        ({"clock": "plays"}, "clock"),
        ({"tables": world.tables / 2}, "tables"),
    ):
        with pytest.raises(InputError, match=f"was made with {word}"):
            verify.verify(on(base, world), replace(world, **wrong), 100, 2)
