"""Ids: each stands for one thing, is written in one way, and says what it does not understand."""

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.validation import InputError

SMALL = "riverswim/mixture/5,discount=0.9"  # with features, for learners that need them


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("riverswim/6,discount=0.9", "riverswim,6,0.9"),
        ("garnet/5,2,2,seed=3", "garnet/5,2,2,seed=3.0"),
        ("riverswim/6,discount=0.9", "riverswim/n=6,discount=9e-1"),
        ("garnet/5,2,2,seed=3,discount=0.9", "garnet/5,2,2,discount=0.9,seed=3"),
    ],
)
def test_two_spellings_of_an_mdp_are_the_same_arrays(one, other):
    first, second = ids.mdp(one), ids.mdp(other)
    for array in ("rewards", "successors", "transitions", "initial"):
        np.testing.assert_array_equal(getattr(first, array), getattr(second, array))


def test_ids_build_what_they_say():
    """The longest name wins: `ravi-ucb/mixture` is no `ravi-ucb` with an argument."""
    mdp = ids.mdp("garnet/12,3,2,seed=5,discount=0.8")
    assert (mdp.states, mdp.actions, mdp.branching, mdp.discount) == (12, 3, 2, 0.8)
    assert mdp.name == "garnet/12,3,2,seed=5"
    assert (ids.mdp("riverswim/mixture").dimension, ids.mdp("riverswim").dimension) == (3, 0)
    assert ids.learner("ravi-ucb/mixture,bound=2", ids.mdp(SMALL), 10).settings["bound"] == 2
    assert ids.learner("ravi-ucb/mixture,scale=0.1", ids.mdp(SMALL), 50).parts.stated.kind == "mixture"
    assert ids.learner("ravi-ucb,scale=0.1", ids.mdp(SMALL), 50).parts.stated.kind == "tabular"


def test_the_canonical_id_has_options_in_their_order_without_defaults():
    assert ids.canonical("ravi-ucb,step_scale=30,scale=3e-2") == "ravi-ucb,scale=0.03,step_scale=30.0"
    assert ids.canonical("ravi-ucb,scale=1") == "ravi-ucb"
    assert ids.given_options("ravi-ucb,scale=1") == {"scale": 1.0}
    assert ids.learner_options("ravi-ucb,scale=2")["scale"] == 2
    assert ids.learner_options("ravi-ucb")["step_scale"] == 1


def test_an_oracle_is_given_the_kernel_and_nobody_else():
    world = ids.mdp(SMALL)
    assert [name for name, known in ids.LEARNERS.items() if known.oracle] == ["ravi-ucb/known", "optimum"]
    with pytest.raises(InputError, match="optimum is given the MDP itself"):
        ids.learner("optimum", world.problem, 50)
    assert not isinstance(world.problem, MDP)


@pytest.mark.parametrize(
    "text",
    ["riverswim/4,rewards=beta", "riverswim/4,criterion=average,rewards=bernoulli",
     "deep-sea/3,criterion=episodic,episode=3,rewards=deterministic"],
)  # fmt: skip
def test_the_law_of_rewards_is_part_of_an_mdp(text, tmp_path):
    made, law = ids.mdp(text), text.rpartition("=")[2]
    assert (made.name, made.reward_law, made.problem.reward_law) == (text, law, law)
    assert ids.mdp(ids.mdp(text.rpartition(",")[0]), rewards=law).digest == made.digest
    assert made.digest != ids.mdp(text.rpartition(",")[0]).digest
    made.save(tmp_path / "one.mdp")
    assert MDP.load(tmp_path / "one.mdp").digest == made.digest
    with pytest.raises(InputError, match=f"rewards is given twice: {law} in the id, and as beta"):
        ids.mdp(text, rewards="beta")
    with pytest.raises(InputError, match="rewards is 'normal', not one of deterministic, bernoulli, beta"):
        ids.mdp("riverswim/4,rewards=normal")


def test_an_mdp_is_itself_and_a_file_is_what_was_saved(tmp_path):
    world = ids.mdp(SMALL)
    assert ids.mdp(world) is world
    world.save(tmp_path / "one.mdp")
    np.testing.assert_array_equal(ids.mdp(tmp_path / "one.mdp").transitions, world.transitions)
    assert ids.is_file(str(tmp_path / "one.mdp"))
    assert not ids.is_file("riverswim/6")


def test_code_in_an_id_of_a_file_is_refused_unless_it_is_allowed():
    assert ids.check_trust("ravi-ucb,scale=2", "results.json") == "ravi-ucb,scale=2"
    assert ids.code_in("os:system,scale=2") == "os:system"
    with pytest.raises(InputError, match=r"results.json names 'os:system': os:system is code"):
        ids.check_trust("os:system", "results.json")
    assert ids.check_trust("os:system", "results.json", allow_code=True) == "os:system"
