"""LSVI-UCB: least-squares value iteration with an elliptic bonus.

Paper: C. Jin, Z. Yang, Z. Wang, M. I. Jordan, "Provably efficient reinforcement learning with linear function
approximation", COLT 2020.
Setting: finite horizon, linear MDP of dimension d.
Trust: CHECKED: recursion, lambda and beta against public transcriptions of the paper's Algorithm 1 and Theorem 3.1 (the
proceedings have an abstract only); the regression agrees with public code on the same samples
(docs/explanation/trust.md). Compared with a literal transcription that stores all samples.

At every reset, with V_S = 0, for h = S - 1, ..., 0:

    Lambda = lambda I + sum_t phi_t phi_t^T,   w_h = Lambda^{-1} sum_t phi_t V_{h+1}(y_t)
    Q_h(x, a) = Pi_[0, H][r(x, a) + gamma <phi(x, a), w_h> + beta ||phi(x, a)||_{Lambda^{-1}}],   V_h(x) = max_a Q_h

and at age h, h plays after the reset, argmax_a Q_h(x, a) is played.

Constants: beta = scale d H sqrt(ln(2 d T / delta)), lambda = 1, delta = 1/T. The paper has an absolute constant c
before d that it does not specify; here c = 1. S is the least with gamma^S H <= `truncation` (0.01): the values of S
stages miss no more than that of the discounted ones, and the last stage is played at all later ages.
Guarantee: regret O(sqrt(d^3 H^3 T)) up to logarithms, H the horizon, in the finite-horizon setting.
Composition: least squares for any target x beta ||phi||_{Lambda^-1} x backward pass x at resets (or determinant).
Cost: d^2 per step, d with one-hot features; d^3 + S (nnz(K) + nnz(phi) + X A) per plan, K the d x X matrix of
`ravi.learners.linear.least_squares`; T / H plans, or (d / ln 2) ln(1 + T / (lambda d)) with replan=determinant.
Deviations: stages are discounted, and an episode is what lies between two resets. The kernel is the same at every
stage, so one regression serves all (the paper has one for each). Rewards are known: only V is regressed on. Q is
clipped at 0 too. replan=determinant plans only when det Lambda has doubled, as low-switching versions of the method
do. Ridge regression shrinks to 0: what was never played is worth r + beta / sqrt(lambda) ||phi||, so that with a small
scale it is pessimistic until others are known worse.
"""

from math import log, sqrt

from ravi import validation
from ravi.core import Learner, Problem
from ravi.estimators.linear import features_of, width
from ravi.learners.linear.core import State, least_squares
from ravi.learners.linear.least_squares import Backups, backward, lists
from ravi.learners.options import Regression, takes
from ravi.planning.evaluation import effective_horizon


@takes()
def lsvi_ucb(problem: Problem, T: int, o: Regression, truncation: float = 0.01, replan: str = "reset") -> Learner:
    """LSVI-UCB with c = 1; `scale` multiplies beta; `replan` is "reset" or "determinant"."""
    scale, delta, lam = o
    validation.one_of(replan, ("reset", "determinant"), "replan")
    r, gamma, H, phi = problem.rewards, problem.discount, problem.horizon, features_of(problem)
    S = effective_horizon(problem, truncation)
    beta = scale * bonus_factor(H, phi.shape[-1], T, delta)
    pairs, backups = lists(phi), Backups(gamma, cap=H, last=0.0)

    def make(s: State) -> None:
        CB = beta * width(s.data, phi)
        backward(r, pairs, s.data, CB, backups, s.values, s.policy)  # Q_h, V_h

    settings = {"beta": beta, "scale": scale, "delta": delta, "truncation": truncation}
    return least_squares(
        problem, make, name="lsvi-ucb", stages=S, ages=S, regularization=lam, replan=replan, settings=settings
    )


def bonus_factor(H: float, d: int, T: int, delta: float) -> float:
    """beta / scale for values in [0, H]."""
    return d * H * sqrt(log(2 * d * T / delta))
