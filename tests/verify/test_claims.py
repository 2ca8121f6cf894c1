"""Claims about which learners, with which constants; closed forms; what a report must not depend on; the judge."""

import json
from math import inf, isnan, nan

import numpy as np
import pytest

import ravi.runtime.api
import ravi.runtime.python
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.planning.solver import solve
from ravi.verify import CLAIMS, verify
from ravi.verify.claim import Claim
from ravi.verify.judge import Worst, in_mean, in_rows, worst
from ravi.verify.record import run_recorded
from ravi.verify.setting import setting_of
from tests.verify.test_numbers import ELSEWHERE, MOVING, built, case

SKEWED = ELSEWHERE["initial_policy"]


def made(kind, T, **options):
    """MDP and learner, with the constants of the paper but for the options."""
    mdp, *_ = built("papers", kind)
    return mdp, (ravi_ucb.tabular if kind == "tabular" else ravi_ucb.linear_mixture)(mdp.problem, T, **options)


def claims_of(kind):
    return [claim for claim in CLAIMS if claim.about in ("any", kind)]


def records(kind):
    """Of runs with policies that move and bonuses that are valid; the setting first."""
    mdp, learner, T, seeds = built("moving", kind)
    setting = setting_of(learner, mdp, T, solve(mdp, tol=1e-12))
    return setting, list(run_recorded(setting, learner, seeds, False)[1])


# ---- the runs are worth checking


@pytest.mark.parametrize("kind", MOVING)
def test_sums_stop_at_the_first_invalid_epoch(kind):
    """Some seeds lapse at once, some later or never; past it, Lemma 4.2 does fail: stopping there is not idle."""
    report = case("lapsing", kind)
    assert len(set(report.invalid_at)) >= 3
    assert max(report.invalid_at) > 5
    assert report["A15c"].holds
    assert report["A1a"].holds
    assert report["A1"].measured > 0.01


@pytest.mark.parametrize("kind", MOVING)
def test_without_a_valid_epoch_conditional_claims_are_not_reached(kind):
    report = case("hopeless", kind)
    assert report.invalid_at.tolist() == [1] * 6
    for claim in claims_of(kind):
        row = report[claim.id]
        assert (row.verdict == "not reached") == isnan(row.margin) == claim.conditional, claim.id
    assert [row.id for row in report.failed()] == ["S4", "A1"]
    json.dumps(report.json(), allow_nan=False)


@pytest.mark.parametrize("kind", MOVING)
def test_what_chance_is_granted_rests_on_exact_variances(kind):
    """Of the sum S of a function over an epoch, by its first two moments: m = f + gamma P m, and likewise for S^2."""
    from ravi.verify.analysis import bonuses_of_an_epoch, lemma_4_4, wald

    setting, found = records(kind)
    gamma = setting.gamma

    def variance(policy, f):
        chain = np.eye(len(f)) - gamma * np.einsum("xa,xay->xy", policy, setting.P)
        first = np.linalg.solve(chain, (policy * f).sum(-1))
        second = np.linalg.solve(chain, (policy * (f**2 + 2 * f * gamma * (setting.P @ first))).sum(-1))
        nu0 = setting.mdp.initial
        return nu0 @ second - (nu0 @ first) ** 2

    for s in found:
        less = s.CB - (s.at.mu * s.CB).sum((1, 2), keepdims=True)
        for claim, values in ((bonuses_of_an_epoch, s.CB), (lemma_4_4, less), (wald, s.gap[:, None, None] + 0 * s.CB)):
            right = sum(variance(policy, f) for policy, f in zip(s.at.policy, values, strict=True))
            assert claim(s)[2].variance == pytest.approx(right, rel=1e-9), claim


def test_closed_forms_in_one_state():
    """X = 1: nu = 1, mu = pi; KL(mu || mu') = H(pi || pi'), so Lemma A.1 has slack H - 1; nu* = nu."""
    report = case("one_place", "tabular")
    assert report["A10"].margin == pytest.approx((1 / 0.3 - 1) * report["A10"].measured, abs=1e-12)
    assert report["A14"].measured == pytest.approx(0, abs=1e-12)


