"""Bad numbers get an error that names the argument, good ones need no NumPy."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

from ravi.theory import constants, generic, mixture, per_run, search, tabular
from ravi.validation import InputError

GOOD = {
    "horizon": 10.0,
    "states": 3,
    "actions": 2,
    "dimension": 3,
    "steps": 1000,
    "inner_steps": 4,
    "policies": 7,
    "epochs": 100,
    "plays": 1005.5,
    "length": 7,
    "bonus": 20.0,
    "clipped_bonus": 20.0,
    "beta": 5.0,
    "entropy": 0.7,
    "eta": 0.1,
    "eps": 0.1,
    "delta": 0.01,
    "bound": 1.5,
    "parameter_bound": 1.5,
    "feature_bound": 1.5,
    "weight_bound": 1.5,
    "regularization": 1.0,
}
NAN, INF = float("nan"), float("inf")
COUNT = [0, -1, 1.5, NAN, INF, "many"]
POSITIVE = [0, -1.0, NAN, INF, "large", None]
NONNEGATIVE = [-0.1, NAN, INF, "none"]
BAD = {
    "horizon": [0.9, 0, -10.0, NAN, INF, "long", None],  # gamma < 0, none, > 1, none, = 1
    "epochs": [-1, 1.5, NAN, "many"],
    **dict.fromkeys(("states", "actions", "dimension", "steps", "inner_steps", "policies"), COUNT),
    **dict.fromkeys(
        ("plays", "length", "eps", "bound", "parameter_bound", "feature_bound", "regularization"), POSITIVE
    ),
    "eta": POSITIVE[:-1],  # None: the default
    **dict.fromkeys(("bonus", "clipped_bonus", "beta", "entropy", "weight_bound"), NONNEGATIVE),
    "delta": [0, -0.1, 1.1, NAN, INF, "small"],
}
FUNCTIONS = [
    *per_run[::2],  # as printed, and sharp
    *(
        function
        for module in (constants, generic, mixture, search, tabular)
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
        and set(inspect.signature(function).parameters) <= set(GOOD)
    ),
]  # fmt: skip
CALLS = [
    pytest.param(function, name, id=f"{function.__module__.split('.')[-1]}.{function.__name__}-{name}")
    for function in FUNCTIONS
    for name in inspect.signature(function).parameters
]


def call(function, **changed):
    given = {name: GOOD[name] for name in inspect.signature(function).parameters} | changed
    return function(**given)


@pytest.mark.parametrize(("function", "name"), CALLS)
def test_errors_name_the_argument(function, name):
    assert float(call(function)) > 0
    for value in BAD[name]:
        with pytest.raises(InputError, match=rf"^{name} is "):
            call(function, **{name: value})


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.__module__.split('.')[-1]}.{f.__name__}")
def test_numbers_of_other_types_give_the_same(function):
    names = inspect.signature(function).parameters
    counts = {"states", "actions", "dimension", "steps", "inner_steps", "epochs"}
    arrays = {name: (np.int64 if name in counts else np.float64)(GOOD[name]) for name in names}
    floats = {name: float(GOOD[name]) for name in names}  # T = 1e6 is a number of steps
    assert call(function, **arrays) == call(function, **floats) == call(function)


def test_the_theory_needs_no_numpy():
    code = """
import sys
from ravi import theory
assert theory.mixture.sharp(10, 3, 2, 1000, bound=1.5).total > 0
assert theory.first_useful(lambda T: theory.tabular.sharp(5, 2, 2, T)) > 0
assert not {"numpy", "numba", "scipy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
