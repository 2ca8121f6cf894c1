"""POLITEX: policy iteration with expert prediction. Each state weights its actions by the sum of estimated Q so far.

Paper: Y. Abbasi-Yadkori, P. Bartlett, K. Bhatia, N. Lazic, C. Szepesvari, G. Weisz, "POLITEX: regret bounds for
policy iteration using expert prediction", ICML 2019.
Setting: average reward, or discounted; tabular (the paper has linear q).
Trust: CHECKED: policies and eta against the proceedings (Algorithm 1, Theorem 4.1, with Q in [0, H]); g_k, v_k and q_k
of the average reward against public code by the authors of optimistic Q-learning, who compare with it; the truncation
of the discounted form against public lecture notes by one of the authors, for a simulator (their eta is half as large).
Estimation along the reset stream and the length of a phase are DERIVED here.

In the average reward phase k takes J steps and ends in x'. With n, p_hat, the frequencies of actions pi_hat, and the
mean reward g_k of its own steps, q_k is that of least squares for one-hot features, v_k(x') = 0:

    v_k(x)          = sum_a pi_hat(a | x) (r(x, a) - g_k + <p_hat, v_k>),    q_k(x, a) = r(x, a) - g_k + <p_hat, v_k>
    pi_{k+1}(a | x) = exp(eta sum_{j <= k} (q_j - v_j)(x, a)) / sum_b exp(eta sum_{j <= k} (q_j - v_j)(x, b))

q_k - v_k is cut to [-sp, sp] and 0 where n = 0 (`ravi.learners.regularised.exponential_weights`).

With a discount phase k takes J reset epochs, and in place of q_k - v_k there is

    q_hat_k(x, a)   = mean over the visits of (x, a) in the phase of the rewards from there to the reset, in [0, H]

A reset comes with probability 1 - gamma after each step, so the sum of rewards from a visit to the reset, not
discounted, has mean Q^{pi_k}(x, a): the reward l steps later is earned with probability gamma^l. pi_1 is uniform.

Constants: eta = (1 / W) sqrt(8 ln A / K), K the number of phases and W the length of the interval of q: H, or 2 sp in
the average reward, where sp is `span`, a bound on |q - v| for every policy. A phase takes about sqrt(T) plays: J =
round(sqrt(T)) steps, or max(1, round((1 - gamma) sqrt(T))) epochs. `step_scale` multiplies eta, `phase` sets J. Where
from: the mean gap over K phases is at most the mean regret of exponential weights, of order W sqrt(ln A / K) = W
sqrt(tau ln A / T) where a phase takes tau plays, and twice the error of q, of order W / sqrt(tau) where visits are a
fixed share of steps. T times their sum, W (sqrt(tau T) + T / sqrt(tau)), is least at tau of order sqrt(T).
Guarantee: regret of order T^(3/4) if every policy visits all pairs. It does not explore: what is not visited stays as
it is.
Composition: relative values by least squares, or averages of returns x none x exponential weights x J steps, or resets.
Cost: O(1) per step; X^3 per phase, or with a discount O(X A) per reset and per phase; K phases.
Deviations: least squares in closed form, not by the paper's iteration. The public code spends half of a phase on v_k,
with a ridge of .05, and the other half on q_k, in which it first plays every action of a state once; here one stretch
of steps serves both, and nothing is played to explore. With a discount, returns come from the run itself, and only from
epochs that have ended; visits to a pair within an epoch all count, so they are dependent, and the ratio of sums is
consistent rather than unbiased (the sum of return minus Q over visits has mean 0).
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, each, first, sync
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.learners.options import bias_span
from ravi.learners.regularised.exponential_weights import exponential_weights, plan_politex, weigh
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


def politex(
    problem: Problem, steps: int, *, step_scale: float = 1.0, phase: int | None = None, span: float | None = None
) -> Learner:
    """POLITEX; `phase` is J, the number of steps per policy, or with a discount of reset epochs; `span` is sp, for the
    average reward."""
    T, average = validation.steps(steps), problem.criterion == "average"
    r, gamma, H, X, A = problem.rewards, problem.discount, problem.horizon, problem.states, problem.actions
    if span is not None and not average:
        raise validation.InputError(
            "span is given, but with a discount q_hat lies in [0, H]: it is for the average reward"
        )
    W = 2 * bias_span(problem, span) if average else H
    J = max(1, round(sqrt(T) * (1.0 if average else 1 - gamma))) if phase is None else validation.whole(phase, "phase")
    K = max(1, round(T * (1.0 if average else 1 - gamma) / J))
    step_scale = validation.positive(step_scale, "step_scale")
    eta = validation.finite_result(lambda: step_scale * sqrt(8 * log(A) / K) / W, "eta", step_scale=step_scale, span=W)
    settings: dict[str, Any] = {"eta": eta, "phase": J, "phases": K, "step_scale": step_scale}
    if average:
        return exponential_weights("politex", problem, plan_politex, eta, W / 2, J, settings)

    def init(keys: Array) -> State:
        n = len(keys)
        total, returns, uniform = np.zeros((n, X, A)), np.zeros((n, X, A)), np.full((n, X, A), 1 / A)
        visits, pending = np.zeros((n, X, A), np.int64), np.zeros((n, X, A), np.int64)
        return State(total, returns, visits, pending, np.zeros(n), np.zeros(n, np.int64), uniform)

    def own(s: State, teams: int) -> tuple[Any, ...]:
        return s, r, J, eta, H

    return compiled_learner("politex", init, Seedwise(_plan, _learn, own), settings)


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
