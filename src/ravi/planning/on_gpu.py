"""Value iteration and modified policy iteration on a GPU: a thread for every state, the loop and certificate of a CPU.

Only the way to V differs: the greedy policy is swept a fixed number of times between two sweeps of all actions, since
the span costs as much as a sweep there. Krylov methods and bands are a CPU's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravi._jit import teams
from ravi._jit.functions import instance
from ravi.planning.certificates import Tables, span_goal, sweep_limit
from ravi.planning.chains import Chain
from ravi.planning.methods import follow
from ravi.planning.sweeps import Sweep, bellman_sweep, chain_sweep, iterate
from ravi.runtime import gpu as device
from ravi.validation import InputError

SWEEPS = {"value_iteration": 0, "modified_policy_iteration": 8}  # of the greedy policy, between two of all actions


@dataclass
class Work:
    """The arrays of a method on the GPU."""

    each_state: Callable[..., None]
    arrays: Tables  # on this machine
    tables: Any
    tol: float
    between: int  # sweeps of the greedy policy between two backups
    W: Any
    TW: Any
    Q: Any
    greedy: Any
    followed: Any
    chain: Any


def _back_up(own: Work) -> tuple[float, float, tuple[float, float, float]]:
    own.each_state(bellman_sweep, own.tables, own.W, own.Q, own.TW, own.greedy)
    low, high = _ends(own.TW - own.W)
    size = float(abs(own.W).max())
    return high - low, span_goal(own.tol, size, own.arrays.discount, own.arrays.grain), (low, high, size)


def _sweep(own: Work, goal: float, found: Any) -> int:
    own.W, own.TW = own.TW, own.W
    if own.between:
        own.each_state(follow, own.tables, own.greedy, own.followed, own.chain)
    for _ in range(own.between):
        own.each_state(chain_sweep, own.chain, own.arrays.discount, 0.0, own.W, own.TW)
        own.W, own.TW = own.TW, own.W
    least, most = _ends(own.W)
    own.W -= (least + most) / 2
    return own.between


LOOP = instance(iterate, backup=_back_up, sweep=_sweep)


def last_sweep_on_gpu(tables: Tables, tol: float, method: str) -> Sweep:
    """The last sweep of a method, made on the GPU."""
    if method not in SWEEPS:
        raise InputError(f"device=gpu: {method} does not run there; {' and '.join(SWEEPS)} do")
    cupy, cuda = device.target()
    memory = device.Memory(cupy, cuda)
    X, A, B = tables.transitions.shape

    def by_state(leaf: Any) -> Any:  # states side by side, of which a thread has one
        return cuda.as_cuda_array(cupy.asfortranarray(cupy.asarray(leaf))) if isinstance(leaf, np.ndarray) else leaf

    arrays = cupy.zeros(X), cupy.empty(X), cupy.empty((X, A)), cupy.empty(X, np.int64), cupy.full(X, -1, np.int64)
    start, weights = cupy.arange(0, X * B + 1, B, dtype=np.uint32), cupy.empty(X * B)
    chain = Chain(*map(cuda.as_cuda_array, (start, cupy.empty(X * B, np.uint32), weights, cupy.empty(X))))
    views = {id(array): cuda.as_cuda_array(array) for array in arrays}  # which takes time

    def each_state(loop: Any, *arguments: Any) -> None:
        device.over_seeds_there(loop, X, tuple(views.get(id(one), one) for one in arguments), threads=1)

    own = Work(each_state, tables, teams.map_leaves(by_state, tables), tol, SWEEPS[method], *arrays, chain)
    with device.here_is(memory):
        (low, high, size), backups, sweeps = LOOP(own, sweep_limit(tables.discount, tables.grain))
    Q, TW, greedy = map(cupy.asnumpy, (own.Q, own.TW, own.greedy))
    return Sweep(Q, TW, greedy, low, high, size, backups + sweeps)


def _ends(array: Any) -> tuple[float, float]:
    return float(array.min()), float(array.max())
