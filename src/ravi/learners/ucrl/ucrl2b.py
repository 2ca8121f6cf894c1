"""UCRL2B: UCRL2 with an empirical Bernstein interval for every probability.

Paper: R. Fruit, M. Pirotta, A. Lazaric, "Improved analysis of UCRL2 with empirical Bernstein inequality", technical
report, arXiv 2007.05456, 2020.
Setting: average reward, tabular, communicating.
Trust: CHECKED: both radii, with ln(6 X A n / delta), against the authors' public code as of January 2019, whose log
says that it follows R. Fruit's thesis; the paper itself could not be opened. A later public implementation, of others,
has ln(18 X A n / delta), which is delta / 3 in the place of delta; either is enough for the inequality below.

In phase k, which starts at t_k, with n+ = max(1, n), n the visits of (x, a) before it, and l = ln(6 X A n+ / delta):

    |p(x') - p_hat(x')| <= 2 sqrt(p_hat(x') (1 - p_hat(x')) l / n+) + 6 l / n+        for every x'
    u'(x) = max_a {r(x, a) + max_p <p, u>}                       until span(u' - u) <= 1 / sqrt(t_k)
    play the greedy policy until some pair has been played max(1, n) times in the phase.

support=on: x' is in the support of (x, a), p is 0 elsewhere, and l = ln(6 sqrt(X B) A n+ / delta): of the X^2 A
entries X B A are not known to be 0, and the sum below is over those; it comes to the same.

Constants: those of the authors' code, with delta = 1/T. They are the inequality of Audibert, Munos and Szepesvari,
2009: |p - p_hat| <= sqrt(2 p_hat (1 - p_hat) ln(3 / d) / n) + 3 ln(3 / d) / n with probability 1 - d, at
d = 3 (delta / (6 X A n))^2: summed over X^2 A entries and all n, d is at most delta^2 pi^2 / (72 A). `scale` multiplies
the radii.
Guarantee: regret O~(sqrt(D Gamma X A T)) with probability 1 - delta, D the diameter, Gamma the successors of a pair;
with support=on too, where the terms of lower order, which sum 6 l / n+ over x', have B for X.
Composition: counts from 0 x Bernstein box x extended value iteration x doubling.
Cost: O(1) per step; X A B per sweep, B the successors stored per pair; at most X A log2(8 T / (X A)) plans.
Deviations: rewards are known, so the paper's reward radius is 0; a pair that was never played may lead anywhere, also
where scale makes the radii small; plans stop at UCRL2's accuracy, and phases end as they do there
(`ravi.learners.ucrl.ucrl2`); the reset chain is planned and scored, and u starts where the last phase ended
(`ravi.learners.ucrl.core`).
"""

import math

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Array, Learner, Problem
from ravi.learners.options import takes
from ravi.learners.ucrl.core import Options, Plausible, extended, radii_of
from ravi.optimism import sets, supported
from ravi.optimism.supported import outcomes

LARGEST = 1e5  # more than any radius: 6 ln(6 X A n / delta) at n = 1, delta >= 1e-100


@takes(without=("span",))
def ucrl2b(problem: Problem, T: int, o: Options) -> Learner:
    """UCRL2B with its published radii; `scale` multiplies them."""
    return extended("ucrl2b", problem, box(problem, o), o)


def box(problem: Problem, o: Options) -> Plausible:
    """The kernels within `scale` times the radii."""
    scale, told = o.scale, o.told
    validation.derived(lambda: scale * LARGEST, "the radius", scale=scale)
    within = supported.bernstein if told else sets.bernstein
    return Plausible(
        box_radii, (scale, *_numbers(problem.states, problem.actions, outcomes(problem, told), o.delta)), within
    )


def radius(visits: Array, delta: float, m: int | None = None) -> tuple[Array, Array]:
    """What multiplies sqrt(p_hat (1 - p_hat)), and what is added, (n, X, A), for rows of m outcomes, X unless given."""
    n, X, A = visits.shape
    return radii_of(box_radii, (1.0, *_numbers(X, A, X if m is None else m, delta)), visits, np.zeros(n, np.int64))


def _numbers(X: int, A: int, m: int, delta: float) -> tuple[float, float]:
    return 6 * math.sqrt(X * m) * A, delta


@compiled
def box_radii(constants, visits, t, radius, constant):  # type: ignore[no-untyped-def]
    """`scale` times both, of one seed."""
    scale, many, delta = constants
    for p in each(visits.shape[0]):
        n = max(visits[p], 1.0)
        l = math.log(many * n / delta)
        radius[p], constant[p] = scale * (2 * math.sqrt(l / n)), scale * (6 * l / n)
