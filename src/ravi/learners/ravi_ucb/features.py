"""RAVI-UCB on sampled features, and on features of pairs."""

import numpy as np

from ravi import validation
from ravi.core import Array, Data, Learner, Problem, TheoryConstants
from ravi.estimators.linear import features_of, linear
from ravi.estimators.sampled import Embedded, draw, sampled
from ravi.learners.linear.lsvi import bonus_factor
from ravi.learners.options import ALL, Options, takes
from ravi.learners.ravi_ucb.ravi_ucb import generic, theorem_step
from ravi.optimism.bonuses import multiple_of_width
from ravi.runtime.seedwise import of_rows
from ravi.runtime.walk import JOINT
from ravi.theory import constants


@takes("scale", "step_scale", "eta", "delta", "regularization")
def mixture_sampled(
    problem: Problem, T: int, samples: int = 32, draws: int = 0, centre: str = "off", o: Options = ALL
) -> Learner:
    """RAVI-UCB for linear mixtures whose features are integrated by sampling.

    Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: Algorithm 3; its
    Discussion notes that phi_V may be approximated by Monte Carlo.
    Trust: DERIVED: the correction for the sampling is this library's, proved in `ravi.estimators.sampled`.

    m successors are drawn for each pair, once, and Algorithm 3 runs on their features phi~. With eps_k(x, a) a bound on
    ||phi - phi~|| at V_k, which is computed,

        CB_k(x, a) = (beta + B_theta sqrt(sum_{t < T_k} eps_t(x_t, a_t)^2)) ||phi~_k(x, a)||_{Lambda^{-1}}
                     + B_theta eps_k(x, a)

    is valid: the first addition for the bias of the regression, the second for the pair that is backed up.

    Constants: those of `ravi-ucb/mixture`, with the bound of phi~ for that of phi; `scale` multiplies CB. Where every
    pair has at most m successors nothing is sampled, eps = 0, and with centre=off the learner is `ravi-ucb/mixture`.
    Deviations: beyond sampling, those of `ravi-ucb/mixture`; and with centre=on, V less its middle is regressed.

    Algorithm 3 on m = `samples` successors per pair; `draws` is the seed that they are drawn by;
    with centre=on, eps is in parts of the span of V, else of its maximum.

    Setting: discounted with resets, linear mixture of dimension d.
    Guarantee: that of RAVI-UCB (Theorem 5.6) and, for what sampling leaves out, O(B_theta eps sqrt(d H) T) more, up to
    logarithms, eps the largest: regret that grows with T, at a rate that falls like sqrt(s / m), s the support
    (`theory.sampled.corrected`).
    Composition: ridge regression on sampled features x beta ||phi~|| and the sampling error x one mirror step and one
    backup x at resets.
    Cost: O(d^2) per step; X A (min(m, B) d + d^2) per plan; T / H plans.
    """
    scale, delta, lam = o.scale, o.delta, o.regularization
    middle = validation.one_of(centre, ("on", "off"), "centre") == "on"
    made = draw(problem, samples, draws, centre=middle)
    estimator = sampled(made, lam)
    assert problem.parameter_bound is not None
    B_theta = problem.parameter_bound
    B = max(B_theta, made.feature_bound)
    beta = constants.beta_mixture(  # Lemma 5.4
        problem.horizon, problem.dimension, T, delta, parameter_bound=B, feature_bound=B, regularization=lam
    )
    beta *= scale

    def bonus(D: Data, phi: Embedded) -> Array:
        radius = beta + scale * B_theta * np.sqrt(D.bias)
        return estimator.width(D, phi) * radius[:, None, None] + scale * B_theta * phi.error

    stated = TheoryConstants(  # of a kind of its own: Lambda and b are of phi~, not of phi
        "sampled", beta, scale, o.step_scale, delta, lam, B, ("centre",) if middle else (), samples, draws
    )
    own = {"beta": beta, "samples": samples, "draws": draws, "centre": centre, "error": float(made.errors.max())}
    learner = generic(
        problem, estimator, bonus, theorem_step(o, problem, T), name="ravi-ucb/mixture-sampled", stated=stated,
        settings=own | stated._replace(on=None).record(),
    )  # fmt: skip
    return learner._replace(seedwise=JOINT)


@takes("scale", "step_scale", "eta", "delta", "regularization")
def ravi_ucb_linear(problem: Problem, T: int, o: Options) -> Learner:
    """RAVI-UCB for linear MDPs: Algorithm 1 with a regression on the features of pairs, with a proof for finite X only.

    Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: its Discussion, which
    says that the algorithm is straightforward to implement for linear MDPs, and its analysis not to extend.
    Setting: discounted with resets, linear MDP of dimension d.
    Trust: DERIVED: the Discussion gives no pseudo-code; this is Algorithm 1 with the estimate and the bonus of
    LSVI-UCB.

    P(x' | x, a) = <phi(x, a), m(x')>. In epoch k, with all samples t < T_k:

        Lambda = lambda I + sum_t phi_t phi_t^T,   theta_k = Lambda^{-1} sum_t phi_t V_k(y_t)
        P_hat_k V_k = <phi, theta_k>,   CB_k = beta ||phi||_{Lambda^{-1}}

    The targets are those of the V_k at hand, for every past sample, where Algorithm 3 keeps each sample's own.

    Constants: beta = scale d H sqrt(ln(2 d T / delta)), the paper's of LSVI-UCB with its unnamed constant 1; eta of
    Theorem 4.1, lambda = 1, delta = 1/T, V_0 = 0, pi_0 uniform.
    Guarantee: none from the paper. V_k depends on the samples that it is the target of, so that validity must hold for
    all V_k that may come up; the covering number of that class appears too large for a proof. With X states it is at
    most 2^X: where beta is at least the beta_X of `theory.linear`, expected regret O(d^(3/2) H^(3/2) sqrt(T) + H^2
    sqrt(T ln A)) up to logarithms (`theory.linear.corrected`). `ravi verify` says which case a run is; RMAX-RAVI-UCB is
    the successor that has a proof.
    Composition: least squares for any target x beta ||phi||_{Lambda^-1} x one mirror step and one backup x at resets.
    Cost: d^2 per step, d with one-hot features; d^3 + d X + X A d^2 per plan; T / H plans.
    Deviations: none from the Discussion. Ridge regression shrinks to 0: with a small scale, what was never played is
    pessimistic.

    RAVI-UCB on features of pairs; `scale` multiplies beta, `step_scale` eta; `regularization` is lambda.
    """
    beta = o.scale * bonus_factor(problem.horizon, features_of(problem).shape[-1], T, o.delta)
    estimator = linear(problem, o.regularization)
    stated = TheoryConstants("linear", beta, o.scale, o.step_scale, o.delta, o.regularization)

    def build(step: float | Array, beta: float | Array) -> Learner:
        bonus = multiple_of_width(beta, estimator)
        return generic(problem, estimator, bonus, step, name="ravi-ucb/linear", stated=stated)

    return of_rows(build, (theorem_step(o, problem, T), beta), problem, T)
