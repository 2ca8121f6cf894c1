"""SCAL: UCRL2B for a learner that knows a bound on the span of the optimal bias.

Paper: R. Fruit, M. Pirotta, A. Lazaric, R. Ortner, "Efficient bias-span-constrained exploration-exploitation in
reinforcement learning", ICML 2018.
Setting: average reward, tabular, weakly communicating; c >= span(h*) is known.
Trust: CHECKED: operator, policy and the actions without reward against the paper and the authors' public code, which
gives the same gains, values and mixtures on the same counts (docs/explanation/trust.md). The sets are those of UCRL2B
(see there), newer and narrower than the paper's sqrt(14 p_hat (1 - p_hat) l / n) + 49 l / (3 (n - 1)), with
l = ln(2 X A t_k / delta).

In phase k, with L the optimistic operator u -> max_a {r + max_p <p, u>} over the kernels of UCRL2B:

    u' = T_c u,  (T_c u)(x) = min((L u)(x), min L u + c)         until span(u' - u) <= 1 / sqrt(t_k)      (ScOpt)
    play the policy of T_c u until some pair has been played max(1, n) times in the phase.

Where L u is cut, the policy plays the greedy action with probability w and with 1 - w the action that is worth least,
m(x) = min_a min_p <p, u>, when it earns nothing: w (L u)(x) + (1 - w) m(x) = min L u + c. Such a w exists:
span(u) <= c and rewards are not negative, so m(x) <= max u <= min u + c <= min L u + c (on the reset chain too, see
`ravi.optimism.extended_value_iteration`).

T_c h >= h + rho* for the true bias h = V*: L h >= h + rho*, and min L h + c >= rho* + min h + c >= rho* + max h. T_c is
monotone, so the planned gain is at least rho*, up to the accuracy, whenever the true kernel is plausible.

support=on: the sets are those of UCRL2B with support=on. They hold P as often, and nothing above asks more of them.

Constants: c = H, unless `span` is given. On the reset chain h* = V*, so any c >= span(V*) will do, and H always does.
In the aware mode the optimistic values themselves lie in [0, H]: c = H never cuts, and SCAL is UCRL2B. Knowledge of the
span enters by `span`. delta = 1/T; `scale` multiplies the radii.
Guarantee: regret O~(max(1, c) sqrt(Gamma X A T)) with probability 1 - delta; with support=on too (see UCRL2B).
Composition: counts from 0 x Bernstein box x span-constrained extended value iteration x doubling.
Cost: that of UCRL2B, and one sweep more per plan that cuts.
Deviations: the paper starts at 0 and adds 2 gamma_k^n / (1 - gamma_k) span(v_1 - v_0) to the span that stops a plan. It
lets every action reach a reference state with a small probability, so that T_c contracts; here
resets do, with probability 1 - gamma, or in the blind mode mixing and a limit on sweeps. Plans stop and phases
end as in `ravi.learners.ucrl.ucrl2`. See also UCRL2B.
"""

import math

from ravi import validation
from ravi._jit import functions as compiled
from ravi.core import Learner, Problem
from ravi.learners.options import takes
from ravi.learners.ucrl.core import Options, extended
from ravi.learners.ucrl.ucrl2b import box
from ravi.optimism import extended_value_iteration as optimistic


@takes()
def scal(problem: Problem, T: int, o: Options) -> Learner:
    """SCAL with the radii of UCRL2B; `scale` multiplies them; `span` is c."""
    c, plausible = bound(problem, o.span), box(problem, o)
    radii, sets = plausible.radii, plausible.sets
    idle = compiled.bound(optimistic._least, radii=radii, prepare=sets.prepare, most=sets.most)
    return extended("scal", problem, plausible._replace(idle=idle), o, {"span": c}, span=c)


def bound(problem: Problem, span: float | None) -> float:
    """c: H unless given; infinity bounds nothing."""
    if span is None:
        return problem.horizon
    return math.inf if span == math.inf else validation.positive(span, "span")
