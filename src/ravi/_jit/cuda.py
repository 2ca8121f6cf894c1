"""The words of `ravi._jit.teams` on a GPU, and how numba-cuda compiles kernels.

numba-cuda is imported at the first call. While a kernel of ours is compiled (`compiling`), and no longer, five of its
ways are changed, each by what it has no switch for:

- names in kernels stand for the words of their teams, and functions are compiled for each size of teams (`_own_words`);
- a product and a sum are rounded apart, as a CPU does, where a GPU would round once: so ties break as on a CPU;
- where seeds go through their epochs by themselves, no loop is unrolled (`_rolled`). They are at different places of
  their kernel, which must fit the instruction cache: that of PSRL has 10,000 instructions in place of 19,000, and makes
  1.5 times the steps. Where all are at the same place, as with mixtures, that would make 0.65 times the steps;
- a loop over a range counts up to its end. As numba-cuda has it, it divides for how often it will go round, and counts
  that down beside; NVVM does not see through it, and kernels are half as large again;
- no index is counted from the end of an array, but for constants; so none is tested for being negative.

The last two change nothing but speed: they are off in a numba-cuda that is not in `VERSIONS`, and with
RAVI_PLAIN_NUMBA=1.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from types import FunctionType
from typing import Any

import numpy as np

from ravi import random
from ravi._jit import teams

VERSIONS = ("0.30.4",)  # of numba-cuda, on which all tests passed
_threads = [1]  # of a team, in the kernel that is being compiled


@cache
def cuda_words() -> Any:
    """numba-cuda."""
    row_stack = [] if hasattr(np, "row_stack") else [(np, "row_stack", np.vstack)]
    with _replaced(row_stack):  # numba-cuda 0.30 asks for it, and NumPy 2.5 has it no more
        from numba import cuda
        from numba.cuda.np import arrayobj  # noqa: F401
    return cuda


@contextmanager
def _replaced(parts: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Ours in place of (owner, name)."""
    plain = [(owner, name, vars(owner).get(name)) for owner, name, _ in parts]
    for owner, name, ours in parts:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        for owner, name, theirs in plain:
            if theirs is None:  # it was inherited, or not there
                delattr(owner, name)
            else:
                setattr(owner, name, theirs)


@cache
def _own_words() -> tuple[Any, str, Any]:
    """Names in kernels stand for the words of their teams, and for compiled functions of ours in which they do."""
    from numba.core.dispatcher import Dispatcher
    from numba.cuda import dispatcher, target

    CUDADispatcher, context = (
        vars(dispatcher)["CUDADispatcher"],
        vars(target)["CUDATypingContext"],
    )  # said to be untyped
    resolved = context.resolve_value_type

    @cache
    def for_teams(function: Any, threads: int) -> Any:
        """A compiled function, for kernels of such teams."""
        return CUDADispatcher(function.py_func, function.targetoptions | {"device": True, "debug": False, "opt": True})

    def resolve_value_type(self: Any, value: Any) -> Any:
        if isinstance(value, FunctionType):
            value = _words(_threads[-1]).get(value, value)
        elif isinstance(value, Dispatcher) and not isinstance(value, CUDADispatcher):
            value = for_teams(value, _threads[-1])
        return resolved(self, value)

    return context, "resolve_value_type", resolve_value_type


