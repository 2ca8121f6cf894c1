"""Modules import one another in one direction."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import ravi

DATA = ("ravi.core", "ravi.runtime.result")  # whose methods (`MDP.save`, `Run.plot`) import what they stand for


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
