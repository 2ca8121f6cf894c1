"""POLITEX: policy iteration with expert prediction. Each state weights its actions by the sum of estimated Q so far.

Paper: Y. Abbasi-Yadkori, P. Bartlett, K. Bhatia, N. Lazic, C. Szepesvari, G. Weisz, "POLITEX: regret bounds for
policy iteration using expert prediction", ICML 2019.
Setting: average reward, linear q; here the discounted form, tabular.
Trust: CHECKED: policies and eta against the proceedings (Algorithm 1, Theorem 4.1, with Q in [0, H]), the truncation
against public lecture notes by one of the authors, for the discounted setting with a simulator (their eta is half as
large). Estimation along the reset stream and the length of a phase are DERIVED here.

In phase k policy pi_k is played for J reset epochs; pi_1 is uniform.

    q_hat_k(x, a)   = mean over the visits of (x, a) in the phase of the rewards from there to the reset, in [0, H]
    pi_{k+1}(a | x) = exp(eta sum_{j <= k} q_hat_j(x, a)) / sum_b exp(eta sum_{j <= k} q_hat_j(x, b))

A reset comes with probability 1 - gamma after each step, so the sum of rewards from a visit to the reset, not
discounted, has mean Q^{pi_k}(x, a): the reward l steps later is earned with probability gamma^l.

Constants: J = max(1, round((1 - gamma) sqrt(T))), so that a phase takes about tau = sqrt(T) plays, and K = round((1 -
gamma) T / J) phases; eta = (1 / H) sqrt(8 ln A / K). `step_scale` multiplies eta, `phase` sets J. Where from: the
mean gap over K phases is at most the mean regret of exponential weights, of order H sqrt(ln A / K) = H sqrt(tau ln A
/ T), and twice the error of q_hat, of order H / sqrt(tau) where visits are a fixed share of steps. T times their sum,
H (sqrt(tau T) + T / sqrt(tau)), is least at tau of order sqrt(T).
Guarantee: regret of order T^(3/4) if every policy visits all pairs. It does not explore: what is not visited stays at
0.
Composition: averages of returns x none x exponential weights x J resets.
Cost: O(1) per step, O(X A) per reset; O(X A) per phase, K of them.
Deviations: returns come from the run itself, and only from epochs that have ended; visits to a pair within an epoch
all count, so they are dependent, and the ratio of sums is consistent rather than unbiased (the sum of return minus Q
over visits has mean 0).
"""

from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, each, first, sync
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.runtime.ranges import Count, Number, Policy, Positive
from ravi.runtime.seedwise import compiled_learner


class State(NamedTuple):
    total: Positive  # sum_j q_hat_j   (n, X, A)
    returns: Number  # sum of returns to go over the visits of this phase   (n, X, A)
    visits: Count  # how many, in epochs that have ended   (n, X, A)
    pending: Count  # and in the epoch that has not: their returns lack the sum of its rewards   (n, X, A)
    earned: Positive  # rewards of this epoch so far   (n,)
    epochs: Count  # that have ended in this phase   (n,)
    policy: Policy  # (n, X, A)


def politex(problem: Problem, steps: int, *, step_scale: float = 1.0, phase: int | None = None) -> Learner:
    """POLITEX from returns between resets; `phase` is J, the number of reset epochs per policy."""
    T = validation.steps(steps)
    r, gamma, H, X, A = problem.rewards, problem.discount, problem.horizon, problem.states, problem.actions
    J = max(1, round((1 - gamma) * sqrt(T))) if phase is None else validation.whole(phase, "phase")
    K = max(1, round((1 - gamma) * T / J))
    step_scale = validation.positive(step_scale, "step_scale")
    eta = validation.finite_result(lambda: step_scale * sqrt(8 * log(A) / K) / H, "eta", step_scale=step_scale)

    def init(keys: Array) -> State:
        n = len(keys)
        total, returns, uniform = np.zeros((n, X, A)), np.zeros((n, X, A)), np.full((n, X, A), 1 / A)
        visits, pending = np.zeros((n, X, A), np.int64), np.zeros((n, X, A), np.int64)
        return State(total, returns, visits, pending, np.zeros(n), np.zeros(n, np.int64), uniform)

    def own(s: State, teams: int) -> tuple[Any, ...]:
        return s, r, J, eta, H

    settings: dict[str, Any] = {"eta": eta, "phase": J, "phases": K, "step_scale": step_scale}
    return compiled_learner("politex", init, Seedwise(_plan, _learn, own), settings)


@compiled
def weigh(total, eta, policy):  # type: ignore[no-untyped-def]
    """policy(a | x) = exp(eta total(x, a)), normalised, in place; a team's."""
    X, A = total.shape
    for x in each(X):
        top = total[x, 0]
        for a in range(1, A):
            top = max(top, total[x, a])
        mass = 0.0
        for a in range(A):
            policy[x, a] = exp(eta * (total[x, a] - top))
            mass += policy[x, a]
        for a in range(A):
            policy[x, a] /= mass


@compiled
def _plan(own, i, t):  # type: ignore[no-untyped-def]
    """The next phase, if the phase has ended; a team's."""
    (total, returns, visits, _, _, epochs, policy), _, J, eta, H = own
    _, X, A = total.shape
    ended = epochs[i] >= J
    sync()  # all have read it
    if ended:
        for x in each(X):
            for a in range(A):
                N = visits[i, x, a]
                q_hat = returns[i, x, a] / N if N > 0 else 0.0
                total[i, x, a] += min(max(q_hat, 0.0), H)
                returns[i, x, a], visits[i, x, a] = 0.0, 0
        if first():
            epochs[i] = 0
        weigh(total[i], eta, policy[i])  # of the states that this thread has
    return NEVER


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """A return to go is the sum of the epoch's rewards less those before: the latter now, the former at the reset."""
    (_, returns, visits, pending, earned, epochs, _), r, _, _, _ = own
    returns[i, x, a] -= earned[i]
    pending[i, x, a] += 1
    earned[i] += r[x, a]
    if reset:
        for z in range(pending.shape[1]):
            for b in range(pending.shape[2]):
                if pending[i, z, b] > 0:
                    returns[i, z, b] += pending[i, z, b] * earned[i]
                    visits[i, z, b] += pending[i, z, b]
                    pending[i, z, b] = 0
        earned[i] = 0.0
        epochs[i] += 1
    return False
