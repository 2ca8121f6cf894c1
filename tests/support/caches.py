"""Where compiled functions are kept during a test: not where they were before it, nor after."""

from contextlib import contextmanager

from ravi._jit import cache as compile_cache


@contextmanager
def looked_for_anew():
    """Folders are looked for anew in here, and after it: what a process found before is forgotten."""
    remembered = (compile_cache.cache_folder, compile_cache._home, compile_cache._tell)
    for function in remembered:
        function.cache_clear()
    yield
    for function in remembered:
        function.cache_clear()
