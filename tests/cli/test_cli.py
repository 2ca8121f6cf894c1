"""The command, as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from ravi.cli import app
from ravi.mdps import riverswim
from ravi.runtime.api import run
from ravi.runtime.result import Run
from tests.helpers import COMMAND
from tests.support.command import typed


def in_a_process(*words, cwd=None):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)


def ravi(*words, by=typed, check=True, cwd=None):
    done = by(*words, cwd=cwd)
    if check:
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""  # quiet where there is no terminal
    return done


def test_run_prints_one_json_object():
    words = ("run", "riverswim/6,discount=0.95", "ravi-ucb,scale=0.03", "--steps", "1e4", "--seeds", "8", "--json")
    found = json.loads(ravi(*words, by=in_a_process).stdout)
    told = json.loads(ravi(*words).stdout)
    timed = {"seconds", "steps_per_second"}
    assert {key: found[key] for key in found.keys() - timed} == {key: told[key] for key in told.keys() - timed}
    assert found["optimum"] == pytest.approx(0.233465, abs=1e-6)
    assert found["uniform"] == pytest.approx(0.002333, abs=1e-6)
    assert found["steps"] == 10_000
    assert len(found["regret_by_seed"]) == 8
    assert found["regret"] == pytest.approx(np.mean(found["regret_by_seed"]))
    assert 0 < found["regret"] <= 10_000 * found["optimum"]
    assert 0 < found["regret_error"] < 1e-4
    assert found["steps_per_second"] > 0
    assert found["complete"]
    assert found["settings"]["scale"] == 0.03


def test_run_shares_seeds_out_among_threads_and_prints_the_same():
    words = ("run", "riverswim/4", "ravi-ucb", "--steps", "300", "--seeds", "3", "--json", "--threads")
    one, two = (json.loads(ravi(*words, threads).stdout)["regret"] for threads in ("1", "2"))
    assert one == two
    assert "threads is 0" in ravi(*words, "0", check=False).stderr


def test_run_prints_for_people_too():
    said = ravi("run", "riverswim/4", "uniform", "--steps", "1000", "--seeds", "5-7").stdout
    assert "uniform on riverswim/4 (gamma 0.95): 1,000 steps, 3 seeds" in said
    assert "of which this is 100.0%" in said


def test_hardness_says_what_is_infinite():
    assert "diameter      14.722" in ravi("hardness", "riverswim/6").stdout
    gap = json.loads(ravi("hardness", "riverswim/6", "--json").stdout)
    assert 0 < gap["smallest_gap"] <= gap["smallest_gap_at_most"] < np.inf
    found = json.loads(ravi("hardness", "trap", "--json").stdout)
    assert found["diameter"] is None
    assert "cannot be reached" in found["notes"][0]


def test_solve_and_list():
    found = json.loads(ravi("solve", "riverswim/6,discount=0.9", "--json").stdout)
    assert abs(found["optimum"] - 0.1 * 425329947 / 326053817) <= found["optimum_error"] < 1e-10
    assert found["policy"] == [1] * 6
    assert "optimum rho*" in ravi("solve", "riverswim/6", "--method", "value_iteration").stdout
    known = json.loads(ravi("list", "--json").stdout)
    assert {"riverswim", "garnet", "hypercube", "ensemble"} <= set(known["mdps"])
    assert {"ravi-ucb", "ravi-ucb/mixture", "uniform"} <= set(known["learners"])
    assert known["learners"]["ravi-ucb"]["options"]["scale"] == 1.0
    assert "riverswim/mixture" in ravi("list").stdout
    for kind, key in (("mdps", "mdps"), ("problems", "worlds"), ("learners", "learners")):
        assert json.loads(ravi("list", kind, "--json").stdout) == {key: known[key]}
        assert len(ravi("list", kind).stdout.splitlines()) == 1 + sum(2 + (len(name) >= 18) for name in known[key])


def test_an_mdp_may_be_a_file(tmp_path):
    riverswim(4, 0.9).save(tmp_path / "mine.mdp")
    found = json.loads(ravi("solve", str(tmp_path / "mine.mdp"), "--json").stdout)
    assert found["optimum"] == pytest.approx(0.239731, abs=1e-6)
    assert found["mdp"] == "riverswim/4"
    unnamed = riverswim(4, 0.9)
    object.__setattr__(unnamed, "name", "mdp")
    unnamed.save(tmp_path / "mine.mdp")
    assert json.loads(ravi("solve", str(tmp_path / "mine.mdp"), "--json").stdout)["mdp"] == "mine.mdp"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run riverswm/6 ravi-ucb", "Did you mean riverswim"),
        ("run riverswim/6 ravi-ubc", "Did you mean ravi-ucb"),
        ("run riverswim/6 ravi-ucb --steps many", "steps (T) is 'many', not a number"),
        ("run riverswim/6 ravi-ucb --steps 0", "steps (T) is 0"),
        ("run riverswim/6 ravi-ucb --seeds 7-5", "--seeds is '7-5'; a range goes upwards: 5-7"),
        ("run riverswim/6,discount=1.5 ravi-ucb", "discount is 1.5"),
        ("run riverswim/6 ravi-ucb/mixture", "has no features"),
        ("run riverswim/6 ravi-ucb --save no/such/folder/run", "there is no folder no/such/folder"),
        ("verify --variants --steps 5", "are of one run: name an MDP"),
        ("verify --only A1 --json no/such/a.json", "there is no folder no/such"),
        ("verify --only U1", "U1 is about none of these runs: name an MDP and a learner, or --variants"),
        ("solve missing.mdp", "there is no file missing.mdp"),
        ("solve riverswim/6 --method value_iteratio", "value_iteration"),
    ],
)
def test_mistakes_are_one_line_and_status_2(line, message):
    said = ravi(*line.split(), check=False)
    assert said.returncode == 2
    assert message in said.stderr
    assert "Traceback" not in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1
    assert said.stdout == ""


def test_claims_of_some_variants_are_held_against_these():
    said = ravi("verify", "--variants", "--only", "U1", "--seeds", "1").stdout.splitlines()
    assert [line.split(",")[0] for line in said] == ["ravi-ucb/unknown-rewards", "ravi-ucb+/unknown-rewards"]


def test_help_is_there_and_light():
    assert "run" in ravi("--help", by=in_a_process).stdout
    said = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ravi.cli", "--help"], capture_output=True, text=True, check=True
    )
    for heavy in ("numba", "scipy", "matplotlib"):
        assert f" {heavy}\n" not in said.stderr
    assert ravi("--version").stdout.startswith("ravi 0.")


LEARNER = "ravi-ucb,scale=0.01"
MARKS = """
from ravi import Learner
from ravi.learners.ravi_ucb.ravi_ucb import tabular


