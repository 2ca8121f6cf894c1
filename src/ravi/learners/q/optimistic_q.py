"""Optimistic Q-learning for the average reward: Q-learning with upper confidence bounds at a discount set by T.

Paper: C.-Y. Wei, M. Jafarnia-Jahromi, H. Luo, H. Sharma, R. Jain, "Model-free reinforcement learning in
infinite-horizon average-reward Markov decision processes", ICML 2020 (arXiv 1910.07072), Algorithm 1.
Setting: average reward, tabular, weakly communicating; sp >= span(h*) is known.
Trust: CHECKED: the algorithm against the authors' public code, which has gamma / (1 - gamma) for H and tunes the bonus;
H, alpha and b against public code by others (Colosseum) that writes them out. That H is at least 2 is recalled (MEM-M).

Q = Q_hat = H and n = 0 for all pairs, gamma = 1 - 1 / H. At step t, a = argmax Q_hat(x, .), x' follows, and with k =
n(x, a) after this step:

    b_k         = 4 sp sqrt(H ln(2 T / delta) / k)
    alpha_k     = (H + 1) / (H + k)
    Q(x, a)     = (1 - alpha_k) Q(x, a) + alpha_k (r(x, a) + gamma max Q_hat(x', .) + b_k)
    Q_hat(x, a) = min(Q_hat(x, a), Q(x, a))

Constants: H = max{2, min{sqrt(sp T / X A), (T / (X A ln(4 T / delta)))^(1/3)}}, delta = 1/T; `horizon` sets H, `span`
is sp, and `scale` multiplies b. The experiments of the paper have gamma = .99 and b_k = sqrt(H / k).
Guarantee: regret O~(sp (X A)^(1/3) T^(2/3)) with probability 1 - delta.
Composition: no model x bonus on the target x one averaging update per step x whenever the policy changes.
Cost: O(A) per step; O(A) per plan; plans as the policy changes.
Deviations: rewards are known; that needs no change. With a discount it learns on the reset chain, from x_{t+1}, whose
bias is V*: sp is the H of the MDP unless given.
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.learners.options import Confidence, bias_span, takes
from ravi.learners.q.core import NONE, first_action, greedy_in_a_table, lower
from ravi.learners.q.ucb_q import rate
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Count, Number, PlaceOrNone, Policy


class State(NamedTuple):
    raw: Number  # Q   (n, X, A)
    Q_hat: Number  # the least of it so far   (n, X, A)
    visits: Count  # (n, X, A)
    policy: Policy  # (n, X, A)
    stale: PlaceOrNone  # (n,)


@takes()
def optimistic_q(
    problem: Problem, T: int, o: Confidence, span: float | None = None, horizon: float | None = None
) -> Learner:
    """Optimistic Q-learning; `span` is sp, `horizon` is H, and `scale` multiplies the bonus."""
    scale, delta = o
    r, X, A = problem.rewards, problem.states, problem.actions
    sp = bias_span(problem, span)
    H = longest(sp, X * A, T, delta) if horizon is None else validation.finite(horizon, "horizon").item()
    if H <= 1:
        raise validation.InputError(f"horizon is {H:g}; it must be more than 1, as gamma = 1 - 1 / horizon is positive")
    width = validation.finite_result(
        lambda: 4 * scale * sp * sqrt(H * log(2 * T / delta)), "the bonus", scale=scale, span=sp, horizon=H
    )

    def init(keys: Array) -> State:
        n = len(keys)
        full = np.full((n, X, A), H)
        return State(
            full, full.copy(), np.zeros((n, X, A), np.int32), first_action(n, X, A), np.full(n, NONE, np.int32)
        )

    def own(s: State, teams: int) -> tuple[Any, ...]:
        return (s.policy, s.Q_hat, s.stale), s.raw, s.visits, r, H, width

    settings = {"scale": scale, "delta": delta, "span": sp, "horizon": H, "bonus": width}
    return greedy_in_a_table("optimistic-q/average", init, _learn, own, settings)


def longest(span: float, pairs: int, T: int, delta: float) -> float:
    """H of the paper."""
    return max(2.0, min(sqrt(span * T / pairs), (T / (pairs * log(4 * T / delta))) ** (1 / 3)))


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    table, raw, visits, r, H, width = own
    visits[i, x, a] += 1
    k = visits[i, x, a]
    target = r[x, a] + (1.0 - 1.0 / H) * highest(table[1][i, after]) + width / sqrt(k)
    return lower(table, raw, i, x, a, rate(k, H), target)
