"""Figures show the data that they are given, in every format, the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import ravi
from ravi.cli import show
from ravi.display import style
from ravi.display.numbers import number
from ravi.lab import demo
from ravi.lab.report import curves, figures, matrix, scatter
from ravi.lab.report.figures import KINDS, STORY, index_page, kind_of
from ravi.statistics import Scores
from ravi.statistics.intervals import band, interval
from ravi.validation import InputError
from tests.lab.report.folders import made
from tests.support.pools import in_this_process

matplotlib = pytest.importorskip("matplotlib")

TIMES = np.arange(10, 510, 10)
SLOW = np.random.default_rng(0).uniform(0.5, 1.5, (6, 1)) * np.sqrt(TIMES)


def two() -> dict[str, curves.Curves]:
    return {"slow": curves.Curves(TIMES, SLOW), "fast": curves.Curves(TIMES, SLOW / 3)}


def written(*given, **how):
    return list(figures.each_written(*given, **how))


def grey(colour: str) -> float:
    """How light a colour is in print, from 0 to 1 (Rec. 601)."""
    return float(np.dot(matplotlib.colors.to_rgb(colour), (0.299, 0.587, 0.114)))


def lines(axes) -> dict[str, object]:
    return {line.get_label(): line for line in axes.get_lines()}


# What is drawn.


@pytest.mark.parametrize("logarithmic", [False, True])
def test_the_lines_are_the_means_and_the_bands_their_intervals(logarithmic):
    drawn = curves.regret_curves(two(), logarithmic=logarithmic)
    ax = drawn.figure.axes[0]
    for place, (label, held) in enumerate(two().items()):
        mean, low, high = band(held.values)
        assert np.array_equal(lines(ax)[label].get_xdata(), TIMES)
        assert np.array_equal(lines(ax)[label].get_ydata(), mean)
        corners = ax.collections[place].get_paths()[0].vertices
        assert corners[:, 1].max() == high.max()
        assert {*corners[:, 1]} <= {*low, *high}
        assert drawn.data["curves"][label].seeds == 6


def test_curves_of_the_wrong_shape_are_refused():
    with pytest.raises(InputError, match=r"'bad' have shape \(6, 49\)"):
        curves.regret_curves({"bad": curves.Curves(TIMES, SLOW[:, 1:])})
    with pytest.raises(InputError, match="no time that every seed"):
        curves.regret_curves({"bad": curves.Curves(TIMES, np.full((2, len(TIMES)), np.nan))})


def test_mean_gaps_add_up_to_the_regret():
    for points in (60, 7, 1):
        gap = curves.mean_gap(curves.Curves(TIMES, SLOW), points)
        assert len(gap.times) <= points
        assert gap.times[-1] == TIMES[-1]
        assert np.allclose((gap.values * np.diff(gap.times, prepend=0)).sum(1), SLOW[:, -1])


def test_the_gap_of_a_run_is_that_of_the_epoch_of_each_time():
    run = ravi.run("ravi-ucb,scale=0.01,step_scale=30", "riverswim/4", 600, 3, points=600)
    gap = curves.gap_of(run)
    assert np.allclose(np.cumsum(gap.values, axis=1), run.regret_curve, atol=1e-9)
    drawn = curves.gap_curves({"it": gap})
    assert np.allclose(lines(drawn.figure.axes[0])["it"].get_ydata(), gap.values.mean(0))


# How it looks.


def test_lines_of_similar_grey_differ_in_dash_or_marker():
    for one, other in combinations([style.look(index) for index in range(len(style.COLOURS))], 2):
        assert abs(grey(one.colour) - grey(other.colour)) > 0.1 or (one.dash, one.marker) != (other.dash, other.marker)
        assert one.marker != other.marker  # whatever the grey
    assert max(map(grey, style.COLOURS)) < 0.7  # on white paper


def test_the_map_of_heat_gets_lighter_with_the_value():
    shades = [grey(matplotlib.colors.to_hex(matplotlib.colormaps[style.MAP](x))) for x in np.linspace(0, 1, 64)]
    assert (np.diff(shades) > 0).all()


def test_names_at_the_ends_of_lines_are_apart_in_order_and_say_the_last_value(tmp_path):
    many = {f"learner {i}": curves.Curves(TIMES, 100 * SLOW * (1 + 0.01 * (i // 2))) for i in range(6)}
    figure = curves.regret_curves(many, logarithmic=True, named=True, width=style.DOUBLE).figure
    figure.draw_without_rendering()
    texts = figure.axes[0].texts
    last = {label: held.values[:, -1].mean() for label, held in many.items()}
    assert [text.get_text() for text in texts] == [f"{label}  {number(value)}" for label, value in last.items()]
    boxes = [matplotlib.text.Text.get_window_extent(text) for text in texts]
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))
    wide, high = figure.get_size_inches() * figure.dpi
    assert all(0 <= box.x0 <= box.x1 <= wide and 0 <= box.y0 <= box.y1 <= high for box in boxes)
    assert not figure.legends


# Files.


def opens(path) -> bool:
    head = path.read_bytes()
    if path.suffix == ".svg":
        return ElementTree.fromstring(head).tag.endswith("svg")
    if path.suffix == ".png":
        return matplotlib.image.imread(path).ndim == 3
    return head.startswith(b"%PDF") and head.rstrip().endswith(b"%%EOF")


def test_every_format_opens_and_the_bytes_are_the_same_each_time(tmp_path):
    first = curves.regret_curves(two(), title="γ = 0.9").save(tmp_path / "a", style.FORMATS)
    again = curves.regret_curves(two(), title="γ = 0.9").save(tmp_path / "b", style.FORMATS)
    assert [path.name for path in first] == ["a.pdf", "a.svg", "a.png"]
    for one, other in zip(first, again, strict=True):
        assert opens(one)
        assert one.read_bytes() == other.read_bytes()
        assert b"CreationDate" not in one.read_bytes()
        assert b"dc:date" not in one.read_bytes()


def test_letters_in_a_pdf_are_embedded_as_type_42(tmp_path):
    (path,) = curves.regret_curves(two()).save(tmp_path / "a", "pdf")
    held = path.read_bytes()
    assert b"/FontFile2" in held  # TrueType
    assert b"/Type3" not in held


def test_an_unknown_format_and_a_missing_folder_are_told(tmp_path):
    drawn = curves.regret_curves(two())
    with pytest.raises(InputError, match=r"'pfd'\. Did you mean pdf"):
        drawn.save(tmp_path / "a", ["pfd"])
    with pytest.raises(InputError, match="cannot write the figure"):
        drawn.save(tmp_path / "nowhere" / "a", ["png"])


def test_no_screen_no_pyplot_and_no_settings_are_left_behind(tmp_path):
    code = (
        "import sys, matplotlib, numpy as np\n"
        "before = matplotlib.rcParams.copy()\n"
        "from ravi.lab.report.curves import Curves, regret_curves\n"
        f"regret_curves({{'it': Curves(np.arange(1, 9), np.ones((2, 8)))}}).save(r'{tmp_path / 'a'}', ['pdf', 'png'])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert dict.__eq__(matplotlib.rcParams, before)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PATH": "", "HOME": str(tmp_path)})


def test_matplotlib_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"ravi\[figures\]"):
        curves.regret_curves(two())


# The entry.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Both columns; a section with one learner and one seed."""
    place = tmp_path_factory.mktemp("suite")
    suite = {
        "name": "small", "steps": 400, "seeds": 3, "points": 20, "columns": ["theory", "tuned"],
        "tuning": {"budget": 3, "seeds": 2},
        "sections": [
            {"name": "river", "mdps": ["riverswim/4"], "learners": ["ravi-ucb", "psrl", "uniform"]},
            {"name": "mix", "mdps": ["hypercube/2", "hypercube/3"], "learners": ["ravi-ucb/mixture"], "seeds": 1,
             "columns": ["theory"]},
        ],
    }  # fmt: skip
    with in_this_process():
        ravi.run_suite(suite, place / "out", workers=1)
    return place / "out"


