"""MBIE-EB: model-based interval estimation with an exploration bonus beta / sqrt(n).

Paper: A. L. Strehl, M. L. Littman, "An analysis of model-based interval estimation for Markov decision processes",
JCSS 74, 2008.
Setting: discounted, tabular, PAC.
Trust: CHECKED: recursion, start and beta against public notes of a course that writes out the algorithm. The paper
itself was not at hand. Compared with an independent transcription on whole runs.

With n the visits of (x, a) before step t, of which the first m count:

    Q(x, a) = H                                                              where n = 0
    Q(x, a) = min{H, r(x, a) + gamma <p_hat(. | x, a), V> + beta / sqrt(n)}  elsewhere,      V(x) = max_a Q(x, a)
    a_t     = argmax_a Q(x_t, a)                                             the first of the best

support=on: Q(x, a) is at most r(x, a) + gamma max_{S(x, a)} V, S(x, a) the support, and is that where n = 0.
No kernel on S(x, a) is worth more, so V >= V* as before, and Q is no larger than without. No number of outcomes is in
beta: X A counts pairs.

Constants: beta = H sqrt(ln(2 X A m / delta) / 2), by Hoeffding for r + gamma V*(y) in [0, H] at every n <= m, with
delta = 1/T; `scale` multiplies it. As for MBIE, the paper proves its bound for some m of order (X + ln(X A m / delta))
H^4 / eps^2; m = T holds for any eps, freezes nothing, and is the default. An explicit `m` is taken as it is.
Guarantee: all but O~(X^2 A H^6 / eps^3) steps are eps-optimal, with probability 1 - delta. V >= V* at every step with
probability 1 - delta (up to the tolerance). With support=on likewise.
Composition: counts from 0, frozen at m x beta / sqrt(n) x the fixed point after every step x epochs end when the
policy changes.
Cost: O(1) per step, and A B per backup of what the step has changed by more than the tolerance allows
(`ravi.learners.pac.core`); at most one plan per step.
Deviations: rewards are known. Q is cut at H, which the paper leaves out: V* <= H, so V stays optimistic. V is accurate
to `tolerance`. With scale = 0 this is the certainty-equivalent learner, bit for bit, where m exceeds the visits.
"""

from math import log, sqrt

from ravi import validation
from ravi.core import Learner, Problem
from ravi.learners.options import takes
from ravi.learners.pac.core import Options, optimistic


@takes(without=("accuracy",))
def mbie_eb(problem: Problem, T: int, o: Options) -> Learner:
    """MBIE-EB with its published beta; `scale` multiplies it."""
    X, A, H, m = problem.states, problem.actions, problem.horizon, T if o.m is None else validation.whole(o.m, "m")
    beta = o.scale * H * sqrt(log(2 * X * A * m / o.delta) / 2)
    settings = {"scale": o.scale, "delta": o.delta, "m": m, "beta": beta}
    return optimistic("mbie-eb", problem, o, settings, beta=beta, most=m)
