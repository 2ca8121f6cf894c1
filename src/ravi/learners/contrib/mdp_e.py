"""MDP-E with estimated transitions: one expert algorithm in every state, fed with the values of the actions there.

Paper: E. Even-Dar, S. Kakade, Y. Mansour, "Online Markov decision processes", Math. of Operations Research 34, 2009.
Setting: average reward, known transitions, rewards that an adversary changes; here the transitions are estimated, and
the rewards are known and fixed.
Trust: MEM-H for the scheme: its paper was not at hand. Its certainty-equivalent form is DERIVED.

In epoch k, with the data at its start,

    V_k, Q_{k+1}     the fixed point of  Q = r + gamma P_hat_k V,  V = <pi_k, Q>;  Q = H where a pair was never played
    pi_{k+1}(a|x) ~ pi_k(a|x) exp(eta Q_{k+1}(x, a))                        for epoch k + 1

P_hat = N' / n. On the reset chain (`ravi.verify.preliminaries.reset_chain`) the Q of the paper, of average rewards, is
this one up to a constant, which exponential weights do not see.

Constants: eta = (1/H) sqrt(2 ln A / K), K = (1 - gamma) T + gamma the expected number of epochs: it minimises
ln A / eta + eta H^2 K / 2, the regret of exponential weights in a state over K rounds with gains in [0, H]. (The paper
takes any expert algorithm. Hoeffding's lemma would give 8 in place of 2: `step_scale` 2.) pi_0 uniform.
Guarantee: with known transitions, regret O(tau^2 sqrt(T ln A)), tau the mixing time (here at most 1.39 H). With
estimated ones there is none: nothing is explored but what was never played.
Composition: counts from 0 x none, but H where nothing is known x policy iteration with a mirror step x at every reset:
MD-MPI of type 2 with sweeps=0.
Cost: O(1) per step; X^3 per plan up to 32 states, then X A B per sweep; T / H plans.
Deviations: P_hat for P; one round per epoch, not per step; a pair that was never played is worth H, so that it is
found; the evaluation uses the data at the start of the epoch in which the policy is played, one epoch late.
"""

from math import log, sqrt

import numpy as np

from ravi.core import Array, Estimator, Learner, Problem
from ravi.estimators.counts import Counts, counts, tallies
from ravi.learners.options import Options, takes
from ravi.learners.regularised.md_mpi import frequencies, generic
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning.bellman import expect_with
from ravi.theory import constants


@takes("step_scale", "eta")
def mdp_e(problem: Problem, T: int, o: Options) -> Learner:
    """Certainty-equivalent MDP-E; `step_scale` multiplies eta."""
    H, A, estimator = problem.horizon, problem.actions, played(problem)
    K = constants.expected_epochs(H, T)
    return generic(
        problem, estimator, multiple_of_width(H, estimator), o.step(sqrt(2 * (log(A) if A > 1 else 1.0) / K) / H),
        sweeps=0, regularised=False, kernel=frequencies, name="mdp-e", settings={"step_scale": o.step_scale},
    )  # fmt: skip


def played(problem: Problem) -> Estimator:
    """P_hat = N' / n, a kernel where a pair was played; the width is 1 where it was not, and 0 where it was."""

    def expect(D: Counts, V: Array) -> Array:
        return expect_with(problem.successors, frequencies(D), V)

    def width(D: Counts, V: Array) -> Array:
        return np.where(D.visits == 0, 1.0, 0.0)

    return counts(problem)._replace(init=lambda n: tallies(problem, n), expect=expect, width=width)
