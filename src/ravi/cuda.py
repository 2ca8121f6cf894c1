"""What do the words of `ravi.teams` mean on a GPU, and what is asked of numba-cuda, which compiles them there?

numba-cuda is imported at the first call. Three of its ways are changed, each by what it has no switch for:

- a loop over a range counts up to its end. As numba-cuda has it, it divides for how often it will go round, and counts
  that down beside; NVVM does not see through it, and kernels are half as large again.
- no index is counted from the end of an array, but for constants; so none is tested for being negative.
- a product and a sum are rounded apart (`rounded_apart`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from ravi import teams


@cache
def cuda_words() -> Any:
    """numba-cuda, in whose kernels the words of `ravi.teams` mean what they do on a GPU."""
    vars(np).setdefault("row_stack", np.vstack)  # numba-cuda 0.30 asks for it, and NumPy 2.5 has it no more
    from numba import cuda as numba_cuda
    from numba.cuda import extending

    cuda: Any = numba_cuda  # whose types say little
    _plain_code()
    overload: Any = vars(extending)["overload"]

    @overload(teams.seeds)
    def seeds(n):  # type: ignore[no-untyped-def]
        return lambda n: range(
            cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y, n, cuda.gridDim.x * cuda.blockDim.y
        )

    @overload(teams.each)
    def each(m):  # type: ignore[no-untyped-def]
        return lambda m: range(cuda.threadIdx.x, m, cuda.blockDim.x)

    @overload(teams.strips)
    def strips(m):  # type: ignore[no-untyped-def]
        return lambda m: range(cuda.threadIdx.x // 32, m, max(cuda.blockDim.x // 32, 1))

    @overload(teams.along)
    def along(m):  # type: ignore[no-untyped-def]
        return lambda m: range(cuda.threadIdx.x % 32, m, min(cuda.blockDim.x, 32))

    @overload(teams.sync)
    def sync():  # type: ignore[no-untyped-def]
        def wait():  # type: ignore[no-untyped-def]
            if cuda.blockDim.x > 32:
                cuda.syncthreads()
            elif cuda.blockDim.x > 1:
                cuda.syncwarp(((1 << cuda.blockDim.x) - 1) << ((cuda.threadIdx.y * cuda.blockDim.x) % 32))

        return wait

    @overload(teams.first)
    def first():  # type: ignore[no-untyped-def]
        return lambda: cuda.threadIdx.x == 0

    @overload(teams.alone)
    def alone():  # type: ignore[no-untyped-def]
        return lambda: cuda.blockDim.x == 1

    @overload(teams.team)
    def team():  # type: ignore[no-untyped-def]
        return lambda: cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y

    @cuda.jit(device=True)
    def in_step(n):  # type: ignore[no-untyped-def]
        """The threads of this warp whose teams have one of n seeds, as bits."""
        size, thread = cuda.blockDim.x, cuda.threadIdx.y * cuda.blockDim.x
        threads = (n - cuda.blockIdx.x * cuda.blockDim.y) * size - thread // 32 * 32
        return 0xFFFFFFFF if threads >= 32 else (1 << threads) - 1

    @overload(teams.some)
    def some(value, n):  # type: ignore[no-untyped-def]
        return lambda value, n: value if cuda.blockDim.x >= 32 else cuda.any_sync(in_step(n), value)

    @overload(teams.enough)
    def enough(ready, going, n):  # type: ignore[no-untyped-def]
        def half(ready, going, n):  # type: ignore[no-untyped-def]
            if cuda.blockDim.x >= 32:
                return ready
            waiting, all_ = cuda.ballot_sync(in_step(n), ready), cuda.ballot_sync(in_step(n), going)
            return ready and 2 * cuda.popc(waiting) >= cuda.popc(all_)

        return half

    def reduced(word: Callable[..., Any], join: Callable[..., Any]) -> None:
        @overload(word)
        def over_team(value):  # type: ignore[no-untyped-def]
            def reduce(value):  # type: ignore[no-untyped-def]
                step = cuda.blockDim.x >> 1
                mask = ((1 << cuda.blockDim.x) - 1) << ((cuda.threadIdx.y * cuda.blockDim.x) % 32)
                if step > 0:
                    cuda.syncwarp(mask)
                while step > 0:
                    value = join(value, cuda.shfl_xor_sync(mask, value, step))
                    step >>= 1
                return value

            return reduce

    reduced(teams.team_sum, cuda.jit(device=True)(lambda a, b: a + b))
    reduced(teams.team_max, cuda.jit(device=True)(lambda a, b: max(a, b)))
    reduced(teams.team_min, cuda.jit(device=True)(lambda a, b: min(a, b)))
    return cuda


def _plain_code() -> None:
    """Ranges that count up, and indices that are taken as they are."""
    from llvmlite.ir import Constant  # type: ignore[import-untyped]
    from numba import cuda, types
    from numba.cuda.core.imputils import RefType, iternext_impl
    from numba.cuda.cpython import rangeobj
    from numba.cuda.np import arrayobj

    cgutils: Any = vars(cuda)["cgutils"]
    counted_from_the_end = arrayobj.fix_integer_index

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

    arrayobj.fix_integer_index = index
    ours = {"getiter": begun, "iternext": following}
    known = rangeobj.registry.functions
    known[:] = [(ours.get(func, impl), func, sig) for impl, func, sig in known]


@contextmanager
def rounded_apart() -> Iterator[None]:
    """Kernels compiled meanwhile round a product and a sum apart, as a CPU does, where a GPU would round once: so ties
    break as on a CPU. numba-cuda has no switch for what NVVM calls fma, and its linker would fuse again (hence `lto`).
    """
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = partial(compile_ir, fma=False)
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir
