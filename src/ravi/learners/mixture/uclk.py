"""UCLK, UCLK+ and UCLK-C: extended value iteration over ellipsoids of mixtures."""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.gram import Gram, gram, gram_walk, renew
from ravi.estimators.ridge import embedding_of
from ravi.estimators.variance_weighted import Constants, Weighted, radii, weighted_walk
from ravi.learners.mixture.ellipsoid import planner, rounds
from ravi.learners.options import Confidence, Regression, bias_span, nearly_average, takes
from ravi.optimism.ellipsoids import SIMPLEX, chosen
from ravi.optimism.extended_value_iteration import greedy
from ravi.runtime.ranges import Number, Plays, Policy, Value, Whole
from ravi.schedules import whenever


class UclkState(NamedTuple):
    data: Gram
    plays: Plays  # made so far                         (n,)
    V: Value  # V_k                                     (n, X)
    Q: Value  # Q_k                                     (n, X, A)
    phi: Number  # phi_{V_k}                            (n, X, A, d)
    policy: Policy  # (n, X, A)
    unfinished: Whole  # plans that did not converge    (n,)
    empty: Whole  # plans whose ellipsoid missed the set   (n,)


@takes()
def uclk(problem: Problem, T: int, o: Regression, inner: str = "auto") -> Learner:
    """UCLK: upper confidence linear kernels: the best of an ellipsoid of kernels, planned to the end.

    Paper: D. Zhou, J. He, Q. Gu, "Provably efficient reinforcement learning for discounted MDPs with feature mapping",
    ICML 2021.
    Setting: discounted, linear mixture of dimension d.
    Trust: CHECKED in part: the setting with its norms, the set of kernels, and the rounds from H over both sets against
    Y. Chen, J. He, Q. Gu, ICML 2022, who build on this paper and restate them; beta is Theorem 2 of Abbasi-Yadkori,
    Pal, Szepesvari (2011) at those norms, to the letter. That the paper prints the same beta and U is recalled
    (MEM-H). Whole runs were compared with an independent transcription.

    Phase k starts at t_k, with Lambda = lambda I + sum phi phi^T, b = sum phi V(y), theta_hat = Lambda^-1 b:

        C_k    = {theta: ||theta - theta_hat||_Lambda <= beta},
        beta   = H sqrt(d ln((lambda (1 - gamma)^2 + t_k d) / (delta lambda (1 - gamma)^2))) + sqrt(lambda d)
        Q_k    : from Q = H, V(x) = max_a Q(x, a), U = ceil(H ln(T H)) rounds of
                 Q <- r + gamma max {<theta, phi_V>: theta in C_k, <theta, psi> a kernel}
        play the greedy policy of Q_k;   phi = phi_{V_k}(x_t, a_t),   Lambda += phi phi^T,   b += phi V_k(y_t)
        the phase ends with the step after which det Lambda is more than twice that of its start.

    `inner` says which theta make a kernel (`ravi.optimism.ellipsoids`):

        exact-simplex   the simplex, where psi is a list of d kernels; given explicitly, it assumes that theta is there
        null-space      all theta that give every row mass 1; then negative "probabilities" are possible
        relaxed         all theta: <theta_hat, phi> + beta ||phi||_{Lambda^-1}
        auto            exact-simplex where psi is a list of d kernels and no weights outside of the simplex make a
                        kernel of them, that is, where each of the d has a move that no other has; null-space elsewhere

    Only the first makes rounds a contraction; there the fixed point is found, to min(1/T, 1e-7 H) from above, which is
    nearer than U rounds come. With the others exactly U rounds from H are made, <theta, phi_V> is cut to [min V, max
    V], and plans that do not converge are counted in the state (`unfinished`): they cycle, or wander
    (`ravi.learners.mixture.ellipsoid`).

    Constants: the paper's, with delta = 1/T and lambda = 1. They assume ||theta||^2 <= d and ||phi_V||^2 <= d H^2;
    where the problem's own bounds are larger, they take the place of d in t_k d and lambda d. `scale` multiplies beta.
    Guarantee: regret O~(d H^2 sqrt(T)) along the trajectory, for plans over kernels.
    Composition: ridge regression on values x ellipsoid and kernels x extended value iteration x doubling determinants.
    Cost: d^2 per step; a plan solves X A small convex programmes, about d^3 each, for about ten backups; at most d
    log2(1 + T B_phi^2 H^2 / (lambda d)) plans, and one every 2^20 steps.
    Deviations: on the simplex, theta itself must be there (a mixture): auto sees to that, explicit exact-simplex
    assumes it. If theta_hat is so far off that C_k misses the set, beta is raised to the least radius at which it does
    not (counted in `empty`). Ties go to the first action.

    UCLK with its published radius; `scale` multiplies it, `regularization` is lambda.
    """
    scale, delta, lam = o
    inner = chosen(inner, problem)
    X, A, d, H = problem.states, problem.actions, problem.dimension, problem.horizon
    radius(problem, np.ones(1), delta, lam)  # refuses a problem without bounds
    plan_with, embed = planner(problem, inner, T), embedding_of(problem.successors, problem.features)

    def init(keys: Array) -> UclkState:
        n = len(keys)
        V, Q, none = np.full((n, X), H), np.full((n, X, A), H), np.zeros(n, np.int64)
        data = gram(n, d, lam, X, moves=False)
        return UclkState(data, none, V, Q, embed(V), np.full((n, X, A), 1 / A), none.copy(), none.copy())

    def plan(s: UclkState) -> UclkState:
        D = renew(s.data)
        beta = scale * radius(problem, 1 + s.plays, delta, lam)
        found = plan_with(D, beta, s.V, s.plays < T)
        unfinished, empty = s.unfinished + (found.period != 1), s.empty + found.empty
        return UclkState(D, s.plays, found.V, found.Q, embed(found.V), greedy(found.Q), unfinished, empty)

    def add(s: UclkState, path: Path) -> UclkState:
        return s._replace(plays=s.plays + path.length)

    settings: dict[str, Any] = {"scale": scale, "delta": delta, "regularization": lam, "inner": inner}
    if inner != SIMPLEX:
        settings["rounds"] = rounds(H, T)
    return Learner("uclk", init, plan, add, whenever(), settings, walk=gram_walk(lambda s: (s.data, s.phi, s.V)))


