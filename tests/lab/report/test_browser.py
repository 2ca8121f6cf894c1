"""The page in a browser: no error, no request, every control works by mouse and keyboard, on a desk and on a phone."""

import re

import pytest

from ravi.lab.report.page import report
from tests.lab.report.browser import browser, drawn, opened
from tests.lab.report.folders import made

EVIL = "<img src=x onerror=alert(1)></script><script>alert(1)</script>"
LEARNERS = ["ravi-ucb", "psrl", "ucrl2", {"id": "mbie-eb", "label": EVIL}, "uniform"]
SUITE = {
    "name": "seen", "steps": 2000, "seeds": 6, "points": 40, "columns": ["theory", "tuned"],
    "sections": [{"name": "main", "mdps": ["riverswim/6", "trap"], "learners": LEARNERS}],
}  # fmt: skip
RANKS = "figure[data-ranks]"
FIRST = "figure[data-panel='section-1-mdp-1']"
PROFILE = "figure[data-profile='section-1-tuned']"


@pytest.fixture(scope="module")
def started():
    with browser() as held:
        yield held


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("seen"), SUITE)


@pytest.fixture(scope="module")
def path(folder):
    return report(folder)


@pytest.fixture(scope="module")
def desk(started, path):
    """One page for those tests that leave it as they found it."""
    with opened(started, path) as page:
        drawn(page, FIRST)
        yield page


def names(page, figure=FIRST):
    """The lines that are drawn, without their bands."""
    return page.evaluate(
        "q => document.querySelector(q + ' .plot').data.filter(one => !one.fill).map(one => one.name)", figure
    )


def axes(page, figure=FIRST):
    return page.evaluate(
        "q => { const l = document.querySelector(q + ' .plot')._fullLayout; return [l.xaxis.type, l.yaxis.type] }",
        figure,
    )


def test_the_page_loads_without_errors_and_without_a_request(started, path):
    with opened(started, path) as page:
        for figure in page.locator("figure.chart").all():
            figure.scroll_into_view_if_needed()
        page.wait_for_function(
            "() => [...document.querySelectorAll('figure.chart')].every(f => f.querySelector('.main-svg'))"
        )
        assert page.errors == []
        assert page.requests == []


def test_text_from_the_folder_runs_nothing(desk):
    assert desk.errors == []  # a dialog would be among them
    assert desk.locator("img").count() == 0
    assert desk.get_by_role("checkbox", name=EVIL).count() == 4  # two MDPs, two profiles
    assert EVIL in desk.locator(f"{FIRST} fieldset.learners").inner_text()


def test_ticking_a_learner_changes_the_figure(desk):
    before = names(desk)
    assert len(before) == len(LEARNERS)
    box = desk.locator(FIRST).get_by_role("checkbox", name="psrl", exact=True)
    box.uncheck()
    assert names(desk) == [name for name in before if name != "psrl"]
    box.check()
    assert names(desk) == before
    desk.locator(FIRST).get_by_role("button", name="None").click()
    assert names(desk) == []
    assert "No learner is ticked" in desk.locator(f"{FIRST} .plot").text_content()
    desk.locator(FIRST).get_by_role("button", name="All").click()
    assert names(desk) == before


def test_columns_bands_and_views_change_the_figure(desk):
    figure = desk.locator(FIRST)
    traces = "q => document.querySelector(q + ' .plot').data.length"
    with_bands = desk.evaluate(traces, FIRST)
    figure.get_by_role("checkbox", name="bands").uncheck()
    assert desk.evaluate(traces, FIRST) == len(LEARNERS) == with_bands / 2
    figure.get_by_role("checkbox", name="bands").check()
    last = "q => document.querySelector(q + ' .plot').data.find(one => one.name === 'ravi-ucb').y.at(-1)"
    tuned = desk.evaluate(last, FIRST)
    figure.get_by_role("radio", name="theory").check()
    assert desk.evaluate(last, FIRST) > 5 * tuned
    figure.get_by_role("radio", name="both").check()
    assert len(names(desk)) == 2 * len(LEARNERS)
    figure.get_by_role("radio", name="tuned", exact=True).check()
    figure.get_by_role("radio", name="seeds at T").check()
    points = "q => document.querySelector(q + ' .plot').data.map(one => one.x.length)"
    assert desk.evaluate(points, FIRST) == [6] * len(LEARNERS)
    figure.get_by_role("radio", name="regret and time").check()
    assert desk.evaluate(points, FIRST) == [1] * len(LEARNERS)
    figure.get_by_role("radio", name="curves").check()
    assert desk.errors == []


