"""Kernels without a GPU: compiled to PTX for sm_90, by what numba-cuda has for that.

    python -m tests.support.kernels ID ...

prints a line of JSON for every id: how long its PTX is, or why there is none.
"""

import gc
import json
import sys
from types import SimpleNamespace

import numpy as np
from numba import typeof, types

from ravi import ids, teams, whole
from ravi.cuda import compiling, cuda_words
from ravi.walk import world_of
from ravi.worlds import Tabular

HOPPER = (9, 0)


def type_of(leaf):
    """As an array of a GPU has it."""
    if isinstance(leaf, (teams.Room, np.ndarray)):
        return types.Array(typeof(np.empty(0, leaf.dtype)).dtype, len(leaf.shape), "C")
    if isinstance(leaf, tuple):
        parts = [type_of(part) for part in leaf]
        return types.NamedTuple(parts, type(leaf)) if hasattr(leaf, "_fields") else types.Tuple(tuple(parts))
    return typeof(leaf)


def ptx(text, measured, threads=32):
    """The kernel of a learner for such teams; with all measures, or with none."""
    from numba.cuda import dispatcher

    cuda = cuda_words()
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=HOPPER)
    mdp = ids.mdp("riverswim/6")
    learner = ids.learner(text, mdp, 100)
    options = {"record": ["stream", "trajectory"], "points": 5, "pad": False, "keep_epochs": True, "measured": measured}
    measures = Tabular(mdp).scores(learner, 100, options).measures
    batch = Tabular(mdp).begin(learner, np.arange(2, dtype=np.uint64), measures)
    arguments = whole.arguments(learner, world_of(mdp), 100, False, measures, batch, teams=2, epochs=8, length=64)
    given = (types.int64, types.int64, *(type_of(one) for one in arguments))
    with compiling(threads):
        return cuda.compile_ptx(whole.framed(*whole.functions(learner, measures)), given, cc=HOPPER)[0]


if __name__ == "__main__":
    gc.disable()  # what is compiled stays to the end
    for place, text in enumerate(sys.argv[1:]):
        try:
            made = ptx(text, measured=place == 0)
            print(json.dumps([text, len(made), "ntid.x" in made]), flush=True)
        except Exception as error:
            print(json.dumps([text, 0, f"{type(error).__name__}: {error}"[:500]]), flush=True)
