"""What others wrote is shown as it reads: no terminal obeys it, no spreadsheet computes it, nothing is markup."""

import csv
import io
import sys

import pytest

import ravi
from ravi import cli
from ravi.cli import common
from ravi.display.printable import printable
from ravi.lab.experiments import runner
from ravi.lab.report import watch as watching
from ravi.lab.report.rendering import Block, Cell, Table
from ravi.lab.report.tables import comparison_table, table
from tests.lab.report.folders import made

HOSTILE = "\x1b]0;owned\x07\x1b[2Jours\u202e\n[red]=cmd|' /C calc'!A0\x9b31m"
OBEYED = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x2028, 0x200B, 0xFEFF)]


@pytest.mark.parametrize("one", OBEYED, ids=ascii)
def test_what_a_terminal_obeys_is_spelled_out(one):
    shown = printable(f"a{one}b")
    assert one not in shown
    assert shown.isprintable()
    assert shown.encode().decode("unicode_escape") == f"a{one}b"
    assert printable(shown) == shown
    assert printable(f"a{one}b", keep=one) == f"a{one}b"


def test_what_is_written_stays():
    for text in (
        "ravi-ucb, T = 10,000",
        "\u00b1 3\u00a0% \u03b3 \u2212",
        "\u0646\u200c\u0627",
        "\U0001f468\u200d\U0001f4bb",
        "\\x1b",
    ):
        assert printable(text) == text
    assert printable("\ud800") == "\\ud800"  # which could not be written at all


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of results whose every text is hostile."""
    suite = {
        "name": f"suite{HOSTILE}", "steps": 100, "seeds": 3, "points": 5, "tuning": {"budget": 3, "seeds": 1},
        "sections": [
            {
                "name": f"section{HOSTILE}", "mdps": ["riverswim/4"], "columns": ["theory", "tuned"],
                "learners": [{"id": "ravi-ucb", "label": f"={HOSTILE}"}, {"id": "ucrl2", "label": "-3.5"}],
            },
        ],
    }  # fmt: skip
    place = tmp_path_factory.mktemp("hostile") / f"out{HOSTILE[:9]}"
    return made(place, suite, fails=lambda entry, seed: f"ValueError: {HOSTILE}" if seed == 2 else None)


def harmless(text):
    assert text
    return all(line.isprintable() for line in text.replace("\u00a0", " ").split("\n")) and "\x1b" not in text


def command(capsys, monkeypatch, *words, status=0):
    """What the command prints, to either."""
    monkeypatch.setattr(sys, "argv", ["ravi", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == status
    out, err = capsys.readouterr()
    return out + err


def test_nothing_that_a_command_prints_is_obeyed(folder, capsys, monkeypatch):
    commands = [
        ("results", folder),
        ("results", folder, "--sql", 'select *, 1 as "\x1b[1m" from failures'),
        ("results", folder, "--sql", "select label, mdp from results"),
        *(("table", folder, "--format", form) for form in ("text", "markdown", "latex", "csv")),
        ("watch", folder, "--once"),
        ("reproduce", folder, "--runs", "0"),
        ("results", folder / "\x1b[2J"),
        ("run", f"riverswim/4,{HOSTILE}", "psrl"),
        ("run", "riverswim/4", f"nobody{HOSTILE}"),
        ("solve", f"{folder}/mdp{HOSTILE}"),
    ]
    for place, words in enumerate(commands):
        told = command(capsys, monkeypatch, *words, status=0 if place < 8 else 2)
        assert harmless(told), words
    assert "\\u202e" in told


def test_tables_show_labels_as_they_are_written(folder):
    found = ravi.results(folder)
    for one in (table(found), comparison_table(found, column="theory")):
        for text in (one.text(), one.markdown(), one.latex(), one.csv(), str(one)):
            assert harmless(text)
    assert "[red]" in table(found).text()
    assert harmless(found.summary())
    assert harmless(str(found))


def test_a_view_takes_nothing_for_markup(folder):
    view = watching.View(folder)
    view.look(0.0)
    assert harmless(watching.text(view, 500))
    assert "[red]" in watching.text(view, 500)
    elsewhere = watching.View(folder / "\x1b[2J")
    elsewhere.look(0.0)
    assert harmless(watching.headline(elsewhere))


def test_a_bar_takes_nothing_for_markup(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for bar in (common.progress_bar, lambda label: runner.status_bar(None, label, patience=0)):
        monkeypatch.setattr(sys, "stderr", Terminal())
        with bar(f"name [red]{HOSTILE}"):
            pass
        assert "[red]" in sys.stderr.getvalue()
        assert "\x1b]0;owned" not in sys.stderr.getvalue()


def test_a_text_in_a_csv_is_no_formula_and_a_number_is_a_number():
    texts = ["=1+1", "+1", "-x", "@sum", "\t=1", "\r=1", "plain", "-3.25", "1e5", "-inf"]
    records = tuple({"text": text, "number": -3.25, "none": None, "flag": True} for text in texts)
    head = ("learner",)
    made = Table("", "", (Block("", 1, (), head, ((Cell("=1"),),)),), records)
    rows = list(csv.DictReader(io.StringIO(made.csv())))
    assert [row["text"] for row in rows] == [
        "'=1+1", "+1", "'-x", "'@sum", "'\\t=1", "'\\r=1", "plain", "-3.25", "1e5", "'-inf",
    ]  # fmt: skip
    assert {(row["number"], row["none"], row["flag"]) for row in rows} == {("-3.25", "", "True")}
