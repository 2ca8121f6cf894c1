"""Known and unknown pairs of a mixture of simulators: what the data do not determine is worth H.

Paper: none; the model is that of A. Modi, N. Jiang, A. Tewari, S. Singh, "Sample complexity of reinforcement learning
using linearly combined model ensembles", AISTATS 2020, the idea that of R-MAX.
Setting: discounted, mixture of d known kernels with unknown weights theta on the simplex, PAC.
Trust: DERIVED: known and unknown pairs, the regression, its radius and the measure of uncertainty are this library's.
The paper's own algorithm is another, for a finite horizon: it plays the best model of a set, and strikes out of the set
what mispredicts the values that were met (CHECKED against the proceedings). It is not here.

Phase k: in every sample the indicator of y_t is regressed on the rows psi(x_t, a_t, .); no value function is in it:

    Lambda  = lambda I + sum_t sum_x' psi(x_t, a_t, x') psi(x_t, a_t, x')^T,     b = sum_t psi(x_t, a_t, y_t),
    beta    = sqrt(ln(1 / delta) + ln(det Lambda / det lambda I) / 2) + sqrt(lambda) B_theta,
    theta   = the point of the simplex nearest to Lambda^-1 b in the norm of Lambda,
    u(x, a) = beta sum_x' ||psi(x, a, x')||_{Lambda^-1} / 2.

With probability 1 - delta the true weights are within beta of Lambda^-1 b, so of theta (projections bring points of
the simplex no further away), and u bounds the total variation between the two kernels at (x, a). It does not depend on
V. Then

    Q(x, a) = H                                             where u(x, a) > alpha: unknown
    Q(x, a) = r(x, a) + gamma <theta, phi_V(x, a)>          elsewhere,       V(x) = max_a Q(x, a)
    play the greedy policy until det Lambda is more than twice what it was at the start of the phase.

Constants: alpha = `accuracy` (1 - gamma) / (2 gamma), with accuracy 0.1: where all is known, the return of every policy
is then known to accuracy / 2. delta = 1/T, lambda = 1. `scale` multiplies beta.
Guarantee: none is claimed; that of the paper's algorithm is polynomial in d and H, and free of X and A.
Composition: regression on next states x H where unknown x value iteration x doubling determinants.
Cost: B d^2 per step, B the successors stored per pair; X A B (d^2 + sweeps) per plan; at most d log2(1 + T / lambda)
plans.
Deviations: none; there is nothing to deviate from. The noise <v, e_y - p> lies in an interval of length max v - min v
<= sqrt(2) ||v||, so it is sub-Gaussian with variance ||v||^2 / 2. Values are found to min(1/T, 1e-7 H). Ties go to the
first action.
"""

import math
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.estimators.gram import DOUBLED, Gram, add_feature, estimate, gram, growth, renew
from ravi.learners.options import Regression, takes
from ravi.optimism.ellipsoids import SIMPLEX, chosen
from ravi.optimism.extended_value_iteration import greedy
from ravi.optimism.simplex import ball
from ravi.runtime.ranges import Flag, Number, Policy, Value
from ravi.runtime.walk import keep, walking
from ravi.schedules import whenever


class State(NamedTuple):
    data: Gram
    theta: Number  # on the simplex            (n, d)
    unknown: Flag  # whether u > alpha       (n, X, A)
    V: Value  # (n, X)
    Q: Value  # (n, X, A)
    policy: Policy  # (n, X, A)


@takes()
def threshold(problem: Problem, T: int, o: Regression, accuracy: float = 0.1) -> Learner:
    """Unknown pairs are worth H; `scale` multiplies beta."""
    scale, delta, lam = o
    chosen(SIMPLEX, problem)
    X, A, d, H, gamma = problem.states, problem.actions, problem.dimension, problem.horizon, problem.discount
    alpha = validation.positive(accuracy, "accuracy") * (1 - gamma) / (2 * gamma)
    psi, successors, r = problem.features, problem.successors, problem.rewards
    bias = math.sqrt(lam) * validation.positive(problem.parameter_bound, "parameter_bound")
    tol = min(1 / T, 1e-7 * H)

    def init(keys: Array) -> State:
        n = len(keys)
        V, Q, unknown = np.full((n, X), H), np.full((n, X, A), H), np.ones((n, X, A), np.bool_)
        theta = np.full((n, d), 1 / d)
        return State(gram(n, d, lam, X, moves=False), theta, unknown, V, Q, np.full((n, X, A), 1 / A))

    def plan(s: State) -> State:
        D = renew(s.data)
        beta = scale * (np.sqrt(math.log(1 / delta) + (D.log_det - d * math.log(lam)) / 2) + bias)
        theta = ball(D.covariance, estimate(D), np.zeros(len(beta))).nearest
        unknown = beta[:, None, None] * uncertainty(D.inverse, psi) > alpha
        _iterate(r, successors, psi, gamma, theta, unknown, s.V, s.Q, tol)
        return State(D, theta, unknown, s.V, s.Q, greedy(s.Q))

    walk = walking(_learn, lambda s, walkers: (*s.data[:5], psi, np.empty(d)))

    settings = {"scale": scale, "delta": delta, "regularization": lam, "alpha": alpha}
    return Learner("threshold", init, plan, keep, whenever(), settings, walk=walk)


@compiled
def uncertainty(inverse, psi):  # type: ignore[no-untyped-def]
    """sum_x' ||psi(x, a, x')||_{Lambda^-1} / 2   (n, X, A)."""
    X, A, B, d = psi.shape
    n = inverse.shape[0]
    total = np.zeros((n, X, A))
    for i in range(n):
        for x in range(X):
            for a in range(A):
                for b in range(B):
                    square = 0.0
                    for j in range(d):
                        f = psi[x, a, b, j]
                        if f != 0.0:
                            for k in range(d):
                                square += f * inverse[i, j, k] * psi[x, a, b, k]
                    total[i, x, a] += math.sqrt(max(square, 0.0)) / 2
    return total


@compiled
def _iterate(r, successors, psi, gamma, theta, unknown, V, Q, tol):  # type: ignore[no-untyped-def]
    """V and Q to within tol of the fixed point, from V, in place."""
    X, A, B, d = psi.shape
    H = 1.0 / (1.0 - gamma)
    P = np.empty((X, A, B))
    for i in range(V.shape[0]):
        for x in range(X):
            for a in range(A):
                for b in range(B):
                    total = 0.0
                    for j in range(d):
                        total += theta[i, j] * psi[x, a, b, j]
                    P[x, a, b] = total
        while True:
            moved = 0.0
            for x in range(X):  # Gauss-Seidel: a contraction by gamma too
                top = 0.0
                for a in range(A):
                    value = H
                    if not unknown[i, x, a]:
                        total = 0.0
                        for b in range(B):
                            total += P[x, a, b] * V[i, np.uint32(successors[x, a, b])]
                        value = min(r[x, a] + gamma * total, H)
                    Q[i, x, a] = value
                    top = max(top, value)
                moved = max(moved, abs(top - V[i, x]))
                V[i, x] = top
            if gamma * H * moved <= tol:
                break


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Add the next state; whether the determinant has doubled."""
    covariance, inverse, log_det, opened, response, psi, scratch = own
    for b in range(psi.shape[2]):
        log_det[i] += growth(add_feature(covariance[i], inverse[i], psi[x, a, b], scratch))
    for j in range(psi.shape[3]):
        response[i, j] += psi[x, a, slot, j]
    return not log_det[i] <= opened[i] + DOUBLED
