"""MD-MPI with estimated transitions: RAVI-UCB with m sweeps of evaluation for every policy, not one.

Paper: M. Geist, B. Scherrer, O. Pietquin, "A theory of regularized Markov decision processes", ICML 2019, Section 5.
Setting: planning in a known discounted MDP; here tabular, discounted, with resets, optimistic.
Trust: CHECKED for the scheme, both types of it, against the proceedings (Section 5); its planner
(`ravi.planning.mirror_descent`) is what the paper of RAVI-UCB relates itself to. Its union with counts and a bonus is
DERIVED: with m = 1 it is RAVI-UCB bit for bit, and for every m it is the planner where P_hat = P and CB = 0. Both are
tests.

In epoch k, with the data at its start,

    pi_k      = argmax_p <p, Q_k> - KL(p || pi_{k-1}) / eta
    V_k       = (T_k)^m V_{k-1}
    Q_{k+1}   = Pi_H[r + CB_k + gamma P_hat_k V_k],     P_hat_k = N'/N,   CB_k = beta / sqrt(N)

    evaluation=regularised (type 1)   T_k V = Pi_H[<pi_k, Pi_H[r + CB + gamma P_hat V]> - KL(pi_k || pi_{k-1}) / eta]
    evaluation=plain (type 2)         T_k V =      <pi_k, Pi_H[r + CB + gamma P_hat V]>

The first of the m sweeps is already in Q_k, which the last epoch made of its data: RAVI-UCB's lag of one epoch. The
others use the data at hand. (Q_1 = E V_0 holds no sweep: V_1 = (T_1)^{m-1} V_0.) sweeps=0 stands for m without end: V_k
is the fixed point of T_k, to 1e-9 H, each seed on its own (`ravi.learners.regularised.optimistic_evaluation`). However
large m is, sweeps are made only until V comes round to the last bit, some 100 H of them at most: the others would
change nothing.

Constants: those of RAVI-UCB: eta of Theorem 4.1, beta of Lemma 5.1 with delta = 1/T, V_0 = 0, pi_0 uniform. `scale`
multiplies beta, `step_scale` eta.
Guarantee: for m = 1, type 1, RAVI-UCB's. For other m none is known to us with estimated transitions.
Composition: counts from 1 x bonus beta / sqrt(N) x mirror step and m sweeps x at every reset.
Cost: O(1) per step; m X A B per plan (sweeps=0: an elimination, X^3, up to 32 states, else sweeps); T / H plans.
Deviations: the planner has no truncation. The outer one keeps V_k in [0, H] where the penalty would take a sweep below
0; for m = 1 it is idle.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import Array, Bonus, Data, Estimator, Learner, Problem, TheoryConstants
from ravi.estimators.counts import Counts, counts
from ravi.learners.options import Options, takes
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.learners.ravi_ucb.ravi_ucb import State, radius
from ravi.learners.regularised.optimistic_evaluation import mean, settle
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning.mirror import mirror_step
from ravi.runtime.seedwise import over_all_seeds

EVALUATIONS = ("regularised", "plain")


def generic(
    problem: Problem, estimator: Estimator, bonus: Bonus, eta: float, *, sweeps: int = 1, regularised: bool = True,
    kernel: Callable[[Data], Array] | None = None, name: str = "md-mpi/generic", stated: TheoryConstants | None = None,
    settings: dict[str, Any] | None = None,
) -> Learner:  # fmt: skip
    """RAVI-UCB's loop with m = `sweeps` per policy; 0 for the fixed point.

    kernel: D -> P_hat on the successors, (n or 1, X, A, B), with rows of sum one at most: for the fixed point, which
    also needs a bonus that does not depend on V.
    """
    r, gamma, H = problem.rewards, problem.discount, problem.horizon
    m = validation.whole(sweeps, "sweeps", 0)
    if m == 0 and kernel is None:
        raise validation.InputError("sweeps is 0, the fixed point, but no kernel is given")
    base = ravi_ucb.generic(problem, estimator, bonus, eta, name=name, stated=stated, settings=settings)
    if m == 1 and regularised:
        return base
    backed_up = ravi_ucb.backup_of(problem, estimator, bonus)

    def plan(s: State) -> State:
        V, log_policy, policy = mirror_step(s.log_policy, s.policy, s.Q, eta, in_place=True)  # pi_k
        penalty = np.zeros(V.shape)
        plain = mean(policy, s.Q, penalty, H)  # <pi_k, Q_k>
        V, penalty = (V, np.maximum(plain - V, 0.0)) if regularised else (plain, penalty)  # KL / eta  (Lemma C.1)
        if m == 0:
            assert kernel is not None
            q = r + bonus(s.data, V)
            V, Q = settle(q, problem.successors, kernel(s.data), gamma, policy, penalty, V)  # V_k, Q_{k+1}
            return State(s.data, V, Q, log_policy, policy)
        Q = backed_up(s.data, V)
        left, seen, since, wait = m - 1, V, 0, 1
        while left > 0:
            V = mean(policy, Q, penalty, H)
            Q = backed_up(s.data, V)
            left, since = left - 1, since + 1
            if left > 0 and np.array_equal(V, seen):
                left %= since  # V comes round every `since` sweeps, to the last bit
            elif since == wait:
                seen, since, wait = V, 0, 2 * wait
        return State(s.data, V, Q, log_policy, policy)

    return base._replace(plan=plan, parts=None)


@takes("scale", "step_scale", "eta", "beta", "delta")
def md_mpi(problem: Problem, T: int, o: Options, sweeps: int = 1, evaluation: str = "regularised") -> Learner:
    """MD-MPI on counts, with RAVI-UCB's constants; `sweeps` is m, 0 for the fixed point."""
    m = validation.whole(sweeps, "sweeps", 0)
    validation.one_of(evaluation, EVALUATIONS, "evaluation")
    beta, estimator = radius(o, problem, T), counts(problem)
    stated = TheoryConstants("tabular", beta, o.scale, o.step_scale, o.delta)
    made = generic(
        problem, estimator, multiple_of_width(beta, estimator), ravi_ucb.theorem_step(o, problem, T), sweeps=m,
        regularised=evaluation == "regularised", kernel=frequencies, name="md-mpi", stated=stated,
        settings=stated.record() | {"sweeps": m, "evaluation": evaluation},
    )  # fmt: skip
    if m == 1 and evaluation == "regularised":  # RAVI-UCB
        form = ravi_ucb.tabular.of(problem, T, o).seedwise
        assert form is not None
        made = over_all_seeds(made, form)
    return made


def frequencies(D: Counts) -> Array:
    """P_hat = N' / N, or N' / max(1, n), on the successors."""
    return D.moves / np.maximum(D.visits, 1)[..., None]
