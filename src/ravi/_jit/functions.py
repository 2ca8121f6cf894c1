"""Functions are compiled by Numba at their first call, or loaded from the cache (`ravi._jit.cache`).

What is soon done is not worth compiling: within `sparing`, Python runs functions that are not in the cache, with the
same bits.
"""

import dis
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import FunctionType, SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba.core.types import unliteral

from ravi._jit import deferred
from ravi._jit.cache import FunctionCache

FEW = 15_000  # numbers that Python goes through in less time than it takes to compile
WORTH = 3.0  # seconds of a function in Python, from which on it is compiled
EARLY = 0.2  # of a run: the part from which on it is known how long the whole would take


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile `function` at its first call; its plain form stays at `.py_func`. options: Numba's."""
    if deferred.enabled():
        options["pipeline_class"] = deferred.Compiler
    made: Any = numba.njit(error_model="numpy", **options)(function)  # x / 0 is inf or nan, as in NumPy: no branch
    if made is function:  # where Numba is told to compile nothing
        return made
    made._cache = FunctionCache(made)
    # What Numba asks for types that are new to it.
    made._compile_for_args = partial(_compile_or_interpret, made, made._compile_for_args)
    if deferred.enabled():
        made.add_overload = partial(_add_overload, made, made.add_overload)
        made.get_call_template = partial(_of_general_types, made.get_call_template)
    return made


def _add_overload(made: Any, add: Callable[..., None], result: Any) -> None:
    """What is compiled for callers is no function that Python could call."""
    if isinstance(result.entry_point, deferred.Deferred):
        made.overloads[tuple(result.signature.args)] = result
    else:
        add(result)


def _of_general_types(template: Callable[..., Any], arguments: Any, names: Any) -> Any:
    """What a compiled caller calls: one function for all integers, where Numba would compile one for each constant."""
    return template(tuple(map(unliteral, arguments)), {name: unliteral(kind) for name, kind in names.items()})


class Effort:
    """How long this process has compiled and interpreted, and how long it may still interpret."""

    seconds = 0.0  # that functions took to be compiled or loaded
    allowance = 0.0  # seconds for which Python may run functions that are not in the cache
    interpreted = 0.0  # seconds for which it did
    done = 1.0  # the part of the run that is under way
    tell: Callable[[], None] | None = None  # called when a function is compiled that is not in the cache


effort = Effort()
_interpreted_for = defaultdict[Any, float](float)  # seconds, by function


@contextmanager
def sparing(seconds: float = 2.0) -> Iterator[None]:
    """For what is soon done: Python runs what is not in the cache, as long as it has few numbers to go through and
    that takes no longer than `seconds` of CPU time. The results are the same, bit for bit (tests/test_interpreted.py).
    """
    outer = effort.allowance
    effort.allowance = max(outer, seconds)
    try:
        yield
    finally:
        effort.allowance, effort.done = min(outer, effort.allowance), 1.0


