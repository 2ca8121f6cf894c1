"""Where compiled functions are kept during a test: not where they were before it, nor after."""

from contextlib import contextmanager

from ravi._jit import cache


@contextmanager
def looked_for_anew():
    """The folder is looked for anew in here, and after it: what a process found before is forgotten."""
    remembered = (cache.cache_folder, cache._warn, cache._tidy)
    for function in remembered:
        function.cache_clear()
    yield
    for function in remembered:
        function.cache_clear()