def marks(problem, steps) -> Learner:
    base = tabular(problem, steps, scale=0.01)

    def plan(state):
        if (state.data.visits > 100).any():
            open("begun", "w").close()
        return base.plan(state)

    return base._replace(plan=plan)
"""


def test_ctrl_c_keeps_what_was_computed(tmp_path):
    (tmp_path / "mine.py").write_text(MARKS)
    words = ["run", "riverswim/6", "mine:marks", "--seeds", "2", "--json", "--save", "it.run", "--steps"]
    started = subprocess.Popen(
        [COMMAND, *words, "2e9"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 300
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < until
            time.sleep(0.1)
        os.kill(started.pid, signal.SIGINT)
        out, err = started.communicate(timeout=300)
    finally:
        started.kill()  # nothing outlives the test
    assert started.returncode == 130, err
    found = json.loads(out)
    assert "the same command goes on from it.run" in err
    assert not found["complete"]
    assert 0 < max(found["plays"]) < 2e9
    kept = Run.load(tmp_path / "it.run")
    assert kept.plays.tolist() == found["plays"]
    assert kept.regret.mean() == found["regret"]


def test_the_same_command_goes_on_where_a_run_was_stopped(tmp_path):
    run(LEARNER, "riverswim/6", 5000, 2, pause=1000).save(tmp_path / "it.run")
    words = ["run", "riverswim/6", LEARNER, "--seeds", "2", "--json", "--save", "it.run", "--steps"]
    found = json.loads(ravi(*words, "5000", cwd=tmp_path).stdout)
    assert found["complete"]
    assert found["regret_by_seed"] == run(LEARNER, "riverswim/6", 5000, 2).regret.tolist()
    assert Run.load(tmp_path / "it.run").complete
    other = ravi(*words, "4000", check=False, cwd=tmp_path)
    assert other.returncode == 2
    assert "which is another run" in other.stderr


def test_the_demo_draws_its_figure_and_ends_with_its_page(tmp_path):
    words = ("demo", "--steps", "2000", "--seeds", "2", "--out", str(tmp_path / "here"))
    said = ravi(*words).stdout
    assert "RAVI-UCB, mixture" in said
    assert f"Page: {tmp_path / 'here' / 'report.html'}" in said
    assert (tmp_path / "here" / "regret.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "RAVI-UCB, mixture" in (tmp_path / "here" / "report.html").read_text()
    assert ravi(*words).stdout == said  # nothing is run again


def test_a_figure_of_one_run(tmp_path):
    figure = tmp_path / "regret.svg"
    ravi("run", "riverswim/4", "uniform", "--steps", "100", "--seeds", "2", "--figure", str(figure))
    assert "<svg" in figure.read_text()


OWN = """
\"\"\"Paper: A. B. Cee, "Rivers", ICML 2020.\"\"\"
import gymnasium
import ravi
from ravi.learners.ravi_ucb.ravi_ucb import tabular