@pytest.fixture(scope="module")
def every(folder, tmp_path_factory):
    """Every figure of the folder, drawn by this process."""
    return written(folder, tmp_path_factory.mktemp("every") / "figures", ("svg",), ["all"])


def test_a_folder_gives_every_figure_that_it_holds(every):
    files = every
    assert {kind_of(path.stem) for path in files} == {*KINDS} - {"maps", "theta"}
    assert len(files) == len({*files})
    assert all(opens(path) for path in files)
    assert {*files} == {*files[0].parent.iterdir()}


def test_only_the_paper_s_constants_have_the_paper_s_bound(folder):
    panels = {(group.panel.section, group.column): group for group in figures.groups(ravi.results(folder))}
    rows = panels["river", "tuned"].rows.values()
    assert [*panels["river", "tuned"].remarks.values()] == [{"best": "★", "tie": "≈"}.get(row.rank, "") for row in rows]
    assert "tabular bound" in figures.theory(panels["river", "theory"])
    assert "tabular bound" not in figures.theory(panels["river", "tuned"])
    times, bound = figures.theory(panels["mix", "theory"])["mixture bound"]
    mdp = ravi.mdp("hypercube/3")
    expected = ravi.theory.mixture.corrected(mdp.horizon, 3, mdp.actions, 400, bound=mdp.bound).total
    assert (times[-1], bound[-1]) == (400, pytest.approx(expected))


