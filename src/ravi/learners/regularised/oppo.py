"""OPPO: optimistic proximal policy optimisation. A mirror step on every stage, then optimistic evaluation backwards.

Paper: Q. Cai, Z. Yang, C. Jin, Z. Wang, "Provably efficient exploration in policy optimization", ICML 2020.
Setting: episodes, or discounted; linear mixture of dimension d; the paper also allows adversarial rewards, known
afterwards.
Trust: CHECKED against the proceedings (Algorithm 1, Theorem 3.1): the order of steps, which data an evaluation uses,
alpha, lambda, the form of the bonus. Its factor beta has a constant C > 1 that the paper leaves open.

In epoch k, for all stages h, with pi_h^0 uniform and Q_h^0 = 0:

    pi_h^k(a|x) proportional to pi_h^{k-1}(a|x) exp(alpha Q_h^{k-1}(x, a))

    theta_hat = Lambda^{-1} b from the steps before the epoch,   V_S = 0,   and for h = S - 1, ..., 0,
    phi_h = sum_x' psi(., ., x') V_{h+1}(x'),   Gamma_h = gamma beta ||phi_h||_{Lambda^{-1}},
    Q_h^k = Pi_H[r + gamma <theta_hat, phi_h> + Gamma_h],   V_h = sum_a pi_h^k(a|.) Q_h^k(., a)

pi_h^k is played at age h, and every step adds phi_h(x, a) with the target V_{h+1}(y) to the regression. V is the mean
of Q under the policy that is played; RAVI-UCB has its soft maximum, and makes one backup where OPPO makes S.

Constants: alpha = sqrt(2 ln A / (H^2 K)), K = (1 - gamma) T + gamma the expected number of epochs, and in episodes K =
ceil(T / S) and H = S; `step_scale` multiplies it. K mirror steps on values in [0, H] cost ln A / alpha + alpha H^2 K /
2 in every state and stage; stage h counts for gamma^h in both terms alike, so this alpha is the best one for any S. It
is the paper's sqrt(2 ln A / (H T)) with T = H K. delta = 1/T, lambda = 1 (`regularization`). S = ceil(ln(H / eps) /
ln(1/gamma)) with eps = 0.01 (`truncation`): 149 stages at gamma = .95. `scale` multiplies beta.
Guarantee: regret O(sqrt(d^2 H^3 T)) up to logarithms (finite horizon H), and here at most gamma^S H <= eps of <nu_0, V>
more, that is (1 - gamma) eps of the return, for what lies beyond the stages.
Composition: ridge regression on values by age x beta ||phi||_{Lambda^-1} x mirror steps and backward evaluation x at
resets.
Cost: O(m d) per step, m the coordinates of psi that are not zero at a pair, if psi keeps the inverse sparse, else
O(d^2); S X A (m B + m^2 / 2) and S X A exponentials per plan; T / H plans.
Deviations: one regression for all stages; the paper has one for each, for kernels that differ by stage. The paper's
beta is C H sqrt(d ln(d T / delta)) with C unspecified: here it is the log-det radius of UCRL-VTR, (H / 2) sqrt(ln det
Lambda - d ln lambda + 2 ln(1/delta)) + sqrt(lambda) B_theta. Rewards do not change. In episodes (`criterion=episodic`)
S is their length, gamma = 1, and Q is truncated to [0, S - h], as in the paper. With a discount, epochs between resets
are the paper's episodes, values are discounted, and Q is truncated to [0, H]; stage S - 1, which has phi = 0, follows r
alone and teaches nothing, then serves for all later ages, which an epoch reaches with probability gamma^(S-1).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.by_age import checked, learn, radius
from ravi.estimators.gram import Gram, estimate, gram
from ravi.learners.options import Regression, takes
from ravi.planning.backward import lists, policy_pass
from ravi.planning.evaluation import effective_horizon
from ravi.planning.mirror import mirror_step
from ravi.runtime.ranges import Age, LogPolicy, Number, Plays, Policy, Positive, Value
from ravi.schedules import at_reset
from ravi.theory.constants import expected_epochs


class State(NamedTuple):
    data: Gram  # Lambda and b
    plays: Plays  #                                  (n,)
    theta: Number  # theta_hat                       (n, d)
    beta: Positive  # and its radius                 (n,)
    V: Value  # V_0, ..., V_S                        (n, S + 1, X)
    Q: Value  # Q_0, ..., Q_{S-1}                    (n, S, X, A)
    log_policy: LogPolicy  # log pi_h                (n, S, X, A)
    policy: Policy  # pi_h, by age                   (n, S, X, A)
    age: Age  # steps since the reset                (n,)
    began: Age  # age at the start of the path       (n,)


def by_stage(
    name: str, problem: Problem, S: int, lam: float, begun: Array, radius: Callable[[Gram], Array | float],
    back_up: Callable[[State], None], settings: dict[str, Any],
) -> Learner:  # fmt: skip
    """The learner whose values come of one regression for all S stages. begun: the first policy (X, A); radius: of the
    data; back_up: writes V, Q and the policy of an epoch, given theta_hat and beta."""
    psi, X, A, d = lists(problem), problem.states, problem.actions, problem.dimension

    def init(keys: Array) -> State:
        n = len(keys)
        plays, age = np.zeros(n, np.int64), np.zeros(n, np.int32)
        Q, policy = np.zeros((n, S, X, A)), begun + np.zeros((n, S, X, A))
        empty = gram(n, d, lam, X, moves=False), plays, np.zeros((n, d)), np.zeros(n)
        return State(*empty, np.zeros((n, S + 1, X)), Q, np.log(policy), policy, age, age.copy())

    def plan(s: State) -> State:
        s.theta[:] = estimate(checked(s.data))
        s.beta[:] = radius(s.data)
        back_up(s)
        return s

    def add(s: State, path: Path) -> State:
        learn(psi, s.data, s.plays, s.V, s.began, path)
        s.began[:] = s.age
        return s

    return Learner(name, init, plan, add, at_reset(), settings | {"stages": S}, stages=S)


@takes()
def oppo(problem: Problem, T: int, o: Regression, step_scale: float = 1.0, truncation: float = 0.01) -> Learner:
    """OPPO; `scale` multiplies beta, `step_scale` alpha."""
    scale, delta, lam = o
    psi = lists(problem)
    S, B_theta = effective_horizon(problem, truncation), validation.positive(problem.parameter_bound, "parameter_bound")
    X, A, r, gamma, H = problem.states, problem.actions, problem.rewards, problem.discount, problem.largest_value
    most = np.full(S, H) if problem.episode is None else S - np.arange(float(S))  # of Q_h
    K = math.ceil(T / S) if problem.episode is not None else expected_epochs(H, T)
    alpha = validation.nonnegative(step_scale, "step_scale") * math.sqrt(2 * math.log(A) / (H**2 * K))

    def back_up(s: State) -> None:
        rows = (len(s.plays), S * X, A)
        mirror_step(s.log_policy.reshape(rows), s.policy.reshape(rows), s.Q.reshape(rows), alpha, in_place=True)  # pi^k
        policy_pass(psi, r, gamma, most, s.theta, s.data.inverse, s.beta, s.policy, s.V, s.Q)  # Q^k, V^k

    settings = {"scale": scale, "step_scale": float(step_scale), "alpha": alpha, "delta": delta}
    settings |= {"regularization": lam, "parameter_bound": B_theta, "truncation": float(truncation)}
    uniform = np.full((X, A), 1 / A)
    return by_stage(
        "oppo", problem, S, lam, uniform, lambda D: scale * radius(D, H, delta, lam, B_theta), back_up, settings
    )
