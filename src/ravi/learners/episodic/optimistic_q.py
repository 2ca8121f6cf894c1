"""Optimistic Q-learning: Q-learning in episodes with an upper confidence bonus, and no model.

Paper: C. Jin, Z. Allen-Zhu, S. Bubeck, M. I. Jordan, "Is Q-learning provably efficient?", NeurIPS 2018.
Setting: episodes of S steps, tabular; kernels may differ by stage.
Trust: CHECKED: the start, alpha_t, iota, b_t and V of bonus=hoeffding against three public implementations; beta_t and
b_t of bonus=bernstein against one of them, which has another W_t and swaps the two weights of an update: these are
recalled (MEM-H). Compared with a literal transcription at every epoch of runs.

Q_h = S and n_h = 0 for all pairs, V_S = 0. At stage h in x, a = argmax Q_h(x, .) of the start of the episode, y
follows, and with t = n_h(x, a) after this step:

    alpha_t   = (S + 1) / (S + t)
    Q_h(x, a) = (1 - alpha_t) Q_h(x, a) + alpha_t (r(x, a) + V_{h+1}(y) + b_t)
    V_h(x)    = min{S, max_a Q_h(x, a)}

    b_t = c sqrt(S^3 iota / t)                                                               bonus=hoeffding
    b_t = (beta_t - (1 - alpha_t) beta_{t-1}) / (2 alpha_t),   beta_0 = 0,                   bonus=bernstein
    beta_t = min{c_1 (sqrt(S (W_t + S) iota / t) + sqrt(S^7 X A) iota / t), c_2 sqrt(S^3 iota / t)},

W_t the variance of the t values V_{h+1}(y) that were seen at (h, x, a).

Constants: iota = ln(X A T / delta), delta = 1/T, c = 1, c_1 = c_2 = 1; `scale` multiplies b_t. The paper says that
there are constants c. c = 1 is enough for Q_h >= Q*_h everywhere with probability 1 - delta: the weights of t updates
have squares of sum 2 S / t at most and bonuses of weighted sum c sqrt(S^3 iota / t) at least (Lemma 4.1 there), and by
Azuma-Hoeffding a weighted sum of V*(y) - P V*, each in an interval of length S, is below -sqrt(S^3 iota / t) with
probability e^-iota at most, for each of X A T triples (x, a), h, t. Those of bernstein are not derived.
Guarantee: regret O(sqrt(S^4 X A T iota)) (hoeffding), and O(sqrt(S^3 X A T iota) + sqrt(S^9 X^3 A^3) iota^2)
(bernstein).
Composition: no model x bonus on the target x one averaging update per step x at resets after the policy changed.
Cost: O(A) per step; O(S A) per plan.
Deviations: rewards are known; the paper's are too.
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import first
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.learners.episodic.core import play_greedily, stages_of
from ravi.learners.episodic.ucbvi import BONUSES
from ravi.learners.options import Confidence, takes
from ravi.learners.q.core import NONE, best
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Age, Count, Number, PlaceOrNone, Policy, Value
from ravi.runtime.seedwise import compiled_learner
from ravi.schedules import seed_never


class State(NamedTuple):
    raw: Number  # Q_h, which a bonus may carry above S  (n, S, X, A)
    V: Value  # V_0, ..., V_S                            (n, S + 1, X)
    visits: Count  # n_h                                 (n, S, X, A)
    sums: Number  # of V_{h+1}(y), of squares, beta_t    (n, S, X, A, 3), or of none (n, 0, 0, 0, 0)
    stale: PlaceOrNone  # the state of stage h whose action is another one from the next episode on   (n, S)
    policy: Policy  # by stage                           (n, S, X, A)
    age: Age  # steps since the reset                    (n,)
    stage: Age  # the same, as it is learned             (n,)


@takes()
def optimistic_q(problem: Problem, T: int, o: Confidence, bonus: str = "hoeffding") -> Learner:
    """Optimistic Q-learning; `scale` multiplies the bonus, which is "hoeffding" or "bernstein"."""
    scale, delta = o
    bernstein = validation.one_of(bonus, BONUSES, "bonus") == "bernstein"
    S, X, A = stages_of(problem, "optimistic-q"), problem.states, problem.actions
    iota = log(X * A * T / delta)

    def init(keys: Array) -> State:
        n = len(keys)
        Q, V, policy = np.full((n, S, X, A), float(S)), np.full((n, S + 1, X), float(S)), np.zeros((n, S, X, A))
        V[:, S], policy[..., 0] = 0.0, 1.0
        sums, age = np.zeros((n, S, X, A, 3) if bernstein else (n, 0, 0, 0, 0)), np.zeros(n, np.int32)
        visits, stale = np.zeros((n, S, X, A), np.int32), np.full((n, S), NONE, np.int32)
        return State(Q, V, visits, sums, stale, policy, age, age.copy())

    def own(s: State, teams: int) -> tuple[Any, ...]:
        return s.raw, s.V, s.visits, s.sums, s.stale, s.policy, s.stage, problem.rewards, scale, iota

    settings = {"scale": scale, "delta": delta, "bonus": bonus, "iota": iota, "stages": S}
    form = Seedwise(seed_plan, seed_learn, own, reset=False, changes=True)
    return compiled_learner("optimistic-q", init, form, settings, stages=S)


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """Where an episode begins, its policy is greedy in Q; a team's."""
    Q, _, _, _, stale, policy, stage, _, _, _ = own
    if first() and stage[i] == 0:
        for h in range(stale.shape[1]):
            x = stale[i, h]
            if x >= 0:
                play_greedily(Q[i, h, x], policy[i, h, x])
                stale[i, h] = NONE
    return seed_never(own, i, t)


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Learn from the step; whether an episode ends, after which the policy is another one. One thread's."""
    Q, V, visits, sums, stale, policy, stage, r, scale, iota = own
    S, h = stale.shape[1], stage[i]
    stage[i] = 0 if reset else h + 1
    if h < S:  # a stream may go on beyond the last stage
        H = float(S)
        visits[i, h, x, a] += 1
        k = visits[i, h, x, a]
        alpha, v = (H + 1.0) / (H + k), V[i, h + 1, y]
        b = sqrt(H**3 * iota / k)
        if sums.shape[1] > 0:
            kept = sums[i, h, x, a]
            kept[0] += v
            kept[1] += v * v
            spread = max(kept[1] / k - (kept[0] / k) ** 2, 0.0)
            beta = min(sqrt(H * (spread + H) * iota / k) + sqrt(H**7 * r.size) * iota / k, b)
            b = (beta - (1.0 - alpha) * kept[2]) / (2.0 * alpha)
            kept[2] = beta
        Q[i, h, x, a] = (1.0 - alpha) * Q[i, h, x, a] + alpha * (r[x, a] + v + scale * b)
        V[i, h, x] = min(H, highest(Q[i, h, x]))
        stale[i, h] = NONE if policy[i, h, x, best(Q[i, h, x])] == 1.0 else x
    if reset:
        for h in range(S):
            if stale[i, h] >= 0:
                return True
    return False
