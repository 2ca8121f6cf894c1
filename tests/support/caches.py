"""Where compiled functions are kept during a test: not where they were before it, nor after; and new processes."""

import os
import subprocess
import sys
import textwrap
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


def python(code, **environment):
    """What a process prints. It keeps no bytecode: of a file that is edited twice in a second Python runs the first."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()
