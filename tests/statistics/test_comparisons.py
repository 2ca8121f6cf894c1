"""Who is better: pairs are by seed, ties count half, and no interval is surer than its seeds."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from ravi.statistics import best, compare, from_table, improvement, interval, normalised, profiles
from ravi.statistics.scores import Scores
from ravi.validation import InputError


def made(values, seeds=None, **more):
    """Scores of {learner: {mdp: values}}, seeds 0, 1, ... unless given."""
    held = {name: {mdp: np.asarray(x, float) for mdp, x in by.items()} for name, by in values.items()}
    kept = seeds or {name: {mdp: np.arange(len(x)) for mdp, x in by.items()} for name, by in held.items()}
    return Scores(held, kept, tuple(held), tuple(dict.fromkeys(m for by in held.values() for m in by)), **more)


def test_positive_means_that_first_is_better_also_where_larger_is():
    values = {"a": {"m": [5, 6, 7]}, "b": {"m": [1, 1, 2]}}
    assert compare(made(values), "a", "b", "m").difference.estimate < 0
    assert compare(made(values, larger_is_better=True), "a", "b", "m").difference.estimate > 0
    assert improvement(made(values), "a", "b").estimate == 0
    assert improvement(made(values, larger_is_better=True), "a", "b").estimate == 1
    assert best(made(values), "m").learner == "b"
    assert best(made(values, larger_is_better=True), "m").learner == "a"


def test_improvement_is_mann_and_whitneys_u_with_ties_half_averaged_over_mdps():
    rng = np.random.Generator(np.random.PCG64(1))
    sizes = {"a": {"m": 9, "n": 5}, "b": {"m": 7, "n": 8}}
    values = {name: {mdp: rng.integers(0, 6, n) for mdp, n in by.items()} for name, by in sizes.items()}
    u = [stats.mannwhitneyu(values["b"][mdp], values["a"][mdp]).statistic for mdp in ("m", "n")]
    mean = (u[0] / (9 * 7) + u[1] / (5 * 8)) / 2
    found = improvement(made(values), "a", "b")
    assert found.estimate == pytest.approx(mean)
    back = improvement(made(values), "b", "a")
    assert found.estimate + back.estimate == pytest.approx(1)
    assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_winning_always_is_not_being_sure():
    """Eight pairs that are all won have probability p^8: p of 0.63 gives 0.025."""
    found = improvement(made({"a": {"m": np.arange(8)}, "b": {"m": np.arange(8) + 10}}), "a", "b")
    assert found[:3] == pytest.approx((1, 0.025 ** (1 / 8), 1))
    lost = improvement(made({"a": {"m": np.arange(8) + 10}, "b": {"m": np.arange(8)}}), "a", "b")
    assert lost[:3] == pytest.approx((0, 0, 1 - 0.025 ** (1 / 8)))


@pytest.mark.parametrize("true", [0.5, 0.8, 0.95, 0.99])
def test_the_interval_of_improvement_covers(true):
    """Two normals; 500 data sets of 8 seeds; four standard errors are 0.039, and the floor is 0.92."""
    rng = np.random.Generator(np.random.PCG64(11))
    hits = 0
    for _ in range(500):
        a, b = rng.normal(size=(2, 8))
        found = improvement(made({"a": {"m": a}, "b": {"m": b + np.sqrt(2) * ndtri(true)}}), "a", "b", resamples=300)
        hits += found.low <= true <= found.high
    assert hits / 500 >= 0.92 - 0.039


def test_the_best_has_the_smallest_mean_and_ties_are_what_seeds_do_not_tell_apart():
    rng = np.random.Generator(np.random.PCG64(2))
    x = rng.normal(size=16)
    near = x + np.tile([0.1, -0.1], 8) + 0.001
    values = {"far": {"m": x + 50 + rng.normal(size=16)}, "best": {"m": x}, "near": {"m": near}}
    assert best(made(values), "m")[:3] == ("m", "best", ("near",))
    one = made({"a": {"m": [1.0]}, "b": {"m": [100.0]}})
    assert best(one, "m")[:3] == ("m", "a", ("b",))  # one seed tells nothing
    assert best(made({"a": {"m": [1.0, 2.0]}}), "m") == ("m", "a", (), {})
    with pytest.raises(InputError, match="no MDP 'q'"):
        best(made(values), "q")


def test_levels_are_holms():
    """Who is worse leaves, and the rest is looked at again, corrected for their own number only."""
    rng = np.random.Generator(np.random.PCG64(0))
    x = rng.normal(size=12)
    clear = {f"clear {i}": {"m": x + 100 + rng.normal(size=12)} for i in range(8)}
    close = rng.normal(size=12)
    scores = made({"best": {"m": x}, **clear, "close": {"m": x + (close - close.mean()) / close.std() + 1.0}})
    found = best(scores, "m")
    assert found.ties == ()
    assert found.behind["clear 0"].level == pytest.approx(1 - 0.05 / 9)
    assert found.behind["close"].level == pytest.approx(0.95)
    assert found.behind["close"] == compare(scores, "best", "close", "m").difference
    assert compare(scores, "best", "close", "m", level=1 - 0.05 / 9).difference.low < 0  # as Bonferroni would have it


@pytest.mark.parametrize("statistic", ["mean", "median", "iqm"])
def test_the_best_is_by_the_statistic(statistic):
    often, rarely = np.append(np.ones(15), 1000) + np.linspace(0, 0.1, 16), np.full(16, 5.0)
    scores = made({"steady": {"m": rarely}, "risky": {"m": often}, "far": {"m": 500 + often}})
    found = best(scores, "m", statistic=statistic)
    assert found.learner == ("steady" if statistic == "mean" else "risky")
    if statistic != "mean":
        assert found.ties == ()
        assert found.behind["far"].estimate == pytest.approx(500)
    with pytest.raises(InputError, match="no statistic 'meen'"):
        best(scores, "m", statistic="meen")


def test_differences_within_the_errors_are_ties():
    x = np.linspace(5, 6, 8)
    values = {"a": {"m": x}, "b": {"m": x - 1e-7}, "c": {"m": x - 1e-6}}
    errors = {name: {"m": np.full(8, 6e-8)} for name in values}
    exact, scores = made(values), made(values, errors=errors)
    assert compare(exact, "a", "b", "m").difference.high < 0
    assert compare(scores, "a", "b", "m").difference[:3] == (0, 0, 0)
    assert compare(scores, "a", "c", "m").difference.high < 0
    flat = {"a": {"m": np.full(8, 5.0)}, "b": {"m": np.full(8, 5 - 1e-7)}}
    assert improvement(made(flat), "a", "b").estimate == 0
    assert improvement(made(flat, errors=errors), "a", "b").estimate == 0.5
    assert best(made(flat), "m")[1:3] == ("b", ())
    assert best(made(flat, errors=errors), "m")[1:3] == ("a", ("b",))
    assert best(made(flat, errors=errors, larger_is_better=True), "m")[1:3] == ("a", ("b",))


@pytest.mark.parametrize(("law", "most"), [("normal", 0.05), ("exponential", 0.05), ("steady", 0.11)])
def test_the_truly_best_is_seldom_left_out(law, most):
    """Four learners of one mean, 8 seeds; steady: the best hardly varies, the others are exponential.

    800 data sets; four standard errors are 0.031 at 0.05 and 0.044 at 0.11. docs/reference/statistics.md has the table.
    """
    rng = np.random.Generator(np.random.PCG64(3))
    lost = 0
    for _ in range(800):
        x = rng.normal(size=(4, 8)) if law == "normal" else rng.exponential(size=(4, 8))
        if law == "steady":
            x[0] = 1 + 0.05 * rng.normal(size=8)
        found = best(made({f"{i}": {"m": row} for i, row in enumerate(x)}), "m", resamples=400)
        lost += "0" not in (found.learner, *found.ties)
    assert lost / 800 <= most + 4 * np.sqrt(most * (1 - most) / 800)


def test_a_learner_that_failed_on_hard_seeds_is_not_the_best():
    """A has 16 seeds, half of them hard; B has the easy ones only, and is 5 worse on each."""
    generator = np.random.default_rng(1)
    easy, hard = generator.normal(20, 1, 8), generator.normal(60, 1, 8)
    rows = [{"learner": "A", "mdp": "m", "seed": i, "regret": x} for i, x in enumerate([*easy, *hard])]
    noise = generator.normal(0, 0.1, 8)
    rows += [{"learner": "B", "mdp": "m", "seed": i, "regret": x + 5 + noise[i]} for i, x in enumerate(easy)]
    found = best(from_table(rows), "m")
    assert (found.learner, found.ties) == ("A", ())
    assert found.behind["B"].low > 0


def test_seeds_are_kept_to_the_last_digit():
    rows = [{"learner": "A", "mdp": "m", "seed": 2**53 + 1, "regret": 1.0}]
    assert from_table(rows).seeds["A"]["m"].tolist() == [2**53 + 1]


def test_only_common_seeds_are_paired():
    seeds = {"a": {"m": np.array([0, 1, 3])}, "b": {"m": np.array([1, 3, 7])}, "c": {"m": np.array([8])}}
    scores = made({"a": {"m": [1, 2, 4]}, "b": {"m": [9, 5, 100]}, "c": {"m": [0.5]}}, seeds)
    found = compare(scores, "a", "b", "m")
    assert (found.pairs, found.difference) == (2, interval([7.0, 1.0]))
    assert compare(scores, "b", "a", "m").difference.estimate == -4.0
    with pytest.raises(InputError, match="a and c have no seed in common on m"):
        compare(scores, "a", "c", "m")
    assert best(scores, "m").ties == ("a", "b")  # which cannot be told apart from c


A = {"m": [5.0, 5.0], "n": [1.0, 2.0]}
UNIFORM = {"m": [10.0, 10.0], "n": [2.0, 2.0]}


@pytest.mark.parametrize(
    ("scores", "by", "words", "values"),
    [
        (made({"uniform": UNIFORM, "a": A}), None, "the mean of uniform", {"m": [0.5, 0.5], "n": [0.5, 1]}),
        (made({"uniform (theory)": UNIFORM, "a": A}), None, "the mean of uniform (theory)", {"m": [0.5, 0.5]}),
        (made({"a": A, "b": {"m": [4, 2], "n": [6, 2]}}), None, "the worst mean of any learner", {"n": [0.25, 0.5]}),
        (made({"a": A, "b": {"m": [1, 3], "n": [9, 9]}}, larger_is_better=True), None, "the worst", {"m": [2.5, 2.5]}),
        (made({"uniform": UNIFORM, "a": A}), "a", "the mean of a", {"m": [1, 1]}),
    ],
)
def test_scores_are_divided_by_the_uniform_policy_where_it_is_there(scores, by, words, values):
    divided, said = normalised(scores, by)
    assert said.startswith(f"regret divided by {words}")
    for mdp, expected in values.items():
        assert divided.values["a"][mdp].tolist() == expected


def test_profiles_are_shares_of_runs_every_mdp_counting_the_same():
    """What is at the threshold to within its error counts; who did not run everywhere is left out."""
    values = {"uniform": {"m": [1.0] * 4, "n": [1.0] * 4}, "a": {"m": [0.1, 0.3, 0.5, 1 + 1e-8], "n": [0.2, 0.9]}}
    values["b"] = {"m": [1.0]}
    for off, last in ((0.0, 0.875), (1e-8, 1)):
        errors = {name: {mdp: np.full(len(x), off) for mdp, x in by.items()} for name, by in values.items()}
        found = profiles(made(values, errors=errors), [0.0, 0.3, 0.6, 1.0])
        assert [*found.share] == ["uniform", "a"]
        np.testing.assert_allclose(found.share["a"], [0, 0.5, (0.75 + 0.5) / 2, last])
        np.testing.assert_allclose(found.share["uniform"], [0, 0, 0, 1])
        for name, share in found.share.items():
            low, high = found.low[name], found.high[name]
            assert ((low >= 0) & (low <= share) & (share <= high) & (high <= 1) & (low < high)).all()
    default = profiles(made(values)).share["a"]
    assert default[-1] == 1
    assert (np.diff(default) >= 0).all()
