"""A GPU that is this machine: what `ravi.device` does with CuPy and numba-cuda, by NumPy and Numba. Kernels are
compiled for a CPU, where a team is one thread; arrays there are copies."""

from types import SimpleNamespace

import numpy as np
from numba.core.caching import NullCache

from ravi import device
from ravi.compiled import compiled


class Kernel:
    """A kernel, whatever the shape that it is launched with."""

    def __init__(self, function):
        self.compiled = compiled(function)
        self.compiled._cache = NullCache()  # by the file that it is bound to, which need not import its frame

    def __getitem__(self, shape):
        return lambda *arguments: self.compiled(*arguments) and None


class Stream:
    """A stream, in which all is made at once."""

    ptr = 0

    def __enter__(self):
        return self

    def __exit__(self, *why):
        """Of this stream."""

    def synchronize(self):
        """All is made."""


def pretend(patch):
    """Let `device="gpu"` be this machine."""
    cuda = SimpleNamespace(
        as_cuda_array=lambda a, sync=True: a,
        external_stream=lambda ptr: ptr,
        jit=lambda function, **options: Kernel(function),
    )
    names = ("asfortranarray", "empty", "zeros", "full", "arange", "copyto", "may_share_memory")
    arrays = {name: getattr(np, name) for name in names}
    cupy = SimpleNamespace(
        **arrays,
        ndarray=np.ndarray,
        asarray=lambda a: np.array(a),
        asnumpy=lambda a: np.array(a),
        cuda=SimpleNamespace(get_current_stream=Stream, Stream=Stream),
    )

    def recorded(flight):
        return SimpleNamespace(launch=lambda stream: flight._epoch())

    patch.setattr(device.Together, "_recorded", recorded)
    patch.setattr(device, "target", lambda: device.Target(cupy, cuda))
    patch.setattr(device, "cuda_words", lambda: cuda)
