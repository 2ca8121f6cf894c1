"""The order of tests, and which are quick: by `durations.txt`, which `make durations` measures.

First the contract's, in two parts that share little code: they compile every learner, each core its own, and all
later ones load that; beside them those of kernels, which compile for a GPU. Then file by file, the longest first, so
that no core waits for another at the end. Slow (left out by `make quick`) is what is marked so; a test function whose
cases together take more than `QUICK` seconds; a file that was never measured; and of the mistakes that `ravi verify` is
shown, all but so many that every claim which a mistake is made for is violated once.
"""

import gc
import os
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

QUICK = 0.2  # CPU seconds of a test function
LISTED = 0.1  # what takes less is not in the list by itself; a function that is compiled first takes longer
LIST = Path(__file__).with_name("durations.txt")
FIRST = ("test_contract.py", "test_teams.py")
OURS = re.compile(r".*/test_contract\.py::\w+\[ravi-")  # RAVI's own learners
TAKEN = pytest.StashKey[Counter]()
os.environ.pop("COLUMNS", None)  # of the terminal, by pytest-xdist: what is printed is as wide as it is


def file_of(item):
    """`verify/test_power.py`."""
    return relative(item.path)


@cache
def relative(path):
    return path.relative_to(LIST.parent).as_posix()


def function_of(item):
    """`verify/test_power.py::test_every_mistake_is_caught`."""
    return f"{file_of(item)}::{item.originalname}"


def durations():
    """CPU seconds of files, and of functions, by name."""
    lines = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return {name: float(seconds) for seconds, name in lines}


def cover(mutations):
    """Mistakes, each the one that violates most claims that those before it do not; by their place."""
    left, chosen = {claim for mutation in mutations for claim in mutation.claims}, set()
    while left:
        best = max(range(len(mutations)), key=lambda i: len(left.intersection(mutations[i].claims)))
        left -= set(mutations[best].claims)
        chosen.add(best)
    return chosen


@pytest.fixture
def in_this_process():
    """Suites that ask for one worker are done in this process."""
    from tests.support.pools import in_this_process

    with in_this_process():
        yield


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the marks
def pytest_collection_modifyitems(items):
    measured = durations()
    shown = [item for item in items if hasattr(item, "callspec") and "mutation" in item.callspec.params]
    kept = {shown[place] for place in cover([item.callspec.params["mutation"] for item in shown])}
    for item in items:
        long = file_of(item) not in measured or measured.get(function_of(item), 0.0) > QUICK
        if item not in kept and (long or "mutation" in getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    order = {name: place - len(FIRST) for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: (order.get(file_of(item), 0), -measured.get(file_of(item), 0.0), file_of(item)))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """What is collected stays to the end: the garbage collector need not look at it, now or later. It looks less often
    than by default, for what is compiled stays too: as it was it took a fourteenth of the time.

    Each process imports all files, and in a new checkout rewrites their assertions, which takes longer than all else
    here: each begins at its own place, rewrites the files from there on, and reads those of the others.
    """
    gc.disable()
    everything = [Path(place).resolve() for place in session.config.args] == [LIST.parent]
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if everything and worker:
        files = sorted(LIST.parent.rglob("test_*.py"))
        first = worker * len(files) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        for file in [*files[first:], *files[:first]]:
            with suppress(Exception, pytest.skip.Exception):  # pytest will say why
                import_module(".".join(file.relative_to(LIST.parent.parent).with_suffix("").parts))
    done = yield
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    gc.freeze()
    return done


class Scheduler(LoadFileScheduling):
    """What goes to one process: the tests of a file; of the contract, those of RAVI's learners, or of all others."""

    def _split_scope(self, nodeid):
        return "the contract of RAVI" if OURS.match(nodeid) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)  # where pytest-xdist is
def pytest_xdist_make_scheduler(config, log):
    return Scheduler(config, log)


def pytest_addoption(parser):
    parser.addoption("--measure", action="store_true", help="write how long tests take into tests/durations.txt")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    begun = sum(os.times()[:4])  # of this process and of those that it waited for
    done = yield
    taken = item.config.stash.setdefault(TAKEN, Counter())
    for name in (file_of(item), function_of(item)):
        taken[name] += sum(os.times()[:4]) - begun
    return done


def pytest_sessionfinish(session):
    """Of files that were run the list is renewed; the rest of it stays."""
    if session.config.getoption("--measure"):
        taken = session.config.stash.get(TAKEN, Counter())
        write({name: s for name, s in durations().items() if name.split("::")[0] not in taken} | taken)


def write(taken):
    """The list: files and functions, the longest first."""
    listed = [name for name in taken if "::" not in name or taken[name] >= LISTED]
    lines = [f"{taken[name]:7.1f} {name}\n" for name in sorted(listed, key=lambda name: (-taken[name], name))]
    LIST.write_text("# CPU seconds of files and of test functions, with processes that they start.\n" + "".join(lines))
