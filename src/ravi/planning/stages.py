"""What is a policy worth that depends on its age? pi_0, ..., pi_{S-1}, one for each number of steps since the reset.

The last stage serves for all later ages, so with W_{S-1} = V^{pi_{S-1}} and, backwards,

    W_j(x) = sum_a pi_j(a | x) (r(x, a) + gamma (P W_{j+1})(x, a)),        rho = (1 - gamma) <nu_0, W_0>

exactly: nothing is cut off. W_j is the value from age j on.

Rounding. W_{S-1} is certified to an error e (`ravi.planning.evaluation`); a sweep passes on gamma of what came before
and adds at most grain (1 + H), with the grain of that page; so W_0 is known to gamma^{S-1} e + H grain (1 + H), and rho
to 1 - gamma of it, with 4 eps for the last sum.

A learner that plans backwards chooses S by what it may leave out: `effective_horizon`.
"""

import math

import numpy as np

from ravi import validation
from ravi._jit.functions import bound, compiled
from ravi.core import MDP, Array, Problem
from ravi.planning.certificates import EPS, centre, distributions, half_width, mean, miss, span_goal, tables
from ravi.planning.chains import ELIMINATED, eliminated_values, policy_chain
from ravi.planning.evaluation import relative_values
from ravi.planning.sweeps import policy_sweep
from ravi.runtime.walk import normalised

MOST = 200_000  # stages of a plan


def effective_horizon(problem: Problem, truncation: float) -> int:
    """The least S >= 1 with gamma^S H <= truncation: what comes after S stages is worth no more than that."""
    eps = validation.positive(truncation, "truncation")
    S = max(1, math.ceil(math.log(problem.horizon / eps) / math.log(1 / problem.discount)))
    if S > MOST:
        raise validation.InputError(
            f"discount {problem.discount!r} and truncation {eps:g} make {S:,} stages, more than {MOST:,}: "
            "lower the discount, or raise the truncation"
        )
    return S


def staged_values(mdp: MDP, policy: Array, tol: float = 1e-10) -> tuple[Array, Array, Array]:
    """W (n, S, X), rho (n,) and a bound on the error of rho (n,), of the policies that rows (n, S, X, A) play."""
    rows = distributions(normalised(policy))
    n, S, X, _ = rows.shape
    W, returns, error = np.empty((n, S, X)), np.empty(n), np.empty(n)
    loop = bound(_staged_values, values_of=_of_few if X <= ELIMINATED else _of_many)
    loop(tables(mdp), mdp.initial, rows, tol, W, returns, error)
    return W, returns, error


def _staged_values(tables, nu0, policy, tol, W, returns, error):  # type: ignore[no-untyped-def]
    r, successors, P, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    n, S, X, A = policy.shape
    B, H = P.shape[2], 1 / (1 - gamma)
    Q = np.empty((X, A))
    for i in range(n):
        grain = tables.grain + EPS * A + miss(policy[i])
        tail, size = np.zeros(X), 0.0
        for _ in range(3):  # the goal depends on max |W|, which is known afterwards
            tail = values_of(tables, policy[i, S - 1], tail, span_goal(tol, size, gamma, grain) / 2)
            low, high, size = policy_sweep(tables, policy[i, S - 1], tail, Q, W[i, S - 1])
            if high - low <= span_goal(tol, size, gamma, grain):
                break
        for x in range(X):
            W[i, S - 1, x] += gamma * H * (low + high) / 2
        for j in range(S - 2, -1, -1):
            for x in range(X):
                total = 0.0
                for a in range(A):
                    p = policy[i, j, x, a]
                    if p > 0.0:
                        future = 0.0
                        for b in range(B):
                            future += P[x, a, b] * W[i, j + 1, successors[x, a, b]]
                        total += p * (r[x, a] + gamma * future)
                W[i, j, x] = total
        returns[i] = (1 - gamma) * mean(nu0, W[i, 0])
        error[i] = (
            (1 - gamma) * gamma ** (S - 1) * half_width(low, high, size, gamma, grain) + grain * (1 + H) + 4 * EPS
        )


@compiled
def _of_many(tables, policy, W, goal):  # type: ignore[no-untyped-def]
    """V^pi up to a constant, centred, to the goal of `relative_values`."""
    return relative_values(tables, policy, W, goal)[0]


@compiled
def _of_few(tables, policy, W, goal):  # type: ignore[no-untyped-def]
    """The same of few states, without what many need, which takes as long to compile as all the rest."""
    W = eliminated_values(policy_chain(tables, policy), tables.discount)
    centre(W)
    return W


values_of = _of_many  # the function that is bound to the loop
