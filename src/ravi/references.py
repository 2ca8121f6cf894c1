"""Which compiled functions count no references? Those that use only arrays which their callers hold.

Numba counts the references to every array: at each assignment and at each end of a variable, for every array in a
tuple, by operations that other cores must wait for. A plan of RAVI-UCB+ on Taxi, whose loops take slices, took 2.9 ms
with that and 1.0 without. A function that makes no array and returns none has nothing to count: its arguments, and all
views of them, live as long as the call. On a GPU no function counts.

A function that allocates is recognised by its types, or by an error that Numba raises while it writes the code; it is
compiled as ever.
"""

from collections.abc import Callable
from typing import Any

from numba.core import errors as _errors
from numba.core import ir as _ir
from numba.core import postproc as _postproc
from numba.core import types as _types

errors: Any = _errors  # Numba's types say nothing of these
ir: Any = _ir
postproc: Any = _postproc
types: Any = _types

# What gives a part, a view or a copy of the reference to what is there
VIEWS = {
    "getattr", "getitem", "static_getitem", "build_tuple", "cast", "exhaust_iter", "getiter", "iternext", "pair_first",
    "pair_second", "phi",
}  # fmt: skip


def lower(plain: Callable[[Any], None], lowered: Any) -> None:
    """`plain`, Numba's way to write the code of a function, without references where there are none to count."""
    counting = lowered.context
    if lowered.generator_info is not None:  # it has been told where its variables end
        plain(lowered)
        return
    if counting.enable_nrt and _only_borrows(lowered):
        lowered.context = counting.subtarget(enable_nrt=False)
        vars(lowered.context).pop("nrt", None)  # that of `counting`, which would allocate
        try:
            plain(lowered)
        except errors.NumbaRuntimeError:  # it allocates all the same
            lowered.__init__(counting, lowered.library, lowered.fndesc, lowered.func_ir, lowered.metadata)
        else:
            lowered.context = counting  # of the wrapper that Python calls
            return
    postproc.PostProcessor(lowered.func_ir)._insert_var_dels()  # the ends of variables, where references end
    plain(lowered)


def _only_borrows(lowered: Any) -> bool:
    """Whether nothing in a function can be a new reference, as far as types tell."""
    models = lowered.context.data_model_manager

    def holds(kind: Any) -> bool:
        return bool(models[kind].contains_nrt_meminfo())

    if holds(lowered.fndesc.restype):
        return False
    for part, signature in lowered.fndesc.calltypes.items():
        if signature is None:
            continue
        if isinstance(part, (ir.SetItem, ir.StaticSetItem)):
            if holds(signature.args[-1]):  # a copy, in case the two overlap
                return False
        elif isinstance(part, ir.Expr) and holds(signature.return_type) and not _is_view(part, signature):
            return False
    return True


def _is_view(part: Any, signature: Any) -> bool:
    """Whether an expression gives what is there, as opposed to a copy: an index that is an array selects one."""
    return part.op in VIEWS and not any(isinstance(kind, types.Array) for kind in signature.args[1:])
