"""Q-learning with upper confidence bounds, for the infinite horizon.

Paper: K. Dong, Y. Wang, X. Chen, L. Wang, "Q-learning with UCB exploration is sample efficient for infinite-horizon
MDP", ICLR 2020 (arXiv 1901.09311).
Setting: discounted, tabular, PAC: the number of steps at which the policy is not eps-optimal.
Trust: CHECKED against one public implementation that writes out the paper's constants: alpha_k, iota, b_k, c_2, R, L,
xi, M, eps1, H_q and the rule of Q_hat; the numbers of both agree. The paper itself was not at hand. The sharper c_2
below is DERIVED here.

Q = Q_hat = H and n = 0 for all pairs. At step t, a = argmax Q_hat(x, .), y follows, and with k = n(x, a) after this
step:

    b_k         = (c_2 / (1 - gamma)) sqrt(H_q iota(k) / k),    iota(k) = ln(X A (k + 1) (k + 2) / delta)
    alpha_k     = (H_q + 1) / (H_q + k)
    Q(x, a)     = (1 - alpha_k) Q(x, a) + alpha_k (r(x, a) + b_k + gamma max Q_hat(y, .))
    Q_hat(x, a) = min(Q_hat(x, a), Q(x, a))

Constants: eps = `accuracy` H in units of V, R = ceil(H ln(3 H / eps)), L = floor(log2 R), xi = eps / (3 2^(L + 2) ln
H), M = max(ceil(2 log2(H / xi)), 10), eps1 = eps / (24 R M ln H), H_q = ln(H / eps1) / ln(1 / gamma), c_2 = 4 sqrt(2),
delta = 1/T. `scale` multiplies c_2.
Guarantee: with probability 1 - delta the policy is eps-optimal but for O(X A H^7 / eps^2) steps, up to logarithms.
Q_hat >= Q* at all times with probability 1 - delta/2 already at c_2 = gamma, that is at scale = gamma / (4 sqrt(2)):
after k steps Q - Q* >= sum_i alpha_k^i (b_i - gamma (P V* - V*(y_i))), where the weights alpha_k^i sum to 1 and their
squares to at most 2 H_q / k [H_q >= 1]; b_i >= b_k; by Azuma-Hoeffding for increments in an interval of length gamma
alpha_k^i H the noise exceeds gamma H sqrt(H_q iota(k) / k) with probability exp(-iota(k)) at most; and sum_k X A
exp(-iota(k)) = delta / 2.
Composition: no model x bonus on the target x one averaging update per step x whenever the policy changes.
Cost: O(A) per step; O(A) per plan; plans as the policy changes, which is up to every other step while values are
close.
Deviations: targets take the true successor y_t where a reset follows. 24 R M ln H is taken to be 1 at least, so that
H_q > 0 where gamma is close to 0. The paper's Q, which a bonus may carry above H, is `raw` here.
"""

from math import ceil, floor, log, log2, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.learners.options import Confidence, takes
from ravi.learners.q.core import NONE, first_action, greedy_in_a_table, lower
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Count, Number, PlaceOrNone, Policy, Value

C2 = 4 * sqrt(2)


class State(NamedTuple):
    raw: Number  # the paper's Q, not truncated   (n, X, A)
    Q_hat: Value  # the least of it so far, in [0, H]   (n, X, A)
    visits: Count  # (n, X, A)
    policy: Policy  # (n, X, A)
    stale: PlaceOrNone  # (n,)


class Constants(NamedTuple):
    eps1: float
    R: int
    M: int
    H_q: float  # effective horizon of the step sizes
    width: float  # c_2 H sqrt(H_q), times scale: b_k = width sqrt(iota(k) / k)
    pairs: float  # X A / delta


@takes()
def ucb_q(problem: Problem, T: int, o: Confidence, accuracy: float = 0.1) -> Learner:
    """Q-learning with UCB for a gap of `accuracy`; `scale` multiplies the bonus."""
    scale, delta = o
    r, gamma, X, A = problem.rewards, problem.discount, problem.states, problem.actions
    c = constants(problem, delta, scale, accuracy)

    def init(keys: Array) -> State:
        n = len(keys)
        raw, Q_hat = np.full((n, X, A), problem.horizon), np.full((n, X, A), problem.horizon)
        return State(raw, Q_hat, np.zeros((n, X, A), np.int32), first_action(n, X, A), np.full(n, NONE, np.int32))

    def own(s: State, teams: int) -> tuple[Any, ...]:
        return (s.policy, s.Q_hat, s.stale), s.raw, s.visits, r, gamma, c.H_q, c.width, c.pairs

    settings: dict[str, Any] = {"scale": scale, "delta": delta, "accuracy": accuracy, "c2": C2 * scale} | c._asdict()
    return greedy_in_a_table("ucb-q", init, _learn, own, settings)


def constants(problem: Problem, delta: float, scale: float, accuracy: float) -> Constants:
    H, gamma = problem.horizon, problem.discount
    eps = validation.probability(accuracy, "accuracy") * H
    R = ceil(H * log(3 * H / eps))
    shares = log2(H / eps) + log2(3 * max(log(H), 2.0**-52)) + floor(log2(R)) + 2  # log2(H / xi)
    M = max(ceil(2 * shares), 10)
    eps1 = eps / max(24 * R * M * log(H), 1.0)
    H_q = validation.finite_result(lambda: log(H / eps1) / log(1 / gamma), "H_q", accuracy=accuracy)
    return Constants(eps1, R, M, H_q, scale * C2 * H * sqrt(H_q), problem.states * problem.actions / delta)


@compiled
def rate(k, H_q):  # type: ignore[no-untyped-def]
    """alpha_k."""
    return (H_q + 1.0) / (H_q + k)


@compiled
def bonus(k, width, pairs):  # type: ignore[no-untyped-def]
    """b_k."""
    return width * sqrt(log(pairs * (k + 1.0) * (k + 2.0)) / k)


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    table, raw, visits, r, gamma, H_q, width, pairs = own
    visits[i, x, a] += 1
    k = visits[i, x, a]
    target = r[x, a] + bonus(k, width, pairs) + gamma * highest(table[1][i, y])
    return lower(table, raw, i, x, a, rate(k, H_q), target)
