"""Teams of threads that run a loop: one thread on a CPU, several on a GPU, from one source.

What happens to a seed is written once, as a compiled function of that seed which says what may be done side by side:

    word            on a CPU       on a GPU
    seeds(n)        range(n)       the seeds of this team: its number, += the number of teams
    each(m)         range(m)       this thread's share of a loop of m: its lane, += the size of the team
    strips(m)       range(m)       of a team of several warps, the share of this one; where it is one, all
    along(m)        range(m)       this thread's share within its warp
    sync()          nothing        the threads of the team wait for each other, and see what the others wrote
    first()         True           whether this is the first thread of the team
    alone()         True           whether it is the only one
    team()          0              the number of the team, for scratch
    some(v, n)      v              whether v is true for at least one team in lockstep: the teams of this warp that have
                                   one of the n seeds
    enough(v, w, n) v              whether v is true for this team, and for at least half of the teams in lockstep for
                                   which w is true
    team_sum(v)     v              the sum of v over the threads of the team, given to each of them after a sync();
                                   likewise team_max and team_min. The team must not be larger than a warp

Numba compiles a body with the meanings of the second column where it is called on a CPU, and with those of the third
in a kernel (`ravi._jit.cuda` defines them). A body for both allocates nothing, returns no array and raises nothing. A
thread may read what another one wrote only after sync(). All threads of a team must reach every sync() and every sum,
so a condition of an `if` or `break` around them must have the same value in all threads.

Where nothing is compiled (NUMBA_DISABLE_JIT), these functions ask `at`; tests simulate teams of several threads by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import lower_builtin, type_callable

from ravi._jit.functions import compiled

NEVER = np.iinfo(np.int64).max  # a step that never comes


class Buffer(NamedTuple):
    """The shape of an uninitialised scratch array, which is allocated on the device on which a loop runs."""

    shape: tuple[int, ...]  # of teams first
    dtype: Any = np.float64


def allocate(tree: Any) -> Any:
    """Nested tuples with every `Buffer` allocated in the memory of the host."""
    return map_leaves(lambda leaf: np.empty(leaf.shape, leaf.dtype) if isinstance(leaf, Buffer) else leaf, tree)


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Nested tuples with `change` applied to every leaf; a `Buffer` is a leaf."""
    if isinstance(tree, Buffer) or not isinstance(tree, tuple):
        return change(tree)
    parts = [map_leaves(change, part) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


class Gpu(NamedTuple):
    """What `ravi.runtime.gpu` does with arrays that it holds on a GPU."""

    over_seeds: Callable[..., None]  # loop, number of seeds, arguments, threads of a team
    constant: Callable[[Any], Any]  # an array of the host -> its copy there


gpu: Any = None  # Gpu, from when `ravi.runtime.gpu` is imported: before, no array is there


def over_seeds(
    loop: Callable[..., Any], where: Any, *arguments: Any, scratch: tuple[tuple[int, ...], ...] = ()
) -> None:
    """Call `loop(low, high, *arguments, *arrays)` over all seeds, on the device that holds `where`, an array of seeds
    first. The choice of the device is made here only. scratch: the shapes of the arrays that every team gets besides.
    """
    if isinstance(where, np.ndarray):
        if scratch:
            arguments += tuple(np.empty((1, *shape)) for shape in scratch)
        loop(0, len(where), *arguments)
    else:
        gpu.over_seeds(loop, len(where), arguments + tuple(Buffer((1, *shape)) for shape in scratch))


def like(array: Any, shape: tuple[int, ...]) -> Any:
    """A new, uninitialised array of floats on the device that holds `array`."""
    return np.empty(shape) if isinstance(array, np.ndarray) else np.empty_like(array, np.float64, shape=shape)


def beside(constant: Any, array: Any) -> Any:
    """A constant on the device that holds `array`: a number as it is, an array of the host copied there once."""
    if not isinstance(constant, np.ndarray) or isinstance(array, np.ndarray):
        return constant
    return gpu.constant(constant)


def squared(array: Any) -> Any:
    """Sums of squares along the last axis of (n, p, c), on the device that holds `array`."""
    if isinstance(array, np.ndarray):
        return np.vecdot(array, array)
    sums = like(array, array.shape[:-1])
    over_seeds(_squares, array, array, sums)
    return sums


def product(a: Any, b: Any) -> Any:
    """The product a b of every seed, (n, p, j) times (n, j, c), on their device; no seed depends on its batch.

    On a GPU by a loop: CuPy's own, cuBLAS, is not let into a graph of CUDA, which an epoch there is
    (`ravi.runtime.gpu`).
    """
    if isinstance(a, np.ndarray):
        return np.matmul(a, b)
    n, rows, columns = a.shape[0], a.shape[1], b.shape[2]
    made = like(a, (n, rows, columns))
    gpu.over_seeds(_tiles_of_product, n * -(-rows // 2) * -(-columns // 4), (a, b, made), 1)
    return made


class Place:
    """The position of a thread within its team and warp, where nothing is compiled."""

    lane, size, number, teams, warp = 0, 1, 0, 1, 32

    def wait(self) -> None:
        """Wait for the other threads of the team."""

    def agree(self, value: Any, how: Callable[[list[Any]], Any]) -> Any:
        """`how` applied to the values of all threads of the team."""
        return value


at: Callable[[], Place] = Place  # tests put their own here


def seeds(n: int) -> range:
    """The seeds of this team."""
    place = at()
    return range(place.number, n, place.teams)


def each(m: int) -> range:
    """The share of this thread of a loop."""
    place = at()
    return range(place.lane, m, place.size)


def strips(m: int) -> range:
    """The share of this warp of a loop."""
    place = at()
    return range(place.lane // place.warp, m, max(place.size // place.warp, 1))


def along(m: int) -> range:
    """The share of this thread of a loop of its warp."""
    place = at()
    return range(place.lane % place.warp, m, min(place.size, place.warp))


def sync() -> None:
    """Wait for the other threads of the team."""
    at().wait()


def first() -> bool:
    """Whether this is the first thread of its team."""
    return at().lane == 0


def alone() -> bool:
    """Whether the team is one thread: then a sum may be scattered to where its terms belong."""
    return at().size == 1


def team() -> int:
    """The number of the team."""
    return at().number


def some(value: bool, n: int) -> bool:
    """Whether `value` is true for at least one team in lockstep; all of these must call it."""
    return value


def enough(ready: bool, going: bool, n: int) -> bool:
    """Whether this team is ready and at least half of the teams that are going are; all in lockstep must call it."""
    return ready


def team_sum(value: Any) -> Any:
    """The sum over the threads of the team."""
    return at().agree(value, sum)


def team_max(value: Any) -> Any:
    """The greatest over the threads of the team."""
    return at().agree(value, max)


def team_min(value: Any) -> Any:
    """The least over the threads of the team."""
    return at().agree(value, min)


# On a CPU. (Functions that Numba inlines would come into kernels, too, once a CPU has compiled a body.)


def _meaning(word: Any, typed: Callable[..., Any], written: Callable[..., Any]) -> None:
    """What a word means on a CPU. typed: of a context, the type that it gives as a function of those it takes."""
    type_callable(word)(typed)
    lower_builtin(word, types.VarArg(types.Any))(written)
    word.meaning = typed, written  # part of what the cache of compiled functions knows of it


def _range(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """A loop over range(m) itself; LLVM does not vectorise one over a range that an inlined function returns."""
    typing, kind = context.typing_context, signature.return_type.dtype
    function = typing.resolve_value_type(range)
    m = context.cast(builder, values[0], signature.args[0], kind)
    return context.get_function(function, function.get_call_type(typing, (kind,), {}))(builder, (m,))


def _first_argument(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return context.cast(builder, values[0], signature.args[0], signature.return_type)


def _always(value: Any) -> Callable[..., Any]:
    return lambda context, builder, signature, _: context.get_constant_generic(builder, signature.return_type, value)


for _loop in (seeds, each, strips, along):
    _meaning(_loop, lambda context: lambda m: context.resolve_function_type(range, (m,), {}).return_type, _range)
for _same in (team_sum, team_max, team_min):
    _meaning(_same, lambda context: lambda value: types.unliteral(value), _first_argument)
_meaning(some, lambda context: lambda value, n: types.unliteral(value), _first_argument)
_meaning(enough, lambda context: lambda ready, going, n: types.unliteral(ready), _first_argument)
_meaning(sync, lambda context: lambda: types.none, _always(None))
_meaning(first, lambda context: lambda: types.boolean, _always(True))
_meaning(alone, lambda context: lambda: types.boolean, _always(True))
_meaning(team, lambda context: lambda: types.intp, _always(0))


@compiled
def _squares(low, high, array, sums):  # type: ignore[no-untyped-def]
    """`squared` of seeds low, ..., high - 1; a team's."""
    for i in range(low, high):
        for p in each(sums.shape[1]):
            total = 0.0
            for c in range(array.shape[2]):
                total += array[i, p, c] * array[i, p, c]
            sums[i, p] = total


@compiled
def _tiles_of_product(low, high, a, b, out):  # type: ignore[no-untyped-def]
    """Tiles low, ..., high - 1 of `product`, of two rows and four columns each, which what is read serves together.
    Columns of a tile stand apart, so that those of the next tile are read with them; beyond the last is the last."""
    rows, columns = a.shape[1], b.shape[2]
    apart = (columns + 3) // 4
    tiles = (rows + 1) // 2 * apart
    for tile in range(low, high):
        i, rest = tile // tiles, tile % tiles
        p, c = rest // apart * 2, rest % apart
        q, most = min(p + 1, rows - 1), columns - 1
        c1, c2, c3 = min(c + apart, most), min(c + 2 * apart, most), min(c + 3 * apart, most)
        p0, p1, p2, p3, q0, q1, q2, q3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(b.shape[1]):
            u, v = a[i, p, j], a[i, q, j]
            w0, w1, w2, w3 = b[i, j, c], b[i, j, c1], b[i, j, c2], b[i, j, c3]
            p0, p1, p2, p3 = p0 + u * w0, p1 + u * w1, p2 + u * w2, p3 + u * w3
            q0, q1, q2, q3 = q0 + v * w0, q1 + v * w1, q2 + v * w2, q3 + v * w3
        out[i, p, c], out[i, p, c1], out[i, p, c2], out[i, p, c3] = p0, p1, p2, p3
        out[i, q, c], out[i, q, c1], out[i, q, c2], out[i, q, c3] = q0, q1, q2, q3
