"""Teams of several threads, played in plain Python: what a GPU makes of the words of `ravi._jit.teams`, thread by
thread.

Between two meetings (`sync`, or a sum) the threads of a team run one after another, in an order that changes from one
meeting to the next. A thread that reads what another has yet to write then reads something old; a meeting that not all
threads reach is an error. Run as a program, where nothing is compiled:

    NUMBA_DISABLE_JIT=1 python -m tests.support.teams_played ID ...

prints a line of JSON for every id: what differs from the run of one thread.
"""

import gc
import importlib
import inspect
import json
import random
import sys
import textwrap
import threading
from functools import cache
from types import FunctionType

import numpy as np

import ravi
from ravi import ids
from ravi._jit import teams
from ravi.estimators import gram, ridge, variance_weighted
from ravi.estimators.variance_weighted import Constants
from ravi.learners.ravi_ucb import inner_counts
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import tree
from ravi.runtime.tree import Log
from ravi.runtime.walk import empty_path, world_of
from ravi.runtime.world import Tabular, to_run
from ravi.testing import spy


class Diverged(Exception):
    """Threads of a team are not at the same meeting."""


class Team:
    """`size` threads that run `work`, one at a time."""

    def __init__(self, size, seed, warp=32):
        self.size, self.warp, self.random = size, warp, random.Random(seed)
        self.turns = [threading.Semaphore(0) for _ in range(size)]
        self.order, self.next = self._shuffled(), 0
        self.meeting, self.values, self.ended, self.error = None, {}, 0, None

    def _shuffled(self):
        return self.random.sample(range(self.size), self.size)

    def run(self, work):
        mine = threading.local()
        teams.at = lambda: mine.place
        threads = [threading.Thread(target=self._lane, args=(lane, work, mine)) for lane in range(self.size)]
        for thread in threads:
            thread.start()
        self.turns[self.order[0]].release()
        for thread in threads:
            thread.join()
        teams.at = teams.Place
        if self.error is not None:
            raise self.error

    def _lane(self, lane, work, mine):
        mine.place = Lane(self, lane)
        self.turns[lane].acquire()
        try:
            if self.error is None:
                work()
                self.arrive("the end")
        except BaseException as error:
            self.error = self.error or error
            for turn in self.turns:
                turn.release()

    def arrive(self, where, lane=None, value=None):
        """The thread is at a meeting: the next one runs, and after the last all go on."""
        if self.meeting is None:
            self.meeting, self.values = where, {}
        if self.meeting != where:
            raise Diverged(f"one thread is at {where}, another at {self.meeting}")
        self.values[lane] = value
        self.next += 1
        if self.next == self.size:
            self.meeting, self.next, self.order = None, 0, self._shuffled()
            self.agreed = [self.values[lane] for lane in sorted(self.values)] if lane is not None else []
        self.turns[self.order[self.next]].release()


class Lane(teams.Place):
    teams = 1

    def __init__(self, team, lane):
        self.team, self.lane, self.size, self.warp = team, lane, team.size, team.warp

    def wait(self):
        self.agree(None, len, "sync")

    def agree(self, value, how, where=None):
        self.team.arrive(where or how.__name__, self.lane, value)
        self.team.turns[self.lane].acquire()
        if self.team.error is not None:
            raise Diverged("another thread failed")
        return how(self.team.agreed)


class FromTheFront(np.ndarray):
    """An array as kernels take it, in which no index is counted from the end (`ravi._jit.cuda`)."""

    def __getitem__(self, index):
        counted(index)
        return from_array(self, index)

    def __setitem__(self, index, value):
        counted(index)
        into_array(self, index, value)


from_array, into_array = np.ndarray.__getitem__, np.ndarray.__setitem__
WHOLE = (int, np.integer)


def counted(index):
    """An error where an index is negative. Half of a run is spent here: hence no generator."""
    for one in index if type(index) is tuple else (index,):
        if isinstance(one, WHOLE) and one < 0:
            raise IndexError(f"an index of {index} in a kernel")


def play(text, mdp, T, size, record=(), seed=0):
    """A run of one seed by a team: what its arrays hold at the end."""
    mdp = ids.mdp(mdp)
    learner = ids.learner(text, mdp, T)
    pad = mdp.criterion == "discounted"
    record = [one for one in record if pad or one == "stream"]
    options = {"record": record, "points": 5, "pad": pad, "keep_epochs": True, "measured": True}
    measures = to_run(mdp).scores(learner, T, options).measures
    batch = Tabular(mdp).begin(learner, np.array([3], np.uint64), measures)
    recorders = [one.recorder for one in measures]
    arguments = compiled_driver.arguments(
        learner, world_of(mdp), T, pad, recorders, batch, teams=1, epochs=T, length=16
    )
    frame = compiled_driver.run_function(*compiled_driver.functions(learner, recorders))
    there = teams.map_leaves(
        lambda leaf: leaf.view(FromTheFront) if isinstance(leaf, np.ndarray) else leaf, teams.allocate(arguments)
    )
    if size == 1:
        frame(T, T, *there)
    else:
        Team(size, seed).run(lambda: frame(T, T, *there))
    held = {name: leaf for name, leaf in tree.leaves(batch) if isinstance(leaf, np.ndarray)}
    rows = measures[0].recorder.rows(arguments[-1][0])
    return held | {"T_k": rows[0], "gap_k": rows[1]}


@cache
def alone(*given, **options):
    """The run of one thread, to which it is all the same whether a sync() is there."""
    return play(*given, 1, **options)


