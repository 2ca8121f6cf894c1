"""Every claim measures what it says: each row of the table against plain loops over the same runs.

The loops are in `claims_recomputed.py`. Runs are tiny, their policies move, and their seeds end at different epochs.
"""

from collections import Counter
from functools import cache
from math import comb, inf, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import t as student

import ravi.runtime.api
from ravi.estimators.counts import known
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import garnet, garnets
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.verify import CLAIMS, verify
from ravi.verify.audit import audit, finish, note
from ravi.verify.books import Evidence, Worst
from ravi.verify.claim import Claim
from ravi.verify.report import judged
from ravi.verify.scene import scene_of
from tests.verify.claims_recomputed import RECOMPUTED, case_of, certificate, explicit, found, lemma_4_3, regret

TOLERANCE = 1e-9
SKEWED = [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]


def small(setting, X=3, A=2):
    return garnet(X, A, min(2, X), 3, 0.7) if setting == "tabular" else garnets(2, X, A, min(2, X), 1, 0.7)


def made(setting, mdp, T, **options):
    return (ravi_ucb.tabular if setting == "tabular" else ravi_ucb.linear_mixture)(mdp.problem, T, **options)


def moving(setting, **options):
    """Policies move, and bonuses are valid."""
    own = {"beta": 2.0} if setting == "tabular" else {"scale": 0.06, "regularization": 0.7}
    return small(setting), 60, 6, {"eta": 0.4} | own | options


def lapsing(setting):
    """Bonuses become invalid: in some seeds early, in others late or never."""
    return moving(setting, **({"beta": 1.0} if setting == "tabular" else {"scale": 0.03}))


def papers(setting):
    return small(setting), 40, 5, {}


def bolder(setting):
    """The paper's constants for another delta."""
    return small(setting), 40, 5, {"delta": 0.3}


def elsewhere(setting):
    """Another V_0, pi_0 and delta; under a given bound B."""
    own = {} if setting == "tabular" else {"bound": 2.0}
    return moving(setting, initial_value=[0.4, 3.0, 1.1], initial_policy=SKEWED, delta=0.2, **own)


def hopeless(setting):
    """No bonus at all, and V_0 > 0: epoch 1 is invalid in every seed."""
    return small(setting), 30, 6, {"beta": 0.0, "eta": 0.4, "initial_value": 2.0}


def one_step(setting):
    return small(setting), 1, 5, {}


def one_action(setting):
    return small(setting, A=1), 30, 4, {}


def one_place(setting):
    return small(setting, X=1), 30, 4, {"eta": 0.4}


KINDS = (moving, lapsing, papers, bolder, elsewhere, hopeless, one_step, one_action, one_place)
CASES = {f"{kind.__name__}-{setting}": (kind, setting) for kind in KINDS for setting in ("tabular", "mixture")}


class Run(NamedTuple):
    case: object  # what loops find
    report: object  # what verify says
    evidence: object  # what its claims about a whole run look at
    learner: object
    logged: dict  # of claims along the run: id -> epoch -> measured and bound of every seed


@cache
def runs(name):
    kind, setting = CASES[name]
    mdp, T, seeds, options = kind(setting)
    learner = made(setting, mdp, T, **options)
    scene = scene_of(learner, mdp, T, solve(mdp, tol=1e-12))
    logged = {claim.id: {} for claim in claims_of(setting) if claim.phase != "run"}
    tests = [
        claim._replace(conditional=False, measure=logging(claim, logged[claim.id]))
        for claim in CLAIMS
        if claim.id in logged
    ]
    played = run(learner, mdp, T, seeds, measures=[audit(scene, tests)], pad=True)
    evidence = Evidence(scene, finish(scene, tests, played.batch.records[-1], played.state), played)
    return Run(case_of(mdp, learner, T, seeds), verify(learner, mdp, T, seeds), evidence, learner, logged)


def logging(claim, log):
    def measure(seen):
        log[seen.k] = claim.measure(seen)
        return log[seen.k]

    return measure


def claims_of(setting):
    return [claim for claim in CLAIMS if claim.setting in ("any", setting)]


def close(a, b):
    return a == b or abs(a - b) <= TOLERANCE * max(1.0, abs(b))


# ---- the table, row by row


