"""Every extra alone: each command works, or names in one line the extra that it needs."""

import json
import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import ravi
from ravi.validation import install_command

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ADDED = {
    "lab": {"pyarrow", "duckdb", "_duckdb"},
    "figures": {"matplotlib"},
    "report": {"plotly", "jinja2"},
    "ray": {"ray"},
    "seeds": {"adastop"},
    "tuning": {"optuna"},
    "gymnasium": {"gymnasium"},
    "gpu": {"cupy", "numba_cuda"},
}  # modules, besides those of the extras that it names
WITH = {"figures": ["lab"], "report": ["lab", "figures"], "ray": ["lab"], "tuning": ["lab"]}
SECTION = '[[sections]]\nname = "a"\nmdps = ["riverswim/3"]\nlearners = ["ravi-ucb"]\n'
SUITE = f'name = "s"\nsteps = 20\nseeds = 2\n{SECTION}'
TUNED = f'columns = ["tuned"]\ntuning = {{ sampler = "optuna", budget = 2, seeds = 1 }}\n{SUITE}'
COMMANDS = {  # the extras that each needs, the one that is named first before the others
    "--version": (), "list": (), "cite psrl": (), "completion bash": (), "doctor": (), "solve riverswim/3": (),
    "run riverswim/3 psrl --steps 20 --save r.run": (),
    "run riverswim/3 psrl --steps 20 --figure run.png": ("figures",),
    "run riverswim/3 uniform --steps 5 --device gpu": ("gpu",),
    "verify riverswim/mixture/3 --steps 20 --seeds 1 --only A1": (),
    "verify riverswim/mixture/3 --steps 20 --seeds 1 --figure verify.png": ("figures",),
    "advise riverswim/3 --steps 20": (),
    "advise FrozenLake-v1 --steps 20": ("gymnasium",),
    "learn FrozenLake-v1 --steps 20": ("gymnasium",),
    "evaluate it.policy --cycles 2": ("gymnasium",),
    "play it.policy --episodes 1": ("gymnasium",),
    "suites": ("lab",),
    "suite run s.toml --dry-run": ("lab",),
    "suite run s.toml --out out": ("lab",),
    "suite run t.toml --out tuned": ("lab", "tuning"),
    "suite run s.toml --out ray --cluster 127.0.0.1:1": ("ray",),
    "results out": ("lab",), "reproduce out": ("lab",), "table out": ("lab",), "watch out --once": ("lab",),
    "figures out --formats png --kinds regret --workers 1": ("figures",),
    "figures r.run --formats png --kinds gap": ("figures",),
    "report out": ("report",),
    "demo --steps 20 --seeds 2": ("lab",),
}  # fmt: skip


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    pytest.importorskip("gymnasium")
    place = tmp_path_factory.mktemp("extras") / "it.policy"
    ravi.learn("FrozenLake-v1", "psrl", 20, discount=0.9).policy().save(place)
    return place.read_bytes()


def test_every_extra_is_tried():
    assert set(ADDED) == set(EXTRAS) - {"all"}
    named = {extra: ",".join(line for line in lines if line.startswith("ravi[")) for extra, lines in EXTRAS.items()}
    assert {extra: f"ravi[{found[-1]}]" for extra, found in WITH.items()} == {
        extra: line for extra, line in named.items() if line and extra != "all"
    }


@pytest.mark.parametrize("extra", ["", *ADDED])
def test_a_command_works_or_names_the_extra_that_it_needs(extra, policy, tmp_path):
    present = {*WITH.get(extra, ()), extra} - {""}
    if missing := [name for one in present for name in ADDED[one] if find_spec(name) is None]:
        pytest.skip(f"{missing[0]} is not installed")
    for name, text in (("s.toml", SUITE), ("t.toml", TUNED)):
        (tmp_path / name).write_text(text)
    (tmp_path / "it.policy").write_bytes(policy)
    hidden = sorted({"pandas"}.union(*(ADDED[one] for one in ADDED if one not in present)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.alone", json.dumps(hidden), json.dumps([*COMMANDS])],
        cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for (line, needed), (status, out, said) in zip(COMMANDS.items(), json.loads(done.stdout), strict=True):
        lacking = [one for one in needed if one not in present]
        if lacking:
            assert (status, said.count("\n")) == (2, 1), (line, said)
            assert said.endswith(f": {install_command(lacking[0])}\n"), (line, said)
        elif "--cluster" in line:
            assert "there is no Ray cluster at 127.0.0.1:1" in said
        elif line.endswith("--device gpu"):
            assert "pip install" not in said
        else:
            assert status == 0, (line, out, said)
        if line == "suites" and not lacking:
            assert all(f"\n{name} " in f"\n{out}" for name in ("quick", "paper", "lead", "scaling"))
            assert (install_command("gymnasium") in " ".join(out.split())) == ("gymnasium" not in present)
