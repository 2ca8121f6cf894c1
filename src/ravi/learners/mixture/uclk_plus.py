"""UCLK+: UCLK with samples weighed by their variance.

Paper: D. Zhou, Q. Gu, C. Szepesvari, "Nearly minimax optimal reinforcement learning for linear mixture Markov decision
processes", COLT 2021.
Setting: discounted, linear mixture of dimension d.
Trust: CHECKED in part: weights, offsets and the three radii against the proceedings, which have the method for episodes
(UCRL-VTR+, Equations 9 to 15, with ln(4 t^2 H / delta)), and against UCLK-C, which has it for one stream, with ln(4 t^2
/ delta). UCLK+ itself is in the longer version only, which was not at hand: that it is UCLK with these is from memory
(MEM-H). Whole runs were compared with an independent transcription; the rate with what later papers say of it.

Phase k starts at t_k, and is UCLK's (`ravi.learners.mixture.uclk`) but for the regression:

    C_k    = {theta: ||theta - theta_hat||_{Sigma_hat} <= beta_hat at t_k}
    Q_k    : from Q = H, V(x) = max_a Q(x, a), U = ceil(H ln(T H)) rounds of
             Q <- r + gamma max {<theta, phi_V>: theta in C_k, <theta, psi> a kernel}
    play the greedy policy of Q_k;   every sample enters with its weight, R = H, W = V_k
    the phase ends with the step after which det Sigma_hat is more than twice that of its start.

The weights 1 / sigma^2, the second regression, on V_k^2, and the three radii are in
`ravi.estimators.variance_weighted`.

Constants: the paper's, with delta = 1/T and lambda = 1 / B_theta^2; B_phi enters where the paper has ||phi_V|| <= H.
`scale` multiplies beta_hat, beta_check and beta_tilde. `weighting=unit` has sigma = 1 and no second regression: UCLK's
estimator.
Guarantee: regret O~(d H^1.5 sqrt(T)) along the trajectory, for plans over kernels, once T is large.
Composition: variance-weighted regression on values x ellipsoid and kernels x extended value iteration x doubling
determinants.
Cost: d^2 per step; plans as in UCLK, at most d log2(1 + T B_phi^2 / lambda).
Deviations: those of UCLK. `inner` is UCLK's: auto is exact-simplex only where no weights outside of the simplex make a
kernel, else null-space; inner=exact-simplex, given explicitly, assumes that theta is on the simplex.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.gram import Gram, gram, renew
from ravi.estimators.variance_weighted import Constants, Weighted, radii, weighted_walk
from ravi.learners.mixture.ellipsoid import embedding, planner, rounds
from ravi.learners.options import Confidence, takes
from ravi.optimism.ellipsoids import SIMPLEX, chosen
from ravi.optimism.extended_value_iteration import greedy
from ravi.runtime.ranges import Number, Plays, Policy, Value, Whole
from ravi.schedules import whenever


class State(NamedTuple):
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
    problem: Problem, T: int, o: Confidence, regularization: float | None = None, inner: str = "auto",
    weighting: str = "variance",
) -> Learner:  # fmt: skip
    """UCLK+ with its published radii; `scale` multiplies them, `regularization` is lambda."""
    H = problem.horizon
    return variance_weighted(
        problem, T, o, regularization, inner, weighting, name="uclk+", R=H, span=np.inf, centred=False
    )


def variance_weighted(
    problem: Problem, T: int, o: Confidence, regularization: float | None, inner: str, weighting: str, *, name: str,
    R: float, span: float, centred: bool,
) -> Learner:  # fmt: skip
    """What UCLK+ and UCLK-C share: targets W = V, or V - min V where `centred`, in [0, R]; V cut to min V + `span`."""
    scale, delta = o
    validation.one_of(weighting, ("variance", "unit"), "weighting")
    inner = chosen(inner, problem)
    X, A, d, H = problem.states, problem.actions, problem.dimension, problem.horizon
    B = validation.positive(problem.parameter_bound, "parameter_bound")
    B_phi = validation.positive(problem.feature_bound, "feature_bound")
    lam = validation.positive(1 / B**2 if regularization is None else regularization, "regularization")
    constants = Constants(R, d, lam, B, B_phi, delta, scale)
    plan_with, embed = planner(problem, inner, T, span=span, centred=centred), embedding(problem)

    def targets(V: Array) -> Array:
        return V - V.min(-1, keepdims=True) if centred else V.copy()

    def init(keys: Array) -> State:
        n = len(keys)
        V, Q, none = np.full((n, X), H), np.full((n, X, A), H), np.zeros(n, np.int64)
        W = targets(V)
        first, second = gram(n, d, lam, X, moves=False), gram(n, d, lam, X, moves=False)
        uniform = np.full((n, X, A), 1 / A)
        return State(first, second, none, V, Q, W, embed(W), embed(W**2), uniform, none.copy(), none.copy())

    def plan(s: State) -> State:
        first, second = renew(s.first), renew(s.second)
        found = plan_with(first, radii(1 + s.plays, constants), s.V, s.plays < T)
        W = targets(found.V)
        unfinished, empty = s.unfinished + (found.period != 1), s.empty + found.empty
        made = (found.V, found.Q, W, embed(W), embed(W**2), greedy(found.Q))
        return State(first, second, s.plays, *made, unfinished, empty)

    def add(s: State, path: Path) -> State:
        return s._replace(plays=s.plays + path.length)

    def weighted(s: State) -> Weighted:
        return Weighted(s.first, s.second, s.phi, s.phi_second, s.W, constants, weighting == "variance")

    settings: dict[str, Any] = {
        "scale": scale, "delta": delta, "regularization": lam, "inner": inner, "weighting": weighting, "range": R,
    }  # fmt: skip
    if inner != SIMPLEX:
        settings["rounds"] = rounds(H, T)
    return Learner(name, init, plan, add, whenever(), settings, walk=weighted_walk(weighted))
