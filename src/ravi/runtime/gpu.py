"""Runs on a GPU: the function of `ravi.runtime.compiled` as a kernel, launched for many epochs at a time.

What lives there is what a run carries from epoch to epoch, and the MDP. The host looks in between kernels, a few times
a second: at Ctrl-C, pauses, progress, and the rows that logs take. A run comes back as arrays of this machine, and so
goes on, is saved and is scored as any other.

CuPy holds the arrays, numba-cuda compiles the kernels (`pip install 'ravi[gpu]'`); neither is imported before a run
asks for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit import teams
from ravi._jit.cuda import compiling, cuda_words
from ravi._jit.functions import instance
from ravi.core import Array, Path
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import tree
from ravi.runtime.compiled import Batch, Task, path_length
from ravi.runtime.walk import padding
from ravi.validation import install_command

BLOCK = 128  # threads of a block
WIDE = 32  # threads of a team that goes through epochs, at most: a warp
WIDEST, FULL = 256, 2**18  # the most threads of a team that loops over seeds; of all teams together, about
REGISTERS = 64  # of a thread, at most: the fewer registers, the more threads fit on the GPU
STRETCH = 16  # steps of a seed after which its thread may wait for others
CALL = 0.5  # seconds of a call, about
SELDOM = 0.01  # ends of epochs a step, where there are no resets
AT_WORK = 2**17  # threads that a GPU has room for with REGISTERS each, about


class Target(NamedTuple):
    """The packages that hold arrays on the GPU and compile kernels for it."""

    cupy: Any
    cuda: Any


@cache
def target() -> Target:
    """The GPU of this machine; an error where there is none."""
    try:
        import cupy

        cuda = cuda_words()
    except ImportError as error:
        raise validation.InputError(
            f"device=gpu needs CuPy and numba-cuda, and {error.name} is not installed: {install_command('gpu')}"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise validation.InputError(f"device=gpu needs a GPU, and CUDA finds none: {error}") from None
    if count == 0:
        raise validation.InputError("device=gpu needs a GPU, and CUDA finds none")
    return Target(cupy, cuda)


@cache
def kernel(registers: int, threads: int, *functions: Any) -> Any:
    """The kernel that `compiled_driver.run_function` makes of these functions, for teams of so many threads."""
    return cuda_words().jit(compiled_driver.run_function(*functions), max_registers=registers, lto=False)


def _place(array: Array) -> tuple[int, int]:
    """Where an array lies: its address, and how many bytes."""
    return array.__array_interface__["data"][0], array.nbytes


class Memory:
    """Arrays of the host and their copies on the GPU; views of one array are views of one copy."""

    def __init__(self, cupy: Any, cuda: Any) -> None:
        self.cupy, self.cuda = cupy, cuda
        self.held: dict[tuple[int, int], Any] = {}  # address and bytes -> there, flat
        self.alive: list[Array] = []  # so that no address is used again

    def there(self, leaf: Any) -> Any:
        """A leaf of the arguments of a kernel, as the GPU takes it."""
        if isinstance(leaf, teams.Buffer) or (isinstance(leaf, np.ndarray) and leaf.size == 0):
            return self.scratch(leaf, range(len(leaf.shape)))
        if not isinstance(leaf, np.ndarray):
            return leaf
        return self.cuda.as_cuda_array(self.of(np.ascontiguousarray(leaf)), sync=False)

    def scratch(self, leaf: Any, axes: Sequence[int]) -> Any:
        """An uninitialised array; entries along the last of `axes` are neighbours, then those along the one before."""
        filled = tuple(max(size, 1) for size in leaf.shape)
        array = self.cupy.empty(tuple(filled[axis] for axis in axes), leaf.dtype).transpose(np.argsort(axes).tolist())
        array = self.cuda.as_cuda_array(array, sync=False)
        return array if filled == leaf.shape else array[tuple(slice(size) for size in leaf.shape)]

    def constant(self, array: Array) -> Any:
        """A copy that no view shares; entries along the first axis, which a team divides, are neighbours."""
        return self.cuda.as_cuda_array(self.cupy.asfortranarray(self.cupy.asarray(array)), sync=False)

    def of(self, array: Array) -> Any:
        """The copy of an array of the host; it is made where there is none yet."""
        place = _place(array)
        if place not in self.held:
            self.held[place] = self.cupy.asarray(array).ravel()
            self.alive.append(array)
        return self.held[place].view(array.dtype).reshape(array.shape)

    def back(self, array: Array) -> None:
        """Copy an array back from the GPU into that of the host."""
        if array.size and _place(array) in self.held:
            array[...] = self.cupy.asnumpy(self.of(array))


def width(states: int, seeds: int) -> int:
    """The number of threads of a team, a power of two: one where there are few states and many seeds, a warp where
    there are many states. One thread of a team makes the steps, so several of many seeds share a warp."""
    threads, most = 1, AT_WORK if states >= 24 else AT_WORK // 2
    while threads < min(states, WIDE) and ((threads < 8 and states >= 24) or seeds * threads * 2 <= most):
        threads *= 2
    return threads


class OnGpu:
    """A run on the GPU: its arrays there, and the kernel that advances them."""

    def __init__(self, task: Task, batch: Batch) -> None:
        self.cupy, self.cuda = target()
        self.task, self.batch, learner = task, batch, task.learner
        n = len(batch.walkers.time)
        threads = width(batch.state.policy.shape[-2], n)
        self.shape = -(-n * threads // BLOCK), (threads, BLOCK // threads)
        teams_there = self.shape[0] * self.shape[1][1]
        assert learner.seedwise is not None
        self.joint = learner.seedwise.joint
        length = path_length(n, task.H, learner.seedwise.reset)
        if self.joint:
            length = padding(task.H)  # an epoch comes as a whole: one is longer with probability below e^-50
        elif threads < WIDE:
            length = STRETCH
        self.mark, self.ends = int(batch.walkers.time.min()), max(task.world.restart, SELDOM)
        self.memory = Memory(self.cupy, self.cuda)
        recorders = [one.recorder for one in task.measures if one.recorder is not None]
        self.here = compiled_driver.arguments(
            learner, task.world, task.T, task.pad, recorders, batch, teams=teams_there, epochs=compiled_driver.MOST,
            length=min(task.T, length),
        )  # fmt: skip
        self.rows = [row for one, own in zip(recorders, self.here.kept, strict=False) for row in one.rows(own)]
        self.there = self._laid_out(threads)
        registers = REGISTERS if n * threads > AT_WORK // 2 else 2 * REGISTERS
        self.kernel = kernel(registers, threads, *compiled_driver.functions(learner, recorders))
        self.row = self.memory.of(self.here.row)

    def _laid_out(self, threads: int) -> Any:
        """The arguments of the kernel there. What threads read or write at the same time are neighbours: in scratch
        and in constants of the learner and of measures, where teams are threads of their own the teams, else what
        comes after the team, which threads of a team share. What comes back to the host is as it is there."""
        back = [*self.rows, *(leaf for _, leaf in tree.leaves(self.batch) if isinstance(leaf, np.ndarray))]
        shared = {_place(array) for array in back}

        def there(leaf: Any) -> Any:
            if isinstance(leaf, teams.Buffer):
                last = len(leaf.shape) - 1
                return self.memory.scratch(leaf, range(last, -1, -1) if threads == 1 else [0, *range(last, 0, -1)])
            if isinstance(leaf, np.ndarray) and leaf.ndim > 1 and leaf.size and _place(leaf) not in shared:
                return self.memory.constant(leaf)
            return self.memory.there(leaf)

        plain = teams.map_leaves(self.memory.there, self.here._replace(own=(), kept=()))
        own, kept = (teams.map_leaves(there, part) for part in (self.here.own, self.here.kept))
        return plain._replace(own=own, kept=kept)

    def run(self, epochs: int) -> None:
        """Go on for `epochs` epochs: of each seed where rows of epochs are kept, else on average: no seed lags."""
        self.mark += ceil(epochs / self.ends)
        last = self.task.last
        self.launch(*(epochs, last) if self.rows else (compiled_driver.MOST, min(self.mark, last)))

    def launch(self, epochs: int, mark: int) -> None:
        stream = self.cuda.external_stream(self.cupy.cuda.get_current_stream().ptr)
        with compiling(self.shape[1][0], rolled=not self.joint):
            self.kernel[self.shape[0], self.shape[1], stream](epochs, mark, *self.there)

    def look(self, epochs: int) -> None:
        """Copy the times of the seeds to the host, and the rows of the epochs since the last look."""

        def brought(row: Array) -> Array:
            there = self.memory.of(row)[:epochs]
            made: Array = self.cupy.asnumpy(there)
            there[...] = 0
            return made

        self.memory.back(self.batch.walkers.time)
        compiled_driver.log(self.task.measures, self.batch.records, self.here.kept, brought)

    def finish(self) -> None:
        """Copy the whole batch to the host."""
        for _, leaf in tree.leaves(self.batch):
            if isinstance(leaf, np.ndarray):
                self.memory.back(leaf)
        compiled_driver.check_played(self.task, self.batch)


class Joint(OnGpu):
    """A run in which all seeds plan and learn at once, by functions of arrays. The first epochs are made call by call.
    Then an epoch is recorded as a CUDA graph, which is launched repeatedly without the overhead of the calls."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        there = self.memory.of
        self.state = tree.map_leaves(there, self.batch.state)
        self.aside = tree.map_leaves(lambda leaf: leaf.copy(), self.state)  # of seeds that have ended, as they ended
        self.path = Path(*(there(array) for array in self.here.path))
        self.time = there(self.batch.walkers.time)
        self.finished = self.time >= self.task.T
        self.stream = self.cupy.cuda.Stream()  # the default one cannot be recorded
        self.graph: Any = None

    def run(self, epochs: int) -> None:
        with self.stream, here_is(self.memory):
            for _ in range(epochs):
                if self.graph is None:
                    self._epoch()
                else:
                    self.graph.launch(self.stream)
            if self.graph is None:  # all is compiled, and memory is there
                self.graph = self._recorded()
        self.stream.synchronize()

    def _recorded(self) -> Any:
        """An epoch as a CUDA graph; it is recorded, not executed. Its intermediate arrays stay allocated on the stream,
        on which nothing else takes memory."""
        self.stream.begin_capture()
        try:
            self._epoch()
        finally:
            graph = self.stream.end_capture()
        return graph

    def _epoch(self) -> None:
        self._settle(self.task.learner.plan(self.state))
        self.launch(1, self.task.T)
        self._settle(self.task.learner.add(self.state, self.path))
        now = (self.time >= self.task.T) & ~self.finished
        for (_, kept), (_, leaf) in zip(tree.leaves(self.aside), tree.leaves(self.state), strict=True):
            self.cupy.copyto(kept, leaf, where=now.reshape(-1, *[1] * (leaf.ndim - 1)))
        self.finished |= now
        self.row += 1

    def _settle(self, state: Any) -> None:
        """Copy a state that a learner returned into the arrays that the kernel was given."""
        for (_, mine), (_, leaf) in zip(tree.leaves(self.state), tree.leaves(state), strict=True):
            if not self.cupy.may_share_memory(mine, leaf):
                self.cupy.copyto(mine, leaf)

    def look(self, epochs: int) -> None:
        super().look(epochs)
        self.row[...] = 0

    def finish(self) -> None:
        for (_, kept), (_, leaf) in zip(tree.leaves(self.aside), tree.leaves(self.state), strict=True):
            self.cupy.copyto(leaf, kept, where=self.finished.reshape(-1, *[1] * (leaf.ndim - 1)))
        super().finish()