def radius(problem: Problem, t: Array, delta: float, lam: float) -> Array:
    """beta at time t (n,)."""
    H, d = problem.horizon, problem.dimension
    B_theta = validation.positive(problem.parameter_bound, "parameter_bound")
    B_phi = validation.positive(problem.feature_bound, "feature_bound")
    least = lam / H**2  # lambda (1 - gamma)^2
    return H * np.sqrt(d * np.log((least + t * max(d, B_phi**2)) / (delta * least))) + np.sqrt(lam * max(d, B_theta**2))


class WeightedState(NamedTuple):
    first: Gram  # Sigma_hat, b_hat
    second: Gram  # Sigma_tilde, b_tilde
    plays: Plays  # made so far                         (n,)
    V: Value  # V_k                                     (n, X)
    Q: Value  # Q_k                                     (n, X, A)
    W: Value  # the targets: V_k, or V_k - min V_k      (n, X)
    phi: Number  # phi_W                                (n, X, A, d)
    phi_second: Number  # phi_{W^2}                     (n, X, A, d)
    policy: Policy  # (n, X, A)
    unfinished: Whole  # plans that did not converge    (n,)
    empty: Whole  # plans whose ellipsoid missed the set   (n,)


@takes()
def uclk_plus(
    problem: Problem, T: int, o: Confidence, regularization: float | None = None, inner: str = "auto"
) -> Learner:
    """UCLK+: UCLK with samples weighed by their variance.

    Paper: D. Zhou, Q. Gu, C. Szepesvari, "Nearly minimax optimal reinforcement learning for linear mixture Markov
    decision processes", COLT 2021.
    Setting: discounted, linear mixture of dimension d.
    Trust: CHECKED in part: weights, offsets and the three radii against the proceedings, which have the method for
    episodes (UCRL-VTR+, Equations 9 to 15, with ln(4 t^2 H / delta)), and against UCLK-C, which has it for one stream,
    with ln(4 t^2 / delta). UCLK+ itself is in the longer version only, which was not at hand: that it is UCLK with
    these is recalled (MEM-H). Whole runs were compared with an independent transcription; the rate with what later
    papers say of it.

    Phase k starts at t_k, and is UCLK's (`ravi.learners.mixture.uclk`) but for the regression:

        C_k    = {theta: ||theta - theta_hat||_{Sigma_hat} <= beta_hat at t_k}
        Q_k    : from Q = H, V(x) = max_a Q(x, a), U = ceil(H ln(T H)) rounds of
                 Q <- r + gamma max {<theta, phi_V>: theta in C_k, <theta, psi> a kernel}
        play the greedy policy of Q_k;   every sample enters with its weight, R = H, W = V_k
        the phase ends with the step after which det Sigma_hat is more than twice that of its start.

    The weights 1 / sigma^2, the second regression, on V_k^2, and the three radii are in
    `ravi.estimators.variance_weighted`.

    Constants: the paper's, with delta = 1/T and lambda = 1 / B_theta^2; B_phi enters where the paper has ||phi_V|| <=
    H. `scale` multiplies beta_hat, beta_check and beta_tilde.
    Guarantee: regret O~(d H^1.5 sqrt(T)) along the trajectory, for plans over kernels, once T is large.
    Composition: variance-weighted regression on values x ellipsoid and kernels x extended value iteration x doubling
    determinants.
    Cost: d^2 per step; plans as in UCLK, at most d log2(1 + T B_phi^2 / lambda).
    Deviations: those of UCLK. `inner` is UCLK's: auto is exact-simplex only where no weights outside of the simplex
    make a kernel, else null-space; inner=exact-simplex, given explicitly, assumes that theta is on the simplex.

    UCLK+ with its published radii; `scale` multiplies them, `regularization` is lambda.
    """
    return variance_weighted(
        problem, T, o, regularization, inner, name="uclk+", R=problem.horizon, span=np.inf, centred=False
    )


