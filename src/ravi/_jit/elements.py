"""How is an array of numbers read and written in a few instructions? By the addresses of its elements.

Numba copies an array into memory to read one element of it, compiles an iterator of arrays of any layout to add up a
row, and goes through all the ways to assign to a slice. Of our functions (`written.ours`), what is done most often is
written here: an element, the part that has some first indices, a whole array or such a part assigned, a flat view, a
sum. It gives what Numba's code gives, bit for bit; what is not here, Numba writes.
"""

from functools import reduce
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils, types

MEMINFO, PARENT, COUNT, ITEMSIZE, DATA, SHAPE, STRIDES = range(7)  # the parts of an array
WORD = llvm.IntType(64)


def packed(builder: Any, kind: Any, *values: Any) -> Any:
    """A tuple of these values."""
    parts = enumerate(values)
    return reduce(lambda whole, part: builder.insert_value(whole, part[1], part[0]), parts, kind(llvm.Undefined))


def attribute(lowered: Any, kind: Any, part: Any) -> Any:
    """The shape of an array, or None for other attributes and other things."""
    if part.attr != "shape" or not isinstance(lowered.typeof(part.value.name), types.Array):
        return None
    return lowered.builder.extract_value(lowered.loadvar(part.value.name), SHAPE)


def item(lowered: Any, kind: Any, part: Any) -> Any:
    """An element of an array or the part of it that has these first indices, or None for other indices."""
    own, index = lowered.typeof(part.value.name), part.index if part.op == "getitem" else part.index_var
    if index is None or not _is_plain(lowered, own):
        return None
    indices = _indices(lowered, index)
    if indices is None or len(indices) > own.ndim:
        return None
    array = lowered.loadvar(part.value.name)
    if len(indices) < own.ndim:
        found = _view(lowered, array, own, indices, kind)
        lowered.incref(kind, found)
        return found
    found = _read(lowered, own, _pointer(lowered, array, own, indices))
    return lowered.context.cast(lowered.builder, found, own.dtype, kind)


def assigned(lowered: Any, target: Any, index: Any, value: Any) -> bool:
    """Assign a number to an element, or a number or an array to a whole array, or to the part of it that has these
    first indices; False if it is something else that is assigned. index: None for the whole array."""
    own, given = lowered.typeof(target.name), lowered.typeof(value.name)
    if not _is_plain(lowered, own):
        return False
    indices = [] if index is None else _indices(lowered, index)
    if indices is None or len(indices) > own.ndim:
        return False
    number = isinstance(given, (types.Number, types.Boolean))
    array = lowered.loadvar(target.name)
    if len(indices) == own.ndim and number:
        _write(lowered, own, lowered.loadvar(value.name), given, _pointer(lowered, array, own, indices))
        return True
    left = own.ndim - len(indices)
    row = isinstance(given, types.Array) and (given.dtype, given.ndim, left, given.layout) == (own.dtype, 1, 1, "C")
    if left == 0 or own.layout != "C" or not own.aligned or not (number or (row and given.aligned)):
        return False
    into = _view(lowered, array, own, indices, own.copy(ndim=left)) if indices else array
    (_fill if number else _copy)(lowered, own, into, lowered.loadvar(value.name), given)
    return True


def _fill(lowered: Any, own: Any, into: Any, value: Any, given: Any) -> None:
    build = lowered.builder
    data, many = build.extract_value(into, DATA), build.extract_value(into, COUNT)
    new = lowered.context.cast(build, value, given, own.dtype)
    with cgutils.for_range(build, many) as loop:
        _write(lowered, own, new, own.dtype, build.gep(data, [loop.index]))


def _copy(lowered: Any, own: Any, into: Any, value: Any, given: Any) -> None:
    """A row, as if through a copy, where the two overlap; one number is repeated."""
    build, name = lowered.builder, lowered.func_ir.func_id.func_name
    (to, there), (data, many) = ([build.extract_value(one, part) for part in (DATA, COUNT)] for one in (into, value))
    with build.if_else(build.icmp_signed("==", there, many), likely=True) as (alike, differ):
        with alike:
            cgutils.raw_memmove(build, to, data, many, build.extract_value(into, ITEMSIZE))
        with differ:
            with build.if_then(build.icmp_signed("!=", many, WORD(1)), likely=False):
                message = "an array is written into one of another shape"
                lowered.call_conv.return_user_exc(build, ValueError, (message,), lowered.loc, name)
            _fill(lowered, own, into, _read(lowered, given, data), own.dtype)


def flattens(lowered: Any, part: Any) -> bool:
    """Whether a call is that of `ravel()` or `reshape(-1)` of an array whose elements lie in a row: a view."""
    function = lowered.typeof(part.func.name)
    if not isinstance(function, types.BoundFunction) or not _is_plain(lowered, function.this) or part.kws:
        return False
    asked = [lowered.typeof(one.name) for one in part.args]
    all_ = [types.IntegerLiteral(-1)] if function.typing_key == "array.reshape" else []
    named = function.typing_key in ("array.ravel", "array.reshape")
    return named and asked == all_ and function.this.layout == "C"


