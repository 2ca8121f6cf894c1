"""RAVI-UCB for linear MDPs: Algorithm 1 with a regression on the features of pairs, with a proof for finite X only.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: its Discussion, which
says that the algorithm is straightforward to implement for linear MDPs, and its analysis not to extend.
Setting: discounted with resets, linear MDP of dimension d.
Trust: DERIVED: the Discussion gives no pseudo-code; this is Algorithm 1 with the estimate and the bonus of LSVI-UCB.

P(x' | x, a) = <phi(x, a), m(x')>. In epoch k, with all samples t < T_k:

    Lambda = lambda I + sum_t phi_t phi_t^T,   theta_k = Lambda^{-1} sum_t phi_t V_k(y_t)
    P_hat_k V_k = <phi, theta_k>,   CB_k = beta ||phi||_{Lambda^{-1}}

The targets are those of the V_k at hand, for every past sample, where Algorithm 3 keeps each sample's own.

Constants: beta = scale d H sqrt(ln(2 d T / delta)), the paper's of LSVI-UCB with its unnamed constant 1; eta of Theorem
4.1, lambda = 1, delta = 1/T, V_0 = 0, pi_0 uniform.
Guarantee: none from the paper. V_k depends on the samples that it is the target of, so that validity must hold for all
V_k that may come up; the covering number of that class appears too large for a proof. With X states it is at most 2^X:
where beta is at least the beta_X of `theory.linear`, expected regret O(d^(3/2) H^(3/2) sqrt(T) + H^2 sqrt(T ln A)) up
to logarithms (`theory.linear.corrected`). `ravi verify` says which case a run is; RMAX-RAVI-UCB is the successor that
has a proof.
Composition: least squares for any target x beta ||phi||_{Lambda^-1} x one mirror step and one backup x at resets.
Cost: d^2 per step, d with one-hot features; d^3 + d X + X A d^2 per plan; T / H plans.
Deviations: none from the Discussion. Ridge regression shrinks to 0: with a small scale, what was never played is
pessimistic.
"""

from ravi.core import Array, Learner, Problem, Stated
from ravi.estimators.linear import features_of, linear
from ravi.learners.linear.lsvi_ucb import bonus_factor
from ravi.learners.options import Options, takes
from ravi.learners.ravi_ucb.ravi_ucb import generic, theorem_step
from ravi.optimism.bonuses import multiple_of_width
from ravi.runtime.settings import of_rows


@takes("scale", "step_scale", "eta", "delta", "regularization")
def ravi_ucb_linear(problem: Problem, T: int, o: Options) -> Learner:
    """RAVI-UCB on features of pairs; `scale` multiplies beta, `step_scale` eta; `regularization` is lambda."""
    beta = o.scale * bonus_factor(problem.horizon, features_of(problem).shape[-1], T, o.delta)
    estimator = linear(problem, o.regularization)
    stated = Stated("linear", beta, o.scale, o.step_scale, o.delta, o.regularization)

    def build(step: float | Array, beta: float | Array) -> Learner:
        bonus = multiple_of_width(beta, estimator)
        return generic(problem, estimator, bonus, step, name="ravi-ucb/linear", stated=stated)

    return of_rows(build, (theorem_step(o, problem, T), beta), problem, T)