def different(text, mdp, T, size, **options):
    """The arrays that differ from those of one thread, by more than rounding."""
    one, several = alone(text, mdp, T, **options), play(text, mdp, T, size, **options)
    whole_numbers = {name for name, array in one.items() if array.dtype.kind in "iub"}
    return [
        name
        for name in one
        if not (
            np.array_equal(one[name], several[name])
            if name in whole_numbers
            else np.allclose(one[name], several[name], rtol=1e-7, atol=1e-7, equal_nan=True)
        )
    ]


def different_alone(text, mdp, T):
    """The arrays that differ, in any bit, between the two drivers of a CPU."""
    runs = [
        ravi.run(
            text, mdp, T, 2, record=["stream"], points=5, pad="episode" not in mdp, progress=False, measures=measures
        )
        for measures in ([], [spy([])])  # which only Python can record
    ]
    one, other = ({name: plain(leaf) for name, leaf in tree.leaves(run.batch)} for run in runs)
    return [name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)]


def plain(leaf):
    return leaf.table if isinstance(leaf, Log) else leaf


def weighted(problem):
    return variance_weighted.variance_weighted(problem, Constants(3.0, problem.dimension, 1.0, 1.0, 1.0, 0.1, 0.01))


REGRESSIONS = {ridge: ridge.ridge, variance_weighted: weighted}


def regress(module, size, seed=0):
    """What a regression holds after some steps: added by one thread, or by warps of two."""
    mdp, n, rng = ids.mdp("ensemble/5,7,2,2,discount=0.7"), 2, np.random.default_rng(4)
    estimator, path = REGRESSIONS[module](mdp.problem), empty_path(n, 37)
    for array, most in ((path.state, 7), (path.action, 2), (path.successor, 7)):
        array[...] = rng.integers(0, most, array.shape)
    path.length[...] = 37, 6
    empty, V = estimator.init(n), rng.random((n, 7))
    D = type(empty)(*map(np.array, empty))
    if size == 1:
        estimator.add(D, V, path)
    else:
        given = []

        def kept(loop, where, *arguments, scratch):  # arrays that all share
            given.extend([loop, arguments, [np.empty((1, *shape)) for shape in scratch]])
            arguments[-1][:] = 1.0  # sound

        module.over_seeds = kept
        estimator.add(D, V, path)
        module.over_seeds = teams.over_seeds
        loop, arguments, scratch = given
        Team(size, seed, warp=2).run(lambda: loop(0, n, *arguments, *scratch))
    return D


def regressions_differ():
    return any(
        not np.array_equal(a, b)
        for module in REGRESSIONS
        for a, b in zip(regress(module, 1), regress(module, 6), strict=True)
    )


def without_sync(function, which):
    """Take the `which`-th sync() out of a plain function, wherever it is used."""
    lines, start = inspect.getsourcelines(function)
    syncs = [k for k, line in enumerate(lines) if line.strip().startswith("sync()")]
    place = syncs[which]
    lines[place] = lines[place].replace("sync()", "pass")
    body = textwrap.dedent("".join(lines))
    body = body[body.index("def ") :]
    made = {}
    exec(body, function.__globals__, made)
    put(function, made[function.__name__].__code__)


def put(function, code):
    """Give a plain function this code, and with it all that `ravi._jit.functions.bound` made of it."""
    function.__code__ = code
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__name__.startswith(f"{function.__name__}_with_"):
            one.__code__ = code


def caught(name, which):
    """Whether a run differs, or fails, when the `which`-th sync() of a function is taken out of it."""
    module, function = name.split(":")
    plain = getattr(importlib.import_module(module), function)
    kept = plain.__code__
    without_sync(plain, which)
    try:
        if plain.__module__ in (ridge.__name__, variance_weighted.__name__, gram.__name__):
            return regressions_differ()
        return any(different(text, mdp, T, 3) for text in MUTATED for mdp, T in PLAYED)
    except Exception:
        return True
    finally:
        put(plain, kept)


inner_counts.MANY = 8  # states: the first of these is worked on in rows, the second in columns
PLAYED = (("riverswim/4,discount=0.7", 30), ("garnet/19,2,2,discount=0.7", 20))
EPISODES = (("riverswim/4,criterion=episodic,episode=5", 32),)


def takes(text, mdp):
    """Whether a learner has a compiled form for an MDP."""
    try:
        return ids.learner(text, ids.mdp(mdp), 30).seedwise is not None
    except ValueError:
        return False


MUTATED = (
    "ravi-ucb,scale=0.01,step_scale=30", "ravi-ucb+,inner=1,scale=0.1", "ravi-ucb+,inner=2,scale=0.1",
    "ravi-ucb+,inner=2,fresh=off", "ravi-ucb+/unknown-rewards,scale=0.1,inner=3", "psrl,support=on", "psrl",
)  # fmt: skip

if __name__ == "__main__":
    np.seterr(over="ignore")
    if sys.argv[1] == "--without":
        for name, places in json.loads(sys.argv[2]).items():
            for which in places:
                print(json.dumps([name, which, caught(name, which)]), flush=True)
        sys.exit()
    print(json.dumps(["regressions", {"add": ["differs"] if regressions_differ() else []}]), flush=True)
    for text in sys.argv[1:]:
        found = {}
        worlds = [one for one in PLAYED + EPISODES if takes(text, one[0])]
        for mdp, T in worlds:
            try:
                found[mdp] = different(text, mdp, T, 3, record=("stream", "trajectory"))
                found[mdp] += [f"{name}, alone" for name in different_alone(text, mdp, T)]
            except Exception as error:
                found[mdp] = [f"{type(error).__name__}: {error}"]
        print(json.dumps([text, found]), flush=True)
