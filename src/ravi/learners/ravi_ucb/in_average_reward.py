"""RAVI-UCB in the average reward: one regularised backup a step, at a discount that T sets, of values cut to a span.

Discounting, centring and clipping are those of gamma-LSCVI-UCB (K. Hong, W. Chae, Y. Zhang, D. Lee, A. Tewari, AISTATS
2025); the backup and the mirror step are those of RAVI-UCB. With sp >= span(h*), gamma = 1 - 1 / sqrt(T), H = sqrt(T),
N and P_hat of the paper's Algorithm 2 and CB = beta / sqrt(N), before step t

    V~_t(x)     = (1/eta) log sum_a pi_{t-1}(a|x) exp(eta Q_t(x, a)),    pi_t = pi_{t-1} exp(eta (Q_t - V~_t))
    m_t         = min V~_t,    V_t(x) = min{V~_t(x), m_t + 2 sp}
    Q_{t+1}     = Pi_[0, H][r + CB_t + gamma (m_t + P_hat_t (V_t - m_t))]

and pi_t is played for one step. Q_1 = 0, pi_0 uniform. The optimal values of discount gamma have a span of at most 2 sp
(Wei et al. 2020, Lemma 2).

Constants: beta of Lemma 5.1 with 2 sp for H, as V_t - m_t lies in [0, 2 sp]; eta = sqrt(2 ln A / T) / (2 sp), which
minimises ln A / eta + eta (2 sp)^2 T / 2, the regret of T mirror steps on values of that span.

Guarantee: none; the proof is open, as in the paper. What there is: with nu* the stationary distribution of pi*,
D_t(x) = <nu*, V_t> - V_t(x), valid bonuses, and as long as nothing is cut,

    sum_t (g* - r(x_t, a_t)) <= 2 sum_t CB_{t-1}(x_t, a_t) + ln A / eta + (1 - gamma) sum_t D_t(x_t)
                                + sum_t (D_t - D_{t-2})(x_t) + a martingale + O(sp).

The first two parts are as in the paper, the third is at most 2 sp sqrt(T). Missing are the fourth, by how much the
shape of V moves from step to step (with a discount the resets average it out: Lemma 4.3), and the cut: it keeps V_t >=
V* where that holds in every state, and here it holds in the mean over nu*, up to the mirror steps.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import Buffer, each, sync, team_min
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.estimators.counts import Counts, counts
from ravi.learners.episodic.core import count_step
from ravi.learners.options import Options, bias_span, nearly_average, policy_to_begin, recorded
from ravi.planning.mirror import step_in_place
from ravi.runtime.ranges import LogPolicy, Policy, Positive
from ravi.runtime.seedwise import compiled_learner
from ravi.theory import constants


class State(NamedTuple):
    data: Counts  # N, N'
    V: Positive  # V_t                 (n, X)
    Q: Positive  # Q_{t+1}             (n, X, A)
    log_policy: LogPolicy  # log pi_t  (n, X, A)
    policy: Policy  # pi_t             (n, X, A)


def in_average_reward(problem: Problem, T: int, o: Options, span: float | None) -> Learner:
    """Algorithm 2 in the average reward; `scale` multiplies beta, `step_scale` eta, `span` is sp."""
    X, A, sp = problem.states, problem.actions, bias_span(problem, span)
    if np.any(np.asarray(o.initial_value) != 0):
        raise validation.InputError("initial_value is given, but in the average reward the first values are 0")
    problem, pi0, estimator = (
        nearly_average(problem, 1 / sqrt(T)),
        policy_to_begin(o.initial_policy, problem),
        counts(problem),
    )
    beta = o.scaled(2 * sp * constants.beta_tabular(1.0, X, A, T, o.delta) if o.beta is None else o.beta)
    eta = o.step(sqrt(2 * max(log(A), 1.0) / T) / (2 * sp))

    def init(keys: Array) -> State:
        n = len(keys)
        policy = pi0 + np.zeros((n, X, A))
        return State(estimator.init(n), np.zeros((n, X)), np.zeros((n, X, A)), np.log(policy), policy)

    def own(s: State, teams: int) -> tuple[Any, ...]:
        read = problem.rewards, problem.successors, problem.discount, problem.horizon, 2 * sp, beta, np.array([eta])
        return *s.data, *s[1:], read, Buffer((len(s.V), 0, 0), np.int32)

    begun = "uniform" if o.initial_policy is None else recorded(pi0)
    settings: dict[str, Any] = {
        "beta": beta,
        "eta": eta,
        "scale": o.scale,
        "step_scale": o.step_scale,
        "delta": o.delta,
    }
    settings |= {"delta": o.delta, "span": sp, "discount": problem.discount, "initial_policy": begun}
    form = Seedwise(seed_plan, count_step, own, reset=False, time=next_time)
    return compiled_learner("ravi-ucb", init, form, settings)


def next_time(s: State) -> Array:
    """t of the next step   (n,)."""
    return 1 + (s.data.visits - 1).sum((1, 2), dtype=np.int64)


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """The mirror step and the backup of one step of one seed; a team's."""
    visits, moves, V, Q, log_policy, policy, read, _ = own
    r, successors, gamma, H, width, beta, eta = read
    X, A = r.shape
    step_in_place(i, i + 1, log_policy, policy, Q, eta, V)
    sync()
    low = H
    for x in each(X):
        low = min(low, V[i, x])
    low = team_min(low)
    for x in each(X):
        V[i, x] = min(V[i, x], low + width)
    sync()
    for x in each(X):
        for a in range(A):
            N, to, moved, mean = visits[i, x, a], successors[x, a], moves[i, x, a], 0.0
            for j in range(moved.shape[0]):
                mean += moved[j] * (V[i, to[j]] - low)
            Q[i, x, a] = max(min(r[x, a] + beta / sqrt(N) + gamma * (low + mean / N), H), 0.0)
    sync()
    return t
