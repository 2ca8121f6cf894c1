"""Commands in an installation with some packages missing: `python -m tests.support.alone HIDDEN COMMANDS`, as JSON.

Modules are hidden from imports and from `importlib.metadata`; the commands run one after the other in this process.
"""

import json
import shlex
import sys
from contextlib import nullcontext
from importlib import metadata


class Without:
    """A finder of modules that does not find those that are hidden."""

    def __init__(self, finder, hidden):
        self.finder, self.hidden = finder, hidden

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in self.hidden else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


def hide(modules):
    sys.meta_path[:] = [Without(finder, modules) for finder in sys.meta_path]
    version = metadata.version

    def shown(name):
        if name.lower().replace("-", "_").removesuffix("_cuda12x") in modules:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    metadata.version = shown


def main(hidden, lines):
    hide(hidden)
    from ravi.cli import doctor
    from tests.support.command import typed

    doctor.same_bits = lambda: iter(())  # a process that would take seconds
    here = nullcontext
    if not {"pyarrow", "duckdb"} & set(hidden):
        from tests.support.pools import in_this_process as here
    with here():
        done = [typed(*shlex.split(line)) for line in lines]
    print(json.dumps([[one.returncode, one.stdout, one.stderr] for one in done]))


if __name__ == "__main__":
    main(*map(json.loads, sys.argv[1:]))
