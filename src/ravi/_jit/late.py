"""What of a compiled function is put off until it is needed? Optimisation, machine code and the wrapper that Python
calls: most functions are called by compiled ones only, which inline them and are optimised as a whole.

Numba does all this for every function as it is compiled, a third to a half of the time. Code is also written in fewer
instructions (`ravi._jit.written`), and more of Numba's work is left out or done faster, in part for numba-cuda too
(`quick`): where variables are used last, after every change of a function (only code that counts references needs it,
`ravi._jit.references`); the formatting of a message about shapes, which a process compiles with the first array that is
written into another; comparing flags, name by name, at every call of a function of NumPy; trying every meaning of `+`
at every sum of two numbers; listing the variables of instructions, and telling a log of each; unrolling loops; and
looking for cycles of garbage. The parts of Numba that are replaced here while it compiles for us (`put_off`) are
private; where one is missing, nothing is put off.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numba
from llvmlite import binding as llvm
from numba.core import codegen, cpu, dispatcher, ir, lowering, postproc, ssa, targetconfig, transforms
from numba.core import compiler_lock as _compiler_lock
from numba.core.types import functions

from ravi._jit import written

lock: Any = vars(_compiler_lock)["global_compiler_lock"]


class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """What was compiled of a function: to be linked into its callers, and machine code when that is asked for."""

    _new = False  # as opposed to one that is read from the cache
    _waits = False  # to be optimised, and for machine code
    inner = False  # without what Python calls

    def _optimize_functions(self, module: Any) -> None:
        """Numba optimises each function by itself, and again where it is inlined: the second suffices."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        self._new = True

    def _finalize_final_module(self) -> None:
        if self._new:
            self._waits = self._finalized = True
        else:
            super()._finalize_final_module()

    def get_pointer_to_function(self, name: str) -> Any:
        self._ensure_finalized()
        if self._waits:
            self._waits = False
            with replaced(UNROLLED):
                super()._optimize_final_module()
            super()._finalize_final_module()
        return super().get_pointer_to_function(name)


class Late:
    """Stands in for a function that Python may call; its machine code is made at the first call."""

    def __init__(self, *parts: Any) -> None:
        self.parts, self.function = parts, None  # parts: context, library, description, environment

    def __call__(self, *arguments: Any) -> Any:
        return self.made()(*arguments)

    def made(self) -> Any:
        with lock:
            self.function = self.function or PLAIN["get_executable"](*self.parts)
        return self.function


def settled(function: Any, found: Any) -> Any:
    """The function that `function` has for some types, where `found` is that or what stands in its place."""
    if not isinstance(found, Late):
        return found
    with lock:
        made, (context, library, described, _) = found.made(), found.parts
        for types, result in list(function.overloads.items()):
            if result.entry_point is found:  # as it is, unless another thread was faster
                environments = tuple(result._find_referenced_environments())  # of the functions that it calls, too
                for environment in environments:
                    library.codegen.set_env(environment.env_name, environment)
                result = result._replace(entry_point=made, referenced_envs=environments)
                context.insert_user_function(made, described, [library])
                function.add_overload(result)
                if library._new:
                    function._cache.save_overload(types, result)
    return made


def inner(function: Any, found: Any) -> bool:
    """Whether `found` was compiled for callers of `function` only; then it is forgotten, to be compiled for Python."""
    if not isinstance(found, Late) or not found.parts[1].inner:
        return False
    for types in [types for types, result in function.overloads.items() if result.entry_point is found]:
        del function.overloads[types]
    return True


def _create_cpython_wrapper(lowered: Any, *arguments: Any, **options: Any) -> None:
    """Python calls what it asked for (`put_off`), what is not ours, and few of the others."""
    function = lowered.func_ir.func_id.func
    if function in written.ours and function is not _asked_for:
        lowered.library.inner = True
    else:
        with written.passing(lowered.fndesc.mangled_name):
            PLAIN["create_cpython_wrapper"](lowered, *arguments, **options)


def _post_process(processor: Any, *arguments: Any, **options: Any) -> None:
    """Numba does this after every change of a function, and looks for where each variable is used last; of ours, code
    that counts references asks for it, once, when it is written (`references`)."""
    function = processor.func_ir
    if not written.is_ours(function):
        PLAIN["run"](processor, *arguments, **options)
        return
    function.blocks, function.generator_info = transforms.canonicalize_cfg(function.blocks), None
    function.variable_lifetime = postproc.VariableLifetime(function.blocks)


def _create_cfunc_wrapper(context: Any, library: Any, described: Any, *arguments: Any) -> None:
    """C calls none of ours, nor of Numba's."""
    if not described.modname.startswith(("ravi.", "numba.")):
        with written.passing(described.mangled_name):
            PLAIN["create_cfunc_wrapper"](context, library, described, *arguments)


def _add_overload(function: Any, result: Any) -> None:
    """A function whose machine code is postponed is recorded for compiled callers only."""
    if isinstance(result.entry_point, Late):
        function.overloads[tuple(result.signature.args)] = result
    else:
        PLAIN["add_overload"](function, result)


@numba.njit
def _of_another_shape(source: Any, target: Any) -> None:
    raise ValueError("an array is written into one of another shape")


@cache
def _hash_of(kind: Any) -> int:
    """Numba's own, which is that of the names of all flags."""
    return hash(tuple(sorted(kind.options)))


def _hash(flags: Any) -> int:
    kind: Any = type(flags)
    return _hash_of(kind)


def _equal(flags: Any, others: Any) -> Any:
    if type(flags) is not type(others):
        return PLAIN["__eq__"](flags, others)
    ours, theirs = flags._values, others._values  # what is said; the rest is as ever
    return ours == theirs or all(getattr(flags, name) == getattr(others, name) for name in ours.keys() | theirs.keys())


