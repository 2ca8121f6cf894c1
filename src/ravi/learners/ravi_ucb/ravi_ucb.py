"""RAVI-UCB: regularised approximate value iteration with upper confidence bounds.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023.
Trust: CHECKED: transcribed from the paper, and compared with literal transcriptions of its three algorithms.

In epoch k (Algorithm 1):

    V_k(x)      = (1/eta) log sum_a pi_{k-1}(a|x) exp(eta Q_k(x, a))
    pi_k(a|x)   = pi_{k-1}(a|x) exp(eta (Q_k(x, a) - V_k(x)))
    CB_k        = BONUS(D_{T_k})
    Q_{k+1}     = Pi_H[r + CB_k + gamma P_hat_k V_k],   P_hat_k = TRANSITION-ESTIMATE(D_{T_k})

then pi_k is played and ADD takes every (x_t, a_t, y_t) into D, until a reset, which comes with probability 1 - gamma
after each step. Q_1 = E V_0, so that V_1 = V_0 and pi_1 = pi_0.

    tabular (Algorithm 2):          P_hat = N'/N,                 CB = beta / sqrt(N)
    linear mixture (Algorithm 3):   P_hat V = <phi_V, theta_hat>, CB = beta ||phi_V||_{Lambda^{-1}}

Constants: eta of Theorem 4.1, beta of Lemmas 5.1 and 5.4 with delta = 1/T, lambda = 1, V_0 = 0, pi_0 uniform.
Deviations: the paper to the letter but for three repairs, all in the engine: x_1 ~ nu_0 (the text draws X_0 and plays
from t = 1), exactly T steps (the printed loops make T - 1, or never stop when a reset falls on T), and samples keep
the true successor y_t (the printed x_{t+1} is overwritten by a reset).

Traits to know: pi_k ignores the data of
epoch k - 1, which enter through Q_{k+1}; with V_0 = 0 the mixture learner learns nothing in epoch 1 (phi_1 = 0); and
since an unvisited row of N'/N is zero, a tabular beta that is scaled below about H is pessimistic there, and pairs may
never be tried.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, sync
from ravi.core import MDP, Array, Bonus, Data, Estimator, Learner, Parts, Path, Problem, Seedwise, TheoryConstants
from ravi.estimators.counts import counts, known
from ravi.estimators.ridge import ridge
from ravi.learners.options import Options, begun, policy_to_begin, record, takes, value_to_begin
from ravi.learners.ravi_ucb.inner import Counted, Work
from ravi.learners.ravi_ucb.inner_counts import of_widths
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning.bellman import backup, backup_in_place, expect_in_place, extend
from ravi.planning.mirror import mirror_step, step_in_place
from ravi.runtime.ranges import LogPolicy, Policy, Value
from ravi.runtime.seedwise import of_rows, over_all_seeds, positive
from ravi.runtime.walk import JOINT, learn
from ravi.schedules import at_reset
from ravi.theory import constants


class State(NamedTuple):
    data: Data  # D
    V: Value  # V_k                    (n, X)
    Q: Value  # Q_{k+1}                (n, X, A)
    log_policy: LogPolicy  # log pi_k  (n, X, A)
    policy: Policy  # pi_k             (n, X, A)


def backup_of(problem: Problem, estimator: Estimator, bonus: Bonus) -> Callable[[Data, Array], Array]:
    """D_{T_k}, V_k -> Q_{k+1}."""
    r, gamma, H = problem.rewards, problem.discount, problem.horizon

    def backed_up(D: Data, V: Array) -> Array:
        phi = estimator.embed(V)
        PV = estimator.expect(D, phi)  # TRANSITION-ESTIMATE
        CB = bonus(D, phi)  # BONUS
        return backup(r, CB, gamma, PV, H)

    return backed_up


def plan_of(
    problem: Problem, estimator: Estimator, bonus: Bonus, eta: float | Array, *, fresh: bool = False
) -> Callable[[State], State]:
    """The plan of epoch k: a mirror step and a backup; where Q is fresh (RAVI-UCB+), the backup comes first."""
    backed_up = backup_of(problem, estimator, bonus)

    def plan(s: State) -> State:
        D, V, Q, log_policy, policy = s
        if fresh:
            Q = backed_up(D, V)
        V, log_policy, policy = mirror_step(log_policy, policy, Q, eta, in_place=True)  # V_k, pi_k
        if not fresh:
            Q = backed_up(D, V)  # Q_{k+1}
        return State(D, V, Q, log_policy, policy)

    return plan


def generic(
    problem: Problem, estimator: Estimator, bonus: Bonus, eta: float | Array, *, initial_value: float | Array = 0.0,
    initial_policy: Array | None = None, name: str = "ravi-ucb/generic", stated: TheoryConstants | None = None,
    settings: dict[str, Any] | None = None, numbers: Any = None,
) -> Learner:  # fmt: skip
    """Algorithm 1 with TRANSITION-ESTIMATE and ADD from `estimator`, and BONUS from `bonus`. An array eta is one number
    of every row (`ravi.runtime.seedwise`). stated: the constants of both; `settings`: another record of them; numbers:
    those of the same estimate and bonus, where they are compiled (`constants` of `Counted`)."""
    X, A, eta = problem.states, problem.actions, positive(eta, "eta")
    V0, pi0 = value_to_begin(initial_value, problem), policy_to_begin(initial_policy, problem)

    def init(keys: Array) -> State:
        n = len(keys)
        V, policy = V0 + np.zeros((n, X)), pi0 + np.zeros((n, X, A))
        Q1 = extend(V, A) + np.zeros((n, X, A))  # Q_1 = E V_0
        return State(estimator.init(n), V, Q1, np.log(policy), policy)

    def add(s: State, path: Path) -> State:
        estimator.add(s.data, s.V, path)  # ADD, in place
        return s

    parts = Parts(estimator, bonus, eta, V0 + np.zeros(X), pi0, stated=stated or TheoryConstants())
    kept = {"eta": eta} | record(stated, settings) | begun(V0, pi0, initial_policy)
    learner = Learner(name, init, plan_of(problem, estimator, bonus, eta), add, at_reset(), kept, parts)
    if numbers is None:
        return learner
    return over_all_seeds(learner, Counted(problem, numbers, np.atleast_1d(eta), False, 1, "last", work).seedwise)


@takes("scale", "step_scale", "eta", "beta", "delta", "initial_value", "initial_policy")
def tabular(problem: Problem, T: int, o: Options, span: float | None = None) -> Learner:
    """Algorithm 2. `scale` multiplies beta, `step_scale` eta; every other constant is the paper's unless given. `span`
    is for the average reward: a bound on the span of the optimal bias.

    In episodes (`criterion=episodic`) the backup and the mirror step are made at every stage, from the last one back
    (`ravi.learners.ravi_ucb.in_episodes`, which has the proof): close to OPPO, whose mirror step takes the Q before.

    In the average reward (`criterion=average`) it is made at every step, with a discount that T sets, of values that
    are cut to twice the span (`ravi.learners.ravi_ucb.in_average_reward`): no bound is proven there.

    Setting: discounted with resets, episodes, or average reward; tabular.
    Guarantee: expected regret O(X H sqrt(A T) + H^2 sqrt(T ln A)) up to logarithms (Theorem 4.1, Lemmas 5.1 and 5.2).
    In episodes of S steps with eta = S max(ln A, 1), for every T, at most 1 + delta T +
    4 beta (sqrt(2 X A (T + X A)) + S X A), beta = 8 S sqrt(X ln(X A T / delta)).
    Composition: counts from 1 x beta / sqrt(N) x one mirror step and one backup x at resets.
    Cost: O(A) per step; X A B per plan, B the successors stored per pair; T / H plans. In episodes S X A B per plan, in
    the average reward a plan in every step.
    """
    if problem.criterion == "average":
        from ravi.learners.ravi_ucb.in_average_reward import in_average_reward

        return in_average_reward(problem, T, o, span)
    if span is not None:
        raise validation.InputError("span is given, and it is for the average reward: elsewhere it is H, or an episode")
    if problem.episode is not None:
        from ravi.learners.ravi_ucb.in_episodes import in_episodes

        return in_episodes(problem, T, o)
    return on_counts(generic, problem, T, o)


def on_counts(generic: Callable[..., Learner], problem: Problem, T: int, o: Options) -> Learner:
    """Algorithm 2 in a form of Algorithm 1: `generic`, or that of another one."""
    estimator = counts(problem)

    def build(step: float | Array, beta: float | Array) -> Learner:
        return generic(
            problem, estimator, multiple_of_width(beta, estimator), step, initial_value=o.initial_value,
            initial_policy=o.initial_policy, name="ravi-ucb", numbers=of_widths(np.atleast_1d(beta)),
            stated=TheoryConstants("tabular", beta, o.scale, o.step_scale, o.delta),
        )  # fmt: skip

    return of_rows(build, (theorem_step(o, problem, T), radius(o, problem, T)), problem, T)


def work(s: State) -> Work:
    """What a plan of each seed works on, where it is made of counts."""
    return Work(*s, s.V, s.policy)


@takes(
    "scale", "step_scale", "eta", "beta", "delta", "regularization", "bound", "initial_value", "initial_policy"
)  # fmt: skip
def linear_mixture(problem: Problem, T: int, o: Options) -> Learner:
    """Algorithm 3. `scale` multiplies beta, `step_scale` eta; `regularization` is lambda; `bound` is B, by default
    the larger of B_theta and B_phi; every other constant is the paper's unless given.

    In episodes (`criterion=episodic`) as Algorithm 2 (`ravi.learners.ravi_ucb.in_episodes`).

    Setting: discounted with resets, or episodes; linear mixture of dimension d.
    Guarantee: expected regret O(sqrt((d^2 H^3 + B^2 d H + H^4 ln A) T)) up to logarithms (Theorem 5.6). In episodes of
    S steps at most 1 + delta T + S d L / ln 2 + 4 beta sqrt(d T L), L = ln(1 + T B^2 S^2 / (lambda d)), for every T.
    Composition: ridge regression on values x beta ||phi||_{Lambda^-1} x one mirror step and one backup x at resets.
    Cost: O(d^2) per step; X A (B d + d^2) per plan; T / H plans. In episodes S times that.
    """
    if problem.episode is not None:
        from ravi.learners.ravi_ucb.in_episodes import mixture_in_episodes

        return mixture_in_episodes(problem, T, o)
    return on_regression(generic, problem, T, o)


def on_regression(generic: Callable[..., Learner], problem: Problem, T: int, o: Options) -> Learner:
    """Algorithm 3 likewise."""
    H, d, lam = problem.horizon, problem.dimension, o.regularization
    B, estimator = problem.bound if o.bound is None else o.bound, ridge(problem, lam)

    def build(step: float | Array, beta: float | Array) -> Learner:
        made = generic(
            problem, estimator, multiple_of_width(beta, estimator), step, initial_value=o.initial_value,
            initial_policy=o.initial_policy, name="ravi-ucb/mixture",
            stated=TheoryConstants("mixture", beta, o.scale, o.step_scale, o.delta, lam, B),
        )  # fmt: skip
        return made._replace(seedwise=JOINT)

    beta = o.beta
    if beta is None:  # Lemma 5.4
        beta = constants.beta_mixture(H, d, T, o.delta, parameter_bound=B, feature_bound=B, regularization=lam)
    return of_rows(build, (theorem_step(o, problem, T), o.scaled(beta)), problem, T)


@takes("step_scale", "eta", "initial_value", "initial_policy")
def known_kernel(mdp: MDP, T: int, o: Options) -> Learner:
    """Algorithm 1 with P_hat = P and CB = 0: what the planning costs when there is nothing to learn (MD-MPI).

    Setting: discounted with resets; it is given the kernel.
    Guarantee: expected regret H^2 sqrt(2 T ln A) + 2 H^2, the optimisation term of Theorem 4.1, up to its erratum.
    Composition: the kernel itself x no bonus x one mirror step and one backup x at resets.
    Cost: O(A) per step; X A B per plan; T / H plans.
    """
    estimator = known(mdp)
    fixed = mdp.successors, mdp.transitions, mdp.rewards, np.zeros((1, *mdp.rewards.shape)), mdp.discount, mdp.horizon

    def build(step: float | Array) -> Learner:
        made = generic(
            mdp.problem, estimator, multiple_of_width(0.0, estimator), step, initial_value=o.initial_value,
            initial_policy=o.initial_policy, name="ravi-ucb/known", settings={"step_scale": o.step_scale},
        )  # fmt: skip

        def own(s: State, teams: int) -> tuple[Any, ...]:
            return *fixed, np.atleast_1d(step), s.V, s.Q, s.log_policy, s.policy

        return over_all_seeds(made, Seedwise(_plan_knowing, learn, own))

    return of_rows(build, (theorem_step(o, mdp.problem, T),), mdp, T)


@compiled
def _plan_knowing(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed under the kernel itself; a team's."""
    successors, transitions, r, CB, gamma, H, eta, V, Q, log_policy, policy = own
    step_in_place(i, i + 1, log_policy, policy, Q, eta, V)  # V_k, pi_k
    sync()
    expect_in_place(i, i + 1, successors, transitions, V, Q)
    backup_in_place(i, i + 1, r, CB, gamma, Q, H)  # Q_{k+1}
    return NEVER


def radius(o: Options, problem: Problem, T: int) -> float:
    """beta of Lemma 5.1, unless it is given; times `scale`."""
    H, X, A = problem.horizon, problem.states, problem.actions
    return o.scaled(constants.beta_tabular(H, X, A, T, o.delta) if o.beta is None else o.beta)


def theorem_step(o: Options, problem: Problem, T: int) -> float:
    """eta of Theorem 4.1, unless it is given; times `step_scale`."""
    return o.step(constants.eta(problem.horizon, problem.actions, T))
