"""UCBVI: backward induction on the estimated kernel with a bonus, in episodes; its Q never grows.

Paper: M. G. Azar, I. Osband, R. Munos, "Minimax regret bounds for reinforcement learning", ICML 2017 (arXiv
1703.05449).
Setting: episodes of S steps, tabular, one kernel for all stages, known rewards.
Trust: CHECKED against a formal transcription of Algorithms 1 to 4 (arXiv version 2), made by others for a proof
assistant, and against public code: counts of all stages together, the start, both bonuses with their constants, L, N'
of the state that follows. Compared with a literal transcription at every epoch of runs.

Before an episode, with n, N' and P_hat = N' / n of all earlier ones, and n_h(y) how often stage h led to y, V_S = 0 and
backwards:

    Q_h(x, a) = min{Q_h(x, a) of before, S, r(x, a) + (P_hat V_{h+1})(x, a) + b_h(x, a)},   S where n = 0
    V_h(x)    = max_a Q_h(x, a)

    b_h = 7 S L / sqrt(n)                                                                     bonus=hoeffding (CH)
    b_h = sqrt(8 L Var_{P_hat}(V_{h+1}) / n) + 14 S L / (3 n)
          + sqrt(8 sum_y P_hat(y) min{100^2 S^3 X^2 A L^2 / n_h(y), S^2} / n)                 bonus=bernstein (BF)

and stage h plays argmax_a Q_h.

Constants: L = ln(5 X A T / delta), delta = 1/T. `scale` multiplies b_h. At any T in reach the third term is
sqrt(8 / n) S, since its minimum is S^2.
Guarantee: with probability 1 - delta, for K episodes and L with 5 S X A T in it, regret at most
20 S^1.5 L sqrt(X A K) + 250 S^2 X^2 A L^2 (CH), 30 S L sqrt(X A K) + 2500 S^2 X^2 A L^2 + 4 S^1.5 sqrt(K L) (BF).
Composition: counts from 0 x Hoeffding or Bernstein bonus x backward induction x every episode.
Cost: O(1) per step; S X A B per plan, a plan for every episode.
Deviations: none known.
"""

from math import log, sqrt
from typing import Any, NamedTuple, cast

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, each, sync
from ravi.core import Array, Learner, Parts, Problem, Seedwise, TheoryConstants
from ravi.estimators.counts import Counts, tallies
from ravi.learners.episodic.core import play_greedily, stage_of, stages_of
from ravi.learners.options import Confidence, takes
from ravi.runtime.ranges import Age, Count, Policy, Value
from ravi.runtime.seedwise import compiled_learner

BONUSES = ("bernstein", "hoeffding")


class State(NamedTuple):
    data: Counts
    met: Count  # n_h(y)                      (n, S, X)
    Q: Value  # Q_h                           (n, S, X, A)
    V: Value  # V_0, ..., V_S                 (n, S + 1, X)
    policy: Policy  # by stage                (n, S, X, A)
    age: Age  # steps since the reset         (n,)
    stage: Age  # the same, as it is learned  (n,)


@takes()
def ucbvi(problem: Problem, T: int, o: Confidence, bonus: str = "bernstein") -> Learner:
    """UCBVI; `scale` multiplies the bonus, which is "bernstein" (UCBVI-BF) or "hoeffding" (UCBVI-CH)."""
    scale, delta = o
    bernstein = validation.one_of(bonus, BONUSES, "bonus") == "bernstein"
    S, X, A = stages_of(problem, "ucbvi"), problem.states, problem.actions
    L = log(5 * X * A * T / delta)

    def init(keys: Array) -> State:
        n = len(keys)
        Q, V, policy = np.full((n, S, X, A), float(S)), np.zeros((n, S + 1, X)), np.full((n, S, X, A), 1 / A)
        age = np.zeros(n, np.int32)
        return State(tallies(problem, n), np.zeros((n, S, X), np.int32), Q, V, policy, age, age.copy())

    def own(s: State, teams: int) -> tuple[Any, ...]:
        more = 100.0**2 * S**3 * X**2 * A * L**2
        read = problem.rewards, problem.successors, scale, L, more, bernstein
        return *s.data, s.met, s.stage, s.Q, s.V, s.policy, read

    settings = {"scale": scale, "delta": delta, "bonus": bonus, "L": L, "stages": S}
    form, nothing = Seedwise(seed_plan, seed_learn, own), cast(Any, None)
    stated = TheoryConstants(bonus, None, scale, delta=delta)
    parts = Parts(nothing, nothing, nothing, np.zeros(X), np.full((X, A), 1 / A), stated=stated)
    return compiled_learner("ucbvi", init, form, settings, stages=S, parts=parts)


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """Q, V and the policy of an episode of one seed; a team's."""
    visits, moves, met, _, Q, V, policy, read = own
    r, successors, scale, L, more, bernstein = read
    _, S, X, A = Q.shape
    H = float(S)
    for h in range(S - 1, -1, -1):
        for x in each(X):
            for a in range(A):
                n = visits[i, x, a]
                if n > 0:
                    to, row = successors[x, a], moves[i, x, a]
                    mean, variance, others = _moments(to, row, n, V[i, h + 1], met[i, h], more, H * H, bernstein)
                    if bernstein:
                        b = sqrt(8.0 * L * variance / n) + 14.0 * H * L / (3.0 * n) + sqrt(8.0 * others / n)
                    else:
                        b = 7.0 * H * L / sqrt(n)
                    Q[i, h, x, a] = min(Q[i, h, x, a], r[x, a] + mean + scale * b)
            V[i, h, x] = play_greedily(Q[i, h, x], policy[i, h, x])
        sync()
    return NEVER


@compiled
def _moments(to, moves, n, V, met, more, most, both):  # type: ignore[no-untyped-def]
    """Of a row N' / n: P_hat V and, where `both` are asked for, the variance and sum_y P_hat(y) min{more / n_h(y),
    S^2}."""
    mean, variance, others = 0.0, 0.0, 0.0
    for j in range(moves.shape[0]):
        if moves[j] > 0:
            mean += moves[j] / n * V[to[j]]
    if both:
        for j in range(moves.shape[0]):
            if moves[j] > 0:
                p, y = moves[j] / n, to[j]
                variance += p * (V[y] - mean) ** 2
                others += p * (min(more / met[y], most) if met[y] > 0 else most)
    return mean, variance, others


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step; one thread's."""
    visits, moves, met, stage, Q, _, _, _ = own
    h = stage_of(stage, i, Q.shape[1], reset)
    visits[i, x, a] += 1
    moves[i, x, a, slot] += 1
    met[i, h, y] += 1
    return False
