"""Settings are a record: whoever computes, builds or checks does the same where they are empty."""

import ast
from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.learners.ravi_ucb.changing_rewards import changing
from ravi.learners.ravi_ucb.doubling import Phases
from ravi.learners.ravi_ucb.unknown_rewards import unknown
from ravi.runtime import seedwise
from ravi.runtime.api import resolved
from ravi.validation import InputError
from ravi.verify import EVERY, verify

SOURCE = Path(ravi.__file__).parent
RECORDS = {  # who hands records on, writes them, shows them, or compares two of them
    "runtime/api.py", "runtime/result.py", "testing.py", "cli/run.py",
    "lab/experiments/rows.py", "verify/report.py",
    "learners/ravi_ucb/changing_rewards.py", "learners/ravi_ucb/doubling.py", "learners/ravi_ucb/unknown_rewards.py",
}  # fmt: skip
WRAPPERS = {"learners/wrappers.py"}  # `doubling` compares the records of two T, and keeps what they share
REPORTS = {
    "comparison.py",
    "lab/report/figures.py",
    "lab/report/grids.py",
    "lab/report/parameters.py",
}  # who looks into those of a run


def silent(learner):
    """The learner without its record."""
    if isinstance(learner.plan, Phases):
        phases = learner.plan
        learner = learner._replace(plan=Phases(phases.first, lambda i: silent(phases.learner(i))))
    return learner._replace(settings={})


def of(learner, mdp, steps):
    world = ids.changing(mdp) if isinstance(mdp, str) else None
    return resolved(world.mdp if world else mdp, learner, steps)[1]


@pytest.mark.parametrize(("mdp", "learner", "_"), EVERY)
def test_what_is_checked_and_found_does_not_depend_on_the_record(mdp, learner, _):
    made = of(learner, mdp, 40)
    assert made.settings
    one, other = (verify(given, mdp, 40, 2) for given in (made, silent(made)))
    assert [repr(row) for row in one.rows] == [repr(row) for row in other.rows]
    assert repr(one.ladder) == repr(other.ladder)
    assert other.run.settings.keys() <= {"block", "clock", "tables"}


@pytest.mark.parametrize(
    "learner", ["ravi-ucb,scale=0.1", "ravi-ucb+,inner=3", "ravi-ucb+,inner=2,pick=last,fresh=off"]
)
def test_wrappers_build_the_same_without_a_record(learner):
    mdp = ids.mdp("riverswim/4,discount=0.8")
    made = of(learner, mdp, 100)
    one, other = (unknown(base, mdp.problem, 100) for base in (made, silent(made)))
    assert one.parts[2] == other.parts[2]
    assert one.parts[6:] == other.parts[6:]
    assert one.side_information == other.side_information
    np.testing.assert_array_equal(ravi.run(one, mdp, 100, 2).regret, ravi.run(other, mdp, 100, 2).regret)


@pytest.mark.parametrize("learner", ["ravi-ucb+,inner=3", "ravi-ucb+,inner=1", "ravi-ucb/unknown-rewards"])
def test_what_has_no_form_for_changing_rewards_is_refused_without_a_record_too(learner):
    world = ids.changing("tides/4")
    with pytest.raises(InputError, match="no form for changing rewards"):
        changing(silent(of(learner, world.mdp, 100)), world)


def test_rows_that_differ_in_more_than_their_multipliers_do_not_go_together():
    mdp = ids.mdp("riverswim/4,discount=0.8")
    names = ("ravi-ucb", "ravi-ucb,scale=0.1", "ravi-ucb,delta=0.1", "ravi-ucb,initial_value=1")
    made = [of(name, mdp, 100) for name in names]
    bare = [silent(one.rows.built) for one in made]
    bare = [one._replace(rows=was.rows._replace(built=one)) for one, was in zip(bare, made, strict=True)]
    for learners in (made, bare):
        assert seedwise.alike(learners[:2])
        assert not any(seedwise.alike([learners[0], other]) for other in learners[2:])


@pytest.mark.parametrize(
    ("learner", "message"),
    [("ravi-kl", "told the successors"), ("ravi-kl/unknown-rewards,support=off", "simulates rewards")],
)
def test_an_agent_refuses_what_it_cannot_give_without_a_record_too(learner, message):
    for record in (lambda one: one, silent):
        with pytest.raises(InputError, match=message):
            ravi.agent(
                lambda *given, r=record: r(ids.learner(learner, *given)), states=3, actions=2, discount=0.8, steps=9
            )


def test_nothing_but_reports_looks_into_a_record():
    touched, read = set(), set()
    for path in SOURCE.rglob("*.py"):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text()
        for node in ast.walk(ast.parse(text)) if ".settings" in text else ():
            if _of_a_record(node) and not _a_function(node):
                touched.add(name)
            looked = node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else None
            compared = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))
            inside = [looked, *(node.comparators if compared else ())]
            if any(_of_a_record(one) for one in inside) and getattr(node, "attr", "get") in ("get", "keys"):
                read.add(name)
    strangers = read - REPORTS - WRAPPERS
    assert not strangers, f"{sorted(strangers)} look into settings: what they need is a field of ravi.core"
    assert touched <= RECORDS | REPORTS | WRAPPERS


def _of_a_record(node):
    return isinstance(node, ast.Attribute) and node.attr == "settings"


def _a_function(node):
    """`plan.settings` of the experiments."""
    return isinstance(node.value, ast.Name) and node.value.id == "plan"
