"""Exponents: exact laws are recovered, noisy ones are covered, and the theory's stand beside them with their source."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import ravi
from ravi import ids
from ravi.statistics import THEORY, growth, rates, scaling
from tests.support.pools import in_this_process

TIMES = np.arange(10, 2001, 10.0)


@pytest.mark.parametrize("power", [1.0, 0.5, 2 / 3, 0.0])
def test_power_laws_are_recovered_exactly(power):
    curves = np.arange(1, 9)[:, None] * TIMES**power
    found = growth(TIMES, curves)
    assert found[:3] == pytest.approx((power,) * 3, abs=1e-9)  # all seeds agree, whatever their constants
    assert found.points == np.sum(TIMES >= 1000)
    sizes = [2, 3, 5, 9]
    for paired in (True, False):
        assert scaling(sizes, [7 * np.ones(5) * s**power for s in sizes], paired=paired)[:3] == pytest.approx(
            (power,) * 3
        )


def test_only_the_last_part_is_fitted():
    curve = np.where(TIMES < 1000, TIMES, 1000 * np.sqrt(TIMES / 1000))  # linear, then a square root
    curves = np.tile(curve, (5, 1))
    assert growth(TIMES, curves).exponent == pytest.approx(0.5)
    assert 0.5 < growth(TIMES, curves, share=1.0).exponent < 1
    assert growth(TIMES, curves, share=0.1).points == np.sum(TIMES >= 1800)


@pytest.mark.parametrize("n", [8, 16])
def test_the_interval_of_growth_covers(n):
    """Seeds with exponents of their own about 0.5: 500 data sets; four standard errors are 0.039; the floor is 0.93."""
    rng = np.random.Generator(np.random.PCG64(n))
    t = np.linspace(1, 100, 40)
    late, hits = t[t >= 50], 0
    mean = np.exp(0.5 * 0.1**2 + 0.5 * (0.05 * np.log(late)) ** 2)  # of the noise, divided out
    for _ in range(500):
        curves = (
            np.sqrt(late) / mean * np.exp(0.1 * rng.normal(size=(n, 1)) + 0.05 * rng.normal(size=(n, 1)) * np.log(late))
        )
        found = growth(late, curves, share=1.0, resamples=400)
        hits += found.low <= 0.5 <= found.high
    assert hits / 500 >= 0.93 - 0.039


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_of_scaling_covers(paired):
    """Lognormal regret at four sizes, 12 seeds, common luck where paired: 500 data sets, as above."""
    rng = np.random.Generator(np.random.PCG64(1))
    sizes, hits, widths = np.array([2.0, 4, 8, 16]), 0, []
    for _ in range(500):
        luck = rng.normal(size=(12, 1)) if paired else 0.0
        values = sizes**1.5 * np.exp(0.4 * luck + 0.4 * rng.normal(size=(12, 4)))
        found = scaling(sizes, list(values.T), paired=paired, resamples=400)
        hits += found.low <= 1.5 <= found.high
        widths.append(found.high - found.low)
    assert 0.93 - 0.039 <= hits / 500 < 0.99
    assert np.median(widths) < 0.8


def test_sizes_with_seeds_of_their_own_have_a_degree_of_freedom_less_each():
    """Three seeds at one size and four at another: 3 + 4 - 2 = 5; the slope is a difference of log means."""
    x, y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 9.0, 4.0])
    found = scaling([2, 8], [x, y], level=0.9, paired=False)
    error = np.sqrt(x.var(ddof=1) / 3 / x.mean() ** 2 + y.var(ddof=1) / 4 / y.mean() ** 2) / np.log(4)
    assert found.exponent == pytest.approx(np.log(y.mean() / x.mean()) / np.log(4))
    assert found.high - found.exponent == pytest.approx(stats.t.ppf(0.95, 5) * error)


def test_the_theory_is_that_of_the_theorems():
    ravi_ucb, mixture = THEORY["ravi-ucb"], THEORY["ravi-ucb/mixture"]
    assert ravi_ucb["T"].exponent == mixture["T"].exponent == 0.5
    assert (ravi_ucb["X"].exponent, ravi_ucb["A"].exponent, ravi_ucb["d"].exponent) == (1, 0.5, 0)
    assert ravi_ucb["H"].terms == (1, 2)  # X H sqrt(A T) + H^2 sqrt(T ln A)
    assert mixture["H"].terms == (1.5, 0.5, 2)  # d H^1.5 sqrt(T) + B sqrt(d H T) + H^2 sqrt(T ln A)
    assert mixture["d"].exponent == 1
    assert THEORY["ravi-kl/mixture"]["X"].terms == (0, 1)  # d H sqrt(T) + H X A
    for name, exponents in THEORY.items():
        assert name in ids.LEARNERS
        for exponent in exponents.values():
            assert exponent.exponent == max(exponent.terms)
            assert exponent.source


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    uniform = ["uniform"]
    river = {"id": "riverswim", "options": {"n": [4, 6], "discount": 0.9}}
    garnets = {
        "id": "garnet",
        "options": {"states": [4, 8], "actions": 2, "branching": 2, "seed": [0, 1], "discount": 0.9},
    }
    sections = [
        {"name": "steps", "steps": [100, 200, 400], "mdps": ["riverswim/4,discount=0.9"], "learners": uniform},
        {"name": "horizon", "mdps": [{"id": "riverswim/4", "options": {"discount": [0.8, 0.9]}}], "learners": uniform},
        {"name": "cube", "mdps": [{"id": "hypercube", "options": {"dimension": [2, 3]}}], "learners": uniform},
        {"name": "states", "mdps": [river, garnets], "learners": uniform},
        {"name": "nothing", "mdps": ["riverswim/4"], "learners": uniform},
    ]
    suite = {"name": "sizes", "steps": 100, "seeds": 2, "columns": ["given"], "sections": sections}
    with in_this_process():
        return ravi.run_suite(suite, tmp_path_factory.mktemp("sizes") / "out", workers=1)


def test_rates_find_what_each_section_varies(folder):
    rows = rates(folder)
    assert [(row.section, row.mdp, row.quantity, row.along, row.sizes) for row in rows] == [
        ("steps", "riverswim", "T", (), (100, 200, 400)),
        ("horizon", "riverswim", "H", (), (5, 10)),
        ("cube", "hypercube", "d", ("A",), (2, 3)),
        ("cube", "hypercube", "A", ("d",), (2, 4)),
        ("states", "riverswim", "X", (), (4, 6)),
        ("states", "garnet", "X", (), (4, 8)),
    ]
    first = rows[0]
    assert first.rate[:3] == pytest.approx((1, 1, 1))  # the uniform policy's regret is gap T
    assert first.theory == THEORY["uniform"]["T"]
    assert first.fixed == {"H": 10, "d": 0, "X": 4, "A": 2}
    assert first.paired
    assert first.seeds == 2
    assert rows[1].theory is None


@pytest.mark.usefixtures("in_this_process")
def test_lines_without_regret_beyond_its_error_have_no_rate(tmp_path):
    """The optimal policy's regret is rounding: no exponent, and the other lines have theirs."""
    section = {"name": "steps", "steps": [100, 200], "mdps": ["riverswim/4"], "learners": ["optimum", "uniform"]}
    suite = {"name": "none", "seeds": 2, "columns": ["given"], "sections": [section]}
    found = ravi.run_suite(suite, tmp_path / "out", workers=1)
    optimal, uniform = rates(found)
    assert (optimal.rate, optimal.learner) == (None, "optimum")
    assert optimal.why == "no regret beyond its certified error at T = 100"
    assert uniform.rate.exponent == pytest.approx(1)
    assert uniform.why == ""


