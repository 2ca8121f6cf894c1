"""Figures of many runs: computing time, tuning, who beats whom."""

from __future__ import annotations

import numpy as np
import pytest

from ravi.display import style
from ravi.display.numbers import brief
from ravi.lab.report import matrix, scatter
from ravi.statistics.comparisons import compare, profiles
from ravi.statistics.scores import from_table
from ravi.statistics.winning import improvement
from ravi.validation import InputError

matplotlib = pytest.importorskip("matplotlib")


def lines(axes) -> dict[str, object]:
    return {line.get_label(): line for line in axes.get_lines()}


def some(learners=("good", "fair", "bad"), mdps=("one", "two"), seeds=6):
    rng = np.random.default_rng(1)
    rows = [
        {"learner": name, "mdp": mdp, "seed": seed, "regret": (1 + place) * 100 + 60 * rng.random()}
        for place, name in enumerate(learners)
        for mdp in mdps
        for seed in range(seeds)
    ]
    return from_table(rows)


def test_the_frontier_is_what_nobody_beats_in_both():
    rng = np.random.default_rng(0)
    points = {str(i): tuple(rng.integers(0, 12, 2).astype(float)) for i in range(40)}
    kept = scatter.frontier(points)
    for name, (x, y) in points.items():
        beaten = any((a <= x and b <= y) and (a < x or b < y) for a, b in points.values())
        twin = any(points[other] == (x, y) for other in kept)
        assert (not beaten) == twin, name
    assert [points[name][0] for name in kept] == sorted(points[name][0] for name in kept)


def test_time_and_regret_are_drawn_with_the_frontier(tmp_path):
    runs = {
        "quick": ([1.0, 1.2], [90.0, 110.0]),
        "slow": ([9.0, 11.0], [9.0, 11.0]),
        "both": ([20.0, 21.0], [300.0, 310.0]),
    }
    drawn = scatter.pareto(runs, title="it")
    assert drawn.data["frontier"] == ["quick", "slow"]
    ax = drawn.figure.axes[0]
    points = {c.get_label(): np.ravel(c.lines[0].get_data()).astype(float) for c in ax.containers}
    assert {name: tuple(at) for name, at in points.items()} == {
        name: (np.mean(s), np.mean(r)) for name, (s, r) in runs.items()
    }
    assert np.allclose(lines(ax)["frontier"].get_xydata(), [points["quick"], points["slow"]])
    assert ax.get_xlabel() == "computing time per run (s)"
    drawn.save(tmp_path / "it", ["png"])
    assert drawn.figure.get_size_inches()[0] == style.SINGLE


def test_one_learner_with_one_seed_has_no_arms():
    drawn = scatter.pareto({"it": ([1.0], [5.0])})
    arms = [arm.get_segments()[0] for arm in drawn.figure.axes[0].containers[0].lines[2]]
    assert all((ends[0] == ends[1]).all() for ends in arms)
    scatter.pareto({"optimum": ([1.0, 2.0], [0.0, 0.0])})


def test_values_that_differ_by_rounding_have_an_axis_without_a_warning():
    """Warnings are errors here; the axis shows more than rounding."""
    seen = [231.13158494112605, 231.13158494112596, 231.13158494112596, 231.13158494112605, 231.1315849411261]
    near = np.array([*seen, 231.13158494112602])
    for runs in ({"one": ([4e-4] * 6, near)}, {"one": ([1e-4] * 6, near), "two": ([9e-4] * 6, near[4:5].repeat(6))}):
        drawn = scatter.pareto(runs)
        drawn.figure.canvas.draw()
        low, high = drawn.figure.axes[0].get_ylim()
        assert low < 220 < 240 < high
    scatter.pareto({"one": ([0.0, 0.0], [5.0, 5.0])}).figure.canvas.draw()


def test_the_profile_leaves_out_who_has_not_run_everywhere():
    whole = some()
    rows = [
        {"learner": name, "mdp": mdp, "seed": seed, "regret": value}
        for name, held in whole.values.items()
        for mdp, values in held.items()
        for seed, value in enumerate(values)
        if (name, mdp) != ("good", "two")
    ]
    scores = from_table(rows)
    drawn = matrix.profile_figure(scores)
    assert drawn.data["learners"] == ["fair", "bad"]
    assert {"fair", "bad"} <= set(lines(drawn.figure.axes[0]))
    assert "good" not in lines(drawn.figure.axes[0])
    assert lines(drawn.figure.axes[0])["fair"].get_color() == style.look(1).colour  # as where "good" is drawn too


def tried(learner, scales, regrets, chosen, steps=None):
    return [
        {
            "learner": learner, "scale": scale, "regret": regret, "standard_error": 1.0, "chosen": place == chosen,
            "step_scale": (steps or {}).get(place),
        }
        for place, (scale, regret) in enumerate(zip(scales, regrets, strict=True))
    ]  # fmt: skip


