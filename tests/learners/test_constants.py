"""Constants that learners derive are those of their theorems, by formulas that are written out here."""

from math import ceil, exp, log, sqrt

import numpy as np
import pytest

from ravi import ids
from ravi.learners.linear.lsvi import block_length
from ravi.learners.pac.model_based import log_subsets
from ravi.learners.ucrl import ucrl
from ravi.planning.evaluation import effective_horizon
from tests.literal import tabular

T = 10_000
COUNTED, RIVER, LINEAR, LONG = "garnet/6,2,3,discount=0.9", "riverswim/6", "linear/6,3,3,discount=0.8", "riverswim/3"
X, A, H, L = 6, 2, 10.0, log(T**2)  # of COUNTED, with ln(T / delta)
RMAX = 2 * (X * log(2) + log(X * A * T)) * H**4 / (0.1 * H) ** 2
U = log(40 * 12 * T**3 * log(T) ** 2 / (0.1 * 0.1**2))
K = 0.1 * T + 0.9  # epochs
E = 1 + 3 / log(2) * log(1 + T / 3)  # phases of three dimensions
MIX, WINDOW = 1 / log(1 / 0.8), 2 * log(T) / log(1 / 0.8)
EPS1, M = tabular.delayed_q_samples(6, 2, 0.95, 0.003, 1 / T)
ROWS = [
    ("r-max", COUNTED, {"m": ceil(RMAX)}),
    ("r-max,scale=0.1", COUNTED, {"m": ceil(RMAX / 100)}),
    ("r-max,accuracy=0.2", COUNTED, {"m": ceil(RMAX / 4)}),
    ("mbie-eb", COUNTED, {"beta": H * sqrt(log(2 * X * A * T * T) / 2)}),
    ("mbie,delta=0.1,m=50", COUNTED, {"radius": sqrt(2 * (log(2**X - 2) + log(2 * X * A * 50 / 0.1)))}),
    ("mbie", COUNTED, {"radius": sqrt(2 * (log(2**X - 2) + log(2 * X * A * T * T)))}),
    ("mbie", "one-state", {"radius": 0}),
    ("ucbvi-gamma,delta=0.1", COUNTED, {"U": U, "beta": 144 * U**5}),
    ("delayed-q,accuracy=0.003", RIVER, {"eps1": EPS1, "m": M}),
    ("ucb-q,accuracy=0.003", RIVER, {"H_q": tabular.ucb_q_constants(0.95, 0.003)}),
    ("optimistic-q/average,span=7", RIVER, {"horizon": (T / (12 * log(4 * T**2))) ** (1 / 3)}),
    ("optimistic-q/average,span=0.01", RIVER, {"horizon": max(2, sqrt(0.01 * T / 12))}),
    ("ucb-q", RIVER, {"H_q": tabular.ucb_q_constants(0.95, 0.1)}),
    ("politex", "garnet/5,3,2", {"phase": 5, "phases": 100, "eta": 0.05 * sqrt(8 * log(3) / 100)}),
    ("npg", COUNTED, {"eta": H * 0.1**2 * log(A), "beta": 8 * H * sqrt(X * log(X * A * T * T))}),
    ("npg,scale=0.1,step_scale=7", COUNTED,
     {"eta": 7 * H * 0.1**2 * log(A), "beta": 0.8 * H * sqrt(X * log(X * A * T * T))}),
    ("md-mpi", COUNTED, {"eta": sqrt(2 * log(A) / (H**2 * T)), "beta": 8 * H * sqrt(X * log(X * A * T * T))}),
    ("mdp-e,step_scale=7", COUNTED, {"eta": 7 * sqrt(2 * log(A) / K) / H}),
    ("o-reps,step_scale=7", COUNTED, {"eta": 7 * sqrt(2 * log(X * A) / K)}),
    ("oppo,step_scale=7,truncation=0.1", "ensemble/3,6,3,2,discount=0.9",
     {"alpha": 7 * sqrt(2 * log(3) / (H**2 * K)), "stages": ceil(log(H / 0.1) / log(1 / 0.9))}),
    ("mdp-exp2", LINEAR, {"phase": ceil(16 * 3 * log(3 * T)), "eta": min(1 / sqrt(T * MIX), 1 / (72 * WINDOW))}),
    ("mdp-exp2,coverage=0.9,step_scale=2", LINEAR,
     {"phase": ceil(16 * log(3 * T) / 0.9), "eta": 2 * min(1 / sqrt(T * MIX), 0.9 / (24 * WINDOW))}),
    ("rmax-ravi-ucb,scale=0.5,step_scale=3,threshold=0.25", LINEAR,
     {"beta": 0.5 * 1.5 * 5 * 3 * sqrt(log(6 * T) + log(T)), "phases": E, "threshold": 0.25, "ascension": "hard",
      "eta": 3 * sqrt(2 * E * log(3) / T) / (1.5 * 5), "delta": 1 / T}),
    ("ravi-ucb/linear,scale=0.5", LINEAR, {"beta": 7.5 * sqrt(log(6) + L), "eta": sqrt(2 * log(3) / T) / 5}),
    ("fixed-point-lsvi,scale=0.5", LINEAR,
     {"alpha": 0.5 * (5 + 1) * 27 * sqrt(log(6 * 27) + L), "tolerance": 1 / T,
      "rounds": ceil(log(5 * T) / log(1 / 0.8))}),
    ("fopo,scale=0.5,span=2", LINEAR,
     {"beta": 0.5 * 20 * 4 * 3 * sqrt(L), "norm_bound": 4 * sqrt(3), "search": "heuristic"}),
    ("fopo", LONG, {"search": "exact", "span": 20}),
    ("lsvi-ucb", RIVER, {"beta": 12 * 20 * sqrt(L + log(24)), "stages": 149}),
    ("gamma-lscvi-ucb", RIVER, {"beta": 12 * 20 * sqrt(L + log(12))}),
    ("gamma-lscvi-ucb,span=3", RIVER, {"beta": 6 * 12 * sqrt(L + log(12))}),
    ("rlsvi", RIVER, {"sigma": 20 * sqrt(12)}),
    ("olsvi-fh", RIVER, {"stages": 12, "beta": 40 * 12 * (1 - 0.95**12) * 20 * sqrt(L)}),
]  # fmt: skip


