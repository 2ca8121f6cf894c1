"""Learners that know the successors of every pair (support=on): limits, padding, streams, and the option."""

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.core import MDP, Problem
from ravi.mdps import garnet, riverswim
from ravi.runtime.api import run
from ravi.statistics import THEORY
from ravi.statistics.rates import proved
from ravi.validation import InputError, StreamError
from tests.helpers import dense

SETS = ["ucrl2", "ucrl2b", "kl-ucrl"]
FORMS = [f"ravi-kl,{form}" for form in ("plan=greedy", "slack=0.3", "candidate=posterior", "plan=mirror,inner=2")]
TOLD = [*SETS, "psrl"]


@pytest.mark.parametrize("learner", TOLD)
def test_a_kernel_that_is_deterministic_is_known(learner):
    """One stored successor each: whatever the radii, a plan is optimal as soon as it is accurate enough."""
    mdp = ids.mdp("deep-sea/5")
    assert mdp.branching == 1
    made = run(f"{learner},support=on", mdp, 300, 2)
    assert (made.gap <= 1e-9).all()
    assert (made.regret < 1).all()
    assert (run(learner, mdp, 300, 2).regret > 1.5).all()


def padded(mdp):
    """The same MDP, with two states of probability 0 in every row: one before those of its support, one after, or where
    there are such."""
    X, A, B = mdp.successors.shape
    wide = np.empty((X, A, B + 2), np.int32)
    for x, a in np.ndindex(X, A):
        row = mdp.successors[x, a].tolist()
        others = [y for y in range(X) if y not in row]
        wide[x, a] = sorted([*row, others[0], others[-1]])
    P = np.take_along_axis(dense(mdp), wide.astype(np.int64), axis=2)
    return MDP(successors=wide, transitions=P, rewards=mdp.rewards, initial=mdp.initial, discount=mdp.discount)


EXACT = [*(f"{name},support=on" for name in TOLD), *FORMS]


@pytest.mark.parametrize("learner", EXACT)
def test_padding_of_the_storage_changes_nothing(learner):
    mdp = garnet(12, 3, 3, 0, 0.9)
    one, two = (run(learner, world, 500, 3, record=["stream"]) for world in (mdp, padded(mdp)))
    for name in ("stream_state", "stream_action"):
        np.testing.assert_array_equal(one.results[name], two.results[name])
    np.testing.assert_allclose(one.regret, two.regret, rtol=1e-9)


def test_the_support_of_a_problem_is_checked_and_that_of_an_mdp_is_its_own():
    mdp = riverswim(4, 0.8)
    np.testing.assert_array_equal(mdp.support, mdp.transitions > 0)
    assert not mdp.support.all()
    np.testing.assert_array_equal(mdp.problem.support, mdp.support)
    given = {name: getattr(mdp, name) for name in ("rewards", "successors", "initial", "discount")}
    assert Problem(**given).support.all()
    with pytest.raises(InputError, match=r"support has shape \(4, 2\)"):
        Problem(**given, support=np.ones((4, 2), bool))
    with pytest.raises(InputError, match=r"support\[0, 0\] has no successor"):
        Problem(**given, support=np.zeros(mdp.successors.shape, bool))
    with pytest.raises(InputError, match="support holds float64"):
        Problem(**given, support=mdp.transitions)


# The option.


@pytest.mark.parametrize("learner", TOLD)
def test_the_option_is_recorded_where_it_is_on_and_mistakes_are_named(learner):
    mdp = riverswim(4, 0.8)
    assert ids.learner(f"{learner},support=on", mdp, 100).settings["support"] == "on"
    assert "support" not in ids.learner(f"{learner},support=off", mdp, 100).settings  # as in runs from before
    with pytest.raises(InputError, match="support is 'maybe'"):
        ids.learner(f"{learner},support=maybe", mdp, 100)
    assert ids.canonical(f"{learner},support=off") == learner


@pytest.mark.parametrize("learner", ["psrl", "ucrl2"])
def test_on_a_stream_it_needs_a_problem_and_holds_the_stream_to_it(learner):
    with pytest.raises(InputError, match=r"support=on.*give a problem"):
        ravi.agent(f"{learner},support=on", states=4, actions=2, discount=0.9, steps=50)
    problem = riverswim(4, 0.8).problem
    live = ravi.agent(f"{learner},support=on", problem, 50)
    a = live.act(0)
    with pytest.raises(StreamError, match="led to 3, which riverswim/4 rules out"):
        live.observe(0, a, 3, problem.rewards[0, a])
    live.observe(0, a, 0, problem.rewards[0, a])
    with pytest.raises(InputError, match="those of new states"):
        live.grow(6, 2)
    assert ravi.agent(learner, problem, 50).table.closed is False


def test_on_a_stream_a_stored_successor_of_probability_0_is_ruled_out_too(tmp_path):
    problem = riverswim(4, 0.8).problem
    assert problem.successors[0, 0].tolist() == [0, 1, 2]  # of which action 0 leads to 0 only
    for learner in ("psrl,support=on", "psrl"):
        ravi.agent(learner, problem, 50, seed=1).save(tmp_path / "agent")
        live = ravi.Agent.load(tmp_path / "agent")
        while live.act(0) != 0:
            live.observe(0, 1, 0, problem.rewards[0, 1])
        if learner == "psrl":
            live.observe(0, 0, 2, problem.rewards[0, 0])
        else:
            with pytest.raises(StreamError, match="led to 2, which riverswim/4 rules out"):
                live.observe(0, 0, 2, problem.rewards[0, 0])


def test_what_is_proved_has_B_for_X():
    for name in ("ucrl2", "kl-ucrl", "psrl"):
        assert THEORY[name]["X"].exponent == proved(name)["X"].exponent == 1
        assert proved(f"{name},scale=2,support=on")["X"].exponent == 0.5
        assert proved(f"{name},support=on")["T"] == proved(name)["T"]._replace(
            source=proved(f"{name},support=on")["T"].source
        )
    assert proved("ucrl2b,support=on") == THEORY["ucrl2b"]
    assert proved("mine:own,support=on") == {}