def variance_weighted(
    problem: Problem, T: int, o: Confidence, regularization: float | None, inner: str, *, name: str, R: float,
    span: float, centred: bool,
) -> Learner:  # fmt: skip
    """What UCLK+ and UCLK-C share: targets W = V, or V - min V where `centred`, in [0, R]; V cut to min V + `span`."""
    scale, delta = o
    inner = chosen(inner, problem)
    X, A, d, H = problem.states, problem.actions, problem.dimension, problem.horizon
    B = validation.positive(problem.parameter_bound, "parameter_bound")
    B_phi = validation.positive(problem.feature_bound, "feature_bound")
    lam = validation.positive(1 / B**2 if regularization is None else regularization, "regularization")
    constants = Constants(R, d, lam, B, B_phi, delta, scale)
    plan_with = planner(problem, inner, T, span=span, centred=centred)
    embed = embedding_of(problem.successors, problem.features)

    def targets(V: Array) -> Array:
        return V - V.min(-1, keepdims=True) if centred else V.copy()

    def init(keys: Array) -> WeightedState:
        n = len(keys)
        V, Q, none = np.full((n, X), H), np.full((n, X, A), H), np.zeros(n, np.int64)
        W = targets(V)
        first, second = gram(n, d, lam, X, moves=False), gram(n, d, lam, X, moves=False)
        uniform = np.full((n, X, A), 1 / A)
        return WeightedState(first, second, none, V, Q, W, embed(W), embed(W**2), uniform, none.copy(), none.copy())

    def plan(s: WeightedState) -> WeightedState:
        first, second = renew(s.first), renew(s.second)
        found = plan_with(first, radii(1 + s.plays, constants), s.V, s.plays < T)
        W = targets(found.V)
        unfinished, empty = s.unfinished + (found.period != 1), s.empty + found.empty
        made = (found.V, found.Q, W, embed(W), embed(W**2), greedy(found.Q))
        return WeightedState(first, second, s.plays, *made, unfinished, empty)

    def add(s: WeightedState, path: Path) -> WeightedState:
        return s._replace(plays=s.plays + path.length)

    def weighted(s: WeightedState) -> Weighted:
        return Weighted(s.first, s.second, s.phi, s.phi_second, s.W, constants)

    settings: dict[str, Any] = {
        "scale": scale, "delta": delta, "regularization": lam, "inner": inner, "range": R, "discount": problem.discount,
    }  # fmt: skip
    if inner != SIMPLEX:
        settings["rounds"] = rounds(H, T)
    return Learner(name, init, plan, add, whenever(), settings, walk=weighted_walk(weighted))


