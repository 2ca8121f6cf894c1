"""The page: whole, harmless, the same twice, usable without a mouse; made of any folder, however little it holds."""

import json
import os
import re
from html import unescape
from itertools import combinations, pairwise

import numpy as np
import pytest

import ravi
from ravi.display.numbers import decimals, estimate_and_interval, number
from ravi.lab.experiments import parts
from ravi.lab.experiments.results import Results
from ravi.lab.experiments.store import Store
from ravi.lab.report.curves import spread
from ravi.lab.report.page import HERE, charts, report, words
from ravi.lab.report.page.charts import COLOURS, DASHES, LISTED, POINTS, SEEDS, embedded, rounded
from ravi.lab.report.page.content import FAILURES, content, sections
from ravi.lab.report.summary import summary
from ravi.statistics import best, improvement, scores
from ravi.statistics.intervals import interval, stratified
from ravi.statistics.rates import rates
from ravi.validation import InputError
from tests.lab.experiments.stores import created, rows
from tests.lab.report.folders import made
from tests.support.html import Read

EVIL = "<script>alert(1)</script>"
SUITE = {
    "name": "page",
    "title": "A page",
    "steps": 500,
    "seeds": 5,
    "points": 30,
    "columns": ["theory", "tuned"],
    "sections": [
        {
            "name": "both", "remark": "Two & two.", "mdps": ["riverswim/6", "trap"],
            "learners": ["ravi-ucb", "psrl", {"id": "ucrl2", "label": EVIL}, "uniform"],
        }
    ],
}  # fmt: skip


def one(**changed):
    """A suite of one section, by default one learner on one MDP with one seed."""
    section = {"name": "one", "mdps": ["riverswim/4"], "learners": ["ravi-ucb"], **changed}
    return {"name": "one", "steps": 40, "seeds": 1, "points": 10, "columns": ["given"], "sections": [section]}


def shown(found, most=4):
    """An estimate with its interval, as the page has it."""
    return " ".join(estimate_and_interval(*found[:3], most)).strip().replace("-", "−")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("page")
    return made(path, SUITE, fails=lambda entry, seed: f"Error: {EVIL}" if entry.label == EVIL and seed == 3 else None)


@pytest.fixture(scope="module")
def text(folder):
    return report(folder).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def found(folder):
    return content(ravi.results(folder), None)


@pytest.fixture(scope="module")
def page(text):
    return Read(text)


def test_the_page_is_where_it_should_be_and_the_same_twice(folder, text, tmp_path):
    assert (folder / "report.html").read_text(encoding="utf-8") == text
    other = report(folder, tmp_path / "elsewhere.html")
    assert other == tmp_path / "elsewhere.html"
    assert other.read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere.html"]


def test_the_page_asks_for_nothing(page):
    """No address outside the page, and a policy that would refuse one."""
    for tag, attrs, _ in page.tags:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            value = attrs.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, value)
    (policy,) = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    style = (HERE / "page.css").read_text()
    assert "url(" not in style
    assert "@import" not in style


def test_text_from_the_folder_is_harmless(text, page):
    assert EVIL not in text
    assert EVIL in page.words()  # as words: the label, and the error
    assert f"Error: {EVIL}" in page.words()
    scripts = page.of("script")
    assert [script.get("type") for script in scripts] == ["application/json", None, None]
    assert json.loads(page.scripts[0])["labels"].count(EVIL) == 1


def test_embedded_json_cannot_leave_its_element():
    nasty = {"</script><!--": ["&amp;", "<!--", "\u2028"]}
    text = embedded(nasty)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == nasty


def test_a_panel_tells_rank_difference_and_growth(folder, page):
    """The table of the first MDP, cell by cell, computed again from the runs."""
    found = ravi.results(folder)
    _, *rows = page.table("Learner", "Constants", "Mean regret", "More than the best", "Grows as t to the")
    assert [row[1] for row in rows] == ["theory"] * 4 + ["tuned"] * 4
    for column in ("theory", "tuned"):
        mine = [row for row in rows if row[1] == column]
        leader = best(scores(found, column=column), "riverswim/6")
        runs = {label: found.regret(label=label, mdp="riverswim/6", column=column)[1]
                for label in ("ravi-ucb", "psrl", EVIL, "uniform")}  # fmt: skip
        for label, row in zip(sorted(runs, key=lambda label: runs[label].mean()), mine, strict=True):
            assert row[0].startswith(label)
            mean = interval(runs[label])
            mark = "★ best " if label == leader.learner else "≈ tied with the best " if label in leader.ties else ""
            assert row[3] == f"{mark}{shown(mean)}"
            places = decimals(mean.estimate, (mean.high - mean.low) / 2, 4)
            upper = [number(np.quantile(runs[label], share), places) for share in (0.9, 0.99, 1)]
            assert row[4] == (upper[0] if len({*upper}) == 1 else f"{upper[0]} {upper[1]}, max {upper[2]}")
            assert row[5] == ("–" if label == leader.learner else shown(leader.behind[label]))
            assert row[6] == "0.600"
    assert "n = 5" in page.words()  # few


