"""UCLK-C: UCLK+ on centred values, whose span is known to be small.

Paper: W. Chae, K. Hong, Y. Zhang, A. Tewari, D. Lee, "Learning infinite-horizon average-reward linear mixture MDPs of
bounded span", AISTATS 2025.
Setting: average reward through discounting, linear mixture of dimension d, bounded span.
Trust: CHECKED against the proceedings (Algorithm 1, Equations 3 to 5, Theorem 1): estimator, radii, lambda, centring,
cut, phases. The paper prints R^2 for R^4 in the logarithm of beta_tilde; its own Lemma 1 gives R^4, and so has UCLK+.
Whole runs were compared with an independent transcription.

Phase k is that of UCLK+ (`ravi.learners.mixture.uclk_plus`) with a bound c on the span of V*, R = c:

    Q <- r + gamma max {<theta, phi_V>: theta in C_k, <theta, psi> a kernel},
    V(x) <- max_a Q(x, a),   V <- min(V, min V + c)
    W = V_k - min V_k is regressed in place of V_k, its squares in the second regression
    the phase ends with the step after which det Sigma_hat is more than twice that of its start.

Constants: those of UCLK+ with R = c. `span` is c; H unless given, which cuts nothing, since V lies in [0, H] anyway.
Guarantee: regret O~(d sqrt(c T)) in the average-reward setting, with a discount that depends on T.
Composition: variance-weighted regression on centred values x ellipsoid and kernels x extended value iteration with a
span bound x doubling determinants.
Cost: that of UCLK+.
Deviations: the paper takes gamma = 1 - sqrt(d / (c T)) and c = 2 sp(h*), which bounds the span of discounted values;
here gamma is given, and `span` bounds sp(V*) itself. The cut is made in every round: that operator too is a
contraction, and its fixed point is above V* if c >= sp(V*). With `relaxed`, features are those of V - min V, and min V
is added. `inner` is UCLK's: auto is exact-simplex only where no weights outside of the simplex make a kernel, else
null-space; inner=exact-simplex, given explicitly, assumes that theta is on the simplex.
"""

from ravi import validation
from ravi.core import Learner, Problem
from ravi.learners.mixture.uclk_plus import variance_weighted
from ravi.learners.options import Confidence, takes


@takes()
def uclk_c(
    problem: Problem, T: int, o: Confidence, regularization: float | None = None, inner: str = "auto",
    span: float | None = None,
) -> Learner:  # fmt: skip
    """UCLK-C with published radii; `scale` multiplies them, `span` is c >= sp(V*), `regularization` is lambda."""
    c = validation.positive(problem.horizon if span is None else span, "span")
    return variance_weighted(problem, T, o, regularization, inner, "variance", name="uclk-c", R=c, span=c, centred=True)
