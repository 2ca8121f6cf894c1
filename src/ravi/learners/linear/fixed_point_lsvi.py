"""Fixed-point LSVI: an optimistic least-squares backup, iterated towards a fixed point; it need not have one.

Paper: D. Vial, A. Parulekar, S. Shakkottai, R. Srikant, "Regret bounds for stochastic shortest path problems with
linear function approximation", ICML 2022.
Setting: stochastic shortest paths with linear transitions of dimension d; here the discounted form with resets.
Trust: CHECKED against the proceedings (Algorithms 1 and 2, Theorem 4): the operator, where it starts, phases of doubled
determinants, alpha for orthogonal features. The form with a discount and known costs, and when a plan stops or is given
up, are DERIVED here.

A reset comes with probability 1 - gamma after every step. Call it the goal, and let a step cost c = 1 - r: under every
policy the goal is H steps away in the mean, and the cost to go is H - V, with V the discounted value. So B*, the bound
on the cost to go of the best policy, is at most H. A phase begins when det Lambda has doubled; from J_0 = 0,

    w_u        = Lambda^{-1} sum_i phi_i J_u(y_i)
    G_u(x, a)  = c(x, a) + gamma <phi(x, a), w_u> - alpha ||phi(x, a)||_{Lambda^-1}
    J_{u+1}(x) = min_a G_u(x, a), truncated to [0, H]

until max |J_{u+1} - J_u| <= tol, and the greedy policy is played. In terms of V = H - J this is LSVI that regresses V -
H, so that pairs which were never played lead to cost 0, the best there is.

Where features are orthogonal (one coordinate per pair, or per group of pairs) the regression is an average over the
samples of a group, shrunk towards 0; the operator is then monotone, contracts by gamma, and rises from J_0 = 0 to its
one fixed point, below which all rounds are optimistic. Elsewhere P_hat may have negative entries or mass above one, and
the rounds may go round in circles. The first round moves J by at most 1, so a contraction is done after
1 + ceil(ln(1 / tol) / ln(1/gamma)) rounds; U is that and one for rounding, or ceil(ln(H / tol) / ln(1/gamma)) if that
is more, with tol = 1/T. A plan that takes more has shown that it is no contraction. It is given up after U rounds, or
when it comes back to an earlier round, to 1e-10 H (Brent's method: a round is kept at every power of two); then the
round of the least max |J_{u+1} - J_u| is played, and the seed's count `unsettled` says so; `cycles` counts those seen
to go in circles.

Constants: alpha = k sqrt(ln(T k / delta)), k = 9 d (H + 1), delta = 1/T, lambda = 1: the paper's, for orthogonal
features and B* <= H (for other features its k grows, with 54 d t^(1/3) for 9 d). `scale` multiplies alpha.
Guarantee: of order sqrt(T) for orthogonal features; elsewhere none for this k (with its larger one the paper has
T^(5/6)).
Composition: regression on all moves x alpha ||phi||_{Lambda^-1} x truncated greedy iteration x doubled determinants.
Cost: O(d^2) per step; d^2 X + X A d^2 per plan, and per round what is not 0 of m_hat = Lambda^{-1} M and of phi (at
most d X + X A d); (d / ln 2) ln(1 + T / (lambda d)) plans.
Deviations: costs are known, and so is gamma, the probability that a step does not lead to the goal, and with it H, a
bound on B*, which the paper finds by doubling. The paper plans anew at every goal too, and stops as soon as a round
moves w by alpha at most in the norm of Lambda; here plans go on to the fixed point.
"""

from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.estimators.gram import Gram, gram, gram_walk, reopen, row
from ravi.estimators.linear import features_of, measures, predict, width
from ravi.learners.options import Regression, takes
from ravi.planning.bellman import deterministic
from ravi.runtime.ranges import Number, Policy, Value, Whole
from ravi.runtime.walk import keep
from ravi.schedules import whenever

SETTLED, CYCLE, CAPPED = 0, 1, 2  # how a plan ends
SAME = 1e-10  # of H: a round that is an earlier one


class State(NamedTuple):
    data: Gram
    w: Number  #                                                       (n, d)
    V: Value  # H - J                                                  (n, X)
    policy: Policy  #                                                  (n, X, A)
    phases: Whole  # begun so far                                      (n,)
    rounds: Whole  # of the last plan                                  (n,)
    unsettled: Whole  # plans that found no fixed point                (n,)
    cycles: Whole  # those of them that came back to an earlier round   (n,)


