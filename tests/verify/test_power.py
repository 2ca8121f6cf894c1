"""The power of `verify`: bonuses that are too small are found, and chance alone violates nothing; and its report.

Statistical tests here have fixed seeds; where they count how often a rule rejects, they allow for four standard
deviations above the level that the rule promises.
"""

import json
import subprocess
import sys
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from ravi import ids
from ravi.mdps import riverswim
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.theory import search, tabular
from ravi.validation import InputError
from ravi.verify import CLAIMS, judge, verify
from ravi.verify.chance import Law, Martingale, bernstein, chernoff, student
from ravi.verify.claim import Claim
from ravi.verify.judge import Worst, in_mean, in_rows
from ravi.verify.record import run_recorded
from ravi.verify.setting import setting_of
from tests.support.command import typed
from tests.support.html import Read
from tests.verify.mutations import broken, on_arrays, sound
from tests.verify.mutations.paper import (
    MIXTURE,
    NAMES,
    RING,
    TABULAR,
    backed_up,
    biased,
    by_hand,
    mutation,
    scaled,
)

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verify.md"


# ---- sound learners


def test_a_sound_learner_with_another_first_policy_violates_nothing():
    assert verify(biased(TABULAR), TABULAR.mdp, TABULAR.steps, TABULAR.seeds).holds


@pytest.mark.parametrize("setting", [TABULAR, MIXTURE], ids=NAMES.get)
def test_the_settings_are_ones_where_mistakes_show(setting):
    """Bonuses are valid all along, and nothing but the theorems' constants is out of reach."""
    found = sound(setting)
    assert (found.invalid_at == 0).all()
    unmeasured = {row.id for row in found.rows if row.verdict not in ("holds", "violated")}
    assert unmeasured <= {"A20", "A20c", "T5", "M15"}


def test_values_that_are_no_numbers_are_refused_before_they_are_played(monkeypatch):
    """The policy that they make is none, and the run says so: no claim has to."""
    on_arrays(monkeypatch)
    backed_up(monkeypatch, lambda r, CB, gamma, PV, H: np.where(CB > 0, np.nan, r))
    with pytest.raises(InputError, match=r"ravi-ucb planned what is no policy: seed 0, state 0: .* sums to nan"):
        verify(TABULAR.build(), TABULAR.mdp, TABULAR.steps, TABULAR.seeds)


def test_the_walk_by_hand_is_the_walk(monkeypatch):
    """What its mistakes are put into is sound: the same bits as the compiled walk."""
    one = run(TABULAR.build(), TABULAR.mdp, 300, 3, record=["stream"], pad=True)
    by_hand(monkeypatch)
    other = run(TABULAR.build(), TABULAR.mdp, 300, 3, record=["stream"], pad=True)
    for name in ("stream_state", "stream_action", "stream_successor", "stream_reset"):
        assert (one.results[name] == other.results[name]).all()
    assert (one.regret == other.regret).all()


# ---- bonuses that are too small


@pytest.mark.parametrize("small", [m for m in mutation.all if "scaled by" in m.says], ids=lambda m: m.says)
def test_with_small_bonuses_s4_and_lemma_4_2_fail_and_nothing_else(small):
    """Claims that are conditional on valid bonuses hold up to the first invalid epoch."""
    found = broken(small)
    assert {row.id for row in found.failed()} == {"S4", "A1"}
    lost = found.invalid_at[found.invalid_at > 0]
    assert len(lost) >= 3
    assert f"Bonuses were invalid in {len(lost)} seeds, first in epoch {lost.min()}." in found.summary()
    assert f"2 of {len(found.rows) - unmeasured(found)} claims are violated: S4, A1." in found.summary()
    assert "seeds fail" in found["S4"].note
    assert found["A1"].measured > 0
    for claim in CLAIMS:
        if claim.conditional and claim.id in {row.id for row in found.rows}:
            assert found[claim.id].verdict in ("holds", "not reached")


def unmeasured(found):
    return sum(row.verdict not in ("holds", "violated") for row in found.rows)


def test_a_tenth_of_the_tabular_beta_is_still_valid_as_it_should_be():
    """Lemma 5.1 is loose: 0.28 beta is proven valid (T1s), and a tenth fails nowhere here: S4 does not cry wolf."""
    for setting in (TABULAR, RING):
        found = verify("ravi-ucb,scale=0.1", setting.mdp, 400, 6, only=["S4", "A1"])
        assert found.holds


# ---- the report


@cache
def small():
    return verify("ravi-ucb", "riverswim/3,discount=0.7", 300, 4)