def test_tuning_shows_every_trial_in_order_and_rings_the_chosen():
    rows = tried("a", [1.0, 0.01, 0.1], [30.0, 20.0, 10.0], 2)
    rows += tried("b", [1.0, 0.1], [5.0, None], 0, {0: 1.0, 1: 3.0})
    drawn = scatter.tuning(rows, order=["c", "a", "b"])
    ax = drawn.figure.axes[0]
    held = {c.get_label(): c.lines[0] for c in ax.containers}
    assert np.array_equal(held["a"].get_xydata(), [(0.01, 20), (0.1, 10), (1, 30)])
    assert np.array_equal(held["b"].get_xydata(), [(1, 5)])  # what failed is left out
    assert sorted(map(tuple, lines(ax)["chosen"].get_xydata())) == [(0.1, 10), (1, 5)]
    assert held["a"].get_color() == style.look(1).colour  # as where "c" is drawn too
    assert held["a"].get_linestyle() != "None"


def test_points_that_differ_in_the_step_size_too_are_not_joined():
    rows = tried("a", [1.0, 0.1], [5.0, 6.0], 0, {0: 1.0, 1: 3.0})
    assert scatter.tuning(rows).figure.axes[0].containers[0].lines[0].get_linestyle() == "None"


def test_nothing_to_draw_is_told():
    with pytest.raises(InputError, match="no configuration"):
        scatter.tuning(tried("a", [1.0], [None], 0))
    with pytest.raises(InputError, match="no learner"):
        scatter.pareto({})


def test_cells_are_probabilities_of_improvement_with_stars_where_sure(tmp_path):
    scores = some()
    drawn = matrix.improvements(scores)
    ax = drawn.figure.axes[0]
    values = ax.images[0].get_array()
    for row, first in enumerate(scores.learners):
        for column, second in enumerate(scores.learners):
            if first == second:
                assert values.mask[row, column]
                continue
            found = improvement(scores, first, second)
            assert values[row, column] == found.estimate
            assert drawn.data["sure"][row, column] == (not found.low <= 0.5 <= found.high)
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts[(2, 0)] == "100*"
    assert texts[(0, 2)] == "0*"
    assert len(texts) == 6
    assert [label.get_text() for label in ax.get_yticklabels()] == ["good  1", "fair  2", "bad  3"]
    assert drawn.figure.axes[1].get_ylabel() == "P(row beats column)"
    drawn.save(tmp_path / "it", ["png"])


def test_cells_are_paired_differences():
    scores = some()
    drawn = matrix.differences(scores, "two")
    values = drawn.figure.axes[0].images[0].get_array()
    assert values[0, 2] == compare(scores, "good", "bad", "two").difference.estimate > 0
    assert values[2, 0] == -values[0, 2]
    with pytest.raises(InputError, match="no run on three"):
        matrix.differences(scores, "three")


def test_letters_stand_out_from_their_cells():
    """A contrast of 3 to 1, by WCAG's relative luminance."""

    def luminance(colour):
        c = np.array(matplotlib.colors.to_rgb(colour))
        return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))

    names = [str(i) for i in range(41)]
    values = np.tile(np.linspace(0, 1, 41), (41, 1))
    figure = matrix._cells(names, values, {(0, k): "x" for k in range(41)}, (0.0, 0.5, 1.0), "", "")
    image = figure.axes[0].images[0]
    for text in figure.axes[0].texts[:41]:
        cell = image.cmap(image.norm(values[0, int(text.get_position()[0])]))
        dark, light = sorted((luminance(cell), luminance(text.get_color())))
        assert (light + 0.05) / (dark + 0.05) > 3, text.get_position()


def test_profiles_are_those_of_the_statistics():
    scores = some()
    drawn = matrix.profile_figure(scores, thresholds=np.linspace(0, 1.5, 31))
    found = profiles(scores, thresholds=np.linspace(0, 1.5, 31))
    for name in scores.learners:
        assert np.array_equal(lines(drawn.figure.axes[0])[name].get_ydata(), found.share[name])
    free = matrix.profile_figure(scores).figure.axes[0]
    assert free.get_xscale() == "log"
    low, high = free.get_xlim()
    share = lines(free)["good"]
    inside = (share.get_xdata() >= low) & (share.get_xdata() <= high)
    assert {0.0, 1.0} <= {*share.get_ydata()[inside]}
    assert free.get_xlabel().startswith("τ: regret / ")


def test_one_learner_or_nothing_in_common_does_not_break():
    alone = some(learners=("it",))
    matrix.improvements(alone)
    matrix.differences(alone, "one")
    matrix.profile_figure(alone)
    apart = from_table(
        [{"learner": "a", "mdp": "x", "seed": 0, "regret": 1.0}, {"learner": "b", "mdp": "y", "seed": 0, "regret": 2.0}]
    )
    assert np.isnan(matrix.improvements(apart).data["values"]).all()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-9, "0"), (3.21, "3.2"), (-45.6, "-46"), (1234, "1.2k"), (-23456, "-23k"), (4e6, "4.0M")],
)
def test_numbers_fit_into_cells(value, text):
    assert brief(value) == text
