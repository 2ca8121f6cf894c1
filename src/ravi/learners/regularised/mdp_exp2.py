"""MDP-EXP2: exponential weights in every state, fed with least-squares estimates of Q. It does not explore.

Paper: C.-Y. Wei, M. Jafarnia-Jahromi, H. Luo, R. Jain, "Learning infinite-horizon average-reward MDPs with linear
function approximation", AISTATS 2021.
Setting: average reward, ergodic, linear MDP (or linear Q) of dimension d.
Trust: CHECKED against the proceedings (Algorithm 3): policies, N, the 16 ln(d T) / sigma samples of a phase, eta and
what t_mix is. How they are carried over to the reset stream is DERIVED here.

In phase k, pi_k(a | x) = exp(eta sum_{j < k} <phi(x, a), w_j>), normalised, is played for L reset epochs; pi_1 is
uniform. Then

    w_k = (lambda I + sum_i phi_i phi_i^T)^{-1} sum_i phi_i G_i

over all visits i of the phase, G_i the rewards from i to the reset that ends its epoch. A reset comes with probability
1 - gamma after each step, so that G_i, not discounted, has mean Q^{pi_k}(x_i, a_i): the reward l steps later is earned
with probability gamma^l. On the reset chain Q^{pi_k} is the relative value that the paper estimates, up to a constant,
which leaves pi_k as it is; it is linear in phi.

Constants: the paper cuts time into windows of N = 8 t_mix ln T steps, takes one sample from every other one, has 16
ln(d T) / sigma samples in a phase, and eta = min{1 / sqrt(T t_mix), sigma / (24 N)}; sigma is the least eigenvalue of E
phi phi^T under any policy; two laws come closer by e^(-1/t_mix) at every step, and t_mix is at least 1. Here a reset
epoch is the window, and L = ceil(16 ln(d T) / sigma) epochs make a phase. At a reset the chain forgets where it was,
and laws come closer by gamma: t_mix = max(1, 1 / ln(1/gamma)); N = 2 ln T / ln(1/gamma), which no epoch of the run
outlasts, but with probability 1/T.
sigma is unknown; by default 1/d, the most that it can be for ||phi|| <= 1, and so the shortest phases that the theory
allows. They are long: phases begin to matter when T is well above 16 H d ln(d T). lambda = 1. `step_scale` multiplies
eta, `phase` sets L, `coverage` sigma.
Guarantee: of order sqrt(t_mix^3 T) / sigma, if every policy visits all directions (sigma > 0). There is no optimism:
where reward is far, as in a long RiverSwim, it is found late or never.
Composition: regression of returns x none x exponential weights x L resets.
Cost: O(d^2) per step, O(d) per reset; d^3 + X A d per phase, T / (H L) of them.
Deviations: all visits of an epoch are used, not one per window: they are dependent, but sum_i phi_i (G_i - Q_i) has
mean 0. The matrix is that of the actions played, where the paper averages phi phi^T over pi_k at the states. Ridge in
place of the paper's rule, which skips a phase (w_k = 0) in which some direction was seen too little.
"""

from math import ceil, isfinite, log, sqrt
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.gram import indefinite
from ravi.estimators.linear import features_of
from ravi.learners.regularised.exponential_weights import weigh
from ravi.runtime.ranges import Count, Number, Policy, Positive
from ravi.schedules import at_reset


class State(NamedTuple):
    total: Number  # sum_j w_j                                              (n, d)
    covariance: Number  # lambda I + sum phi phi^T of this phase        (n, d, d)
    response: Number  # sum phi G of this phase                             (n, d)
    pending: Number  # sum phi of this epoch: their G lack all its rewards  (n, d)
    earned: Positive  # rewards of this epoch so far                        (n,)
    epochs: Count  # that have ended in this phase                          (n,)
    policy: Policy  #                                                       (n, X, A)


