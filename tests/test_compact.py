"""Code that is written in short (`ravi._jit.compact`) computes what Python computes, with any caller and any layout."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from ravi._jit import compact
from ravi._jit.functions import bound, compiled
from tests.support.caches import looked_for_anew


@pytest.fixture(autouse=True)
def _compiled_here(monkeypatch, tmp_path):
    monkeypatch.setenv("RAVI_CACHE_DIR", str(tmp_path))
    with looked_for_anew():
        yield


class Inner(NamedTuple):
    small: np.ndarray
    number: float
    flag: bool


class Large(NamedTuple):
    """More numbers than are passed one by one."""

    one: np.ndarray
    inner: Inner
    other: np.ndarray
    count: int


def large():
    inner = Inner(np.arange(6, dtype=np.int32).reshape(2, 3), 0.5, True)
    return Large(np.arange(12.0).reshape(3, 4), inner, np.linspace(0, 1, 24).reshape(2, 3, 4), 7)


def total(own, i):
    """Reads every kind of part."""
    found = own.one[i, 1] + own.inner.number + own.count
    for j in range(own.inner.small.shape[1]):
        found += own.inner.small[1, j] * own.other[1, i, j]
    return found if own.inner.flag else -found


def test_a_large_tuple_is_passed_by_its_address_from_python_and_through_every_caller():
    plain = total
    inner = compiled(total)

    def fresh(own, i):
        """A tuple that is made here, and one that is made in a loop."""
        found = inner(Large(own.one, own.inner, own.other, i), i)
        for k in range(3):
            found += inner(Large(own.one, own.inner, own.other, k), i)
        return found

    through = compiled(fresh)
    own = large()
    assert inner(own, 2) == plain(own, 2)
    expected = sum(plain(own._replace(count=k), 1) for k in (1, 0, 1, 2))
    assert through(own, 1) == pytest.approx(expected, rel=1e-15)
    (result,) = inner.overloads.values()
    assert compact.MARK in result.fndesc.mangled_name
    passed = compact.Arguments(result.target_context, result.fndesc.argtypes).argument_types
    assert [kind.is_pointer for kind in passed] == [True, False]


def test_an_array_is_passed_as_numba_passes_it():
    @compiled
    def first(a):
        return a[0]

    assert first(np.arange(3.0)) == 0.0
    (result,) = first.overloads.values()
    context, kinds = result.target_context, result.fndesc.argtypes
    assert compact.Arguments(context, kinds).argument_types == context.get_arg_packer(kinds).argument_types


def test_functions_of_numba_itself_call_ours_and_are_called():
    ours, own = compiled(total), large()

    @numba.njit
    def theirs(own, i):
        return 2 * ours(own, i)

    @compiled
    def outer(own, i):
        return theirs(own, i) + 1

    assert theirs(own, 1) == 2 * total(own, 1)
    assert outer(own, 1) == 2 * total(own, 1) + 1
    (described,) = [result.fndesc for result in theirs.overloads.values()]
    assert compact.MARK not in described.mangled_name


def test_a_function_that_numba_has_compiled_before_is_called_as_it_was_compiled():
    @numba.njit
    def theirs(own, i):
        return own.one[i, 0] + own.count

    own = large()
    before = theirs(own, 1)

    @compiled
    def outer(own, i):
        return theirs(own, i)

    assert outer(own, 1) == before == 11


def test_a_function_may_call_itself():
    @compiled
    def down(own, i):
        return 0.0 if i < 0 else own.one[i, 0] + down(own, i - 1)

    assert down(large(), 2) == 0 + 4 + 8


def frame(own, n):
    found = 0.0
    for i in range(n):
        found += part(own, i)
    return found


part = total  # in whose place another function is bound


def test_a_function_that_is_bound_to_a_loop_is_inlined():
    def doubled(own, i):
        return 2 * own.one[i, 0]

    inner = compiled(doubled)
    assert bound(frame, part=inner)(large(), 3) == 2 * (0 + 4 + 8)
    (result,) = inner.overloads.values()
    assert result.fndesc.inline


ARRAYS = {
    "C": np.arange(24.0).reshape(2, 3, 4),
    "F": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "A": np.arange(192.0).reshape(4, 6, 8)[::2, ::-2, 1::2],
    "int8": np.arange(24, dtype=np.int8).reshape(2, 3, 4) - 12,
    "bool": np.arange(24).reshape(2, 3, 4) % 3 == 0,
    "complex": np.arange(24).reshape(2, 3, 4) * (1 + 2j),
    "unaligned": np.frombuffer(b"\0" + np.arange(24.0).tobytes(), np.uint8)[1:].view(np.float64).reshape(2, 3, 4),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_elements_and_rows_are_those_of_numpy_in_every_layout_and_from_the_end(name):
    def read(a, i, j, k):
        row, plane = a[i, j], a[i]
        return (
            a[i, j, k], a[-1, j, k], a[i, -2, np.uint8(k)], row[k], row[-1], plane[j, k], plane[-1][k],
            a[0][1][2], row.shape[0], plane.shape[1], row.size, row.sum(), a[np.int32(i)][np.uint64(1), 0],
        )  # fmt: skip

    made, a = compiled(read), ARRAYS[name]
    for i, j, k in [(0, 0, 0), (1, 2, 3), (1, -1, 2), (-1, -3, 1), (-2, 0, 3)]:
        assert made(a, i, j, k) == read(a, i, j, k)


@pytest.mark.parametrize("name", ["C", "F", "A", "int8", "bool", "complex"])
def test_elements_are_written_as_numpy_writes_them(name):
    def write(a, i, j, value):
        a[i, j, 0] = value
        a[i][j, -1] = value
        a[-1, j][1] = a[i, j, 2]
        a[0, 0, 0] = True

    ours, theirs = ARRAYS[name].copy(order="K"), ARRAYS[name].copy(order="K")
    compiled(write)(ours, 1, -2, 3)
    write(theirs, 1, -2, 3)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["C", "F", "A", "int8", "bool"])
def test_sums_and_flat_views_are_those_of_numba(name):
    def sums(a, i, j):
        return a.sum(), a[i].sum(), a[i, j].sum(), a[i, :, j].sum(), a[:0].sum()

    def flat(a):
        found = a.ravel()
        found[1] = 1
        other = a[1].reshape(-1)
        other[0] = 0
        return found, other.shape[0], found.shape[0]

    ours, theirs = ARRAYS[name].copy(order="K"), ARRAYS[name].copy(order="K")
    assert compiled(sums)(ours, 1, 2) == numba.njit(sums)(theirs, 1, 2)
    if name != "A" and name != "F":
        for one, other in zip(compiled(flat)(ours), numba.njit(flat)(theirs), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(ours, theirs)


def test_whole_arrays_and_rows_are_assigned_as_numpy_does_also_where_they_overlap():
    def write(a, b, row, i):
        a[:] = 2
        a[i] = b[i]
        a[i, -1] = row
        b[-1] = b[0]
        b[0][:] = 7.5
        b[1, 1] = True
        row[:] = b[1, 0]
        c = b[0]
        c[:] = c
        flat = b.ravel()
        flat[2:6][:] = flat[1:5]
        a[0, 0] = a[1, 1]

    ours = np.arange(24.0).reshape(2, 3, 4), np.arange(24.0).reshape(2, 3, 4) + 100, np.arange(4.0) - 9
    theirs = tuple(array.copy() for array in ours)
    compiled(write)(*ours, 1)
    write(*theirs, 1)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_row_of_another_size_is_refused():
    def write(a, row):
        a[0] = row

    made = compiled(write)
    made(np.zeros((2, 3)), np.ones(3))
    made(repeated := np.zeros((2, 3)), np.full(1, 5.0))  # one number is repeated
    assert repeated.tolist() == [[5, 5, 5], [0, 0, 0]]
    with pytest.raises(ValueError, match="another shape"):
        made(np.zeros((2, 3)), np.ones(2))


def test_ranges_of_every_kind_have_the_numbers_of_python():
    def numbers(a, b, step, out):
        n = 0
        for i in range(b):
            out[n] = i
            n += 1
        for i in range(a, b):
            out[n] = i
            n += 1
        for i in range(a, b, step):
            out[n] = i
            n += 1
        for i in range(np.int32(b)):
            for j in range(i):
                out[n] = i + 10 * j
                n += 1
                if j == 2:
                    break
        for last in range(3):  # noqa: B007
            pass
        out[n] = last
        return n + 1

    made = compiled(numbers)
    for a, b, step in [(0, 4, 1), (5, 2, -1), (2, 9, 3), (-3, 0, 2), (4, 4, 1), (7, -2, -4)]:
        ours, theirs = np.full(99, -77), np.full(99, -77)
        assert made(a, b, step, ours) == numbers(a, b, step, theirs)
        np.testing.assert_array_equal(ours, theirs)


def test_the_larger_and_the_smaller_of_two_numbers_are_those_of_python():
    def extremes(a, b, i, j):
        return max(a, b), min(a, b), max(i, j), min(i, j), max(i, a), min(b, j), max(i, 2), min(1.5, b), max(a, b, 0.5)

    made, numbers = compiled(extremes), (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)
    for a in numbers:
        for b in numbers:
            for i, j in ((1, 2), (3, -4), (0, 0)):
                ours, theirs = made(a, b, i, j), extremes(a, b, i, j)
                assert np.array(ours, float).tobytes() == np.array(theirs, float).tobytes(), (a, b, i, j)


def test_an_iterator_of_a_range_stays_at_its_end():
    def twice(n):
        found, rest = 0, iter(range(n))
        for i in rest:
            found += i
            if i == 2:
                break
        for i in rest:
            found += 100 * i
        for _ in rest:
            found += 10_000
        return found

    made = compiled(twice)
    assert [made(n) for n in range(6)] == [twice(n) for n in range(6)]


def test_variables_that_blocks_share_have_the_values_they_were_given():
    def tangled(a, n):
        low, high, row, k = 0, n, a[0], 0
        found = 0.0
        while low < high:
            middle = (low + high) // 2
            if a[middle % 3, 0] < 4.0:
                row, low = a[middle % 3], middle + 1
            else:
                high = middle
                other = row[1] + middle
                for k in range(2):
                    if k == 1 and other > 3:
                        continue
                    found += other
            last = middle
            found += row[2] * last
        return found + low + k

    made, a = compiled(tangled), np.arange(12.0).reshape(3, 4)
    assert [made(a, n) for n in range(1, 30)] == [tangled(a, n) for n in range(1, 30)]


def test_what_an_exception_leaves_is_there():
    def caught(a, i):
        found = a[i]
        try:
            if i == 1:
                raise ValueError("one")
            found = 2 * found
        except Exception:
            found = found - 1
        return found

    made, a = compiled(caught), np.arange(3.0)
    assert [made(a, i) for i in range(3)] == [caught(a, i) for i in range(3)]


def test_an_index_is_checked_where_that_is_asked_for():
    def beyond(a, i):
        a[i] = 1.0
        return a[i]

    made = compiled(beyond, boundscheck=True)
    with pytest.raises(IndexError, match="out of bounds"):
        made(np.zeros(3), 3)
    assert made(np.zeros(3), -1) == 1.0
