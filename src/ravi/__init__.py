"""ravi: optimistic planning and exploration in Markov decision processes, with exact regret.

    import ravi

    mdp = ravi.mdp("riverswim/6,discount=0.9")
    run = ravi.run("ravi-ucb,scale=0.003,eta=0.5", mdp, steps=20_000, seeds=8)
    print(run)

Nothing is compiled, and nothing heavy imported, before it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The public names, by the module where they live.
_PUBLIC = {
    "comparison": ("compare", "Comparison"),
    "core": ("MDP", "Problem", "Learner", "Estimator", "Measure"),
    "ids": ("mdp", "learner"),
    "mdps.mixtures": ("ensemble",),
    "planning.solver": ("solve",),
    "planning.evaluation": ("return_of",),
    "planning.hardness": ("hardness",),
    "planning.occupancies": ("occupancy",),
    "planning.mirror_descent": ("md_mpi",),
    "runtime.api": ("run", "run_settings", "resume", "resume_settings", "Stopped"),
    "runtime.result": ("Run",),
    "live.selection": ("candidates", "select"),
    "live.learning": ("learn",),
    "live.learned": ("Learned",),
    "live.agent": ("agent", "Agent"),
    "live.discovery": ("discover", "Discovery"),
    "live.grid": ("Grid",),
    "live.policies": ("Policy", "load_policy"),
    "live.values": ("evaluate",),
    "lab.experiments.runner": ("run_suite",),
    "lab.experiments.results": ("results",),
    "validation": ("InputError", "StreamError"),
}
_HOMES = {name: f"ravi.{module}" for module, names in _PUBLIC.items() for name in names}
_MODULES = ("gymnasium", "importers")  # that are names themselves

__all__ = [
    "MDP", "Agent", "Comparison", "Discovery", "Estimator", "Grid", "InputError", "Learned", "Learner", "Measure",
    "Policy", "Problem", "Run", "Stopped", "StreamError", "__version__", "agent", "candidates", "compare",
    "discover", "ensemble", "evaluate", "gymnasium", "hardness", "importers", "learn", "learner", "load_policy",
    "md_mpi", "mdp", "occupancy", "results", "resume", "resume_settings", "return_of", "run", "run_settings",
    "run_suite", "select", "solve",
]  # fmt: skip

if TYPE_CHECKING:
    from ravi import gymnasium, importers
    from ravi.comparison import Comparison, compare
    from ravi.core import MDP, Estimator, Learner, Measure, Problem
    from ravi.ids import learner, mdp
    from ravi.lab.experiments.results import results
    from ravi.lab.experiments.runner import run_suite
    from ravi.live.agent import Agent, agent
    from ravi.live.discovery import Discovery, discover
    from ravi.live.grid import Grid
    from ravi.live.learned import Learned
    from ravi.live.learning import learn
    from ravi.live.policies import Policy, load_policy
    from ravi.live.selection import candidates, select
    from ravi.live.values import evaluate
    from ravi.mdps.mixtures import ensemble
    from ravi.planning.evaluation import return_of
    from ravi.planning.hardness import hardness
    from ravi.planning.mirror_descent import md_mpi
    from ravi.planning.occupancies import occupancy
    from ravi.planning.solver import solve
    from ravi.runtime.api import Stopped, resume, resume_settings, run, run_settings
    from ravi.runtime.result import Run
    from ravi.validation import InputError, StreamError


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        importlib.import_module("ravi.ids")  # by which planning finds the MDP of an id
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value
    if name in _MODULES:
        return importlib.import_module(f"ravi.{name}")
    raise AttributeError(f"module 'ravi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
