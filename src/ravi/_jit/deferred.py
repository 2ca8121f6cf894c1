"""Machine code and wrappers of compiled functions are made when Python calls a function, not when it is compiled.

Most functions of this package are called by compiled functions only, which inline them. Numba optimises each of them by
itself and as a whole with what it calls, makes machine code of it, and writes two wrappers, for Python and for C: half
of the time of a first run. Here a function is compiled for its callers (`Compiler`), and optimised by itself only. When
Python calls it, its wrapper is linked with it, and both are optimised and made machine code (`executable`). The
instructions are those that Numba writes.

Numba takes `Compiler` as the `pipeline_class` of a function: it concerns functions of this package only, and nothing of
Numba is replaced. Their types are found in a context of their own (`Typing`), which asks for a function of Numba once
for all calls with arguments of the same types. A function of a user that one of them calls is compiled by Numba, as it
would be alone.

The classes that are extended here are no public interface of Numba. They are used with `VERSIONS` only, on which all
tests passed; RAVI_PLAIN_NUMBA=1 switches them off. Results have the same bits without them.
"""

import logging
import os
from functools import cache, partial
from typing import Any

import numba
from llvmlite import binding
from numba.core import codegen, compiler, compiler_machinery, types, typing, untyped_passes
from numba.core import compiler_lock as _compiler_lock
from numba.core.targetconfig import ConfigStack

VERSIONS = ("0.68.1",)
lock: Any = vars(_compiler_lock)["global_compiler_lock"]


@cache
def enabled() -> bool:
    """Whether this process defers machine code; if not, the log says so, once."""
    asked, known = os.environ.get("RAVI_PLAIN_NUMBA", "") not in ("", "0"), numba.__version__ in VERSIONS
    if asked or not known:
        why = "RAVI_PLAIN_NUMBA is set" if asked else f"Numba {numba.__version__} is not {' or '.join(VERSIONS)}"
        logging.getLogger("ravi").info("%s: machine code is not deferred, and first runs take longer", why)
    return known and not asked


class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The instructions of a function and of those that it calls, to be linked into its callers."""

    def _optimize_final_module(self) -> None:
        """Callers do."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class Deferred:
    """Stands where Numba keeps the function that Python calls, until Python calls it."""

    def __init__(self, result: Any, releases: bool) -> None:
        self.result, self.releases = result, releases  # the lock of the interpreter


class Flags(compiler.Flags):  # type: ignore[misc]
    """Numba's flags, compared by what is set. Numba compares all, by name, wherever it looks up a function."""

    def __hash__(self) -> int:
        return hash(Flags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and self._values == other._values


@numba.njit
def _other_size(source: Any, target: Any) -> None:
    """An error without the two shapes: to format them, Numba compiles for a second."""
    raise ValueError("cannot assign slice from input of different size")


class Typing(typing.Context):  # type: ignore[misc]
    """Numba's typing context, for functions of this package."""

    def __init__(self, plain: Any) -> None:
        self.__dict__ = plain.__dict__

    def resolve_value_type(self, value: Any) -> Any:
        from numba.np.arrayobj import raise_with_shape_context  # SciPy's linear algebra comes with it: not before

        return super().resolve_value_type(_other_size if value is raise_with_shape_context else value)

    def resolve_function_type(self, function: Any, arguments: Any, names: Any) -> Any:
        find = partial(super().resolve_function_type, function, arguments, names)
        if isinstance(function, types.Dispatcher) and not is_deferring(function.dispatcher):
            with ConfigStack().enter(_as_if_alone()):
                return find()
        if not isinstance(function, types.Function) or names:
            return find()
        key = ConfigStack.top_or_none(), function, tuple(arguments)
        if key not in _known:
            _known[key] = find()
        return _known[key]


_typing = cache(Typing)
_known: dict[Any, Any] = {}  # (flags, function, types of its arguments) -> its signature


def _as_if_alone() -> Any:
    """What a function inherits that no other calls."""
    flags = compiler.Flags()
    flags.nrt, flags.error_model = True, "python"
    return flags


def is_deferring(function: Any) -> bool:
    return function._compiler.pipeline_class is Compiler


UNUSED = (  # passes for what no function of this package has: object mode, `literal_unroll`, `isinstance`
    untyped_passes.WithLifting,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
)


class Compiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, up to instructions."""

    def define_pipelines(self) -> list[Any]:
        (whole,) = super().define_pipelines()
        own = compiler_machinery.PassManager("ravi")
        own.passes = [each for each in whole.passes if each[0] not in UNUSED]
        own.finalize()
        return [own]

    def compile_extra(self, function: Any) -> Any:
        state = self.state
        state.library = Library(state.targetctx.codegen(), function.__qualname__)
        state.flags = Flags(state.flags)
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.typingctx = _typing(state.typingctx)
        state.targetctx = state.targetctx.subtarget(typing_context=state.typingctx)
        result = super().compile_extra(function)
        _place_environment(result)
        result = result._replace(entry_point=(entry := Deferred(result, state.flags.release_gil)))
        result.target_context.insert_user_function(entry, result.fndesc, [result.library])
        return result


def _place_environment(result: Any) -> None:
    """Let the code of a function find its objects of Python wherever it is inlined, as Numba does at its wrapper."""
    library, environment = result.library, result.environment
    module = binding.parse_assembly(f'@"{environment.env_name}" = common global i8* null')
    module.triple = library._final_module.triple
    library.codegen._add_module(module)
    library._codegen._engine.finalize_object()
    library.codegen.set_env(environment.env_name, environment)


def executable(entry: Deferred) -> Any:
    """What was compiled for callers, as a function that Python calls."""
    with lock:
        result = entry.result
        described, environment = result.fndesc, result.environment
        context = result.target_context.subtarget(environment=environment, fndesc=described)
        library = context.codegen().create_library(described.qualname)
        library.enable_object_caching()
        library.add_linking_library(result.library)
        parts = library, described, environment
        with context.push_code_library(library):
            context.create_cpython_wrapper(*parts, result.call_helper, release_gil=entry.releases)
        called = context.get_executable(*parts)
        context.insert_user_function(called, described, [library])
        return result._replace(entry_point=called, library=library, reload_init=[*library._reload_init])
