"""The contract can be broken: a learner with a fault is found, by the claim that the fault is against."""

from itertools import count
from typing import NamedTuple

import numpy as np
import pytest

from ravi import testing
from ravi.core import Array, Learner
from ravi.schedules import at_reset
from ravi.testing import Breach, Case, check

EVER = count(1)


class State(NamedTuple):
    policy: Array  # (n, X, A)
    plays: Array  # (n, X, A)
    V: Array  # (n, X)


def least_played(problem, steps, fault=""):
    """Prefers what it played least; and may have a fault."""
    X, A, H = problem.states, problem.actions, problem.horizon
    plans = count(1)

    def init(keys):
        n = len(keys)
        return State(np.full((n, X, A), 1 / A), np.zeros((n, X, A)), np.zeros((n, X)))

    def plan(s):
        share = 1 / (1 + s.plays)
        if fault == "remembers other runs":
            share[:, :, 0] += next(EVER)
        if fault == "looks at other seeds":
            share = share + share.sum(0)
        if fault == "keeps what is not in its state":
            share[:, :, 0] += next(plans)
        policy = share / share.sum(-1, keepdims=True)
        if fault == "rows that do not sum to one":
            policy = policy * (1 - 1e-9)
        return s._replace(policy=policy, V=np.full_like(s.V, 1.1 * H if fault == "values beyond H" else 0.5 * H))

    def add(s, path):
        for i in range(len(path.length)):
            plays = slice(None if fault == "reads beyond the path" else path.length[i])
            np.add.at(s.plays[i], (path.state[i, plays], path.action[i, plays]), 1)
        return s

    told = problem.transitions.tobytes().hex() if fault == "knows the kernel" else ""
    return Learner("least-played", init, plan, add, at_reset(), {"told": told})


def of(fault):
    return lambda problem, steps: least_played(problem, steps, fault)


def test_a_sound_learner_keeps_the_contract():
    check(of(""))
    check(of(""), ["riverswim/4"], steps=200)  # without features too


@pytest.mark.parametrize(
    ("fault", "claim"),
    [
        ("rows that do not sum to one", "policies are policies and values stay in range"),
        ("values beyond H", "policies are policies and values stay in range"),
        ("remembers other runs", "the same key gives the same run"),
        ("looks at other seeds", "a batch does not change a seed"),
        ("keeps what is not in its state", "a resumed run equals an uninterrupted one"),
        ("reads beyond the path", "a batch does not change a seed"),
    ],
)
def test_a_fault_is_found_by_the_claim_that_it_is_against(fault, claim):
    with pytest.raises(Breach, match=rf"on riverswim/mixture/5,discount=0.9: not so: {claim} \("):
        check(of(fault))


def test_an_agent_that_comes_elsewhere_is_found():
    with pytest.raises(Breach, match=r"differs|play \d+ is"):
        testing.fed_the_stream_of_a_run_it_comes_to_the_same_state(Case(of("reads beyond the path"), testing.MDPS[0]))


@pytest.mark.parametrize("mdp", [testing.MDPS[0], "riverswim/4"])
def test_a_learner_that_knows_the_kernel_is_found(mdp, monkeypatch):
    """No builder is given it: here one has a back door."""
    monkeypatch.setattr(Case, "built", lambda case, world=None: case.learner(world or case.world, case.steps))
    testing.no_learner_sees_the_transitions(Case(of(""), mdp))
    with pytest.raises(Breach, match="settings depend on the kernel"):
        testing.no_learner_sees_the_transitions(Case(of("knows the kernel"), mdp))
