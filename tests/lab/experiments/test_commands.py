"""What is typed does what it says: suites, dry runs, results, reproduction; mistakes are told in a line or more."""

import json
import os
import shutil
import signal
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ravi
from ravi.lab import suites
from ravi.lab.experiments.forecast import forecast
from ravi.lab.experiments.reproduce import reproduce
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.store import Store
from ravi.validation import InputError
from tests.helpers import COMMAND
from tests.lab.experiments.small import SMALL
from tests.support.command import typed

pytestmark = pytest.mark.usefixtures("in_this_process")

TOML = """
steps = 1000
seeds = 3
points = 10
columns = ["theory", "tuned"]
[tuning]
budget = 2
seeds = 2
[[sections]]
name = "river"
mdps = ["riverswim/4"]
learners = ["ucrl2", "psrl"]
"""


def in_a_process(*words, cwd):
    return subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    (folder / "mine.toml").write_text(TOML)
    done = in_a_process("run", "mine.toml", "--out", "out", "--workers", 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "12 of 12 done" not in done.stdout  # 3 x (theory, tuned) of ucrl2, 3 of psrl
    assert "9 of 9 done" in done.stdout
    return folder


def test_the_table_holds_the_means(place):
    found = json.loads(typed("results", "out", "--json", cwd=place).stdout)
    assert (found["planned"], found["done"], found["failed"], found["others"]) == (9, 9, 0, 4)
    rows = {(row["label"], row["column"]): row["regret"] for row in found["results"]}
    assert rows["psrl", "theory"] == rows["psrl", "tuned"]
    assert rows["psrl", "theory"] == pytest.approx(ravi.run("psrl", "riverswim/4", 1000, 3).regret.mean())


def test_the_same_command_prints_the_same_and_json_is_all_it_prints(place):
    again = typed("run", "mine.toml", "--out", "out", "--json", cwd=place)
    found = json.loads(again.stdout)
    assert (again.returncode, again.stderr) == (0, "")
    assert (found["done"], found["stopped"]) == (9, False)


def test_a_query_prints_its_answer(place):
    words = ("results", "out", "--sql", "select label, count(*) as n from results group by label order by label")
    assert typed(*words, cwd=place).stdout.split() == ["label", "n", "psrl", "6", "ucrl2", "6"]
    assert json.loads(typed(*words, "--json", cwd=place).stdout)["rows"][0] == {"label": "psrl", "n": 6}
    for view, steps in (("runs", 9_000), ("all_runs", 13_000)):  # without those of tuning, and with them
        total = typed("results", "out", "--json", "--sql", f"select sum(steps) as total from {view}", cwd=place)
        assert json.loads(total.stdout) == {"rows": [{"total": steps}]}
    assert typed("results", "out", "--sql", "select 1 as a, 2 as a", cwd=place).stdout.split() == ["a", "a", "1", "2"]
    assert typed("results", "out", "--json", "--sql", "select 1 as a, 2 as a", cwd=place).returncode == 2
    wrong = typed("results", "out", "--sql", "select nothing from nowhere", cwd=place)
    assert wrong.returncode == 2
    assert "failures" in wrong.stderr  # the views that there are


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("quik --out x", "quick"),
        ("bad.toml --out bad", "bad.toml:4: ponits: there is no key 'ponits'. Did you mean points?"),
        ("mine.toml", "--out"),
        ("mine.toml --out x --steps 100", "--steps is for one run"),
        ("riverswim/4 psrl --out x", "--out is for a suite"),
        ("riverswim/4", "riverswim/4 is an MDP, and a run needs a learner too: ravi run riverswim/4 psrl"),
        ("mine.toml --out x --shard 5/3", "shard"),
        ("mine.toml --out x --workers 0", "workers"),
        ("mine.toml --out out --seeds 7", "--adopt"),
        ("mine.toml --out mine.toml", "is a file"),
    ],
)
def test_a_mistake_on_the_line_says_what_and_what_to_do(place, line, said):
    (place / "bad.toml").write_text(TOML.replace("points", "ponits"))
    wrong = typed("run", *line.split(), cwd=place)
    assert wrong.returncode == 2
    assert said in wrong.stderr
    assert "Traceback" not in wrong.stderr
    assert not (place / "bad").exists()


def test_a_dry_run_counts_exactly_and_writes_nothing(place):
    before = sorted(os.listdir(place))
    dry = typed("run", "mine.toml", "--out", "elsewhere", "--dry-run", "--json", "--workers", 2, cwd=place)
    found = json.loads(dry.stdout)
    assert (found["runs"], found["stored"], found["workers"]) == (13, 0, 2)
    assert 0 < found["wall_seconds"] < 60
    assert found["wall_seconds"] == found["seconds"] / 2
    assert sorted(os.listdir(place)) == before
    done = json.loads(typed("run", "mine.toml", "--out", "out", "--dry-run", "--json", cwd=place).stdout)
    assert (done["runs"], done["stored"], done["seconds"]) == (13, 13, 0)
    text = typed("run", "mine.toml", "--dry-run", cwd=place).stdout
    assert "13 runs" in text


def test_a_forecast_is_by_the_step_and_divides_into_shards(monkeypatch):
    """With pilots of 10 us a step: all runs that are planned, times T, times that."""
    from ravi.lab.experiments import forecast as module

    monkeypatch.setattr(module, "_pilots", lambda pairs, mdps, parts, progress: dict.fromkeys(pairs, 1e-5))
    whole = forecast(SMALL)
    assert whole.seconds == pytest.approx(whole.runs * 2000 * 1e-5)
    assert forecast(SMALL | {"steps": 40_000}).seconds == pytest.approx(20 * whole.seconds)
    parts = [forecast(SMALL, shard=f"{i}/2") for i in (1, 2)]
    assert sum(part.runs for part in parts) == whole.runs


