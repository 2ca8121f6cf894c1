"""UCRL2, UCRL2B and KL-UCRL: extended value iteration over balls and boxes around the empirical kernel."""

import math
from math import e, log

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Array, KernelSets, Learner, Problem
from ravi.learners.options import takes
from ravi.learners.ucrl.core import Options, Plausible, extended, radii_of
from ravi.optimism import known_support, sets
from ravi.optimism.known_support import outcomes


@takes(without=("span",))
def ucrl2(problem: Problem, T: int, o: Options) -> Learner:
    """UCRL2: optimism in the face of uncertainty, over L1 balls around the empirical kernel.

    Paper: T. Jaksch, R. Ortner, P. Auer, "Near-optimal regret bounds for reinforcement learning", JMLR 11, 2010.
    Setting: average reward, tabular, communicating.
    Trust: CHECKED: radii, stopping rule, phases and the inner maximum against the paper (Figures 1 and 2) and public
    code; on the same counts the maxima and extended value iteration agree with that code (docs/explanation/trust.md).

    In phase k, which starts at t_k, with n the visits of (x, a) before it:

        ||p - p_hat(. | x, a)||_1 <= d(x, a) = sqrt(14 X ln(2 A t_k / delta) / max(1, n))
        u'(x) = max_a {r(x, a) + max_p <p, u>}                       until span(u' - u) <= 1 / sqrt(t_k)
        play the greedy policy until some pair has been played max(1, n) times in the phase.

    support=on: p lives on the support of the pair, and d = sqrt(14 B ln(2 A t_k / delta) / max(1, n)). The paper has d
    from Weissman et al. (2003), by which a row with m outcomes is farther off with probability (2^m - 2) exp(-n d^2 /
    2) at most; with m = B for m = X, 2 ln(2^B 20 X A t^7 / delta) <= 14 B ln(2 A t / delta) as before where B >= 2 and
    X <= 204 (A / delta)^13, and where B = 1 the row is known. The rest of the proof asks of the set that it holds P.

    Constants: the paper's, with delta = 1/T. `scale` multiplies d.
    Guarantee: regret 34 D X sqrt(A T ln(T / delta)) with probability 1 - delta, D the diameter; with support=on 34 D
    sqrt(B X A T ln(T / delta)): the sum of the radii has sqrt(B) for sqrt(X), and where the bound is below T, which is
    the only case to prove, the paper's bounds of the other terms have no more than sqrt(X A T) in them.
    Composition: counts from 0 x L1 ball x extended value iteration x doubling.
    Cost: O(1) per step; X A B per sweep, B the successors stored per pair; at most X A log2(8 T / (X A)) plans.
    Deviations: rewards are known, so the paper's reward radius is 0; the reset chain is planned and scored, and u
    starts where the last phase ended (`ravi.learners.ucrl.core`). The paper ends a phase when the pair that it is about
    to play has had its visits; here a phase ends right after the step that makes them so many, whatever comes next. The
    paper stops a plan at a span below 1 / sqrt(t_k); here one that is equal will do.

    UCRL2 with its published radii; `scale` multiplies them.
    """
    scale, delta, knows_support = o.scale, o.delta, o.knows_support
    m, ball = outcomes(problem, knows_support), known_support.l1 if knows_support else sets.l1
    one = np.ones((1, problem.states, problem.actions))
    validation.finite_result(
        lambda: scale * float(l1_radius(one, np.array([T]), delta, m).max()), "the radius", scale=scale
    )
    plausible = Plausible(l1_radii, (scale, delta, m, problem.actions), ball)
    return extended("ucrl2", problem, plausible, o, checked=KernelSets(scale, delta=delta))


def l1_radius(visits: Array, t: Array, delta: float, m: int | None = None) -> Array:
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


LARGEST = 1e5  # more than any radius: 6 ln(6 X A n / delta) at n = 1, delta >= 1e-100


@takes(without=("span",))
def ucrl2b(problem: Problem, T: int, o: Options) -> Learner:
    """UCRL2B: UCRL2 with an empirical Bernstein interval for every probability.

    Paper: R. Fruit, M. Pirotta, A. Lazaric, "Improved analysis of UCRL2 with empirical Bernstein inequality", technical
    report, arXiv 2007.05456, 2020.
    Setting: average reward, tabular, communicating.
    Trust: CHECKED: both radii, with ln(6 X A n / delta), against the authors' public code as of January 2019, whose log
    says that it follows R. Fruit's thesis; the paper itself could not be opened. A later public implementation, of
    others, has ln(18 X A n / delta), which is delta / 3 in the place of delta; either is enough for the inequality
    below.

    In phase k, which starts at t_k, with n+ = max(1, n), n the visits of (x, a) before it, and l = ln(6 X A n+ /
    delta):

        |p(x') - p_hat(x')| <= 2 sqrt(p_hat(x') (1 - p_hat(x')) l / n+) + 6 l / n+        for every x'
        u'(x) = max_a {r(x, a) + max_p <p, u>}                       until span(u' - u) <= 1 / sqrt(t_k)
        play the greedy policy until some pair has been played max(1, n) times in the phase.

    support=on: x' is in the support of (x, a), p is 0 elsewhere, and l = ln(6 sqrt(X B) A n+ / delta): of the X^2 A
    entries X B A are not known to be 0, and the sum below is over those; it comes to the same.

    Constants: those of the authors' code, with delta = 1/T. They are the inequality of Audibert, Munos and Szepesvari,
    2009: |p - p_hat| <= sqrt(2 p_hat (1 - p_hat) ln(3 / d) / n) + 3 ln(3 / d) / n with probability 1 - d, at d = 3
    (delta / (6 X A n))^2: summed over X^2 A entries and all n, d is at most delta^2 pi^2 / (72 A). `scale` multiplies
    the radii.
    Guarantee: regret O~(sqrt(D Gamma X A T)) with probability 1 - delta, D the diameter, Gamma the successors of a
    pair; with support=on too, where the terms of lower order, which sum 6 l / n+ over x', have B for X.
    Composition: counts from 0 x Bernstein box x extended value iteration x doubling.
    Cost: O(1) per step; X A B per sweep, B the successors stored per pair; at most X A log2(8 T / (X A)) plans.
    Deviations: rewards are known, so the paper's reward radius is 0; a pair that was never played may lead anywhere,
    also where scale makes the radii small; plans stop at UCRL2's accuracy, and phases end as they do there
    (`ravi.learners.ucrl.ucrl`); the reset chain is planned and scored, and u starts where the last phase ended
    (`ravi.learners.ucrl.core`).

    UCRL2B with its published radii; `scale` multiplies them.
    """
    return extended("ucrl2b", problem, box(problem, o), o)


