"""What is data runs no code: files and folders that name modules are refused, by name, unless the user allows it."""

import io
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ravi
from ravi import ids
from ravi.cli import app, doctor
from ravi.cli.citations import cite
from ravi.lab.experiments.forecast import forecast
from ravi.lab.experiments.reproduce import _settings, reproduce
from ravi.lab.experiments.results import results
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.store import Store
from ravi.lab.report.figures import drawn, mdp_of
from ravi.lab.report.page import report
from ravi.lab.report.tables import table
from ravi.lab.report.watch import watch
from ravi.large import snapshot
from ravi.live.agent import Agent
from ravi.live.discovery import Discovery
from ravi.live.policies import Policy, evaluate, play
from ravi.runtime import archive
from ravi.runtime.result import Run
from ravi.validation import InputError

TRAP = """
import os
import gymnasium
import ravi

open(os.environ["MARK"], "a").close()  # it was imported


def world(n: int = 3) -> ravi.MDP:
    return ravi.mdp(f"riverswim/{n}")


def mine(problem, steps) -> ravi.Learner:
    return ravi.learner("uniform", problem, steps)


def undeclared(*anything: str, **more: str):
    open(os.environ["MARK"] + "-called", "a").close()


if "Trap-v0" not in gymnasium.registry:
    gymnasium.register("Trap-v0", lambda: ravi.gymnasium.make(world()))
"""
SUITE = {
    "name": "mine", "steps": 60, "seeds": 2, "points": 2,
    "sections": [{"name": "a", "mdps": ["riverswim/3"], "learners": ["uniform"]}],
}  # fmt: skip


@pytest.fixture
def mark(tmp_path, monkeypatch):
    """A file that is there as soon as the module `trapped` is imported, which can be found."""
    pytest.importorskip("gymnasium").registry.pop("Trap-v0", None)
    (tmp_path / "trapped.py").write_text(TRAP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    yield tmp_path / "mark"
    sys.modules.pop("trapped", None)


def refused(mark, call, *, by=r"trapped:\w+.* is code that does not come with ravi, and is not run"):
    with pytest.raises(InputError, match=by) as error:
        call()
    assert not mark.exists()
    assert "trapped" not in sys.modules
    return str(error.value)


def rewritten(path, kind, **changes):
    """The same file with other values in its header."""
    header, arrays = archive.read(path, kind)
    kept = {key: value for key, value in header.items() if key not in archive.RESERVED}
    archive.write(path, kind, kept | changes, arrays)


# What is named, and how.


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("trapped:mine,scale=1", "trapped:mine"),
        ("a.b:c/4", "a.b:c"),
        ("gymnasium/mod:Env-v0", "mod:Env-v0"),
        ("gymnasium,env=mod:Env-v0,discount=0.9", "mod:Env-v0"),
        ("gymnasium/FrozenLake-v1,options=map_name:8x8", None),
        ("gymnasium/GymV26Environment-v0,options=env_id:mod:Env-v0", "mod:Env-v0"),
        ("riverswim/6", None),
        ("ravi-ucb/mixture,scale=0.1", None),
        ("/some/where:else/it.mdp", None),
    ],
)
def test_code_is_seen_in_an_id(text, code):
    assert ids.code_in(text) == code
    assert ids.check_trust(text, "it", allow_code=True) == text
    if code is not None:
        with pytest.raises(InputError, match="--allow-code, or allow_code=True"):
            ids.check_trust(text, "it")


def test_a_function_that_does_not_say_what_it_makes_is_not_called(mark, tmp_path):
    """Though its name was typed: `os:system` as a learner is a mistake, not a call."""
    touched = tmp_path / "touched"
    river = ravi.mdp("riverswim/3")
    for call in (
        lambda: ravi.mdp(f"click:edit,editor=touch,filename={touched}"),
        lambda: ravi.learner("os:system", river, 10),
        lambda: ravi.run(f"click:edit,editor=touch,filename={touched}", river, 10),
        lambda: ravi.mdp("json:loads,s=1"),
        lambda: ravi.mdp("trapped:undeclared"),
        lambda: ravi.learner("trapped:undeclared", river, 10),
        lambda: ravi.mdp("trapped:mine"),
        lambda: ravi.learner("trapped:world", river, 10),
        lambda: ravi.mdp("ravi.core:MDP"),
    ):
        with pytest.raises(InputError, match=r"does not declare that it makes a (MDP|Learner), so it is not called"):
            call()
    assert not touched.exists()
    assert not os.path.exists(f"{mark}-called")
    assert ravi.mdp("trapped:world,4").states == 4
    assert ravi.run("trapped:mine", river, 10).learner == "uniform"