@pytest.mark.parametrize(("learner", "mdp", "expected"), ROWS, ids=[f"{row[0]} on {row[1]}" for row in ROWS])
def test_constants_are_those_of_the_theorem(learner, mdp, expected):
    settings = ids.learner(learner, ids.mdp(mdp), T).settings
    for name, value in expected.items():
        assert settings[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12)), name


@pytest.mark.parametrize(
    ("learner", "mdp", "steps", "name", "value"),
    [
        ("ucbvi-gamma,delta=0.1", COUNTED, 2, "U", log(40 * 12 * 2**3 / (0.1 * 0.1**2))),  # ln T counts as 1
        ("politex", LONG, 1, "phase", 1),
        ("olsvi-fh", RIVER, 10**9, "stages", 149),  # no block is longer than the stages that matter
        *(("mdp-exp2,coverage=1e-30", LINEAR, 50, "phase", 51), ("mdp-exp2,phase=90", LINEAR, 50, "phase", 51)),
        *((f"{name},tolerance=1e-7", "riverswim/4,discount=0.9", 100, "tolerance", 1e-7) for name in ("r-max", "mbie")),
        ("mbie-eb,tolerance=1e-12", "riverswim/4,discount=0.9999", 100, "tolerance", 2.0**-44 * 0.9999 * 1e8),
    ],
)
def test_constants_at_their_limits(learner, mdp, steps, name, value):
    assert ids.learner(learner, ids.mdp(mdp), steps).settings[name] == pytest.approx(value, rel=1e-9)


