"""Figures of many runs: computing time, tuning, who beats whom."""

from __future__ import annotations

from dataclasses import replace

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


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-9, "0"), (3.21, "3.2"), (-45.6, "-46"), (1234, "1.2k"), (-23456, "-23k"), (4e6, "4.0M")],
)
def test_numbers_fit_into_cells(value, text):
    assert brief(value) == text


def test_time_and_regret_are_drawn_with_the_frontier():
    """Warnings are errors here: values that differ by rounding have an axis too."""
    runs = {"quick": ([1.0, 1.2], [90.0, 110.0]), "slow": ([9.0, 11.0], [9.0, 11.0]), "both": ([20.0], [300.0])}
    drawn = scatter.pareto(runs, title="it")
    ax = drawn.figure.axes[0]
    points = {c.get_label(): np.ravel(c.lines[0].get_data()).astype(float) for c in ax.containers}
    assert {name: [*at] for name, at in points.items()} == {n: [np.mean(s), np.mean(r)] for n, (s, r) in runs.items()}
    assert drawn.data["frontier"] == ["quick", "slow"]
    assert np.allclose(lines(ax)["frontier"].get_xydata(), [points["quick"], points["slow"]])
    arms = {c.get_label(): [np.ptp(arm.get_segments()[0], axis=0).max() for arm in c.lines[2]] for c in ax.containers}
    assert arms["both"] == [0, 0]  # one seed has no interval
    assert min(arms["quick"] + arms["slow"]) > 0
    near = 231.13158494112596 * (1 + 1e-14 * np.arange(6))
    for some in ({"one": ([4e-4] * 6, near)}, {"optimum": ([0.0, 0.0], [0.0, 0.0])}):
        scatter.pareto(some).figure.canvas.draw()


def test_tuning_shows_every_trial_in_order_and_rings_the_chosen():
    """Points that differ in the step size too are not joined; what failed is left out."""
    tried = [("a", 1.0, None, 30.0, False), ("a", 0.01, None, 20.0, False), ("a", 0.1, None, 10.0, True),
             ("b", 1.0, 1.0, 5.0, True), ("b", 0.1, 3.0, 6.0, False), ("b", 0.2, 3.0, None, False)]  # fmt: skip
    names = ("learner", "scale", "step_scale", "regret", "chosen")
    rows = [dict(zip(names, row, strict=True)) | {"standard_error": 1.0} for row in tried]
    ax = scatter.tuning(rows, order=["c", "a", "b"]).figure.axes[0]
    held = {c.get_label(): c.lines[0] for c in ax.containers}
    assert np.array_equal(held["a"].get_xydata(), [(0.01, 20), (0.1, 10), (1, 30)])
    assert np.array_equal(held["b"].get_xydata(), [(0.1, 6), (1, 5)])
    assert sorted(map(tuple, lines(ax)["chosen"].get_xydata())) == [(0.1, 10), (1, 5)]
    assert held["a"].get_color() == style.look(1).colour  # as where "c" is drawn too
    assert (held["a"].get_linestyle() == "None", held["b"].get_linestyle()) == (False, "None")


@pytest.mark.parametrize("mdp", [None, "two"])
def test_cells_are_what_the_statistics_say_with_stars_where_sure(mdp):
    scores = some()
    drawn = matrix.improvements(scores) if mdp is None else matrix.differences(scores, mdp)
    ax, scale = drawn.figure.axes
    values, texts = ax.images[0].get_array(), {text.get_position(): text.get_text() for text in ax.texts}
    for (column, row), text in texts.items():
        pair = scores.learners[row], scores.learners[column]
        found = improvement(scores, *pair) if mdp is None else compare(scores, *pair, mdp).difference
        assert values[row, column] == found.estimate
        middle = 0.5 if mdp is None else 0
        assert text.endswith("*") == drawn.data["sure"][row, column] == (not found.low <= middle <= found.high)
        written = f"{100 * found.estimate:.0f}" if mdp is None else brief(found.estimate).replace("-", "−")
        assert text.rstrip("*") == written
    assert len(texts) == 6
    assert values.mask.diagonal().all()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["good  1", "fair  2", "bad  3"]
    assert scale.get_ylabel() == ("P(row beats column)" if mdp is None else "regret: column − row")


def test_profiles_are_those_of_the_statistics_of_who_ran_everywhere():
    held = some()
    values = held.values | {"good": {"one": held.values["good"]["one"]}}
    taus = np.geomspace(*matrix.SPAN, 241)
    for scores, names in ((held, ["good", "fair", "bad"]), (replace(held, values=values), ["fair", "bad"])):
        shown = lines(matrix.profile_figure(scores).figure.axes[0])
        assert [*shown] == names
        assert all(np.array_equal(shown[n].get_ydata(), profiles(scores, thresholds=taus).share[n]) for n in names)
        assert shown["fair"].get_color() == style.look(1).colour
    free = matrix.profile_figure(held).figure.axes[0]
    low, high = free.get_xlim()
    share = lines(free)["good"]
    assert {0.0, 1.0} <= {*share.get_ydata()[(share.get_xdata() >= low) & (share.get_xdata() <= high)]}
    assert (free.get_xscale(), free.get_xlabel()[:12]) == ("log", "τ: regret / ")


def test_nothing_to_compare_is_told_or_drawn_empty():
    for drawn in (scatter.tuning, scatter.pareto, scatter.ranks):
        with pytest.raises(InputError, match=r"no configuration|no learner"):
            drawn({})
    with pytest.raises(InputError, match="no run on three"):
        matrix.differences(some(), "three")
    apart = [{"learner": name, "mdp": name, "seed": 0, "regret": 1.0} for name in "ab"]
    assert np.isnan(matrix.improvements(from_table(apart)).data["values"]).all()
    alone = some(learners=("it",))
    for figure in (matrix.improvements(alone), matrix.differences(alone, "one"), matrix.profile_figure(alone)):
        assert figure.data["learners"] == ["it"]