def test_a_declaration_may_be_a_text_and_one_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    (tmp_path / "declared.py").write_text(
        "from __future__ import annotations\n"
        "import ravi\n"
        "def one() -> ravi.MDP:\n    return ravi.mdp('trap')\n"
        "def other() -> 'Nothing':\n    return ravi.mdp('trap')\n"
        "def needs(n) -> ravi.MDP:\n    return ravi.mdp('trap')\n"
        "def short(problem) -> ravi.Learner:\n    return None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert ravi.mdp("declared:one").name == "trap"
    for text, why in (
        ("declared:other", "the annotations of declared:other cannot be read: NameError: name 'Nothing'"),
        ("declared:needs", "cannot be called as a builder is: missing a required argument: 'n'"),
    ):
        with pytest.raises(InputError, match=why):
            ravi.mdp(text)
    with pytest.raises(InputError, match="cannot be called as a builder is: too many positional arguments"):
        ravi.learner("declared:short", ravi.mdp("trap"), 10)


# Files.


def test_figures_of_a_run_call_nothing_that_its_file_names(mark, tmp_path):
    touched = tmp_path / "touched"
    ravi.run("uniform", "riverswim/3", 60, 2).save(tmp_path / "evil.run")
    for name in (f"click:edit,editor=touch,filename={touched}", "trapped:world", "gymnasium/trapped:Trap-v0"):
        rewritten(tmp_path / "evil.run", "run", mdp=name)
        assert mdp_of(Run.load(tmp_path / "evil.run")) is None
    rewritten(tmp_path / "evil.run", "run", mdp=f"click:edit,editor=touch,filename={touched}")
    words = ["figures", tmp_path / "evil.run", "--out", tmp_path / "drawn", "--formats", "svg"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.exception
    assert "regret-" in done.output
    assert not touched.exists()
    assert not mark.exists()


def test_an_agent_names_a_module_only_with_consent(mark, tmp_path):
    path = tmp_path / "it.agent"
    live = ravi.agent("uniform", states=3, actions=2, discount=0.9, steps=20)
    live.act(0)
    live.save(path)
    rewritten(path, "agent", learner="trapped:mine")
    told = refused(mark, lambda: Agent.load(path))
    assert str(path) in told
    found = ravi.discover("uniform", 20, discount=0.9)
    found.act("here", ["go"])
    found.save(tmp_path / "it.discovery")
    rewritten(tmp_path / "it.discovery", "agent", learner="trapped:mine")
    refused(mark, lambda: Discovery.load(tmp_path / "it.discovery"))
    with pytest.raises(InputError, match="it was made with learner trapped:mine, not uniform"):
        Agent.load(path, "uniform")
    assert not mark.exists()
    assert Agent.load(path, allow_code=True).source == "trapped:mine"
    assert mark.exists()
    assert Agent.load(path, "trapped:mine").time == 0
    assert Discovery.load(tmp_path / "it.discovery", allow_code=True).agent.source == "trapped:mine"


def test_a_checkpoint_of_learn_is_taken_up_with_the_learner_that_was_typed(mark, tmp_path):
    env = ravi.gymnasium.make(ravi.mdp("riverswim/3"))
    options = {"discount": 0.9, "checkpoint": tmp_path / "it.agent"}
    ravi.learn(env, "uniform", 20, **options)
    rewritten(tmp_path / "it.agent", "agent", learner="trapped:mine")
    refused(mark, lambda: ravi.learn(env, "uniform", 20, **options), by="learner trapped:mine, not uniform")
    assert ravi.learn(env, "trapped:mine", 20, **options).plays == 20


def test_a_policy_names_an_environment_of_a_module_only_with_consent(mark, tmp_path):
    where = {"name": "Trap-v0", "id": "trapped:Trap-v0", "options": {}, "termination": "absorb"}
    policy = Policy(table=np.full((4, 2), 0.5), discount=0.9, environment=where)
    policy.save(tmp_path / "it.policy")
    kept = Policy.load(tmp_path / "it.policy")
    refused(mark, lambda: evaluate(kept, cycles=2))
    refused(mark, lambda: list(play(kept)))
    for words in (["evaluate"], ["play"]):
        done = CliRunner().invoke(app, [*words, str(tmp_path / "it.policy")])
        assert "is not run" in str(done.exception)
    hidden = where | {"id": "FrozenLake-v1", "options": {"like": ["trapped:Trap-v0"]}}
    hidden_kept = Policy(table=np.full((17, 4), 0.25), discount=0.9, environment=hidden)
    refused(mark, lambda: evaluate(hidden_kept, cycles=2))
    refused(mark, lambda: evaluate(hidden_kept, "FrozenLake-v1", cycles=2))
    assert evaluate(kept, cycles=2, allow_code=True).cycles == 2
    assert mark.exists()
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "it.policy"), "--cycles", "2", "--allow-code"])
    assert "value, sampled" in done.output


