"""OLSVI.FH: least-squares value iteration on blocks of steps, each taken for an episode of its own.

Paper: C.-Y. Wei, M. Jafarnia-Jahromi, H. Luo, R. Jain, "Learning infinite-horizon average-reward MDPs with linear
function approximation", AISTATS 2021.
Setting: average reward, linear MDP of dimension d, span of the optimal bias known.
Trust: CHECKED against the proceedings (Algorithm 2): the length of a block, lambda, beta with its 40, and one
regression for all stages, as here. Compared with a literal transcription.

Blocks of B = max{sqrt(sp) T^{1/4} / d^{3/4}, (sp T / d^2)^{1/3}} plays, sp the span of the optimal bias. At the start
of every block, with V_B = 0, for h = B - 1, ..., 0:

    w_h = Lambda^{-1} sum_t phi_t V_{h+1}(y_t)
    Q_h(x, a) = Pi_[0, H_B][r(x, a) + gamma <phi(x, a), w_h> + beta ||phi(x, a)||_{Lambda^{-1}}],   V_h(x) = max_a Q_h

and at step h of the block argmax_a Q_h(x, a) is played. H_B = sum_{h < B} gamma^h is what a block can be worth.

Constants: beta = scale 40 d H_B sqrt(ln(T / delta)), the paper's, with the range H_B of a block's values for its
length; lambda = 1, delta = 1/T; sp = H unless `span` is given (the span of V* is at most H); B is rounded up, and is at
most the S of `truncation`: gamma^S H <= 0.01.
Guarantee: regret O(sqrt(sp) (d T)^{3/4} + (sp d T)^{2/3}) up to logarithms, for the average reward.
Composition: least squares for any target x beta ||phi||_{Lambda^-1} x backward pass of B stages x at blocks.
Cost: d^2 per step, d with one-hot features; d^3 + B (nnz(K) + nnz(phi) + X A) per plan; a plan for each block.
Deviations: a block ends at a reset too, since steps after it do not follow from steps before. A block then begins at
every age that is a multiple of B, so the plan repeated, stage (age mod B) at every age, is what would be played from
a fresh reset if learning stopped; it is played and scored as that for ages up to the least multiple of B that is at
least S, and the last stage from there on, which matters with probability gamma^S <= truncation / H. With resets the
expected reward of a block is its sum discounted by gamma: that is stage=discounted. stage=undiscounted plans as if
there were no resets (gamma = 1 above, H_B = B), as the paper does. Rewards are known; Q is clipped at 0 too.
"""

from math import ceil, log, sqrt

from ravi import validation
from ravi.core import Learner, Problem
from ravi.estimators.linear import features_of, width
from ravi.learners.linear.core import State, least_squares
from ravi.learners.linear.least_squares import Backups, backward, lists
from ravi.learners.options import Regression, takes
from ravi.planning.evaluation import effective_horizon


@takes()
def olsvi_fh(
    problem: Problem, T: int, o: Regression, span: float | None = None, stage: str = "discounted",
    truncation: float = 0.01,
) -> Learner:  # fmt: skip
    """OLSVI.FH; `scale` multiplies beta; `span` is sp, H unless given; `stage` is "discounted" or "undiscounted"."""
    scale, delta, lam = o
    validation.one_of(stage, ("discounted", "undiscounted"), "stage")
    r, phi = problem.rewards, features_of(problem)
    gamma = problem.discount if stage == "discounted" else 1.0
    sp = problem.horizon if span is None else validation.positive(span, "span")
    S = effective_horizon(problem, truncation)
    B = min(block_length(sp, phi.shape[-1], T), S)
    H_B = sum(gamma**h for h in range(B))
    beta = scale * 40 * phi.shape[-1] * H_B * sqrt(log(T / delta))
    pairs, backups = lists(phi), Backups(gamma, cap=H_B, last=0.0)

    def make(s: State) -> None:
        CB = beta * width(s.data, phi)
        backward(r, pairs, s.data, CB, backups, s.values, s.policy)  # Q_h, V_h

    settings = {"beta": beta, "scale": scale, "delta": delta, "span": sp, "stage": stage, "truncation": truncation}
    ages = B * ceil(S / B)
    return least_squares(
        problem, make, name="olsvi-fh", stages=B, ages=ages, regularization=lam, replan="block", settings=settings
    )


def block_length(span: float, d: int, T: int) -> int:
    """The paper's number of steps in a block, rounded up."""
    return ceil(max(sqrt(span) * T**0.25 / d**0.75, (span * T / d**2) ** (1 / 3)))
