"""What tests of executors share: tasks, learners that misbehave, and a driver in few lines."""

import sys
import time

from ravi import ids
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.work import Outcome, Task

RIVER = "riverswim/5,discount=0.9"
LEARNER = "ravi-ucb,scale=0.003,step_scale=30"

LEARNERS = '''
import ctypes
import os
import subprocess
import sys
import time

from ravi import Learner
from ravi.validation import InputError
from ravi.learners.posterior.psrl import psrl
from ravi.learners.ravi_ucb.ravi_ucb import tabular


def _planning(problem, steps, before):
    """RAVI-UCB that does something before every plan."""
    base = tabular(problem, steps, scale=0.003)

    def plan(state):
        before(state)
        return base.plan(state)

    return base._replace(name="mine", plan=plan)


def _mark(place):
    with open(place, "a") as file:
        file.write(f"{os.getpid()}\\n")


def slow(problem, steps, seconds: float, place: str = os.devnull) -> Learner:
    def before(state):
        _mark(place)
        time.sleep(seconds)

    return _planning(problem, steps, before)


def hangs_once(problem, steps, place: str) -> Learner:
    """In the first process that comes to it; in another it goes on."""
    def before(state):
        _mark(place)
        with open(place) as file:
            if int(file.readline()) == os.getpid():
                time.sleep(600)

    return _planning(problem, steps, before)


def stuck(problem, steps, place: str) -> Learner:
    """It holds Python's lock, as compiled code does, and has a child."""
    def before(state):
        child = subprocess.Popen(["sleep", "60"])
        with open(place, "a") as file:
            file.write(f"{os.getpid()}\\n{child.pid}\\n")
        ctypes.PyDLL(None).sleep(10)

    return _planning(problem, steps, before)


def leaves(problem, steps, status: int) -> Learner:
    return _planning(problem, steps, lambda state: os._exit(status))


def exits(problem, steps) -> Learner:
    return _planning(problem, steps, lambda state: sys.exit("no more of this"))


def crashes(problem, steps) -> Learner:
    return _planning(problem, steps, lambda state: ctypes.string_at(0))


def prints(problem, steps) -> Learner:
    def before(state):
        print("x" * 1000)
        print("y" * 1000, file=sys.stderr)
        os.write(1, b"z" * 1000)

    return _planning(problem, steps, before)


def refuses(problem, steps, seed: int) -> Learner:
    """One seed of a batch fails."""
    base = tabular(problem, steps, scale=0.003)

    def init(keys):
        if seed in keys:
            raise ArithmeticError(f"not seed {seed}\\nthe rest of it")
        return base.init(keys)

    return base._replace(name="refuses", init=init)


def spoils(problem, steps, seed: int, plays: int) -> Learner:
    """One seed fails in the midst of its run."""
    base = psrl(problem, steps)

    def plan(state):
        if ((state.key == seed) & (state.data.visits.sum((1, 2)) > plays)).any():
            raise ArithmeticError(f"not seed {seed}")
        return base.plan(state)

    return base._replace(name="spoils", plan=plan)


def complains(problem, steps, plays: int) -> Learner:
    """It fails in the midst of its run, with an error of this library."""
    def before(state):
        if state.data.visits.sum() > plays + problem.states * problem.actions * len(state.policy):
            raise InputError("enough")

    return _planning(problem, steps, before)


def starves(problem, steps, plays: int, kind: str) -> Learner:
    """The machine gives out in the midst of its run."""
    errors = {"memory": MemoryError("no more"), "disk": OSError(28, "No space"), "files": OSError(24, "x")}

    def before(state):
        if state.data.visits.sum() > plays + problem.states * problem.actions * len(state.policy):
            raise errors[kind]

    return _planning(problem, steps, before)


def threads(problem, steps) -> Learner:
    """It fails, and says with how many threads it would have computed."""
    import numba

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    raise ArithmeticError(" ".join([*(os.environ[name] for name in names), str(numba.get_num_threads())]))
'''


def write_learners(folder, monkeypatch):
    """Make the module `misbehaving` in a folder, and let it be found."""
    (folder / "misbehaving.py").write_text(LEARNERS)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "misbehaving", raising=False)


def setting_of(learner=LEARNER, steps=2_000, mdp=RIVER):
    return Setting(mdp, ids.mdp(mdp).digest, learner, ids.source_of(learner), steps, 20)


def task(learner=LEARNER, steps=2_000, seeds=(0, 1), mdp=RIVER, **more):
    return Task(((setting_of(learner, steps, mdp), tuple(seeds)),), "launch", **more)


def setting(one):
    """The only setting of a task."""
    ((found, _),) = one.runs
    return found


def checkpoint(outcome):
    """The only checkpoint of an outcome."""
    (found,) = outcome.checkpoints.values()
    return found


def drive(executor, tasks, seconds=600.0):
    """What comes back of each task, the first time; every task must."""
    waiting, back, until = dict(enumerate(tasks)), {}, time.monotonic() + seconds
    for number, one in waiting.items():
        while not executor.free():
            _collect(executor, back, until)
        executor.submit(number, one)
    while len(back) < len(tasks):
        _collect(executor, back, until)
    return [back[number] for number in range(len(tasks))]


def _collect(executor, back, until):
    assert time.monotonic() < until, "tasks do not come back"
    for number, outcome in executor.collect(1.0):
        assert number not in back
        back[number] = outcome


def through(executor, one, times=10_000):
    """A task of one batch to its end, from checkpoint to checkpoint; with how many slices it took."""
    for slices in range(1, times):
        (outcome,) = drive(executor, [one])
        assert isinstance(outcome, Outcome), outcome
        if outcome.rows is not None:
            return outcome.rows, slices
        assert outcome.checkpoints
        one = one._replace(checkpoints=outcome.checkpoints)
    raise AssertionError("it does not end")


def bits(rows):
    """All of some rows but what need not be the same."""
    return rows.drop_columns(["seconds", "launch"]).to_pylist()


def wait_for(file, lines=1, seconds=300.0):
    """The lines of a file, once there are so many."""
    until = time.monotonic() + seconds
    while not file.exists() or len(file.read_text().split()) < lines:
        assert time.monotonic() < until, f"{file} was not written"
        time.sleep(0.02)
    return file.read_text().split()


def gone(pid, seconds=200.0):
    """Whether a process that is not a child of this one ends."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False
