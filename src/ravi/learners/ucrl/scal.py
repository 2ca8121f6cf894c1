"""SCAL and SCAL+: extended value iteration with values of bounded span."""

import math

from ravi import validation
from ravi._jit import functions
from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Array, Learner, Problem
from ravi.learners.options import takes
from ravi.learners.ucrl.core import Options, Plausible, extended, radii_of, reference
from ravi.learners.ucrl.ucrl import box
from ravi.optimism import extended_value_iteration as optimistic
from ravi.optimism.sets import most_smoothed, smoothed


@takes(without=("support",))
def scal(problem: Problem, T: int, o: Options) -> Learner:
    """SCAL: UCRL2B for a learner that knows a bound on the span of the optimal bias.

    Paper: R. Fruit, M. Pirotta, A. Lazaric, R. Ortner, "Efficient bias-span-constrained exploration-exploitation in
    reinforcement learning", ICML 2018.
    Setting: average reward, tabular, weakly communicating; c >= span(h*) is known.
    Trust: CHECKED: operator, policy and the actions without reward against the paper and the authors' public code,
    which gives the same gains, values and mixtures on the same counts (docs/explanation/trust.md). The sets are those
    of UCRL2B (see there), newer and narrower than the paper's sqrt(14 p_hat (1 - p_hat) l / n) + 49 l / (3 (n - 1)),
    with l = ln(2 X A t_k / delta).

    In phase k, with L the optimistic operator u -> max_a {r + max_p <p, u>} over the kernels of UCRL2B:

        u' = T_c u,  (T_c u)(x) = min((L u)(x), min L u + c)         until span(u' - u) <= 1 / sqrt(t_k)      (ScOpt)
        play the policy of T_c u until some pair has been played max(1, n) times in the phase.

    Where L u is cut, the policy plays the greedy action with probability w and with 1 - w the action that is worth
    least, m(x) = min_a min_p <p, u>, when it earns nothing: w (L u)(x) + (1 - w) m(x) = min L u + c. Such a w exists:
    span(u) <= c and rewards are not negative, so m(x) <= max u <= min u + c <= min L u + c (on the reset chain too, see
    `ravi.optimism.extended_value_iteration`).

    T_c h >= h + rho* for the true bias h = V*: L h >= h + rho*, and min L h + c >= rho* + min h + c >= rho* + max h.
    T_c is monotone, so the planned gain is at least rho*, up to the accuracy, whenever the true kernel is plausible.

    Constants: c = H, unless `span` is given. On the reset chain h* = V*, so any c >= span(V*) will do, and H always
    does. In the aware mode the optimistic values themselves lie in [0, H]: c = H never cuts, and SCAL is UCRL2B.
    Knowledge of the span enters by `span`. delta = 1/T; `scale` multiplies the radii.
    Guarantee: regret O~(max(1, c) sqrt(Gamma X A T)) with probability 1 - delta.
    Composition: counts from 0 x Bernstein box x span-constrained extended value iteration x doubling.
    Cost: that of UCRL2B, and one sweep more per plan that cuts.
    Deviations: the paper starts at 0 and adds 2 gamma_k^n / (1 - gamma_k) span(v_1 - v_0) to the span that stops a
    plan. It lets every action reach a reference state with a small probability, so that T_c contracts; here resets do,
    with probability 1 - gamma, or in the blind mode mixing and a limit on sweeps. Plans stop and phases end as in
    `ravi.learners.ucrl.ucrl`. See also UCRL2B.

    SCAL with the radii of UCRL2B; `scale` multiplies them; `span` is c.
    """
    c, plausible = bound(problem, o.span), box(problem, o)
    radii, sets = plausible.radii, plausible.sets
    idle = functions.bound(optimistic._least, radii=radii, prepare=sets.prepare, most=sets.most)
    return extended("scal", problem, plausible._replace(idle=idle), o, {"span": c}, span=c)


def bound(problem: Problem, span: float | None) -> float:
    """c: H unless given; infinity bounds nothing."""
    if span is None:
        return problem.horizon
    return math.inf if span == math.inf else validation.positive(span, "span")