def test_mdps_of_one_size_without_a_common_seed_have_no_rate_and_others_keep_theirs(folder):
    partial = ravi.results(folder.folder)
    first, second = ids_of(folder, 8)
    kept = [(row["mdp"], row["seed"]) not in {(first, 0), (second, 1)} for row in partial.runs.to_pylist()]
    partial.runs = partial.runs.filter(pa.array(kept))
    *others, garnet = rates(partial)
    assert (garnet.rate, garnet.why, garnet.seeds) == (None, "no common seed at X = 8", 0)
    assert all(row.rate is not None and not row.why for row in others)


def test_mdps_of_one_size_are_averaged(folder):
    garnet = rates(folder)[-1]
    means = {
        states: np.mean([folder.regret(section="states", mdp=mdp)[1].mean() for mdp in ids_of(folder, states)])
        for states in (4, 8)
    }
    assert garnet.rate.exponent == pytest.approx(np.log(means[8] / means[4]) / np.log(2))


def ids_of(folder, states):
    rows = folder.sql(f"select distinct mdp from results where mdp like 'garnet%' and states = {states}").to_pylist()
    assert len(rows) == 2
    return [row["mdp"] for row in rows]


def test_one_seed_few_seeds_and_zeros_have_the_ends_that_they_can():
    assert growth(TIMES, np.sqrt(TIMES)[None])[:3] == pytest.approx((0.5, -np.inf, np.inf))
    for values in ([[1.0, 1.1, 0.9], [2.0, 2.2, 2.1]], [[0.0] * 9 + [1.0], np.ones(10)]):
        found = scaling([1, 2], values)
        assert -np.inf < found.low < found.exponent < found.high < np.inf