def test_the_report_filters_and_sums_up():
    found = small()
    assert found.holds
    assert found.status == 0
    assert found.failed() == []
    assert found["A15"].id == "A15"
    assert found["A15"].where == "Lemma 4.3"
    assert found["A15"].measured <= found["A15"].bound
    assert found.summary() == f"All {len(found.rows)} claims hold (0 not measured)."
    with pytest.raises(KeyError):
        found["A99"]
    assert [row.id for row in found.rows] == [
        claim.id for claim in CLAIMS if claim.about in ("any", "tabular")
    ]  # in the order of the paper
    for row in found.rows:
        assert row.id in str(found)
        assert row.statement in str(found)


def test_the_text_can_be_of_violated_claims_only():
    found = verify(scaled(RING, 0.01), RING.mdp, RING.steps, RING.seeds, only=["S3", "S4"])
    assert "! S4" in found.text()
    assert "S3 " in found.text()
    assert "S3 " not in found.text(failed=True)


def test_the_json_has_numbers_and_nothing_that_json_has_no_word_for():
    for found in (small(), sound(TABULAR)):  # A20 is not applicable in the second: its bound is infinite
        data = json.loads(json.dumps(found.json(), allow_nan=False))
        assert [claim["id"] for claim in data["claims"]] == [row.id for row in found.rows]
        assert data["holds"] is True
        assert data["seeds"] == found.run.seeds
        assert data["invalid_at"] == [0] * len(found.run.seeds)
        assert data["ladder"]["regret"] == pytest.approx(found.run.regret.mean())
    assert {c["id"] for c in sound(TABULAR).json()["claims"] if c["bound"] is None} == {"A20", "A20c", "T5"}


def test_the_page_is_one_and_holds_every_claim():
    found = small()
    page = Read(text := found.html())
    assert not any({"src", "href"} & attrs.keys() for _, attrs, _ in page.tags)  # nothing is loaded from elsewhere
    assert "http" not in text
    assert "@import" not in text
    _, *rows = page.table("claim", "verdict")
    assert [row[0] for row in rows] == [row.id for row in found.rows]
    assert json.loads(page.scripts[-1]) == json.loads(json.dumps(found.json()))


def test_the_command_exits_with_the_verdict(tmp_path):
    def words(learner, name):
        options = ["--steps", "500", "--seeds", "4", "--json", str(tmp_path / name)]
        return ["verify", "riverswim/3,discount=0.7", learner, *options]

    good = typed(*words("ravi-ucb", "good.json"))
    assert good.returncode == 0, good.stderr
    assert good.stderr == ""
    assert "claims hold" in good.stdout
    assert json.loads((tmp_path / "good.json").read_text())["holds"] is True
    command = [sys.executable, "-m", "ravi.cli", *words("ravi-ucb,scale=0.001", "bad.json")]
    bad = subprocess.run(command, capture_output=True, text=True)
    assert bad.returncode == 1, bad.stderr
    assert "claims are violated: S4, A1" in bad.stdout
    found = json.loads((tmp_path / "bad.json").read_text())
    assert found["holds"] is False
    assert [claim["id"] for claim in found["claims"] if claim["verdict"] == "violated"] == ["S4", "A1"]


def test_nothing_measured_is_neither_a_success_nor_a_violation():
    """A claim in expectation needs three seeds."""
    options = ["riverswim/3,discount=0.7", "ravi-ucb", "--steps", "20", "--seeds", "2", "--only"]
    none = typed("verify", *options, "A20")
    assert none.returncode == 2
    assert "Nothing was measured: 2 claims not measured." in none.stdout
    assert "hold" not in none.stdout
    some = typed("verify", *options, "A20,A1")
    assert some.returncode == 0
    assert "claims hold (2 not measured)" in some.stdout


# ---- false alarms

LEVEL = 0.01
TABLES = 4000
SEEDS = (4, 8, 16)


def allowed(level, tables):
    """Four standard deviations above the level."""
    return level + 4 * sqrt(level * (1 - level) / tables)


@cache
def null_setting(delta):
    mdp = riverswim(3, 0.7)
    return setting_of(ids.learner("ravi-ucb", mdp, 100), mdp, 100, solve(mdp)).stating(delta=delta)


def rows_of(kind, values, bound, chance=(), *, equality=False, delta=0.05):
    """Verdicts on tables of null data: one row of `values` each."""
    claim = Claim("X", "", "", kind, "run", "any", False, equality, lambda: None)
    setting = null_setting(delta)
    if kind == "P":
        return [in_rows(claim, setting, [[Worst(bound - value, value, bound)] for value in row]) for row in values]
    return [in_mean(claim, setting, [(value, bound, *chance) for value in row]) for row in values]


