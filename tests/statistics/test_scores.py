"""Any table of runs becomes the same scores; what cannot be compared is told, with the run."""

import numpy as np
import pyarrow as pa
import pytest

import ravi
from ravi.lab.report.tables import comparison_table, table
from ravi.statistics import compare, from_table, improvement, scores
from ravi.validation import InputError
from tests.support.pools import in_this_process

COLUMNS = {
    "learner": ["b", "b", "a", "a", "a"],
    "mdp": ["m", "m", "m", "m", "n"],
    "seed": [1, 0, 0, 2, 5],
    "regret": [4.0, 3.0, 1.0, 2.0, 9.0],
}


def forms():
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    yield pytest.param(COLUMNS, id="dict")
    yield pytest.param({name: np.array(held) for name, held in COLUMNS.items()}, id="dict of arrays")
    yield pytest.param(rows, id="list of dicts")
    yield pytest.param(pa.table(COLUMNS), id="Arrow")


def same(found):
    assert found.learners == ("b", "a")
    assert found.mdps == ("m", "n")
    assert found.seeds["b"]["m"].tolist() == [0, 1]  # ascending
    assert found.values["b"]["m"].tolist() == [3.0, 4.0]
    assert found.values["a"]["n"].tolist() == [9.0]
    assert "n" not in found.values["b"]


@pytest.mark.parametrize("table", list(forms()))
def test_every_kind_of_table_gives_the_same_scores(table):
    same(from_table(table))


def test_a_pandas_frame_is_a_table():
    pandas = pytest.importorskip("pandas", reason="pandas comes with ravi[seeds] only")
    same(from_table(pandas.DataFrame(COLUMNS)))


def test_columns_may_have_other_names():
    names = {"learner": "algo", "mdp": "env", "seed": "run", "regret": "score"}
    table = {names[name]: held for name, held in COLUMNS.items()}
    same(from_table(table, learner="algo", mdp="env", seed="run", value="score"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regret": [4.0, 3.0, np.nan, 2.0, 9.0]}, "a on m, seed 0: regret is nan"),
        ({"regret": [4.0, 3.0, 1.0, np.inf, 9.0]}, "a on m, seed 2: regret is inf"),
        ({"regret": [4.0, 3.0, 1.0, None, 9.0]}, "a on m, seed 2: regret is None"),
        ({"seed": [1, 1, 0, 2, 5]}, "b on m has seed 1 twice"),
        ({"seed": [1, 0.5, 0, 2, 5]}, "seed 0.5: a seed is a whole number"),
        ({"seed": [1, 0]}, "different lengths"),
    ],
)
def test_bad_rows_are_named(change, message):
    with pytest.raises(InputError, match=message):
        from_table(COLUMNS | change)


def test_errors_come_with_the_values():
    exact = from_table(COLUMNS)
    assert exact.error("b", "m").tolist() == [0.0, 0.0]
    assert exact.errors["b"]["m"].tolist() == [0.0, 0.0]
    found = from_table(COLUMNS | {"off": [0.1, 0.2, 0.3, 0.4, 0.5]}, error="off")
    assert found.error("b", "m").tolist() == [0.2, 0.1]  # by seed
    assert found.error("a", "m").tolist() == [0.3, 0.4]
    with pytest.raises(InputError, match="a on n, seed 5: the error of regret is -1"):
        from_table(COLUMNS | {"off": [0.1, 0.2, 0.3, 0.4, -1]}, error="off")
    with pytest.raises(InputError, match="no column 'offf'"):
        from_table(COLUMNS | {"off": [0.1, 0.2, 0.3, 0.4, -1]}, error="offf")
    with pytest.raises(InputError, match="there is no run of b on n"):
        found.error("b", "n")


def test_a_missing_column_or_an_empty_table_is_told():
    with pytest.raises(InputError, match=r"no column 'regrets'. Did you mean regret"):
        from_table(COLUMNS, value="regrets")
    with pytest.raises(InputError, match=r"table\[0\] has no 'regret'"):
        from_table([{"learner": "a", "mdp": "m", "seed": 0}])
    with pytest.raises(InputError, match="no runs"):
        from_table([])
    with pytest.raises(InputError, match="not int"):
        from_table(3)