def test_learners_are_ranked_on_a_log_axis_where_it_is_asked_for(desk):
    figure = drawn(desk, RANKS)
    assert axes(desk, RANKS) == ["log", "linear"]
    rows = "q => document.querySelector(q + ' .plot').layout.yaxis.ticktext.map(one => one.split('…')[0])"
    dots = """q => document.querySelector(q + ' .plot').data.filter(one => one.marker.symbol === 'square')
        .sort((a, b) => a.y[0] - b.y[0]).map(one => [one.x[0], one.error_x.array[0] >= 0])"""
    seen = []
    for where in ("all 2 MDPs", "riverswim/6", "trap"):
        figure.get_by_role("combobox", name="Where").select_option(where)
        means = desk.evaluate(dots, RANKS)
        assert means == sorted(means)
        assert len(means) == len(LEARNERS)
        assert desk.locator(f"{RANKS} .annotation").count() == len(LEARNERS)
        assert desk.locator(f"{RANKS} .annotation", has_text="★").count() == 1
        seen.append(desk.evaluate(rows, RANKS))
    assert len({tuple(order) for order in seen}) > 1
    figure.get_by_role("combobox", name="Where").select_option("all 2 MDPs")
    assert desk.errors == []


def test_the_answer_is_on_the_first_screen(started, path):
    with opened(started, path) as page:
        page.wait_for_selector(f"{RANKS} .main-svg")
        assert page.locator(f"{RANKS} .plot").bounding_box()["y"] < 600
        assert (
            page.evaluate(
                "q => { const b = document.querySelector(q).getBoundingClientRect(); return b.bottom }", RANKS
            )
            < 900
        )


def test_a_hover_tells_value_interval_and_seeds(desk):
    plot = desk.locator(f"{FIRST} .plot")
    plot.scroll_into_view_if_needed()
    spot = desk.evaluate(
        """q => { const plot = document.querySelector(q + ' .plot'), layout = plot._fullLayout;
        const line = plot.data.find(one => one.name === 'uniform'), box = plot.getBoundingClientRect();
        const at = (axis, value) => axis._offset + axis.d2p(value);
        return [box.left + at(layout.xaxis, line.x[20]), box.top + at(layout.yaxis, line.y[20])] }""",
        FIRST,
    )
    desk.mouse.move(spot[0] - 3, spot[1])
    desk.mouse.move(*spot)
    desk.wait_for_selector(f"{FIRST} .hoverlayer .hovertext")
    text = desk.locator(f"{FIRST} .hoverlayer").text_content()
    assert "uniform" in text
    assert re.search(r"regret [\d,.]+ \[[\d,.]+, [\d,.]+\]", text)
    assert "6 seeds" in text


def test_the_keyboard_is_enough(started, path):
    with opened(started, path) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.evaluate("getComputedStyle(document.activeElement).left") == "0px"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "theme"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        drawn(page, FIRST)
        before = names(page)
        page.locator(FIRST).get_by_role("checkbox", name="ravi-ucb", exact=True).focus()
        page.keyboard.press("Space")
        assert names(page) == before[1:]
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.dataset.label") == "psrl"
        page.locator(FIRST).get_by_role("radio", name="tuned", exact=True).focus()
        page.keyboard.press("ArrowRight")
        assert len(names(page)) == 2 * len(before[1:])
        assert "8 lines are shown" in page.locator(f"{FIRST} [role=status]").text_content()
        table = page.locator("details.numbers").first
        table.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert table.evaluate("one => one.open")
        assert page.errors == []


