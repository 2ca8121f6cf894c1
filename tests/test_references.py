"""Variables that hold arrays of the caller count no references (`ravi._jit.references`), and others lose or keep
none."""

import re
import sys
from typing import NamedTuple

import numpy as np
import pytest

from ravi._jit import written
from ravi._jit.functions import compiled
from tests.support.caches import looked_for_anew


class Pair(NamedTuple):
    one: np.ndarray
    other: np.ndarray


@pytest.fixture(autouse=True)
def counting(monkeypatch, tmp_path):
    """The variables that count, by the names of functions whose code is written."""
    monkeypatch.setenv("RAVI_CACHE_DIR", str(tmp_path))
    plain, found = written.PLAIN["lower"], {}

    def lower(lowered):
        found[lowered.func_ir.func_id.func_name] = {name for name in getattr(lowered, "counted", ()) if name[0] != "$"}
        plain(lowered)

    monkeypatch.setitem(written.PLAIN, "lower", lower)
    with looked_for_anew():
        yield found


def views(pair, i):
    row, column, total = pair.one[i], pair.one.T[:, i], 0.0
    for k in range(3):
        if k == 2:
            row = pair.other[i, 1:]
        for j in range(len(row)):
            total += row[j] + column[j]
    a, b = pair
    a[i, 0], b[i, 1] = total, b[i, 1] + 1
    return total


def allocates(pair, i):
    new = np.zeros(3)
    new[0] = pair.one[i].sum()
    return new[0]


def returns_a_view(pair, i):
    return pair.one[i]


def returns_a_part(pair, i):
    return pair.other, i


def copies_a_slice(pair, i):
    pair.one[i] = pair.one[i - 1]
    return pair.one[i, 0]


def takes_many(pair, i):
    return pair.one[np.array([i, 0])].sum()


def adds_arrays(pair, i):
    return (pair.one[i] + pair.one[i])[0]


def grows_a_list(pair, i):
    rows = [pair.one[i]]
    rows.append(pair.one[0])
    return rows[1][0]


def either(pair, i):
    new = np.ones(4)
    row = pair.one[i] if i > 1 else new
    for _ in range(3):
        row = row[1:] if i > 1 else new
    return row[0]


def fresh():
    return Pair(np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize(
    ("function", "counted"),
    [(allocates, {"new"}), (returns_a_view, set()), (returns_a_part, set()), (copies_a_slice, set()),
     (takes_many, set()), (adds_arrays, set()), (grows_a_list, {"rows"}), (either, {"row", "new"})],
)  # fmt: skip
def test_what_is_made_counts_and_what_is_lent_does_not_and_nothing_is_lost_or_kept(function, counted, counting):
    made, pair, plain = compiled(function), fresh(), fresh()
    for i in (1, 2):
        np.testing.assert_equal(made(pair, i), function(plain, i))
    assert {re.sub(r"\.\d+$", "", name) for name in counting[function.__name__]} == counted
    before, allocated = [sys.getrefcount(array) for array in pair], _allocations()
    for _ in range(10):
        made(pair, 1)
    assert [sys.getrefcount(array) for array in pair] == before
    assert _allocations() == allocated


def test_a_generator_is_compiled_as_ever():
    def rows(pair, i):
        for j in range(i):
            yield pair.one[j]

    made, pair = compiled(rows), fresh()
    before = sys.getrefcount(pair.one)
    found = [row.tolist() for row in made(pair, 2)]
    after = sys.getrefcount(pair.one)
    assert (before, found) == (after, pair.one[:2].tolist())


def test_what_only_looks_at_its_arguments_counts_nothing(counting):
    made, pair, plain = compiled(views), fresh(), fresh()
    before = [sys.getrefcount(array) for array in pair]
    for i in (0, 1, 2):
        assert made(pair, i) == views(plain, i)
    assert [sys.getrefcount(array) for array in pair] == before
    assert all((one == other).all() for one, other in zip(pair, plain, strict=True))
    assert counting["views"] == set()


def test_a_borrowing_caller_of_one_that_allocates_keeps_nothing(counting):
    """What it calls gives a number, and frees its own array."""
    inner = compiled(allocates)

    def outer(pair, i):
        return inner(pair, i) + pair.one[i, 0]

    made, pair = compiled(outer), fresh()
    allocated = _allocations()
    for _ in range(10):
        assert made(pair, 1) == pair.one[1].sum() + 4
    assert _allocations() == allocated
    assert (counting["outer"], counting["allocates"]) == (set(), {"new"})


def test_a_caller_of_one_that_returns_an_array_frees_it():
    @compiled
    def inner(i):
        return np.full(3, i)

    @compiled
    def outer(i):
        return inner(i)[0] + inner(2)[1]

    allocated = _allocations()
    assert [outer(1) for _ in range(10)] == [3] * 10
    assert _allocations() == allocated


def _allocations():
    """Arrays of Numba that are alive."""
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()
    stats = rtsys.get_allocation_stats()
    return stats.mi_alloc - stats.mi_free