def frequency(rows):
    return np.mean([row.verdict == "violated" for row in rows])


@pytest.mark.parametrize("n", SEEDS)
@pytest.mark.parametrize("delta", [0.002, 0.05])
def test_claims_of_probability_are_rejected_at_their_level(n, delta, monkeypatch):
    monkeypatch.setattr(judge, "ALARM", LEVEL)
    fails = np.random.default_rng(n).random((TABLES, n)) < delta
    rows = rows_of("P", fails - 0.5, 0.0, delta=delta)
    assert frequency(rows) <= allowed(LEVEL, TABLES)
    least = next(k for k in range(1, n + 1) if binom.sf(k - 1, n, delta) < LEVEL)
    assert [row.verdict == "violated" for row in rows] == (fails.sum(1) >= least).tolist()


def test_at_the_level_of_the_table_few_seeds_must_fail():
    """delta = 1 / T: two of three seeds at T = 2,000 are enough; one never is below T = 10^6 / n."""
    assert binom.sf(1, 3, 1 / 2000) < judge.ALARM
    assert binom.sf(0, 16, 1 / 100_000) > judge.ALARM


LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "heavy": lambda rng, size: rng.standard_t(3, size=size),
    "skewed to the right": lambda rng, size: rng.exponential(size=size) - 1,
}


@pytest.mark.parametrize("n", SEEDS)
@pytest.mark.parametrize("law", LAWS)
def test_inequalities_are_rejected_at_their_level(n, law, monkeypatch):
    """Student's t, where the mean is at its bound: the worst case."""
    monkeypatch.setattr(judge, "ALARM", LEVEL)
    values = LAWS[law](np.random.default_rng(n), (TABLES, n))
    assert frequency(rows_of("E", values, 0.0)) <= allowed(LEVEL, TABLES)


def test_students_t_is_too_bold_for_laws_skewed_to_the_left():
    """Which no claim has that is judged by it and comes near its bound."""
    values = 1 - np.random.default_rng(0).exponential(size=(TABLES, 8))
    assert np.mean(values.mean(1) > student_room(values, LEVEL)) > 2 * LEVEL


def padding(n):
    """T+ - T at gamma = 0.7, as S6b has it."""
    values = np.arange(200.0)
    return values, 0.3 * 0.7**values


def squares(n):
    """(K - E K)^2 at T = 500, gamma = 0.7, as S5 has it."""
    k = np.arange(500.0)
    return (k - 499 * 0.3) ** 2, binom.pmf(k, 499, 0.3)


@pytest.mark.parametrize("n", SEEDS)
@pytest.mark.parametrize("law", [padding, squares])
def test_laws_that_are_known_are_rejected_at_their_level_and_students_t_would_not_be(n, law, monkeypatch):
    """At the level of the table, 1e-6, Student's t would raise false alarms a hundred times too often and more."""
    values, probabilities = law(n)
    rng = np.random.default_rng(n)
    draws = rng.choice(values, p=probabilities / probabilities.sum(), size=(TABLES, n))
    mean = np.array(values @ probabilities)
    monkeypatch.setattr(judge, "ALARM", LEVEL)
    rows = rows_of("E", draws[:500], mean, [Law(values, probabilities)], equality=True)
    assert frequency(rows) <= allowed(LEVEL, 500)
    low, high = chernoff(values, probabilities, n)(LEVEL)
    assert np.mean((draws.mean(1) < low) | (draws.mean(1) > high)) <= allowed(LEVEL, TABLES)
    many = rng.choice(values, p=probabilities / probabilities.sum(), size=(200_000, n))
    low, high = chernoff(values, probabilities, n)(1e-6)
    assert not ((many.mean(1) < low) | (many.mean(1) > high)).any()
    by_student = np.abs(many.mean(1) - mean) > student_room(many, 1e-6 / 2)
    assert by_student.mean() > 1e-4


def student_room(values, level):
    from scipy.stats import t

    n = values.shape[1]
    return t.isf(level, n - 1) * values.std(1, ddof=1) / sqrt(n) + 1e-12


def test_intervals_are_no_wider_than_twice_the_normal_ones():
    """Guarantees cost little: at 1e-6 and n = 16, 4.9 standard errors would be the least."""
    n, values, probabilities = 16, *padding(16)
    low, high = chernoff(values, probabilities, n)(1e-6)
    error = sqrt(0.7 / 0.3**2 / n)
    assert 4.9 * error < high - 7 / 3 < 2 * 4.9 * error
    assert 0 < low < 7 / 3  # P(all are zero) = 4e-9
    _, high = bernstein(np.array(1e6), 1.0, 1)(1e-6)
    assert 4.9 * 1e3 < high < 2 * 4.9 * 1e3


