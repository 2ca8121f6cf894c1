"""RAVI-UCB without knowing T: phases of doubling length, each with the constants of its own length, on all data.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023.
Trust: DERIVED: the paper takes T as known (in eta, beta and delta); doubling is the usual way out.

Phase i = 0, 1, ... is for l_i = 2^i l plays, after S_i = (2^i - 1) l; it is Algorithm 2 with

    eta_i  = sqrt(2 ln A / (H^2 l_i)),    beta_i = 8 H sqrt(X ln(X A S_{i+1} / delta_i)),    delta_i = 1 / l_i

from V_0 and pi_0 on, with the counts of all phases before: so many plays may stand behind a count, hence S_{i+1}. It
gives way at the first reset after its end. Phases that an epoch passes over are skipped. In phase 0 it is RAVI-UCB for
T = l, bit for bit.

Constants: l = `first` = 1; those of Theorem 4.1 and Lemma 5.1 in every phase.
Deviations: V and pi begin anew with a phase. Were pi to go on under another eta, H(pi* || pi) would take the place of
ln A, and it may be as large as it likes.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ravi import checks
from ravi.core import Array, Data, Learner, Path, Problem
from ravi.estimators.counts import counts
from ravi.planning.bellman import backup
from ravi.planning.mirror import mirror_step
from ravi.schedules import at_reset
from ravi.theory import constants
from ravi.theory import doubling as theory

MOST = 2**60  # plays of a first phase


class State(NamedTuple):
    data: Data  # D
    V: Array  # V_k                    (n, X)
    Q: Array  # Q_{k+1}                (n, X, A)
    log_policy: Array  # log pi_k      (n, X, A)
    policy: Array  # pi_k              (n, X, A)
    phase: Array  # i                  (n,)
    time: Array  # plays made          (n,)


def doubling(problem: Problem, steps: int, *, first: int = 1, scale: float = 1.0, step_scale: float = 1.0) -> Learner:
    """RAVI-UCB in phases; `first` is the length of the first, `scale` multiplies beta, `step_scale` eta. `steps` is not
    looked at: a run may be of any length.

    Setting: discounted with resets, tabular; T unknown.
    Guarantee: that of RAVI-UCB, its parts in sqrt(T) at most 1 / (1 - 2^(-1/2)) = 3.414... times as large (with
    ln(2 X A T^2) in place of ln(X A T^2)), the others log2(T) times (`theory.doubling`).
    Composition: counts from 1 x beta_i / sqrt(N) x one mirror step and one backup x at resets.
    Cost: O(A) per step; X A B per plan, B the successors stored per pair; T / H plans.
    """
    checks.steps(steps)
    l = checks.whole(first, "first", 1, MOST)
    scale, step_scale = checks.nonnegative(scale, "scale"), checks.positive(step_scale, "step_scale")
    r, gamma, H = problem.rewards, problem.discount, problem.horizon
    X, A = problem.states, problem.actions
    estimator = counts(problem)

    @cache
    def eta(i: int) -> float:
        step = constants.eta(H, A, theory.length(i, l))  # Theorem 4.1
        return checks.positive(step * step_scale, "step_scale * eta")

    @cache
    def beta(i: int) -> float:
        radius = constants.beta_tabular(H, X, A, theory.end(i, l), 1 / theory.length(i, l))  # Lemma 5.1
        return checks.nonnegative(radius * scale, "scale * beta")

    def init(keys: Array) -> State:
        n = len(keys)
        policy = np.full((n, X, A), 1 / A)
        V, Q1 = np.zeros((n, X)), np.zeros((n, X, A))  # V_0, and Q_1 = E V_0
        return State(estimator.init(n), V, Q1, np.log(policy), policy, np.zeros(n, np.int64), np.zeros(n, np.int64))

    def begin(s: State) -> None:
        """Phases that are over give way to the one that time is in; in place."""
        for j in np.flatnonzero(s.time >= [theory.end(int(i), l) for i in s.phase]):
            s.phase[j] = theory.phases(int(s.time[j]) + 1, l) - 1
            s.Q[j], s.policy[j], s.log_policy[j] = 0.0, 1 / A, np.log(1 / A)

    def plan(s: State) -> State:
        begin(s)
        V = np.empty((len(s.time), X))
        for i in np.unique(s.phase):
            rows = np.flatnonzero(s.phase == i)
            V[rows], s.log_policy[rows], s.policy[rows] = mirror_step(
                s.log_policy[rows], s.policy[rows], s.Q[rows], eta(int(i)), in_place=True
            )  # V_k, pi_k
        phi = estimator.embed(V)
        PV = estimator.expect(s.data, phi)  # TRANSITION-ESTIMATE
        CB = estimator.width(s.data, phi)
        CB *= np.array([beta(int(i)) for i in s.phase])[:, None, None]  # BONUS
        return s._replace(V=V, Q=backup(r, CB, gamma, PV, H))  # Q_{k+1}

    def add(s: State, path: Path) -> State:
        estimator.add(s.data, s.V, path)  # ADD, in place
        s.time[:] += path.length
        return s

    settings = {"first": l, "scale": scale, "step_scale": step_scale}
    return Learner("ravi-ucb/doubling", init, plan, add, at_reset(), settings)