def box(problem: Problem, o: Options) -> Plausible:
    """The kernels within `scale` times the radii."""
    scale, knows_support = o.scale, o.knows_support
    validation.finite_result(lambda: scale * LARGEST, "the radius", scale=scale)
    within = known_support.bernstein if knows_support else sets.bernstein
    return Plausible(
        box_radii,
        (scale, *_numbers(problem.states, problem.actions, outcomes(problem, knows_support), o.delta)),
        within,
    )


def box_radius(visits: Array, delta: float, m: int | None = None) -> tuple[Array, Array]:
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


@takes(without=("span",))
def kl_ucrl(problem: Problem, T: int, o: Options) -> Learner:
    """KL-UCRL: UCRL2 over balls of the relative entropy.

    Paper: S. Filippi, O. Cappe, A. Garivier, "Optimism in reinforcement learning and Kullback-Leibler divergence",
    Allerton 2010, arXiv 1004.5229.
    Setting: average reward, tabular, communicating.
    Trust: CHECKED: set, C_P, accuracy and phases against M. S. Talebi, O.-A. Maillard, ALT 2018, who state the
    algorithm and its Proposition 1; the paper itself could not be opened. The maximum over the ball is derived in
    `ravi.optimism.sets`; the one public implementation found agrees where a best state was never seen, and is wrong
    elsewhere (docs/explanation/trust.md).

    In phase k, which starts at t_k, with n the visits of (x, a) before it:

        KL(p_hat(. | x, a) || p) <= C_P / n
        C_P = X (B + ln(B + 1/ln T) (1 + 1/(B + 1/ln T))),   B = ln(2 e X^2 A ln T / delta)
        u'(x) = max_a {r(x, a) + max_p <p, u>}                       until span(u' - u) <= 1 / sqrt(t_k)
        play the greedy policy until some pair has been played max(1, n) times in the phase.

    Unlike an L1 ball, this set takes no successor away that was seen, and what it gives to a best state that was not
    depends on how far those that were fall short of it.

    support=on: p lives on the support of the pair, B states at most, and

        C_P = B (b + ln(b + 1/ln T) (1 + 1/(b + 1/ln T))),   b = ln(2 e X B A ln T / delta)

    by the paper's argument. Entry by entry n kl(p_hat(x'), p(x')) > eps / m at some n <= T with probability at most 2 e
    (eps ln T / m + 1) exp(-eps / m); entries sum to no less than KL(p_hat || p); so a row with m outcomes is out with
    probability 2 e (eps ln T + m) exp(-eps / m), and C_P is an eps that makes it delta / (X A). Here m = B for m = X.

    Constants: the paper's, with delta = 1/T. `scale` multiplies the radius C_P / n of the ball. That is like a squared
    distance: scale here is as scale^2 in UCRL2.
    Guarantee: regret O~(D X sqrt(A T)) with probability 1 - delta, D the diameter; with support=on O~(D sqrt(B X A T)),
    because the ball lies within the L1 radius sqrt(2 C_P / n), and C_P = O~(B) for O~(X).
    Composition: counts from 0 x relative-entropy ball x extended value iteration x doubling.
    Cost: O(1) per step; about two to five logarithms for each of the X A B entries per sweep; at most X A log2(8 T / (X
    A)) plans.
    Deviations: rewards are known, so the paper's reward radius is 0; T < 3 counts as 3 in C_P; the reset chain is
    planned and scored, and u starts where the last phase ended (`ravi.learners.ucrl.core`); plans stop and phases end
    as in `ravi.learners.ucrl.ucrl`.

    KL-UCRL with its published radius C_P / n; `scale` multiplies it.
    """
    knows_support = o.knows_support
    m, ball = outcomes(problem, knows_support), known_support.kl if knows_support else sets.kl
    C = o.scale * constant(problem.states, problem.actions, T, o.delta, m)
    return extended("kl-ucrl", problem, Plausible(kl_radii, (C,), ball), o, {"constant": C})


def constant(X: int, A: int, T: int, delta: float, m: int | None = None) -> float:
    """C_P, for rows of m outcomes, X unless given."""
    m = X if m is None else m
    lnT = log(max(T, 3))
    B = log(2 * e * (X * m) * A * lnT / delta)
    return m * (B + log(B + 1 / lnT) * (1 + 1 / (B + 1 / lnT)))


@compiled
def kl_radii(constants, visits, t, radius, constant):  # type: ignore[no-untyped-def]
    """C_P / n, of one seed."""
    for p in each(visits.shape[0]):
        radius[p] = constants[0] / max(visits[p], 1)