def run(task: Task, batch: Batch) -> None:
    """Take the seeds of a batch through their epochs; in place."""
    assert task.learner.seedwise is not None
    target = Joint(task, batch) if task.learner.seedwise.joint else OnGpu(task, batch)
    compiled_driver.advance([target], target.run, task, [batch], compiled_driver.MOST, CALL)


_current: list[Memory] = []  # where constants of loops over arrays of the GPU are kept, while one runs


@contextmanager
def here_is(memory: Memory) -> Iterator[None]:
    _current.append(memory)
    try:
        yield
    finally:
        _current.pop()


def _over(n, arguments):  # type: ignore[no-untyped-def]
    for i in teams.seeds(n):
        loop(i, i + 1, *arguments)


def loop(low: int, high: int, *arguments: Any) -> None:
    """The loop that `_over` calls; `over_seeds_there` binds its own to this name."""


@cache
def _loop_kernel(looped: Any, threads: int) -> Any:
    return cuda_words().jit(instance(_over, loop=looped), max_registers=REGISTERS, lto=False)


def over_seeds_there(looped: Callable[..., Any], n: int, arguments: tuple[Any, ...], threads: int = 0) -> None:
    """`ravi._jit.teams.over_seeds` on the GPU, by teams of `threads` threads; 0: as many as there is room for."""
    cupy, cuda = target()
    memory = _current[-1]
    threads = threads or min(max(1 << (FULL // n).bit_length() - 1, WIDE), WIDEST)
    block = max(BLOCK, threads)
    shape = -(-n * threads // block), (threads, block // threads)

    def there(leaf: Any) -> Any:
        if isinstance(leaf, teams.Buffer):
            return memory.there(leaf._replace(shape=(shape[0] * shape[1][1], *leaf.shape[1:])))
        return cuda.as_cuda_array(leaf, sync=False) if isinstance(leaf, cupy.ndarray) else memory.there(leaf)

    stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
    with compiling(threads):
        _loop_kernel(looped, threads)[shape[0], shape[1], stream](n, teams.map_leaves(there, arguments))


teams.gpu = teams.Gpu(over_seeds_there, lambda array: _current[-1].of(array))  # whose copies are kept
