"""UCRL2: optimism in the face of uncertainty, over L1 balls around the empirical kernel.

Paper: T. Jaksch, R. Ortner, P. Auer, "Near-optimal regret bounds for reinforcement learning", JMLR 11, 2010.
Setting: average reward, tabular, communicating.
Trust: CHECKED: radii, stopping rule, phases and the inner maximum against the paper (Figures 1 and 2) and public code;
on the same counts the maxima and extended value iteration agree with that code (docs/explanation/trust.md).

In phase k, which starts at t_k, with n the visits of (x, a) before it:

    ||p - p_hat(. | x, a)||_1 <= d(x, a) = sqrt(14 X ln(2 A t_k / delta) / max(1, n))
    u'(x) = max_a {r(x, a) + max_p <p, u>}                       until span(u' - u) <= 1 / sqrt(t_k)
    play the greedy policy until some pair has been played max(1, n) times in the phase.

support=on: p lives on the support of the pair, and d = sqrt(14 B ln(2 A t_k / delta) / max(1, n)). The paper has d from
Weissman et al. (2003), by which a row with m outcomes is farther off with probability (2^m - 2) exp(-n d^2 / 2) at
most; with m = B for m = X, 2 ln(2^B 20 X A t^7 / delta) <= 14 B ln(2 A t / delta) as before where B >= 2 and
X <= 204 (A / delta)^13, and where B = 1 the row is known. The rest of the proof asks of the set that it holds P.

Constants: the paper's, with delta = 1/T. `scale` multiplies d.
Guarantee: regret 34 D X sqrt(A T ln(T / delta)) with probability 1 - delta, D the diameter; with support=on
34 D sqrt(B X A T ln(T / delta)): the sum of the radii has sqrt(B) for sqrt(X), and where the bound is below T, which is
the only case to prove, the paper's bounds of the other terms have no more than sqrt(X A T) in them.
Composition: counts from 0 x L1 ball x extended value iteration x doubling.
Cost: O(1) per step; X A B per sweep, B the successors stored per pair; at most X A log2(8 T / (X A)) plans.
Deviations: rewards are known, so the paper's reward radius is 0; the reset chain is planned and scored, and u starts
where the last phase ended (`ravi.learners.ucrl.core`). The paper ends a phase when the pair that it is about to play
has had its visits; here a phase ends right after the step that makes them so many, whatever comes next. The paper stops
a plan at a span below 1 / sqrt(t_k); here one that is equal will do.
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


@takes(without=("span",))
def ucrl2(problem: Problem, T: int, o: Options) -> Learner:
    """UCRL2 with its published radii; `scale` multiplies them."""
    scale, delta, told = o.scale, o.delta, o.told
    m, ball = outcomes(problem, told), supported.l1 if told else sets.l1
    one = np.ones((1, problem.states, problem.actions))
    validation.derived(lambda: scale * float(radius(one, np.array([T]), delta, m).max()), "the radius", scale=scale)
    plausible = Plausible(l1_radii, (scale, delta, m, problem.actions), ball)
    return extended("ucrl2", problem, plausible, o)


def radius(visits: Array, t: Array, delta: float, m: int | None = None) -> Array:
    """d(x, a) at time t (n,), of shape (n, X, A), for rows of m outcomes, X unless given."""
    _, X, A = visits.shape
    return radii_of(l1_radii, (1.0, delta, X if m is None else m, A), visits, t)[0]


@compiled
def l1_radii(constants, visits, t, radius, constant):  # type: ignore[no-untyped-def]
    """`scale` times d(x, a), of one seed."""
    scale, delta, m, A = constants
    log = math.log(2 * A * t / delta)
    for p in each(visits.shape[0]):
        radius[p] = scale * math.sqrt(14 * m * log / max(visits[p], 1))