@takes()
def fixed_point_lsvi(problem: Problem, T: int, o: Regression) -> Learner:
    """Fixed-point LSVI on the shortest-path form of the problem."""
    scale, delta, lam = o
    gamma, H, X, A = problem.discount, problem.horizon, problem.states, problem.actions
    tol = 1 / T
    U = most_rounds(gamma, tol)
    phi = features_of(problem)
    d = phi.shape[-1]
    k = 9 * d * (H + 1)
    alpha = scale * k * sqrt(log(T * k / delta))

    def init(keys: Array) -> State:
        n = len(keys)
        none = [np.zeros(n, np.int64) for _ in range(4)]
        data, uniform = gram(n, d, lam, X, moves=True), np.full((n, X, A), 1 / A)
        return State(data, np.zeros((n, d)), np.full((n, X), H), uniform, *none)

    def plan(s: State) -> State:
        costs = 1 - problem.rewards
        for i in reopen(s.data, s.phases == 0):
            one = row(s.data, i)
            CB = alpha * width(one, phi)[0]
            w, J, taken, end = fixed_point(costs, CB, gamma, H, phi[0], measures(one)[0], U, tol)
            s.w[i], s.V[i] = w, H - J
            s.policy[i] = deterministic((costs + gamma * predict(phi, w[None])[0] - CB).argmin(-1), A)
            s.phases[i] += 1
            s.rounds[i] = taken
            s.unsettled[i] += end != SETTLED
            s.cycles[i] += end == CYCLE
        return s

    settings = {"alpha": alpha, "scale": scale, "delta": delta, "regularization": lam, "rounds": U, "tolerance": tol}
    return Learner(
        "fixed-point-lsvi", init, plan, keep, whenever(), settings,
        walk=gram_walk(lambda s: (s.data, phi, None)),
    )  # fmt: skip


def most_rounds(gamma: float, tol: float) -> int:
    """U."""
    return max(1, 2 + ceil(log(1 / tol) / log(1 / gamma)), ceil(log(1 / (1 - gamma) / tol) / log(1 / gamma)))


@compiled
def fixed_point(c, CB, gamma, H, phi, m_hat, most, tol):  # type: ignore[no-untyped-def]
    """w, J, the rounds taken and how they ended, of one seed."""
    d, X = m_hat.shape
    A = c.shape[1]
    count, where = np.zeros(d, np.int64), np.empty((d, X), np.int64)  # what is not 0 of m_hat, and of phi
    for j in range(d):
        for y in range(X):
            if m_hat[j, y] != 0.0:
                where[j, count[j]] = y
                count[j] += 1
    size, at = np.zeros((X, A), np.int64), np.empty((X, A, d), np.int64)
    for x in range(X):
        for a in range(A):
            for j in range(d):
                if phi[x, a, j] != 0.0:
                    at[x, a, size[x, a]] = j
                    size[x, a] += 1
    w, J, then = np.empty(d), np.zeros(X), np.empty(X)
    best_w, best_J, least = np.zeros(d), np.zeros(X), np.inf
    kept, power, since = np.zeros(X), 1, 0
    for u in range(1, most + 1):
        for j in range(d):
            total = 0.0
            for e in range(count[j]):
                total += m_hat[j, where[j, e]] * J[where[j, e]]
            w[j] = total
        step, away = 0.0, 0.0
        for x in range(X):
            low = np.inf
            for a in range(A):
                PJ = 0.0
                for e in range(size[x, a]):
                    PJ += phi[x, a, at[x, a, e]] * w[at[x, a, e]]
                low = min(low, c[x, a] + gamma * PJ - CB[x, a])
            then[x] = min(max(low, 0.0), H)
            step, away = max(step, abs(then[x] - J[x])), max(away, abs(then[x] - kept[x]))
        J[:] = then
        if step < least:
            least = step
            best_w[:], best_J[:] = w, J
        if step <= tol:
            return w, J, u, SETTLED
        since += 1
        if away <= SAME * H:
            return best_w, best_J, u, CYCLE
        if since == power:
            kept[:] = J
            power, since = 2 * power, 0
    return best_w, best_J, most, CAPPED