def test_numbers_of_subsets_blocks_and_stages():
    assert log_subsets(2) == pytest.approx(log(2), rel=1e-15)
    assert log_subsets(5000) == pytest.approx(5000 * log(2), rel=1e-15)
    assert block_length(20.0, 12, 20_000) == ceil((20 * 20_000 / 144) ** (1 / 3)) == 15
    assert block_length(1.0, 2, 16) == ceil(max(2 / 2**0.75, 4 ** (1 / 3)))
    problem = ids.mdp(RIVER).problem
    for epsilon in (0.01, 0.5, 3.0):
        assert 0.95 ** effective_horizon(problem, epsilon) * 20 <= epsilon
        assert epsilon < 0.95 ** (effective_horizon(problem, epsilon) - 1) * 20
    assert effective_horizon(problem, 50.0) == 1


def test_the_radius_of_ucrl2_is_weissmans_for_rows_of_B_outcomes():
    """2 ln(2^B 20 X A t^7 / delta) <= 14 B ln(2 A t / delta), where X <= 204 (A / delta)^13; equality is not far."""
    visits = np.ones((1, 50, 2), np.int32)
    for B in (2, 3, 10, 50):
        for A, t, delta in [(1, 1, 0.7), (2, 1, 0.99), (2, 10**6, 1e-6)]:
            X = min(204 * (A / delta) ** 13, 1e300)
            assert 2 * log(2**B * 20 * X * A * t**7 / delta) <= 14 * B * log(2 * A * t / delta) * (1 + 1e-12)
        d = ucrl.l1_radius(visits, np.array([7]), 0.1, B)
        np.testing.assert_allclose(d, sqrt(14 * B * log(2 * 2 * 7 / 0.1)), rtol=1e-14)
    assert 2 * log(2**2 * 20 * 205 * 0.7**-13 / 0.7) > 28 * log(2 / 0.7)


@pytest.mark.parametrize("m", [4, None])
def test_the_boxes_of_ucrl2b_follow_from_audibert_munos_and_szepesvari(m):
    """sqrt(2 v ln(3/d) / n) + 3 ln(3/d) / n; with d = 3 (delta / (6 A n))^2 / (X m) the sum of all d is below delta."""
    X, A, delta, n = 5, 3, 0.1, np.arange(1, 16, dtype=np.int32).reshape(1, 5, 3)
    factor, rest = ucrl.box_radius(n, delta, m)
    d = 3 * (delta / (6 * A * n)) ** 2 / (X * (m or X))
    np.testing.assert_allclose(factor, np.sqrt(2 * np.log(3 / d) / n), rtol=1e-14)
    np.testing.assert_allclose(rest, 3 * np.log(3 / d) / n, rtol=1e-14)
    assert X * A * (m or X) * (d * n**2).max() * np.pi**2 / 6 <= delta**2 * np.pi**2 / (72 * A) * (1 + 1e-12) < delta


@pytest.mark.parametrize("T", [3, 100, 10**6])
def test_the_constant_of_kl_ucrl_makes_the_deviation_of_B_entries_rare(T):
    """2 e (C ln T + m) exp(-C / m) <= delta / (X A): the paper's inequality for a row of m outcomes."""
    for X, A, delta in [(6, 2, 1 / T), (20, 3, 0.2), (1000, 4, 1e-6)]:
        for m in (2, 4, X):
            C = ucrl.constant(X, A, T, delta, m)
            assert 2 * exp(1) * (C * log(T) + m) * exp(-C / m) <= delta / (X * A)
            assert 2 * exp(1) * (0.9 * C * log(T) + m) * exp(-0.9 * C / m) > delta / (X * A)
        assert ucrl.constant(X, A, T, delta, X) == ucrl.constant(X, A, T, delta)
    two = ucrl.constant(5, 2, 2, 0.1)  # fewer than three steps count as three
    assert ucrl.constant(5, 2, 1, 0.1) == two == ucrl.constant(5, 2, 3, 0.1) != ucrl.constant(5, 2, 4, 0.1)
