"""NPG: natural policy gradient for softmax policies, evaluated optimistically.

Paper: A. Agarwal, S. Kakade, J. Lee, G. Mahajan, "On the theory of policy gradient methods: optimality, approximation,
and distribution shift", JMLR 22, 2021, Section 5.3 and Theorem 16.
Setting: planning in a known discounted MDP; here tabular, discounted, with resets, optimistic.
Trust: CHECKED for the update, the theorem and the step size that it names, against the journal; the theorem is a test,
for several eta, on exact iterates. Its union with counts and RAVI-UCB's bonus is DERIVED, after OPPO (Q. Cai, Z. Yang,
C. Jin, Z. Wang, ICML 2020).

In epoch k, with the data at its start,

    V_k, Q_{k+1}     the fixed point of  Q = Pi_H[r + CB_k + gamma P_hat_k V],  V = <pi_k, Q>
    pi_{k+1}(a|x) ~ pi_k(a|x) exp(eta Q_{k+1}(x, a))                        for epoch k + 1

P_hat = N'/N is a sub-probability, so there is one fixed point. The paper writes the update as pi exp(eta' H A^pi), with
the advantage A^pi = Q^pi - V^pi; what depends on x only cancels, so eta = eta' H. Its corollary takes
eta' = (1 - gamma)^2 ln A, from where on ln A / eta' is no more than H^2. So eta = (1 - gamma) ln A = ln A / H.

Constants: eta = ln A / H (with one action, any), beta of Lemma 5.1 of RAVI-UCB with delta = 1/T, pi_0 uniform. `scale`
multiplies beta, `step_scale` eta.
Guarantee: with P_hat = P and CB = 0, <nu_0, V* - V^{pi_{K+1}}> <= H ln A / (eta K) + H^2 / K. With counts
none is known to us.
Composition: counts from 1 x bonus beta / sqrt(N) x policy iteration with a mirror step x at every reset: MD-MPI of
type 2 with sweeps=0.
Cost: O(1) per step; X^3 per plan up to 32 states, then X A B per sweep; T / H plans.
Deviations: the evaluation uses the data at the start of the epoch in which the policy is played, as RAVI-UCB's backup
does; the policy that comes of it is played one epoch later.
"""

from math import log

from ravi.core import Learner, Problem, TheoryConstants
from ravi.estimators.counts import counts
from ravi.learners.options import Options, takes
from ravi.learners.ravi_ucb.ravi_ucb import radius
from ravi.learners.regularised.md_mpi import frequencies, generic
from ravi.optimism.bonuses import multiple_of_width


@takes("scale", "step_scale", "eta", "beta", "delta")
def npg(problem: Problem, T: int, o: Options) -> Learner:
    """Optimistic NPG; `scale` multiplies beta, `step_scale` eta (of exp(eta Q))."""
    H, A, beta, estimator = problem.horizon, problem.actions, radius(o, problem, T), counts(problem)
    return generic(
        problem, estimator, multiple_of_width(beta, estimator), o.step((log(A) if A > 1 else 1.0) / H), sweeps=0,
        regularised=False, kernel=frequencies, name="npg",
        settings=TheoryConstants("tabular", beta, o.scale, o.step_scale, o.delta).record(),
    )  # fmt: skip
