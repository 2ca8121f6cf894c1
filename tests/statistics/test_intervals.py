"""Intervals cover as often as they say, at the numbers of seeds that are run, on skewed data too.

Coverage is counted over many data sets under a fixed key. With N of them the standard error of a coverage near 0.95 is
sqrt(0.95 * 0.05 / N), 0.0049 for N = 2,000; a test that allows four of them below its floor fails by chance less than
once in 30,000.
"""

import numpy as np
import pytest
from scipy import stats

from ravi.statistics import Interval, band, interval, resampling, stratified
from ravi.statistics.intervals import farthest
from ravi.statistics.resampling import drawn, picked, product
from ravi.validation import InputError

N = 2000
ERROR = 4 * np.sqrt(0.95 * 0.05 / N)
LAWS = {"normal": stats.norm(), "exponential": stats.expon(), "lognormal": stats.lognorm(1)}
# The coverage, at least, of what is nominally 0.95; measured, and written in docs/reference/statistics.md.
FLOORS = {
    ("mean", "normal"): {8: 0.945, 16: 0.945, 32: 0.945},
    ("mean", "exponential"): {8: 0.925, 16: 0.935, 32: 0.94},
    ("mean", "lognormal"): {8: 0.89, 16: 0.91, 32: 0.92},
    ("iqm", "normal"): {8: 0.935, 16: 0.945, 32: 0.945},
    ("iqm", "exponential"): {8: 0.91, 16: 0.94, 32: 0.945},
    ("iqm", "lognormal"): {8: 0.91, 16: 0.945, 32: 0.945},
    ("median", "normal"): {8: 0.945, 16: 0.945, 32: 0.945},
    ("median", "exponential"): {8: 0.945, 16: 0.945, 32: 0.945},
    ("median", "lognormal"): {8: 0.945, 16: 0.945, 32: 0.945},
}


def truth(law, statistic):
    if statistic == "iqm":
        middle = np.linspace(0.25, 0.75, 20_001)
        return float(np.trapezoid(LAWS[law].ppf(middle), middle) / 0.5)
    return float(getattr(LAWS[law], statistic)())


def coverage(law, statistic, n, data_sets=N):
    """As a band: every point is a data set of its own, resampled in the same way."""
    rng = np.random.Generator(np.random.PCG64(7))
    x = LAWS[law].rvs(size=(n, data_sets), random_state=rng)
    _, low, high = band(x, statistic, resamples=600)
    return float(np.mean((low <= truth(law, statistic)) & (truth(law, statistic) <= high)))