def test_a_run_in_a_large_world_imports_nothing(mark, tmp_path):
    ravi.run("ravi-ucb", "large/riverswim/3", 50).save(tmp_path / "it.run")
    rewritten(tmp_path / "it.run", "run", learner="trapped:mine")
    refused(mark, lambda: snapshot(ravi.Run.load(tmp_path / "it.run"), "riverswim/3"), by="not 'trapped:mine'")


# Folders of results.


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound") / "out"
    run_suite(SUITE, folder, workers=1)
    return folder


def specification(folder, change):
    """Changed on purpose."""
    held = Store(folder).specification()
    change(held)
    Store(folder).freeze({key: value for key, value in held.items() if key != "format"})


def another_fact(held):
    held["mdps"]["trapped:world"] = "0" * 64


def another_mdp(held):
    held["suite"]["sections"][0]["mdps"].append("trapped:world")


def another_environment(held):
    held["suite"]["sections"][0]["mdps"].append("gymnasium/trapped:Trap-v0")


def another_learner(held):
    held["suite"]["sections"][0]["learners"].append({"id": "trapped:mine", "label": "trapped"})


def another_id(held):
    held["learners"]["uniform"]["id"] = "trapped:mine"


def nothing(held):
    pass


@pytest.mark.parametrize(
    "change", [another_fact, another_mdp, another_environment, another_learner, another_id, nothing]
)
def test_a_folder_that_names_a_module_is_not_run(mark, sound, tmp_path, change):
    folder = tmp_path / "out"
    shutil.copytree(sound, folder)
    specification(folder, change)
    if change is nothing:  # what tuning says is said by the folder, too
        record = {"mdp": "riverswim/3", "learner": "uniform", "configurations": [{"learner": "trapped:mine"}]}
        Store(folder).keep_tuning("0", record)
    for call in (
        lambda: run_suite(folder, folder),
        lambda: run_suite(folder, tmp_path / "other"),
        lambda: forecast(folder, folder),
        lambda: reproduce(folder),
    ):
        told = refused(mark, call)
        assert told.startswith(str(folder))
    for words in (["run", folder], ["run", folder, "--dry-run"], ["reproduce", folder]):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert "--allow-code" in str(done.exception)
    assert not mark.exists()
    assert not (tmp_path / "other").exists()


