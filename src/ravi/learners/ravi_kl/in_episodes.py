"""RAVI-KL in episodes (plan=greedy): backward induction with the best kernel of every set.

Before an episode that begins at step t, with n and p_hat of all earlier ones, V_S = 0, and backwards,

    Q_h(x, a) = r(x, a) + max {<q, V_{h+1}> : q on the support, n KL(p_hat || q) <= rho(n)},    V_h(x) = max_a Q_h(x, a)
    rho(n)    = scale (ln(X S / delta_t) + kappa(n)),    delta_t = min {1, sqrt(S X A / t)}

and stage h plays argmax_a Q_h. kappa is that of docs/explanation/kl.md.

Theorem (scale = 1). For every T, with rho_T = ln(X S / delta_T) + kappa(T), rho_G = ln(X A T) + C_B(T),

    R_T <= 1 + S + S^2 X A + 2 sqrt(S X A T) + S (sqrt(rho_T) + sqrt(rho_G)) (2 sqrt(X A T) + sqrt(2) S X A).

Proof. Lemma 1 of kl.md needs one fixed function and one pair of every state: here V*_{h+1} and (x, pi*_h(x)), for S
stages, whence X S. So with probability 1 - delta_t all of these sets have max <q, V*_{h+1}> >= P V*_{h+1}, and
backwards V_h >= V*_h: maxima of averages are monotone. Where that is not so, an episode costs at most S: S + 2 sqrt(S
X A T) in all. (Where T cuts an episode off, the regret is the linear interpolation of those at its two ends, and the
bound, concave in the number of plays at fixed radii, holds in between.) Else it costs at most V_0 - V^pi_0 = E_pi
sum_h <q_h - P, V_{h+1}>. By Pinsker's inequality for V in an interval of length S, a term is at most S (sqrt(rho /
2n) + sqrt(rho_G / 2n)) where n >= 1 and KL(p_hat || P) <= rho_G / n, which holds of all pairs and n but with
probability 1 / T (kl.md; of the counts at the start of an episode, which costs S where it fails, together 1), and S
where n = 0, which S plays of a pair at most are. n stays as it is within an episode: the sum of 1 / sqrt(n) over the
plays of a pair with n >= 1 is at most 2 sqrt(2 n_end) + 2 S (`ravi.learners.ravi_ucb.in_episodes`), and sum
sqrt(n_end) <= sqrt(X A T).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, Buffer, each, sync, team
from ravi.core import Array, Learner, Problem, Seedwise, SideInformation
from ravi.estimators.counts import Counts, tallies, tally_play
from ravi.learners.episodic.core import play_greedily
from ravi.optimism.known_support import on_support, support_setting
from ravi.optimism.relative_entropy import kappa, seen
from ravi.optimism.sets import best_in_ball
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Age, Policy, Value
from ravi.runtime.seedwise import compiled_learner


class State(NamedTuple):
    data: Counts
    V: Value  # V_0, ..., V_S           (n, S + 1, X)
    policy: Policy  # by stage          (n, S, X, A)
    age: Age  # steps since the reset   (n,)


def greedy_in_episodes(problem: Problem, knows_support: bool, scale: float) -> Learner:
    """RAVI-KL with plan=greedy, in episodes."""
    problem, S = on_support(problem, knows_support), problem.episode or 0
    X, A, B = problem.successors.shape

    def init(keys: Array) -> State:
        n = len(keys)
        V, policy = np.zeros((n, S + 1, X)), np.full((n, S, X, A), 1 / A)
        return State(tallies(problem, n), V, policy, np.zeros(n, np.int32))

    def own(s: State, teams: int) -> tuple[Any, ...]:
        room = Buffer((teams, X, B), np.int32), Buffer((teams, X, B)), Buffer((teams, X, B)), Buffer((teams, X, A))
        read = problem.rewards, problem.successors, scale, knows_support
        return *s.data, s.V, s.policy, read, room, Buffer((len(s.age), 0, 0), np.int32)

    kept = {"plan": "greedy"} | support_setting(knows_support) | {"scale": scale, "stages": S}
    form = Seedwise(seed_plan, seed_learn, own, time=lambda s: 1 + s.data.visits.sum((1, 2), dtype=np.int64))
    return compiled_learner("ravi-kl", init, form, kept, stages=S, side_information=SideInformation(knows_support))


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An episode of one seed; a team's."""
    visits, moves, V, policy, read, room, _ = own
    r, successors, scale, knows_support = read
    k = team()
    tos, ps, ys, Q = room[0][k], room[1][k], room[2][k], room[3][k]
    _, S, X, A = policy.shape
    level = math.log(X * S / min(1.0, math.sqrt(S * X * A / t)))
    for h in range(S - 1, -1, -1):
        after = V[i, h + 1]
        top = highest(after)
        for x in each(X):
            for a in range(A):
                n = visits[i, x, a]
                rho = scale * (level + kappa(n))
                K = seen(successors[x, a], moves[i, x, a], n, rho, tos[x], ps[x])
                most, _ = best_in_ball(
                    successors[x, a], knows_support, K, tos[x], ps[x], rho / max(n, 1), after, top, np.nan, ys[x]
                )
                Q[x, a] = r[x, a] + most
            V[i, h, x] = play_greedily(Q[x], policy[i, h, x])
        sync()
    return NEVER


@compiled
def seed_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step; one thread's."""
    visits, moves, _, _, _, _, left = own
    tally_play(visits, moves, left, i, x, a, slot)
    return False
