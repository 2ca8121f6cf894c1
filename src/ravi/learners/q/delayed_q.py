"""Delayed Q-learning: a value is lowered only on the evidence of m visits, and only by much.

Paper: A. Strehl, L. Li, E. Wiewiora, J. Langford, M. Littman, "PAC model-free reinforcement learning", ICML 2006.
Setting: discounted, tabular, PAC: the number of steps at which the policy is not eps-optimal.
Trust: CHECKED: m and the update against the authors' paper of 2009 (JMLR 10, Equations 6 to 8: its (1 + gamma V_max)^2
is H^2), the rules of LEARN of 2006 against two public implementations and against what that paper says of them. The
paper of 2006 was not at hand: eps1 = eps (1 - gamma) / 9 is recalled (MEM-H); the proof of 2009 has eps (1 - gamma)
/ 3, for policies that are 4 eps-optimal.

Q = H, U = l = b = t* = 0 and LEARN = true for all pairs. At step t, a = argmax Q(x, .), and y follows:

    if LEARN(x, a):  U(x, a) += r(x, a) + gamma max Q(y, .);  l(x, a) += 1
        if l(x, a) = m:                                         an attempted update
            if Q(x, a) - U(x, a) / m >= 2 eps1:  Q(x, a) = U(x, a) / m + eps1;  t* = t
            else if b(x, a) >= t*:  LEARN(x, a) = false         all m visits were made under the present Q
            b(x, a) = t;  U(x, a) = l(x, a) = 0
    else if b(x, a) < t*:  LEARN(x, a) = true                   some Q has changed since

Constants: eps1 = eps (1 - gamma) / 9 and m = ceil(H^2 ln(3 X A (1 + X A H / eps1) / delta) / (2 eps1^2)), delta =
1/T, eps = `accuracy` H in units of V: `accuracy` is the gap in return that is aimed at, so eps1 = accuracy / 9.
`scale` multiplies the radius that m visits leave, so m becomes ceil(scale^2 m); `m` sets it outright.
Guarantee: with probability 1 - delta, Q >= Q* always, and the policy is eps-optimal but for O(X A H^8 / eps^4) steps,
up to logarithms. Whatever m: Q only falls, by at least eps1 at each update, so there are at most X A H / eps1
updates.
Composition: no model x optimistic initial values x averages of m targets x whenever the policy changes.
Cost: O(A) per step; O(A) per plan; plans are at most the updates.
Deviations: targets take the true successor y_t where a reset follows. The authors' version of 2009 (JMLR 10) lets b
be the step at which an attempt began, and so stops learning a pair up to m visits earlier; this is the one of 2006.
"""

from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.learners.options import Confidence, takes
from ravi.learners.q.core import NONE, best, first_action, greedy_in_a_table
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Count, Flag, Past, PlaceOrNone, Policy, Positive, Value

MOST = 2**62  # of m, which is counted in 64 bits


class State(NamedTuple):
    Q: Value  # (n, X, A)
    U: Positive  # sum of the targets of this attempt   (n, X, A)
    plays: Count  # l, how many they are   (n, X, A)
    attempt: Past  # b, the step of the last attempted update   (n, X, A)
    learn: Flag  # LEARN   (n, X, A)
    change: Past  # t*, the step of the last update   (n,)
    policy: Policy  # (n, X, A)
    stale: PlaceOrNone  # (n,)


@takes()
def delayed_q(problem: Problem, T: int, o: Confidence, accuracy: float = 0.1, m: int | None = None) -> Learner:
    """Delayed Q-learning for a gap of `accuracy`; `scale` multiplies the radius that m stands for."""
    scale, delta = o
    eps1 = validation.probability(accuracy, "accuracy") / 9
    r, gamma, H, X, A = problem.rewards, problem.discount, problem.horizon, problem.states, problem.actions
    if m is None:
        theory = validation.finite_result(
            lambda: scale * scale * samples(H, X, A, eps1, delta), "m", scale=scale, accuracy=accuracy
        )
        if theory > MOST:
            raise validation.InputError(
                f"m is {theory:.3g} with scale = {scale:g} and accuracy = {9 * eps1:g}; it must be at most {MOST}"
            )
        m = max(1, ceil(theory))
    m = validation.whole(m, "m", 1, MOST)

    def init(keys: Array) -> State:
        n = len(keys)
        zeros, none, yes = np.zeros((n, X, A)), np.zeros((n, X, A), np.int64), np.ones((n, X, A), np.bool_)
        Q, policy = np.full((n, X, A), H), first_action(n, X, A)
        return State(Q, zeros, none, none.copy(), yes, np.zeros(n, np.int64), policy, np.full(n, NONE, np.int32))

    def own(s: State, teams: int) -> tuple[Any, ...]:
        return (s.policy, s.Q, s.stale), s.U, s.plays, s.attempt, s.learn, s.change, r, gamma, m, eps1

    settings: dict[str, Any] = {"m": m, "eps1": eps1, "accuracy": accuracy, "scale": scale, "delta": delta}
    return greedy_in_a_table("delayed-q", init, _learn, own, settings)


def samples(H: float, X: int, A: int, eps1: float, delta: float) -> float:
    """m: each of X A (1 + X A H / eps1) averages of m targets in [0, H] errs by eps1 at most, but for delta/3."""
    return (H / eps1) * (H / eps1) * log(3 * X * A * (1 + X * A * H / eps1) / delta) / 2


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    (_, Q, stale), U, plays, attempt, learn, change, r, gamma, m, eps1 = own
    if learn[i, x, a]:
        U[i, x, a] += r[x, a] + gamma * highest(Q[i, y])
        plays[i, x, a] += 1
        if plays[i, x, a] == m:
            if Q[i, x, a] - U[i, x, a] / m >= 2 * eps1:
                Q[i, x, a] = U[i, x, a] / m + eps1
                change[i] = t
                if best(Q[i, x]) != a:
                    stale[i] = x
            elif attempt[i, x, a] >= change[i]:
                learn[i, x, a] = False
            attempt[i, x, a] = t
            U[i, x, a], plays[i, x, a] = 0.0, 0
    elif attempt[i, x, a] < change[i]:
        learn[i, x, a] = True
    return stale[i] != NONE