def test_the_five_that_tell_the_story_are_drawn_unless_others_are_asked_for(folder, every, tmp_path):
    """By several processes the same bytes."""
    alone = [path for path in every if kind_of(path.stem) in STORY]
    assert {kind_of(path.stem) for path in alone} == {*STORY}
    assert len(STORY) == 5
    many = written(folder, tmp_path / "many", ("svg",), workers=2)
    assert [path.name for path in many] == [path.name for path in alone]
    assert [path.read_bytes() for path in many] == [path.read_bytes() for path in alone]
    asked = written(folder, tmp_path / "asked", ("svg",), ["tuning", "ranks"])
    assert {kind_of(path.stem) for path in asked} == {"tuning", "ranks"}
    with pytest.raises(InputError, match=r"'ranksy'\. Did you mean ranks"):
        written(folder, tmp_path / "none", ("svg",), ["ranksy"])


def test_ranks_are_means_with_intervals_the_least_on_top():
    regret = {"slow": SLOW[:, -1], "fast": SLOW[:, -1] / 3, "none": np.zeros(6)}
    drawn = scatter.ranks(regret)
    ax = drawn.figure.axes[0]
    assert drawn.data["order"] == ["none", "fast", "slow"]
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["none", "0", "fast", number(SLOW[:, -1].mean() / 3), "slow", number(SLOW[:, -1].mean())]
    assert ax.get_xscale() == "log"
    assert ax.yaxis_inverted()
    held = interval(SLOW[:, -1])
    assert drawn.data["intervals"]["slow"] == held
    ends, dot = ax.get_lines()[-2:]
    assert [*ends.get_xdata()] == [held.low, held.high]
    assert dot.get_xdata()[0] == held.estimate
    texts = [text.get_text() for text in scatter.ranks({"a": SLOW[:, -1], "b": 2 * SLOW[:, -1]}).figure.axes[0].texts]
    assert texts[3].endswith("×2.00")


def test_the_index_shows_every_figure_and_links_every_file(tmp_path):
    names = ("regret-log-a<b>-T1", "gap-a-T1")
    paths = [tmp_path / f"{name}.{kind}" for name in names for kind in ("pdf", "png")]
    page = index_page(tmp_path, paths).read_text()
    assert page.index(KINDS["regret-log"]) < page.index(KINDS["gap"])
    assert page.count("<img") == 2
    assert page.count("<a href") == 4
    assert "a<b>" not in page
    assert "pareto" not in page


def test_the_figures_of_a_file_are_drawn_beside_it(tmp_path, monkeypatch, capsys):
    ravi.run("psrl", "one-state", 5, 1).save(tmp_path / "it.run")
    monkeypatch.chdir(tmp_path)
    show.figures(Path("it.run"), formats="svg")
    printed = capsys.readouterr().out.splitlines()
    assert printed
    assert sorted(printed) == sorted(map(str, Path("it-figures").iterdir()))