def test_the_stretches_of_an_epoch_do_not_change_a_report(monkeypatch):
    """With room for two steps most epochs come in pieces."""
    one, empty = case("moving", "mixture"), ravi.runtime.python.empty_path
    monkeypatch.setattr(ravi.runtime.python, "empty_path", lambda n, length: empty(n, 2))
    other = case("moving", "mixture")
    assert [row[:-1] for row in one.rows] == [row[:-1] for row in other.rows]


# ---- which learners, and which constants


@pytest.mark.parametrize(
    "options",
    [{"beta": 0.01}, {"beta": 1e6}, {"scale": 2.0}, {"scale": 0.5}, {"step_scale": 3.0}, {"initial_policy": SKEWED}],
    ids=str,
)
@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_explicit_bounds_are_for_the_papers_constants_only(setting, options):
    """Larger bonuses cost more than the bound allows for, smaller ones may be invalid; log A is for a uniform pi_0."""
    mdp, learner = made(setting, 20, **options)
    report = verify(learner, mdp, 20, 3, only=["T5", "M14", "M15", "M16", "A20", "A20c"])
    assert report["T5" if setting == "tabular" else "M15"].verdict == "not applicable"
    assert report.ladder.explicit == inf
    assert report["M16"].bound == 1  # no gap is larger
    if setting == "mixture":  # Lemma 5.5 holds for every bonus up to the paper's
        larger = options.get("beta", 0) > 1 or options.get("scale", 0) > 1
        assert report["M14"].verdict == ("not applicable" if larger else "holds")


def test_a_bound_that_is_too_small_is_noticed():
    """Assumption 5.3 is held against the B that the learner was given."""
    mdp, learner = made("mixture", 20, bound=0.5)
    report = verify(learner, mdp, 20, 3, only=["M1"])
    assert [row.id for row in report.failed()] == ["M1a", "M1b"]
    assert report["M1a"].measured == pytest.approx(np.linalg.norm(mdp.parameter) - 0.5)


# ---- nothing is lost on the way to a verdict


@pytest.mark.parametrize("bad", [nan, -inf])
def test_a_nan_or_an_infinite_violation_is_the_worst(bad):
    for margins in ([0.5, bad, 0.3], [0.3, 2.0, bad]):
        found = worst(np.zeros(3), np.array(margins), epochs=[1, 2, 3])
        assert found.epoch == 1 + margins.index(bad)
        assert not found.margin >= 0


@pytest.mark.parametrize("value", [nan, inf])
@pytest.mark.parametrize("per", ["epoch", "run"])
def test_a_claim_whose_measure_breaks_down_is_violated(monkeypatch, value, per):
    broken = Claim("X1", "never true", "nowhere", "D", per, "any", False, False, lambda s: (value, 0.0))
    monkeypatch.setattr("ravi.verify.CLAIMS", (broken,))
    report = verify("ravi-ucb", built("papers", "tabular")[0], 10, 3)
    assert [row.verdict for row in report.rows] == ["violated"]
    assert report.status == 1


@pytest.mark.parametrize("equality", [False, True])
def test_a_mean_that_is_not_a_number_is_violated(equality):
    setting, _ = records("tabular")
    claim = Claim("X2", "", "", "E", "run", "any", False, equality, lambda s: None)
    assert in_mean(claim, setting, [(value, 0.0) for value in (nan, 1, 1)]).verdict == "violated"


@pytest.mark.parametrize(("id", "tolerance"), [("C2", 1e-8 * 7), ("S8", 1e-9 / 0.3)])
def test_what_rounding_is_granted(id, tolerance):
    """1e-9 H; of a sum over K epochs, valid or not, 1e-8 K."""
    setting, _ = records("tabular")
    claim = next(claim for claim in CLAIMS if claim.id == id)
    for share, holds in ((0.9, True), (1.1, False)):
        off = share * tolerance
        assert in_rows(claim, setting, [[Worst(-off, off, 0.0, 1)]], epochs=7).holds == holds
