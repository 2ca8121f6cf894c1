"""UCLK: upper confidence linear kernels: the best of an ellipsoid of kernels, planned to the end.

Paper: D. Zhou, J. He, Q. Gu, "Provably efficient reinforcement learning for discounted MDPs with feature mapping",
ICML 2021.
Setting: discounted, linear mixture of dimension d.
Trust: CHECKED in part: the setting with its norms, the set of kernels, and the rounds from H over both sets against Y.
Chen, J. He, Q. Gu, ICML 2022, who build on this paper and restate them; beta is Theorem 2 of Abbasi-Yadkori, Pal,
Szepesvari (2011) at those norms, to the letter. That the paper prints the same beta and U is from memory (MEM-H). Whole
runs were compared with an independent transcription.

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
    auto            exact-simplex where psi is a list of d kernels and no weights outside of the simplex make a kernel
                    of them, that is, where each of the d has a move that no other has; null-space elsewhere

Only the first makes rounds a contraction; there the fixed point is found, to min(1/T, 1e-7 H) from above, which is
nearer than U rounds come. With the others exactly U rounds from H are made, <theta, phi_V> is cut to [min V, max V],
and plans that do not converge are counted in the state (`unfinished`): they cycle, or wander
(`ravi.learners.mixture.ellipsoid`).

Constants: the paper's, with delta = 1/T and lambda = 1. They assume ||theta||^2 <= d and ||phi_V||^2 <= d H^2; where
the problem's own bounds are larger, they take the place of d in t_k d and lambda d. `scale` multiplies beta.
Guarantee: regret O~(d H^2 sqrt(T)) along the trajectory, for plans over kernels.
Composition: ridge regression on values x ellipsoid and kernels x extended value iteration x doubling determinants.
Cost: d^2 per step; a plan solves X A small convex programmes, about d^3 each, for about ten backups; at most
d log2(1 + T B_phi^2 H^2 / (lambda d)) plans, and one every 2^20 steps.
Deviations: on the simplex, theta itself must be there (a mixture): auto sees to that, explicit exact-simplex assumes
it. If theta_hat is so far off that C_k misses the set, beta is raised to the least radius at which it does not (counted
in `empty`). Ties go to the first action.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.gram import Gram, gram, gram_walk, renew
from ravi.learners.mixture.ellipsoid import embedding, planner, rounds
from ravi.learners.options import Regression, takes
from ravi.optimism.ellipsoids import SIMPLEX, chosen
from ravi.optimism.extended_value_iteration import greedy
from ravi.runtime.ranges import Number, Plays, Policy, Value, Whole
from ravi.schedules import whenever


class State(NamedTuple):
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
    """UCLK with its published radius; `scale` multiplies it, `regularization` is lambda."""
    scale, delta, lam = o
    inner = chosen(inner, problem)
    X, A, d, H = problem.states, problem.actions, problem.dimension, problem.horizon
    radius(problem, np.ones(1), delta, lam)  # refuses a problem without bounds
    plan_with, embed = planner(problem, inner, T), embedding(problem)

    def init(keys: Array) -> State:
        n = len(keys)
        V, Q, none = np.full((n, X), H), np.full((n, X, A), H), np.zeros(n, np.int64)
        data = gram(n, d, lam, X, moves=False)
        return State(data, none, V, Q, embed(V), np.full((n, X, A), 1 / A), none.copy(), none.copy())

    def plan(s: State) -> State:
        D = renew(s.data)
        beta = scale * radius(problem, 1 + s.plays, delta, lam)
        found = plan_with(D, beta, s.V, s.plays < T)
        unfinished, empty = s.unfinished + (found.period != 1), s.empty + found.empty
        return State(D, s.plays, found.V, found.Q, embed(found.V), greedy(found.Q), unfinished, empty)

    def add(s: State, path: Path) -> State:
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