_resolved: dict[Any, Any] = {}  # with what must live as long as its id


def _get_call_type(function: Any, context: Any, arguments: Any, names: Any) -> Any:
    """What a function of Numba's own takes and gives, found once for all calls with arguments of these types."""
    key = id(function), id(context), tuple(arguments), tuple(names.items())
    if key not in _resolved:
        _resolved[key] = PLAIN["get_call_type"](function, context, arguments, names), function, context
    return _resolved[key][0]


def _listing(ir: Any) -> Callable[[Any, Any], list[Any]]:
    """The variables in part of an instruction; most parts are none, and of few kinds."""
    variables, instructions = getattr(ir, "var_types", ir.Var), getattr(ir, "inst_types", ir.Inst)
    others = {ir.Loc, str, int, bool, type(None)}

    def put(part: Any, found: list[Any]) -> None:
        kind = type(part)
        if kind in others:
            return
        if issubclass(kind, variables):
            found.append(part)
        elif issubclass(kind, instructions):
            found.extend(part.list_vars())
        elif issubclass(kind, (list, tuple, dict)):
            for each in part.values() if issubclass(kind, dict) else part:
                put(each, found)

    def listed(_: Any, part: Any) -> list[Any]:
        found: list[Any] = []
        put(part, found)
        return found

    return listed


def _on_any_target(ir: Any, targetconfig: Any) -> list[tuple[Any, str, Any]]:
    """What is replaced for a GPU too, which has these modules of Numba as its own."""
    return [
        (targetconfig.TargetConfig, "__hash__", _hash),
        (targetconfig.TargetConfig, "__eq__", _equal),
        (functions.BaseFunction, "get_call_type", _get_call_type),
        (ir.Inst, "_rec_list_vars", _listing(ir)),
    ]


def _create_pipeline_tuning_options(*arguments: Any) -> Any:
    """LLVM would unroll loops: a fifth of its time, for code that is as often slower as it is quicker."""
    options = PLAIN["create_pipeline_tuning_options"](*arguments)
    options.loop_unrolling = False
    return options


UNROLLED: list[tuple[Any, str, Any]] = [(llvm, "create_pipeline_tuning_options", _create_pipeline_tuning_options)]
if not hasattr(llvm, "create_pipeline_tuning_options"):  # before llvmlite 0.44
    UNROLLED = []
REPLACED: list[tuple[Any, str, Any]] = [
    (cpu.CPUContext, "get_executable", lambda *parts: Late(*parts)),
    (lowering.BaseLower, "create_cpython_wrapper", _create_cpython_wrapper),
    (cpu.CPUContext, "create_cfunc_wrapper", _create_cfunc_wrapper),
    *written.REPLACED,
    (postproc.PostProcessor, "run", _post_process),
    (ssa, "_logger", SimpleNamespace(debug=lambda *_: None)),  # it is told of every instruction
    (dispatcher._DispatcherBase, "add_overload", _add_overload),
    (codegen.JITCPUCodegen, "_library_class", Library),
    *_on_any_target(ir, targetconfig),
]
CALLED = [
    (postproc.PostProcessor, "_insert_var_dels"),
    (postproc, "VariableLifetime"),
    (transforms, "canonicalize_cfg"),
]
PLAIN = written.PLAIN
PLAIN.update({name: getattr(owner, name, None) for owner, name, *_ in [*UNROLLED, *REPLACED, *CALLED]})
MESSAGE = "raise_with_shape_context"
_asked_for: Any = None  # the one that is compiled for Python now


def _arrays() -> Any:
    """Numba's functions of arrays. With them it imports SciPy's linear algebra, to see that it is there: a fifth
    of a process that finds all its functions in the cache. What calls that imports it."""
    linalg: Any = import_module("numba.np.linalg")
    if hasattr(linalg, "ensure_blas"):
        with replaced([(linalg, "ensure_blas", lambda: None)]):
            import_module("numba.np.arraymath")
    return import_module("numba.np.arrayobj")


@contextmanager
def put_off(function: Any) -> Iterator[None]:
    """Functions that are compiled meanwhile wait for machine code until Python calls them (`settled`), which is to call
    `function`, or what was compiled for its callers (`inner`)."""
    global _asked_for
    with lock:
        if MESSAGE not in PLAIN:
            owner = _arrays()  # a tenth of a second, which is due now anyway
            REPLACED.append((owner, MESSAGE, _of_another_shape))
            PLAIN[MESSAGE] = getattr(owner, MESSAGE, None)
        if None in PLAIN.values() or codegen.JITCPUCodegen._library_class is Library:
            yield  # nothing can be put off, or all is already
            return
        _asked_for = function
        with replaced(REPLACED), no_search():
            yield


@contextmanager
def replaced(parts: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Ours in place of (owner, name)."""
    plain = [(owner, name, vars(owner).get(name)) for owner, name, _ in parts]
    for owner, name, ours in parts:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        for owner, name, theirs in plain:
            if theirs is None:  # it was another's, of which `owner` is a kind
                delattr(owner, name)
            else:
                setattr(owner, name, theirs)


@contextmanager
def quick(ir: Any, targetconfig: Any) -> Iterator[None]:
    """What is not of a CPU: for numba-cuda."""
    parts = _on_any_target(ir, targetconfig)
    with replaced(parts if all(hasattr(owner, name) for owner, name, _ in parts) else []), no_search():
        yield


@contextmanager
def no_search() -> Iterator[None]:
    """No search for cycles of garbage meanwhile."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