@pytest.mark.parametrize(("statistic", "law"), FLOORS)
def test_nominal_coverage_is_reached_or_the_shortfall_is_as_written(statistic, law):
    for n, floor in FLOORS[statistic, law].items():
        covered = coverage(law, statistic, n, N if statistic != "iqm" else N // 2)
        slack = ERROR * (1 if statistic != "iqm" else np.sqrt(2))
        assert floor - slack <= covered <= 0.955 + slack, (n, covered)


@pytest.mark.parametrize("statistic", ["mean", "iqm", "median"])
def test_stratified_intervals_cover(statistic):
    """Ten MDPs of different scales, five seeds each; 400 data sets: four standard errors are 0.044."""
    rng = np.random.Generator(np.random.PCG64(3))
    scales = np.linspace(0.5, 2, 10)
    whole = np.concatenate([scale * stats.expon.ppf((np.arange(20_000) + 0.5) / 20_000) for scale in scales])
    true = {"mean": whole.mean(), "median": np.median(whole), "iqm": stats.trim_mean(whole, 0.25)}[statistic]
    hits = 0
    for _ in range(400):
        found = stratified([scale * rng.exponential(size=5) for scale in scales], statistic, resamples=400)
        hits += found.low <= true <= found.high
    assert 0.95 - 0.044 <= hits / 400 <= 0.95 + 0.044


@pytest.mark.parametrize("sizes", [(12,), (9, 14)])
@pytest.mark.parametrize("statistic", ["mean", "iqm"])
def test_bootstrap_t_is_its_definition_written_out(statistic, sizes):
    """With the same resamples: one at a time, in plain loops."""
    rng = np.random.Generator(np.random.PCG64(8))
    groups = [rng.gamma(2, size=size) for size in sizes]
    weight = np.concatenate([np.full(size, 1 / (len(sizes) * size)) for size in sizes])

    def studied(held):
        """The statistic, and its squared error, each group counting the same."""
        if statistic == "mean":
            return np.mean([x.mean() for x in held]), sum(x.var(ddof=1) / len(x) for x in held) / len(held) ** 2
        order = np.argsort(np.concatenate(held), kind="stable")
        kept = [i for j, i in enumerate(order) if weight[order[: j + 1]].sum() > 0.25 + 1e-9 < weight[order[j:]].sum()]
        values, share = np.concatenate(held)[kept], weight[kept].sum()
        clipped = [np.clip(x, values.min(), values.max()) for x in held]
        error = sum(x.var(ddof=1) / len(x) for x in clipped) / (len(held) * share) ** 2
        return values @ weight[kept] / share, error

    estimate, variance = studied(groups)
    picks = [picked(size, 500, place) for place, size in enumerate(sizes)]
    ratios = []
    for place in range(500):
        again, error = studied([x[pick[place]] for x, pick in zip(groups, picks, strict=True)])
        ratios.append((again - estimate) / np.sqrt(error))
    ratios.sort()
    found = stratified(groups, statistic, level=0.9, resamples=500)
    assert found.estimate == pytest.approx(estimate)
    assert found.high == pytest.approx(
        estimate - ratios[24] * np.sqrt(variance)
    )  # the 25th of 500 is the 0.05 quantile
    assert found.low == pytest.approx(estimate - ratios[474] * np.sqrt(variance))


def test_medians_over_mdps_are_percentiles_stretched_by_what_resampling_loses():
    groups = list(np.random.Generator(np.random.PCG64(8)).gamma(2, size=(4, 3)))
    again = [x[picked(3, 500, place)] for place, x in enumerate(groups)]
    middle = np.median(groups)
    ends = np.quantile(np.median(np.concatenate(again, axis=1), axis=1), [0.05, 0.95])
    found = stratified(groups, "median", level=0.9, resamples=500)
    assert found[:3] == pytest.approx((middle, *(middle + np.sqrt(3 / 2) * (ends - middle))))


def test_several_groups_have_a_degree_of_freedom_less_each():
    """Of the mean of 3 and 2 seeds 5 - 2 = 3; of the interquartile mean of 3 and 3, which leaves out the least and the
    largest value, 4 - 2 = 2."""
    x, y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 3.5])
    found = stratified([x, y], "mean", level=0.9)
    error = np.sqrt(x.var(ddof=1) / 3 + y.var(ddof=1) / 2) / 2
    assert found.high - found.estimate == pytest.approx(stats.t.ppf(0.95, 3) * error)
    found = stratified([x, [3.0, 3.5, 9.0]], "iqm", level=0.9)  # 2, 3, 3.5 and 4 are kept
    clipped = np.array([2.0, 2.0, 4.0]), np.array([3.0, 3.5, 4.0])
    error = np.sqrt(sum(group.var(ddof=1) / 3 for group in clipped)) / 2 / (4 / 6) * np.sqrt(5 / 6 * 4 / 3)
    assert found.high - found.estimate == pytest.approx(stats.t.ppf(0.95, 2) * error)


def test_resamples_without_spread_are_at_the_limit_which_is_halls_interval():
    """A third of the resamples hold zeros only, and their ratio has no limit; Hall's, for the skewness, written out."""
    x = np.array([0.0] * 7 + [1.0])
    skew, t = stats.skew(x) / np.sqrt(8), stats.t.ppf(0.025, 7)
    hall = 3 / skew * (np.cbrt(1 + skew * (t - skew / 6)) - 1)
    assert hall == pytest.approx(-7.487, abs=1e-3)
    assert interval(x).high == pytest.approx(x.mean() - hall * stats.sem(x))
    assert interval(-x).low == pytest.approx(-x.mean() + hall * stats.sem(x))


@pytest.mark.parametrize("n", [5, 6, 8, 16, 32, 200])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99, 0.9999])
def test_no_end_is_farther_than_the_limit_and_the_limit_is_no_shorter_than_students(n, level):
    most, student = farthest(level, n - 1), stats.t.ppf((1 + level) / 2, n - 1)
    assert student <= most < 4 * student
    for key in range(5):
        x = np.random.Generator(np.random.PCG64(key)).lognormal(sigma=3, size=n)
        found = interval(x, level=level, resamples=200)
        assert max(found.estimate - found.low, found.high - found.estimate) <= most * stats.sem(x) * (1 + 1e-9)


def test_eight_seeds_get_tukey_and_mclaughlins_interval_for_the_iqm():
    """By hand: 0, ..., 7 winsorised is 2, 2, 2, 3, 4, 5, 5, 5; four values are kept, so Student has 3 degrees."""
    w = np.array([2, 2, 2, 3, 4, 5, 5, 5])
    half = stats.t.ppf(0.975, 3) * w.std(ddof=1) * np.sqrt(7 / (4 * 3))
    assert interval(np.arange(8), "iqm") == pytest.approx(Interval(3.5, 3.5 - half, 3.5 + half, 0.95))


