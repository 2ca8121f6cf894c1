"""FOPO: fixed-point optimisation with optimism, the largest gain that least squares allow. For small problems.

Paper: C.-Y. Wei, M. Jafarnia-Jahromi, H. Luo, R. Jain, "Learning infinite-horizon average-reward MDPs with linear
function approximation", AISTATS 2021.
Setting: average reward with a bound on the span of the optimal bias, linear MDP of dimension d.
Trust: CHECKED against the proceedings (Algorithm 1): the optimisation problem, its constants and the doubling rule. The
reset chain, the reduction to occupancies and the search are DERIVED here.

A phase begins when det Lambda has doubled. The paper then maximises J over (w, b, J) such that

    w = Lambda^{-1} sum_i phi_i (r_i + max_a <phi(y_i, a), w> - J) + b,
    ||b||_Lambda <= beta = 20 (2 + sp) d sqrt(ln(T / delta)),   ||w|| <= (2 + sp) sqrt(d),

and plays the greedy policy of w. Here r, gamma and nu_0 are known: only P is regressed. In the average reward gamma is
1, sp is `span`, and <nu_0, v> = 0 fixes v, which the equations leave free. With a discount the chain that is scored is
gamma P + (1 - gamma) 1 nu_0^T, whose average reward is rho. With relative values fixed by <nu_0, v> = 0, the resets
drop out, and

    w = m_hat v + b,  m_hat = Lambda^{-1} sum_i phi_i e_{y_i}^T,
    v(x) = max_a {r(x, a) - J + gamma <phi(x, a), w>},  <nu_0, v> = 0,         b and w bounded as above, J <= 1.

The truth, v = V* - <nu_0, V*>, J = rho*, solves this with b = (m - m_hat) v, and sp(V*) <= H: sp = H by default.

How the largest J is found, where it is exact and where a heuristic, is told in `ravi.learners.linear.largest_gain`.
Each seed counts the plans whose J is not certified to be the maximum (`heuristic`) and those in which nothing feasible
was found (`failed`), which keep the policy as it was.

Constants: beta of the paper, delta = 1/T, lambda = 1. `scale` multiplies beta, `span` is sp.
Guarantee: of order sp sqrt(d^3 T) up to logarithms, for the exact maximum.
Composition: regression on all moves x a ball around it x search over policies x doubled determinants.
Cost: O(d^2) per step; per plan X A d (d + X), and about X^3 for every policy compared: at most 4096, or (A + 3)
starts times some ten; (d / ln 2) ln(1 + T / (lambda d)) plans. X <= 100 and d <= 200.
Deviations: the paper's optimisation has no efficient algorithm; `ravi.learners.linear.largest_gain` says what is exact.
J <= 1 is added: rho* is no more. Ties go to the first action.
"""

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, Problem
from ravi.estimators.gram import Gram, gram, gram_walk, reopen, row
from ravi.estimators.linear import features_of, measures, predict
from ravi.learners.linear.largest_gain import COMPARED, TIE, largest_gain
from ravi.learners.options import Regression, bias_span, takes
from ravi.planning.bellman import deterministic
from ravi.runtime.ranges import Number, NumberOrNan, Policy, Whole
from ravi.runtime.walk import keep
from ravi.schedules import whenever

MOST_STATES, MOST_DIMENSIONS = 100, 200


class State(NamedTuple):
    data: Gram
    w: Number  #                                                           (n, d)
    b: Number  #                                                           (n, d)
    J: NumberOrNan  # the gain of the last plan; nan where none was found  (n,)
    policy: Policy  #                                                      (n, X, A)
    phases: Whole  # begun so far                                          (n,)
    heuristic: Whole  # plans whose J is not certified to be the maximum   (n,)
    failed: Whole  # plans that found nothing feasible                     (n,)


@takes()
def fopo(problem: Problem, T: int, o: Regression, span: float | None = None) -> Learner:
    """FOPO, with a discount on the reset chain; `span` is sp, a bound on the span of h*, or of V*."""
    scale, delta, lam = o
    sp = bias_span(problem, span)
    X, A = problem.states, problem.actions
    phi = features_of(problem)
    d = phi.shape[-1]
    if X > MOST_STATES or d > MOST_DIMENSIONS:
        raise validation.InputError(
            f"fopo searches over policies: it takes X <= {MOST_STATES} and d <= {MOST_DIMENSIONS}, but {problem.name} "
            f"has X = {X} and d = {d}"
        )
    beta = 20 * (2 + sp) * d * sqrt(log(T / delta)) * scale
    bound = (2 + sp) * sqrt(d)
    known = (problem.rewards, problem.discount, problem.initial, phi[0])

    def init(keys: Array) -> State:
        n = len(keys)
        data, uniform = gram(n, d, lam, X, moves=True), np.full((n, X, A), 1 / A)
        none = [np.zeros(n, np.int64) for _ in range(3)]
        return State(data, np.zeros((n, d)), np.zeros((n, d)), np.full(n, np.nan), uniform, *none)

    def plan(s: State) -> State:
        for i in reopen(s.data, s.phases == 0):
            one = row(s.data, i)
            found, certified, w, b, J = largest_gain(*known, measures(one)[0], one.inverse[0], beta, bound)
            if found:
                s.w[i], s.b[i] = w, b
                s.policy[i] = deterministic(_first(problem.rewards + problem.discount * predict(phi, w[None])[0]), A)
            s.J[i] = J if found else np.nan
            s.phases[i] += 1
            s.heuristic[i] += not certified
            s.failed[i] += not found
        return s

    settings = {
        "beta": beta, "span": sp, "norm_bound": bound, "scale": scale, "delta": delta, "regularization": lam,
        "search": "exact" if phi_is_grouping(phi[0]) and A**X <= COMPARED else "heuristic",
    }  # fmt: skip
    return Learner("fopo", init, plan, keep, whenever(), settings, walk=gram_walk(lambda s: (s.data, phi, None)))


def phi_is_grouping(phi: Array) -> bool:
    """Whether every pair has one coordinate of its own or of its group, so that P_hat is always a kernel."""
    return bool((((phi != 0).sum(-1) <= 1) & (phi >= 0).all(-1)).all())


def _first(q: Array) -> Array:
    """The first of the best actions, to rounding   (X,)."""
    top = q.max(-1, keepdims=True)
    return (q >= top - TIE * (1 + np.abs(top))).argmax(-1)