@cache
def _words(threads: int) -> dict[Any, Any]:
    """The words of `ravi._jit.teams` where teams are so many threads, as functions of numba-cuda. The number is a
    constant of the kernel: what a team of one thread does is no part of one of many, which must fit the instruction
    cache."""
    from numba import cuda as numba_cuda

    cuda: Any = numba_cuda  # whose types say little
    warp = min(threads, 32)
    bits, several, many = (1 << warp) - 1, threads > 1, threads >= 32
    device = cuda.jit(device=True)

    @device
    def mask():  # type: ignore[no-untyped-def]
        """The threads of this team, as bits; of a team of several warps, those of this warp."""
        return bits if many else bits << ((cuda.threadIdx.y * threads) % 32)

    @device
    def sync():  # type: ignore[no-untyped-def]
        if threads > 32:
            cuda.syncthreads()
        elif several:
            cuda.syncwarp(mask())

    @device
    def in_step(n):  # type: ignore[no-untyped-def]
        """The threads of this warp whose teams have one of n seeds, as bits."""
        there = (n - cuda.blockIdx.x * cuda.blockDim.y) * threads - cuda.threadIdx.y * threads // 32 * 32
        return 0xFFFFFFFF if there >= 32 else (1 << there) - 1

    @device
    def some(value, n):  # type: ignore[no-untyped-def]
        return value if many else cuda.any_sync(in_step(n), value)

    @device
    def enough(ready, going, n):  # type: ignore[no-untyped-def]
        if many:
            return ready
        waiting, all_ = cuda.ballot_sync(in_step(n), ready), cuda.ballot_sync(in_step(n), going)
        return ready and 2 * cuda.popc(waiting) >= cuda.popc(all_)

    @device
    def seeds(n):  # type: ignore[no-untyped-def]
        return range(cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y, n, cuda.gridDim.x * cuda.blockDim.y)

    @device
    def each(m):  # type: ignore[no-untyped-def]
        return range(cuda.threadIdx.x, m, cuda.blockDim.x)

    @device
    def strips(m):  # type: ignore[no-untyped-def]
        return range(cuda.threadIdx.x // 32, m, max(cuda.blockDim.x // 32, 1))

    @device
    def along(m):  # type: ignore[no-untyped-def]
        return range(cuda.threadIdx.x % 32, m, min(cuda.blockDim.x, 32))

    def reduced(join: Callable[..., Any]) -> Any:
        @device
        def over_team(value):  # type: ignore[no-untyped-def]
            step = min(cuda.blockDim.x, 32) >> 1
            if several:
                cuda.syncwarp(mask())
            while step > 0:
                value = join(value, cuda.shfl_xor_sync(mask(), value, step))
                step >>= 1
            return value

        return over_team

    return {
        teams.seeds: seeds, teams.each: each, teams.strips: strips, teams.along: along, teams.sync: sync,
        teams.some: some, teams.enough: enough,
        teams.first: device(lambda: cuda.threadIdx.x == 0 if several else True),
        teams.alone: device(lambda: not several),
        teams.team: device(lambda: cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y),
        teams.team_sum: reduced(device(lambda a, b: a + b)),
        teams.team_max: reduced(device(lambda a, b: max(a, b))),
        teams.team_min: reduced(device(lambda a, b: min(a, b))),
        random.high: device(lambda a, b: np.uint64(cuda.libdevice.umul64hi(a, b))),
    }  # fmt: skip


@cache
def _plain_code() -> list[tuple[Any, str, Any]]:
    """Ranges that count up, and indices that are taken as they are."""
    from llvmlite.ir import Constant
    from numba import cuda
    from numba.cuda import types
    from numba.cuda.core.base import _wrap_impl
    from numba.cuda.core.imputils import RefType, iternext_impl
    from numba.cuda.np import arrayobj
    from numba.cuda.target import CUDATargetContext

    if os.environ.get("RAVI_PLAIN_NUMBA", "") not in ("", "0") or version("numba-cuda") not in VERSIONS:
        logging.getLogger("ravi").info("numba-cuda compiles by itself, into larger kernels")
        return []
    cgutils: Any = vars(cuda)["cgutils"]
    counted_from_the_end, found = arrayobj.fix_integer_index, CUDATargetContext.get_function

    def index(context: Any, builder: Any, kind: Any, value: Any, size: Any) -> Any:
        if isinstance(value, Constant):
            return counted_from_the_end(context, builder, kind, value, size)
        return context.cast(builder, value, kind, types.intp if kind.signed else types.uintp)

    def begun(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        state = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
        at = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        at.iter, at.stop, at.step = cgutils.alloca_once_value(builder, state.start), state.stop, state.step
        at.count = cgutils.alloca_once(builder, state.start.type)  # which nothing reads
        return at._getvalue()

    @iternext_impl(RefType.BORROWED)
    def following(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
        at = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
        value, zero = builder.load(at.iter), at.step.type(0)
        up, down = (builder.icmp_signed(sign, value, at.stop) for sign in "<>")
        result.set_valid(builder.select(builder.icmp_signed(">", at.step, zero), up, down))
        result.yield_(value)
        builder.store(builder.add(value, at.step, flags=["nsw"]), at.iter)

    ours = {("getiter", types.RangeType): begun, ("iternext", types.RangeIteratorType): following}

    def get_function(self: Any, function: Any, sig: Any, _firstcall: bool = True) -> Any:
        if function in ("getiter", "iternext") and (own := ours.get((function, type(sig.args[0])))):
            return _wrap_impl(own, self, sig)
        return found(self, function, sig, _firstcall)

    return [(arrayobj, "fix_integer_index", index), (CUDATargetContext, "get_function", get_function)]


@contextmanager
def compiling(threads: int, *, rolled: bool = False) -> Iterator[None]:
    """Kernels compiled meanwhile are for teams of `threads` threads; rolled: no loop is unrolled. numba-cuda has no
    switch for what NVVM calls fma, and its linker would fuse again (hence `lto`)."""
    from numba.cuda.cudadrv import nvvm as driver

    nvvm: Any = driver
    compile_ir = nvvm.compile_ir

    def compile_here(modules: str | list[str], **options: Any) -> Any:
        modules = [modules] if isinstance(modules, str) else modules
        return compile_ir([_rolled(module) if rolled else module for module in modules], fma=False, **options)

    _threads.append(threads)
    try:
        with _replaced([(nvvm, "compile_ir", compile_here), _own_words(), *_plain_code()]):
            yield
    finally:
        _threads.pop()


def _rolled(module: str) -> str:
    """A module of LLVM's language with the mark that no loop is to be unrolled, at every jump back to a block above."""
    lines: list[str] = []
    above: set[str] = set()
    loops = 0
    first = max((int(number) for number in re.findall(r"^!(\d+) = ", module, re.M)), default=-1) + 1
    for line in module.splitlines():
        if line.startswith("define"):
            above.clear()
        elif label := re.match(r'"?([\w.$]+)"?:', line):
            above.add(label[1])
        elif (jump := re.match(r'\s+br label %"?([\w.$]+)"?', line)) and jump[1] in above:
            loops += 1
            line += f", !llvm.loop !{first + loops}"
        lines.append(line)
    if loops:
        lines.append(f'!{first} = !{{!"llvm.loop.unroll.disable"}}')
        lines += [f"!{n} = distinct !{{!{n}, !{first}}}" for n in range(first + 1, first + loops + 1)]
    return "\n".join(lines) + "\n"
