"""MBIE: model-based interval estimation, discounted optimism over L1 balls.

Paper: A. L. Strehl, M. L. Littman, "An analysis of model-based interval estimation for Markov decision processes",
JCSS 74, 2008.
Setting: discounted, tabular, PAC.
Trust: CHECKED: the radius against A. L. Strehl, L. Li, M. L. Littman, JMLR 10, 2009 (Lemma 14), which restates it, the
inner maximum against Jaksch et al. 2010 (Figure 2), who take it from here, delta_T and the recursion against public
notes and code. The paper itself was not at hand. The coverage of the radius is tested.

With n the visits of (x, a) before step t, of which the first m count:

    d(x, a) = sqrt(2 (ln(2^X - 2) + ln(1 / delta_T)) / n),                 delta_T = delta / (2 X A m)
    Q(x, a) = H                                                            where n = 0
    Q(x, a) = r(x, a) + gamma max {<p, V> : ||p - p_hat(. | x, a)||_1 <= d}     elsewhere,   V(x) = max_a Q(x, a)
    a_t     = argmax_a Q(x_t, a)                                           the first of the best

support=on: p lives on the support S(x, a), and d has ln(2^B - 2) for ln(2^X - 2), as the inequality of
Weissman et al. has it for rows of B outcomes. Where n = 0, Q(x, a) = r(x, a) + gamma max_{S(x, a)} V: every kernel on
S(x, a) is plausible. V >= V* as before, and Q is no larger, so the PAC argument goes through with B for X.

Constants: the paper's, with delta = 1/T; `scale` multiplies d. The paper proves its bound for some m of order (X +
ln(X A m / delta)) H^4 / eps^2, after which more samples are not needed; m only bounds the sample sizes that the balls
hold for. m = T does so for any eps, and freezes nothing; it is the default. An explicit `m` is taken as it is. Rewards
are known: the delta / 2 that the paper spends on them is kept back, so the balls hold with probability 1 - delta / 2.
Guarantee: all but O~(X^2 A H^6 / eps^3) steps are eps-optimal, with probability 1 - delta; with support=on all but
O~(B X A H^6 / eps^3).
Composition: counts from 0, frozen at m x L1 ball x the fixed point after every step x epochs end when the policy
changes.
Cost: O(1) per step, and B^2 at most per backup of what the step has changed by more than the tolerance allows: all X A
pairs where max V has (`ravi.learners.pac.core`).
Deviations: rewards are known, so the paper's reward radius is 0. V is accurate to `tolerance`. With one outcome d = 0.
"""

from math import inf, log, log1p, sqrt

from ravi import validation
from ravi.core import Learner, Problem
from ravi.learners.options import takes
from ravi.learners.pac.core import Options, optimistic
from ravi.optimism.supported import is_told, outcomes


@takes(without=("accuracy",))
def mbie(problem: Problem, T: int, o: Options) -> Learner:
    """MBIE with its published radii; `scale` multiplies them."""
    X, A, m = problem.states, problem.actions, T if o.m is None else validation.whole(o.m, "m")
    subsets = log_subsets(outcomes(problem, is_told(o.support)))
    radius = o.scale * sqrt(max(0.0, 2 * (subsets - log(o.delta / (2 * X * A * m)))))
    settings = {"scale": o.scale, "delta": o.delta, "m": m, "radius": radius}
    return optimistic("mbie", problem, o, settings, radius=radius, most=m)


def log_subsets(X: int) -> float:
    """ln(2^X - 2), without 2^X."""
    return X * log(2) + log1p(-(2.0 ** (1 - X))) if X > 1 else -inf
