"""The names that the author of a learner needs, from one place.

    from ravi.kit import Counts, Learner, Path, Problem, at_reset, tallies, tally, validation

What a release may change of them is what it may change of `ravi.__all__` (docs/reference/versions.md); the modules in
which they live may move. docs/reference/kit.md has each name by what it is for.
"""

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, Buffer, each, team
from ravi.core import MDP, Array, Estimator, Learner, Measure, Path, Problem, Seedwise, Until
from ravi.estimators.counts import Counts, counts, tallies, tally
from ravi.planning.bellman import expect_with
from ravi.random import uniform
from ravi.runtime import ranges
from ravi.runtime.seedwise import compiled_learner
from ravi.schedules import at_reset, doubling, never, reset_or_doubling, whenever
from ravi.testing import Breach, check
from ravi.validation import InputError

__all__ = [
    "MDP",
    "NEVER",
    "Array",
    "Breach",
    "Buffer",
    "Counts",
    "Estimator",
    "InputError",
    "Learner",
    "Measure",
    "Path",
    "Problem",
    "Seedwise",
    "Until",
    "at_reset",
    "check",
    "compiled",
    "compiled_learner",
    "counts",
    "doubling",
    "each",
    "expect_with",
    "never",
    "ranges",
    "reset_or_doubling",
    "tallies",
    "tally",
    "team",
    "uniform",
    "validation",
    "whenever",
]  # fmt: skip
