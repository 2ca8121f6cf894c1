"""A Garnet is what its definition says, and the same for ever."""

import hashlib
import sys

import numpy as np
import pytest

from ravi.mdps import garnet
from ravi.mdps.building import uniforms
from ravi.mdps.mixtures import distinct
from tests.helpers import dense

FIELDS = ("rewards", "successors", "transitions", "initial")


def digest(mdp):
    return hashlib.sha256(b"".join(getattr(mdp, field).tobytes() for field in FIELDS)).hexdigest()


def test_an_instance_never_changes():
    assert digest(garnet(7, 3, 4, seed=5)) == "631d3829fa0d42d7a25eacae7645bba584b96fde9b53872a076fe9c664fa696c"


def test_the_numbers_are_philox_words():
    raw = np.random.Philox(key=9).random_raw(6)
    draw = uniforms(9)
    np.testing.assert_array_equal(np.r_[draw(2, 2).ravel(), draw(2)], [(int(word) >> 11) / 2**53 for word in raw])


@pytest.mark.parametrize(("states", "branching"), [(1, 1), (5, 1), (5, 5), (40, 7), (40, 32), (40, 33), (40, 40)])
def test_every_pair_has_exactly_b_distinct_successors(states, branching):
    mdp = garnet(states, 3, branching, seed=2)
    assert mdp.successors.shape == (states, 3, branching)
    assert (np.diff(mdp.successors) > 0).all()  # ascending, so distinct
    assert (mdp.transitions > 0).all()
    np.testing.assert_allclose(mdp.transitions.sum(-1), 1, atol=1e-14)


def test_both_forms_of_floyds_method_choose_the_same(monkeypatch):
    u = uniforms(3)(50, 20)
    compared = distinct(u, 30)
    module = sys.modules["ravi.mdps.mixtures"]  # the attribute of that name is the builder
    monkeypatch.setattr(module, "COMPARED", 0)
    monkeypatch.setattr(module, "TABLE", 200)  # six rows at a time
    np.testing.assert_array_equal(distinct(u, 30), compared)


def test_one_successor_is_deterministic_and_all_are_dense():
    np.testing.assert_array_equal(garnet(9, 2, 1).transitions, 1)
    assert (dense(garnet(9, 2, 9)) > 0).all()


def test_a_garnet_starts_anywhere_or_at_the_first_state():
    np.testing.assert_array_equal(garnet(4, 2, 2).initial, 0.25)
    np.testing.assert_array_equal(garnet(4, 2, 2, start="first").initial, (1, 0, 0, 0))
