"""A Garnet is what its definition says, and the same for ever."""

import hashlib
import sys

import numpy as np
import pytest

from ravi.mdps import garnet
from ravi.mdps.building import uniforms
from ravi.mdps.mixtures import distinct
from tests.mdps.oracle import dense

FIELDS = ("rewards", "successors", "transitions", "initial")


def digest(mdp):
    return hashlib.sha256(b"".join(getattr(mdp, field).tobytes() for field in FIELDS)).hexdigest()


def test_an_instance_never_changes():
    assert digest(garnet(7, 3, 4, seed=5)) == "631d3829fa0d42d7a25eacae7645bba584b96fde9b53872a076fe9c664fa696c"


def test_the_numbers_are_philox_words():
    raw = np.random.Philox(key=9).random_raw(6)
    draw = uniforms(9)
    np.testing.assert_array_equal(np.r_[draw(2, 2).ravel(), draw(2)], [(int(word) >> 11) / 2**53 for word in raw])


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_instance():
    assert digest(garnet(20, 3, 4, seed=1)) == digest(garnet(20, 3, 4, seed=1))
    assert len({digest(garnet(20, 3, 4, seed=seed)) for seed in range(10)}) == 10


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


def test_every_set_of_successors_is_equally_likely():
    """Chi-square over the ten pairs out of five, 9 degrees of freedom: false alarm at 33.7 with probability 1e-4."""
    sets = np.sort(distinct(uniforms(0)(20_000, 2), 5), axis=1)
    counts = np.unique(sets[:, 0] * 5 + sets[:, 1], return_counts=True)[1]
    assert counts.size == 10
    assert ((counts - 2000) ** 2 / 2000).sum() < 33.7


def test_rewards_are_uniform_where_they_are_not_zero():
    """Half of them are zero, within five standard deviations: false alarm below 1e-6; the seed is fixed."""
    r = garnet(2000, 4, 1).rewards
    n = r.size
    assert abs((r == 0).sum() - n / 2) < 5 * np.sqrt(n / 4)
    assert abs(r[r > 0].mean() - 0.5) < 5 * np.sqrt(1 / 12 / (r > 0).sum())


def test_one_successor_is_deterministic_and_all_are_dense():
    np.testing.assert_array_equal(garnet(9, 2, 1).transitions, 1)
    assert (dense(garnet(9, 2, 9)) > 0).all()


def test_a_garnet_starts_anywhere_or_at_the_first_state():
    np.testing.assert_array_equal(garnet(4, 2, 2).initial, 0.25)
    np.testing.assert_array_equal(garnet(4, 2, 2, start="first").initial, (1, 0, 0, 0))


def test_a_large_garnet_takes_memory_in_proportion_to_its_successors():
    mdp = garnet(100_000, 4, 5)
    assert mdp.transitions.nbytes == 100_000 * 4 * 5 * 8
    assert mdp.successors.nbytes == 100_000 * 4 * 5 * 4
    assert mdp.successors.dtype == np.int32
