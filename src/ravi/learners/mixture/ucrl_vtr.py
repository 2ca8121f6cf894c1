"""UCRL-VTR: optimistic backward induction with value-targeted regression.

Paper: Z. Jia, L. F. Yang, C. Szepesvari, M. Wang, "Model-based reinforcement learning with value-targeted regression",
L4DC 2020; A. Ayoub, Z. Jia, C. Szepesvari, M. Wang, L. F. Yang, the same title, ICML 2020.
Setting: episodes, or discounted; linear mixture of dimension d.
Trust: CHECKED: recursion, targets and truncation against both papers and public code by one of the authors; the radius
is that of the appendix in which the ICML paper describes its own runs (F.1.3, Algorithm 4, lambda = 1). Its theorem
has a wider one, sqrt(16 C^2 H^2 d ln(1 + H k) ln^2((k + 1)^2 H / delta)) with lambda = H^2 d; lecture notes by one of
the authors have H where this has H / 2.

At a reset, from the steps of all ages so far:

    theta_hat = Lambda^{-1} b,   V_S = 0,   and for h = S - 1, ..., 0, with phi_h = sum_x' psi(., ., x') V_{h+1}(x'),
    Q_h = Pi_H[r + gamma (<theta_hat, phi_h> + beta ||phi_h||_{Lambda^{-1}})],   V_h = max_a Q_h

then the greedy action of Q_h is played at age h, and every step adds

    Lambda += phi_h(x, a) phi_h(x, a)^T,   b += phi_h(x, a) V_{h+1}(y)

Constants: beta = (H / 2) sqrt(ln det Lambda - d ln lambda + 2 ln(1/delta)) + sqrt(lambda) B_theta with delta = 1/T, and
lambda = 1 (`regularization`). `scale` multiplies beta. S = ceil(ln(H / eps) / ln(1/gamma)) with eps = 0.01
(`truncation`): 149 stages at gamma = .95.
Guarantee: regret O(d sqrt(H^3 T)) up to logarithms (finite horizon H), and here at most gamma^S H <= eps of <nu_0, V>
more, that is (1 - gamma) eps of the return, for what lies beyond the stages.
Composition: ridge regression on values by age x beta ||phi||_{Lambda^-1} x backward induction x at resets.
Cost: O(m d) per step, m the coordinates of psi that are not zero at a pair, if psi keeps the inverse sparse, else
O(d^2); S X A (m B + m^2 / 2) per plan; T / H plans, or with replan=determinant no more than 1 + (d / ln 2)
ln(1 + T H^2 B_phi^2 / (lambda d)) of them.
Deviations: in episodes (`criterion=episodic`) S is their length, H is S, and gamma = 1: the paper's setting. With a
discount, its episodes of fixed length are epochs between resets, and its rewards to go are discounted. The last stage
has phi = 0: it is greedy in r and teaches nothing. It then serves for all ages beyond S - 1 too, which an epoch
reaches with probability gamma^(S-1) (5e-4 at eps = 0.01, gamma = .95): any policy would do there, and no optimism is
lost but gamma^S H. The radius is that of Lambda as it is, not of its worst case. replan=determinant plans
at the first reset after det Lambda has doubled, and goes on with the last plan until then.

Traits to know: <theta_hat, phi> + beta ||phi|| is not monotone in V, and may expand: while beta is large V_h may go up
and down with h, and rounding grows over the stages. And with a small `scale`, where theta_hat = 0, values start near r:
pairs whose reward is not seen from the start may never be tried.
"""

import math
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.by_age import checked, learn, radius
from ravi.estimators.gram import Gram, estimate, gram
from ravi.learners.options import Regression, takes
from ravi.planning.backward import greedy_pass, lists
from ravi.planning.evaluation import effective_horizon
from ravi.runtime.ranges import Age, Number, Plays, Policy, Positive, Value
from ravi.schedules import at_reset


class State(NamedTuple):
    data: Gram  # Lambda and b; `opened` is ln det Lambda at the last plan
    plays: Plays  #                                  (n,)
    theta: Number  # theta_hat of the last plan      (n, d)
    beta: Positive  # and its radius                 (n,)
    V: Value  # V_0, ..., V_S                        (n, S + 1, X)
    policy: Policy  # by age                         (n, S, X, A)
    age: Age  # steps since the reset                (n,)
    began: Age  # age at the start of the path       (n,)


@takes()
def ucrl_vtr(problem: Problem, T: int, o: Regression, truncation: float = 0.01, replan: str = "reset") -> Learner:
    """UCRL-VTR; `scale` multiplies beta. replan: "reset", or "determinant" for resets after the determinant doubled."""
    scale, delta, lam = o
    rarely = validation.one_of(replan, ("reset", "determinant"), "replan") == "determinant"
    psi = lists(problem)
    S, B_theta = effective_horizon(problem, truncation), validation.positive(problem.parameter_bound, "parameter_bound")
    X, A, d = problem.states, problem.actions, problem.dimension
    r, gamma, H = problem.rewards, problem.discount, float(problem.largest_value)

    def init(keys: Array) -> State:
        n = len(keys)
        data = gram(n, d, lam, X, moves=False)
        data.opened[:] = -np.inf  # the first epoch is planned
        plays, age = np.zeros(n, np.int64), np.zeros(n, np.int32)
        policy = np.full((n, S, X, A), 1 / A)
        return State(data, plays, np.zeros((n, d)), np.zeros(n), np.zeros((n, S + 1, X)), policy, age, age.copy())

    def plan(s: State) -> State:
        checked(s.data)
        due = (s.data.log_det > s.data.opened + math.log(2)) | (not rarely)
        s.theta[due] = estimate(s.data)[due]
        s.beta[due] = scale * radius(s.data, H, delta, lam, B_theta)[due]
        s.data.opened[due] = s.data.log_det[due]
        greedy_pass(psi, r, gamma, H, s.theta, s.data.inverse, s.beta, due, s.V, s.policy)
        return s

    def add(s: State, path: Path) -> State:
        learn(psi, s.data, s.plays, s.V, s.began, path)
        s.began[:] = s.age
        return s

    settings = {"scale": scale, "delta": delta, "regularization": lam, "parameter_bound": B_theta}
    made = settings | {"truncation": float(truncation), "stages": S, "replan": replan}
    return Learner("ucrl-vtr", init, plan, add, at_reset(), made, stages=S)