@takes(without=("support",))
def scal_plus(problem: Problem, T: int, o: Options) -> Learner:
    """SCAL+: SCAL with a bonus on the reward in place of a set of kernels.

    Paper: J. Qian, R. Fruit, M. Pirotta, A. Lazaric, "Exploration bonus for regret minimization in discrete and
    continuous average reward MDPs", NeurIPS 2019 (arXiv 1812.04363).
    Setting: average reward, tabular, weakly communicating; c >= span(h*) is known.
    Trust: CHECKED: kernel and bonus against the authors' public code of 2018; the printed paper, which could not be
    opened, may have other constants in the logarithm. Whole runs were compared with an independent transcription.

    In phase k, which starts at t_k, with n the visits of (x, a) before it and a fixed reference state x_bar:

        P_bar(. | x, a) = (n p_hat(. | x, a) + e_{x_bar}) / (n + 1)
        b(x, a) = c min(beta, 2),   beta = sqrt(7 ln(2 X A t_k / delta) / max(1, n)) + 1 / (n + 1)
        u' = T_c u,  T_c u = min(L u, min L u + c),  L u = max_a {r + b + P_bar u}
            until span(u' - u) <= 1 / sqrt(t_k)
        play the policy of T_c u until some pair has been played max(1, n) times in the phase.

    Where L u is cut, the policy mixes the greedy action with the duplicate of an action that earns nothing, without
    bonus either, and follows P_bar: such a one is worth at most max u <= min u + c <= min L u + c, so there is a
    mixture (`ravi.optimism.extended_value_iteration`). Where L h >= h + rho* for the true bias h, the planned gain is
    at least rho*, as in SCAL: |(P_bar - P) h| <= c beta is what that needs.

    Constants: the authors', c = H unless `span` is given, delta = 1/T. x_bar is the mode of nu_0, the first if there
    are several. `scale` multiplies b.
    Guarantee: regret O~(c sqrt(Gamma X A T)) with probability 1 - delta.
    Composition: counts from 0 with one step to x_bar x bonus c beta x span-constrained value iteration x doubling.
    Cost: O(1) per step; X A B per sweep, B the successors stored per pair; at most X A log2(8 T / (X A)) plans.
    Deviations: rewards are known, so the reward bonus is 0. With a discount, the aware mode plans with gamma P_bar +
    (1 - gamma) 1 nu_0^T and the same b, though gamma b would do. u starts where the last phase ended
    (`ravi.learners.ucrl.core`). Plans stop and phases end as in `ravi.learners.ucrl.ucrl`.

    SCAL+ with its published bonus; `scale` multiplies it; `span` is c.
    """
    c, scale = bound(problem, o.span), o.scale
    if not math.isfinite(c):
        raise validation.InputError("span is inf; the bonus of scal+ is a multiple of it, so it must be finite")
    values = problem.horizon if problem.criterion == "discounted" else 1.0
    validation.finite_result(lambda: 4 * scale * c * values, "the bonus", scale=scale, span=c)

    constants = (scale * c, o.delta, problem.states * problem.actions)
    plausible = Plausible(bonus, constants, smoothed, promised, idle)
    return extended("scal+", problem, plausible, o, {"span": c, "reference": reference(problem)}, span=c)


def width(visits: Array, t: Array, delta: float) -> Array:
    """beta at time t (n,), of shape (n, X, A)."""
    _, X, A = visits.shape
    return radii_of(bonus, (1.0, delta, X * A), visits, t)[1]


@compiled
def bonus(constants, visits, t, b, beta):  # type: ignore[no-untyped-def]
    """b(x, a) and beta, of one seed."""
    c, delta, pairs = constants
    log = math.log(2 * pairs * t / delta)
    for p in each(visits.shape[0]):
        beta[p] = math.sqrt(7 * log / max(visits[p], 1)) + 1 / (visits[p] + 1)
        b[p] = c * min(beta[p], 2.0)


@compiled
def promised(own, i, k, v, Q):  # type: ignore[no-untyped-def]
    """r + b + gamma P_bar V, from P_bar V in place."""
    r, gamma, b = own.rewards[i if own.rewards.shape[0] > 1 else 0], own.discount, own.radius[k]
    for p in each(Q.shape[0]):
        Q[p] = r[p] + b[p] + gamma * Q[p]


@compiled
def idle(own, i, k, v, Q):  # type: ignore[no-untyped-def]
    """gamma P_bar V."""
    most_smoothed(own, i, k, v, Q)
    for p in each(Q.shape[0]):
        Q[p] = own.discount * Q[p]
