"""A GPU that is this machine: what `ravi.runtime.gpu` does with CuPy and numba-cuda, by NumPy and Numba. Kernels are
compiled for a CPU, where a team is one thread; arrays there are copies.

Those may be of a type of their own, which as CuPy's takes no array of the host beside it: functions of arrays then do
what they do on a GPU, where some sums have another order.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np

from ravi._jit import teams
from ravi._jit.functions import compiled, instance
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import gpu as device


class There(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the GPU."""

    def __init__(self, array):
        self.array = array

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.array, name)
        return on_arrays_there(found) if callable(found) else found

    def __len__(self):
        return len(self.array)

    def __bool__(self):
        raise AssertionError("the host asks the GPU what to do")

    def __getitem__(self, index):
        return there(self.array[here(index)])

    def __setitem__(self, index, value):
        self.array[here(index)] = here(value)

    def __array_ufunc__(self, ufunc, method, *given, **named):
        return on_arrays_there(getattr(ufunc, method))(*given, **named)

    def __array_function__(self, function, types, given, named):
        return on_arrays_there(function)(*given, **named)


def here(value):
    """What NumPy takes in place of arrays of the GPU; an array of the host is an error."""
    if isinstance(value, dict):
        return {name: here(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(here, value))
    assert not isinstance(value, np.ndarray), "an array of the host beside one of the GPU"
    return value.array if isinstance(value, There) else value


def there(value):
    return There(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def on_arrays_there(function):
    return lambda *given, **named: there(function(*here(given), **here(named)))


class Kernel:
    """A kernel, whatever the shape that it is launched with."""

    def __init__(self, function):
        self.function = function

    def __getitem__(self, shape):
        return lambda *arguments: self.function(*teams.map_leaves(_held, arguments)) and None


@cache
def kernel(registers, threads, *functions):
    """`ravi.runtime.gpu.kernel`, by the function that a CPU has for it."""
    return Kernel(compiled_driver.function_of(*functions))


@cache
def loop_kernel(looped, threads):
    return Kernel(compiled(instance(device._over, loop=looped)))


def _held(leaf):
    return leaf.array if isinstance(leaf, There) else leaf


class Stream:
    """A stream, in which all is made at once."""

    ptr = 0

    def __enter__(self):
        return self

    def __exit__(self, *why):
        """Of this stream."""

    def synchronize(self):
        """All is made."""


def pretend(patch, apart=False):
    """Let `device="gpu"` be this machine; `apart`: with arrays of their own type."""
    cuda = SimpleNamespace(as_cuda_array=lambda a, sync=True: a, external_stream=lambda ptr: ptr)
    names = ("asfortranarray", "empty", "zeros", "full", "arange")
    arrays = {name: on_arrays_there(getattr(np, name)) if apart else getattr(np, name) for name in names}
    cupy = SimpleNamespace(
        **arrays,
        copyto=np.copyto,
        may_share_memory=np.may_share_memory,
        ndarray=There if apart else np.ndarray,
        asarray=lambda a: there(np.array(a)) if apart else np.array(a),
        asnumpy=lambda a: np.array(_held(a)),
        cuda=SimpleNamespace(get_current_stream=Stream, Stream=Stream),
    )

    def recorded(flight):
        return SimpleNamespace(launch=lambda stream: flight._epoch())

    patch.setattr(device.Joint, "_recorded", recorded)
    patch.setattr(device, "target", lambda: device.Target(cupy, cuda))
    patch.setattr(device, "kernel", kernel)
    patch.setattr(device, "_loop_kernel", loop_kernel)
