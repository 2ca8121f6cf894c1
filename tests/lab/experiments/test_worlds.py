"""Suites of worlds of every kind: MDPs, changing rewards, large ones, continuous states; and what cannot go there."""

import os

import pytest

import ravi
from ravi import ids
from ravi.lab.experiments import forecast, reproduce
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.runner import run_suite
from ravi.lab.report.figures import each_written
from ravi.lab.report.page import report
from ravi.lab.report.tables import table
from ravi.runtime import compiled
from ravi.validation import InputError
from tests.lab.experiments.small import bits
from tests.lab.experiments.test_runner import drive
from tests.support.pools import Here

pytestmark = pytest.mark.usefixtures("in_this_process")

WORLDS = ("riverswim/4", "tides/4,block=25", "large/riverswim/4", "continuous/level,20,24")
SUITE = {
    "name": "worlds",
    "steps": 300,
    "seeds": 3,
    "points": 10,
    "sections": [{"name": "all", "mdps": WORLDS, "learners": ["ravi-ucb,scale=0.1"]}],
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "undisturbed"
    run_suite(SUITE, folder, workers=1)
    return folder


def row(folder, world, seed=1):
    return ravi.results(folder).table(where=f"mdp = '{world}' AND seed = {seed}").to_pylist()[0]


@pytest.mark.parametrize("world", WORLDS)
def test_rows_are_what_a_single_run_gives_and_what_it_does_not_have_is_null(undisturbed, world):
    made, held = ravi.run("ravi-ucb,scale=0.1", world, 300, 3, points=10), row(undisturbed, world)
    names = {"regret": "regret_total", "regret_error": "regret_error", "gap": "gap", "reward": "reward_total"}
    for column, name in names.items():
        assert held[column] == (float(made.results[name][1]) if name in made.results else None)
    assert held["regret_curve"] == (made.results["regret"][1].tolist() if "regret" in made.results else None)
    optimum = made.results["optimum"][1] if "optimum" in made.results else made.optimum
    assert (held["optimum"], held["optimum_error"]) == (optimum, made.optimum_error)
    assert held["failure"] is None


def test_sizes_are_those_of_the_world(undisturbed):
    sizes = [tuple(row(undisturbed, world)[name] for name in ("states", "actions", "dimension")) for world in WORLDS]
    assert sizes == [(4, 2, 0), (4, 2, 0), (4, 2, 0), (None, 3, 3)]


def test_a_large_world_of_an_mdp_plays_its_plays_and_is_another_setting(undisturbed):
    table, large = row(undisturbed, "riverswim/4"), row(undisturbed, "large/riverswim/4")
    assert table["reward"] == large["reward"]
    assert table["setting"] != large["setting"]


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(compiled, "MOST", 4)  # epochs after which a large world asks whether to stop


def test_stopped_at_every_epoch_it_goes_on_to_the_same_rows(undisturbed, often, tmp_path):
    pool = Here()
    drive(SUITE, tmp_path / "sliced", pool, slice=1e-9)
    assert {task.runs[0][0].mdp for task in pool.made if task.checkpoints} == {*WORLDS}
    assert bits(tmp_path / "sliced") == bits(undisturbed)


@pytest.mark.parametrize("world", WORLDS)
def test_a_driver_that_dies_in_the_middle_leaves_a_checkpoint_that_is_taken_up(undisturbed, often, tmp_path, world):
    class Killed(Exception):
        pass

    def die(number, task):
        if task.checkpoints and task.runs[0][0].mdp == world:
            raise Killed
        return False

    folder, again = tmp_path / "left", Here()
    with pytest.raises(Killed):
        drive(SUITE, folder, Here(die), slice=1e-9)
    assert os.listdir(folder / "checkpoints")
    drive(SUITE, folder, again)
    assert any(task.checkpoints and task.runs[0][0].mdp == world for task in again.made)
    assert bits(folder) == bits(undisturbed)
    assert not os.listdir(folder / "checkpoints")


def test_it_goes_on_by_itself_comes_out_again_and_is_foretold(undisturbed):
    before = sorted(os.listdir(undisturbed / "parts"))
    run_suite(undisturbed, undisturbed, workers=1)
    assert sorted(os.listdir(undisturbed / "parts")) == before
    again = reproduce.reproduce(undisturbed, workers=1)
    assert (again.status, again.compared) == (0, 12)
    foretold = forecast.forecast(SUITE, workers=1)
    assert (foretold.runs, foretold.pilots, foretold.pairs) == (12, 4, 4)


def test_it_is_reported(undisturbed, tmp_path):
    held = ravi.results(undisturbed)
    assert held.counts.done == 12
    assert held.summary().count("3 of 3") == 4
    assert "not recorded (3 of 3 seeds)" in str(table(held))
    page = report(undisturbed, tmp_path / "page.html").read_text()
    assert "no regret; mean reward" in page
    assert page.count("Exact regret") == page.count("Regret on a grid, without a certified error") + 1
    assert all(world in page for world in WORLDS)
    drawn = {path.stem for path in each_written(held, tmp_path / "figures", ["png"])}
    assert {name for name in drawn if name.startswith("regret-")}
    assert not [name for name in drawn if "large" in name]


def test_the_same_world_by_another_id_is_told():
    twice = SUITE | {"sections": [SUITE["sections"][0] | {"mdps": ["tides/4", "tides/4,block=50"]}]}
    with pytest.raises(InputError, match="tides/4,block=50 is the same MDP as tides/4"):
        specify(twice)


@pytest.mark.parametrize(
    ("world", "changes", "wrong"),
    [
        ("tides/4", 'record = ["trajectory"]', "1: record: trajectory is not recorded there, and tides/4 is no MDP"),
        ("continuous/level", 'record = ["reward"]', "1: record: reward is not recorded there, and continuous/level is"),
        ("large/grid,9", 'columns = ["tuned"]', "1: columns: tuning chooses by the regret, of which there is none"),
        ("tides/4", 'device = "gpu"', "1: device: gpu runs MDPs only, and tides/4 is no MDP"),
        ("tides/4", "pad = true", "1: pad: there is no key 'pad'"),
        ("large/a:b", "", "6: sections[0].mdps[0]: large/a:b: in a suite, large/ stands before an id of ravi's own"),
        ("tide/4", "", "6: sections[0].mdps[0]: there is no MDP 'tide/4', and no such file in"),
    ],
)
def test_what_cannot_go_is_a_mistake_with_its_place(tmp_path, world, changes, wrong):
    file = tmp_path / "mine.toml"
    file.write_text(
        f'{changes}\nsteps = 100\nseeds = 1\n[[sections]]\nname = "a"\nmdps = ["{world}"]\nlearners = ["ravi-ucb"]'
    )
    with pytest.raises(InputError) as told:
        specify(file)
    assert f"mine.toml:{wrong}" in str(told.value)


@pytest.mark.parametrize("world", WORLDS[1:])
def test_a_learner_that_does_not_run_there_is_a_mistake(world):
    with pytest.raises(InputError, match=rf"learners\[0\]: psrl cannot run on {world}"):
        specify(SUITE | {"sections": [{"name": "a", "mdps": [world], "learners": ["psrl"]}]})


def test_a_folder_that_names_code_behind_large_is_not_run():
    assert ids.code_in("large/module:function") == "module:function"


def test_changing_rewards_and_continuous_states_are_tuned(tmp_path):
    section = {"name": "a", "mdps": [WORLDS[1], WORLDS[3]], "learners": ["ravi-ucb"], "columns": ["theory", "tuned"]}
    held = run_suite(SUITE | {"tuning": {"budget": 2, "seeds": 1}, "sections": [section]}, tmp_path / "out", workers=1)
    assert [record["missing"] for record in held.tuning.values()] == [0, 0]
    assert held.counts.failed == 0
    assert (held.sql("SELECT regret FROM results")["regret"].null_count, held.counts.done) == (0, held.counts.planned)