def test_ctrl_c_says_that_the_same_command_goes_on(place):
    (place / "long.toml").write_text(TOML.replace("steps = 1000", "steps = 2e8"))
    words = [COMMAND, "run", "long.toml", "--out", "long", "--workers", "1"]
    process = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not (place / "long" / "manifests").is_dir() or not os.listdir(place / "long" / "manifests"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "stopped; the same command goes on" in err
    assert "Traceback" not in err


def test_what_is_reproduced_is_compared_bit_by_bit(place):
    same = typed("reproduce", "out", "--workers", 1, cwd=place)
    assert same.returncode == 0, same.stdout + same.stderr
    assert "13 of 13 runs made again" in same.stdout
    assert "every bit of them is the same" in same.stdout
    few = json.loads(typed("reproduce", "out", "--runs", 2, "--json", "--workers", 1, cwd=place).stdout)
    assert (few["compared"], few["reproduced"]) == (2, True)


def forged(folder, change):
    """The folder with its first part changed, under the hash that it then has; the run that is first in it."""
    part = sorted((folder / "parts").iterdir())[0]
    table = pq.read_table(part)
    part.unlink()
    store = Store(folder)
    with store.launch({"versions": ravi.runtime.result.versions()}):
        store.write([change(table)])
    return f"{table['setting'][0]}-{table['seed'][0]}"


def with_first(table, name, value):
    column = pa.array([value, *table[name].to_pylist()[1:]], table.schema.field(name).type)
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)


def test_a_result_that_was_tampered_with_is_found(place, tmp_path):
    for name, value in (("digest", "0" * 20), ("regret", 1.0), ("regret_curve", [1.0] * 10), ("constants", "{}")):
        folder = shutil.copytree(place / "out", tmp_path / name)
        run = forged(folder, lambda table, name=name, value=value: with_first(table, name, value))
        found = reproduce(folder, workers=1)
        assert found.altered == [run]
        assert found.different == ([run] if name == "digest" else [])
        assert found.status == 1
        assert run in found.text()


@pytest.fixture
def folder(place, tmp_path):
    """Results that a test may harm."""
    return shutil.copytree(place / "out", tmp_path / "out")


def test_a_tuning_record_that_was_tampered_with_is_found(folder):
    store = Store(folder)
    ((subject, record),) = store.tuning().items()
    store.keep_tuning(subject, record | {"chosen": 1 - record["chosen"]})
    found = reproduce(folder, runs=1, workers=1)
    assert found.status == 1
    assert "does not follow from its runs" in found.text()


def test_runs_that_the_suite_no_longer_asks_for_are_not_called_reproduced(folder, tmp_path):
    (tmp_path / "other.toml").write_text(TOML.replace('"ucrl2", ', ""))
    run_suite(tmp_path / "other.toml", folder, adopt=True, workers=1)
    found = reproduce(folder, workers=1)
    assert found.compared == 3
    assert found.status == 1
    assert "runs are not of the folder's suite" in found.text()


def test_runs_with_files_and_own_learners_are_reproduced(tmp_path, monkeypatch):
    ravi.mdp("riverswim/5").save(tmp_path / "mine.mdp")
    (tmp_path / "homemade.py").write_text("from ravi.learners.fixed import uniform as lazy\n")
    section = {"name": "a", "mdps": ["mine.mdp"], "learners": ["homemade:lazy", "psrl"]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in section.items()]
    (tmp_path / "own.toml").write_text("steps = 500\nseeds = 2\npoints = 5\n[[sections]]\n" + "\n".join(lines))
    monkeypatch.chdir("/")  # files and modules are found beside the suite
    held = run_suite(tmp_path / "own.toml", tmp_path / "out", workers=1)
    assert held.counts.done == 4
    (tmp_path / "mine.mdp").unlink()
    assert reproduce(tmp_path / "out", workers=1, allow_code=True).status == 0
    with open(tmp_path / "homemade.py", "a") as file:
        file.write("# edited\n")
    found = reproduce(tmp_path / "out", workers=1, allow_code=True)
    assert found.status == 1
    assert "homemade:lazy is another learner now" in found.text()
    assert (found.compared, found.failed) == (2, [])  # psrl is made again all the same


def test_nothing_to_reproduce_is_an_error(tmp_path):
    store = Store(tmp_path / "empty")
    store.create()
    with pytest.raises(InputError, match="nothing to reproduce"):
        reproduce(tmp_path / "empty")


def test_suites_are_listed(tmp_path):
    text = typed("suites", cwd=tmp_path).stdout
    for name in ("quick", "tabular", "mixture", "linear", "paper", "scaling"):
        assert name in text
    told = json.loads(typed("suites", "--json", cwd=tmp_path).stdout)
    assert told["quick"]["runs"] == 272  # 10 learners x 2 columns x 16 seeds, less 3 learners that nothing tunes
    assert told["quick"]["tuning"] == 7 * 20 * 4  # learners x configurations x seeds
    assert "2 sections, 832 runs (272 reported, 560 for tuning)" in text


@pytest.mark.slow
def test_the_quick_suite_runs_whole(tmp_path):
    """All of it, with fewer steps."""
    (tmp_path / "shorter.toml").write_text(suites.text("quick").replace("steps = 1e5", "steps = 2e3"))
    done = in_a_process("run", "shorter.toml", "--out", "out", "--seeds", 2, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["failed"]) == (0, 0)
    assert found["done"] == found["planned"]