def test_dark_follows_the_system_and_the_button(started, path):
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(started, path, scheme="dark") as page:
        assert page.evaluate(ground) == "rgb(20, 23, 27)"
        button = page.locator("#theme")
        assert button.text_content() == "Light"  # what it does
        drawn(page, FIRST)
        line = f'document.querySelector("{FIRST} .plot").data.at(-1).line.color'
        before = page.evaluate(line)
        button.click()
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        assert button.text_content() == "Dark"
        assert page.evaluate(line) != before


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_wider_than_a_phone(started, path, width):
    with opened(started, path, width=width, height=740) as page:
        for figure in page.locator("figure.chart").all():
            figure.scroll_into_view_if_needed()
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = page.evaluate(
            """() => [...document.querySelectorAll('main p, li, figcaption, .pick, .plot, caption > span, h1, h2, h3')]
            .filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.textContent)"""
        )
        assert wide == []
        assert page.errors == []


def test_a_table_that_is_cut_says_so_and_the_mean_regret_is_seen_on_a_phone(started, path):
    with opened(started, path, width=390, height=844) as page:
        table = page.locator("#section-1-mdp-1 .scroll").first
        table.scroll_into_view_if_needed()
        page.wait_for_function("one => one.classList.contains('more')", arg=table.element_handle())
        means = table.locator("tbody .first")
        assert all(one.bounding_box()["x"] + one.bounding_box()["width"] <= 390 for one in means.all())
        table.evaluate("one => one.scrollLeft = one.scrollWidth")
        page.wait_for_function("one => !one.classList.contains('more')", arg=table.element_handle())


def test_a_print_holds_every_figure_in_light(started, path, tmp_path):
    with opened(started, path, scheme="dark") as page:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("[...document.querySelectorAll('figure.chart')].every(f => f.querySelector('.main-svg'))")
        assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        page.emulate_media(media="print")
        cut = """() => [...document.querySelectorAll('figure.chart .plot')].filter((plot) => {
            const [outer, inner] = [plot, plot.querySelector('.main-svg')].map((one) => one.getBoundingClientRect());
            return inner.bottom > outer.bottom + 1 || inner.width > 690 }).length"""
        assert page.evaluate(cut) == 0  # no axis lies over what follows, or beyond the paper
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") is None
        page.pdf(path=tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").stat().st_size > 20_000
        assert page.errors == []


@pytest.mark.parametrize(
    "how",
    [
        {"skips": lambda entry, seed: True}, {"fails": lambda entry, seed: "ValueError: no"},
        {"skips": lambda entry, seed: seed > 0},
    ],
    ids=["nothing finished", "all failed", "one seed"],
)  # fmt: skip
def test_little_is_shown_without_errors(started, tmp_path, how):
    with opened(started, report(made(tmp_path, SUITE, **how)), width=360) as page:
        for figure in page.locator("figure.chart").all():
            figure.scroll_into_view_if_needed()
        page.wait_for_timeout(100)
        assert page.errors == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_axes_are_logarithmic_where_they_are_asked_to_be_in_every_view(desk):
    """Regret is the height of curves, and the width of seeds at T."""
    figure = desk.locator(FIRST)
    seen = [axes(desk)]
    for name in ("log regret", "log time"):
        figure.get_by_role("checkbox", name=name).check()
        seen.append(axes(desk))
    figure.get_by_role("checkbox", name="log time").uncheck()
    for view in ("seeds at T", "regret and time", "curves"):
        figure.get_by_role("radio", name=view).check()
        seen.append(axes(desk))
    figure.get_by_role("checkbox", name="log regret").uncheck()
    linear, log = "linear", "log"
    assert seen == [[linear] * 2, [linear, log], [log] * 2, [log, linear], [linear, log], [linear, log]]