def method(lowered: Any, kind: Any, part: Any) -> Any:
    """The sum of an array, or a flat view of it; None for other methods."""
    function, build = lowered.typeof(part.func.name), lowered.builder
    if flattens(lowered, part):
        array = lowered.loadvar(part.func.name)
        many, size = (build.extract_value(array, place) for place in (COUNT, ITEMSIZE))
        found = _array(lowered, kind, array, build.extract_value(array, DATA), [many], [size])
        lowered.incref(kind, found)
        return found
    own = function.this
    summed = function.typing_key == (types.Array, "sum") and not part.args and not part.kws
    real = isinstance(kind, (types.Integer, types.Float))
    if not summed or not real or not _is_plain(lowered, own) or (own.ndim > 1 and own.layout != "C"):
        return None
    return _sum(lowered, own, lowered.loadvar(part.func.name), kind)


def _sum(lowered: Any, own: Any, array: Any, kind: Any) -> Any:
    """From the first to the last."""
    build, cast = lowered.builder, lowered.context.cast
    total = cgutils.alloca_once_value(build, lowered.context.get_constant(kind, 0))
    data, many = build.extract_value(array, DATA), build.extract_value(array, COUNT)
    add = build.add if isinstance(kind, types.Integer) else build.fadd
    with cgutils.for_range(build, many) as loop:
        place = build.gep(data, [loop.index])
        if own.layout != "C":
            stride = build.extract_value(array, [STRIDES, 0])
            place = cgutils.pointer_add(build, data, build.mul(loop.index, stride))
        build.store(add(build.load(total), cast(build, _read(lowered, own, place), own.dtype, kind)), total)
    return build.load(total)


def _is_plain(lowered: Any, kind: Any) -> bool:
    """Whether a type is that of arrays of numbers, whose indices need no check."""
    numbers = isinstance(kind, types.Array) and isinstance(kind.dtype, (types.Number, types.Boolean))
    return numbers and not lowered.context.enable_boundscheck


def _indices(lowered: Any, index: Any) -> list[tuple[Any, Any]] | None:
    """The integers of an index with their types, or None where they are not all integers."""
    kind = lowered.typeof(index.name)
    several = isinstance(kind, types.BaseTuple)
    kinds = list(kind) if several else [kind]
    if not all(isinstance(one, types.Integer) for one in kinds):
        return None
    value = lowered.loadvar(index.name)
    values = [lowered.builder.extract_value(value, axis) for axis in range(len(kinds))] if several else [value]
    return list(zip(values, kinds, strict=True))


def _read(lowered: Any, own: Any, place: Any) -> Any:
    return lowered.context.unpack_value(lowered.builder, own.dtype, place, align=None if own.aligned else 1)


def _write(lowered: Any, own: Any, value: Any, given: Any, place: Any) -> None:
    new = lowered.context.cast(lowered.builder, value, given, own.dtype)
    lowered.context.pack_value(lowered.builder, own.dtype, new, place, align=None if own.aligned else 1)


def _view(lowered: Any, array: Any, own: Any, indices: list[tuple[Any, Any]], kind: Any) -> Any:
    """The part of an array that has these first indices."""
    build, axes = lowered.builder, range(len(indices), own.ndim)
    lengths, strides = ([build.extract_value(array, [part, axis]) for axis in axes] for part in (SHAPE, STRIDES))
    return _array(lowered, kind, array, _pointer(lowered, array, own, indices), lengths, strides)


def _array(lowered: Any, kind: Any, array: Any, data: Any, lengths: list[Any], strides: list[Any]) -> Any:
    """A view of an array."""
    build, model = lowered.builder, lowered.context.get_value_type(kind)
    meminfo, parent, itemsize = (build.extract_value(array, part) for part in (MEMINFO, PARENT, ITEMSIZE))
    shapes = (packed(build, model.elements[SHAPE], *lengths), packed(build, model.elements[STRIDES], *strides))
    return packed(build, model, meminfo, parent, reduce(build.mul, lengths), itemsize, data, *shapes)


def _pointer(lowered: Any, array: Any, kind: Any, indices: list[tuple[Any, Any]]) -> Any:
    """Where an element lies, or the first one with these first indices."""
    build, offset = lowered.builder, None
    for axis in range(kind.ndim if kind.layout == "C" else len(indices)):
        at = None
        if axis < len(indices):
            value, own = indices[axis]
            at = lowered.context.cast(build, value, own, types.intp)
            if own.signed and not (isinstance(at, llvm.Constant) and at.constant >= 0):  # from the end, if negative
                length = build.extract_value(array, [SHAPE, axis])
                at = build.select(build.icmp_signed("<", at, WORD(0)), build.add(at, length), at)
        if kind.layout != "C":
            at = build.mul(at, build.extract_value(array, [STRIDES, axis]))
        elif offset is not None:
            offset = build.mul(offset, build.extract_value(array, [SHAPE, axis]))
        offset = at if offset is None else offset if at is None else build.add(offset, at)
    data = build.extract_value(array, DATA)
    return build.gep(data, [offset]) if kind.layout == "C" else cgutils.pointer_add(build, data, offset)
