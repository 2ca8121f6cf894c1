"""O-REPS with estimated transitions: mirror descent on occupancies, not on policies.

Paper: A. Zimin, G. Neu, "Online learning in episodic Markovian decision processes by relative entropy policy search",
NIPS 2013; after J. Peters, K. Muelling, Y. Altun, "Relative entropy policy search", AAAI 2010.
Setting: episodic, loop-free, known transitions, rewards that an adversary changes; here episodic, or discounted with
resets, the transitions estimated, and the rewards known and fixed.
Trust: MEM-M for the method, whose paper was not at hand; the discounted program and the duals are DERIVED, and
certified at every step that is tested. The certainty-equivalent learner is DERIVED.

In epoch k, an episode or what lies between two resets, with the data at its start and P_hat = N' / n,

    mu_k = argmax_mu <mu, r> - KL(mu || mu') / eta      over the occupancies of P_hat,
    pi_k(a|x) ~ mu_k(x, a)

in episodes over those of states at stages, which sum to one, with a policy for each stage;

mu' is the occupancy of pi_{k-1} under the same P_hat: mu_{k-1} itself, if P_hat has not changed. (mu_{k-1} has no
mass on what could not be reached in the P_hat before, and no step from it ever would.) In states that pi_{k-1} does not
reach under P_hat, or with an occupancy below 1e-30, pi_k = pi_{k-1}: states that were never seen, and, where steps are
large, those that the policy has all but given up. A pair that was never played stays where it is, with reward 1: it is
worth H to a policy that keeps to it.

Constants: eta = sqrt(2 ln(X A) / K), K = ceil(T / S) episodes, or (1 - gamma) T + gamma, the expected number of epochs:
it minimises ln(X A) / eta + eta K / 2, the regret of entropic mirror descent over K rounds with <mu, r> in [0, 1] (KL
is the mean of those of the stages, at most ln(X A) each). pi_0 uniform. `step_scale` multiplies eta.
Guarantee: with known transitions and L layers, regret O(L sqrt(T ln(X A / L))) over T episodes. With estimated ones
there is none: nothing is explored but what was never played.
Composition: counts from 0 x none, but reward 1 where nothing is known x O-REPS step x at every reset.
Cost: O(1) per step; three to ten Newton steps of X A B^2 + X^3 per plan, with S X for X in episodes; T / H plans. For
small X, or S X.
Deviations: as said: P_hat for P, mu' for mu_{k-1}, and with a discount occupancies that discount in place of layers.
"""

from math import ceil, log, sqrt
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import Counts, tallies, tally
from ravi.learners.contrib.occupancy_descent import FLOW, step
from ravi.runtime.ranges import LARGEST, Age, LogPolicy, Policy, Range, Whole
from ravi.schedules import at_reset
from ravi.theory import constants

SEARCHED = Range(
    lambda V, *_: (np.abs(V) <= LARGEST).all(-1) | np.isnan(V).all(-1),
    "a row of numbers, or nan where a search failed",
)


class State(NamedTuple):
    data: Counts
    dual: Annotated[Array, SEARCHED]  # V of the dual, where the next search begins  (n, X)
    log_policy: LogPolicy  # log pi_k                                                (n, X, A)
    policy: Policy  # pi_k                                                           (n, X, A)
    unfinished: Whole  # plans whose flow is off by more than 1e-11   (n,)


class StagedState(NamedTuple):
    data: Counts
    dual: Annotated[Array, SEARCHED]  # (n, S X)
    log_policy: LogPolicy  # (n, S, X, A)
    policy: Policy  # (n, S, X, A)
    unfinished: Whole  # (n,)
    age: Age  # steps since the reset   (n,)


def o_reps(problem: Problem, steps: int, *, step_scale: float = 1.0) -> Learner:
    """Certainty-equivalent O-REPS; `step_scale` multiplies eta."""
    T = validation.steps(steps)
    gamma, nu0, S = problem.discount, problem.initial, problem.episode
    X, A = problem.states, problem.actions
    K = constants.expected_epochs(problem.horizon, T) if S is None else ceil(T / S)
    eta = validation.positive(step_scale, "step_scale") * sqrt(2 * (log(X * A) if X * A > 1 else 1.0) / K)
    validation.finite_result(lambda: 1e6 * problem.largest_value * eta, "eta V", step_scale=step_scale)
    itself = np.broadcast_to(np.arange(X, dtype=np.int32)[:, None, None], (X, A, 1))
    successors = np.concatenate([problem.successors, itself], axis=-1)  # one more: the state itself
    if S is not None:  # a state is one at a stage
        successors = np.concatenate([successors + min(h + 1, S - 1) * X for h in range(S)]).astype(np.int32)
        nu0 = np.concatenate([nu0, np.zeros((S - 1) * X)])

    def init(keys: Array) -> Any:
        n, stages = len(keys), () if S is None else (S,)
        policy = np.full((n, *stages, X, A), 1 / A)
        begun = tallies(problem, n), np.zeros((n, (S or 1) * X)), np.log(policy), policy, np.zeros(n, np.int64)
        return State(*begun) if S is None else StagedState(*begun, np.zeros(n, np.int32))

    def plan(s: Any) -> Any:
        r, P_hat = _model(problem.rewards, s.data.visits, s.data.moves)
        if S is not None:
            r, P_hat = np.tile(r, (1, S, 1)), np.tile(P_hat, (1, S, 1, 1))
            P_hat[:, -X:] = 0.0
        rows = r.shape
        _, flow = step(
            r, successors, P_hat, gamma, nu0, eta, s.dual, s.log_policy.reshape(rows), s.policy.reshape(rows), S or 0
        )  # pi_k, in place
        return s._replace(unfinished=s.unfinished + (flow > FLOW))

    def add(s: Any, path: Path) -> Any:
        tally(s.data, path)
        return s

    settings = {"eta": eta, "step_scale": step_scale} | ({} if S is None else {"stages": S})
    return Learner("o-reps", init, plan, add, at_reset(), settings, stages=S or 0)


@compiled
def _model(rewards, visits, moves):  # type: ignore[no-untyped-def]
    """r and P_hat = N' / n, on the successors and the state itself; where n = 0, reward 1 and the state itself."""
    n, X, A, B = moves.shape
    r, P = np.empty((n, X, A)), np.zeros((n, X, A, B + 1))
    for i in range(n):
        for x in range(X):
            for a in range(A):
                plays = visits[i, x, a]
                r[i, x, a] = rewards[x, a] if plays > 0 else 1.0
                if plays == 0:
                    P[i, x, a, B] = 1.0
                else:
                    for j in range(B):
                        P[i, x, a, j] = moves[i, x, a, j] / plays
    return r, P
