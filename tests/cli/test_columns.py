"""Commands print in the columns that there are, complete what is typed, and give one JSON object when asked."""

import json
import os
import subprocess
import sys

import pytest

from ravi import ids
from ravi.cli import completion
from ravi.display.printable import columns, counted, folded, titled
from ravi.lab.experiments import forecast
from ravi.lab.suites import SUITES
from tests.support.command import typed
from tests.support.pools import in_this_process

pytestmark = pytest.mark.usefixtures("in_this_process")

SUITE = """
steps = 60
seeds = 2
columns = ["theory", "tuned"]
tuning = { budget = 2, seeds = 1 }
[[sections]]
name = "rivers-and-garnets"
mdps = ["riverswim/6", { id = "garnet/20,3,4,discount=0.99", options = { seed = [0, 1] } }]
learners = ["ravi-ucb", { id = "psrl", label = "posterior sampling" }]
"""
COMMANDS = {
    "list": "list",
    "suites": "suites",
    "solve": "solve riverswim/6",
    "run": "run riverswim/6 ravi-ucb --steps 60 --seeds 2",
    "verify": "verify riverswim/3,discount=0.7 --steps 60 --seeds 2",
    "advise": "advise riverswim/6 --steps 100",
    "cite": "cite ucrl2",
    "help": "run --help",
    "dry-run": "suite run mine.toml --dry-run",
    "results": "results results",
    "sql": "results results --sql FROM\N{NO-BREAK SPACE}results",
    "table": "table results",
    "watch": "watch results --once",
    "doctor": "doctor results",
    "demo": "demo --steps 60 --seeds 2",
}
SLOW = ("demo", "doctor")
AS_JSON = ("list", "suites", "solve", "run", "advise", "dry-run", "results", "sql", "doctor")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("columns")
    (place / "mine.toml").write_text(SUITE)
    with in_this_process():
        done = typed("suite", "run", "mine.toml", "--out", "results", "--workers", "1", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def printed(command, folder, monkeypatch, wide, *more):
    if wide is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(wide))
    monkeypatch.setenv("TERMINAL_WIDTH", str(wide or 80))  # that of help texts
    done = typed(*(word.replace("\N{NO-BREAK SPACE}", " ") for word in command.split(" ")), *more, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_fits_the_terminal(name, folder, monkeypatch):
    for wide in (80,) if name in SLOW else (80, 120, 200):
        lines = printed(COMMANDS[name], folder, monkeypatch, wide)
        assert [line for line in lines if len(line) > wide] == []


@pytest.mark.parametrize("name", ["list", "suites", "verify", "dry-run", "results", "sql", "table"])
def test_what_goes_to_no_terminal_is_not_folded(name, folder, monkeypatch):
    lines = printed(COMMANDS[name], folder, monkeypatch, None)
    assert len(lines) < len(printed(COMMANDS[name], folder, monkeypatch, 60))
    if name in ("results", "sql", "dry-run"):  # a table with a line for every row
        heads = [at for at, line in enumerate(lines) if line.startswith("section")]
        assert len(heads) == 1


@pytest.mark.parametrize("name", AS_JSON)
def test_json_is_one_object_in_one_line_on_any_terminal(name, folder, monkeypatch):
    lines = printed(COMMANDS[name], folder, monkeypatch, 80, "--json")
    assert len(lines) == 1
    assert isinstance(json.loads(lines[0]), dict)


def test_suites_and_runs_count_the_same(folder, monkeypatch):
    monkeypatch.setattr(forecast, "_pilots", lambda pairs, *rest: dict.fromkeys(pairs, 1e-5))  # no time is asked for
    (told,) = printed("suites", folder, monkeypatch, 80, "--json")
    (dry,) = printed("suite run scaling --dry-run --seeds 1", folder, monkeypatch, 80, "--json")
    assert json.loads(dry)["runs"] * 32 == json.loads(told)["scaling"]["runs"]
    (mine,) = printed("suite run mine.toml --dry-run", folder, monkeypatch, 80, "--json")
    found = json.loads(mine)
    (made,) = printed("results results", folder, monkeypatch, 80, "--json")
    assert found["runs"] == found["reported"] + 3 * 2 * 1
    assert found["reported"] >= json.loads(made)["planned"]


def test_a_suite_is_run_by_either_form(folder):
    for words in (("suite", "run"), ("run",)):
        assert typed(*words, "mine.toml", "--out", "results", "--workers", "1", cwd=folder).returncode == 0
    assert typed("suite", "list").stdout == typed("suites").stdout


def test_an_mdp_in_a_file_goes_by_the_name_of_the_file():
    assert titled(os.path.abspath("mine.mdp")) == "mine.mdp"
    assert titled("garnet/20,3,4") == "garnet/20,3,4"


def test_one_is_one():
    assert [counted(n, "run") for n in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]


def test_columns_are_folded_and_put_below_each_other():
    rows = [("name", "first", "second"), ("garnet/20,3,4,seed=0", "1.0 [0.5, 1.5]", "2.0 [1.5, 2.5]")]
    assert columns(rows, "lrr") == [
        "name                           first          second",
        "garnet/20,3,4,seed=0  1.0 [0.5, 1.5]  2.0 [1.5, 2.5]",
    ]
    assert columns(rows, "lrr", 46) == [
        "name                     first          second",
        "garnet/20,3,4,  1.0 [0.5, 1.5]  2.0 [1.5, 2.5]",
        "seed=0",
    ]
    assert columns(rows, "lrr", 36) == [
        "name                           first",
        "garnet/20,3,4,seed=0  1.0 [0.5, 1.5]",
        "",
        "name                          second",
        "garnet/20,3,4,seed=0  2.0 [1.5, 2.5]",
    ]
    assert (
        folded("  regret    of a run, and more words", 24)
        == "  regret    of a run,\n            and more\n            words"
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_every_shell(shell):
    said = typed("completion", shell).stdout
    assert "_RAVI_COMPLETE" in said
    assert said.count("ravi") > 1


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["ravi", "sol"], ["solve"]),
        (["ravi", "run", "riv"], ["riverswim", "riverswim/mixture"]),
        (["ravi", "run", "riverswim/6,dis"], ["riverswim/6,discount="]),
        (["ravi", "run", "riverswim/6", "ravi-ucb,scale=1,st"], ["ravi-ucb,scale=1,step_scale="]),
        (["ravi", "suite", "run", "q"], ["quick"]),
        (["ravi", "run", "--st"], ["--steps"]),
    ],
)
def test_a_shell_that_asks_is_answered(words, wanted):
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), completion.VARIABLE: "complete_bash"}
    done = subprocess.run([sys.executable, "-m", "ravi"], env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.split() == wanted


def test_every_id_is_offered_and_what_is_unknown_has_no_options():
    assert completion.learners("") == list(ids.LEARNERS)
    assert completion.learners("psrl/un") == ["psrl/unknown-rewards"]
    assert completion.learners("ucrl2/doubling,fi") == ["ucrl2/doubling,first="]
    assert {"riverswim", "large/grid"} <= set(completion.mdps(""))
    assert completion.suites("") == list(SUITES)
    assert completion.learners("nothing,s") == []