def river(n: int = 4) -> ravi.MDP:
    return ravi.mdp(f"riverswim/{n},discount=0.8")


def mine(problem, steps, scale: float = 0.01) -> ravi.Learner:
    return tabular(problem, steps, scale=scale)


gymnasium.register("Mine-v0", lambda: ravi.gymnasium.make(river()))
"""


SHORT = ("--steps", "50", "--seeds", "1")
LEARN = ("learn", "mycode:Mine-v0", "--learner", "mycode:mine", "--discount", "0.8", "--steps", "50")


def test_code_in_the_current_folder_runs_when_it_is_named(tmp_path):
    """By the installed command, which Python does not let look there."""
    (tmp_path / "mycode.py").write_text(OWN)
    said = ravi("run", "mycode:river,5", "mycode:mine,scale=0.1", *SHORT, by=in_a_process, cwd=tmp_path).stdout
    assert "ravi-ucb on riverswim/5 (gamma 0.8): 50 steps" in said
    assert "  mycode:mine\n" in ravi(*LEARN, by=in_a_process, cwd=tmp_path).stdout


def test_every_command_that_takes_an_id_finds_it_there(tmp_path, monkeypatch):
    registry = pytest.importorskip("gymnasium").registry
    (tmp_path / "mycode.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    for words, answer in [
        (("solve", "mycode:river"), "riverswim/4"),
        (("solve", "gymnasium/mycode:Mine-v0,discount=0.8"), "optimum rho*"),
        (("verify", "mycode:river,3", "mycode:mine", "--only", "A1", *SHORT), "verdict"),
        ((*LEARN, "--checkpoint", "it.agent"), "  mycode:mine\n"),
        ((*LEARN, "--checkpoint", "it.agent", "--save", "it.policy"), "no time: the checkpoint has all steps"),
        (("evaluate", "it.policy", "mycode:Mine-v0", "--cycles", "5"), "value, sampled"),
        (("play", "it.policy", "mycode:Mine-v0"), "cycle 1"),
        (("cite", "mycode:mine"), "Rivers"),
    ]:
        monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
        sys.modules.pop("mycode", None)
        registry.pop("Mine-v0", None)
        done = CliRunner().invoke(app, words)
        assert answer in done.output, (words, done.output, done.exception)
    del sys.modules["mycode"]


def test_a_file_in_the_current_folder_hides_no_module_and_is_not_mixed_up_with_it(tmp_path):
    (tmp_path / "typer.py").write_text("raise RuntimeError")
    (tmp_path / "json.py").write_text(OWN)
    said = ravi("solve", "json:river", by=in_a_process, check=False, cwd=tmp_path)
    assert said.returncode == 2
    assert f"not {tmp_path / 'json.py'}; give it another name" in said.stderr


def test_the_command_is_a_module_too():
    done = subprocess.run([sys.executable, "-m", "ravi", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == ravi("--version").stdout


@pytest.mark.parametrize(("error", "said"), [("", "ravi: there is not enough memory\n"), ("9 GB", "memory: 9 GB\n")])
def test_too_little_memory_is_told_with_what_is_known_of_it(monkeypatch, error, said):
    def full(*_, **__):
        raise MemoryError(*filter(None, [error]))

    monkeypatch.setattr("ravi.ids.mdp", full)
    done = typed("solve", "riverswim/6")
    assert done.returncode == 2
    assert done.stderr.endswith(said)
