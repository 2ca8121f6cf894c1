"""gamma-LSCVI-UCB: least-squares value iteration, centred and clipped to a span.

Paper: K. Hong, W. Chae, Y. Zhang, D. Lee, A. Tewari, "Reinforcement learning for infinite-horizon average-reward
linear MDPs via approximation by discounted-reward MDPs", AISTATS 2025.
Setting: average reward, linear MDP of dimension d, a bound on the span known; solved by discounting.
Trust: CHECKED against the proceedings (Algorithm 2, Theorem 5): the iteration, phases, centring, clipping, lambda, beta
and H_c; its constant c_beta is left open there. Compared with a literal transcription.

In the phase that starts at t_k, with V_U = H, for u = U - 1, ..., 0:

    m = min_x V_{u+1}(x),   w_u = Lambda^{-1} sum_{t < t_k} phi_t (V_{u+1}(y_t) - m)
    Q_u(x, a) = Pi_[0, H][r(x, a) + gamma (<phi(x, a), w_u> + m + beta ||phi(x, a)||_{Lambda^{-1}})]
    V~_u(x) = max_a Q_u(x, a),   V_u(x) = min{V~_u(x), min V~_u + H_c}

then argmax_a Q_0(x, a) is played until det Lambda has doubled.

Constants: beta = 2 scale sp d sqrt(ln(d T / delta)), the paper's constant c_beta taken as 1; H_c = 2 sp. With `span`
given, sp is it; else H_c = H, of which every value function is capable, and sp = H / 2. lambda = 1, delta = 1/T.
Guarantee: regret O(sp sqrt(d^3 T)) up to logarithms, for the average reward.
Composition: least squares for any target x beta ||phi||_{Lambda^-1} x centred, clipped backward pass x determinant.
Cost: d^2 per step; d^3 + U (nnz(K) + nnz(phi) + X A) per plan; at most (d / ln 2) ln(1 + T / (lambda d)) plans.
Deviations: gamma is the MDP's (the paper chooses it by T). The paper makes T - t_k + 1 backups and plays Q_u at time
u. Here U is the least number with gamma^U H <= `truncation` (0.01), after which backups from H have converged to that
(where they converge), and the last, Q_0, is played throughout: variant=stationary. variant=staged plays Q_u at age u,
and the first backup's policy from age U - 1 on. Rewards are known; Q is clipped at 0 too.
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
def gamma_lscvi_ucb(
    problem: Problem, T: int, o: Regression, span: float | None = None, variant: str = "stationary",
    truncation: float = 0.01,
) -> Learner:  # fmt: skip
    """gamma-LSCVI-UCB with c_beta = 1; `scale` multiplies beta; `span` is sp; `variant` is "stationary" or "staged"."""
    scale, delta, lam = o
    validation.one_of(variant, ("stationary", "staged"), "variant")
    r, gamma, H, phi = problem.rewards, problem.discount, problem.horizon, features_of(problem)
    U = effective_horizon(problem, truncation)
    sp = H / 2 if span is None else validation.positive(span, "span")
    beta = scale * bonus_factor(sp, phi.shape[-1], T, delta)
    pairs, backups = lists(phi), Backups(gamma, cap=H, last=H, span=2 * sp, centred=True)

    def make(s: State) -> None:
        CB = gamma * beta * width(s.data, phi)
        backward(r, pairs, s.data, CB, backups, s.values, s.policy)  # Q_u, V_u

    settings = {"beta": beta, "scale": scale, "delta": delta, "span": sp, "variant": variant, "truncation": truncation}
    return least_squares(
        problem, make, name="gamma-lscvi-ucb", stages=U, ages=U if variant == "staged" else 0, regularization=lam,
        replan="determinant", settings=settings,
    )  # fmt: skip


def bonus_factor(span: float, d: int, T: int, delta: float) -> float:
    """beta / scale."""
    return 2 * span * d * sqrt(log(d * T / delta))
