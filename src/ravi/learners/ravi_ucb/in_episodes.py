"""RAVI-UCB in episodes: the regularised backup is made at every stage, from the last one back, before every episode.

With N and P_hat of the paper's Algorithm 2 from all earlier episodes, CB = beta / sqrt(N), pi_h^0 = pi_0, V_S = 0, and
backwards over h = S - 1, ..., 0 before episode k:

    Q_h^k      = Pi_[0, S - h][r + CB + P_hat V_{h+1}^k]
    V_h^k(x)   = (1 / eta) log sum_a pi_h^{k-1}(a | x) exp(eta Q_h^k(x, a))
    pi_h^k     = pi_h^{k-1} exp(eta (Q_h^k - V_h^k))

Theorem. For every eta > 0, if |(P_hat - P) V| <= CB at all pairs for all V in [0, S]^X (Lemma 5.1 with S for H, with
probability 1 - delta; where not, delta T more), then the expected regret of K episodes is at most

    (1 / eta) sum_h E_{pi*} KL(pi*_h(. | x_h) || pi_0(. | x_h)) + 2 E sum_t CB(x_t, a_t).

Proof. For any p, <p, Q_h^k> = V_h^k + (KL(p || pi_h^{k-1}) - KL(p || pi_h^k)) / eta. V_{h+1}^k <= S - h - 1, so
validity gives r + P V_{h+1}^k <= Q_h^k <= r + P V_{h+1}^k + 2 CB. With p = pi*_h and the first inequality, backwards,

    V*_0 - V_0^k <= (1 / eta) sum_h E_{pi*} [KL(pi*_h || pi_h^{k-1}) - KL(pi*_h || pi_h^k)](x_h),

and the law of x_h under pi* is the same in every episode, so that the sum over k telescopes. With p = pi_h^k,
V_h^k - <pi_h^k, Q_h^k> = -KL(pi_h^k || pi_h^{k-1}) / eta <= 0, so V_0^k - V_0^{pi^k} <= 2 E_{pi^k} sum_h CB. Where T
cuts an episode off, the regret is the linear interpolation of those at its two ends, and the bound, concave in the
number of plays, holds in between.

So a large eta costs nothing here, and nothing is left of the H^2 sqrt(2 T ln A) of Theorem 4.1: that is the price of
one backup an epoch, and an episode makes all S of them. eta = S max(ln A, 1) makes the first term at most 1, and eta to
infinity is greedy: UCBVI with the bonus of Lemma 5.1 and without the minimum over episodes. The second term is

    2 beta sum_{x,a} (2 sqrt(2 N_end) + 2 S) <= 2 beta (2 sqrt(2 X A (T + X A)) + 2 S X A):

N stays as it is within an episode. Of a pair, episodes with n <= N plays cost n / sqrt(N) <= 2 sqrt(2) (sqrt(N + n) -
sqrt(N)); in the others N < S more than doubles, so they have at most 2 S plays together.

Linear mixtures: with P_hat V = <phi_V, theta_hat> and CB = beta ||phi_V||_{Lambda^{-1}} of Algorithm 3, Lambda and b
of all earlier episodes, phi_h = phi_{V_{h+1}} and S for H in beta (Lemma 5.4), the theorem holds as it stands, as its
proof asks for validity at V_{h+1}^k alone, and 2 CB may be min{2 CB, S}. Let L = ln(1 + T B^2 S^2 / (lambda d)). det
Lambda more than doubles in at most d L / ln 2 episodes, which cost S each; in the others the norm is at most sqrt(2)
times that at the Lambda of the step, and min{2 CB, S} <= 2 sqrt(2) beta min{1, norm} since beta >= S. The squares of
these minima add up to 2 d L at most: so

    R_T <= 1 + delta T + S d L / ln 2 + 4 beta sqrt(d T L).

OPPO (`oppo`) takes the same mirror step with Q^{k-1} in place of Q^k, and then evaluates pi^k: its V_h is <pi_h^k,
Q_h^k>, and each step costs it eta S^2 / 2 more, for which its eta must fall as 1 / sqrt(K).
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, Buffer, each, sync
from ravi.core import Array, Learner, Parts, Problem, Seedwise, TheoryConstants
from ravi.estimators.counts import Counts, counts
from ravi.learners.episodic.core import count_step
from ravi.learners.options import Options, policy_to_begin, recorded
from ravi.learners.regularised import oppo
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning.backward import lists, mirror_pass
from ravi.planning.mirror import step_in_place
from ravi.runtime.ranges import Age, LogPolicy, Policy, Value
from ravi.runtime.seedwise import compiled_learner
from ravi.theory import constants


class State(NamedTuple):
    data: Counts  # N, N'
    V: Value  # V_h                        (n, S, X)
    Q: Value  # Q_h                        (n, S, X, A)
    log_policy: LogPolicy  # log pi_h      (n, S, X, A)
    policy: Policy  # by stage             (n, S, X, A)
    age: Age  # steps since the reset      (n,)


def in_episodes(problem: Problem, T: int, o: Options) -> Learner:
    """Algorithm 2 in episodes; `scale` multiplies beta, `step_scale` eta."""
    (S, pi0, eta), X, A, estimator = _begun(problem, o), problem.states, problem.actions, counts(problem)
    beta = o.scaled(constants.beta_tabular(S, X, A, T, o.delta) if o.beta is None else o.beta)

    def init(keys: Array) -> State:
        n = len(keys)
        policy, Q = pi0 + np.zeros((n, S, X, A)), np.zeros((n, S, X, A))
        return State(estimator.init(n), np.zeros((n, S, X)), Q, np.log(policy), policy, np.zeros(n, np.int32))

    def own(s: State, teams: int) -> tuple[Any, ...]:
        n, rows = len(s.age), (-1, X, A)
        by_row = s.V.reshape(-1, X), s.Q.reshape(rows), s.log_policy.reshape(rows), s.policy.reshape(rows)
        read = problem.rewards, problem.successors, beta, np.array([eta]), S
        return *s.data, *by_row, read, Buffer((n, 0, 0), np.int32)

    parts = Parts(
        estimator, multiple_of_width(beta, estimator), eta, np.zeros(X), pi0,
        stated=TheoryConstants("tabular", beta, o.scale, o.step_scale, o.delta),
    )  # fmt: skip
    form, settings = Seedwise(seed_plan, count_step, own), _settings(o, beta, eta, pi0) | {"stages": S}
    return compiled_learner("ravi-ucb", init, form, settings, stages=S, parts=parts)


def mixture_in_episodes(problem: Problem, T: int, o: Options) -> Learner:
    """Algorithm 3 in episodes; `scale` multiplies beta, `step_scale` eta."""
    (S, pi0, eta), d, lam, psi = _begun(problem, o), problem.dimension, o.regularization, lists(problem)
    B, most = problem.bound if o.bound is None else o.bound, np.arange(S, 0.0, -1.0)
    beta = o.beta
    if beta is None:  # Lemma 5.4
        beta = constants.beta_mixture(S, d, T, o.delta, parameter_bound=B, feature_bound=B, regularization=lam)
    beta, step = o.scaled(beta), np.array([eta])

    def back_up(s: oppo.State) -> None:
        of = s.theta, s.data.inverse, s.beta, step, s.log_policy, s.policy
        mirror_pass(psi, problem.rewards, most, *of, s.V, s.Q)

    settings = _settings(o, beta, eta, pi0) | {"regularization": lam, "bound": B}
    return oppo.by_stage("ravi-ucb/mixture", problem, S, lam, pi0, lambda D: beta, back_up, settings)


def _begun(problem: Problem, o: Options) -> tuple[int, Array, float]:
    """S, pi_0 and eta."""
    if np.any(np.asarray(o.initial_value) != 0):
        raise validation.InputError("initial_value is given, but in episodes V is 0 where they end")
    S = problem.episode or 0
    return S, policy_to_begin(o.initial_policy, problem), o.step(S * max(log(problem.actions), 1.0))


def _settings(o: Options, beta: float, eta: float, pi0: Array) -> dict[str, Any]:
    begun = "uniform" if o.initial_policy is None else recorded(pi0)
    of = {"beta": beta, "eta": eta, "scale": o.scale, "step_scale": o.step_scale, "delta": o.delta}
    return of | {"initial_policy": begun}


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """The backups and mirror steps of an episode of one seed; a team's."""
    visits, moves, V, Q, log_policy, policy, read, _ = own
    r, successors, beta, eta, S = read
    X, A = r.shape
    for h in range(S - 1, -1, -1):
        row, most = i * S + h, float(S - h)
        for x in each(X):
            for a in range(A):
                N, to, moved, mean = visits[i, x, a], successors[x, a], moves[i, x, a], 0.0
                if h < S - 1:
                    for j in range(moved.shape[0]):
                        mean += moved[j] * V[row + 1, to[j]]
                Q[row, x, a] = max(min(r[x, a] + beta / sqrt(N) + mean / N, most), 0.0)
        sync()
        step_in_place(row, row + 1, log_policy, policy, Q, eta, V)
        sync()
    return NEVER
