"""Trees: what is done to all arrays of a state is done to each, and nothing else is touched."""

from typing import NamedTuple

import numpy as np
import pytest

from ravi.runtime import tree
from ravi.runtime.tree import Log
from ravi.validation import InputError


class Inner(NamedTuple):
    count: np.ndarray
    pair: tuple[np.ndarray, np.ndarray]


class Outer(NamedTuple):
    inner: Inner
    log: Log
    policy: np.ndarray


def made(n=4, rows=3):
    start = np.arange(n)
    log = Log.of(np.arange(1, 1 + rows * n).reshape(rows, n))
    return Outer(Inner(start.copy(), (start * 2.0, start[:, None] + np.zeros((n, 2)))), log, np.full((n, 2), 0.5))


def flat(some):
    return {name: leaf.table if isinstance(leaf, Log) else leaf for name, leaf in tree.leaves(some)}


def same(one, other):
    one, other = flat(one), flat(other)
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_leaves_are_named_by_where_they_stand():
    assert list(flat(made())) == ["inner.count", "inner.pair.0", "inner.pair.1", "log", "policy"]


def test_a_copy_has_arrays_of_its_own_and_shares_its_logs():
    one = made()
    other = tree.copy(one)
    assert same(one, other)
    assert other.log is one.log
    other.inner.pair[0][:] = -1
    assert same(one, made())


def test_seeds_that_are_taken_apart_and_joined_are_as_they_were():
    one = made()
    assert same(tree.join([tree.take(one, np.array([0])), tree.take(one, np.array([1, 2, 3]))]), one)
    assert same(tree.join(tree.apart(one, 2)), one)
    assert [len(part.policy) for part in tree.apart(one, 2)] == [2, 2]
    assert tree.apart(one, 4) == [one]
    np.testing.assert_array_equal(tree.take(one, np.array([3, 1])).inner.count, [3, 1])


def test_a_log_ends_with_the_last_epoch_of_its_seeds():
    """Epochs that other seeds had are 0 there; joined again, they come back."""
    table = np.array([[1, 1], [5, 4], [0, 9]])
    one = (np.arange(2), Log.of(table))
    first, second = tree.apart(one, 1)
    assert (first[1].rows, second[1].rows) == (2, 3)
    np.testing.assert_array_equal(tree.join([first, second])[1].table, table)


def test_what_is_put_is_put_into_those_rows_only():
    target, source = made(), tree.map_leaves(lambda leaf: leaf if isinstance(leaf, Log) else leaf + 10, made())
    tree.put(target, source, np.array([False, True, False, True]))
    np.testing.assert_array_equal(target.inner.count, [0, 11, 2, 13])
    np.testing.assert_array_equal(target.policy[:, 0], [0.5, 10.5, 0.5, 10.5])


def test_a_template_is_filled_with_what_it_named():
    one = made()
    again = tree.fill(tree.map_leaves(lambda leaf: leaf, made(rows=0)), flat(one))
    assert same(again, one)
    assert isinstance(again, Outer)
    assert again.policy is not one.policy
    assert tree.size(one) == sum(array.nbytes for name, array in flat(one).items() if name != "log")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda arrays: arrays.pop("inner.count"), "there is no array inner.count"),
        (lambda arrays: arrays.update(more=np.zeros(4)), "there is no place for more"),
        (lambda arrays: arrays.update(policy=np.zeros((4, 3))), r"policy is float64 \(4, 3\), not float64 \(4, 2\)"),
        (lambda arrays: arrays.update(policy=np.zeros((4, 2), np.float32)), "policy is float32"),
        (lambda arrays: arrays.update(log=np.zeros((3, 5), np.int64)), r"log is int64 \(3, 5\), not rows of 4 int64"),
        (lambda arrays: arrays.update(log=np.zeros((3, 4))), "log is float64"),
    ],
)
def test_a_template_refuses_by_name_what_does_not_fit(change, says):
    arrays = flat(made())
    change(arrays)
    with pytest.raises(InputError, match=says):
        tree.fill(made(), arrays)


def ragged(*lengths):
    return tree.Ragged([np.arange(2.0 * length).reshape(length, 2) + 10 * i for i, length in enumerate(lengths)])


def parts(leaf):
    return [part.tolist() for part in leaf.parts]


def test_seeds_with_arrays_of_other_lengths_are_taken_joined_put_and_stored():
    one, wanted = ragged(3, 1, 2), parts(ragged(3, 1, 2))
    assert parts(tree.take(one, np.array([2, 0]))) == [wanted[2], wanted[0]]
    assert parts(tree.join([tree.take(one, np.array([i])) for i in range(3)])) == wanted
    assert tree.seed(one, 1) is one.parts[1]
    assert tree.size(one) == 12 * 8
    held = tree.stored((one,))
    assert held["0.lengths"].tolist() == [3, 1, 2]
    assert parts(tree.fill((ragged(1, 1, 1),), held)[0]) == wanted
    target = ragged(1, 1, 1)
    tree.put(target, one, np.array([True, False, True]))
    assert [len(part) for part in target.parts] == [3, 1, 2]
    assert target.parts[0] is not one.parts[0]


@pytest.mark.parametrize("lengths", [[3, 1, 1], [3, 1, 3], [7, -3, 2], [3, 3], None])
def test_lengths_that_are_not_those_of_the_rows_are_refused(lengths):
    held = tree.stored((ragged(3, 1, 2),)) | {"0.lengths": np.array(lengths or [], np.int64)}
    with pytest.raises(InputError, match=r"^0 (has 6 rows, and its lengths are|is float64 \(6, 2\) with lengths)"):
        tree.fill((ragged(1, 1, 1),), held)
