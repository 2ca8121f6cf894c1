"""Plans run in any array namespace, and give what the compiled loops give. Here: the array API's strict reference."""

from dataclasses import fields

import array_api_strict as xp
import numpy as np
import pytest

from ravi.core import Problem
from ravi.engine import run
from ravi.estimators.counts import Counts
from ravi.estimators.ridge import Regression
from ravi.learners import ravi_ucb
from ravi.mdps import garnet, garnets, riverswim_mixture


def moved(problem):
    """The same problem with its arrays in the other namespace."""
    twin = object.__new__(Problem)
    for field in fields(Problem):
        value = getattr(problem, field.name)
        object.__setattr__(twin, field.name, xp.asarray(value) if isinstance(value, np.ndarray) else value)
    return twin


CASES = {
    "tabular": (lambda: garnet(7, 3, 2, 0, 0.9), ravi_ucb.tabular, Counts, 0.003),
    "mixture": (lambda: riverswim_mixture(5, 0.9), ravi_ucb.linear_mixture, Regression, 0.02),
    "mixture, sparse psi": (lambda: garnets(8, 9, 2, 2, 0, 0.9), ravi_ucb.linear_mixture, Regression, 0.02),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_the_same_in_another_namespace(name):
    build, make, Data, scale = CASES[name]
    mdp, T = build(), 500
    ours = make(mdp.problem, T, scale=scale, step_scale=30)
    theirs = make(moved(mdp.problem), T, scale=scale, step_scale=30)
    state = run(ours, mdp, T, 3, measured=False).state
    there = theirs.init(np.arange(3))
    there = there._replace(
        data=Data(*(xp.asarray(part) for part in state.data)),
        **{name: xp.asarray(getattr(state, name).copy()) for name in ("V", "Q", "log_policy", "policy")},
    )
    for _ in range(5):
        state, there = ours.plan(state), theirs.plan(there)
        for part in ("V", "Q", "log_policy", "policy"):
            assert type(getattr(there, part)) is type(xp.asarray(0.0))
            np.testing.assert_allclose(np.asarray(getattr(there, part)), getattr(state, part), rtol=1e-9, atol=1e-9)
    assert np.ptp(state.policy, axis=-1).max() > 0.1


@pytest.mark.parametrize("name", CASES)
def test_a_learner_begins_in_its_problems_namespace(name):
    build, make, _, _ = CASES[name]
    mdp = build()
    first = make(mdp.problem, 100).plan(make(mdp.problem, 100).init(np.arange(2)))
    there = make(moved(mdp.problem), 100)
    state = there.plan(there.init(np.arange(2)))
    for part in ("V", "Q", "policy"):
        np.testing.assert_allclose(np.asarray(getattr(state, part)), getattr(first, part), rtol=1e-12, atol=1e-12)