@pytest.mark.parametrize("n", SEEDS)
def test_martingales_are_rejected_at_their_level(n, monkeypatch):
    """Epochs of geometric length times a weight that the past decides, as A17 and A19 have them."""
    rng, H, K = np.random.default_rng(n), 5.0, 30
    S, v, f = np.zeros((TABLES, n)), np.zeros((TABLES, n)), np.ones((TABLES, n))
    for _ in range(K):
        L = rng.geometric(1 / H, size=(TABLES, n))
        S += f * (L - H)
        v += f**2 * H * (H - 1)
        f = np.where(L > H, 0.2, 1.0)  # after a long epoch, less is at stake
    for level in (LEVEL, 0.2):
        low, high = bernstein(v.sum(1), H, n)(level)
        assert np.mean((S.mean(1) < low) | (S.mean(1) > high)) <= allowed(level, TABLES)
        _, high = bernstein(v.sum(1), H, n, upper=True)(level)
        assert np.mean(S.mean(1) > high) <= allowed(level, TABLES)


def test_several_draws_at_once_share_the_level(monkeypatch):
    """As S9 has them: a table of cells is rejected when its worst cell is, at the level divided by their number."""
    rng, n, cells = np.random.default_rng(0), 4, 12
    p = rng.dirichlet(np.ones(cells))
    counts = rng.multinomial(50, p, size=(1000, n)).astype(float)
    monkeypatch.setattr(judge, "ALARM", 0.2)
    chance = [Martingale(50 * p * (1 - p), 1 / 3)]
    assert frequency(rows_of("E", counts - 50 * p, 0.0, chance, equality=True)) <= allowed(0.2, 1000)
    assert frequency(rows_of("E", counts[:20, :, ::-1] - 50 * p, 0.0, chance, equality=True)) == 1


def test_what_cannot_happen_by_chance_is_rejected_at_any_level():
    low, high = bernstein(np.zeros(3), 1 / 3, 4)(1e-6)
    assert (low == 0).all()
    assert (high == 0).all()
    low, high = student(np.full(4, 2.0), 1.0)(1e-6)
    assert high == 1.0


def test_tables_of_sound_runs_raise_no_more_alarms_than_promised(monkeypatch):
    """1,200 seeds of a short run as 300 tables of four: no statistical claim is rejected more often than its level."""
    level, n, seeds, T = 0.05, 4, 1200, 60
    monkeypatch.setattr(judge, "ALARM", level)
    mdp = ids.mdp("riverswim/3,discount=0.7")
    learner = ids.learner("ravi-ucb", mdp, T)
    setting = setting_of(learner, mdp, T, solve(mdp, tol=1e-12))
    claims = [c for c in CLAIMS if c.kind == "E" and c.about in ("any", "tabular")]
    assert len(claims) > 12
    found = [[claim.measure(s) for claim in claims] for s in run_recorded(setting, learner, seeds, False)[1]]
    for claim, values in zip(claims, zip(*found, strict=True), strict=True):
        rows = [in_mean(claim, setting, values[i : i + n]) for i in range(0, seeds, n)]
        assert frequency(rows) <= allowed(level, len(rows)), claim.id


# ---- the page


def test_the_claims_that_the_docs_name_and_count():
    text = PAGE.read_text()
    about = {s: [c for c in CLAIMS if c.about in ("any", s)] for s in ("tabular", "mixture")}
    counts = " ".join(text.split())  # whatever the line breaks
    assert f"{len(about['tabular'])} claims for a tabular learner, {len(about['mixture'])} for a linear" in counts
    assert {sum(c.kind != "D" for c in claims) for claims in about.values()} == {22}
    assert "22 statistical claims" in counts
    assert ", ".join(c.id for c in CLAIMS if c.conditional).replace(", A15c", " and A15c") in counts
    for claim in CLAIMS:
        assert claim.id in text


def test_the_bounds_of_the_showcase_are_the_theorys():
    text = PAGE.read_text()
    H, T = ids.mdp("garnet/2,2,2,discount=0.8").horizon, 100_000
    for bound in (tabular.corrected, tabular.sharp):
        assert f"{bound(H, 2, 2, T).total:,.0f}" in text
        assert f"{search.first_useful(lambda t, bound=bound: bound(H, 2, 2, t)):,}" in text
    rho = solve(ids.mdp("garnet/2,2,2,discount=0.8")).optimum
    assert f"{rho * T:,.0f}" in text
    assert f"{search.smallest_steps(lambda t: tabular.sharp(H, 2, 2, t), rho):,}" in text
