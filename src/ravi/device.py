"""How does a run go on a GPU? Seeds go through their epochs by themselves (`ravi.whole`), in kernels of many epochs.

What lives there is what a run carries from epoch to epoch, and the MDP. The host looks in between kernels, a few times
a second: at Ctrl-C, pauses, progress, and the rows that logs take. A run comes back as arrays of this machine, and so
goes on, is saved and is scored as any other.

CuPy holds the arrays, numba-cuda compiles the kernels (`pip install 'ravi[gpu]'`); neither is imported before a run
asks for a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ravi import checks, teams, tree, whole
from ravi.core import Array, Learner, Measure
from ravi.walk import World

DEVICES = ("cpu", "gpu")
BLOCK = 128  # threads of a block
WIDE = 32  # threads of a team, at most: a warp
LOOK = 0.25  # seconds between two looks, about
MOST = 4096  # epochs of a kernel


class Target(NamedTuple):
    """What compiles and holds arrays there."""

    cupy: Any
    cuda: Any


@cache
def target() -> Target:
    """The GPU of this machine; an error where there is none."""
    try:
        import cupy

        cuda = cuda_words()
    except ImportError as error:
        raise checks.InputError(
            f"device=gpu needs CuPy and numba-cuda, and {error.name} is not installed: pip install 'ravi[gpu]'"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise checks.InputError(f"device=gpu needs a GPU, and CUDA finds none: {error}") from None
    if count == 0:
        raise checks.InputError("device=gpu needs a GPU, and CUDA finds none")
    return Target(cupy, cuda)


@cache
def cuda_words() -> Any:
    """numba-cuda, in whose kernels the words of `ravi.teams` mean what they do on a GPU."""
    vars(np).setdefault("row_stack", np.vstack)  # numba-cuda 0.30 asks for it, and NumPy 2.5 has it no more
    from numba import cuda as numba_cuda
    from numba.cuda import extending

    cuda: Any = numba_cuda  # whose types say little
    overload: Any = vars(extending)["overload"]

    @overload(teams.seeds)
    def seeds(n):  # type: ignore[no-untyped-def]
        return lambda n: range(
            cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y, n, cuda.gridDim.x * cuda.blockDim.y
        )

    @overload(teams.each)
    def each(m):  # type: ignore[no-untyped-def]
        return lambda m: range(cuda.threadIdx.x, m, cuda.blockDim.x)

    @overload(teams.sync)
    def sync():  # type: ignore[no-untyped-def]
        def wait():  # type: ignore[no-untyped-def]
            if cuda.blockDim.x > 1:
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

    def reduced(word: Callable[..., Any], join: Callable[..., Any]) -> None:
        @overload(word)
        def over_team(value):  # type: ignore[no-untyped-def]
            def reduce(value):  # type: ignore[no-untyped-def]
                step = cuda.blockDim.x >> 1
                mask = ((1 << cuda.blockDim.x) - 1) << ((cuda.threadIdx.y * cuda.blockDim.x) % 32)
                while step > 0:
                    value = join(value, cuda.shfl_xor_sync(mask, value, step))
                    step >>= 1
                return value

            return reduce

    reduced(teams.team_sum, cuda.jit(device=True)(lambda a, b: a + b))
    reduced(teams.team_max, cuda.jit(device=True)(lambda a, b: max(a, b)))
    reduced(teams.team_min, cuda.jit(device=True)(lambda a, b: min(a, b)))
    return cuda


@cache
def kernel(*functions: Any) -> Any:
    """`whole.frame` of these functions as a kernel."""
    return cuda_words().jit(whole.framed(*functions))


class Memory:
    """Arrays of this machine, and their likes on the GPU. Views of one array are views of one there."""

    def __init__(self, cupy: Any, cuda: Any) -> None:
        self.cupy, self.cuda = cupy, cuda
        self.held: dict[tuple[int, int], Any] = {}  # address and bytes -> there, flat
        self.alive: list[Array] = []  # so that no address is used again

    def there(self, leaf: Any) -> Any:
        """A leaf of the arguments of a kernel, there."""
        if isinstance(leaf, teams.Room) or (isinstance(leaf, np.ndarray) and leaf.size == 0):
            filled = tuple(max(size, 1) for size in leaf.shape)
            array = self.cuda.as_cuda_array(self.cupy.empty(filled, leaf.dtype))
            return array if filled == leaf.shape else array[tuple(slice(size) for size in leaf.shape)]
        if not isinstance(leaf, np.ndarray):
            return leaf
        array = np.ascontiguousarray(leaf)
        place = (array.__array_interface__["data"][0], array.nbytes)
        if place not in self.held:
            self.held[place] = self.cupy.asarray(array).ravel()
            self.alive.append(array)
        return self.cuda.as_cuda_array(self.held[place].view(array.dtype).reshape(array.shape))

    def of(self, array: Array) -> Any:
        """What is there of an array of this machine."""
        return self.held[array.__array_interface__["data"][0], array.nbytes].view(array.dtype).reshape(array.shape)

    def back(self, array: Array) -> None:
        """Write what is there into an array of this machine."""
        if array.size and (array.__array_interface__["data"][0], array.nbytes) in self.held:
            array[...] = self.cupy.asnumpy(self.of(array))


def width(states: int, seeds: int) -> int:
    """Threads of a team: one where there are few states and many seeds, a warp where there are many states."""
    if states >= 24:
        return WIDE
    threads = 1
    while threads < min(states, 8) and seeds * threads * 2 <= 2**16:
        threads *= 2
    return threads


def advance(
    learner: Learner,
    world: World,
    T: int,
    pad: bool,
    measures: Sequence[Measure],
    batch: Any,
    length: int,
    looked: Callable[[], bool],
) -> None:
    """Take the seeds of a batch through their epochs, in place, until all have made T plays, or `looked`, which is
    asked in between kernels, says to stop."""
    cupy, cuda = target()
    n = len(batch.walkers.time)
    threads = width(batch.state.policy.shape[-2], n)
    blocks, shape = -(-n * threads // BLOCK), (threads, BLOCK // threads)
    arguments = whole.arguments(
        learner, world, T, pad, measures, batch, teams=blocks * shape[1], epochs=MOST, length=length
    )
    memory = Memory(cupy, cuda)
    there = teams.mapped(memory.there, arguments)
    launched = kernel(*whole.functions(learner, measures))
    stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
    count = 8
    while int(batch.walkers.time.min()) < T and not looked():
        began = time.perf_counter()
        launched[blocks, shape, stream](count, *there)
        memory.back(batch.walkers.time)
        for measure, m, own in zip(measures, batch.records, arguments[-1], strict=False):
            _log(memory, measure, m, own, count)
        spent = time.perf_counter() - began
        count = int(min(max(count * min(LOOK / max(spent, 1e-3), 4.0), 1), MOST))
    for _, leaf in tree.leaves(batch):
        if isinstance(leaf, np.ndarray):
            memory.back(leaf)


def _log(memory: Memory, measure: Measure, m: Any, own: Any, count: int) -> None:
    """Append the rows of the epochs that a kernel made, where a measure has some."""
    recorder = measure.recorder
    assert recorder is not None
    rows = [memory.of(row)[:count] for row in recorder.rows(own)]
    if rows and recorder.log is not None:
        parts = [memory.cupy.asnumpy(row) for row in rows]
        made = int((parts[0] > 0).any(1).sum())
        recorder.log(m, tuple(part[:made] for part in parts))
        for row in rows:
            row[...] = 0