def mdp_exp2(
    problem: Problem, steps: int, *, step_scale: float = 1.0, phase: int | None = None, coverage: float | None = None,
    regularization: float = 1.0,
) -> Learner:  # fmt: skip
    """MDP-EXP2 from returns between resets; `phase` is L, the number of reset epochs per policy."""
    T = validation.steps(steps)
    lam = validation.positive(regularization, "regularization")
    r, gamma, X, A = problem.rewards, problem.discount, problem.states, problem.actions
    phi = features_of(problem)[0]
    d = phi.shape[-1]
    sigma = 1 / d if coverage is None else validation.positive(coverage, "coverage")
    L = max(1, ceil(min(16 * log(d * T) / sigma, T + 1))) if phase is None else validation.whole(phase, "phase")
    L = min(L, T + 1)  # the same: there are no more than T epochs
    mixing = max(1.0, 1 / log(1 / gamma))  # t_mix
    window = max(1.0, 2 * log(T) / log(1 / gamma))  # N
    eta = validation.positive(step_scale, "step_scale") * min(1 / sqrt(T * mixing), sigma / (24 * window))

    def init(keys: Array) -> State:
        n = len(keys)
        total, response, pending = np.zeros((n, d)), np.zeros((n, d)), np.zeros((n, d))
        covariance = np.tile(lam * np.eye(d), (n, 1, 1))
        uniform = np.full((n, X, A), 1 / A)
        return State(total, covariance, response, pending, np.zeros(n), np.zeros(n, np.int64), uniform)

    def plan(s: State) -> State:
        if not _improve(*s, phi, L, eta, lam):
            raise indefinite()
        return s

    def add(s: State, path: Path) -> State:
        _add(
            r, phi, s.covariance, s.response, s.pending, s.earned, s.epochs,
            path.state, path.action, path.reset, path.length,
        )  # fmt: skip
        return s

    settings = {
        "eta": eta, "phase": L, "coverage": sigma, "mixing": mixing, "window": window, "step_scale": step_scale,
        "regularization": lam,
    }  # fmt: skip
    return Learner("mdp-exp2", init, plan, add, at_reset(), settings)


@compiled
def _improve(total, covariance, response, pending, earned, epochs, policy, phi, L, eta, lam):  # type: ignore[no-untyped-def]
    """The next phase, for the seeds whose phase has ended. It ends at a reset, so nothing is pending.

    Whether all their matrices were definite, and what was solved is finite.
    """
    n, X, A = policy.shape
    d = phi.shape[2]
    sums = np.empty((X, A))
    for i in range(n):
        if epochs[i] < L:
            continue
        if not _solve(covariance[i], response[i]):
            return False
        for j in range(d):
            total[i, j] += response[i, j]  # w_k
            response[i, j] = 0.0
            covariance[i, j, :] = 0.0
            covariance[i, j, j] = lam
        epochs[i] = 0
        for x in range(X):
            for a in range(A):
                sums[x, a] = 0.0
                for j in range(d):
                    sums[x, a] += phi[x, a, j] * total[i, j]
        weigh(sums, eta, policy[i])
    return True


@compiled
def _solve(C, b):  # type: ignore[no-untyped-def]
    """b <- C^{-1} b for a positive definite C, which is overwritten. Whether it is one, and b is finite."""
    d = b.shape[0]
    for k in range(d):
        if not C[k, k] > 0.0:
            return False
        for j in range(k + 1, d):
            f = C[j, k] / C[k, k]
            if f != 0.0:
                for c in range(k, d):
                    C[j, c] -= f * C[k, c]
                b[j] -= f * b[k]
    for k in range(d - 1, -1, -1):
        for c in range(k + 1, d):
            b[k] -= C[k, c] * b[c]
        b[k] /= C[k, k]
        if not isfinite(b[k]):
            return False
    return True


@compiled
def _add(r, phi, covariance, response, pending, earned, epochs, state, action, reset, length):  # type: ignore[no-untyped-def]
    """A return to go is the sum of the epoch's rewards less those before: the latter now, the former at the reset."""
    d = phi.shape[2]
    for i in range(length.shape[0]):
        for l in range(length[i]):
            x, a = state[i, l], action[i, l]
            for j in range(d):
                f = phi[x, a, j]
                if f != 0.0:
                    response[i, j] -= f * earned[i]
                    pending[i, j] += f
                    for c in range(d):
                        covariance[i, j, c] += f * phi[x, a, c]
            earned[i] += r[x, a]
            if reset[i, l]:
                for j in range(d):
                    response[i, j] += pending[i, j] * earned[i]
                    pending[i, j] = 0.0
                earned[i] = 0.0
                epochs[i] += 1