def test_a_folder_whose_name_is_an_id_is_a_folder(mark, sound, tmp_path, monkeypatch):
    """Files inside are called by paths that do not begin with it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(sound, "trapped:world")
    Store(Path("trapped:world")).keep_mdp(ravi.mdp("riverswim/3"))
    known, changed = _settings(results("trapped:world"))
    assert not changed
    assert [ids.code_in(setting.mdp) for setting in known.values()] == [None]
    assert not mark.exists()


def test_who_looks_at_a_folder_runs_nothing(mark, sound, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(sound, folder)

    def change(held):
        another_mdp(held)
        another_fact(held)
        another_learner(held)
        held["learners"]["trapped:mine"] = {"id": "trapped:mine", "source": "", "multipliers": ["scale"]}
        held["suite"]["folder"] = str(tmp_path / "modules")

    specification(folder, change)
    found = results(folder)
    assert "trapped:world" in found.summary()
    assert "riverswim/3" in table(found).text()
    watch(folder, once=True)
    report(folder, tmp_path / "page.html")
    assert [name for name, _ in drawn(found)]
    assert {check.verdict for check in doctor.store(folder)} == {"ok"}
    assert not mark.exists()
    assert str(tmp_path / "modules") not in sys.path


def test_a_folder_is_cited_without_its_modules(mark, sound, tmp_path, monkeypatch):
    monkeypatch.setattr("ravi.cli.citations._learners_in", lambda folder: ["trapped:mine,scale=1", "uniform"])
    text = cite(sound)
    assert "% trapped:mine has no paper: none is known, since its module is not imported for a folder" in text
    assert not mark.exists()
    assert "none is named in its docstring" in cite([sound, "trapped:mine"])
    assert mark.exists()


def test_with_consent_a_folder_runs_its_own_code_wherever_its_workers_are(mark, tmp_path, monkeypatch):
    """The suite's file may name modules beside it; the folder that it leaves behind is data, until the user says."""
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    (tmp_path / "own.toml").write_text(
        'steps = 40\nseeds = 1\npoints = 2\n[[sections]]\nname = "a"\nmdps = ["trapped:world,4"]\n'
        'learners = ["trapped:mine"]\n'
    )
    made = run_suite(tmp_path / "own.toml", tmp_path / "out", workers=1)
    assert made.counts.done == 1
    assert mark.exists()
    mark.unlink()
    sys.modules.pop("trapped")
    sys.path.remove(str(tmp_path))
    refused(mark, lambda: run_suite(tmp_path / "out", tmp_path / "out", seeds=2, adopt=True))
    assert str(tmp_path) not in sys.path
    words = ["run", tmp_path / "out", "--seeds", 2, "--adopt", "--workers", 1, "--allow-code"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (done.output, done.exception)
    assert results(tmp_path / "out").counts.done == 2
    assert reproduce(tmp_path / "out", workers=1, allow_code=True).status == 0


@pytest.mark.usefixtures("in_this_process")
def test_an_mdp_that_a_module_made_is_kept_and_needs_it_no_more(mark, tmp_path, monkeypatch):
    data = {**SUITE, "folder": str(tmp_path), "sections": [SUITE["sections"][0] | {"mdps": ["trapped:world,4"]}]}
    run_suite(data, tmp_path / "out", workers=1)
    (kept,) = (tmp_path / "out" / "mdps").iterdir()
    assert ravi.MDP.load(kept).name == "riverswim/4"
    sys.modules.pop("trapped")
    mark.unlink()
    (tmp_path / "trapped.py").unlink()
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    assert run_suite(tmp_path / "out", tmp_path / "out", workers=1).counts.done == 2
    assert reproduce(tmp_path / "out", workers=1).status == 0
    assert str(tmp_path) not in sys.path
    assert not mark.exists()


def test_what_a_worker_is_handed_was_vetted_by_its_driver(mark, sound, tmp_path):
    """Neither checkpoints nor stored runs name what is built: a setting comes from the suite."""
    folder = tmp_path / "out"
    shutil.copytree(sound, folder)
    shutil.rmtree(folder / "parts")
    (folder / "parts").mkdir()
    stopped = io.BytesIO()
    ravi.run("uniform", "riverswim/3", 60, 2, pause=10, points=2, keep_epochs=False).save(stopped)
    (setting,) = {row["setting"] for row in results(sound).runs.to_pylist()}
    Store(folder).keep_checkpoint(setting, [0, 1], stopped.getvalue())
    (path,) = (folder / "checkpoints").iterdir()
    rewritten(path, "run", mdp="trapped:world", learner="trapped:mine")
    assert run_suite(folder, folder, workers=1).counts.done == 2
    assert not mark.exists()