def test_the_page_begins_with_three_sentences_and_folds_the_rest(found, page, text):
    assert len(found["headline"]) == 3
    begin = text.split('<h2 id="summary-title">')[1]
    assert begin.index("</p>") < begin.index("data-ranks") < begin.index("<details>")
    assert begin.index("<details>") < begin.index('<ul class="said">') < begin.index("</details>")
    for sentence in found["headline"]:
        assert unescape(re.sub("<[^>]*>", "", sentence)) in page.words()


def test_failures_are_counted_and_told(page):
    assert page.words().count("4 runs failed.") == 2  # in the alarm, and in the summary
    _, *rows = page.table("Runs", "Error")
    assert [row[0] for row in rows] == ["1"] * 4
    assert all(f"Error: {EVIL}" in row[3] for row in rows)


def test_figures_draw_the_runs(folder, page):
    data = json.loads(page.scripts[0])
    found = ravi.results(folder)
    panel = data["panels"]["section-1-mdp-2"]
    for line in panel["lines"]:
        which = {"label": data["labels"][line["label"]], "mdp": "trap", "column": line["column"]}
        times, seeds, curves = found.curves(**which)
        assert panel["times"] == times.tolist()  # 30 points: all are drawn
        assert line["seeds"] == len(seeds)
        assert line["mean"] == pytest.approx(curves.mean(0).tolist(), rel=1e-4)
        assert line["finals"] == pytest.approx(found.regret(**which)[1].tolist(), rel=1e-4)
        assert all(low <= mean <= high for low, mean, high in zip(line["low"], line["mean"], line["high"], strict=True))
    assert len({tuple(style) for style in data["styles"]}) == len(data["labels"])


def test_the_page_reads_every_part_once_and_asks_no_database(folder, text, tmp_path, monkeypatch):
    """What a page costs is opening the folder, and reading its curves once; it is written as it is made."""
    read, original = [], parts._read
    monkeypatch.setattr(
        parts,
        "_read",
        lambda names, lines, column: (
            read.append({int(k) for line in lines.values() for k in line[:, 0]}) or original(names, lines, column)
        ),
    )
    monkeypatch.setattr(Results, "sql", None)
    assert report(folder, tmp_path / "page.html").read_text(encoding="utf-8") == text
    assert read == [set(range(len(os.listdir(folder / "parts"))))]


def test_failures_of_many_kinds_are_counted_not_all_listed(tmp_path):
    """A traceback each would make a page of gigabytes."""
    fails = {"fails": lambda entry, seed: f"Error number {seed}" if seed < 150 else None}
    read = Read(report(made(tmp_path, one(seeds=152), **fails)).read_text(encoding="utf-8"))
    _, *rows = read.table("Runs", "Error")
    assert len(rows) == FAILURES == 100
    assert "And 50 runs that failed in 50 other ways" in read.words()
    assert "150 runs failed." in read.words()


def test_headings_come_in_order_and_links_lead_somewhere(page):
    levels = [int(tag[1]) for tag, _, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs, _ in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in page.of("a")} <= set(ids)
    for _, attrs, _ in page.tags:
        assert attrs.get("aria-labelledby", ids[0]) in ids


def test_the_page_can_be_used_without_eyes_or_mouse(page):
    assert page.of("html")[0]["lang"] == "en"
    assert len(page.of("main")) == len(page.of("header")) == 1
    assert page.of("a")[0] == {"class": "skip", "href": "#main"}
    assert len(page.of("caption")) == len(page.of("table")) > 5
    assert all(th.get("scope") in ("row", "col") for th in page.of("th"))
    assert all("label" in within for tag, _, within in page.tags if tag == "input")
    assert len(page.of("legend")) == len(page.of("fieldset")) > 5
    for attrs in page.of("div"):
        if attrs.get("class") == "scroll":
            assert attrs["tabindex"] == "0"
            assert attrs["role"] == "region"
            assert attrs["aria-label"]
        if attrs.get("class") == "plot":
            assert attrs["role"] == "img"
            assert attrs["aria-label"]
    assert all(button.get("type") == "button" for button in page.of("button"))


