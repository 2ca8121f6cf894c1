"""What does Numba write at length that can be said in a word? Tuples of arrays, variables, and loops over ranges.

Numba hands a tuple from function to function number by number: seven for an array of one axis, eleven for one of three,
and hundreds for the state of a learner, which the caller takes apart and the function called puts together again. It
keeps every variable that several blocks use in memory, and divides to count the rounds of a loop. LLVM removes all of
this, but first it has to be written and read. Of our functions (`written.ours`)

- a tuple of more than `FEW` numbers is passed by its address (`Arguments`);
- a variable that is assigned once, in a block through which all of its uses are reached, is a value (`keep_values`),
  and a part of a tuple is taken once (`Builder`);
- a range counts by ones, and what is done with arrays is done in a few instructions (`expression`,
  `ravi._jit.elements`).

What is computed is the same, bit for bit. The functions of `ravi-kl` are 22,000 instructions of LLVM in place of 65,000
(`benchmarks/cold_start.md`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache, reduce
from itertools import islice
from typing import Any

from llvmlite import ir as llvm
from numba.core import analysis, cgutils, ir, types

from ravi._jit import elements

TAG = "addressed"
MARK = f"B{len(TAG)}{TAG}"  # in the name of a function whose large arguments are passed by their addresses
FEW = 16  # numbers that an argument may be, and be passed one by one: an array of four axes is 13
UNCAUGHT = "captures(none)" if "captures(none)" in llvm.values.ArgumentAttributes._known else "nocapture"


class Arguments:
    """Arguments of these types as they are passed on: a tuple of many numbers by its address, at which nothing changes;
    an array, or what else is few numbers, as Numba passes it."""

    def __init__(self, context: Any, kinds: Any) -> None:
        self.context = context
        self.packers = [context.get_arg_packer([kind]) for kind in kinds]
        models = map(context.data_model_manager.lookup, kinds)
        self.large = [m.get_value_type() if _many(p) else None for m, p in zip(models, self.packers, strict=True)]

    @property
    def argument_types(self) -> tuple[Any, ...]:
        pairs = zip(self.packers, self.large, strict=True)
        return tuple(one for p, large in pairs for one in ([large.as_pointer()] if large else p.argument_types))

    def as_arguments(self, builder: Any, values: Any) -> list[Any]:
        found: list[Any] = []
        for packer, large, value in zip(self.packers, self.large, values, strict=True):
            found += [_address(builder, value)] if large else packer.as_arguments(builder, [value])
        return found

    def from_arguments(self, builder: Any, values: Any) -> list[Any]:
        parts = zip(self.packers, self.large, self._shares(values), strict=True)
        return [builder.read(*some) if large else p.from_arguments(builder, some)[0] for p, large, some in parts]

    def assign_names(self, values: Any, names: Any) -> None:
        for packer, large, share, name in zip(self.packers, self.large, self._shares(values), names, strict=True):
            if not large:
                packer.assign_names(share, [name])
                continue
            (value,) = share
            value.name = name
            value.add_attribute("noalias")  # and more that lets LLVM read it wherever that is best
            value.add_attribute(UNCAUGHT)
            value.attributes.align = 8
            value.attributes.dereferenceable = _size(self.context, large)

    def _shares(self, values: Any) -> Iterator[Any]:
        """The values of every argument."""
        rest = iter(values)
        for packer, large in zip(self.packers, self.large, strict=True):
            yield list(islice(rest, 1 if large else len(packer.argument_types)))


def _many(packer: Any) -> bool:
    return len(packer.argument_types) > FEW


@cache
def _size(context: Any, kind: Any) -> Any:
    """Bytes of a value in memory."""
    return context.get_abi_sizeof(kind)


def _address(builder: Any, value: Any) -> Any:
    """Where a tuple lies: where it was read, or where it is written now."""
    known = builder.addresses.get(id(value)) if isinstance(builder, Builder) else None
    return _written(builder, value) if known is None else known[0]


def _written(builder: Any, value: Any) -> Any:
    """Where a value lies that is written now; Numba would write zeros there too, whenever a function is entered."""
    with builder.goto_entry_block():
        place = builder.alloca(value.type)
    builder.store(value, place)
    return place


class Builder(llvm.IRBuilder):  # type: ignore[misc]
    """Writes instructions; a part of a tuple that is known, or was taken before, is not taken again."""

    def __init__(self, block: Any) -> None:
        super().__init__(block)
        self.addresses: dict[int, Any] = {}  # of tuples that are arguments, or parts of them, by their ids
        self._parts: dict[Any, Any] = {}

    def read(self, address: Any) -> Any:
        """The tuple at an address at which nothing changes."""
        value = self.load(address)
        if isinstance(value.type, llvm.Aggregate):
            self.addresses[id(value)] = address, value  # which must live as long as its id
        return value

    def extract_value(self, whole: Any, place: Any, name: str = "") -> Any:
        places = place if isinstance(place, (list, tuple)) else [place]
        return reduce(lambda found, one: self._part(found, one, name), places, whole)

    def _part(self, whole: Any, place: int, name: str) -> Any:
        while isinstance(whole, llvm.instructions.InsertValue) and len(whole.indices) == 1:
            if whole.indices[0] == place:
                return whole.value
            whole = whole.aggregate
        address, _ = self.addresses.get(id(whole), (None, None))
        first = self.function.entry_basic_block  # through which every other is reached
        block = first if getattr(whole, "parent", None) is first else self.block
        key = id(whole), place, id(block)
        if key not in self._parts:
            with self.goto_block(block) if block is not self.block else nullcontext():
                if address is None:
                    part = super().extract_value(whole, place, name)
                else:
                    part = self.read(cgutils.gep_inbounds(self, address, 0, place))
            self._parts[key] = part, whole
        return self._parts[key][0]


def keep_values(lowered: Any) -> None:
    """Find the variables of a function that are values: those that are assigned once, in a block that is written before
    all that use them, and that lies on every way to these. One that counts references and is used by another block
    stays in memory, where its old value is released."""
    blocks = lowered.blocks
    assigned, at, used = Counter[str](), dict[str, int](), defaultdict[str, set[int]](set)
    uses = analysis.compute_use_defs(blocks).usemap  # of what other blocks assign, or the same one later
    for place, block in blocks.items():
        for part in block.find_insts(ir.Assign):
            assigned[part.target.name] += 1
            at[part.target.name] = place
        for name in uses[place]:
            used[name].add(place)
    everywhere = not lowered.func_ir.func_id.code.co_exceptiontable  # else there are ways that the blocks do not show
    above = analysis.compute_cfg_from_blocks(blocks).dominators() if everywhere else {}
    for name, number in assigned.items():
        here, places = at[name], used.get(name, ())
        shared = everywhere and name not in lowered.counted
        if number == 1 and all(shared and here < place and here in above[place] for place in places):
            lowered._singly_assigned_vars.add(name)


def expression(lowered: Any, kind: Any, part: Any) -> Any:
    """The value of an expression of this type, or None if it is to be written as ever."""
    own = WRITTEN.get(part.op)
    return None if own is None else own(lowered, kind, part)


def counted_by_ones(context: Any, builder: Any, kind: Any, start: Any, stop: Any) -> Any:
    """range(start, stop), of type `kind`; start: None for 0."""
    own = context.get_value_type(kind)
    return elements.packed(builder, own, own.elements[0](0) if start is None else start, stop, own.elements[2](1))


def _begun(lowered: Any, kind: Any, part: Any) -> Any:
    """An iterator of a range of step 1: where it is, its end, its step, and how many are left."""
    if not isinstance(lowered.typeof(part.value.name), types.RangeType):
        return None
    build, given = lowered.builder, lowered.loadvar(part.value.name)
    start, stop, step = (build.extract_value(given, k) for k in range(3))
    if not isinstance(step, llvm.Constant) or step.constant != 1:
        return None
    left = build.sub(stop, start)
    left = build.select(build.icmp_signed(">", left, left.type(0)), left, left.type(0))
    at, rest = _written(build, start), _written(build, left)
    return elements.packed(build, lowered.context.get_value_type(kind), at, stop, step, rest)


def _following(lowered: Any, kind: Any, part: Any) -> Any:
    """The next number of a range, and whether there is one."""
    if not isinstance(lowered.typeof(part.value.name), types.RangeIteratorType):
        return None
    build, iterator = lowered.builder, lowered.loadvar(part.value.name)
    at, _, step, rest = (build.extract_value(iterator, k) for k in range(4))
    value, left = build.load(at), build.load(rest)
    there = build.icmp_signed(">", left, left.type(0))
    with build.if_then(there):  # psrl took a tenth longer where these were written after the last, too
        build.store(build.add(value, step), at)
        build.store(build.sub(left, left.type(1), flags=["nsw"]), rest)
    return elements.packed(build, lowered.context.get_value_type(kind), value, there)


def _of_pair(place: int) -> Any:
    def taken(lowered: Any, kind: Any, part: Any) -> Any:
        if part.value.name in lowered.counted or part.value.name in lowered.borrowed:
            return None
        return lowered.builder.extract_value(lowered.loadvar(part.value.name), place)

    return taken


def _extreme(lowered: Any, kind: Any, which: Any, values: list[tuple[Any, Any]]) -> Any:
    """max(a, b) or min(a, b) of two numbers: b if it is more or less than a, else a."""
    real = isinstance(kind, (types.Integer, types.Float)) and all(isinstance(own, types.Number) for _, own in values)
    if which not in (max, min) or len(values) != 2 or not real:
        return None
    build, sign = lowered.builder, ">" if which is max else "<"
    a, b = (lowered.context.cast(build, *value, kind) for value in values)
    if isinstance(kind, types.Float):
        return build.select(build.fcmp_ordered(sign, b, a), b, a)
    compare = build.icmp_signed if kind.signed else build.icmp_unsigned
    return build.select(compare(sign, b, a), b, a)


def _called(lowered: Any, kind: Any, part: Any) -> Any:
    function = lowered.typeof(part.func.name)
    if isinstance(function, types.BoundFunction):
        return elements.method(lowered, kind, part)
    if not isinstance(function, types.Function) or part.kws or part.vararg:
        return None
    values = [(lowered.loadvar(one.name), lowered.typeof(one.name)) for one in part.args]
    if function.typing_key is range and len(values) < 3 and isinstance(kind, types.RangeType):
        ends = [lowered.context.cast(lowered.builder, *value, kind.dtype) for value in values]
        return counted_by_ones(lowered.context, lowered.builder, kind, ends[0] if len(ends) > 1 else None, ends[-1])
    return _extreme(lowered, kind, function.typing_key, values)


WRITTEN = {
    "call": _called,
    "getattr": elements.attribute,
    "getitem": elements.item,
    "getiter": _begun,
    "iternext": _following,
    "pair_first": _of_pair(0),
    "pair_second": _of_pair(1),
    "static_getitem": elements.item,
}
