"""Any table of runs becomes the same scores; what cannot be compared is told, with the run."""

import numpy as np
import pyarrow as pa
import pytest

import ravi
from ravi.statistics import from_table, scores
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


def test_runs_that_are_not_there_are_counted(folder):
    lost = folder.runs.filter(pa.compute.not_equal(folder.runs["seed"], 1))
    partial = ravi.results(folder.folder)
    partial.runs = lost
    found = scores(partial, section="two")
    assert found.missing == {name: {"riverswim/4": 1} for name in ("uniform", "PSRL")}
    assert found.seeds["PSRL"]["riverswim/4"].tolist() == [0, 2]
    assert scores(folder, section="two").missing == {}


def test_errors_come_with_the_values():
    assert from_table(COLUMNS).error("b", "m").tolist() == [0.0, 0.0]
    found = from_table(COLUMNS | {"off": [0.1, 0.2, 0.3, 0.4, 0.5]}, error="off")
    assert (found.error("b", "m").tolist(), found.error("a", "m").tolist()) == ([0.2, 0.1], [0.3, 0.4])  # by seed


def test_one_name_for_different_runs_is_an_error(folder):
    with pytest.raises(InputError, match="different runs in the sections 'one' and 'other'"):
        scores(folder)
    with pytest.raises(InputError, match=r"results have no 'regre'. Did you mean regret"):
        scores(folder, section="two", value="regre")