def contrast(one, two):
    def light(colour):
        channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_are_told_from_the_page():
    """4.5:1 for text, 3:1 for lines: WCAG's AA, in light and in dark."""
    style, script = (HERE / "page.css").read_text(), (HERE / "page.js").read_text()
    blocks = re.findall(r"\{[^{}]*--page: #[^{}]*\}", style)
    assert len(blocks) == 3
    themes = [dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in blocks]
    assert themes[1] == themes[2]  # by the button, and by the system
    for theme in themes:
        for ink in ("ink", "soft", "link", "mark", "alarm"):
            for page in ("page", "raised", "best", "alarm-page"):
                assert contrast(theme[ink], theme[page]) >= 4.5, (ink, page)
        assert contrast(theme["edge"], theme["page"]) >= 3
    for name, theme in (("light", themes[0]), ("dark", themes[1])):
        colours = re.findall(r"#\w{6}", re.search(rf"{name}: \[(.*?)\]", script)[1])
        assert len(colours) == COLOURS
        assert min(contrast(colour, theme["page"]) for colour in colours) >= 3
    assert len(re.search(r"DASHES = \[(.*?)\]", script)[1].split(",")) == DASHES


def seen(colour, by):
    """A colour in OKLab, as it looks to this kind of vision (Machado, Oliveira and Fernandes, 2009)."""
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    light = by @ np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return OKLAB @ np.cbrt(CONES @ light.clip(0, 1))


CONES = np.array([[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]])
OKLAB = np.array([[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]])
VISIONS = {
    "normal": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.052]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.9689]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.69137, 0.3039]]
    ),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_told_from_each_other(theme):
    """In OKLab, black and white are 1 apart; the least difference that is seen side by side is about 0.02."""
    script = (HERE / "page.js").read_text()
    colours = re.findall(r"#\w{6}", re.search(rf"{theme}: \[(.*?)\]", script)[1])
    for name, vision in VISIONS.items():
        apart = min(np.linalg.norm(seen(a, vision) - seen(b, vision)) for a, b in combinations(colours, 2))
        assert apart > (0.14 if name == "normal" else 0.04), name


DEGENERATE = {
    "one of everything": (one(), {}),
    "nothing finished": (one(seeds=3), {"skips": lambda entry, seed: True}),
    "all failed": (one(seeds=3, learners=["ravi-ucb", "psrl"]), {"fails": lambda entry, seed: "ValueError: no"}),
    "disjoint seeds": (
        one(seeds=4, learners=["ravi-ucb", "psrl"]),
        {"skips": lambda entry, seed: (seed < 2) == (entry.label == "psrl")},
    ),
    "no regret": (one(seeds=3, learners=["ravi-ucb", "psrl"]), {"regret": lambda entry, seed: 0.0}),
    "only the optimum": (one(seeds=3, learners=["optimum"]), {}),
    "several T": (one(seeds=3, steps=[20, 40, 80], learners=["ravi-ucb", "psrl"]), {}),
    "one step": (one(seeds=3, steps=1, learners=["ravi-ucb", "psrl"]), {}),
    "long labels": (
        one(seeds=3, learners=[{"id": "psrl", "label": "a b" * 70}, {"id": "ucrl2", "label": "x" * 200}]), {},
    ),
    "40 learners": (
        one(seeds=3, learners=[{"id": f"ravi-ucb,scale={k}.5", "label": f"learner {k}"} for k in range(40)]), {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEGENERATE)
def test_any_folder_has_a_page(tmp_path, name):
    suite, how = DEGENERATE[name]
    page = Read(report(made(tmp_path, suite, **how)).read_text(encoding="utf-8"))
    words = page.words()
    data = json.loads(page.scripts[0])
    if name in ("nothing finished", "all failed"):
        assert data["panels"] == {}
        assert "No run is finished here." in words
        assert ("3 runs are missing." in words) == (name == "nothing finished")
        assert ("6 runs failed." in words) == (name == "all failed")
    else:
        assert "Means are over" in words
        assert data["panels"]["section-1-mdp-1"]["lines"]
    if name == "disjoint seeds":
        assert "is not significantly better than" not in words
        assert words.count("no common seed") == 2
    if name == "one of everything":
        assert "supports no comparison" in words
        assert "low" not in data["panels"]["section-1-mdp-1"]["lines"][0]
    if name == "several T":
        assert "riverswim/4, T = 80" in words
        exponents = rates(ravi.results(tmp_path))
        assert exponents
        for one in exponents:
            assert shown(one.rate, 3) in words.split("Fits of log mean regret")[1]
    if name == "40 learners":
        assert sum(line["shown"] for line in data["panels"]["section-1-mdp-1"]["lines"]) == 8
        assert len({tuple(style) for style in data["styles"]}) == 40


def test_who_has_no_finished_run_keeps_a_row_and_no_regret_is_0(tmp_path):
    suite = one(seeds=5, mdps=["riverswim/4", "trap"], learners=["ravi-ucb", "psrl", "ucrl2", "optimum"])
    held = made(
        tmp_path, suite, regret=lambda entry, seed: 1.6e-11 if entry.label == "optimum" else 9.0,
        fails=lambda entry, seed: "Error" if entry.label == "psrl" else None,
        skips=lambda entry, seed: entry.label == "ucrl2",
    )  # fmt: skip
    page = Read(report(held).read_text(encoding="utf-8"))
    _, *rows = page.table("Learner", "Seeds", "Mean regret", "More than the best")
    assert [row[0].split()[0] for row in rows] == ["optimum", "ravi-ucb", "psrl", "ucrl2"]
    assert [row[2] for row in rows] == [
        "0 (to its certified error)", "9.0000", "failed (5 of 5 seeds)", "not run yet (0 of 5 seeds)",
    ]  # fmt: skip
    assert [row[1] for row in page.table("Learner", "trap")][2:4] == ["–", "–"]
    assert "e−" not in page.words()
    assert "★ best" not in page.words()  # ravi-ucb has no rival


def test_conflicts_and_troubles_are_loud(tmp_path):
    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch)])
        store.write([rows(launch, digest=["a", "b", "c"])])
    (tmp_path / "parts" / "foreign.parquet").write_bytes(b"no")
    page = Read(report(tmp_path).read_text(encoding="utf-8"))
    assert "Conflicts: 3 runs were made twice, with different bits." in page.words()
    assert "Troubles: 1 file left out, damaged or foreign." in page.words()
    assert "foreign.parquet" in page.words()
    assert [attrs for attrs in page.of("div") if attrs.get("class") == "alarm"]


