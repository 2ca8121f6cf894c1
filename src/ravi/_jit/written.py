"""Where does Numba's way of writing code give way to ours? At functions of its own that are replaced while it compiles
for us (`late.put_off`): for our functions they call `references`, `compact` and `elements`, and for others Numba's.

A function of ours may call one that Numba has compiled for itself, and the other way round. How its arguments are
passed is therefore part of the name of a function (`compact.MARK`), which is known wherever it is declared, written or
called, also if it was read from the cache.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from numba.core import callconv, callwrapper, cpu, funcdesc, ir, lowering, postproc

from ravi._jit import compact, elements, references

ours = WeakSet[Any]()  # functions that `ravi._jit.functions` compiles
parts = WeakSet[Any]()  # those of them that are bound to a loop by name


def is_ours(function: Any) -> bool:
    """Whether a function, in Numba's form, is one of ours that is written in our way."""
    return function.func_id.func in ours and not function.is_generator


def _from_specialized_function(_: Any, function: Any, *arguments: Any, **options: Any) -> Any:
    """The name of a function of ours says how its arguments are passed; one that is part of a loop is inlined."""
    if is_ours(function):
        options |= {"abi_tags": [*options["abi_tags"], compact.TAG], "inline": function.func_id.func in parts}
    return PLAIN["from_specialized_function"](function, *arguments, **options)


_by_address = False  # whether the function that is being declared, called or written takes large arguments so


@contextmanager
def passing(name: str) -> Iterator[None]:
    """Arguments are passed as those of a function of this name."""
    global _by_address
    outer, _by_address = _by_address, compact.MARK in name
    try:
        yield
    finally:
        _by_address = outer


def _get_arg_packer(convention: Any, kinds: Any) -> Any:
    if _by_address:
        return compact.Arguments(convention.context, kinds)
    return PLAIN["_get_arg_packer"](convention, kinds)


def _declare_function(context: Any, module: Any, described: Any) -> Any:
    with passing(described.mangled_name):
        return PLAIN["declare_function"](context, module, described)


def _call_unresolved(context: Any, builder: Any, name: str, *arguments: Any) -> Any:
    """A call of a function by itself."""
    with passing(name):
        return PLAIN["call_unresolved"](context, builder, name, *arguments)


def _call_function(convention: Any, builder: Any, function: Any, *arguments: Any, **options: Any) -> Any:
    with passing(getattr(function, "name", "")):
        return PLAIN["call_function"](convention, builder, function, *arguments, **options)


def _decode_arguments(convention: Any, builder: Any, kinds: Any, function: Any) -> Any:
    with passing(function.name):
        return PLAIN["decode_arguments"](convention, builder, kinds, function)


def _setup_function(lowered: Any, described: Any) -> None:
    PLAIN["setup_function"](lowered, described)
    if is_ours(lowered.func_ir):
        lowered.builder = compact.Builder(lowered.entry_block)
        lowered.call_helper = lowered.call_conv.init_call_helper(lowered.builder)


def _lower(lowered: Any) -> None:
    """Variables of ours that hold what is the caller's count no references, and end nowhere."""
    if is_ours(lowered.func_ir):
        references.prepare(lowered)
        if lowered.counted:
            postproc.PostProcessor(lowered.func_ir)._insert_var_dels()
        compact.keep_values(lowered)
    PLAIN["lower"](lowered)


def _find_singly_assigned_variable(lowered: Any) -> None:
    """Numba looks for variables that are values; of ours, `compact.keep_values` finds more."""
    if is_ours(lowered.func_ir):
        lowered._singly_assigned_vars, lowered._blk_local_varmap = set(), {}
    else:
        PLAIN["_find_singly_assigned_variable"](lowered)


def _lower_inst(lowered: Any, part: Any) -> Any:
    if not is_ours(lowered.func_ir):
        return PLAIN["lower_inst"](lowered, part)
    whole = isinstance(part, ir.StaticSetItem) and part.index == slice(None)
    if whole and elements.assigned(lowered, part.target, None, part.value):
        return None
    return references.lower_inst(PLAIN["lower_inst"], lowered, part)


def _lower_expr(lowered: Any, kind: Any, part: Any) -> Any:
    found = compact.expression(lowered, kind, part) if is_ours(lowered.func_ir) else None
    return PLAIN["lower_expr"](lowered, kind, part) if found is None else found


def _lower_setitem(lowered: Any, target: Any, index: Any, value: Any, signature: Any) -> Any:
    if not is_ours(lowered.func_ir) or not elements.assigned(lowered, target, index, value):
        return PLAIN["lower_setitem"](lowered, target, index, value, signature)
    return None


def _storevar(lowered: Any, value: Any, name: str, argidx: Any = None) -> None:
    """Numba reads what a variable was before, to release it."""
    if not is_ours(lowered.func_ir) or name in lowered._singly_assigned_vars or name in lowered.counted:
        PLAIN["storevar"](lowered, value, name, argidx)
    else:
        lowered.builder.store(value, lowered.getvar(name))


def _build_wrapper(wrapper: Any, api: Any, builder: Any, *arguments: Any) -> None:
    """What takes apart the arguments that Python gives is run once a call: it is not worth optimising."""
    if compact.MARK in wrapper.fndesc.mangled_name:
        builder.function.attributes.add("noinline")
        builder.function.attributes.add("optnone")
    PLAIN["build_wrapper"](wrapper, api, builder, *arguments)


REPLACED: list[tuple[Any, str, Any]] = [
    (funcdesc.PythonFunctionDescriptor, "from_specialized_function", classmethod(_from_specialized_function)),
    (callconv.BaseCallConv, "_get_arg_packer", _get_arg_packer),
    (callconv.BaseCallConv, "decode_arguments", _decode_arguments),
    (callconv.CPUCallConv, "call_function", _call_function),
    (cpu.CPUContext, "declare_function", _declare_function),
    (cpu.CPUContext, "call_unresolved", _call_unresolved),
    (callwrapper.PyCallWrapper, "build_wrapper", _build_wrapper),
    (lowering.BaseLower, "setup_function", _setup_function),
    (lowering.BaseLower, "lower", _lower),
    (lowering.Lower, "_find_singly_assigned_variable", _find_singly_assigned_variable),
    (lowering.Lower, "lower_inst", _lower_inst),
    (lowering.Lower, "lower_expr", _lower_expr),
    (lowering.Lower, "lower_setitem", _lower_setitem),
    (lowering.Lower, "storevar", _storevar),
]
PLAIN: dict[str, Any] = {name: getattr(owner, name, None) for owner, name, _ in REPLACED}  # and what `late` replaces