def _compile_or_interpret(made: Any, compile_for: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The function to call for types that are new to `made`: compiled now, or interpreted where that is cheaper."""
    new = made in _interpreted_for or not made._cache.has_entry()
    whole = _interpreted_for.get(made, 0.0) / max(effort.done, EARLY)  # seconds, if it goes on like this
    if new and effort.allowance > 0 and whole < WORTH and _numbers(arguments) <= FEW:
        return partial(_interpret, made)
    if new and effort.tell is not None:
        effort.tell()
    began = time.perf_counter()
    try:
        found = compile_for(*arguments)
        return _executable(made, found) if isinstance(found, deferred.Deferred) else found
    finally:
        effort.seconds += time.perf_counter() - began


def _executable(made: Any, entry: deferred.Deferred) -> Any:
    with deferred.lock:
        types = tuple(entry.result.signature.args)
        if made.overloads[types].entry_point is entry:  # else another thread was faster
            made.add_overload(deferred.executable(entry))
            made._cache.save_overload(types, made.overloads[types])
        return made.overloads[types].entry_point


def _numbers(values: Any) -> int:
    """How many there are in nested tuples of arrays and numbers."""
    return sum(map(_numbers, values)) if isinstance(values, tuple) else np.size(values)


def _interpret(made: Any, *arguments: Any) -> Any:
    """Interpret a compiled function, and count the time that it takes."""
    began = time.process_time()
    with np.errstate(all="ignore"):
        found = interpreted(made)(*_as_numpy(arguments))
    taken = time.process_time() - began
    effort.allowance -= taken
    effort.interpreted += taken
    _interpreted_for[made] += taken
    return tuple(map(_plain, found)) if type(found) is tuple else _plain(found)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_in_c(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` that gives what C gives where Python raises: log(0) is -inf, log(-1) nan, exp(1000) inf."""
    at_pole = {math.log: 0.0, math.log1p: -1.0}.get(function)

    def called(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if arguments[0] == at_pole else math.nan

    return called


IN_C = SimpleNamespace(**{name: _as_in_c(it) if callable(it) else it for name, it in vars(math).items()})


@cache
def interpreted(function: Any) -> Callable[..., Any]:
    """A compiled function, and those that it calls, as Python runs them; x / 0 is inf or nan there, too."""
    if not hasattr(function, "py_func"):  # where Numba is told to compile nothing
        return function
    plain = function.py_func
    names: dict[str, Any] = {
        name: interpreted(value)
        for name in _globals_of(plain)
        if hasattr(value := plain.__globals__.get(name), "py_func")
    }
    if plain.__globals__.get("math") is math:
        names["math"] = IN_C
    code = plain.__code__.replace(co_consts=_as_numpy(plain.__code__.co_consts))
    return FunctionType(code, {**plain.__globals__, **names}, plain.__name__)


def _globals_of(plain: Any) -> set[str]:
    """The globals that a function reads; `co_names` also has its attributes, which may be named as a function is."""
    return {one.argval for one in dis.get_instructions(plain) if one.opname == "LOAD_GLOBAL"}


def _as_numpy(value: Any) -> Any:
    """Numbers of Python, also in tuples, as those of NumPy, which divide by 0."""
    if type(value) is tuple:
        return tuple(map(_as_numpy, value))
    return np.float64(value) if type(value) is float else value


@cache
def uncounted(function: Callable[..., Any], **options: Any) -> Any:
    """A function, compiled or plain, and those that it calls, compiled without counts of references: it allocates
    nothing. One that says by itself whether it counts (`_nrt`) stays as it is; one of a user counts, since it may
    allocate, as Numba's `Q.max()` does.

    These are functions of their own, because Numba compiles a function once for all its callers. A view that was
    returned without being counted would be freed too often by a caller that counts.
    """
    given = getattr(function, "targetoptions", {})
    if "_nrt" in given:
        return function
    plain: Any = getattr(function, "py_func", function)
    counts = not plain.__module__.startswith("ravi.")
    name = f"{function.__name__}_{'counted' if counts else 'uncounted'}"
    called = {} if counts else {key: plain.__globals__.get(key) for key in _globals_of(plain)}
    names = {key: uncounted(value) for key, value in called.items() if hasattr(value, "py_func")}
    made = FunctionType(plain.__code__.replace(co_name=name, co_qualname=name), {**plain.__globals__, **names}, name)
    made.__module__ = plain.__module__
    own = {key: value for key, value in given.items() if key not in ("nopython", "boundscheck", "error_model")}
    return compiled(made, **own, **options, _nrt=counts)


def instance(frame: Callable[..., Any], **names: Callable[..., Any]) -> Any:
    """`frame`, a plain function, with these functions in place of its globals of the same names; not compiled. Its name
    has theirs and their modules': machine code of the same name is taken for the same."""
    plain = [getattr(function, "py_func", function) for function in names.values()]
    name = "_".join([frame.__name__, "with", *(f"{each.__module__}.{each.__name__}" for each in plain)])
    at = plain[0].__code__
    code = frame.__code__.replace(
        co_name=name, co_qualname=name, co_filename=at.co_filename, co_firstlineno=at.co_firstlineno
    )
    return FunctionType(code, {**frame.__globals__, **names}, name)


@cache
def bound(frame: Callable[..., Any], **names: Callable[..., Any]) -> Callable[..., Any]:
    """`instance`, compiled. Functions that are passed are compiled anew in every process; one that is bound by name is
    kept. It has one caller as a rule, which inlines it."""
    return compiled(instance(frame, **names), forceinline=True)
