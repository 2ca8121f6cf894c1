"""An argument of a wrong type is an error that names it, in every public function."""

import inspect
from contextlib import suppress

import numpy as np
import pytest

import ravi
from ravi import statistics
from ravi.mdps import riverswim
from ravi.statistics import from_table
from ravi.validation import InputError

MDP = riverswim(3, 0.9)
RUN = ravi.run("uniform", MDP, 10, pause=5)
HALF = np.full((3, 2), 0.5)
STREAM = {"rewards": "unknown", "reward_range": (0, 1), "reward_scale": 1.0, "memory": None, "seed": 0}
JUNK = (
    5, None, True, 1.5, float("nan"), object(), b"x", "nonsense", (), [1], {"a": 1}, np.zeros(3), lambda *_: None, MDP,
    RUN,
)  # fmt: skip

# Calls that are right: the function and its arguments, each of which is then replaced.
CALLS = {
    ravi.mdp: {"source": "riverswim/3", "discount": None, "criterion": None},
    ravi.learner: {"text": "uniform", "mdp": MDP, "steps": 10},
    ravi.ensemble: {"simulators": [MDP, MDP], "weights": [0.5, 0.5]},
    ravi.solve: {"mdp": MDP, "method": "value_iteration", "tol": 1e-6},
    ravi.evaluate: {"mdp": MDP, "policy": HALF, "tol": 1e-6},
    ravi.hardness: {"mdp": MDP},
    ravi.occupancy: {"mdp": MDP, "policy": HALF, "tol": 1e-6},
    ravi.return_of: {"mdp": MDP, "policy": HALF, "tol": 1e-6},
    ravi.md_mpi: {
        "mdp": MDP, "eta": 0.5, "iterations": 2, "sweeps": 1, "regularised_evaluation": True, "initial_value": 0.0,
        "initial_policy": None,
    },
    ravi.run: {
        "learner": "uniform", "mdp": MDP, "steps": 10, "seeds": 1, "record": (), "measures": (), "points": 5,
        "pad": False, "keep_epochs": True, "pause": None, "stop": None, "progress": None, "measured": True,
    },
    ravi.compare: {
        "learners": ["uniform"], "mdp": MDP, "steps": 10, "seeds": 2, "level": 0.9, "progress": None, "device": "cpu",
        "threads": 1,
    },
    ravi.resume: {
        "stopped": RUN, "learner": "uniform", "mdp": MDP, "measures": (), "pause": None, "stop": None, "progress": None,
    },
    ravi.run_settings: {
        "learners": ["uniform"], "mdp": MDP, "steps": 10, "seeds": 1, "record": (), "measures": (), "points": 5,
        "pad": False, "keep_epochs": True, "pause": None, "stop": None, "progress": None, "measured": True,
    },
    ravi.resume_settings: {
        "stopped": [RUN], "learners": ["uniform"], "mdp": MDP, "measures": (), "pause": None, "stop": None,
        "progress": None,
    },
    ravi.candidates: {"problem": MDP.problem, "steps": 10, "delta": 0.05, "stages": 0},
    ravi.select: {"policies": [HALF, HALF], "world": MDP, "epsilon": 0.5, "delta": 0.05, "which": 0, "seed": 0},
    ravi.learn: STREAM | {
        "env": "FrozenLake-v1", "learner": "uniform", "steps": 10, "discount": 0.9, "problem": None,
        "termination": "absorb", "grid": None, "discover": False, "checkpoint": None, "progress": None,
    },
    ravi.agent: STREAM | {
        "learner": "uniform", "problem": None, "steps": 10, "states": 3, "actions": 2, "discount": 0.9, "name": "it",
    },
    ravi.discover: STREAM | {"learner": "uniform", "steps": 10, "discount": 0.9},
    ravi.Grid: {"low": [0.0], "high": [1.0], "bins": [3], "outside": "error"},
    ravi.Policy: {
        "table": HALF, "discount": 0.9, "units": (0, 1), "learner": "it", "steps": 1, "seed": 0, "environment": {},
        "states": None, "actions": None,
    },
    ravi.run_suite: {"suite": "nothing", "out": "out", "seeds": None, "workers": None, "shard": None, "slice": 30.0},
    ravi.results: {"folder": "nothing"},
    ravi.MDP.from_dense: {"P": np.ones((1, 1, 1)), "r": [[1.0]], "discount": 0.9, "initial": 0, "name": "it"},
    ravi.MDP.from_sparse: {"P": [np.ones((1, 1))], "r": [[1.0]], "discount": 0.9, "initial": 0, "name": "it"},
    ravi.MDP.load: {"path": "nothing"},
    ravi.Run.load: {"path": "nothing"},
    ravi.Policy.load: {"path": "nothing"},
    ravi.Agent.load: {"path": "nothing", "learner": None},
    ravi.Discovery.load: {"path": "nothing"},
    ravi.gymnasium.mdp: {"env": "FrozenLake-v1", "discount": 0.9, "termination": "absorb", "initial": None},
    ravi.gymnasium.make: {"mdp": MDP},
    MDP.save: {"path": "it.mdp"},
    RUN.save: {"path": "it.run"},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # time limits of environments
@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__qualname__)
def test_an_argument_of_a_wrong_type_is_told(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = CALLS[function]
    assert set(arguments) <= set(inspect.signature(function).parameters)
    told = []
    for name in arguments:
        for wrong in JUNK:
            try:
                function(**(arguments | {name: wrong}))
            except InputError as error:
                told.append(f"{name}: {error}")
    assert len(told) >= len(JUNK) // 2
    long = [line for line in told if len(line.splitlines()) > 1]
    assert long == [] or function is ravi.run_suite  # which tells all mistakes


SCORES = from_table([
    {"learner": name, "mdp": "m", "seed": seed, "regret": seed + place} for seed in range(6)
    for place, name in enumerate("ab")
])  # fmt: skip
DRAWN = {"level": 0.95, "resamples": 50}
STATISTICS = {
    statistics.interval: {"values": [1.0, 2.0, 4.0], "statistic": "mean"} | DRAWN,
    statistics.stratified: {"groups": [[1.0, 2.0, 4.0]], "statistic": "iqm"} | DRAWN,
    statistics.band: {"curves": [[1.0], [2.0]], "statistic": "median"} | DRAWN,
    statistics.compare: {"scores": SCORES, "first": "a", "second": "b", "mdp": "m", "statistic": "mean"} | DRAWN,
    statistics.best: {"scores": SCORES, "mdp": "m", "statistic": "mean"} | DRAWN,
    statistics.profiles: {"scores": SCORES, "thresholds": [1.0], "level": 0.95},
    statistics.improvement: {"scores": SCORES, "first": "a", "second": "b", "mdps": ["m"]} | DRAWN,
    statistics.improvements: {"scores": SCORES, "learners": ["a", "b"]} | DRAWN,
    statistics.growth: {"times": [1, 2, 4], "curves": [[1.0, 2.0, 3.0]] * 2, "share": 1.0} | DRAWN,
    statistics.scaling: {"sizes": [1, 2], "values": [[1.0, 2.0], [2.0, 3.0]], "paired": False} | DRAWN,
    statistics.seeds_needed: {
        "scores": SCORES, "first": "a", "second": "b", "mdp": "m", "width": 0.5, "level": 0.95,
    },
}  # fmt: skip


@pytest.mark.parametrize("function", STATISTICS, ids=lambda function: function.__name__)
def test_an_odd_argument_of_statistics_is_told(function):
    arguments = STATISTICS[function]
    assert function(**arguments) is not None
    for name in arguments.keys() - {"scores"}:
        for wrong in (*JUNK, 10**30, 1e300, "x", np.array([0.5, 0.9]), np.array(["mean", "iqm"])):
            with suppress(InputError):
                function(**(arguments | {name: wrong}))
    for name in DRAWN.keys() & arguments.keys():
        for wrong in ("no", [0.5], np.array([0.5, 0.9]), None, -1, float("nan")):
            with pytest.raises(InputError, match=f"^{name} is "):
                function(**(arguments | {name: wrong}))


@pytest.mark.parametrize(("name", "place"), [("state", 0), ("action", 1), ("successor", 2), ("cut", 3), ("end", 4)])
def test_an_array_in_a_step_of_an_agent_is_told(name, place):
    agent = ravi.agent("psrl", states=2, actions=2, discount=0.9, steps=10)
    step = [0, agent.act(0), 1, True, False]
    step[place] = np.zeros(3)
    x, a, y, cut, end = step
    with pytest.raises(InputError, match=f"{name} is array"):
        agent.observe(x, a, y, 0.5, cut=cut, end=end)


def test_every_public_function_is_asked():
    functions = {getattr(ravi, name) for name in ravi.__all__ if inspect.isfunction(getattr(ravi, name))}
    assert functions <= set(CALLS)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: ravi.run(5, MDP, 10), "learner is 5, not an id such as 'ravi-ucb,scale=0.03', or a ravi.Learner"),
        (lambda: ravi.run("uniform", 5, 10), "mdp is 5, not an id such as 'riverswim/6', the path of a file, an MDP"),
        (lambda: ravi.mdp(None), "mdp is None, not an id"),
        (lambda: ravi.solve(5), "mdp is 5, not an id such as 'riverswim/6', the path of a file, an MDP"),
        (lambda: ravi.resume("it.run", "uniform", MDP), "stopped is 'it.run', not a run"),
        (lambda: ravi.run("uniform", MDP, 10, measures=[3]), "measures[0] is 3, not a ravi.Measure"),
        (lambda: ravi.agent(5, MDP.problem, 10), "learner is 5, not an id, a ravi.Learner or a function of them"),
        (lambda: ravi.results(5), "folder is 5, not a path"),
        (lambda: ravi.Run.load(5), "the file is 5, not a path or an open file"),
        (lambda: ravi.mdp("trap,discount=0.9", discount=0.8), "the discount is given twice: in trap,discount=0.9, and"),
        (
            lambda: ravi.mdp(MDP, discount=0.9),
            "discount goes with an id, a file or an environment; riverswim/3 has its",
        ),
        (
            lambda: ravi.run("riverswim/6", "psrl", 10),
            "psrl is a learner, not an MDP: in Python the learner comes first",
        ),
        (lambda: ravi.run(MDP, RUN, 10), "mdp is"),
        (lambda: ravi.run(MDP, "trap", 10), "riverswim/3 is an MDP, not a learner: in Python the learner comes first"),
        (lambda: ravi.run("trap", MDP, 10), "'trap' is an MDP, not a learner"),
        (lambda: ravi.run(lambda problem, steps: 5, MDP, 10), "<lambda> gave int, not a Learner"),
        (lambda: ravi.evaluate([0, 2, 1], MDP), "policy[1] is 2; actions are whole numbers, 0 to 1"),
        (lambda: ravi.evaluate([0, 1, 1]), "on is None: an array does not say where it is played"),
        (lambda: ravi.evaluate(None, MDP), "policy is None: give an array, a Policy, or what ravi.solve"),
        (lambda: ravi.evaluate([0] * 17, "FrozenLake-v1"), "discount is None: an environment has none"),
    ],
)
def test_the_message_says_what_is_taken(call, told):
    with pytest.raises(InputError) as error:
        call()
    assert told in str(error.value)


def test_an_environment_with_a_table_is_an_mdp_once_it_has_a_discount():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=-1)
    with pytest.raises(InputError, match=r"FrozenLake-v1 is an environment, .* ravi\.mdp\(env, discount=0\.99\)"):
        ravi.mdp(env)
    assert ravi.mdp(env, discount=0.99).digest == ravi.mdp("gymnasium/FrozenLake-v1,discount=0.99").digest
    with pytest.raises(InputError, match=r"no table P to be read\. Learn from it by playing: ravi\.learn"):
        ravi.mdp(gymnasium.make("MountainCar-v0", max_episode_steps=-1), discount=0.9)
    assert ravi.mdp(MDP) is MDP
