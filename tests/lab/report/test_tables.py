"""Tables: the store's own numbers, digits by the interval, honest marks, and LaTeX that compiles whatever the names."""

import csv
import io
import re

import numpy as np
import pytest

import ravi
from ravi.display.numbers import estimate_and_interval, number
from ravi.lab.report.rendering import escaped
from ravi.lab.report.tables import comparison_table, table
from ravi.statistics import compare, improvement, interval, scores
from ravi.validation import InputError
from tests.lab.experiments.stores import created, failed, rows
from tests.lab.experiments.test_results import tuned

EVIL = r"a_b & 50% #1 {x} $y$ ~^\ <γ> |--"
SEEDS = tuple(range(8))
SUITE = {
    "name": "three",
    "sections": [
        {
            "name": "first", "mdps": ["riverswim/4"], "steps": [20], "seeds": 8, "points": 5,
            "learners": ["uniform", {"id": "ravi-ucb", "label": EVIL}, {"id": "psrl", "label": "PSRL"}],
        }
    ],
}  # fmt: skip
NOISE = np.array([0.3, -0.4, 0.1, 0.9, -0.7, 0.2, -0.1, 0.4])
REGRETS = {"uniform": 100 + NOISE, "ravi-ucb": 10 + NOISE, "psrl": 10.25 + NOISE + np.roll(NOISE, 1)}


def stored(folder, regrets=REGRETS, suite=SUITE):
    store = created(folder, suite)
    with store.launch({"format": 1}) as launch:
        for learner, values in regrets.items():
            store.write([rows(launch, learner, SEEDS[: len(values)], regret=list(values))])
    return ravi.results(folder)


def cells(made):
    return {(row["label"], row["column"]): row for row in csv.DictReader(io.StringIO(made.csv()))}


@pytest.mark.parametrize("statistic", ["mean", "median", "iqm"])
def test_the_numbers_are_those_of_the_store_to_the_last_bit(tmp_path, statistic):
    found = stored(tmp_path)
    held = cells(table(found, statistic=statistic, level=0.9))
    assert len(held) == 3
    for label, learner in {"uniform": "uniform", EVIL: "ravi-ucb", "PSRL": "psrl"}.items():
        row = held[label, "given"]
        told = interval(REGRETS[learner], statistic, level=0.9)
        assert (float(row["estimate"]), float(row["low"]), float(row["high"])) == told[:3]
        assert (row["seeds"], row["failed"], row["planned"], row["why"]) == ("8", "0", "8", "")
        text, rest = estimate_and_interval(*told[:3])
        assert f"{text}" in table(found, statistic=statistic, level=0.9).text()
        assert rest in table(found, statistic=statistic, level=0.9).text()


def test_a_cell_has_the_tail_beside_the_mean(tmp_path):
    """One seed of eight with a hundred times the regret of the others."""
    tail = np.array([1.0] * 7 + [100.0])
    made = table(stored(tmp_path, {"psrl": tail + NOISE}))
    row = cells(made)["PSRL", "given"]
    upper = [float(row[name]) for name in ("q90", "q99", "max")]
    assert upper == [*np.quantile(tail + NOISE, [0.9, 0.99]), 100.4]
    assert re.search(r"\] max 100 \(8|\] max 100$", made.text(), re.MULTILINE), made.text()
    assert "max: the largest over seeds" in made.note


@pytest.mark.parametrize("statistic", ["mean", "median", "iqm"])
def test_the_best_is_marked_with_its_ties_and_nothing_else(tmp_path, statistic):
    made = table(stored(tmp_path), statistic=statistic)
    held = cells(made)
    marks = {label: (row["best"], row["tie"]) for (label, _), row in held.items()}
    assert marks == {"uniform": ("False", "False"), EVIL: ("True", "False"), "PSRL": ("False", "True")}
    best, tie = (number(float(held[label, "given"]["estimate"]), 2) for label in (EVIL, "PSRL"))
    lines = {line.split("  ")[0]: line for line in made.text().splitlines()}
    assert re.search(r"10\.\d+\* \[", lines[EVIL])
    assert re.search(r"10\.\d+† \[", lines["PSRL"])
    assert "*" not in lines["uniform"]
    assert "†" not in lines["uniform"]
    assert made.latex().count(r"\textbf{1") == 1
    assert made.latex().count(r"$^\dagger$ {\footnotesize [") == 1
    assert f"**{best[:4]}" in made.markdown()
    assert f"| {tie[:4]}" in made.markdown()


