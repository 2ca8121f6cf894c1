"""Comparisons: each run is that of `ravi.run`, bit for bit; what is printed, drawn and tabulated is of those runs."""

import json

import numpy as np
import pytest

import ravi
from ravi.statistics import interval
from ravi.validation import InputError
from tests.support.command import typed

MDP = "riverswim/3,discount=0.9"
LEARNERS = ["psrl", "ravi-ucb,scale=0.01", "uniform"]


@pytest.fixture(scope="module")
def found():
    return ravi.compare(LEARNERS, MDP, 400, seeds=[3, 5, 8, 9, 11])


def test_every_run_is_the_one_of_ravi_run(found):
    assert list(found.runs) == [(name, MDP) for name in LEARNERS]
    for (name, mdp), run in found.runs.items():
        assert run.regret.tobytes() == ravi.run(name, mdp, 400, [3, 5, 8, 9, 11]).regret.tobytes()


def test_a_comparison_is_printed_as_a_table_with_the_best_first(found):
    title, head, *rows = str(found).split("\n\n")[0].splitlines()
    assert title == "riverswim/3 (gamma 0.9): 400 steps, 5 seeds"
    assert [row.split()[0] for row in rows] == ["psrl", "ravi-ucb,scale=0.01", "uniform"]
    assert rows[0].endswith("best")
    assert head.split()[0] == "learner"
    assert repr(found) == f"<Comparison of 3 learners on {MDP}: least regret psrl>"
    assert "<table" in found._repr_html_()


def test_a_learner_ties_with_itself():
    twice = ravi.compare({"one": "psrl", "other": "psrl"}, MDP, 100, 4)
    assert twice.best[MDP].ties == ("other",)
    assert twice.rows(MDP)[-1][-1] == "≈ 0"


def test_one_learner_has_nothing_to_be_behind():
    alone = ravi.compare("psrl", MDP, 100, 4)
    assert "behind:" not in str(alone)
    assert alone.rows(MDP)[1][-1] == ""


def test_numbers_are_those_of_statistics(found):
    numbers = found.json()
    assert json.loads(json.dumps(numbers)) == numbers
    for row in numbers["results"]:
        regret = found.runs[row["learner"], MDP].regret
        assert row["regret"] == interval(regret)._asdict()
        assert (row["upper_quantile"], row["largest"]) == (np.quantile(regret, 0.9), regret.max())


def test_a_frame_has_a_row_for_every_learner_and_seed_and_a_column_for_every_setting(found):
    frame = found.to_pandas()
    assert list(frame.columns[:6]) == ["learner", "mdp", "seed", "steps", "regret", "regret_error"]
    assert len(frame) == 3 * 5
    assert frame.groupby("learner")["scale"].first().to_dict()["ravi-ucb,scale=0.01"] == 0.01
    assert (frame[frame.learner == "psrl"].regret == found.runs["psrl", MDP].regret).all()


def test_the_frame_of_a_run_has_its_settings():
    frame = ravi.run("ravi-ucb,scale=0.1", MDP, 100, 2).to_pandas()
    assert set(frame.scale) == {0.1}
    assert list(frame.columns[:6]) == ["seed", "time", "regret", "reward", "learner", "mdp"]


def test_several_mdps_have_a_panel_and_a_table_each():
    both = ravi.compare({"a": "psrl", "b": "uniform"}, [MDP, "trap"], 200, 3)
    assert both.mdps == (MDP, "trap")
    assert len(str(both).split("\n\n")) == 3
    drawn = both.plot(log=True)
    for mdp, axes in zip(both.mdps, drawn.figure.axes, strict=True):
        for name, line in zip(("a", "b"), axes.get_lines(), strict=True):
            assert (line.get_ydata() == both.runs[name, mdp].regret_curve.mean(0)).all()


@pytest.mark.parametrize(
    ("learners", "mdp", "message"),
    [
        ([], MDP, "learners is empty"),
        (["psrl", "psrl"], MDP, "two learners have the name psrl"),
        ({0: "psrl"}, MDP, "the name of a learner is 0, not a text"),
        (["psrl"], [MDP, MDP], "two of the MDPs have the name"),
        (["ravi-ucb"], "large/grid,9", "has no regret"),
        (7, MDP, "learners is 7, not a list"),
    ],
)
def test_what_cannot_be_compared_is_named(learners, mdp, message):
    with pytest.raises(InputError, match=message):
        ravi.compare(learners, mdp, 50, 2)


def test_the_command_prints_the_same(tmp_path, found):
    words = ["compare", MDP, *LEARNERS, "--steps", "400", "--seeds", "3,5,8,9,11"]
    assert typed(*words, "--figure", tmp_path / "it.png").stdout.rstrip() == str(found)
    assert (tmp_path / "it.png").stat().st_size > 0
    assert json.loads(typed(*words, "--json").stdout) == found.json()