def test_one_seed_has_no_band_and_times_that_a_stopped_run_has_not_come_to_are_left_out():
    values = SLOW.copy()
    values[2, 30:] = np.nan
    drawn = curves.regret_curves({"one": curves.Curves(TIMES, SLOW[:1]), "stopped": curves.Curves(TIMES, values)})
    (ax,) = drawn.figure.axes
    assert len(ax.collections) == 1
    assert np.array_equal(lines(ax)["one"].get_ydata(), SLOW[0])
    assert np.array_equal(lines(ax)["stopped"].get_xdata(), TIMES[:30])
    nothing = {"optimum": curves.Curves(TIMES, np.zeros((2, len(TIMES))))}
    for zero in (curves.gap_curves(nothing), curves.regret_curves(nothing, logarithmic=True)):
        assert zero.figure.axes[0].get_yscale() == "linear"  # 0 has no logarithm


def test_bounds_stand_behind_from_where_the_curves_begin_and_those_out_of_reach_leave_linear_axes():
    bounds = {"near": (np.arange(1.0, 500), np.arange(1.0, 500) ** 0.5), "far": (TIMES, np.full(len(TIMES), 1e6))}
    linear, both = (curves.regret_curves(two(), bounds=bounds, logarithmic=log) for log in (False, True))
    assert [*linear.data["bounds"]] == ["near"]
    drawn = lines(both.figure.axes[0])
    assert np.array_equal(drawn["near"].get_ydata(), np.arange(10.0, 500) ** 0.5)
    assert np.array_equal(drawn["far"].get_ydata(), bounds["far"][1])
    assert drawn["far"].get_zorder() < drawn["slow"].get_zorder()
    assert both.figure.axes[0].get_xscale() == both.figure.axes[0].get_yscale() == "log"


LONG = "a learner whose name says everything that there is to say about it, in full"


@pytest.mark.parametrize("width", [style.SINGLE, style.DOUBLE])
@pytest.mark.parametrize("names", [["it"], [LONG, "psrl,support=on,scale=0.01"], [f"learner {i}" for i in range(12)]])
def test_nothing_is_cut_off_whatever_the_title_and_the_names(names, width):
    many = {name: curves.Curves(TIMES, SLOW * (i + 1)) for i, name in enumerate(names)}
    last = {name: held.values[:, -1] for name, held in many.items()}
    seeds = {name: {"m": np.arange(len(values))} for name, values in last.items()}
    scored = Scores({name: {"m": values} for name, values in last.items()}, seeds, tuple(names), ("m",))
    title = "/a/long/path/of/a/file/that/holds/the/mdp/of/which/the/figure/is.npz, T = 1,000,000, tuned"
    drawn = [
        curves.regret_curves(many, title=title, width=width), curves.gap_curves(many, title=title),
        scatter.ranks(last, remarks={names[0]: "★"}, title=title),
        scatter.pareto({name: (x, x) for name, x in last.items()}, title=title),
        matrix.improvements(scored, title=title),
    ]  # fmt: skip
    for figure in (one.figure for one in drawn):
        figure.draw_without_rendering()
        box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
        assert -0.01 <= box.x0 <= box.x1 <= wide + 0.01
        assert -0.01 <= box.y0 <= box.y1 <= high + 0.01
        assert figure.axes[0].get_position().width > 0.33  # of the figure's width
        assert all(7 <= text.get_fontsize() <= 9 for text in figure.findobj(matplotlib.text.Text) if text.get_text())
        for legend in figure.legends:
            assert legend.get_window_extent().y1 <= figure.axes[0].get_tightbbox().y0 + 1
    assert drawn[0].figure.get_size_inches()[0] == width
    assert [text.get_text().replace("\n", " ") for text in drawn[0].figure.legends[0].get_texts()] == names


