"""What is installed is the wheel: it runs with nothing but what it asks for, and says of a missing extra one line."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PACKAGES = Path(sysconfig.get_paths()["purelib"])
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODULES = {
    "lab": ("pyarrow", "duckdb", "_duckdb"),
    "figures": ("matplotlib",),
    "report": ("plotly", "jinja2"),
    "ray": ("ray",),
    "seeds": ("adastop",),
    "tuning": ("optuna",),
    "gymnasium": ("gymnasium",),
    "gpu": ("cupy", "numba_cuda"),
}  # what an extra adds to those that it names
SECTION = "{'name': 'a', 'mdps': ['riverswim/3'], 'learners': ['ravi-ucb']}"
SUITE = f"{{'name': 's', 'steps': 5, 'seeds': 1, 'sections': [{SECTION}]}}"
ASKED = {
    "lab": f"ravi.run_suite({SUITE}, 'results', workers=1)",
    "figures": "from ravi.display.style import library; library()",
    "report": "from ravi.lab.report.page import report; report('results')",
    "ray": f"ravi.run_suite({SUITE}, 'by-ray', cluster='local')",
    "seeds": "from ravi.statistics.seeds import _adastop; _adastop()",
    "tuning": f"ravi.run_suite({SUITE} | {{'columns': ['tuned'], 'tuning': {{'sampler': 'optuna'}}}}, 'tuned')",
    "gymnasium": "ravi.learn('FrozenLake-v1', 'psrl', 10, discount=0.9)",
    "gpu": "ravi.run('uniform', 'riverswim/3', 5, 1, device='gpu')",
}
TRIED = """
import ravi, warnings
warnings.simplefilter("ignore")
for code in {!r}:
    try:
        exec(code)
        print()
    except ravi.InputError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The folder of a fresh one, with the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    built = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(built, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    into = [sys.executable, "-m", "pip", "--python", folder / "venv" / "bin" / "python"]
    subprocess.run([*into, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    return folder / "venv"


def among(environment, packages, *hidden):
    """Its Python, with the packages of this environment, linked in a folder, but for those that are hidden."""
    packages.mkdir()
    for one in PACKAGES.iterdir():
        if not one.name.lower().startswith((*hidden, "ravi", "_ravi", "_editable")) and one.suffix != ".pth":
            (packages / one.name).symlink_to(one)
    (own,) = environment.glob("lib/python*/site-packages")
    (own / "packages.pth").write_text(str(packages))
    return environment / "bin" / "python"


def ran(python, code, folder):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said_of(python, extras, folder):
    """The line that each is told that asks for what an extra has; empty where it is there."""
    said = ran(python, TRIED.format([ASKED[extra] for extra in extras]), folder)
    lines = said.splitlines()
    assert len(lines) == len(extras), said
    return lines


def test_the_core_runs_with_nothing_but_what_it_asks_for(environment, tmp_path):
    hidden = [name for found in MODULES.values() for name in found]
    python = among(environment, tmp_path / "packages", *hidden, "pandas", "tensorboard", "wandb", "torch")
    said = ran(
        python, "import ravi; print(ravi.__file__, ravi.run('uniform', 'riverswim/3', 50, 2).regret.shape)", tmp_path
    )
    assert str(environment) in said
    assert "(2,)" in said
    for words in (["--version"], ["list"], ["solve", "riverswim/3"]):
        subprocess.run([python.with_name("ravi"), *words], cwd=tmp_path, check=True, capture_output=True)
    for extra, line in zip(ASKED, said_of(python, [*ASKED], tmp_path), strict=True):
        asked = "lab" if extra in ("report", "ray", "tuning") else extra  # whose own extra comes first
        assert line.endswith(f"pip install 'ravi[{asked}]', or in a clone pip install -e '.[{asked}]'")


@pytest.mark.parametrize("extra", [name for name in MODULES if name != "gpu"])
def test_without_one_extra_one_line_says_how_to_have_it(extra, environment, tmp_path):
    python = among(environment, tmp_path / "packages", *MODULES[extra])
    if extra == "report":
        ran(python, f"import ravi; {ASKED['lab']}", tmp_path)
    (line,) = said_of(python, [extra], tmp_path)
    assert line.endswith(f"pip install 'ravi[{extra}]', or in a clone pip install -e '.[{extra}]'")


def test_every_extra_is_tried_and_the_wheel_says_what_it_needs(environment, tmp_path):
    assert set(MODULES) == set(ASKED) == set(EXTRAS) - {"all"}
    python = among(environment, tmp_path / "packages")
    told = "import json; from importlib.metadata import metadata; print(json.dumps(metadata('ravi').json))"
    found = json.loads(ran(python, told, tmp_path))
    assert set(found["provides_extra"]) == set(EXTRAS)
    assert any(re.match(r"Paper, https://", url) for url in found["project_url"])
    assert said_of(python, ["lab", "figures", "gymnasium"], tmp_path) == ["", "", ""]
