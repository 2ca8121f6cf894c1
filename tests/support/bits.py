"""The bits of a short run of every learner, each where it first can run: `python -m tests.support.bits SECONDS` prints
them as JSON, made by Python for so many seconds, as `ravi._jit.functions.sparing` has it, before anything is compiled.
"""

import hashlib
import json
import sys
import warnings

import numpy as np

import ravi
from ravi import ids
from ravi._jit import functions as compiled
from ravi._jit.cache import CacheWarning

WORLDS = ("riverswim/6,discount=0.9", "ensemble/3,6,2,2,discount=0.8", "garnet/5,3,2,discount=0.8")
STEPS = 60


def digest(results):
    found = hashlib.sha256()
    for name in sorted(results):
        found.update(name.encode() + np.asarray(results[name]).tobytes())
    return found.hexdigest()


def bits(steps=STEPS):
    """Learner -> digest of what its run gave; of the first world that it takes."""
    found = {}
    for name in ids.LEARNERS:
        for world in WORLDS:
            try:
                learner = ids.learner(name, ids.mdp(world), steps)
            except ValueError:
                continue  # of another kind of problem
            found[name] = digest(ravi.run(learner, world, steps, 2).results)
            break
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore", CacheWarning)
    compiled.FEW, compiled.WORTH = sys.maxsize, np.inf
    with compiled.sparing(float(sys.argv[1])):
        found = bits()
    print(json.dumps(found))