@pytest.mark.parametrize("values", [[9370.0, 9395.0, 14419.0], [5.0], [231.131584941, 231.1315849410001]])
def test_a_narrow_logarithmic_axis_has_few_names_that_do_not_overlap(values):
    """Warnings are errors here: an axis shows more than rounding."""
    axes = scatter.ranks({str(place): [value, value] for place, value in enumerate(values)}).figure.axes[0]
    axes.figure.canvas.draw()
    low, high = axes.get_xlim()
    assert high > 1.1 * low
    shown = (text for text in axes.get_xticklabels(which="both") if low <= text.get_position()[0] <= high)
    boxes = sorted((text.get_window_extent() for text in shown if text.get_text()), key=lambda box: box.x0)
    assert len(boxes) <= 5
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_the_demo_draws_all_its_learners(tmp_path, monkeypatch):
    kept, original = [], curves.regret_curves
    monkeypatch.setattr(curves, "regret_curves", lambda *held, **how: kept.append(original(*held, **how)) or kept[-1])
    assert opens(demo._figure(ravi.results(made(tmp_path / "out", demo.suite(2000, 3))), tmp_path))
    (ax,) = kept[0].figure.axes
    both = ("RAVI-UCB", "RAVI-UCB, mixture", "UCRL2")
    tuned = {f"{label}, {column}" for label in both for column in ("theory", "tuned")}
    named = {text.get_text().rsplit("  ", 1)[0] for text in ax.texts}
    assert named == tuned | {"RAVI-UCB+", "RAVI-KL", "PSRL", "uniform policy"}


HALF = {"name": "one", "mdps": ["riverswim/4", "riverswim/5"], "learners": ["psrl", "uniform"], "seeds": 3, "steps": 20}


def test_failed_and_missing_runs_leave_the_rest(tmp_path, capsys):
    """Psrl failed once, uniform has not run on the second MDP; the command names every file that it wrote."""
    place = made(
        tmp_path / "out", {"name": "half", "points": 5, "sections": [HALF]},
        skips=lambda entry, _: entry.label == "uniform" and entry.mdp == "riverswim/5",
        fails=lambda entry, seed: "Error" if entry.label == "psrl" and seed == 1 else None,
    )  # fmt: skip
    found = ravi.results(place)
    first, second = figures.groups(found)
    assert {label: len(held.values) for label, held in first.curves.items()} == {"psrl": 2, "uniform": 3}
    assert (len(first.rows["psrl"].seconds), [*second.curves]) == (2, ["psrl"])
    kinds = {kind_of(name): draw() for name, draw in figures.drawn(found)}
    assert kinds.keys() == {*STORY, "regret", "differences", "profiles"}
    assert kinds["profiles"].data["learners"] == ["psrl"]
    show.figures(place, out=tmp_path / "figures", formats="svg", kinds="profiles,improvement", workers=1)
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(map(str, (tmp_path / "figures").iterdir()))
    empty = made(tmp_path / "empty", {"name": "none", "sections": [HALF]}, skips=lambda *_: True)
    assert written(empty, tmp_path / "nothing") == []


def test_a_run_gives_the_figures_that_it_holds_also_from_a_file(tmp_path):
    run = ravi.run("ravi-ucb/mixture", "riverswim/mixture/4,discount=0.8", 300, 2)
    assert figures.mdp_of(run).digest == run.mdp_digest
    assert figures.mdp_of(replace(run, mdp_digest="0")) is None
    assert figures.mdp_of(replace(run, mdp="nothing of the kind")) is None
    run.save(tmp_path / "it.run")
    first, again = (written(one, tmp_path / str(k), ("svg",)) for k, one in enumerate((run, tmp_path / "it.run")))
    assert [(path.name, path.read_bytes()) for path in first] == [(path.name, path.read_bytes()) for path in again]
    assert {kind_of(path.stem) for path in first} == {"regret", "regret-log", "gap", "maps", "theta"}
    tabular = figures.drawn(ravi.run("ravi-ucb", "riverswim/4", 1, 1))
    assert {kind_of(name) for name, draw in tabular if draw()} == {"regret", "regret-log", "gap", "maps"}
    unmeasured = figures.drawn(ravi.run("psrl", "one-state", 5, 1, measured=False))
    assert {kind_of(name) for name, _ in unmeasured} == {"maps"}
