"""KL-UCRL: UCRL2 over balls of the relative entropy.

Paper: S. Filippi, O. Cappe, A. Garivier, "Optimism in reinforcement learning and Kullback-Leibler divergence", Allerton
2010, arXiv 1004.5229.
Setting: average reward, tabular, communicating.
Trust: CHECKED: set, C_P, accuracy and phases against M. S. Talebi, O.-A. Maillard, ALT 2018, who state the algorithm
and its Proposition 1; the paper itself could not be opened. The maximum over the ball is derived in
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

by the paper's argument. Entry by entry n kl(p_hat(x'), p(x')) > eps / m at some n <= T with probability at most
2 e (eps ln T / m + 1) exp(-eps / m); entries sum to no less than KL(p_hat || p); so a row with m outcomes is out with
probability 2 e (eps ln T + m) exp(-eps / m), and C_P is an eps that makes it delta / (X A). Here m = B for m = X.

Constants: the paper's, with delta = 1/T. `scale` multiplies the radius C_P / n of the ball. That is like a
squared distance: scale here is as scale^2 in UCRL2.
Guarantee: regret O~(D X sqrt(A T)) with probability 1 - delta, D the diameter; with support=on
O~(D sqrt(B X A T)), because the ball lies within the L1 radius sqrt(2 C_P / n), and C_P = O~(B) for O~(X).
Composition: counts from 0 x relative-entropy ball x extended value iteration x doubling.
Cost: O(1) per step; about two to five logarithms for each of the X A B entries per sweep; at most
X A log2(8 T / (X A)) plans.
Deviations: rewards are known, so the paper's reward radius is 0; T < 3 counts as 3 in C_P; the reset chain is planned
and scored, and u starts where the last phase ended (`ravi.learners.ucrl.core`); plans stop and phases end as in
`ravi.learners.ucrl.ucrl2`.
"""

from math import e, log

from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Learner, Problem
from ravi.learners.options import takes
from ravi.learners.ucrl.core import Options, Plausible, extended
from ravi.optimism import sets, supported
from ravi.optimism.supported import outcomes


@takes(without=("span",))
def kl_ucrl(problem: Problem, T: int, o: Options) -> Learner:
    """KL-UCRL with its published radius C_P / n; `scale` multiplies it."""
    told = o.told
    m, ball = outcomes(problem, told), supported.kl if told else sets.kl
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
