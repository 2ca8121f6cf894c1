"""How does a GPU solve an MDP? A thread for every state, by the loops and with the certificate that a CPU has.

Only what finds V differs: the greedy policy is swept a fixed number of times between two sweeps of all actions, since a
look at the span costs as much as a sweep there. Krylov methods and bands are a CPU's.
"""

from typing import Any

import numpy as np

from ravi._jit import teams
from ravi.planning.certificates import Tables, span_goal, sweep_limit
from ravi.planning.chains import Chain
from ravi.planning.modified_policy_iteration import follow
from ravi.planning.sweeps import Sweep, bellman_sweep, chain_sweep
from ravi.runtime import gpu as device
from ravi.validation import InputError

SWEEPS = {"value_iteration": 0, "modified_policy_iteration": 8}  # of the greedy policy, between two of all actions


def sweep_there(tables: Tables, tol: float, method: str) -> Sweep:
    """The last sweep of a method, made on the GPU."""
    if method not in SWEEPS:
        raise InputError(f"device=gpu: {method} does not run there; {' and '.join(SWEEPS)} do")
    cupy, cuda = device.target()
    memory = device.Memory(cupy, cuda)
    X, A, B = tables.transitions.shape
    gamma, limit = tables.discount, sweep_limit(tables.discount, tables.grain)

    def by_state(leaf: Any) -> Any:  # states side by side, of which a thread has one
        return cuda.as_cuda_array(cupy.asfortranarray(cupy.asarray(leaf))) if isinstance(leaf, np.ndarray) else leaf

    there = teams.mapped(by_state, tables)
    W, TW, Q = cupy.zeros(X), cupy.empty(X), cupy.empty((X, A))
    greedy, followed = cupy.empty(X, np.int64), cupy.full(X, -1, np.int64)
    start, weights = cupy.arange(0, X * B + 1, B, dtype=np.uint32), cupy.empty(X * B)
    rows = Chain(*map(cuda.as_cuda_array, (start, cupy.empty(X * B, np.uint32), weights, cupy.empty(X))))
    seen = {id(array): cuda.as_cuda_array(array) for array in (W, TW, Q, greedy, followed)}  # which takes time

    def each_state(loop: Any, *arguments: Any) -> None:
        device.over_seeds_there(loop, X, tuple(seen.get(id(one), one) for one in arguments), threads=1)

    n, steps = 0, 0
    with device.here_is(memory):
        while True:
            each_state(bellman_sweep, there, W, Q, TW, greedy)
            n, steps = n + 1, steps + 1
            low, high = _ends(TW - W)
            size = float(abs(W).max())
            if high - low <= span_goal(tol, size, gamma, tables.grain) or steps >= limit:
                return Sweep(cupy.asnumpy(Q), cupy.asnumpy(TW), cupy.asnumpy(greedy), low, high, size, n)
            W, TW = TW, W
            if SWEEPS[method]:
                each_state(follow, there, greedy, followed, rows)
            for _ in range(SWEEPS[method]):
                each_state(chain_sweep, rows, gamma, 0.0, W, TW)
                W, TW = TW, W
                n += 1
            least, most = _ends(W)
            W -= (least + most) / 2


def _ends(array: Any) -> tuple[float, float]:
    return float(array.min()), float(array.max())
