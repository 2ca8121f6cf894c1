"""Figures show the data that they are given, in every format, the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import ravi
from ravi.cli import show
from ravi.display import style
from ravi.display.numbers import number
from ravi.lab import demo
from ravi.lab.report import curves, figures, scatter
from ravi.lab.report.figures import KINDS, STORY, index_page, kind_of
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


def test_bounds_stand_behind_and_those_out_of_reach_leave_linear_axes():
    bounds = {"near": (TIMES, 2 * TIMES.astype(float) ** 0.5), "far": (TIMES, 1e6 * np.ones(len(TIMES)))}
    linear = curves.regret_curves(two(), bounds=bounds)
    both = curves.regret_curves(two(), bounds=bounds, logarithmic=True)
    assert [*linear.data["bounds"]] == ["near"]
    drawn = lines(both.figure.axes[0])
    for name, (_, values) in bounds.items():
        assert np.array_equal(drawn[name].get_ydata(), values)
        assert drawn[name].get_zorder() < drawn["slow"].get_zorder()
    assert both.figure.axes[0].get_xscale() == both.figure.axes[0].get_yscale() == "log"


def test_bounds_begin_where_the_curves_do_on_logarithmic_axes():
    bounds = {"wide": (np.arange(1.0, 500), np.arange(1.0, 500))}
    drawn = curves.regret_curves(two(), bounds=bounds, logarithmic=True)
    assert lines(drawn.figure.axes[0])["wide"].get_xdata()[0] == TIMES[0]


def test_one_seed_has_no_band():
    drawn = curves.regret_curves({"one": curves.Curves(TIMES, SLOW[:1])})
    assert not drawn.figure.axes[0].collections
    assert np.array_equal(lines(drawn.figure.axes[0])["one"].get_ydata(), SLOW[0])


def test_times_that_a_stopped_run_has_not_come_to_are_left_out():
    values = SLOW.copy()
    values[2, 30:] = np.nan
    drawn = curves.regret_curves({"stopped": curves.Curves(TIMES, values)})
    assert np.array_equal(lines(drawn.figure.axes[0])["stopped"].get_xdata(), TIMES[:30])


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


def test_a_gap_of_zero_is_drawn_without_a_logarithm():
    drawn = curves.gap_curves({"optimum": curves.Curves(TIMES, np.zeros((2, len(TIMES))))})
    assert drawn.figure.axes[0].get_yscale() == "linear"


# How it looks.


def test_the_first_lines_differ_in_everything_but_grey_and_many_more_in_something():
    first = [style.look(index) for index in range(len(style.DASHES))]
    for one, other in combinations(first, 2):
        assert one.colour != other.colour
        assert one.dash != other.dash
        assert one.marker != other.marker
    assert len({str(style.look(index)) for index in range(280)}) == 280


def test_lines_of_similar_grey_differ_in_dash_or_marker():
    for one, other in combinations([style.look(index) for index in range(len(style.COLOURS))], 2):
        assert abs(grey(one.colour) - grey(other.colour)) > 0.1 or (one.dash, one.marker) != (other.dash, other.marker)
        assert one.marker != other.marker  # whatever the grey
    assert max(map(grey, style.COLOURS)) < 0.7  # on white paper


def test_the_map_of_heat_gets_lighter_with_the_value():
    shades = [grey(matplotlib.colors.to_hex(matplotlib.colormaps[style.MAP](x))) for x in np.linspace(0, 1, 64)]
    assert (np.diff(shades) > 0).all()


@pytest.mark.parametrize("width", [style.SINGLE, style.DOUBLE])
def test_figures_are_as_wide_as_a_column_with_letters_of_7_to_9_points(width, tmp_path):
    drawn = curves.regret_curves(two(), title="mdp", width=width)
    drawn.save(tmp_path / "it", ["png"])
    assert drawn.figure.get_size_inches()[0] == width
    for text in drawn.figure.findobj(matplotlib.text.Text):
        assert not text.get_text() or 7 <= text.get_fontsize() <= 9


@pytest.mark.parametrize("count", [1, 5, 12])
def test_nothing_is_cut_off_and_the_legend_covers_no_axes(count, tmp_path):
    many = {f"learner number {i}": curves.Curves(TIMES, SLOW * (i + 1)) for i in range(count)}
    figure = curves.regret_curves(many, title="riverswim/6, tuned").figure
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    wide, high = figure.get_size_inches()
    assert box.x0 >= -0.01
    assert box.y0 >= -0.01
    assert box.x1 <= wide + 0.01
    assert box.y1 <= high + 0.01
    legend = figure.legends[0].get_window_extent()
    assert legend.y1 <= figure.axes[0].get_tightbbox().y0 + 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*many]


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


def test_axes_say_what_they_show_and_in_which_unit():
    ax = curves.regret_curves(two(), title="riverswim/6").figure.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step t", "regret (sum of gaps)")
    assert ax.figure.get_suptitle() == "riverswim/6"
    assert curves.gap_curves(two()).figure.axes[0].get_ylabel() == "gap (reward per step)"


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


def test_the_demo_draws_all_its_learners_on_logarithmic_axes(tmp_path, monkeypatch):
    kept, original = [], curves.regret_curves
    monkeypatch.setattr(curves, "regret_curves", lambda *held, **how: kept.append(original(*held, **how)) or kept[-1])
    assert opens(demo._figure(ravi.results(made(tmp_path / "out", demo.suite(2000, 3))), tmp_path))
    (ax,) = kept[0].figure.axes
    assert ax.get_xscale() == ax.get_yscale() == "log"
    both = {
        f"{label}, {column}" for label in ("RAVI-UCB", "RAVI-UCB, mixture", "UCRL2") for column in ("theory", "tuned")
    }
    named = {text.get_text().rsplit("  ", 1)[0] for text in ax.texts}
    assert named == both | {"RAVI-UCB+", "RAVI-KL", "PSRL", "uniform policy"}


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


def test_what_stands_in_the_figures_is_what_stands_in_the_folder(folder):
    found = ravi.results(folder)
    drawn = dict(figures.drawn(found))["regret-river-riverswim-4-T400-tuned"]()
    for label in ("ravi-ucb", "psrl", "uniform"):
        times, _, values = found.curves(label=label, column="tuned", section="river")
        line = lines(drawn.figure.axes[0])[label]
        assert np.array_equal(line.get_xdata(), times)
        assert np.allclose(line.get_ydata(), values.mean(0))


def test_only_the_paper_s_constants_have_the_paper_s_bound(folder):
    panels = {(group.panel.section, group.column): group for group in figures.groups(ravi.results(folder))}
    assert "tabular bound" in figures.theory(panels["river", "theory"])
    assert "tabular bound" not in figures.theory(panels["river", "tuned"])
    times, bound = figures.theory(panels["mix", "theory"])["mixture bound"]
    mdp = ravi.mdp("hypercube/3")
    expected = ravi.theory.mixture.corrected(mdp.horizon, 3, mdp.actions, 400, bound=mdp.bound).total
    assert (times[-1], bound[-1]) == (400, pytest.approx(expected))


def test_failed_and_missing_runs_leave_the_rest(folder, tmp_path):
    found = ravi.results(folder)
    labels, settings = (found.entries[name].to_pylist() for name in ("label", "setting"))
    gone = dict(zip(labels, settings, strict=True))
    runs = zip(found.runs["setting"].to_pylist(), found.runs["seed"].to_pylist(), strict=True)
    fails = ["learner" if run[0] == gone["uniform"] or run == (gone["psrl"], 1) else None for run in runs]
    found.runs = found.runs.set_column(
        found.runs.column_names.index("failure"), "failure", pa.array(fails, pa.string())
    )
    group = figures.groups(found)[0]
    assert {label: len(held.values) for label, held in group.curves.items()} == {"ravi-ucb": 3, "psrl": 2}
    assert len(group.rows["psrl"].seconds) == 2
    for _, draw in figures.drawn(found):
        draw()


def can_be(draw) -> bool:
    try:
        draw()
    except InputError:
        return False
    return True


@pytest.mark.parametrize("whole", [("psrl",), ()])
def test_learners_that_have_not_run_everywhere_leave_the_other_figures(whole, tmp_path, capsys):
    """None: no performance profile. The command names every file that it wrote."""
    mdps = ["riverswim/4", "riverswim/5"]
    section = {"name": "one", "mdps": mdps, "learners": ["psrl", "uniform"], "steps": 20, "seeds": 2, "points": 5}
    place = made(
        tmp_path / "out",
        {"name": "half", "sections": [section]},
        skips=lambda entry, _: entry.label not in whole and entry.mdp == mdps[entry.label == "psrl"],
    )
    show.figures(place, tmp_path / "figures", "svg", "profiles,improvement", 1)
    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed) == sorted(map(str, (tmp_path / "figures").iterdir()))
    written = {kind_of(path.stem) for path in (tmp_path / "figures").glob("*.svg")}
    assert written == ({"profiles", "improvement"} if whole else {"improvement"})
    kinds = {kind_of(name) for name, draw in figures.drawn(ravi.results(place)) if can_be(draw)}
    drawn = {*STORY, "regret", "differences"}
    assert kinds == (drawn | {"profiles"} if whole else drawn)


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


def test_a_narrow_logarithmic_axis_has_few_names_that_do_not_overlap():
    axes = scatter.ranks({"a": [9370.0, 9371], "b": [9395.0, 9396], "c": [14419.0, 14420]}).figure.axes[0]
    axes.figure.canvas.draw()
    low, high = axes.get_xlim()
    named = [
        text for text in axes.get_xticklabels(which="both") if text.get_text() and low <= text.get_position()[0] <= high
    ]
    boxes = sorted((text.get_window_extent() for text in named), key=lambda box: box.x0)
    assert 2 <= len(boxes) <= 4
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_the_index_shows_every_figure_and_links_every_file(tmp_path):
    names = ("regret-log-a<b>-T1", "gap-a-T1")
    paths = [tmp_path / f"{name}.{kind}" for name in names for kind in ("pdf", "png")]
    page = index_page(tmp_path, paths).read_text()
    assert page.index(KINDS["regret-log"]) < page.index(KINDS["gap"])
    assert page.count("<img") == 2
    assert page.count("<a href") == 4
    assert "a<b>" not in page
    assert "pareto" not in page


def test_files_are_told_as_they_are_written(folder, tmp_path):
    files = figures.each_written(folder, tmp_path / "figures", ("svg",))
    first = next(files)
    assert [*(tmp_path / "figures").iterdir()] == [first]


def test_a_folder_without_runs_gives_no_figures(folder, tmp_path):
    empty = tmp_path / "empty"
    (empty / "parts").mkdir(parents=True)
    (empty / "specification.json").write_text((folder / "specification.json").read_text())
    assert written(empty, tmp_path / "figures") == []


def theta(names):
    return [name for name in names if name.startswith("theta")]


def test_a_run_gives_its_figures_also_from_a_file(tmp_path):
    world = "riverswim/mixture/4,discount=0.8"
    assert not theta(name for name, _ in figures.drawn(ravi.run("ravi-ucb", world, 300, 2)))
    run = ravi.run("ravi-ucb/mixture", world, 300, 2)
    assert figures.mdp_of(run).digest == run.mdp_digest
    run.save(tmp_path / "it.run")
    first = written(run, tmp_path / "a", ("svg",))
    again = written(tmp_path / "it.run", tmp_path / "b", ("svg",))
    assert [path.name for path in first] == [path.name for path in again]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert theta(path.name for path in first)


def test_the_figures_of_a_file_are_drawn_beside_it(tmp_path, monkeypatch, capsys):
    ravi.run("psrl", "one-state", 5, 1).save(tmp_path / "it.run")
    monkeypatch.chdir(tmp_path)
    show.figures(Path("it.run"), None, "svg", None, None)
    printed = capsys.readouterr().out.splitlines()
    assert printed
    assert sorted(printed) == sorted(map(str, Path("it-figures").iterdir()))


def test_a_run_of_one_step_or_without_measures_gives_what_it_has(tmp_path):
    assert written(ravi.run("psrl", "one-state", 1, 1), tmp_path / "a", ("png",))
    files = written(ravi.run("psrl", "one-state", 5, 1, measured=False), tmp_path / "b", ("png",))
    assert [path.name.split("-")[0] for path in files] == ["maps"]


def test_an_mdp_of_another_name_is_not_taken_for_it():
    run = ravi.run("psrl", "riverswim/4", 50, 1)
    assert figures.mdp_of(replace(run, mdp_digest="0")) is None
    assert figures.mdp_of(replace(run, mdp="nothing of the kind")) is None