def test_every_claim_is_recomputed():
    """A claim that is added without its loops, or twice, fails here; so does one that changes its form unnoticed."""
    assert Counter(claim.id for claim in CLAIMS) == Counter(list(RECOMPUTED))
    forms = {"epoch": "epochs", "pair": "pairs", "prefix": "prefixes"}
    for claim in CLAIMS:
        form, conditional, _ = RECOMPUTED[claim.id]
        assert conditional == claim.conditional, claim.id
        if claim.kind == "E":
            assert form == "mean", claim.id
        else:
            assert form == forms.get(claim.phase, form), claim.id
            assert form != "mean", claim.id
            assert (claim.phase == "run") == (form in ("end", "once")), claim.id


@pytest.mark.parametrize("name", CASES)
def test_the_worst_case_is_the_one_that_loops_find(name):
    """Measured, bound, margin, epoch and verdict, over all epochs of all seeds."""
    for claim in claims_of(CASES[name][1]):
        if claim.kind != "E":
            check_worst_case(runs(name), claim)


def check_worst_case(r, claim):
    row, case = r.report[claim.id], r.case
    by_seed = [[(b - m, m, b, k) for m, b, k in seed if b - m < inf] for seed in found(case, claim.id)]
    by_seed = [seed for seed in by_seed if seed]
    if not by_seed and claim.phase != "run":
        assert row.verdict == "not reached"
        assert isnan(row.measured)
        assert isnan(row.margin)
        return
    if not by_seed:
        assert row.bound == inf
        assert row.verdict == "holds"
        return
    worst = min(entry for seed in by_seed for entry in seed)
    assert close(row.margin, worst[0])
    ties = [entry for seed in by_seed for entry in seed if close(entry[0], worst[0])]
    assert any(close(row.measured, m) and close(row.bound, b) for _, m, b, _ in ties)
    tolerance = 1e-9 * case.H
    if claim.phase == "prefix":
        tolerance = 1e-8 * max(len(s.epochs) for s in case.seeds)
    failing = sum(min(seed)[0] < -tolerance for seed in by_seed)
    if claim.kind == "D":
        assert row.verdict == ("violated" if failing else "holds")
    else:
        n, delta = len(by_seed), min(case.delta, 1.0)
        tail = sum(comb(n, i) * delta**i * (1 - delta) ** (n - i) for i in range(failing, n + 1))
        assert row.verdict == ("violated" if tail < 1e-6 else "holds")
    if failing and claim.kind == "P":
        assert row.note == f"{failing} of {len(by_seed)} seeds fail"
    elif claim.phase == "run":
        assert row.note == ""
    else:
        assert row.note in {f"epoch {k}" if k else "last epoch" for _, _, _, k in ties}


@pytest.mark.parametrize("name", CASES)
def test_every_epoch_of_every_seed_is_measured_as_loops_do(name):
    """Not the worst case alone: the audit's k is each seed's own, and 0 for what comes after its last epoch."""
    r = runs(name)
    for id, log in r.logged.items():
        for i, seed in enumerate(found(r.case, id)):
            for measured, bound, k in seed:
                going = [j for j, s in enumerate(r.case.seeds) if len(s.epochs) >= k]  # those are looked at
                values = [part[going.index(i)] for part in log[k]]
                assert values == pytest.approx([measured, bound], rel=TOLERANCE, abs=TOLERANCE), (id, k)


@pytest.mark.parametrize("name", CASES)
def test_values_of_seeds_and_their_mean_are_those_that_loops_find(name):
    for claim in claims_of(CASES[name][1]):
        if claim.kind == "E":
            check_mean(runs(name), claim)