CLAIMS = {
    "mdp": "riverswim/6", "learner": "ravi-ucb", "steps": 100, "seeds": [0, 1], "holds": False,
    "claims": [
        {"id": "L1", "statement": "a <= b", "where": "Lemma 1", "kind": "D", "measured": 1.5, "bound": 2.0,
         "margin": 0.5, "verdict": "holds", "note": "", "tolerance": 0.25},
        {"id": "L2", "statement": EVIL, "where": "Lemma 2", "kind": "D", "measured": 3.0, "bound": None,
         "margin": None, "verdict": "violated", "note": "epoch 4"},
    ],
}  # fmt: skip


def test_claims_of_the_paper_are_shown_from_the_folder_or_from_a_file(folder, tmp_path):
    file = tmp_path / "claims.json"
    file.write_text(json.dumps([CLAIMS]))
    page = Read(report(folder, tmp_path / "a.html", verify=file).read_text(encoding="utf-8"))
    assert "1 claim of the paper violated on riverswim/6" in page.words()
    assert "✗ violated epoch 4" in page.words()
    assert re.search(r"Lemma 1 ?D ?1\.5 ?2\.25 ?0\.75 ?holds", page.words())  # with what rounding is granted
    assert EVIL in page.words()
    other = made(tmp_path / "other", one())
    (other / "verify.json").write_text(json.dumps(CLAIMS))
    assert "Claims of the paper" in Read(report(other).read_text(encoding="utf-8")).words()


@pytest.mark.parametrize(
    ("content", "told"),
    [("{", "is no JSON"), ("[1]", "entry 0 is not what ravi verify --json writes"),
     ('{"claims": [3]}', "entry 0"), (None, "cannot read"), ('{"claims": [], "seeds": 3}', "seeds is not a list"),
     ('{"claims": [{}]}', "claim 0: verdict is missing"), ('{"claims": [{"verdict": 3}]}', "verdict is not a text"),
     ('{"claims": [{"verdict": "holds", "bound": "2"}]}', "claim 0: bound is not a number"),
     ('{"claims": [{"verdict": "holds", "measured": [1]}]}', "measured is not a number"),
     ('{"claims": [], "mdp": {}}', "mdp is not a text"), ("[" * 100_000, "is no JSON")],
)  # fmt: skip
def test_a_bad_file_of_claims_is_named(folder, tmp_path, content, told):
    file = tmp_path / "claims.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=f"claims.json.*{told}|{told} .*claims.json"):
        report(folder, tmp_path / "a.html", verify=file)


