"""Machine code that is deferred (`ravi._jit.deferred`) changes nothing but when it is made, and nothing of a user's."""

import logging
import os
import sys
import threading

import numba
import numpy as np
import pytest

import ravi
from ravi._jit import deferred
from ravi._jit.functions import bound, compiled, instance, uncounted
from tests.support.caches import looked_for_anew, python

pytestmark = pytest.mark.skipif(not deferred.enabled(), reason="Numba compiles by itself")


@pytest.fixture(autouse=True)
def _kept_here(monkeypatch, tmp_path):
    monkeypatch.setenv("RAVI_CACHE_DIR", str(tmp_path))
    with looked_for_anew():
        yield


def is_deferred(function):
    return [isinstance(result.entry_point, deferred.Deferred) for result in function.overloads.values()]


def test_what_only_compiled_functions_call_has_no_machine_code_until_python_calls_it():
    @compiled
    def inner(x):
        return np.sqrt(x) + 0.5

    @compiled
    def outer(values):
        found = np.empty_like(values)
        for i in range(len(values)):
            found[i] = inner(values[i])
        return found

    values = np.arange(5.0)
    assert (outer(values) == np.sqrt(values) + 0.5).all()
    assert (is_deferred(outer), is_deferred(inner)) == ([False], [True])
    assert inner(4.0) == 2.5
    assert is_deferred(inner) == [False]
    assert outer(values.astype(np.float32)).dtype == np.float32
    assert is_deferred(outer) == [False, False]


def test_a_constant_is_returned_to_python():
    nothing = compiled(lambda x: False)
    assert compiled(lambda x: nothing(x) + 1)(0.5) == 1
    assert nothing(0.5) is False


def user_functions():
    @numba.njit
    def of_a_user(x):
        total = 0.0
        for row in [np.full(2, x), np.full(3, x)]:
            total += row.sum()
        return total / x

    @compiled
    def ours(x):
        return of_a_user(x) + np.full(3, x).sum()

    return of_a_user, ours


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_a_function_of_a_user_is_that_of_numba_whenever_it_is_compiled(when):
    of_a_user, ours = user_functions()
    if when == "before":
        assert of_a_user(2.0) == 5.0
    if when == "after":
        assert ours.py_func(2.0) == 11.0
        compiled(lambda x: np.full(3, x).sum())(2.0)
    else:
        assert ours(2.0) == 11.0
    of_a_user(2.0)
    (result,) = of_a_user.overloads.values()
    assert type(result.library) is numba.core.codegen.JITCodeLibrary
    of_a_user._compile_for_args = None  # which Numba would ask for what it cannot call by itself
    assert of_a_user(2.0) == 5.0
    del of_a_user._compile_for_args
    with pytest.raises(ZeroDivisionError):  # as Numba divides, not as our functions do
        of_a_user(0.0)
    assert ours(1.0) == 8.0


def test_a_function_of_a_user_that_numba_caches_is_cached(tmp_path):
    (tmp_path / "theirs.py").write_text("import numba\n\n@numba.njit(cache=True)\ndef half(x):\n    return x / 2\n")
    code = """
    from ravi._jit.functions import compiled
    from theirs import half
    outer = compiled(lambda x: half(x) + 1)
    print(outer(4.0), half(4.0), sum(half.stats.cache_hits.values()))
    """
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "NUMBA_CACHE_DIR": str(tmp_path)}
    assert [python(code, **environment) for _ in range(2)] == ["3.0 2.0 0", "3.0 2.0 1"]


def test_a_function_of_a_user_may_call_python():
    called = []

    @numba.njit
    def of_a_user(x):
        with numba.objmode():
            called.append(x)
        return 2 * x

    assert compiled(lambda x: of_a_user(x) + 1)(1.5) == 4.0
    assert of_a_user(2.5) == 5.0
    assert called == [1.5, 2.5]


def test_items_of_typed_lists_are_freed():
    code = """
    import numba, numpy as np
    from numba.core.runtime import _nrt_python, rtsys
    _nrt_python.memsys_enable_stats()
    from ravi._jit.functions import compiled

    @numba.njit
    def theirs(n):
        found = numba.typed.List()
        for i in range(n):
            found.append(np.full(3, 1.0 * i))
        return found[n - 1].sum()

    ours = compiled(lambda n: theirs(n) + np.zeros(n).sum())
    for function in (ours, theirs, ours):
        before = rtsys.get_allocation_stats()
        function(5)
        after = rtsys.get_allocation_stats()
        print(after.alloc - before.alloc > 4, (after.alloc - after.free) - (before.alloc - before.free))
    """
    assert python(code).split() == ["True", "0"] * 3


def test_what_compiled_functions_of_a_user_call_raises_what_it_says():
    @compiled
    def refused(x):
        if x < 0:
            raise ValueError("a negative number", x)
        return x

    assert compiled(lambda x: refused(x) + 1)(2) == 3
    theirs = numba.njit(lambda x: refused(x) + 2)
    for function in (theirs, refused):  # `theirs` before Python has called `refused`
        with pytest.raises(ValueError, match="a negative number") as error:
            function(-1)
        assert error.value.args == ("a negative number", -1)


