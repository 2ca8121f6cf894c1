"""MDP-E with estimated transitions: one expert algorithm in every state, fed with the values of the actions there.

Paper: E. Even-Dar, S. Kakade, Y. Mansour, "Online Markov decision processes", Math. of Operations Research 34, 2009.
Setting: average reward, known transitions, rewards that an adversary changes; here the transitions are estimated, and
the rewards are known and fixed.
Trust: MEM-H for the scheme: its paper was not at hand. Its certainty-equivalent form is DERIVED.

In the average reward, before step t, with P_hat = N' / n of all steps so far:

    g, v, Q            the gain and the relative values of pi_t:  Q = r - g + P_hat v,  v = <pi_t, Q>
    pi_{t+1}(a|x) ~ pi_t(a|x) exp(eta Q(x, a))

where a pair that was never played stays where it is, with reward 1 (`ravi.learners.regularised.exponential_weights`).
With a discount, in epoch k, with the data at its start,

    V_k, Q_{k+1}     the fixed point of  Q = r + gamma P_hat_k V,  V = <pi_k, Q>;  Q = H where a pair was never played
    pi_{k+1}(a|x) ~ pi_k(a|x) exp(eta Q_{k+1}(x, a))                        for epoch k + 1

On the reset chain (`ravi.verify.preliminaries.reset_chain`) the Q of the paper, of average rewards, is this one up to a
constant, which exponential weights do not see.

Constants: eta = (1/W) sqrt(2 ln A / K), K the number of rounds: T, and with a discount (1 - gamma) T + gamma, the
expected number of epochs; W, the length of an interval that holds the values of a state, is `span`, and with a discount
H. This eta minimises ln A / eta + eta W^2 K / 2, the regret of exponential weights in a state over K rounds. (The paper
takes any expert algorithm. Hoeffding's lemma would give 8 in place of 2: `step_scale` 2.) pi_0 uniform. `phase` = J > 1
makes a round of J steps in the average reward, K = T / J.
Guarantee: with known transitions, regret O(tau^2 sqrt(T ln A)), tau the mixing time (with a discount at most 1.39 H).
With estimated ones there is none: nothing is explored but what was never played.
Composition: counts from 0 x none, but the most where nothing is known x policy evaluation with a mirror step x at every
step, or reset (MD-MPI of type 2 with sweeps=0).
Cost: O(1) per step; X^3 per plan, in each step of the average reward; with a discount X^3 up to 32 states, then X A B
per sweep; T / H plans.
Deviations: P_hat for P; a pair that was never played is worth as much as can be, so that it is found. With a discount:
one round per epoch, not per step, and the evaluation uses the data at the start of the epoch in which the policy is
played, one epoch late.
"""

from math import log, sqrt

import numpy as np

from ravi import validation
from ravi.core import Array, Estimator, Learner, Problem
from ravi.estimators.counts import Counts, counts, tallies
from ravi.learners.options import Options, bias_span, takes
from ravi.learners.regularised.exponential_weights import exponential_weights, plan_mdp_e
from ravi.learners.regularised.md_mpi import frequencies, generic
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning.bellman import expect_with
from ravi.theory import constants


@takes("step_scale", "eta")
def mdp_e(problem: Problem, T: int, o: Options, span: float | None = None, phase: int = 1) -> Learner:
    """Certainty-equivalent MDP-E; `step_scale` multiplies eta. In the average reward `span` is W, and `phase` the steps
    of a round."""
    H, log_A, J = (
        problem.horizon,
        log(problem.actions) if problem.actions > 1 else 1.0,
        validation.whole(phase, "phase"),
    )
    if problem.criterion == "average":
        W = bias_span(problem, span)
        eta = validation.finite_result(lambda: o.step(sqrt(2 * log_A / max(1, T // J)) / W), "eta", span=W)
        return exponential_weights("mdp-e", problem, plan_mdp_e, eta, W, J, {"phase": J, "step_scale": o.step_scale})
    if span is not None or J > 1:
        raise validation.InputError(
            "span and phase are for the average reward: with a discount a round lasts until a reset"
        )
    estimator, K = played(problem), constants.expected_epochs(H, T)
    return generic(
        problem, estimator, multiple_of_width(H, estimator), o.step(sqrt(2 * log_A / K) / H),
        sweeps=0, regularised=False, kernel=frequencies, name="mdp-e", settings={"step_scale": o.step_scale},
    )  # fmt: skip


def played(problem: Problem) -> Estimator:
    """P_hat = N' / n, a kernel where a pair was played; the width is 1 where it was not, and 0 where it was."""

    def expect(D: Counts, V: Array) -> Array:
        return expect_with(problem.successors, frequencies(D), V)

    def width(D: Counts, V: Array) -> Array:
        return np.where(D.visits == 0, 1.0, 0.0)

    return counts(problem)._replace(init=lambda n: tallies(problem, n), expect=expect, width=width)
