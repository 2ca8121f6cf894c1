"""Results: each run once, conflicts loud, damage named, tables and arrays that are the runs' own bits."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ravi
from ravi.lab.experiments.manifest import differing, git, manifest
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.results import ConflictWarning, DamagedWarning
from ravi.lab.experiments.rows import SCHEMA
from ravi.lab.experiments.store import Store
from ravi.lab.report.page import report
from ravi.machine import gpu, memory, quota
from ravi.validation import InputError
from tests.lab.experiments.stores import SUITE, created, failed, made, rows, setting, subject
from tests.lab.report import folders

OURS = {"label": "ours", "section": "first"}


def tuned(store, learner="ravi-ucb,scale=0.1", chosen=0):
    """Keep a tuning record that chose this learner."""
    configuration = {"scale": 0.1, "step_scale": None, "learner": learner, "setting": setting(learner).digest}
    configuration |= {"regret": 1.5, "standard_error": 0.25, "failed": 0}
    other = configuration | {"scale": 1.0, "learner": "ravi-ucb", "setting": setting("ravi-ucb").digest, "regret": None}
    record = {
        "subject": subject().digest, "mdp": "riverswim/4", "mdp_digest": ravi.mdp("riverswim/4").digest,
        "learner": "ravi-ucb", "steps": 20, "sampler": "lattice", "seeds": [10**6], "budget": 2,
        "configurations": [configuration, other], "chosen": chosen,
    }  # fmt: skip
    store.keep_tuning(subject().digest, record)
    return record


@pytest.fixture
def folder(tmp_path):
    """Every run of the suite but those of the tuned entry."""
    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch)])
        store.write([rows(launch, "ravi-ucb")])
    return tmp_path


def test_results_are_the_runs_own(folder):
    found = ravi.results(folder)
    assert found.runs.num_rows == 6
    assert found.troubles == found.conflicts == []
    assert set(found.runs["run"].to_pylist()) == {
        f"{setting(name).digest}-{seed}" for name in ("uniform", "ravi-ucb") for seed in range(3)
    }
    seeds, regret = found.regret(**OURS)
    assert seeds.tolist() == [0, 1, 2]
    assert regret.tobytes() == made("ravi-ucb").regret.tobytes()
    times, seeds, curves = found.curves(**OURS)
    assert times.tolist() == made("ravi-ucb").times.tolist()
    assert curves.tobytes() == made("ravi-ucb").regret_curve.tobytes()


def test_a_frame_has_a_row_for_every_entry_and_seed_and_a_column_for_every_setting(folder):
    found = ravi.results(folder)
    frame = found.to_pandas()
    assert len(frame) == found.sql("SELECT * FROM results").num_rows
    ours = frame[(frame.section == "first") & (frame.label == "ours")]
    assert ours.regret.to_numpy().tobytes() == made("ravi-ucb").regret.tobytes()
    settings = made("ravi-ucb").settings
    assert all((ours[name] == value).all() for name, value in settings.items())
    assert not {"regret_curve", "constants", "traceback"} & set(frame.columns)


def test_an_entry_has_its_own_seeds_only(folder):
    seeds, regret = ravi.results(folder).regret(section="second", column="theory")
    assert seeds.tolist() == [0, 1]
    assert regret.tobytes() == made("ravi-ucb").regret[:2].tobytes()
    per_entry = ravi.results(folder).sql('SELECT section, "column", count(*) AS n FROM results GROUP BY ALL ORDER BY n')
    assert [row["n"] for row in per_entry.to_pylist()] == [2, 6]


def test_rows_do_not_depend_on_the_parts_that_hold_them(tmp_path):
    tables = []
    for name, cuts in (("one", [(0, 2, 10)]), ("other", [(10,), (2,), (0,)])):
        store = created(tmp_path / name)
        with store.launch({"format": 1}) as launch:
            for seeds in cuts:
                store.write([rows(launch, seeds=seeds)])
        tables.append(ravi.results(tmp_path / name).table().drop_columns(["launch", "seconds"]))
        tables.append(ravi.results(tmp_path / name).runs.drop_columns(["launch", "seconds"]))
    assert tables[0].equals(tables[2])
    assert tables[1].equals(tables[3])
    assert tables[3]["seed"].to_pylist() == [0, 2, 10]


def test_curves_stand_by_their_seeds_whatever_the_order_of_rows(tmp_path):
    def part(*seeds):
        return rows(launch, "ravi-ucb", seeds=seeds, regret_curve=[[float(seed)] * 5 for seed in seeds])

    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        store.write([part(2, 0), rows(launch), part(1)])
    _, seeds, curves = ravi.results(tmp_path).curves(**OURS)
    assert seeds.tolist() == curves[:, 0].tolist() == [0, 1, 2]


def test_a_run_that_was_made_twice_counts_once(folder):
    store = Store(folder)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch), rows(launch)])  # twice in a part, and once in another
    found = ravi.results(folder)
    assert found.runs.num_rows == 6
    assert found.conflicts == []
    assert found.sql("SELECT count(*) AS n FROM runs").to_pylist() == [{"n": 6}]
    assert found.table().num_rows == 6
    assert found.curves(label="uniform")[2].tobytes() == made().regret_curve.tobytes()


def test_success_goes_before_failure_wherever_it_stands(tmp_path):
    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        store.write([failed(launch, seeds=(0, 1, 5)), rows(launch), failed(launch, seeds=(2,))])
    found = ravi.results(tmp_path)
    assert found.conflicts == []
    assert found.runs.filter(found.runs["failure"].is_null())["seed"].to_pylist() == [0, 1, 2]
    failures = found.sql("SELECT seed, failure, error FROM failures").to_pylist()
    assert failures == [{"seed": 5, "failure": "learner", "error": "ValueError: no"}]


def test_different_bits_of_one_run_are_a_loud_conflict(folder):
    store = Store(folder)
    with store.launch({"format": 1, "versions": {"numpy": "0.1"}}) as launch:
        path = store.write([rows(launch, seeds=(1,), digest=["f" * 20], regret=[1e6])])
    with pytest.warns(ConflictWarning, match="1 runs were made twice, with different bits") as told:
        found = ravi.results(folder)
    assert len(told) == 1
    assert "numpy: unknown, then 0.1" in str(told[0].message) or "numpy: 0.1, then unknown" in str(told[0].message)
    (conflict,) = found.conflicts
    assert conflict.run == f"{setting().digest}-1"
    assert len(conflict.digests) == len(conflict.parts) == len(conflict.launches) == 2
    assert f"parts/{path.name}" in conflict.parts
    assert conflict.run in str(found)
    assert "CONFLICTS" in str(found)
    first = min(conflict.parts)  # by name, whichever that is
    wanted = 1e6 if first == f"parts/{path.name}" else made().regret[1]
    assert found.regret(label="uniform")[1][1] == wanted
    assert found.sql("SELECT regret FROM runs WHERE seed = 1 AND learner = 'uniform'")["regret"][0].as_py() == wanted


def test_damage_is_warned_of_once_and_named_and_left_out(folder):
    (one, other) = sorted((folder / "parts").iterdir())
    one.write_bytes(one.read_bytes()[:-1])
    (folder / "parts" / "mine.parquet").write_bytes(b"PAR1")
    (folder / "tuning" / "x.json").write_text("{")
    with pytest.warns(DamagedWarning) as told:
        found = ravi.results(folder)
    assert len(told) == 1
    assert told[0].filename == __file__
    names = [f"parts/{one.name}", "parts/mine.parquet", "tuning/x.json"]
    assert sorted(trouble.name for trouble in found.troubles) == sorted(names)
    assert all(name in str(told[0].message) and name in str(found) for name in names)
    assert found.runs.num_rows == 3
    assert found.sql("SELECT count(*) AS n FROM runs")["n"][0].as_py() == 3


def test_a_launch_without_its_manifest_is_a_trouble(folder):
    (path,) = (folder / "manifests").iterdir()
    path.unlink()
    with pytest.warns(DamagedWarning, match="absent, though there are runs"):
        found = ravi.results(folder)
    assert found.runs.num_rows == 6
    path.write_text("{")
    with pytest.warns(DamagedWarning, match="is damaged"):
        found = ravi.results(folder)
    assert [trouble.name for trouble in found.troubles] == [f"manifests/{path.name}"]


def test_a_folder_can_be_read_while_it_is_written(tmp_path):
    """Every opening sees whole parts only, and never fewer than the one before."""
    store, done = created(tmp_path), threading.Event()

    def write():
        with store.launch({"format": 1}) as launch:
            for seed in range(30):
                store.write([rows(launch, seeds=(0,), seed=[seed])])
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    counts = [0]
    while True:
        last = done.is_set()
        found = ravi.results(tmp_path)  # a warning would be an error
        assert found.table(["seed", "regret_curve"]).num_rows == found.runs.num_rows
        counts.append(found.runs.num_rows)
        if last:
            break
    thread.join()
    assert counts == sorted(counts)
    assert counts[-1] == 30


def test_reading_writes_nothing(folder, monkeypatch):
    def state():
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.rglob("*"))}

    before = state()
    monkeypatch.chdir(folder)
    found = ravi.results(".")
    found.sql("SELECT * FROM results"), found.table(), found.summary(), repr(found), found.regret(**OURS)
    for query in ("COPY runs TO 'x.csv'", "ATTACH 'x.db'", "EXPORT DATABASE 'y'", "COPY runs TO 'x.parquet'"):
        with pytest.raises(InputError, match="disabled by configuration"):
            found.sql(query)
    assert state() == before


@pytest.mark.parametrize("query", ["INSTALL httpfs", "LOAD httpfs", "SELECT * FROM 'https://example.org/a.parquet'"])
def test_queries_reach_nothing_outside(folder, query):
    with pytest.raises(InputError, match=r"disabled|does not exist"):
        ravi.results(folder).sql(query)


def test_queries_do_not_see_the_variables_of_python(folder):
    mine = pa.table({"x": [1]})
    with pytest.raises(InputError, match="mine does not exist"):
        ravi.results(folder).sql("SELECT * FROM mine")
    assert mine.num_rows == 1


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT nothing FROM runs", "", "SELECT column FROM results"])
def test_bad_sql_says_why_and_what_there_is(folder, query):
    with pytest.raises(InputError, match="Views: all_runs, failures, entries, runs, results, tuning"):
        ravi.results(folder).sql(query)


def test_one_query_does_not_change_the_next(folder):
    found = ravi.results(folder)
    found.sql("CREATE TABLE more AS SELECT 1 AS x; DROP VIEW results; SELECT x FROM more")
    assert found.sql("SELECT count(*) AS n FROM results")["n"][0].as_py() == 8


def test_results_outlive_a_change_of_folder(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    found = ravi.results(folder.name)
    monkeypatch.chdir("/")
    assert found.table().num_rows == 6
    assert len(found.curves(**OURS)[1]) == 3


@pytest.mark.parametrize("name", ["a b's [1] *?", ".hidden", "_under", "x=1"])
def test_the_name_of_the_folder_does_not_matter(folder, name):
    other = folder.parent / name
    folder.rename(other)
    assert ravi.results(other).table().equals(ravi.results(other).table())
    assert ravi.results(other).table(["mdp", "steps"]).to_pylist()[0] == {"mdp": "riverswim/4", "steps": 20}
    other.rename(folder)


def test_tables_have_the_columns_and_rows_that_are_asked_for(folder):
    found = ravi.results(folder)
    assert found.table().column_names == ["run", *SCHEMA.names]
    assert found.runs.column_names == [name for name in found.table().column_names if not name.endswith("_curve")]
    some = found.table(["seed", "regret_curve"], where="learner = 'uniform' AND seed > 0 -- of them")
    assert some.column_names == ["seed", "regret_curve"]
    assert some["seed"].to_pylist() == [1, 2]
    assert np.array(some["regret_curve"][0].as_py()).tobytes() == made().regret_curve[1].tobytes()
    with pytest.raises(InputError, match=r"no column 'regrets'. Did you mean regret"):
        found.table(["regrets"])
    with pytest.raises(InputError, match="Views"):
        found.table(where="nonsense > 1")


def test_entries_have_the_setting_that_scores_them(folder):
    found = ravi.results(folder)
    plain = found.entries.to_pylist()
    assert [(row["section"], row["column"], row["label"]) for row in plain] == [
        ("first", "given", "uniform"), ("first", "given", "ours"),
        ("second", "theory", "ours"), ("second", "tuned", "ours"),
    ]  # fmt: skip
    theory = setting("ravi-ucb").digest
    assert [row["setting"] for row in plain] == [setting().digest, theory, theory, None]
    assert plain[0]["seeds"] == [0, 1, 2]
    with pytest.raises(InputError, match=r"second: ours .* is not tuned yet"):
        found.regret(column="tuned")


def test_a_tuned_entry_is_scored_by_what_tuning_chose(folder):
    chosen = "ravi-ucb,scale=0.1"
    store = Store(folder)
    tuned(store)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, chosen, seeds=(0, 1)), rows(launch, chosen, seeds=(0,), seed=[10**6])])
    found = ravi.results(folder)
    seeds, regret = found.regret(column="tuned")
    assert seeds.tolist() == [0, 1]
    assert regret.tobytes() == made(chosen, (0, 1)).regret.tobytes()
    assert found.counts == (8, 8, 0, 1)
    assert "8 of 8 done, 0 failed; 1 more, for tuning or of other suites" in str(found)
    configured = found.sql("SELECT DISTINCT learner, configured FROM results WHERE \"column\" = 'tuned'").to_pylist()
    assert configured == [{"learner": "ravi-ucb", "configured": chosen}]
    seen = {view: found.sql(f"SELECT seed FROM {view} WHERE learner = '{chosen}'") for view in ("runs", "all_runs")}
    assert sorted(seen["runs"]["seed"].to_pylist()) == [0, 1]  # that of tuning is not reported
    assert sorted(seen["all_runs"]["seed"].to_pylist()) == [0, 1, 10**6]
    assert found.sql("SELECT count(*) AS n FROM runs").to_pylist() == [{"n": 8}]


def test_the_view_of_tuning_has_a_row_for_every_configuration(folder):
    tuned(Store(folder), chosen=1)
    rows = ravi.results(folder).sql("SELECT * FROM tuning ORDER BY configuration").to_pylist()
    assert [(row["scale"], row["regret"], row["chosen"]) for row in rows] == [(0.1, 1.5, False), (1.0, None, True)]
    assert [row["configured"] for row in rows] == ["ravi-ucb,scale=0.1", "ravi-ucb"]
    assert {row["learner"] for row in rows} == {"ravi-ucb"}
    assert rows[0]["step_scale"] is None


@pytest.mark.parametrize(
    "record", [{}, {"configurations": 3}, {"configurations": [1]}, {"configurations": [{"learner": "x"}], "chosen": 1}]
)
def test_a_foreign_record_of_tuning_is_a_trouble(folder, record):
    Store(folder).keep_tuning(subject().digest, record)
    with pytest.warns(DamagedWarning, match="it is no record of tuning"):
        found = ravi.results(folder)
    assert found.tuning == {}
    assert found.sql("SELECT * FROM tuning").num_rows == 0
    assert found.entries["setting"].null_count == 1


def test_an_entry_must_be_named_without_doubt(folder):
    found = ravi.results(folder)
    for which, why in (
        ({"label": "ours"}, r"3 entries have label = 'ours':(?s:.*)second: ours \(ravi-ucb\)"),
        ({}, "4 entries have nothing said of them"),
        ({"learner": "ravi-ubc"}, r"no entry has learner = 'ravi-ubc'. Did you mean ravi-ucb\?"),
        ({"section": "second", "label": "uniform"}, "no entry has section = 'second', label = 'uniform'"),
        ({"lable": "ours"}, r"an entry has no 'lable'. Did you mean label\?"),
        ({"name": "regrets", **OURS}, "no curve 'regrets'. Did you mean regret"),
        ({"name": "reward", **OURS}, "reward was not recorded for first: ours"),
    ):
        with pytest.raises(InputError, match=why):
            found.curves(**which)


def test_the_summary_counts_seeds_and_failures(tmp_path):
    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, seeds=(0, 1)), failed(launch, seeds=(2,))])
    found = ravi.results(tmp_path)
    lines = [line.split() for line in found.summary().splitlines()]
    mean = f"{made(seeds=(0, 1)).regret.mean():,.2f}"
    assert lines[0] == ["section", "MDP", "learner", "column", "T", "seeds", "failed", "mean", "regret"]
    assert lines[1] == ["first", "riverswim/4", "uniform", "given", "20", "2", "of", "3", "1", mean]
    assert lines[2] == ["first", "riverswim/4", "ours", "given", "20", "0", "of", "3", "0", "-"]
    assert found.counts == (8, 2, 1, 0)
    assert found.regret(label="uniform")[0].tolist() == found.curves(label="uniform")[1].tolist() == [0, 1]
    assert "2 of 8 done, 1 failed" in str(found)


def test_a_suite_comes_back_as_it_was_frozen(folder):
    found = ravi.results(folder)
    assert found.suite.name == "tiny"
    assert found.specification == found.suite.plain()
    assert [section["name"] for section in found.specification["sections"]] == [
        one["name"] for one in SUITE["sections"]
    ]


def test_an_empty_store_has_no_results(tmp_path):
    created(tmp_path)
    found = ravi.results(tmp_path)
    assert found.runs.num_rows == found.table().num_rows == found.sql("SELECT * FROM results").num_rows == 0
    assert found.counts == (8, 0, 0, 0)
    assert found.regret(**OURS)[1].shape == (0,)
    assert found.curves(**OURS)[2].shape == (0, 5)
    assert "0 of 8 done" in str(found)


def test_runs_can_be_read_without_a_specification(folder):
    (folder / "specification.json").unlink()
    found = ravi.results(folder)
    assert "6 runs, 0 failed" in str(found)
    assert found.sql("SELECT count(*) AS n FROM all_runs")["n"][0].as_py() == 6
    with pytest.raises(InputError, match=r"entries, runs, results are not there: .* has no specification\.json"):
        found.sql("SELECT * FROM results")
    with pytest.raises(InputError, match=r"no specification\.json"):
        found.regret()


def test_what_is_no_folder_of_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        ravi.results(tmp_path / "nothing")
    with pytest.raises(InputError, match="is no folder of results"):
        ravi.results(tmp_path)


def test_a_manifest_says_what_made_the_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = manifest(["ravi", "run", "x"], {"name": "x"})
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["versions"].keys() >= {"ravi", "source", "numpy", "numba", "pyarrow", "duckdb", "python"}
    assert made["machine"]["cores"] >= 1
    assert (made["command"], made["folder"], made["suite"]) == (["ravi", "run", "x"], str(tmp_path), {"name": "x"})
    assert differing(made, manifest(None, {})) == []


def test_differing_names_what_bits_may_depend_on():
    made = manifest([], {})
    other = json.loads(json.dumps(made))
    other["versions"] |= {"numpy": "0.1", "pyarrow": "0.1"}  # no bit depends on how it is stored
    other["machine"]["cpu"] = "abacus"
    other["started"], other["command"] = "then", ["x"]
    lines = differing(made, other)
    assert [line.split(":")[0] for line in lines] == ["numpy", "cpu"]
    assert lines[0] == f"numpy: {np.__version__}, then 0.1"
    assert differing({"versions": made["versions"]}, other) == lines[:1]  # a worker names no more
    assert any(line.startswith("ravi: unknown") for line in differing({}, made))


def test_git_is_asked_but_never_needed(tmp_path, monkeypatch):
    assert git(tmp_path) is None
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert git(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git(Path(ravi.__file__).parent) is None


def test_git_tells_the_commit_and_whether_anything_was_changed(tmp_path, monkeypatch):
    import subprocess

    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "x")

    def run(*words):
        return subprocess.run(
            ["git", "-C", tmp_path, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    run("init", "-q")
    (tmp_path / "__init__.py").write_text("")
    assert git(tmp_path) is None  # not one of its files
    run("add", "__init__.py")
    assert git(tmp_path) == {"commit": None, "dirty": True}
    run("commit", "-q", "-m", "x")
    assert git(tmp_path) == {"commit": run("rev-parse", "HEAD"), "dirty": False}
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as inside a hook
    (tmp_path / "__init__.py").write_text("x")
    assert git(tmp_path)["dirty"] is True


@pytest.mark.parametrize(("text", "cores"), [("max 100000", None), ("150000 100000", 1.5), ("", None), ("x y", None)])
def test_the_limit_of_a_control_group_is_read(tmp_path, text, cores):
    assert quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text(text)
    assert quota(tmp_path) == cores


def test_memory_is_what_the_control_group_allows(tmp_path):
    total = memory(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory(tmp_path) == total
    (tmp_path / "memory.max").write_text("1048576\n")
    assert memory(tmp_path) == 2**20


def test_gpus_are_read_from_the_driver(tmp_path):
    assert gpu(tmp_path / "nothing") == []
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "information").write_text("Model: \t\t NVIDIA H200\nIRQ: 1\n")
    assert gpu(tmp_path) == ["NVIDIA H200"]


DOC = Path(__file__).parents[2].parent / "docs" / "reference" / "store.md"


def test_the_documented_columns_are_those_of_the_rows():
    import re

    listed = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", DOC.read_text(), flags=re.MULTILINE)
    types = [str(field.type).replace("list<item: double>", "list of double") for field in SCHEMA]
    assert listed == list(zip(SCHEMA.names, types, strict=True))


def test_a_folder_can_be_read_without_ravi_as_documented(folder, monkeypatch):
    """The queries and the function of docs/reference/store.md, by DuckDB and hashlib alone."""
    import re

    import duckdb

    store = Store(folder)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch), failed(launch, "ravi-ucb", seeds=(0, 9)), rows(launch, "ravi-ucb", seeds=(1,))])
    folder.rename(folder.parent / "results")
    monkeypatch.chdir(folder.parent)
    runs, conflicts = re.findall(r"```sql\n(.*?)```", DOC.read_text(), flags=re.DOTALL)
    with duckdb.connect(":memory:") as connection:
        found = connection.sql(runs).to_arrow_table().drop_columns("filename")
        assert connection.sql(conflicts).to_arrow_table().num_rows == 0
        ours = ravi.results("results").table().drop_columns("run")
        ordered = [("setting", "ascending"), ("seed", "ascending")]
        assert found.num_rows == 7
        assert found.sort_by(ordered).to_pylist() == ours.sort_by(ordered).to_pylist()
        store = Store(Path("results"))
        with store.launch({"format": 1}) as launch:
            other = store.write([rows(launch, seeds=(1,), digest=["f" * 20])])
        assert connection.sql(conflicts).to_arrow_table()["seed"].to_pylist() == [1]

    names = {}
    exec(re.search(r"```python\n(.*?)```", DOC.read_text(), flags=re.DOTALL)[1], names)
    assert names["whole"](other)
    other.write_bytes(other.read_bytes()[:-1])
    assert not names["whole"](other)


DEEP = "[" * 100_000 + "]" * 100_000
SMALL = {
    "name": "deep", "steps": 60, "seeds": 2, "points": 5, "columns": ["tuned"], "tuning": {"budget": 2, "seeds": 2},
    "sections": [{"name": "one", "mdps": ["riverswim/4"], "learners": ["ravi-ucb"]}],
}  # fmt: skip


@pytest.mark.parametrize("name", ["tuning", "manifests", "specification.json", "verify.json"])
def test_json_nested_deep_is_named_wherever_it_is(tmp_path, name):
    folder = folders.made(tmp_path / "results", SMALL)
    path = next((folder / name).iterdir()) if (folder / name).is_dir() else folder / name
    path.write_text(DEEP)
    told = rf"{path.name} is damaged: it is no JSON: maximum recursion depth"
    if name in ("tuning", "manifests"):
        with pytest.warns(DamagedWarning, match=told):
            ravi.results(folder)
    else:
        with pytest.raises(InputError, match=told):
            report(folder)


def test_toml_nested_deep_is_refused(tmp_path):
    (tmp_path / "deep.toml").write_text(f"seeds = {DEEP}")
    with pytest.raises(InputError, match=r"deep\.toml: its lists and tables are nested too deep"):
        specify(tmp_path / "deep.toml")


def test_a_checkpoint_or_a_part_that_is_no_file_is_left_out(tmp_path):
    folder = folders.made(tmp_path / "results", SMALL)
    store = Store(folder)
    os.mkfifo(folder / "checkpoints" / f"{'0' * 20}-{'0' * 20}.run")
    os.mkfifo(folder / "parts" / f"{'0' * 12}-000000-{'0' * 16}.parquet")
    assert store.checkpoints() == []
    assert "it is a device or a pipe, not a file" in str(store.troubles[0])
    with pytest.warns(DamagedWarning, match="damaged: it is no file"):
        ravi.results(folder)
