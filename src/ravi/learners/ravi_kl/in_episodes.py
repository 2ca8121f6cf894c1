"""RAVI-KL in episodes: backward induction with the best kernel of every set.

Before an episode that begins at step t, with n and p_hat of all earlier ones, V_S = 0, and backwards,

    Q_h(x, a) = r(x, a) + max {<q, V_{h+1}> : q on the support, n KL(p_hat || q) <= rho(n)},    V_h(x) = max_a Q_h(x, a)
    rho(n)    = scale (ln(X S / delta_t) + kappa(n)),    delta_t = min {1, sqrt(S X A / t)}

with kappa of docs/explanation/kl.md. plan=greedy plays argmax_a Q_h at stage h. plan=slack plays the candidate, the
greedy policy of the same at rho / 2, where its own optimistic value at rho, <nu_0, V^c_0>, is at least U - s (U -
U_half), with U = <nu_0, V_0> and U_half the same at rho / 2; else argmax_a Q_h.

Theorem (scale = 1). For every T, with rho_T = ln(X S / delta_T) + kappa(T), rho_G = ln(X A T) + C_B(T), c = 0 for
greedy and c = s / (1 - s) for slack s < 1,

    R_T <= 1 + S + 2 sqrt(S X A T)
           + (1 + 2 c) (S^2 X A + S (sqrt(rho_T) + sqrt(rho_G)) (2 sqrt(X A T) + sqrt(2) S X A)).

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

With slack, of the policy pi that is played, U - U(pi) <= s (U - U_half) and U_half >= U_half(pi), so that U - U(pi) <=
c (U(pi) - U_half(pi)), and U(pi) - U_half(pi) = E_pi sum_h (<q_h - P, V_{h+1}> - <q'_h - P, V'_{h+1}>) with the best
kernels q of pi at rho and q' at rho / 2. q' is in the set at rho too, so both terms have the bound above: together with
U(pi) - V^pi_0, 1 + 2 c times. What is computed backwards is exact: no tolerance is paid for.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import NEVER, Buffer, each, sync, team, team_sum
from ravi.core import Array, KernelSets, Learner, Problem, Seedwise, SideInformation
from ravi.estimators.counts import Counts, tallies
from ravi.learners.episodic.core import count_step
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


class Own(NamedTuple):
    """What a plan is given."""

    visits: Array
    moves: Array
    V: Array
    policy: Array
    rewards: Array
    successors: Array
    initial: Array
    scale: float
    slack: float
    support: bool  # whether kernels are on it
    to: Any  # scratch by team, of a set   (teams, X, B), as are
    p: Any
    y: Any
    actions: Any  # of the largest U, and of the candidate   (2, teams, S, X)
    values: Any  # of the candidate's passes                 (teams, S + 1, X)
    left: Any  # of none


def kl_in_episodes(problem: Problem, knows_support: bool, scale: float, slack: float | None) -> Learner:
    """RAVI-KL in episodes: plan=greedy where slack is None."""
    problem, S = on_support(problem, knows_support), problem.episode or 0
    X, A, B = problem.successors.shape

    def init(keys: Array) -> State:
        n = len(keys)
        V, policy = np.zeros((n, S + 1, X)), np.full((n, S, X, A), 1 / A)
        return State(tallies(problem, n), V, policy, np.zeros(n, np.int32))

    def own(s: State, teams: int) -> Own:
        read = problem.rewards, problem.successors, problem.initial, scale, slack or 0.0, knows_support
        row, actions = (teams, X, B), Buffer((2, teams, S, X), np.int32)
        scratch = Buffer(row, np.int32), Buffer(row), Buffer(row), actions, Buffer((teams, S + 1, X))
        return Own._make((*s.data, s.V, s.policy, *read, *scratch, Buffer((len(s.age), 0, 0), np.int32)))

    kept: dict[str, Any] = {"plan": "greedy"} if slack is None else {"plan": "slack", "slack": slack}
    kept |= support_setting(knows_support) | {"scale": scale, "stages": S}
    form = Seedwise(seed_plan, count_step, own, time=lambda s: 1 + s.data.visits.sum((1, 2), dtype=np.int64))
    return compiled_learner(
        "ravi-kl", init, form, kept, stages=S, side_information=SideInformation(knows_support),
        sets=KernelSets(scale, slack or 0.0),
    )  # fmt: skip


@compiled
def seed_plan(own, i, t):  # type: ignore[no-untyped-def]
    """An episode of one seed; a team's."""
    k, policy = team(), own.policy[i]
    S, X, A = policy.shape
    best, candidate, values = own.actions[0, k], own.actions[1, k], own.values[k]
    level = math.log(X * S / min(1.0, math.sqrt(S * X * A / t)))
    U, choice = _induce(own, i, level, 1.0, False, own.V[i], best), 0
    if own.slack > 0.0:
        U_half = _induce(own, i, level, 0.5, False, values, candidate)
        U_candidate = _induce(own, i, level, 1.0, True, values, candidate)
        choice = 1 if U_candidate >= U - own.slack * (U - U_half) else 0
    for x in each(X):
        for h in range(S):
            for a in range(A):
                policy[h, x, a] = 1.0 if a == own.actions[choice, k, h, x] else 0.0
    return NEVER


@compiled
def _induce(own, i, level, share, fixed, V, actions):  # type: ignore[no-untyped-def]
    """<nu_0, V_0> at this share of the radii; V (S + 1, X), and the actions (S, X), the best unless they are fixed, are
    written. A team's."""
    k, visits, moves, successors = team(), own.visits[i], own.moves[i], own.successors
    S, X, A = actions.shape[0], actions.shape[1], visits.shape[1]
    for x in each(X):
        V[S, x] = 0.0
    sync()
    for h in range(S - 1, -1, -1):
        after = V[h + 1]
        top = highest(after)
        for x in each(X):
            first = actions[h, x] if fixed else 0
            for a in range(first, first + 1 if fixed else A):
                n = visits[x, a]
                rho = share * own.scale * (level + kappa(n))
                to, p = own.to[k, x], own.p[k, x]
                K = seen(successors[x, a], moves[x, a], n, rho, to, p)
                most, _ = best_in_ball(
                    successors[x, a], own.support, K, to, p, rho / max(n, 1), after, top, np.nan, own.y[k, x]
                )
                if a == first or own.rewards[x, a] + most > V[h, x]:
                    V[h, x], actions[h, x] = own.rewards[x, a] + most, a
        sync()
    total = 0.0
    for x in each(X):
        total += own.initial[x] * V[0, x]
    return team_sum(total)