@takes()
def uclk_c(
    problem: Problem, T: int, o: Confidence, regularization: float | None = None, inner: str = "auto",
    span: float | None = None,
) -> Learner:  # fmt: skip
    """UCLK-C: UCLK+ on centred values, whose span is known to be small.

    Paper: W. Chae, K. Hong, Y. Zhang, A. Tewari, D. Lee, "Learning infinite-horizon average-reward linear mixture MDPs
    of bounded span", AISTATS 2025.
    Setting: average reward through discounting, linear mixture of dimension d, bounded span.
    Trust: CHECKED against the proceedings (Algorithm 1, Equations 3 to 5, Theorem 1): estimator, radii, lambda,
    centring, cut, phases. The paper prints R^2 for R^4 in the logarithm of beta_tilde; its own Lemma 1 gives R^4, and
    so has UCLK+. Whole runs were compared with an independent transcription.

    Phase k is that of UCLK+ (`ravi.learners.mixture.uclk`) with a bound c on the span of V*, R = c:

        Q <- r + gamma max {<theta, phi_V>: theta in C_k, <theta, psi> a kernel},
        V(x) <- max_a Q(x, a),   V <- min(V, min V + c)
        W = V_k - min V_k is regressed in place of V_k, its squares in the second regression
        the phase ends with the step after which det Sigma_hat is more than twice that of its start.

    Constants: those of UCLK+ with R = c. `span` is c; H unless given, which cuts nothing, since V lies in [0, H]
    anyway.
    Guarantee: regret O~(d sqrt(c T)) in the average-reward setting, with a discount that depends on T.
    Composition: variance-weighted regression on centred values x ellipsoid and kernels x extended value iteration with
    a span bound x doubling determinants.
    Cost: that of UCLK+.
    In the average reward, with sp >= span(h*) given as `span`: c = 2 sp, which bounds the span of discounted values,
    and gamma = 1 - sqrt(d / (c T)), the paper's (at least 1/2).
    Deviations: with a discount, gamma is that of the MDP, and `span` bounds sp(V*) itself. The cut is made in every
    round: that operator too is a contraction, and its fixed point is above V* if c >= sp(V*). With `relaxed`, features
    are those of V - min V, and min V is added. `inner` is UCLK's: auto is exact-simplex only where no weights outside
    of the simplex make a kernel, else null-space; inner=exact-simplex, given explicitly, assumes that theta is on the
    simplex.

    UCLK-C with published radii; `scale` multiplies them, `span` is c >= sp(V*), `regularization` is lambda.
    """
    c = bias_span(problem, span) * (2 if problem.criterion == "average" else 1)
    problem = nearly_average(problem, sqrt(problem.dimension / (c * T)))
    return variance_weighted(problem, T, o, regularization, inner, name="uclk-c", R=c, span=c, centred=True)
