"""Type checkers see arrays of numbers where a user reads them: never Any."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ravi

SOURCE = str(Path(ravi.__file__).parents[1])
SCRIPT = """
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import ravi

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

mdp = ravi.mdp("riverswim/6")
assert_type(mdp, ravi.MDP)
assert_type(mdp.rewards, Floats)
assert_type(mdp.transitions, Floats)
assert_type(mdp.successors, NDArray[np.int32])
assert_type(mdp.initial, Floats)
assert_type(mdp.features, Floats | None)

best = ravi.solve(mdp)
assert_type(best.V, Floats)
assert_type(best.Q, Floats)
assert_type(best.policy, Floats)
assert_type(best.optimum, float)
assert_type(ravi.evaluate(mdp, best.policy).V, Floats)
assert_type(ravi.evaluate(mdp, best.policy).returns, Floats | np.float64)
assert_type(ravi.return_of(mdp, best.policy), float | Floats)
assert_type(ravi.occupancy(mdp, [[0.5, 0.5]] * 6).mu, Floats)
assert_type(ravi.md_mpi(mdp, eta=1.0, iterations=2).policy, Floats)

run = ravi.run("psrl", mdp, 100, seeds=2)
assert_type(run, ravi.Run)
assert_type(run.regret, Floats)
assert_type(run.regret_error, Floats)
assert_type(run.regret_curve, Floats)
assert_type(run.reward_curve, Floats)
assert_type(run.gap, Floats)
assert_type(run.times, Ints)
assert_type(run.plays, Ints)
assert_type(run.T_k, list[Ints])
assert_type(run.gap_k, list[Floats])
assert_type(run.output_policy, Floats)
assert_type(run.last_policy, Floats)
assert_type(run.results["regret"], NDArray[Any])
mean = float(run.regret.mean())


class Coin:
    observation_space: Any
    action_space: Any

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, float(action), False, False, {}


assert_type(ravi.learn(Coin(), steps=100), ravi.Learned)
assert_type(ravi.mdp(Coin(), discount=0.9), ravi.MDP)
found = ravi.learn("FrozenLake-v1", steps=100)
assert_type(found.table(), Floats)
assert_type(found.policy(), ravi.Policy)
assert_type(found.policy().table, Floats)
assert_type(found.policy().probabilities(0), Floats)
assert_type(found.agent.policy, Floats)
assert_type(found.agent.visits, Ints)
assert_type(ravi.select([best.policy], mdp, epsilon=0.1).estimates, Floats)
assert_type(ravi.results("folder").regret(mdp="riverswim/6"), tuple[Ints, Floats])
"""


def _mypy(script: Path) -> list[tuple[int, str]]:
    """Of every error, its line and what it says."""
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", "--cache-dir", os.devnull]
    done = _run("mypy", *options, str(script), environment={"MYPYPATH": SOURCE})
    return [(int(re.search(r":(\d+): ", line)[1]), line) for line in done.stdout.splitlines()]


def _pyright(script: Path) -> list[tuple[int, str]]:
    settings = {"extraPaths": [SOURCE], "typeCheckingMode": "strict"}
    (script.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    python = ("--pythonpath", sys.executable)
    done = _run("basedpyright", "--outputjson", *python, "--project", str(script.parent), environment={})
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [(each["range"]["start"]["line"] + 1, each["message"]) for each in found]


def _run(program: str, *options: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", program, *options]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)


@pytest.mark.parametrize("checked", [_mypy, _pyright])
def test_arrays_of_the_public_names_have_types(tmp_path, checked):
    pytest.importorskip({"_mypy": "mypy", "_pyright": "basedpyright"}[checked.__name__])
    script = tmp_path / "script.py"
    wrong = SCRIPT + "ravi.learn(100)\nravi.run('psrl', 6, 100)\nassert_type(run.regret, Ints)\n"
    script.write_text(wrong)
    found = checked(script)  # one that sees nothing finds nothing
    last = wrong.count("\n")
    assert sorted({line for line, _ in found}) == [last - 2, last - 1, last], found


def test_the_package_says_that_it_is_typed():
    assert (Path(ravi.__file__).parent / "py.typed").exists()