def check_mean(r, claim):
    row, expected = r.report[claim.id], found(r.case, claim.id)
    values, bounds = np.array([value for value, _ in expected]), {bound for _, bound in expected}
    measured, bound, *law = claim.measure(r.evidence)
    np.testing.assert_allclose(measured, values, rtol=TOLERANCE, atol=TOLERANCE)
    assert len(bounds) == 1
    assert close(float(bound), bounds.pop())
    assert close(row.bound, float(bound))
    if bound == inf:
        assert row.verdict == "not applicable"
        assert close(row.measured, values.mean())
        return
    n, means = len(values), np.ravel(values.mean(0))
    if law:
        low, high = law[0](1e-6 / means.size)
    else:
        error = sqrt(((values - values.mean()) ** 2).sum() / (n - 1) / n)
        low, high = -inf, bound + student.ppf(1 - 1e-6, n - 1) * error
    rooms = np.minimum(means - low, high - means)  # of several means, the one with the least room is shown
    assert any(close(row.measured, mean) for mean in means[rooms <= rooms.min() + TOLERANCE])
    assert row.verdict == ("holds" if rooms.min() >= -1e-9 * r.case.H else "violated")
    assert row.margin == pytest.approx(rooms.min() if claim.equality else bound - means[0], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_ladder(name):
    r = runs(name)
    c, ladder = r.case, r.report.ladder
    ends = [(s.epochs[: s.sound], s.following(s.sound)) for s in c.seeds]
    assert close(ladder.regret, np.mean([regret(c, s) for s in c.seeds]))
    assert close(ladder.epochs, c.H * np.mean([sum(c.gap(e) for e in epochs) for epochs, _ in ends]))
    if all(s.sound for s in c.seeds):
        assert close(ladder.certificate, c.H * np.mean([certificate(c, *end)[1] for end in ends]))
        assert close(ladder.lemma, c.H * np.mean([lemma_4_3(c, *end)[1] for end in ends]))
    assert close(ladder.explicit, explicit(c))
    assert close(ladder.optimum, c.T * c.optimum)


# ---- the runs are worth checking


@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_seeds_end_at_different_epochs_and_policies_move(setting):
    r = runs(f"moving-{setting}")
    assert len({len(s.epochs) for s in r.case.seeds}) >= 3
    assert {s.plays for s in r.case.seeds} != {r.case.T}
    for s in r.case.seeds:
        assert s.sound == len(s.epochs)
        assert abs(s.after.pi - s.epochs[0].pi).max() > 0.2
    assert r.report.holds


@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_sums_stop_at_the_first_invalid_epoch(setting):
    """Some seeds lapse at once, some later; each is followed up to its own epoch tau, and the report names it."""
    r = runs(f"lapsing-{setting}")
    sound = [s.sound for s in r.case.seeds]
    stops = [s.sound + 1 if s.sound < len(s.epochs) else 0 for s in r.case.seeds]
    assert r.report.invalid_at.tolist() == stops
    assert len(set(sound)) >= 3
    assert any(stops)
    assert max(sound) > 5
    np.testing.assert_array_equal(r.evidence.audit.totals.backups, sound)
    assert r.report["A15c"].holds


@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_the_conditional_claims_need_their_condition(setting):
    """Past the first invalid epoch, Lemma 4.2 does fail: stopping there is not idle."""
    r = runs(f"lapsing-{setting}")
    assert r.report["A1a"].holds
    assert r.report["A1"].measured > 0.01


def test_without_a_valid_epoch_conditional_claims_are_not_reached():
    for setting in ("tabular", "mixture"):
        report = runs(f"hopeless-{setting}").report
        assert report.invalid_at.tolist() == [1] * 6
        for claim in claims_of(setting):
            assert (report[claim.id].verdict == "not reached") == claim.conditional, claim.id
        assert [row.id for row in report.failed()] == ["S4", "A1"]


@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_the_optimum_is_that_of_the_linear_program(setting):
    """max <mu, r> over the Bellman flow constraints; its maximiser is the mu* of brute force."""
    c = runs(f"moving-{setting}").case
    flow = np.repeat(np.eye(c.X), c.A, axis=1) - c.gamma * c.P.reshape(c.X * c.A, c.X).T
    solution = linprog(-c.r.ravel(), A_eq=flow, b_eq=(1 - c.gamma) * c.nu0)
    assert close(-solution.fun, c.optimum)
    np.testing.assert_allclose(solution.x.reshape(c.X, c.A), c.mu_star, atol=1e-9)
    scene = runs(f"moving-{setting}").evidence.scene
    np.testing.assert_allclose(scene.mu_star, c.mu_star, atol=1e-9)
    assert close(scene.entropy, c.entropy)


def test_closed_forms_in_one_state():
    """X = 1: nu = 1, mu = pi, gap = max r - <pi, r>; KL(mu || mu') = H(pi || pi'), so Lemma A.1 has slack H - 1."""
    r = runs("one_place-tabular")
    c = r.case
    gaps = [max(c.r[0]) - e.pi[0] @ c.r[0] for s in c.seeds for e in s.epochs]
    assert [c.gap(e) for s in c.seeds for e in s.epochs] == pytest.approx(gaps)
    row = r.report["A10"]
    assert row.margin == pytest.approx((c.H - 1) * row.measured, abs=1e-12)
    assert r.report["A14"].measured == pytest.approx(0, abs=1e-12)  # nu* = nu


def test_one_action_leaves_nothing_to_decide():
    for setting in ("tabular", "mixture"):
        report = runs(f"one_action-{setting}").report
        assert report.holds
        assert report.ladder.regret == pytest.approx(0, abs=1e-12)
        for id in ("A9", "A10", "A11", "A12a", "A12b", "A16"):
            assert report[id].measured == pytest.approx(0, abs=1e-12)


def test_one_step():
    """T = 1: K = 1 always, so that its law has no spread; delta = 1, so that no claim of probability can fail."""
    for setting in ("tabular", "mixture"):
        report = runs(f"one_step-{setting}").report
        assert report.holds
        assert (report["S5"].measured, report["S5"].bound) == (0, 0)
        assert (report["S6a"].measured, report["S6a"].bound) == (1, 1)
    assert runs("one_step-tabular").report["T2"].verdict == "not reached"  # no pair is visited before epoch 1


@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_what_chance_is_granted_rests_on_exact_variances(setting):
    """Of the sum S of a function over an epoch, by its first two moments: m = f + gamma P m, and likewise for S^2."""
    r = runs(f"moving-{setting}")
    c, w = r.case, r.evidence.audit.walked

    def variance(e, f):
        chain = np.eye(c.X) - c.gamma * np.einsum("xa,xay->xy", e.pi, c.P)
        first = np.linalg.solve(chain, (e.pi * f).sum(-1))
        second = np.linalg.solve(chain, (e.pi * (f**2 + 2 * f * c.gamma * (c.P @ first))).sum(-1))
        return c.nu0 @ second - (c.nu0 @ first) ** 2

    for i, s in enumerate(c.seeds):
        assert close(w.variance[i], sum(variance(e, e.CB) for e in s.epochs))
        assert close(w.spread[i], sum(variance(e, e.CB - c.under(e.mu, e.CB)) for e in s.epochs))
        assert close(w.gap_squares[i] * c.gamma * c.H**2, sum(variance(e, c.gap(e) + 0 * e.CB) for e in s.epochs))
        assert close(w.largest[i], max(e.CB.max() for e in s.epochs))


# ---- what a report must not depend on


def same(report, other):
    assert [row.id for row in report.rows] == [row.id for row in other.rows]
    for row, twin in zip(report.rows, other.rows, strict=True):
        assert row.verdict == twin.verdict, row.id
        assert row.note == twin.note or abs(row.margin) <= TOLERANCE, (
            row.id
        )  # where rounding is worst, rounding decides
        for value, again in zip(row[4:7], twin[4:7], strict=True):
            assert value == again or close(value, again) or (isnan(value) and isnan(again)), row.id
    np.testing.assert_array_equal(report.invalid_at, other.invalid_at)
    assert report.ladder.labels == other.ladder.labels
    np.testing.assert_allclose(report.ladder[:-1], other.ladder[:-1], rtol=1e-9)  # all but the labels


@pytest.mark.parametrize("kind", ["moving", "lapsing"])
@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_groups_of_seeds_do_not_change_a_report(kind, setting, monkeypatch):
    """With a small cache every seed is run in a group of its own."""
    r = runs(f"{kind}-{setting}")
    monkeypatch.setattr(ravi.runtime.api, "CACHE", 1)
    same(verify(r.learner, r.case.mdp, r.case.T, len(r.case.seeds)), r.report)


@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_the_stretches_of_an_epoch_do_not_change_a_report(setting, monkeypatch):
    """With room for two steps most epochs come in pieces: visits, bad steps and padding are carried over."""
    r, empty = runs(f"moving-{setting}"), ravi.runtime.python.empty_path
    monkeypatch.setattr(ravi.runtime.python, "empty_path", lambda n, length: empty(n, 2))
    same(verify(r.learner, r.case.mdp, r.case.T, len(r.case.seeds)), r.report)


# ---- which learners, and which constants


def test_counts_on_a_mixture_are_judged_as_counts():
    """The claims about counts hold in any MDP, also in one that has features."""
    mdp = small("mixture")
    learner = ravi_ucb.tabular(mdp.problem, 30, beta=8.0, eta=0.4)
    report, c = verify(learner, mdp, 30, 4), case_of(mdp, learner, 30, range(4))
    assert [row.id for row in report.rows] == [claim.id for claim in claims_of("tabular")]
    assert report.holds
    for id in ("T3a", "T3b", "T1"):
        worst = min((b - m, m, b) for seed in found(c, id) for m, b, _ in seed)
        assert close(report[id].margin, worst[0])


def test_an_estimator_of_another_kind_is_judged_by_the_general_claims():
    """P known: no error, no bonus; Section 5 is not about it."""
    mdp = small("tabular")
    estimator = known(mdp)
    learner = ravi_ucb.generic(mdp.problem, estimator, multiple_of_width(1.0, estimator), 0.4)
    report = verify(learner, mdp, 60, 4)
    assert {row.id for row in report.rows} == {claim.id for claim in CLAIMS if claim.setting == "any"}
    assert report.holds
    assert (report["S4"].measured, report.ladder.explicit) == (0, inf)


@pytest.mark.parametrize(
    "options",
    [{"beta": 0.01}, {"beta": 1e6}, {"scale": 2.0}, {"scale": 0.5}, {"step_scale": 3.0}, {"initial_policy": SKEWED}],
    ids=str,
)
@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_explicit_bounds_are_for_the_papers_constants_only(setting, options):
    """Larger bonuses cost more than the bound allows for, smaller ones may be invalid; log A is for a uniform pi_0."""
    mdp = small(setting)
    report = verify(made(setting, mdp, 20, **options), mdp, 20, 3, only=["T5", "M14", "M15", "M16", "A20", "A20c"])
    assert report["T5" if setting == "tabular" else "M15"].verdict == "not applicable"
    assert report.ladder.explicit == inf
    assert report["M16"].bound == 1  # no gap is larger
    if setting == "mixture":  # Lemma 5.5 holds for every bonus up to the paper's
        larger = options.get("beta", 0) > 1 or options.get("scale", 0) > 1
        assert report["M14"].verdict == ("not applicable" if larger else "holds")


def test_a_bound_that_is_too_small_is_noticed():
    """Assumption 5.3 is held against the B that the learner was given."""
    mdp = small("mixture")
    report = verify(made("mixture", mdp, 20, bound=0.5), mdp, 20, 3, only=["M1"])
    assert [row.id for row in report.failed()] == ["M1a", "M1b"]
    assert report["M1a"].measured == pytest.approx(np.linalg.norm(mdp.parameter) - 0.5)


def test_a_given_delta_is_what_failures_cost():
    mdp = small("tabular")
    for delta in (0.5, 0.01):
        report = verify(ravi_ucb.tabular(mdp.problem, 40, delta=delta), mdp, 40, 3, only=["A20", "A20c"])
        rest = mdp.discount * mdp.horizon**3 * sqrt(np.log(2) / 80)
        assert report["A20c"].bound - report["A20"].bound == pytest.approx(rest + delta * 40)


# ---- nothing is lost on the way to a verdict


def blank():
    return Worst(np.full((1, 1), inf), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)))


