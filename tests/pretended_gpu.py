"""A GPU that is this machine: what `ravi.device` does with CuPy and numba-cuda, by NumPy and Numba. Kernels are
compiled for a CPU, where a team is one thread; arrays there are copies."""

from types import SimpleNamespace

import numba
import numpy as np

from ravi import device


class Kernel:
    """A kernel, whatever the shape that it is launched with."""

    def __init__(self, function):
        self.compiled = numba.njit(error_model="numpy")(function)

    def __getitem__(self, shape):
        return lambda *arguments: self.compiled(*arguments) and None


def pretend(patch):
    """Let `device="gpu"` be this machine."""
    cuda = SimpleNamespace(
        as_cuda_array=lambda a: a, external_stream=lambda ptr: ptr, jit=lambda function, **options: Kernel(function)
    )
    arrays = {name: getattr(np, name) for name in ("empty", "zeros", "full", "arange", "copyto", "may_share_memory")}
    cupy = SimpleNamespace(
        **arrays,
        ndarray=np.ndarray,
        asarray=lambda a: np.array(a),
        asnumpy=lambda a: np.array(a),
        cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=0)),
    )
    patch.setattr(device, "target", lambda: device.Target(cupy, cuda))
    patch.setattr(device, "cuda_words", lambda: cuda)
