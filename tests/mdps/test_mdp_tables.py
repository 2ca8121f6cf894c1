"""Tables come in as they are, whatever they are stored as."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.core import MDP
from ravi.mdps import from_dense, from_features, from_sparse, garnet
from ravi.validation import InputError
from tests.helpers import dense

ARRAYS = ("rewards", "successors", "transitions", "initial")
examples = settings(deadline=None, derandomize=True, max_examples=60)


@st.composite
def tables(draw):
    """P and r with X up to 6 and A up to 3: small whole weights, normalised, so that rows have many zeros."""
    X, A = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.integers(0, 4, (X, A, X)) * (rng.random((X, A, X)) < draw(st.sampled_from([0.2, 0.6, 1.0])))
    weights[np.arange(X), :, rng.integers(0, X, X)] += 1  # no empty row
    return weights / weights.sum(-1, keepdims=True), rng.random((X, A))


@examples
@given(tables())
def test_a_dense_table_comes_back_as_it_was(table):
    P, r = table
    mdp = from_dense(P, r, 0.9, 0)
    np.testing.assert_array_equal(dense(mdp), P)
    np.testing.assert_array_equal(mdp.rewards, r)
    assert mdp.branching == (P > 0).sum(-1).max()
    assert mdp.successors.dtype == np.int32


@examples
@given(tables())
def test_short_rows_are_filled_with_the_smallest_states_not_in_them(table):
    P, r = table
    mdp = from_dense(P, r, 0.9, 0)
    for x, a in np.ndindex(r.shape):
        own = set(np.flatnonzero(P[x, a]))
        others = [y for y in range(mdp.states) if y not in own][: mdp.branching - len(own)]
        assert list(mdp.successors[x, a]) == sorted(own | set(others))


@examples
@given(tables(), st.sampled_from(["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "coo_array", "lil_array"]))
def test_sparse_and_dense_tables_give_the_same_bits(table, storage):
    P, r = table
    X, A = r.shape
    kind = getattr(sp, storage)
    stacked = from_sparse(kind(P.reshape(X * A, X)), r, 0.9, 0)
    by_action = from_sparse([kind(P[:, a]) for a in range(A)], r, 0.9, 0)
    for field in ARRAYS:
        expected = getattr(from_dense(P, r, 0.9, 0), field)
        for mdp in (stacked, by_action):
            assert getattr(mdp, field).tobytes() == expected.tobytes()
            assert getattr(mdp, field).shape == expected.shape


def test_entries_that_a_sparse_matrix_holds_twice_are_added_up():
    P = sp.coo_array(([0.25, 0.5, 0.25, 1.0, 0.0], ([0, 0, 0, 1, 1], [1, 0, 1, 1, 0])), shape=(2, 2))
    before = P.data.copy()
    mdp = from_sparse(P, [[0], [1]], 0.9, 0)
    np.testing.assert_array_equal(dense(mdp)[:, 0], [[0.5, 0.5], [0, 1]])
    np.testing.assert_array_equal(P.data, before)  # the user's matrix stays as it was


def test_a_zero_that_is_stored_is_no_successor():
    P = sp.coo_array(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert from_sparse(P, [[0], [1]], 0.9, 0).branching == 1


def test_the_static_methods_are_the_same_functions():
    P, r = np.ones((1, 2, 1)), [[0.5, 1]]
    assert MDP.from_dense(P, r, 0.9, 0, name="one").name == "one"
    assert MDP.from_sparse(sp.csr_array(P[0]), r, 0.9, 0, name="one").name == "one"


def test_renormalising_is_asked_for_and_has_a_limit():
    P = np.array([[[0.3333, 0.3333, 0.3333]], [[0.5, 0.5, 0]], [[0, 0, 1]]])
    r = np.zeros((3, 1))
    with pytest.raises(InputError, match=r"transitions\[0, 0\] sums to 0.9999, not 1; renormalise=True"):
        from_dense(P, r, 0.9, 0)
    for mdp in (
        from_dense(P, r, 0.9, 0, renormalise=True),
        from_sparse(sp.csr_array(P[:, 0]), r, 0.9, 0, renormalise=True),
    ):
        np.testing.assert_allclose(dense(mdp)[0, 0], 1 / 3, rtol=1e-15)
        np.testing.assert_array_equal(dense(mdp)[1:], P[1:])  # rows that sum to one stay as they are
    P[1, 0, 1] = 0.498
    with pytest.raises(InputError, match=r"transitions\[1, 0\] sums to 0.998, not 1; .* at most 0.001"):
        from_dense(P, r, 0.9, 0, renormalise=True)


def test_single_precision_is_an_error_that_says_how_to_go_on():
    P = np.full((3, 1, 3), 1 / 3, dtype=np.float32)
    with pytest.raises(InputError, match="renormalise=True rescales such rows"):
        from_dense(P, np.zeros((3, 1)), 0.9, 0)
    np.testing.assert_allclose(from_dense(P, np.zeros((3, 1)), 0.9, 0, renormalise=True).transitions, 1 / 3, rtol=1e-15)


def test_a_large_sparse_table_never_becomes_dense():
    mdp = garnet(100_000, 4, 5)
    rows = np.repeat(np.arange(400_000), 5)
    P = sp.csr_array((mdp.transitions.ravel(), (rows, mdp.successors.ravel())), shape=(400_000, 100_000))
    tracemalloc.start()
    again = from_sparse(P, mdp.rewards, 0.95, mdp.initial)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for field in ARRAYS:
        assert getattr(again, field).tobytes() == getattr(mdp, field).tobytes()
    assert peak < 40 * mdp.transitions.nbytes  # X^2 would be 5,000 times that


def test_rounding_below_zero_is_zero_and_no_more():
    features = np.array([[[[1.0, 1.0], [-1.0, 0.0]]]] * 2)  # P = (theta_1 + theta_2, -theta_1)
    successors = [[[0, 1]]] * 2
    mdp = from_features(features, (1e-16, 1.0), successors, np.zeros((2, 1)), 0.9, 0)
    np.testing.assert_array_equal(mdp.transitions, [[[1, 0]]] * 2)
    with pytest.raises(InputError, match=r"do not make a kernel: .* transitions\[0, 0, 1\] is -1e-06"):
        from_features(features, (1e-6, 1.0), successors, np.zeros((2, 1)), 0.9, 0)
