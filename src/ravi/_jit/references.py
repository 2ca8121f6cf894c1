"""Which variables of compiled functions count no references? Those that hold arrays of the caller.

Numba counts the references to every array: at each assignment and at each end of a variable, for every array in a
tuple, by operations that other cores must wait for. A plan of RAVI-UCB+ on Taxi, whose loops take slices, took 2.9 ms
with that and 1.0 without. An argument, all that it holds and all views of it live as long as the call: a variable that
never holds anything else, and is not returned, has nothing to count. On a GPU no variable counts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from numba.core import ir, types

from ravi._jit import elements

# What gives a part, a view or a copy of the reference to what is there
VIEWS = {
    "getattr", "getitem", "static_getitem", "build_tuple", "cast", "exhaust_iter", "getiter", "iternext", "pair_first",
    "pair_second", "phi",
}  # fmt: skip


def prepare(lowered: Any) -> None:
    """Note which variables of a function hold arrays of its caller and no others (`borrowed`), which count references
    (`counted`), and how code without references is written."""
    sources = defaultdict[str, list[Any]](list)
    returned = set()
    for block in lowered.blocks.values():
        for part in block.body:
            if isinstance(part, ir.Assign):
                sources[part.target.name].append(part.value)
            elif isinstance(part, ir.Return):
                returned.add(part.value.name)
    held = _holding(lowered, sources.keys())
    found = {name for name in held - returned if all(_is_view(lowered, value) for value in sources[name])}
    needed = {name: set[str]().union(*map(_names, sources[name])) & held for name in found}
    while left := {name for name in found if needed[name] - found}:
        found -= left
    lowered.borrowed, lowered.counted = found, held - found
    lowered.not_counting = lowered.context.subtarget(enable_nrt=False)
    vars(lowered.not_counting).pop("nrt", None)  # that of the one that counts, which would allocate


def _holding(lowered: Any, names: Iterable[str]) -> set[str]:
    """Those of the variables of a function that may hold an array."""
    kinds, models = lowered.fndesc.typemap, lowered.context.data_model_manager
    holds = {kind for kind in set(kinds.values()) if models[kind].contains_nrt_meminfo()}
    return {name for name in names if kinds[name] in holds}


def _names(value: Any) -> set[str]:
    """The variables that a value is made of."""
    parts = value.list_vars() if isinstance(value, ir.Expr) else [value] if isinstance(value, ir.Var) else []
    return {part.name for part in parts}


def _is_view(lowered: Any, value: Any) -> bool:
    """Whether a value is what is there, as opposed to a copy: an index that is an array selects one."""
    if not isinstance(value, ir.Expr):
        return isinstance(value, (ir.Var, ir.Arg, ir.Const, ir.Global, ir.FreeVar))
    if value.op == "call":
        return isinstance(lowered.typeof(value.func.name), types.NamedTupleClass) or elements.flattens(lowered, value)
    signature = lowered.fndesc.calltypes.get(value)
    indices = signature.args[1:] if signature is not None else ()
    return value.op in VIEWS and not any(isinstance(kind, types.Array) for kind in indices)


def lower_inst(plain: Callable[[Any, Any], Any], lowered: Any, part: Any) -> Any:
    """`plain`, Numba's way to write the code of an instruction, without the references of borrowed variables."""
    if isinstance(part, ir.Del) and part.value not in lowered.counted:
        return None
    if not isinstance(part, ir.Assign) or part.target.name not in lowered.borrowed:
        return plain(lowered, part)
    counting, lowered.context = lowered.context, lowered.not_counting
    try:
        return plain(lowered, part)
    finally:
        lowered.context = counting