def test_what_cannot_be_written_or_read_is_told(folder, tmp_path):
    with pytest.raises(InputError, match=r"cannot write the page .*absent"):
        report(folder, tmp_path / "absent" / "a.html")
    (tmp_path / "file").touch()
    for out in (tmp_path / "file" / "a.html", tmp_path, ".", "/", "..", "a\0b"):
        with pytest.raises(InputError, match="cannot write the page"):
            report(folder, out)
    with pytest.raises(InputError, match="there is no folder"):
        report(tmp_path / "nowhere")
    store = Store(tmp_path / "bare")
    store.create()
    with pytest.raises(InputError, match=r"specification\.json"):
        report(tmp_path / "bare")


def test_a_missing_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    with pytest.raises(InputError, match=r"pip install 'ravi\[report\]'"):
        report(folder)


def test_the_tuning_record_is_on_the_page(page):
    assert "Every learner got the same number of configurations" in page.words()
    assert page.words().count("chosen") > 4
    assert len([circle for circle in page.of("circle") if circle.get("class") == "chosen"]) == 4  # 2 learners, 2 MDPs


def test_what_is_drawn_is_bounded(folder, monkeypatch):
    """Times are spread evenly, the last among them; of many seeds the least and the largest are drawn."""
    assert spread(1000, POINTS).tolist() == list(range(9, 1000, 10))
    assert spread(25, LISTED).tolist() == [2, 4, 7, 9, 12, 14, 17, 19, 22, 24]
    assert spread(3, LISTED).tolist() == [0, 1, 2]
    values = np.random.default_rng(0).permutation(1000.0 * np.arange(1000))
    assert charts._some(values).tolist() == np.sort(values)[np.linspace(0, 999, SEEDS).round().astype(int)].tolist()
    assert rounded(np.array([1 / 3, 12345678.9, 2.0, 0.0])) == [0.33333, 12346000, 2, 0]
    found = ravi.results(folder)
    rows = summary(found)
    whole = charts.shapes(found, rows)
    monkeypatch.setattr(charts, "ALL_POINTS", 7 * len(whole))
    monkeypatch.setattr(charts, "LEAST_POINTS", 2)
    for row in rows:
        one, other = charts.shapes(found, rows)[row.key], whole[row.key]
        assert (len(one.drawn), one.growth) == (7, other.growth)
        assert one.times[one.drawn[-1]] == one.times[one.listed[-1]] == row.line.steps
        assert [edge[-1] for edge in one.band] == [*row.mean[:3]]
        for edge, same in zip((one.times, *one.band), (other.times, *other.band), strict=True):
            np.testing.assert_allclose(edge[one.listed], same[other.listed], rtol=1e-12)
    monkeypatch.setattr(charts, "LEAST_POINTS", 12)
    assert {len(one.drawn) for one in charts.shapes(found, rows).values()} == {12}


def test_learners_are_compared_over_all_mdps(folder, page):
    """The regret in units of uniform's mean on the same MDP, averaged over the MDPs, by column; who beats whom."""
    data, found = json.loads(page.scripts[0]), ravi.results(folder)
    assert [attrs["value"] for attrs in page.of("option")] == ["section-1", "section-1-mdp-1", "section-1-mdp-2"]
    assert set(data["profiles"]) == {"section-1-theory", "section-1-tuned"}
    by = {column: [] for column in ("theory", "tuned")}
    for line in data["overall"]["section-1"]["lines"]:
        by[line["column"]].append(line["mean"])
        held = [
            [found.regret(mdp=mdp, label=label, column=line["column"])[1] for mdp in ("riverswim/6", "trap")]
            for label in (data["labels"][line["label"]], "uniform")
        ]
        mean = stratified([x / uniform.mean() for x, uniform in zip(*held, strict=True)], "mean")
        assert [line["mean"], line["low"], line["high"]] == [pytest.approx([x], rel=1e-4) for x in mean[:3]]
    assert all(len(means) == 4 and means == sorted(means) for means in by.values())
    (section,) = sections(found, summary(found))
    for standing in section.standings:
        compared = scores(found, column=standing.column)
        for pair, chance in standing.matrix.items():
            assert chance[:3] == pytest.approx(improvement(compared, *pair)[:3], abs=0.02), pair
            cell = str(words.chance(chance))
            assert f"[{100 * chance.low:.0f}, {100 * chance.high:.0f}]" in cell
            assert ("sure" in cell) == (chance.low > 0.5 or chance.high < 0.5)
