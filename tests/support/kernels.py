"""Kernels without a GPU: compiled to PTX for sm_90, by what numba-cuda has for that.

    python -m tests.support.kernels ID ...

prints a line of JSON for every id: how long its PTX is, or why there is none. Where all seeds plan together it is that
of the loops over seeds that a plan and `add` call; with those that only a GPU calls.
"""

import gc
import json
import sys
from types import SimpleNamespace

import numpy as np
from numba import typeof, types

from ravi import ids
from ravi._jit import teams
from ravi._jit.cuda import compiling, cuda_words
from ravi._jit.functions import instance
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import gpu as device
from ravi.runtime.walk import empty_path, world_of
from ravi.runtime.world import Tabular

HOPPER = (9, 0)


def type_of(leaf):
    """As an array of a GPU has it."""
    if isinstance(leaf, (teams.Buffer, np.ndarray)):
        return types.Array(typeof(np.empty(0, leaf.dtype)).dtype, len(leaf.shape), "C")
    if isinstance(leaf, tuple):
        parts = [type_of(part) for part in leaf]
        return types.NamedTuple(parts, type(leaf)) if hasattr(leaf, "_fields") else types.Tuple(tuple(parts))
    return typeof(leaf)


def compiled_for(threads, function, given, rolled=False):
    """The PTX of a function of these types, for teams of so many threads."""
    from numba.cuda import dispatcher

    cuda = cuda_words()
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=HOPPER)
    with compiling(threads, rolled=rolled):
        return cuda.compile_ptx(function, given, cc=HOPPER)[0]


def loops(learner, n=2):
    """Every loop over seeds that an epoch calls -> its arguments, with scratch."""
    called, plain = {}, teams.over_seeds

    def noted(loop, where, *arguments, scratch=()):
        called[loop] = (*arguments, *(teams.Buffer((1, *shape)) for shape in scratch))
        plain(loop, where, *arguments, scratch=scratch)

    holders = [one for one in list(sys.modules.values()) if getattr(one, "over_seeds", None) is plain]
    for module in holders:
        module.over_seeds = noted
    learner.add(learner.plan(learner.init(np.arange(n, dtype=np.uint64))), empty_path(n, 8))
    for module in holders:
        module.over_seeds = plain
    return called


def together_ptx(learner, threads=64):
    """All loops of a learner whose seeds plan together, for teams of several warps."""
    matrices = np.ones((2, 3, 3))
    only_there = {teams._tiles_of_product: (matrices,) * 3, teams._squares: (matrices, matrices[0])}
    return "".join(
        compiled_for(threads, instance(device._over, loop=loop), (types.int64, type_of(arguments)))
        for loop, arguments in (loops(learner) | only_there).items()
    )


def ptx(text, measured, threads=32):
    """The kernel of a learner for such teams; with all measures, or with none."""
    mdp = ids.mdp("ensemble/3,6,2,2" if "mixture" in text else "riverswim/40")
    learner = ids.learner(text, mdp, 100)
    if learner.seedwise.joint:
        return together_ptx(learner)
    options = {"record": ["stream", "trajectory"], "points": 5, "pad": False, "keep_epochs": True, "measured": measured}
    measures = Tabular(mdp).scores(learner, 100, options).measures
    batch = Tabular(mdp).begin(learner, np.arange(2, dtype=np.uint64), measures)
    recorders = [one.recorder for one in measures]
    arguments = compiled_driver.arguments(
        learner, world_of(mdp), 100, False, recorders, batch, teams=2, epochs=8, length=64
    )
    given = (types.int64, types.int64, *(type_of(one) for one in arguments))
    made = compiled_for(
        threads, compiled_driver.run_function(*compiled_driver.functions(learner, recorders)), given, rolled=True
    )
    assert "nounroll" in made, "its loops may be unrolled"
    return made


if __name__ == "__main__":
    gc.disable()  # what is compiled stays to the end
    for place, text in enumerate(sys.argv[1:]):
        try:
            made = ptx(text, measured=place == 0)
            print(json.dumps([text, len(made), "ntid.x" in made]), flush=True)
        except Exception as error:
            print(json.dumps([text, 0, f"{type(error).__name__}: {error}"[:500]]), flush=True)