def test_an_array_of_another_size_is_an_error_and_that_of_numba_for_a_user():
    def put(target, source):
        target[:] = source

    for put_, message in ((compiled(put), "input of different size"), (numba.njit(put), r"shape \(2,\)")):
        put_(held := np.zeros(3), np.arange(3.0))
        assert held.tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match=message):
            put_(np.zeros(3), np.arange(2.0))


def test_a_function_may_call_itself_and_be_bound_by_name():
    @compiled
    def down(a, i):
        return 0.0 if i < 0 else a[i] + down(a, i - 1)

    assert down(np.arange(4.0), 3) == 6
    assert bound(frame, part=down)(np.arange(4.0), 3) == 0 + 1 + 3


def frame(a, n):
    found = 0.0
    for i in range(n):
        found += part(a, i)
    return found


def part(a, i):
    """In whose place another function is bound."""


def test_types_that_fail_leave_all_as_it_was():
    double = compiled(lambda x: 2 * x)
    with pytest.raises(numba.TypingError):
        double(object())
    assert double(1.5) == 3.0


def test_threads_that_compile_at_once_wait_for_each_other():
    of_a_user, ours = user_functions()
    found = []

    def work(k):
        found.append((ours, of_a_user)[k % 2](2.0))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [5.0] * 3 + [11.0] * 3


def test_a_function_that_allocates_is_compiled_within_one_that_does_not(tmp_path):
    """The regret of an MDP of more than 16 states is the first that this process compiles."""
    code = """
    import ravi
    print(ravi.run("ravi-ucb", "garnet/20,2,2,discount=0.9", 200, 1).results["regret_total"].shape)
    """
    assert python(code) == "(1,)"


def _halves(a):
    return a[:2], a[2:]


halves = _halves


def _sum_of_firsts(a):
    low, high = halves(a)
    return low[0] + high[0]


@pytest.mark.parametrize("last", [0, 1])
def test_callers_that_count_references_share_no_function_with_those_that_do_not(last, monkeypatch):
    """Else an array is freed too early, or never, by which of them is compiled first."""
    frame, a = instance(_sum_of_firsts, halves=compiled(_halves)), np.arange(4.0)
    for function in (frame, _halves):
        monkeypatch.setattr(function, "__module__", "ravi.here")  # of the library: those of users count
    callers = [compiled(frame), uncounted(frame)]
    for call in (callers[1 - last], callers[last]):
        before = sys.getrefcount(a)
        assert [call(a) for _ in range(100)] == [2.0] * 100
        assert sys.getrefcount(a) == before


OWN = """
import numpy as np
import ravi
from ravi.kit import NEVER, Seedwise, compiled, compiled_learner, tallies
@compiled
def plan(own, i, t):
    V = np.zeros(3)
    V[0] = own[0][i].max()
    return NEVER

@compiled
def learn(own, i, t, x, a, y, slot, reset, after):
    return False

def learner(problem, steps):
    init = ravi.learner("uniform", problem, steps).init
    return compiled_learner("own", init, Seedwise(plan, learn, lambda s, teams: (s.policy,)), {})

print(*ravi.run(learner, "riverswim/4", 2000, 2).regret.tolist(), sep=" ")
"""


def test_a_compiled_learner_of_a_user_may_allocate(tmp_path):
    """As Numba's `max` of an array does. In a process that has compiled nothing else; and from its cache."""
    wanted = ravi.run("uniform", "riverswim/4", 2000, 2).regret
    file = tmp_path / "own.py"
    file.write_text(OWN)
    for _ in range(2):
        printed = python(f"import runpy; runpy.run_path({str(file)!r})", RAVI_CACHE_DIR=str(tmp_path)).split()
        np.testing.assert_allclose([float(one) for one in printed], wanted, rtol=1e-12)


def test_the_log_says_once_that_nothing_is_deferred(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "ravi")
    for name, value in (("RAVI_PLAIN_NUMBA", "1"), ("RAVI_PLAIN_NUMBA", "0")):
        monkeypatch.setenv(name, value)
        deferred.enabled.cache_clear()
        caplog.clear()
        assert (deferred.enabled(), deferred.enabled()) == (value == "0",) * 2
        assert len(caplog.records) == (value == "1")
    monkeypatch.setattr(deferred, "VERSIONS", ("0.1",))
    deferred.enabled.cache_clear()
    assert not deferred.enabled()
    assert caplog.messages[-1].startswith(f"Numba {numba.__version__} is not 0.1: ")
    monkeypatch.undo()
    deferred.enabled.cache_clear()
    assert deferred.enabled()


def test_learners_keep_the_contract_and_their_bits_where_numba_compiles_by_itself():
    code = """
    import ravi
    from ravi import testing
    from tests.support.bits import digest
    for name in ("q-learning", "ravi-ucb"):
        testing.check(name, ["riverswim/4,discount=0.9"], steps=60)
        print(digest(ravi.run(name, "riverswim/4,discount=0.9", 60, 2).results))
    """
    assert python(code, RAVI_PLAIN_NUMBA="1") == python(code)


def test_the_lock_of_the_interpreter_is_released_where_that_is_asked_for():
    for options in ({}, {"nogil": True}):
        made = compiled(lambda x: x + 1, **options)
        assert made(1) == 2
        (text,) = made.inspect_llvm().values()
        assert ("PyEval_SaveThread" in text) == bool(options)
