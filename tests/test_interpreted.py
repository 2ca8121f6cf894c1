"""What is soon done is run by Python where it is not compiled yet: with the same bits, and no time for compiling."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi._jit import cache
from ravi._jit import functions as compiled
from tests.support.bits import bits


def python(folder, *words):
    """Run Python with a cache that begins in this folder, empty; what it printed, and how many functions it keeps."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=os.environ | {"RAVI_CACHE_DIR": str(folder)}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, len(list(Path(folder).rglob("*.nbc")))


def test_every_learner_does_the_same_interpreted_and_compiled(tmp_path):
    printed, kept = python(tmp_path, "-m", "tests.support.bits", "inf")
    assert kept == 0
    assert json.loads(printed) == bits()


def test_what_python_ran_has_the_numbers_of_python(tmp_path):
    """Rows of results are hashed with the optimum as it is written: 0.25 is not np.float64(0.25)."""
    code = """if True:
        import math, ravi
        from ravi._jit.functions import sparing
        with sparing(math.inf):
            found = ravi.solve(ravi.mdp("riverswim/5"))
        print(repr([found.optimum, found.optimum_error, found.error, found.policy_error, found.rounding]))
    """
    printed, kept = python(tmp_path, "-c", code)
    found = ravi.solve(ravi.mdp("riverswim/5"))
    assert kept == 0
    assert printed.strip() == repr(
        [found.optimum, found.optimum_error, found.error, found.policy_error, found.rounding]
    )


def test_a_command_compiles_nothing_for_a_small_mdp(tmp_path):
    printed, kept = python(tmp_path, "-m", "ravi", "solve", "riverswim/6", "--json")
    found, solved = json.loads(printed), ravi.solve(ravi.mdp("riverswim/6"))
    assert kept == 0
    assert (found["optimum"], found["value_error"]) == (solved.optimum, solved.error)
    assert np.array_equal(found["value"], solved.V)


def test_a_command_compiles_nothing_for_a_short_run(tmp_path):
    """Of 16 seeds, as many as come if none are said."""
    printed, kept = python(tmp_path, "-m", "ravi", "run", "riverswim/6", "ravi-ucb", "--steps", "300", "--json")
    assert kept == 0
    made = ravi.run("ravi-ucb", "riverswim/6", 300, 16, progress=False)
    assert json.loads(printed)["regret"] == pytest.approx(made.regret.mean(), rel=1e-14)


def test_compiling_is_not_counted_as_the_time_of_a_run():
    sound = ravi.learner("uniform", ravi.mdp("riverswim/6"), 10)

    def plan(state):
        time.sleep(0.5)
        compiled.effort.seconds += 0.5  # as if half a second had been compiled
        return state

    assert ravi.run(sound._replace(plan=plan), "riverswim/6", 10, 1).seconds < 0.4


@pytest.fixture
def halved(monkeypatch):
    """A function that nothing has called, and no cache holds."""
    monkeypatch.setattr(cache, "cache_folder", lambda: None)
    return compiled.compiled(lambda x: x / 0.0 if x > 1.0 else x / 2.0)


def test_python_runs_what_is_not_compiled_and_divides_by_zero_as_numpy_does(halved):
    with compiled.sparing():
        assert (halved(1.0), halved(3.0)) == (0.5, np.inf)
    assert not halved.signatures
    assert type(halved(1.0)) is float  # compiled: what is not said to be soon done may be long
    assert halved.signatures


OF_MATH = {
    "log": lambda x: math.log(x), "log1p": lambda x: math.log1p(x), "exp": lambda x: math.exp(x),
    "expm1": lambda x: math.expm1(x), "sqrt": lambda x: math.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_MATH)
def test_functions_of_math_give_what_compiled_ones_give_also_where_python_raises(name, monkeypatch):
    monkeypatch.setattr(cache, "cache_folder", lambda: None)
    made = compiled.compiled(OF_MATH[name])
    at = [-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1e3, np.inf, np.nan]
    with compiled.sparing():
        by_python = [made(x) for x in at]
    assert not made.signatures
    np.testing.assert_array_equal(by_python, [made(x) for x in at], strict=True)
    assert made.signatures


@pytest.mark.parametrize("limit", ["allowance", "FEW", "WORTH"])
def test_what_takes_long_is_compiled(halved, limit, monkeypatch):
    if limit != "allowance":
        monkeypatch.setattr(compiled, limit, 0)
    with compiled.sparing(0.0 if limit == "allowance" else 2.0):
        assert halved(1.0) == 0.5
    assert halved.signatures


def test_who_wants_to_know_is_told_of_compiling(halved, monkeypatch):
    told = []
    monkeypatch.setattr(compiled.effort, "tell", lambda: told.append(1))
    halved(1.0)
    halved(1.0)
    assert told == [1]
