"""R-MAX: what was not played m times is worth H.

Paper: R. I. Brafman, M. Tennenholtz, "R-MAX: a general polynomial time algorithm for near-optimal reinforcement
learning", JMLR 3, 2002; in the discounted form of A. L. Strehl, L. Li, M. L. Littman, "Reinforcement learning in
finite MDPs: PAC analysis", JMLR 10, 2009.
Setting: discounted, tabular, PAC.
Trust: CHECKED for the algorithm, the order of m and the bound, against the second paper (Algorithm 1, Theorem 11);
DERIVED for the constant of m, which it leaves open.

A pair is known once it was played m times, and is then counted no more:

    Q(x, a) = H                                      where n < max(m, 1)
    Q(x, a) = r(x, a) + gamma <p_hat, V>             elsewhere,      V(x) = max_a Q(x, a)
    a_t     = argmax_a Q(x_t, a)                     the first of the best

Constants: m = ceil(scale^2 2 (X ln 2 + ln(X A / delta)) H^4 / eps^2) with eps = `accuracy` H, so that `accuracy` is a
target for the gap (0.1 unless given), and delta = 1/T. By Weissman et al. (2003), after m visits ||p_hat - p||_1 <= eps
/ H^2 for every pair with probability 1 - delta; then every policy's value is within eps / 2 of its value under p_hat.
An explicit `m` is taken as it is. With m = 0 nothing is unknown but what was never played, and nothing is frozen: that
is the certainty-equivalent learner, bit for bit.
Guarantee: all but O~(X^2 A H^6 / eps^3) steps are eps-optimal, with probability 1 - delta. m exceeds T in most runs;
then R-MAX plays the first action of every state for ever.
Composition: counts from 0, frozen at m x H where unknown x value iteration x when a pair becomes known.
Cost: O(1) per step; a plan costs A B per backup, for what the new pair has changed; at most X A plans (m > 0).
Deviations: rewards are known. V is accurate to `tolerance` (`ravi.learners.pac.core`).
"""

from math import ceil, log

from ravi import validation
from ravi.core import Learner, Problem
from ravi.learners.options import takes
from ravi.learners.pac.core import UNLIMITED, Options, optimistic


@takes(without=("support",))
def r_max(problem: Problem, T: int, o: Options) -> Learner:
    """R-MAX with m visits until a pair is known; `scale` multiplies the radius, and so m by its square."""
    scale, delta = o.scale, o.delta
    X, A, H = problem.states, problem.actions, problem.horizon
    eps = o.accuracy * H
    theory = lambda: scale**2 * 2 * (X * log(2) + log(X * A / delta)) * H**4 / eps**2  # noqa: E731
    if o.m is None:
        m = ceil(validation.derived(theory, "m", scale=scale, accuracy=o.accuracy))
    else:
        m = validation.whole(o.m, "m", 0)
    settings = {"scale": scale, "delta": delta, "accuracy": o.accuracy, "m": m}
    return optimistic("r-max", problem, o, settings, least=max(m, 1), most=m or UNLIMITED)