def test_unknown_names_are_told_with_what_is_known():
    found = from_table(COLUMNS)
    with pytest.raises(InputError, match=r"no learner 'c'.*Known: b, a"):
        found.of("c", "m")
    with pytest.raises(InputError, match="no run of b on n"):
        found.of("b", "n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    learners = ["uniform", {"id": "psrl", "label": "PSRL"}]
    sections = [
        {"name": "one", "mdps": ["riverswim/4"], "learners": learners, "steps": [50, 100]},
        {"name": "two", "mdps": ["riverswim/4"], "learners": learners, "steps": 100},
        {"name": "other", "mdps": ["riverswim/4"], "learners": [{"id": "q-learning", "label": "PSRL"}], "steps": 100},
    ]
    suite = {"name": "small", "seeds": 3, "columns": ["given"], "sections": sections}
    with in_this_process():
        return ravi.run_suite(suite, tmp_path_factory.mktemp("small") / "out", workers=1)


def test_scores_of_a_folder_are_the_regret_of_its_entries(folder):
    found = scores(folder, section="one")
    assert found.learners == ("uniform", "PSRL")
    assert found.mdps == ("riverswim/4, T = 50", "riverswim/4, T = 100")
    seeds, regret = folder.regret(section="one", label="PSRL", steps=50)
    np.testing.assert_array_equal(found.values["PSRL"]["riverswim/4, T = 50"], regret)
    np.testing.assert_array_equal(found.seeds["PSRL"]["riverswim/4, T = 50"], seeds)
    assert scores(folder, section="two").mdps == ("riverswim/4",)
    runs = folder.runs.filter(pa.compute.equal(folder.runs["steps"], 50)).to_pylist()
    certified = {run["seed"]: run["regret_error"] for run in runs if run["learner"] == "psrl"}
    held = found.errors["PSRL"]["riverswim/4, T = 50"]
    assert held.tolist() == [certified[seed] for seed in seeds]
    assert (held > 0).all()
    assert (scores(folder, section="two", value="reward").error("PSRL", "riverswim/4") == 0).all()
    assert scores(folder, section="two", value="reward").larger_is_better


@pytest.mark.usefixtures("in_this_process")
def test_learners_that_differ_by_rounding_are_tied_in_tables(tmp_path):
    """With published constants RAVI-UCB still plays the uniform policy, to 1e-10: less than what regret may be off."""
    section = {"name": "river", "mdps": ["riverswim/6"], "learners": ["ravi-ucb", "uniform"]}
    suite = {"name": "tie", "steps": 3000, "seeds": 3, "columns": ["given"], "sections": [section]}
    results = ravi.run_suite(suite, tmp_path / "out", workers=1)
    found = scores(results)
    apart = found.values["ravi-ucb"]["riverswim/6"] - found.values["uniform"]["riverswim/6"]
    assert 0 < np.abs(apart).max() < 1e-6
    assert compare(found, "ravi-ucb", "uniform", "riverswim/6").difference[:3] == (0, 0, 0)
    assert improvement(found, "ravi-ucb", "uniform").estimate == 0.5
    assert [(cell["best"], cell["tie"]) for cell in table(results).records] == [(True, False), (False, True)]
    assert "0.50 [" in comparison_table(results).text()


def test_one_name_for_different_runs_is_an_error(folder):
    with pytest.raises(InputError, match="different runs in the sections 'one' and 'other'"):
        scores(folder)
    with pytest.raises(InputError, match=r"no entry has section = 'twoo'. Did you mean two"):
        scores(folder, section="twoo")
    with pytest.raises(InputError, match=r"results have no 'regre'. Did you mean regret"):
        scores(folder, section="two", value="regre")


def test_runs_that_are_not_there_are_counted(folder):
    lost = folder.runs.filter(pa.compute.not_equal(folder.runs["seed"], 1))
    partial = ravi.results(folder.folder)
    partial.runs = lost
    found = scores(partial, section="two")
    assert found.missing == {name: {"riverswim/4": 1} for name in ("uniform", "PSRL")}
    assert found.seeds["PSRL"]["riverswim/4"].tolist() == [0, 2]
    assert scores(folder, section="two").missing == {}