def test_the_median_lies_between_order_statistics():
    """n = 10: (x_2, x_9) reaches 0.9785, (x_3, x_8) 0.8906; Hettmansperger and Sheather's ends for 0.95 lie between."""
    found = interval(np.arange(1, 11), "median")
    share = (0.978515625 - 0.95) / (0.978515625 - 0.890625)
    share = 8 * share / (2 + 6 * share)
    assert (found.low, found.high) == pytest.approx((2 + share, 9 - share))
    five = interval(np.arange(5), "median")
    assert (five.low, five.high) == (-np.inf, np.inf)  # all five are above it once in 32: no pair reaches 0.95
    six = interval(np.arange(6), "median")
    assert 0 <= six.low < 1
    assert 4 < six.high <= 5


@pytest.mark.parametrize(("statistic", "ones", "kept", "n"), [("mean", 1, 1.0, 15), ("iqm", 3, 0.5, 7)])
def test_the_limit_of_several_groups_has_their_degrees_of_freedom(statistic, ones, kept, n):
    """Of two groups of eight, many resamples hold zeros only, or nothing else is kept of them: no spread. The limit of
    the mean has 16 - 2 degrees of freedom, that of the interquartile mean 8 - 2."""
    x = np.array([0.0] * (8 - ones) + [1.0] * ones)
    found = stratified([x, x], statistic, level=0.95)
    error = np.sqrt(2 * x.var(ddof=1) / 8) / (2 * kept)
    assert found.high - found.estimate == pytest.approx(farthest(0.95, n - 1) * error)


STATISTICS = {"mean": np.mean, "median": np.median, "iqm": lambda x: stats.trim_mean(x, 0.25)}
X = np.random.Generator(np.random.PCG64(2)).lognormal(size=(33, 5)).cumsum(axis=1)


@pytest.mark.parametrize("statistic", STATISTICS)
class TestEdges:
    def test_estimates_are_those_of_numpy_and_scipy_and_groups_count_the_same(self, statistic):
        function, groups = STATISTICS[statistic], [X[:8, place] for place in range(5)]
        for n in (1, 2, 3, 7, 8, 9, 33):
            assert interval(X[:n, 0], statistic).estimate == pytest.approx(function(X[:n, 0]), rel=1e-14)
        pooled = stratified(groups, statistic).estimate
        assert pooled == pytest.approx(function(np.concatenate(groups)), rel=1e-12)
        twice = [np.repeat(groups[0], 2), *groups[1:]]  # the same distribution, with twice the seeds
        assert stratified(twice, statistic).estimate == pytest.approx(pooled, rel=1e-12)

    def test_one_seed_has_no_ends_and_equal_values_have_no_width(self, statistic):
        assert interval([3.0], statistic) == (3.0, -np.inf, np.inf, 0.95)
        assert stratified([[3.0], [1.0, 2.0]], statistic)[1:3] == (-np.inf, np.inf)
        for n in (2, 5, 12, 40):
            assert interval(np.full(n, 0.1), statistic) == (0.1, 0.1, 0.1, 0.95)
        found = interval([0.0] * 15 + [1.0], statistic)
        assert -np.inf < found.low <= found.estimate <= found.high < np.inf

    def test_what_is_not_finite_is_named(self, statistic):
        for asked, values, said in (
            (interval, [1.0, 2.0, np.nan], r"values\[2\] is nan"),
            (band, [[1.0, 2.0], [np.inf, 1.0]], r"curves\[1, 0\] is inf"),
            (stratified, [[1.0, 2.0], [-np.inf, 1.0]], r"groups\[1\]\[0\] is -inf"),
        ):
            with pytest.raises(InputError, match=said):
                asked(values, statistic)

    def test_a_band_is_the_interval_at_every_point_and_units_move_nothing_else(self, statistic):
        held, moved = (np.array(band(x, statistic, resamples=500)) for x in (X, 1e6 + 1e3 * X))
        np.testing.assert_allclose(moved, 1e6 + 1e3 * held, rtol=1e-9)
        for p in range(5):
            np.testing.assert_allclose(held[:, p], interval(X[:, p], statistic, resamples=500)[:3], rtol=1e-9)
        narrow, wide = (interval(X[:, 0], statistic, level=level) for level in (0.8, 0.99))
        assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize("n", [1, 7, 100])
def test_weights_are_those_of_the_seeds_picked_whatever_is_held_at_a_time(n, monkeypatch):
    """To the bit: 1 / n is added as often as a seed was picked. Products are made of blocks that stay on one core."""
    picks = picked(n, 60, 5)
    weights = np.zeros((60, n))
    np.add.at(weights, (np.arange(60)[:, None], picks), 1 / n)
    for block, kept, side in ((resampling.BLOCK, resampling.KEPT, 64), (11, resampling.KEPT, 3), (11, 0, 3)):
        for name, value in (("BLOCK", block), ("KEPT", kept), ("SIDE", side)):
            monkeypatch.setattr(resampling, name, value)
        assert np.concatenate(list(drawn(n, 60, 5, 2))).tobytes() == weights.tobytes()
        np.testing.assert_allclose(product(weights, X[:n].repeat(4, axis=0)[:n]), weights @ X[:n].repeat(4, axis=0)[:n])