def test_who_is_told_the_kernel_is_not_marked_and_the_note_says_so(tmp_path):
    learners = ["uniform", {"id": "optimum", "label": "best of all"}, "ravi-ucb/known", "psrl"]
    suite = {"name": "four", "sections": [SUITE["sections"][0] | {"learners": learners}]}
    regrets = {"uniform": 100 + NOISE, "optimum": 0 * NOISE, "ravi-ucb/known": 5 + NOISE, "psrl": 10 + NOISE}
    made = table(stored(tmp_path, regrets, suite))
    assert {label for (label, _), row in cells(made).items() if row["best"] == "True"} == {"psrl"}
    assert not any(row["tie"] == "True" for row in cells(made).values())
    assert "best of all, ravi-ucb/known: given the kernel, and therefore neither marked nor compared" in made.note
    assert "told the kernel" not in table(stored(tmp_path / "b")).note


def test_theory_and_tuned_stand_side_by_side_and_what_is_missing_says_why(tmp_path):
    store = created(tmp_path)
    found = ravi.results(tmp_path)
    assert table(found).text().count("not run yet (0 of 3 seeds)") == 2
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, "uniform", (0, 1)), failed(launch, "uniform", (2,))])
        store.write([failed(launch, "ravi-ucb", (0, 1, 2))])
    made = table(ravi.results(tmp_path))
    held = cells(made)
    assert "(2 of 3 seeds, 1 failed)" in made.text()
    assert "failed (3 of 3 seeds)" in made.text()
    assert "not tuned yet" in made.text()
    assert "riverswim/4, theory  riverswim/4, tuned" in made.text()
    assert held["ours", "tuned"]["why"] == "not tuned yet"
    assert held["ours", "theory"]["failed"] == "2"
    assert held["uniform", "given"]["best"] == "False", "alone, it beats nobody"
    assert "cells with fewer say so" in made.note
    for shown in (made.markdown(), made.latex()):
        assert shown.count("not tuned yet") == 1
        assert "failed (3 of 3 seeds)" in shown
    tuned(store)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, "ravi-ucb,scale=0.1", (0, 1), regret=[1.0, 2.0])])
    assert float(cells(table(ravi.results(tmp_path)))["ours", "tuned"]["estimate"]) == 1.5


def test_learners_without_a_seed_in_common_are_not_called_best(tmp_path):
    store = created(tmp_path, SUITE)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, "uniform", (0, 1, 2), regret=[1.0, 2.0, 3.0])])
        store.write([rows(launch, "psrl", (3, 4, 5), regret=[4.0, 5.0, 6.0])])
    found = ravi.results(tmp_path)
    assert not any(row["best"] == "True" for row in cells(table(found)).values())
    assert "no seed in common" in comparison_table(found).text()


def test_a_value_that_was_not_recorded_is_no_failure(tmp_path):
    held = cells(table(stored(tmp_path), value="trajectory_regret"))
    assert held["uniform", "given"]["why"] == "not recorded (8 of 8 seeds)"
    assert held["uniform", "given"]["failed"] == "0"


