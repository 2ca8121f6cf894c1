"""What is put off when functions are compiled (`ravi._jit.late`) changes nothing but when it is done."""

import threading

import numba
import numpy as np
import pytest
from numba.core.compiler import Flags, run_frontend

from ravi._jit import late
from ravi._jit.functions import compiled
from tests.support.caches import looked_for_anew


@pytest.fixture
def functions(monkeypatch, tmp_path):
    monkeypatch.setenv("RAVI_CACHE_DIR", str(tmp_path))
    with looked_for_anew():
        yield made()


def made():
    @numba.njit
    def of_a_user(x):
        return x + 0.5

    @compiled
    def inner(x):
        return np.sqrt(x) + of_a_user(x)

    @compiled
    def outer(values):
        made = np.empty_like(values)
        for i in range(len(values)):
            made[i] = inner(values[i])
        return made

    return outer, inner, of_a_user


def expected(values):
    return np.sqrt(values) + (values + 0.5)


def late_ones(function):
    return [isinstance(result.entry_point, late.Late) for result in function.overloads.values()]


def test_what_only_compiled_functions_call_has_no_machine_code_until_python_calls_it(functions):
    outer, inner, of_a_user = functions
    values = np.arange(5.0)
    assert (outer(values) == expected(values)).all()
    assert (late_ones(outer), late_ones(inner), late_ones(of_a_user)) == ([False], [True], [True])
    assert inner(4.0) == expected(4.0)
    assert late_ones(inner) == [False]
    assert of_a_user(1.0) == of_a_user(1.0) == 1.5  # which is none of ours, and so asks each time
    assert (outer(values.astype(np.float32)) == expected(values.astype(np.float32))).all()
    assert late_ones(outer) == [False, False]


def test_a_function_that_python_called_first_is_taken_into_its_callers(functions):
    outer, inner, _ = functions
    assert inner(9.0) == expected(9.0)
    assert (outer(np.full(3, 9.0)) == expected(9.0)).all()
    assert late_ones(inner) == [False]


def test_numba_is_as_it_was_after_an_error(functions):
    outer, _, _ = functions
    with pytest.raises(numba.TypingError):
        outer("no array")
    assert all(getattr(owner, name) == late.PLAIN[name] for owner, name, _ in late.REPLACED)

    @numba.njit
    def another(x):
        return 2 * x

    assert another(2) == 4
    assert late_ones(another) == [False]


def test_flags_are_hashed_and_compared_as_numba_does():
    ours = {name: function for owner, name, function in late.REPLACED if owner is late.targetconfig.TargetConfig}
    one, same, other = Flags(), Flags(), Flags()
    same.nrt = Flags().nrt  # said, and what it would be anyway
    other.nrt = not one.nrt
    assert ours["__hash__"](one) == hash(one)
    for flags, equal in ((one, True), (same, True), (other, False), (None, NotImplemented)):
        assert ours["__eq__"](one, flags) is late.PLAIN["__eq__"](one, flags) is equal


def test_what_a_function_of_numba_gives_depends_on_the_types_that_it_is_given(functions):
    def plain(x):
        return x + x

    for twice in (compiled(plain), compiled(plain)):  # the second from what was found for the first
        assert twice(True) == 2
        assert twice(np.int32(2**31 - 1)) == 2**32 - 2
        assert twice(0.75) == 1.5
        assert twice((1, 2.0)) == (1, 2.0, 1, 2.0)
        assert twice(np.arange(2.0)).tolist() == [0, 2]


def test_an_instruction_has_the_variables_that_numba_finds():
    def several(x, *, y):
        pair = (x, y[0])
        while x < 3:
            x += len(pair) if y is not None else y[1:x]
        raise ValueError(x, "no")

    blocks = run_frontend(several).blocks.values()
    parts = [instruction.__dict__ for block in blocks for instruction in block.body]
    ours = late._listing(late.ir)
    assert any(len(ours(None, part)) > 2 for part in parts)
    for part in parts:
        assert ours(None, part) == late.PLAIN["_rec_list_vars"](late.ir.Inst(), part)


def test_what_python_is_given_is_made_when_it_is_asked_for(functions):
    @compiled
    def counted(n):
        for i in range(n):
            yield i, np.full(i, 0.5)

    @compiled
    def refused(x):
        if x < 0:
            raise ValueError("a negative number", x)
        return {"x": x}

    @compiled
    def both(n):
        total = refused(n)["x"]
        for i, half in counted(n):
            total += i + half.sum()
        return total, [n]

    assert both(3) == (7.5, [3])
    with pytest.raises(ValueError, match="a negative number"):
        both(-1)  # before Python has called what raises it
    assert [(i, half.tolist()) for i, half in counted(2)] == [(0, []), (1, [0.5])]
    assert refused(1)["x"] == 1
    for function in (both, refused):
        with pytest.raises(ValueError, match="a negative number"):
            function(-1)


def test_an_array_that_is_written_into_one_of_another_shape_is_an_error(functions):
    @compiled
    def put(target, source):
        target[:] = source

    put(held := np.zeros(3), np.arange(3.0))
    assert held.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="another shape"):
        put(np.zeros(3), np.arange(2.0))


def test_threads_that_compile_at_once_wait_for_each_other(functions):
    outer, inner, _ = functions
    found = []

    @numba.njit
    def another(x):
        return 3 * x

    def work(k):
        found.append([lambda: outer(np.full(k + 1, 4.0))[k], lambda: inner(4.0), lambda: another(1.5)][k % 3]())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [4.5] * 2 + [6.5] * 4


def test_where_numba_lacks_a_part_nothing_is_put_off(functions, monkeypatch):
    outer, inner, _ = functions
    monkeypatch.setitem(late.PLAIN, "create_cfunc_wrapper", None)
    assert (outer(np.ones(2)) == expected(1.0)).all()
    assert late_ones(inner) == [False]