@pytest.mark.parametrize("bad", [nan, -inf])
@pytest.mark.parametrize("order", [1, -1])
def test_a_nan_or_an_infinite_violation_stays_the_worst(bad, order):
    worst = blank()
    for k, margin in enumerate([0.5, bad, 0.3, 2.0][::order], start=1):
        note(worst, 0, np.array([True]), k, np.zeros(1), np.array([margin]))
    assert worst.epoch[0, 0] == (2 if order == 1 else 3)
    assert not worst.margin[0, 0] >= 0


@pytest.mark.parametrize("value", [nan, inf])
@pytest.mark.parametrize("phase", ["epoch", "run"])
def test_a_claim_whose_measure_breaks_down_is_violated(monkeypatch, value, phase):
    def measure(seen):
        n = len(seen.at.V) if phase == "epoch" else 3
        return np.full(n, value), np.zeros(n)

    broken = Claim("X1", "never true", "nowhere", "D", phase, "any", False, False, measure)
    monkeypatch.setattr("ravi.verify.CLAIMS", (broken,))
    report = verify("ravi-ucb", small("tabular"), 10, 3)
    assert [row.verdict for row in report.rows] == ["violated"]
    assert report.status == 1


def test_a_mean_that_is_not_a_number_is_violated():
    r = runs("moving-tabular")
    claim = Claim("X2", "", "", "E", "run", "any", False, False, lambda e: None)
    for equality in (False, True):
        row = judged(claim._replace(equality=equality), r.evidence.scene, r.evidence, np.array([nan, 1, 1]), 0.0)
        assert row.verdict == "violated"


def test_the_tolerance_of_a_sum_grows_with_the_epochs_that_it_is_over():
    """C2 sums over all epochs, valid or not; rounding must not be held against it where the first is invalid."""
    r = runs("hopeless-tabular")
    claim = next(claim for claim in CLAIMS if claim.id == "C2")
    K = max(len(s.epochs) for s in r.case.seeds)
    inside, outside = (np.full(6, share * 1e-8 * K) for share in (0.9, 1.1))
    assert judged(claim, r.evidence.scene, r.evidence, inside, np.zeros(6)).holds
    assert not judged(claim, r.evidence.scene, r.evidence, outside, np.zeros(6)).holds