def test_only_what_is_asked_for_is_shown(tmp_path):
    created(tmp_path)
    found = ravi.results(tmp_path)
    assert {row["section"] for row in table(found, section="second").records} == {"second"}
    assert {row["column"] for row in table(found, column="tuned").records} == {"tuned"}
    for wrong, said in (
        ({"section": "third"}, "section = 'third'. Known: first, second"),
        ({"column": "given", "section": "second"}, "column = 'given'. Known: theory, tuned"),
        ({"steps": 21}, "steps = 21. Did you mean 20? Known: 20"),
        ({"statistic": "mode"}, "statistic is 'mode'"),
        ({"level": 1}, "level is 1"),
        ({"value": "reward"}, "value is 'reward'"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            table(found, **wrong)


def test_many_mdps_go_below_each_other(tmp_path):
    names = [f"riverswim/{n}" for n in range(3, 10)]
    section = {"name": "wide", "mdps": names, "learners": ["uniform"], "columns": ["theory", "tuned"], "seeds": 2}
    created(tmp_path, {"name": "wide", "steps": [20, 30], "sections": [section]})
    made = table(ravi.results(tmp_path))
    assert len(made.records) == 7 * 2 * 2
    assert [len(panel.head) for panel in made.panels] == [7] * 4 + [5]
    assert "riverswim/9, T = 30" in made.latex()
    assert_compiles(made.latex())


@pytest.mark.parametrize(
    ("estimate", "low", "high", "most", "shown"),
    [
        (1049.73, 750.8, 1374.2, None, ("1,050", "[751, 1,374]")),
        (18568.5, 17326.9, 19928.5, 4, ("18,568", "[17,327, 19,928]")),
        (10.1889, 7.59, 20.12, 4, ("10.2", "[7.6, 20.1]")),
        (0.0123412, 0.0119, 0.0127, None, ("0.01234", "[0.01190, 0.01270]")),
        (0.0123412, 0.0119, 0.0127, 3, ("0.012", "[0.012, 0.013]")),
        (-0.0004, -0.9, 0.9, None, ("0.00", "[-0.90, 0.90]")),
        (0.0, -3.0, 5.0, None, ("0.0", "[-3.0, 5.0]")),
        (1234.5678, 1234.5678, 1234.5678, None, ("1,234.57", "")),  # all seeds agree
        (23113.158494, 23113.158494 - 1e-9, 23113.158494 + 1e-9, 4, ("23,113.2", "")),  # but for rounding
        (5.27e-11, 5.27e-11, 5.27e-11, 4, ("0.0000", "")),
        (1234.5678, -np.inf, np.inf, 4, ("1,235", "")),  # one seed
        (0.0, 0.0, 0.0, 2, ("0.00", "")),
    ],
)
def test_the_interval_decides_the_digits(estimate, low, high, most, shown):
    assert estimate_and_interval(estimate, low, high, most) == shown


@pytest.mark.parametrize("value", [1000.4, 3239.4, 23_113.2, 987_654.3])
def test_a_number_reads_the_same_in_a_table_and_on_the_page(value):
    """And in the figures, where it is written as a whole number too."""
    for half in (3.0, 40.0, 500.0):
        text, _ = estimate_and_interval(value, value - half, value + half, 4)
        assert text.partition(".")[0] == number(value) == f"{value:,.0f}"


def test_one_seed_has_no_interval(tmp_path):
    made = table(stored(tmp_path, {"uniform": [5.0], "psrl": [4.0]}))
    assert "4.000† (one seed) (1 of 8 seeds)" in made.text() or "4.000* (one seed) (1 of 8 seeds)" in made.text()
    assert "inf" not in made.text() + made.latex()


def assert_compiles(text):
    """As far as can be told without TeX: braces and environments are closed, rows have as many cells as the head."""
    bare = re.sub(r"\\\\|\\[{}&%$#_]", "", re.sub(r"(?m)^%.*$", "", text))
    depth = 0
    for one in bare:
        depth += {"{": 1, "}": -1}.get(one, 0)
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert "%" not in bare
    assert "#" not in bare
    assert re.findall(r"\\begin\{(\w+)\}", text).count("tabular") == re.findall(r"\\end\{(\w+)\}", text).count(
        "tabular"
    )
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    commands = (
        "begin end centering caption label par medskip smallskip textit textbf toprule midrule bottomrule cmidrule "
        "multicolumn footnotesize parbox linewidth dagger pm textbackslash textasciitilde textasciicircum textless "
        "textgreater textbar gamma"
    )
    assert set(re.findall(r"\\([a-zA-Z]+)", re.sub(r"(?m)^%.*$", "", text))) <= {*commands.split()}
    for layout, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, flags=re.DOTALL):
        for line in body.split(r"\\")[:-1]:
            line = re.sub(r"\\(toprule|midrule|bottomrule|cmidrule\(lr\)\{[\d-]+\})", "", line)
            spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert len(re.findall(r"(?<!\\)&", line)) + 1 + spans == len(layout), line


def test_latex_takes_any_name(tmp_path):
    made = table(stored(tmp_path))
    text = made.latex(label="tab:three")
    assert_compiles(text)
    assert r"a\_b \& 50\% \#1 \{x\} \$y\$ \textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert r"\textless{}$\gamma$\textgreater{} \textbar{}-{}-" in text
    assert r"\label{tab:three}" in text
    assert r"95\% interval" in text
    assert_compiles(comparison_table(stored(tmp_path / "b")).latex())


def test_escapes_leave_nothing_that_tex_reads():
    every = "".join(map(chr, range(32, 127))) + "αλ−±≤\x07\n☃é"
    made = escaped(every)
    assert made.isascii() or set(made) - set(map(chr, range(127))) == {"é"}
    assert "snowman" in made
    assert r"$\alpha$$\lambda$$-$$\pm$$\leq$" in made
    assert "\n" not in made


def test_dashes_quotes_powers_and_greek_are_latex():
    assert escaped("a–b—c") == r"a\textendash{}b\textemdash{}c"
    assert escaped("‘a’ “b”") == r"\textquoteleft{}a\textquoteright{} \textquotedblleft{}b\textquotedblright{}"
    assert escaped("x² y³") == "x$^2$ y$^3$"
    assert escaped("ΓΛΩΑΧ") == r"$\Gamma$$\Lambda$$\Omega$$\mathrm{A}$$\mathrm{X}$"
    assert all(escaped(chr(code)).isascii() for code in (*range(0x391, 0x3A2), *range(0x3A3, 0x3AA)))


def test_a_table_is_written_in_the_form_of_its_name(tmp_path):
    made = table(stored(tmp_path / "results"))
    for name, text in (
        ("a.tex", made.latex()),
        ("a.md", made.markdown()),
        ("a.csv", made.csv()),
        ("a.txt", f"{made}\n"),
    ):
        made.save(tmp_path / name)
        assert (tmp_path / name).read_text() == text
    with pytest.raises(InputError, match=r"a\.doc: its name must end in one of \.tex"):
        made.save(tmp_path / "a.doc")
    with pytest.raises(InputError, match="cannot write the table"):
        made.save(tmp_path / "absent" / "a.md")


def test_pairs_are_compared_by_seed(tmp_path):
    found = stored(tmp_path)
    made = comparison_table(found)
    assert len(made.records) == 3
    held = scores(found)
    row = next(one for one in made.records if one["first"] == EVIL)
    told = compare(held, EVIL, "PSRL", "riverswim/4")
    assert (row["estimate"], row["low"], row["high"], row["pairs"]) == (*told.difference[:3], 8)
    assert row["estimate"] == pytest.approx((REGRETS["psrl"] - REGRETS["ravi-ucb"]).mean())
    assert row["improvement"] == improvement(held, EVIL, "PSRL").estimate
    assert 0 < told.difference.estimate > told.difference.low <= 0
    marks = {(cells[1].text, cells[2].text): cells[3].mark for cells in made.panels[0].rows}
    assert marks == {("uniform", EVIL): "", ("uniform", "PSRL"): "", (EVIL, "PSRL"): ""}
    own = comparison_table(found, first="PSRL")
    assert [(one["first"], one["second"]) for one in own.records] == [("PSRL", "uniform"), ("PSRL", EVIL)]
    assert own.panels[0].rows[0][3].mark == "best"
    assert own.panels[0].rows[1][3].mark == ""
    with pytest.raises(InputError, match=r"there is no learner 'PSR'\. Did you mean PSRL"):
        comparison_table(found, first="PSR")
