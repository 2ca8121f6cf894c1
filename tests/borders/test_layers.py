"""The core needs no extra: without optional packages, commands run, or say in one line what to install. And modules
import one another in one direction."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ravi

EXTRAS = ("pyarrow", "duckdb", "matplotlib", "plotly", "jinja2", "ray", "gymnasium", "optuna", "adastop", "cupy")
BARE = f"import sys\nfor name in {EXTRAS!r}: sys.modules[name] = None\nfrom ravi.cli import main\nmain()"


def bare(folder, *words):
    """What a command says and its status, where no extra is installed."""
    done = subprocess.run([sys.executable, "-c", BARE, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "riverswim/3", "ravi-ucb", "--steps", "200", "--seeds", "2", "--save", "a.run"),
        ("solve", "riverswim/3"),
        ("verify", "riverswim/3", "--steps", "200", "--seeds", "2"),
        ("list",),
    ],
    ids=lambda words: words[0],
)
def test_the_core_runs_without_any_extra(words, tmp_path):
    status, said = bare(tmp_path, *words)
    assert status == 0, said


@pytest.mark.parametrize(
    ("words", "needs", "extra"),
    [
        (("run", "demo", "--out", "there"), "pyarrow", "lab"),
        (("results", "."), "pyarrow", "lab"),
        (("report", "."), "pyarrow", "lab"),
        (
            ("learn", "FrozenLake-v1", "--learner=psrl", "--discount=.9", "--steps=9"),
            "Gymnasium",
            "gymnasium",
        ),
        (("run", "riverswim/3", "ravi-ucb", "--steps", "200", "--device", "gpu"), "CuPy", "gpu"),
    ],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_what_needs_an_extra_says_so_in_one_line(words, needs, extra, tmp_path):
    status, said = bare(tmp_path, *words)
    assert status == 2
    assert said.startswith("ravi: "), said
    assert said.count("\n") == 1, said
    assert needs in said
    assert f"pip install 'ravi[{extra}]', or in a clone pip install -e '.[{extra}]'" in said


DATA = ("ravi.core", "ravi.runs")  # whose methods (`MDP.save`, `Run.plot`) import what they stand for


def imported(path, names, *, within_functions):
    """The modules of the library that a file imports; for types alone does not count."""

    def found(nodes):
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ravi":
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield whole if whole in names else node.module
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not within_functions:
                continue
            elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
                yield from found(ast.iter_child_nodes(node))

    return set(found(ast.parse(path.read_text()).body)) & names


def test_no_module_imports_one_that_imports_it():
    """Imports within functions count, but for those of two modules of data."""
    root = Path(ravi.__file__).parent
    files = {".".join(("ravi", *path.relative_to(root).with_suffix("").parts)): path for path in root.rglob("*.py")}
    files = {name: path for name, path in files.items() if not name.endswith("__init__")}  # packages gather names
    graph = {name: imported(path, set(files), within_functions=name not in DATA) for name, path in files.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(files)  # else a CycleError, which names them
    assert sum(map(len, graph.values())) > 3 * len(files)
    assert all(graph[name] < imported(files[name], set(files), within_functions=True) for name in DATA)
